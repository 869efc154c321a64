"""Sends the controller's requests to brokers (``ControllerChannelManager.scala``).

The controller has a queue and a connection for each broker. One request at a time is in flight to a
broker. It is retried until the broker answers or is no longer alive.
"""

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from harrow.cluster_model import protocol
from harrow.cluster_model.clients.network_client import NetworkClient
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.sim.virtual_time import US_PER_MS

RETRY_BACKOFF_US: Final = 100 * US_PER_MS
CONTROL_LISTENER: Final = "control"


class ControllerChannel:
    """The queue of requests to one broker."""

    __slots__ = ("_client", "_closed", "_host", "_on_answered", "_queue", "_sending", "broker_epoch")

    def __init__(
        self,
        host: Host,
        broker: int,
        broker_epoch: int,
        socket_timeout_us: int,
        on_answered: Callable[[int, protocol.ControlRequest, protocol.ControlResponse], None],
    ) -> None:
        self._host = host
        self._on_answered = partial(on_answered, broker)
        self.broker_epoch = broker_epoch
        self._client = NetworkClient(host, f"broker-{broker}", CONTROL_LISTENER, socket_timeout_us)
        self._queue: deque[protocol.ControlRequest] = deque()
        self._sending = False
        self._closed = False

    def send(self, request: protocol.ControlRequest) -> None:
        """Send a request after earlier requests."""
        self._queue.append(request)
        self._send_next(None)

    def close(self) -> None:
        """Drop unanswered requests, because the broker or the controller has ended."""
        self._closed = True
        self._queue.clear()
        self._client.close()

    def _send_next(self, _: None) -> None:
        if self._queue and not self._sending and not self._closed:
            self._sending = True
            self._client.send(self._queue[0], self._handle_response)

    def _handle_response(self, response: protocol.ControlResponse | None, _: None) -> None:
        self._sending = False
        if self._closed:
            return
        if response is None:
            self._host.set_timer(RETRY_BACKOFF_US, self._send_next)
        else:
            request = self._queue.popleft()
            self._on_answered(request, response)
            self._send_next(None)


def _ignore(_: int, _request: protocol.ControlRequest, _response: protocol.ControlResponse) -> None:
    """Ignore a response, until the controller has set its handler."""


class ControllerChannelManager:
    """The channels to all live brokers."""

    def __init__(self, host: Host, broker: int, socket_timeout_us: int) -> None:
        self._host = host
        self._broker = broker
        self._socket_timeout_us = socket_timeout_us
        self._channels: dict[int, ControllerChannel] = {}
        self.on_answered: Callable[[int, protocol.ControlRequest, protocol.ControlResponse], None] = _ignore

    def add_broker(self, broker: int, broker_epoch: int) -> None:
        """Open the channel to a broker."""
        self._channels[broker] = ControllerChannel(
            self._host, broker, broker_epoch, self._socket_timeout_us, self.on_answered
        )

    def remove_broker(self, broker: int) -> None:
        """Close the channel to a broker."""
        channel = self._channels.pop(broker, None)
        if channel is not None:
            channel.close()

    def close(self) -> None:
        """Close all channels."""
        for broker in tuple(self._channels):
            self.remove_broker(broker)

    def to(self, brokers: Iterable[int]) -> list[tuple[int, ControllerChannel]]:
        """Return those of *brokers* that are alive, each with its channel."""
        return [(broker, self._channels[broker]) for broker in brokers if broker in self._channels]


class RequestBatch:
    """The requests to brokers after a state change (``ControllerBrokerRequestBatch``)."""

    def __init__(self, controller: int, controller_epoch: int, channels: ControllerChannelManager) -> None:
        self._controller = controller
        self._controller_epoch = controller_epoch
        self._channels = channels
        self._leader_and_isr: dict[int, dict[str, protocol.LeaderAndIsrPartitionState]] = {}
        self._stop_replica: dict[int, list[str]] = {}
        self._deletions: dict[int, list[str]] = {}
        self._update_metadata: dict[str, protocol.LeaderAndIsrPartitionState] = {}

    def add_leader_and_isr(
        self, brokers: Iterable[int], partition: str, state: protocol.LeaderAndIsrPartitionState
    ) -> None:
        """Send a partition's state to these brokers, and to all brokers as metadata."""
        for broker in brokers:
            self._leader_and_isr.setdefault(broker, {})[partition] = state
        self._update_metadata[partition] = state

    def add_stop_replica(self, broker: int, partition: str) -> None:
        """Make a broker stop fetching a partition."""
        self._stop_replica.setdefault(broker, []).append(partition)

    def add_deletion(self, broker: int, partition: str) -> None:
        """Make a broker delete its replica."""
        self._deletions.setdefault(broker, []).append(partition)

    def send(self, live_brokers: tuple[int, ...]) -> None:
        """Queue the requests: LeaderAndIsr, then UpdateMetadata, then StopReplica.

        Only live brokers get requests (``sendRequestsToBrokers``). So a broker that has restarted
        gets no StopReplica while the controller handles the failure of its former incarnation,
        although the broker has a channel again.
        """
        controller, epoch = self._controller, self._controller_epoch
        for broker, channel in self._channels.to(self._leader_and_isr):
            if broker in live_brokers:
                states = self._leader_and_isr[broker]
                channel.send(protocol.LeaderAndIsrRequest(controller, epoch, channel.broker_epoch, states))
        if self._update_metadata:
            self.send_update_metadata(live_brokers, self._update_metadata, live_brokers)
        for stopped, is_deletion in ((self._stop_replica, False), (self._deletions, True)):
            for broker, channel in self._channels.to(stopped):
                if broker in live_brokers:
                    request = protocol.StopReplicaRequest(
                        controller, epoch, channel.broker_epoch, tuple(stopped[broker]), is_deletion
                    )
                    channel.send(request)

    def send_update_metadata(
        self,
        brokers: Iterable[int],
        states: dict[str, protocol.LeaderAndIsrPartitionState],
        live_brokers: tuple[int, ...],
    ) -> None:
        """Queue an UpdateMetadata request to each of *brokers*."""
        controller, epoch = self._controller, self._controller_epoch
        for _, channel in self._channels.to(brokers):
            request = protocol.UpdateMetadataRequest(
                controller, epoch, channel.broker_epoch, states, live_brokers
            )
            channel.send(request)
