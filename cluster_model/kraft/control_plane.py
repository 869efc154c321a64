"""Implements `ControlPlane` with KRaft.

The state of the control plane is the committed metadata.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from harrow.cluster_model import events
from harrow.cluster_model.controller.assignment import partition_assignments
from harrow.cluster_model.controller.control_plane import LifecycleListener
from harrow.cluster_model.controller.new_topics import ConfiguredTopics
from harrow.cluster_model.kraft.broker_lifecycle import KRaftBrokerLifecycle
from harrow.cluster_model.kraft.committed_changes import CommittedChanges
from harrow.cluster_model.kraft.metadata_log import MetadataLog
from harrow.cluster_model.kraft.partition_change import recovery_sets
from harrow.cluster_model.kraft.protocol import observer_id, server_name
from harrow.cluster_model.kraft.quorum_controller import QuorumController
from harrow.cluster_model.kraft.raft import QuorumConfig, QuorumDescription
from harrow.cluster_model.protocol import LeaderAndIsr, ReplicaAssignment
from harrow.cluster_model.release.profiles import Behaviours
from harrow.cluster_model.settings import BrokerConfig, TopicConfig
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.sim.network import Network
from harrow.cluster_model.sim.process import Process
from harrow.cluster_model.sim.virtual_time import US_PER_MS
from harrow.cluster_model.topic_settings import Settings
from harrow.cluster_model.topology import ClusterSpec, process_name
from harrow.cluster_model.trace import Trace

_ADMIN_RETRY_US: Final = 100 * US_PER_MS


class QuorumControlPlane:
    """A quorum of controllers, in processes of their own or in those of brokers."""

    def __init__(
        self,
        spec: ClusterSpec,
        config: BrokerConfig,
        topic_config: Callable[[str], TopicConfig],
        behaviours: Behaviours,
        host_of: Callable[[Process], Host],
        network: Network,
        trace: Trace,
        brokers: Mapping[int, Process],
        end_process: Callable[[int], None],
        halt_process: Callable[[int], None],
        topics: ConfiguredTopics,
        on_settings: Callable[[str, Settings], None],
    ) -> None:
        self._config = config
        self._topics = topics
        self._topic_config = topic_config
        self._behaviours = behaviours
        self._host_of = host_of
        self._network = network
        self._trace = trace
        self._voters = spec.controller_ids()
        self._brokers = brokers
        self.servers: dict[int, Process] = (
            {}
            if spec.combined
            else {
                node: Process(process_name(node), partial(end_process, node), partial(halt_process, node))
                for node in self._voters
            }
        )
        self.process_names = tuple(self._process(node).name for node in self._voters)
        self._quorum_config = QuorumConfig.from_settings(config, behaviours.kraft)
        self._logs = {node: MetadataLog() for node in self._voters}
        self._broker_logs = {broker: MetadataLog() for broker in brokers}
        self._nodes: dict[int, QuorumController] = {}
        self._incarnations: dict[int, KRaftBrokerLifecycle] = {}
        self._changes = CommittedChanges(trace, partition_assignments(spec), on_settings)
        self._admin = host_of(Process("admin"))
        self._active: tuple[int, int] | None = None

    def _process(self, node: int) -> Process:
        return self.servers.get(node) or self._brokers[node]

    def start(self) -> None:
        # Register all names first: a starting controller may look for a leader among controllers
        # that have not started yet.
        for node in self._voters:
            self._network.add(self._process(node), server_name(node))
        for node in self.servers:
            self.start_server(node)

    def dismantle(self) -> None:
        for log in (*self._logs.values(), *self._broker_logs.values()):
            log.dismantle()

    def start_server(self, node: int) -> None:
        process = self._process(node)
        controller = QuorumController(
            node,
            self._host_of(process),
            self._voters,
            self._logs[node],
            self._config,
            self._quorum_config,
            self._topic_config,
            self._behaviours,
            self._became_active,
            self._became_inactive,
            self._changes.apply_committed,
            self._topics,
        )
        self._nodes[node] = controller
        self._network.listen(process, controller, server_name(node))
        controller.start()

    def stop_server(self, node: int, on_ended: Callable[[], None]) -> None:
        """Shut a controller down cleanly."""
        self._nodes[node].shutdown(on_ended)

    def join(
        self,
        broker: int,
        host: Host,
        config: BrokerConfig,
        topic_config: Callable[[str], TopicConfig],
        listener: LifecycleListener,
    ) -> KRaftBrokerLifecycle:
        """Return what connects a starting broker.

        Also start the controller in its process, if any.
        """
        if broker in self._voters:
            self.start_server(broker)
        incarnation = KRaftBrokerLifecycle(
            broker,
            host,
            config,
            self._voters,
            self._broker_logs[broker],
            self._quorum_config,
            listener,
            lambda: broker in self._nodes and self._nodes[broker].is_active,
            partial(self.stop_server, broker) if broker in self._voters else None,
            reports_log_dirs=self._behaviours.kraft.log_dir_failure_reported,
        )
        self._incarnations[broker] = incarnation
        return incarnation

    # The active controller

    def _became_active(self, node: int, epoch: int) -> None:
        if self._active is None or epoch > self._active[1]:
            self._active = (node, epoch)
            self._changes.set_controller(node, epoch)
        self._trace.emit(events.ControllerElected, node, epoch)

    def _became_inactive(self, node: int, epoch: int) -> None:
        self._trace.emit(events.ControllerResigned, node, epoch)
        if self._active == (node, epoch):
            self._changes.set_controller(events.NO_CONTROLLER, epoch)

    def controller(self) -> int | None:
        """Return the controller that last became active and has not resigned. It may be dead."""
        return self._changes.controller

    def _active_controller(self) -> QuorumController | None:
        node = self.controller()
        if node is None or not self._process(node).running or self._process(node).paused:
            return None
        return self._nodes[node] if self._nodes[node].is_active else None

    # For administrators and faults

    def create_topic(self, topic: str, assignment: tuple[tuple[int, ...], ...]) -> None:
        """Repeat CreateTopics until a controller is active and every replica can join its ISR."""
        replicas = {replica for partition in assignment for replica in partition}

        def create(_: None) -> None:
            active = self._active_controller()
            if (
                active is None
                or not all(active.image.is_active(replica) for replica in replicas)
                or not active.create_topic(topic, assignment)
            ):
                self._admin.set_timer(_ADMIN_RETRY_US, create)

        create(None)

    def elect_preferred_leaders(self) -> None:
        """Repeat ElectLeaders until a controller is active."""
        active = self._active_controller()
        if active is None:
            self._admin.set_timer(_ADMIN_RETRY_US, lambda _: self.elect_preferred_leaders())
        else:
            active.elect_preferred_leaders()

    def alter_partition_reassignment(self, partition: str, target: tuple[int, ...] | None) -> None:
        """Repeat AlterPartitionReassignments until a controller is active."""
        active = self._active_controller()
        if active is None:
            self._admin.set_timer(
                _ADMIN_RETRY_US, lambda _: self.alter_partition_reassignment(partition, target)
            )
        else:
            active.alter_partition_reassignment(partition, target)

    def create_partitions(self, topic: str, total: int, racks: Mapping[int, str]) -> None:
        """Repeat CreatePartitions until a controller has committed the partitions."""
        active = self._active_controller()
        if active is None:
            self._admin.set_timer(_ADMIN_RETRY_US, lambda _: self.create_partitions(topic, total, racks))
        else:
            active.create_partitions(
                topic,
                total,
                racks,
                lambda done: None if done else self.create_partitions(topic, total, racks),
            )

    def expire_session(self, broker: int) -> None:
        """Fence a broker, or depose the active controller if *broker* is a separate controller."""
        active = self._active_controller()
        if broker in self.servers:
            self.remove_controller()
        elif active is not None:
            active.expire_session(broker)

    def lose_disk(self, broker: int) -> None:
        """Let a node start without its metadata and without the proof of a clean shutdown.

        A controller loses its log, its epoch and its vote, and then takes part in the quorum again.
        That is unsafe, because before it lost its disk it may have been in the majority that
        committed records. From 4.0 on (KIP-853) an operator can tell the quorum that the voter is a
        new one.
        """
        if broker in self._broker_logs:
            self._broker_logs[broker] = MetadataLog()
        if broker in self._logs:
            end_offset = self._logs[broker].end_offset
            is_kept = self.keeps_metadata_without(broker)
            self._logs[broker] = MetadataLog()
            if not is_kept:
                self._changes.may_diverge = True
                self._active = None  # Quorum epochs may start again.
            self._trace.emit(events.MetadataLogLost, broker, end_offset, is_kept)

    def has_metadata_log(self, node: int) -> bool:
        return node in self._logs

    def keeps_metadata_without(self, node: int) -> bool:
        """Return whether a majority of the voters, without *node*, has all committed records."""
        complete = [
            other for other, log in self._logs.items() if other != node and self._changes.are_all_in(log)
        ]
        return node not in self._logs or 2 * len(complete) > len(self._voters)

    def remove_controller(self) -> None:
        """Make the active controller resign, if there is one."""
        active = self._active_controller()
        if active is not None:
            active.raft.resign()

    # For observers

    def quorum(self) -> tuple[int, ...]:
        return self._voters

    def quorum_leader(self) -> int | None:
        """Return the active controller, if its process runs and is not paused."""
        active = self._active_controller()
        return None if active is None else self.controller()

    def describe_quorum(self) -> QuorumDescription | None:
        """Return the quorum as the active controller describes it; None without one.

        The observers are the brokers that are not controllers.
        """
        active = self._active_controller()
        if active is None:
            return None
        quorum = active.raft.describe()
        observers = [each._replace(replica_id=observer_id(each.replica_id)) for each in quorum.observers]
        return quorum._replace(
            observers=tuple(sorted(each for each in observers if each.replica_id not in self._voters))
        )

    def partition_state(self, partition: str) -> LeaderAndIsr | None:
        """Return the committed state of a partition."""
        return self._changes.partition_state(partition)

    def assignment(self, partition: str) -> ReplicaAssignment | None:
        """Return the committed replicas of a partition."""
        return self._changes.assignment(partition)

    def electable(self, partition: str) -> tuple[int, ...]:
        """Return the ISR; the ELR if the ISR is empty; the last known leader if both are empty."""
        record = self._changes.partition(partition)
        if record is None:
            return ()
        last = record.last_known_leader
        return record.electable or ((last,) if last >= 0 else ())

    def recovery_sets(self, partition: str) -> tuple[tuple[int, ...], ...]:
        record = self._changes.partition(partition)
        if record is None or not self._behaviours.kraft.eligible_leader_replicas:
            return (self.electable(partition),)
        return recovery_sets(record, self._stays_eligible)

    def _stays_eligible(self, broker: int) -> bool:
        """Return whether a broker's registered incarnation still runs, or has shut down cleanly."""
        registered = self._changes.broker_epoch(broker)
        incarnation = self._incarnations.get(broker)
        still_runs = (
            incarnation is not None
            and self._brokers[broker].running
            and incarnation.broker_epoch == registered
        )
        return still_runs or self._broker_logs[broker].clean_shutdown_epoch == registered

    def registration_time_max_us(self, config: BrokerConfig) -> int:
        """Return how long the session of a dead broker can block its next registration at most.

        A quorum that has lost its leader must first elect another one, and a new controller starts
        a new session for every broker.
        """
        election_us = (
            config.quorum_fetch_timeout_us * 3 // 2
            + 4 * (config.quorum_election_timeout_us + config.quorum_election_backoff_max_us)
            + config.quorum_request_timeout_us
        )
        return election_us + config.broker_session_timeout_us + 2 * config.broker_heartbeat_interval_us

    def is_registered(self, broker: int) -> bool:
        """Return whether a broker is registered and unfenced."""
        return self._changes.is_unfenced(broker)
