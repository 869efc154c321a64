"""Registers a broker in ZooKeeper, and runs its controller (``KafkaServer.scala``)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from harrow.cluster_model.controller.administration import AdministrationRequest, NewTopic
from harrow.cluster_model.controller.alter_partition_manager import DefaultAlterPartitionManager
from harrow.cluster_model.controller.control_plane import AlterPartitionManager, LifecycleListener
from harrow.cluster_model.controller.new_topics import ConfiguredTopics
from harrow.cluster_model.controller.node_to_controller_channel import NodeToControllerChannel
from harrow.cluster_model.events import RegistrationLearned
from harrow.cluster_model.protocol import (
    NO_EPOCH,
    AlterPartitionRequest,
    AlterPartitionResponse,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    InitProducerIdResponse,
)
from harrow.cluster_model.release.profiles import Behaviours
from harrow.cluster_model.settings import BrokerConfig, TopicConfig
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from harrow.cluster_model.topology import process_name
from harrow.cluster_model.zookeeper.admin_zk_client import AdminZkClient
from harrow.cluster_model.zookeeper.alter_partition_manager import ZkAlterPartitionManager
from harrow.cluster_model.zookeeper.controlled_shutdown import INTER_BROKER_LISTENER, ControlledShutdown
from harrow.cluster_model.zookeeper.controller.kafka_controller import KafkaController
from harrow.cluster_model.zookeeper.producer_id_manager import ZkProducerIdManager
from harrow.cluster_model.zookeeper.service import protocol as zk
from harrow.cluster_model.zookeeper.service.client import ZooKeeperClient

REGISTRATION_RETRY_US: Final = US_PER_SECOND
"""How long a broker waits before it tries again to register.

The broker cannot register while its former session still has its id.
"""


class ZkBrokerLifecycle:
    """Connects one incarnation of a broker to ZooKeeper, and handles the events of its session."""

    def __init__(
        self,
        broker: int,
        host: Host,
        config: BrokerConfig,
        topic_config: Callable[[str], TopicConfig],
        behaviours: Behaviours,
        listener: LifecycleListener,
        servers: Sequence[str],
        topics: ConfiguredTopics,
    ) -> None:
        self._broker = broker
        self._host = host
        self._config = config
        self._switches = behaviours.zookeeper
        self._broker_epoch = NO_EPOCH
        self._listener = listener
        self._zookeeper = ZooKeeperClient(host, config.zookeeper_session_timeout_us, self, servers)
        self._controller = KafkaController(
            broker, host, config, topic_config, behaviours, self._zookeeper, topics
        )
        self._producer_ids = ZkProducerIdManager(self._zookeeper)
        self._admin_client = AdminZkClient(host, self._zookeeper, config, topics)
        self.alter_partition_manager: AlterPartitionManager = ZkAlterPartitionManager(
            host, self._zookeeper, behaviours.zookeeper
        )
        self._channel: NodeToControllerChannel | None = None
        if behaviours.zookeeper.isr_altered_by_controller:
            self._channel = NodeToControllerChannel(
                host,
                process_name,
                INTER_BROKER_LISTENER,
                config.controller_socket_timeout_us,
                lambda: listener.known_controller,
            )
            self.alter_partition_manager = DefaultAlterPartitionManager(
                broker, host, self._channel, lambda: self._broker_epoch
            )

    @property
    def is_active_controller(self) -> bool:
        return self._controller.is_active

    @property
    def exit_us(self) -> int | None:
        """None, because a broker never exits: it tries to register without limit."""
        return None

    def start(self) -> None:
        """Connect to ZooKeeper. The broker registers when it has a session."""
        self._zookeeper.start()

    def generate_producer_id(self, on_generated: Callable[[InitProducerIdResponse], None]) -> None:
        """Answer with the next id of a block that this broker has claimed."""
        self._producer_ids.generate(on_generated)

    # Stopping

    def request_controlled_shutdown(self, on_ended: Callable[[], None]) -> None:
        """Ask the controller that ``/controller`` names for a controlled shutdown."""
        ControlledShutdown(
            self._broker,
            lambda: self._broker_epoch,
            self._host,
            self._config,
            self._switches,
            self._zookeeper,
            on_ended,
        ).start()

    def handle_controlled_shutdown(
        self,
        request: ControlledShutdownRequest,
        on_handled: Callable[[ControlledShutdownResponse], None],
    ) -> None:
        """Pass another broker's request to the controller on this broker."""
        self._controller.controlled_shutdown(request, on_handled)

    def handle_alter_partition(
        self, request: AlterPartitionRequest, on_handled: Callable[[AlterPartitionResponse], None]
    ) -> None:
        """Pass a leader's request to the controller on this broker."""
        self._controller.alter_partitions(request, on_handled)

    def alter_partition_reassignment(self, partition: str, target: tuple[int, ...] | None) -> None:
        """Pass an administrator's request to the controller on this broker."""
        self._controller.alter_partition_reassignment(partition, target)

    def create_topics(
        self,
        topics: tuple[NewTopic, ...],
        on_answer: Callable[[Mapping[str, str]], None],
        on_end: Callable[[], None],
    ) -> None:
        """Write topics to ZooKeeper, on any broker (``KafkaApis.createTopic``)."""

        def on_created(outcomes: Mapping[str, str]) -> None:
            on_answer(outcomes)
            on_end()

        self._admin_client.create_topics(topics, on_created)

    def administer(self, request: AdministrationRequest, on_handled: Callable[[Any], None]) -> None:
        """Pass a request to the controller on this broker, which refuses it unless it is active."""
        self._controller.administer(request, on_handled)

    def propagate_log_dir_failure(self, partitions: tuple[str, ...]) -> None:
        """Create a znode for the controller to notice (``KafkaZkClient.propagateLogDirEvent``)."""
        note = zk.Create(f"{zk.LOG_DIR_EVENT_NOTIFICATION}/log_dir_event_", self._broker, sequential=True)
        self._zookeeper.submit((note,), lambda _: None)

    def close(self, on_closed: Callable[[], None]) -> None:
        """Resign and close the session, which deletes the registration and ``/controller``."""
        self._controller.shutdown()
        if self._channel is not None:
            self._channel.close()
        self._zookeeper.close(on_closed)

    # Session

    def session_established(self) -> None:
        """Register under /brokers/ids."""
        self._register(None)

    def session_expired(self) -> None:
        """Resign as controller.

        The registration is deleted, and so is ``/controller`` if this broker created it.
        """
        self._controller.session_expired()

    def watch_fired(self, event: zk.WatchEvent) -> None:
        """Pass the event to the controller on this broker, which has set all watches."""
        self._controller.watch_fired(event)

    def _register(self, _: None) -> None:
        create = zk.Create(zk.broker_path(self._broker), self._broker, ephemeral=True)
        self._zookeeper.submit((create,), self._handle_registration)

    def _handle_registration(self, response: zk.ZooKeeperResponse) -> None:
        if response.error != zk.OK:
            return  # The session has expired again; the next one registers.
        result = response.results[0]
        if result.error == zk.NODE_EXISTS and not self._zookeeper.owns(result):
            # The former session has not expired. In Kafka the start fails then, and a supervisor
            # starts the broker again.
            self._host.set_timer(REGISTRATION_RETRY_US, self._register)
            return
        self._broker_epoch = result.czxid
        self._host.publish(RegistrationLearned, self._broker, result.czxid)
        self._controller.broker_registered()
        self._listener.on_registration(result.czxid)
        self._listener.on_unfencing()
