"""Implements `ControlPlane` with ZooKeeper. The state of the cluster is in the znodes."""

from collections.abc import Callable, Mapping
from typing import Final

from harrow.cluster_model import errors, events
from harrow.cluster_model.controller.assignment import assign_partitions, refusal_of_partitions
from harrow.cluster_model.controller.control_plane import ADMIN, CREATE_PARTITIONS_API, LifecycleListener
from harrow.cluster_model.controller.new_topics import ConfiguredTopics
from harrow.cluster_model.protocol import LeaderAndIsr, ReplicaAssignment
from harrow.cluster_model.release.profiles import Behaviours
from harrow.cluster_model.settings import BrokerConfig, TopicConfig
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.sim.network import Network
from harrow.cluster_model.sim.process import Process
from harrow.cluster_model.sim.virtual_time import US_PER_MS
from harrow.cluster_model.topic_settings import Settings
from harrow.cluster_model.topology import ClusterSpec
from harrow.cluster_model.trace import Trace
from harrow.cluster_model.zookeeper.broker_lifecycle import REGISTRATION_RETRY_US, ZkBrokerLifecycle
from harrow.cluster_model.zookeeper.quorum.ensemble import ZooKeeperEnsemble
from harrow.cluster_model.zookeeper.quorum.fast_leader_election import NOTIFICATION_INTERVAL_MAX_US
from harrow.cluster_model.zookeeper.service import protocol as zk
from harrow.cluster_model.zookeeper.state_changes import StateChanges

_ADMIN_RETRY_US: Final = 100 * US_PER_MS


class ZkControlPlane:
    """ZooKeeper, and a controller on one of the brokers."""

    def __init__(
        self,
        spec: ClusterSpec,
        behaviours: Behaviours,
        host_of: Callable[[Process], Host],
        network: Network,
        trace: Trace,
        brokers: Mapping[int, Process],
        end_process: Callable[[int], None],
        topics: ConfiguredTopics,
        on_settings: Callable[[str, Settings], None],
    ) -> None:
        self._brokers = brokers
        self._lifecycles: dict[int, ZkBrokerLifecycle] = {}
        self._admin = host_of(Process("admin"))
        self._spec = spec
        self._behaviours = behaviours
        self._zookeeper = ZooKeeperEnsemble(spec, host_of, network, self._admin, end_process)
        self.process_names = self._zookeeper.names
        self.servers = self._zookeeper.processes
        self._topics = topics
        StateChanges(trace, self._zookeeper, on_settings)

    def start(self) -> None:
        self._zookeeper.start()

    def dismantle(self) -> None:
        self._zookeeper.dismantle()

    def start_server(self, node: int) -> None:
        self._zookeeper.start_server(node)

    def stop_server(self, node: int, on_ended: Callable[[], None]) -> None:
        self._zookeeper.stop_server(node)
        on_ended()

    def join(
        self,
        broker: int,
        host: Host,
        config: BrokerConfig,
        topic_config: Callable[[str], TopicConfig],
        listener: LifecycleListener,
    ) -> ZkBrokerLifecycle:
        """Return the lifecycle of a broker's new incarnation."""
        lifecycle = ZkBrokerLifecycle(
            *(broker, host, config, topic_config, self._behaviours, listener, self.process_names),
            self._topics,
        )
        self._lifecycles[broker] = lifecycle
        return lifecycle

    def create_topic(self, topic: str, assignment: tuple[tuple[int, ...], ...]) -> None:
        """Write a topic's assignment and nothing else, as ``kafka-topics --zookeeper`` does."""
        self._zookeeper.write(zk.Create(zk.topic_path(topic), tuple(map(ReplicaAssignment, assignment))))

    def elect_preferred_leaders(self) -> None:
        """Create ``/admin/preferred_replica_election``."""
        self._zookeeper.write(zk.Create(zk.PREFERRED_REPLICA_ELECTION, None))

    def alter_partition_reassignment(self, partition: str, target: tuple[int, ...] | None) -> None:
        """Ask the active controller to reassign a partition. Retry until there is a controller."""
        controller = self.controller()
        process = None if controller is None else self._brokers[controller]
        if controller is not None and process is not None and process.running and not process.paused:
            lifecycle = self._lifecycles[controller]
            if lifecycle.is_active_controller:
                lifecycle.alter_partition_reassignment(partition, target)
                return
        self._admin.set_timer(_ADMIN_RETRY_US, lambda _: self.alter_partition_reassignment(partition, target))

    def create_partitions(self, topic: str, total: int, racks: Mapping[int, str]) -> None:
        """Write a topic's assignment with more partitions, as ``kafka-topics --zookeeper`` does."""
        assigned = self._zookeeper.tree.data(zk.topic_path(topic))
        existing = assigned if isinstance(assigned, tuple) else ()
        first_replicas = existing[0].replicas if existing else ()
        live = [broker for broker in sorted(self._brokers) if self.is_registered(broker)]
        error = refusal_of_partitions(live, first_replicas, len(existing), total)
        if error != errors.NONE:
            controller = self.controller()
            broker = events.NO_CONTROLLER if controller is None else controller
            name = f"{topic}-{len(existing)}"
            self._admin.emit(events.RequestRejected, broker, CREATE_PARTITIONS_API, name, ADMIN, error)
            return
        added = assign_partitions(live, racks, first_replicas, len(existing), total)
        self._zookeeper.write(zk.SetData(zk.topic_path(topic), (*existing, *map(ReplicaAssignment, added))))

    def expire_session(self, broker: int) -> None:
        """End a broker's session, if there is a server that can end it now."""
        self._zookeeper.expire_session_of(f"broker-{broker}")

    def lose_disk(self, broker: int) -> None:
        """Do nothing: the cluster's metadata is in ZooKeeper, whose servers keep their disks."""

    def has_metadata_log(self, node: int) -> bool:
        return False

    def keeps_metadata_without(self, node: int) -> bool:
        return True

    def remove_controller(self) -> None:
        """Delete ``/controller``."""
        self._zookeeper.write(zk.Delete(zk.CONTROLLER))

    def quorum(self) -> tuple[int, ...]:
        return tuple(self.servers)

    def quorum_leader(self) -> int | None:
        return self._zookeeper.leader()

    def controller(self) -> int | None:
        """Return the broker that ``/controller`` names."""
        broker = self._zookeeper.tree.data(zk.CONTROLLER)
        return broker if isinstance(broker, int) else None

    def partition_state(self, partition: str) -> LeaderAndIsr | None:
        """Return the content of a partition's state znode."""
        node = self._zookeeper.tree.node(zk.state_path(partition))
        if node is None or not isinstance(node.data, zk.TopicPartitionState):
            return None
        return node.data.leader_and_isr(node.version)

    def assignment(self, partition: str) -> ReplicaAssignment | None:
        """Return a partition's replicas from the znode of its topic."""
        topic, _, number = partition.rpartition("-")
        assigned = self._zookeeper.tree.data(zk.topic_path(topic))
        if not isinstance(assigned, tuple):
            return None
        place = int(number)
        return assigned[place] if place < len(assigned) else None

    def electable(self, partition: str) -> tuple[int, ...]:
        state = self.partition_state(partition)
        return () if state is None else state.isr

    def recovery_sets(self, partition: str) -> tuple[tuple[int, ...], ...]:
        return (self.electable(partition),)

    def registration_time_max_us(self, config: BrokerConfig) -> int:
        """Return how long a broker's former session can delay its next registration."""
        return (
            self._election_time_max_us()
            + config.zookeeper_session_timeout_us
            + 2 * self._spec.zookeeper_tick_us
            + REGISTRATION_RETRY_US
        )

    def _election_time_max_us(self) -> int:
        """Return how long an ensemble can take to elect a leader once all its servers run."""
        if len(self.process_names) == 1:
            return 0
        limits = self._spec.zookeeper_init_limit + self._spec.zookeeper_sync_limit
        return 2 * limits * self._spec.zookeeper_tick_us + NOTIFICATION_INTERVAL_MAX_US

    def is_registered(self, broker: int) -> bool:
        """Return whether a broker is registered under ``/brokers/ids``."""
        return self._zookeeper.tree.node(zk.broker_path(broker)) is not None
