"""Asks the controller for a controlled shutdown (``KafkaServer.controlledShutdown``)."""

from collections.abc import Callable
from dataclasses import field
from typing import Final

from harrow.cluster_model import errors, events
from harrow.cluster_model.clients.network_client import NetworkClient
from harrow.cluster_model.events import NO_CONTROLLER
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.protocol import NO_EPOCH, ControlledShutdownRequest, ControlledShutdownResponse
from harrow.cluster_model.release.zookeeper import ZooKeeperSwitches
from harrow.cluster_model.settings import BrokerConfig
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.zookeeper.service import protocol as zk
from harrow.cluster_model.zookeeper.service.client import ZooKeeperClient

INTER_BROKER_LISTENER: Final = "replication"


@dataclass(slots=True, eq=False)
class ControlledShutdown:
    """The attempts of one broker to shut down, each of which looks up the controller again.

    An attempt fails if there is no controller, if the controller does not answer within
    ``controller.socket.timeout.ms``, if it answers with an error, or if the broker still leads a
    partition that has other replicas. After each failure, even the last one, the broker waits for
    ``controlled.shutdown.retry.backoff.ms``. After ``controlled.shutdown.max.retries`` failures the
    broker stops anyway. Its broker epoch may change between attempts.
    """

    broker: int
    broker_epoch: Callable[[], int]
    host: Host
    config: BrokerConfig
    switches: ZooKeeperSwitches
    zookeeper: ZooKeeperClient
    on_ended: Callable[[], None]
    _attempts: int = field(default=0, init=False)
    _controller: int = field(default=NO_CONTROLLER, init=False)
    _client: NetworkClient | None = field(default=None, init=False)

    def start(self) -> None:
        """Begin with the first attempt."""
        self._attempt(None)

    def _attempt(self, _: None) -> None:
        if self._attempts == self.config.controlled_shutdown_max_retries:
            self._give_up()
            return
        self._attempts += 1
        self.zookeeper.submit((zk.GetData(zk.CONTROLLER),), self._handle_controller)

    def _handle_controller(self, response: zk.ZooKeeperResponse) -> None:
        """Ask the broker that ``/controller`` names.

        If the znode is missing, ask the last known controller again. Earlier releases give up then.
        """
        if response.error != zk.OK:
            self._give_up()  # The session has expired. The broker does not wait for another.
        elif response.results[0].error == zk.OK:
            controller = int(response.results[0].data)
            registration = zk.GetData(zk.broker_path(controller))
            self.zookeeper.submit((registration,), lambda read: self._handle_registration(read, controller))
        elif self.switches.shutdown_awaits_controller:
            self._ask()
        else:
            self._give_up()

    def _handle_registration(self, response: zk.ZooKeeperResponse, controller: int) -> None:
        if response.error != zk.OK:
            self._give_up()
            return
        if response.results[0].error == zk.OK and controller != self._controller:
            if self._client is not None:
                self._client.close()
            self._controller = controller
            self._client = NetworkClient(
                self.host,
                f"broker-{controller}",
                INTER_BROKER_LISTENER,
                self.config.controller_socket_timeout_us,
            )
        self._ask()

    def _ask(self) -> None:
        if self._client is None:
            self._handle_response(ControlledShutdownResponse(errors.BROKER_NOT_AVAILABLE), None)
            return
        broker_epoch = self.broker_epoch() if self.switches.control_requests_carry_broker_epoch else NO_EPOCH
        self._client.send(ControlledShutdownRequest(self.broker, broker_epoch), self._handle_response)

    def _handle_response(self, response: ControlledShutdownResponse | None, _: None) -> None:
        answer = response or ControlledShutdownResponse(errors.NETWORK_EXCEPTION)
        self.host.emit(
            events.ControlledShutdownAnswered,
            self.broker,
            self._controller,
            self._attempts,
            answer.error,
            answer.remaining,
        )
        if answer.error == errors.NONE and not answer.remaining:
            self._end()
        else:
            self.host.set_timer(self.config.controlled_shutdown_retry_backoff_us, self._attempt)

    def _give_up(self) -> None:
        self.host.emit(events.ControlledShutdownGivenUp, self.broker, self._attempts)
        self._end()

    def _end(self) -> None:
        if self._client is not None:
            self._client.close()
        self.on_ended()
