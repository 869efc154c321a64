"""Builds a simulated cluster: machines, processes, network, control plane, brokers.

`Cluster` connects the actors with the simulator. It has a method for each thing that a fault or an
operator may do to the cluster. None of these methods writes Kafka's own state.
"""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any, Final

from harrow.cluster_model import errors, events
from harrow.cluster_model.broker.broker import Broker
from harrow.cluster_model.broker.client_quota_manager import ClientQuotas
from harrow.cluster_model.broker.partition import Partition
from harrow.cluster_model.broker.request_channel import RequestPace
from harrow.cluster_model.controller.assignment import topic_assignments
from harrow.cluster_model.controller.control_plane import ADMIN, REASSIGNMENT_API, ControlPlane
from harrow.cluster_model.controller.new_topics import ConfiguredTopics
from harrow.cluster_model.history import History
from harrow.cluster_model.invariants.catalogue import INVARIANTS
from harrow.cluster_model.invariants.monitor import InvariantMonitor
from harrow.cluster_model.kraft.control_plane import QuorumControlPlane
from harrow.cluster_model.lazy_dataclass import replace
from harrow.cluster_model.log.disk import NO_DIR, Disk
from harrow.cluster_model.log.old_checkpoints import LEADER_EPOCH_CHECKPOINT, checkpoint_at, epochs_at
from harrow.cluster_model.log.unified_log import DELETE_RECORDS, UnifiedLog
from harrow.cluster_model.protocol import NO_LEADER
from harrow.cluster_model.record_deletion import RecordDeletion
from harrow.cluster_model.release.profiles import RELEASES, Behaviours
from harrow.cluster_model.release.switch import version_of
from harrow.cluster_model.settings import LONG_MAX, BrokerConfig, TopicConfig, Value, broker_config
from harrow.cluster_model.sim.choices import Choices, between
from harrow.cluster_model.sim.host import SimulatedHost
from harrow.cluster_model.sim.network import Network
from harrow.cluster_model.sim.process import Process
from harrow.cluster_model.sim.simulator import Simulator
from harrow.cluster_model.sim.virtual_time import US_PER_MS, US_PER_SECOND
from harrow.cluster_model.topic_settings import TopicConfigs
from harrow.cluster_model.topology import INTERNAL_TOPICS, KRAFT, ZOOKEEPER, ClusterSpec, is_internal
from harrow.cluster_model.trace import Trace
from harrow.cluster_model.zookeeper.control_plane import ZkControlPlane

BOOTSTRAP_US: Final = {ZOOKEEPER: 5 * US_PER_SECOND, KRAFT: 15 * US_PER_SECOND}
"""How long before virtual time 0 the cluster starts, so that it is ready at time 0.

KRaft takes longer, because its quorum first elects a leader.
"""
_ELECTION_US: Final = 3 * US_PER_SECOND
"""How much earlier than the brokers a ZooKeeper ensemble starts, to elect its leader."""
_REASSIGNMENT_SINCE: Final = (2, 4)
"""The first release with AlterPartitionReassignments (KIP-455)."""
_DELETE_RECORDS_SINCE: Final = (0, 11)
"""The first release with DeleteRecords (KIP-107)."""

_START_GAP_US: Final = 10 * US_PER_MS

_METADATA_LOG_DIR: Final = 0
"""``metadata.log.dir`` is by default the first of ``log.dirs``."""


def control_plane_of(cluster: "Cluster") -> ControlPlane:
    """Make the control plane of a cluster."""
    spec = cluster.spec
    if cluster.metadata == KRAFT:
        first = spec.brokers[0].id
        return QuorumControlPlane(
            spec,
            broker_config(cluster.release, spec.settings),
            lambda topic: cluster.topic_config(topic, first),
            cluster.behaviours,
            cluster.host,
            cluster.network,
            cluster.trace,
            cluster.processes,
            cluster.stop_broker,
            partial(cluster.crash_broker, power_loss=False),
            cluster.configured_topics,
            cluster.note_committed_settings,
        )
    return ZkControlPlane(
        spec,
        cluster.behaviours,
        cluster.host,
        cluster.network,
        cluster.trace,
        cluster.processes,
        cluster.stop_broker,
        cluster.configured_topics,
        cluster.configure_topic,
    )


class _PartitionRegister:
    """The partitions of clients that have existed so far.

    These are the initial ones, and those that administrators have requested or created. Includes
    deleted partitions.
    """

    def __init__(self, spec: ClusterSpec, trace: Trace) -> None:
        self.initial = spec.partition_names()
        self.added: dict[str, None] = {}
        self.deleted: dict[str, None] = {}
        trace.subscribe(events.ReplicasAssigned, self._on_assignment)
        trace.subscribe(events.PartitionDeleted, self._on_deletion)

    def _on_assignment(self, partition: str, *_: object) -> None:
        if partition not in self.initial and not is_internal(partition):
            self.added[partition] = None

    def _on_deletion(self, partition: str) -> None:
        self.deleted[partition] = None


class Cluster:
    """The servers of a campaign."""

    def __init__(
        self,
        spec: ClusterSpec,
        release: str,
        behaviours: Behaviours,
        choices: Choices,
        events_limit: int = 50_000_000,
        invariants: Collection[str] = tuple(INVARIANTS),
        make_control_plane: "Callable[[Cluster], ControlPlane]" = control_plane_of,
    ) -> None:
        self.spec = spec
        self.release = release
        self._version = version_of(release)
        self.behaviours = behaviours
        self.choices = choices
        self.metadata = spec.metadata or RELEASES[release].metadata
        self._started_us = -BOOTSTRAP_US[self.metadata]
        has_ensemble = self.metadata == ZOOKEEPER and spec.zookeeper_servers > 1
        begin_us = self._started_us - (_ELECTION_US if has_ensemble else 0)
        self.simulator = Simulator(begin_us, events_limit)
        self.trace = Trace(self.simulator)
        self.history = History()
        self.network = Network(self.simulator, choices, spec.network, self.trace)
        self.world = Process("world")
        """The process on which actions of faults and operators are scheduled.

        `heal` drops the pending ones.
        """
        self._configs = {
            broker.id: broker_config(release, {**spec.settings, **broker.settings}) for broker in spec.brokers
        }
        self._racks = {broker.id: broker.rack for broker in spec.brokers if broker.rack is not None}
        self.configured_topics = ConfiguredTopics(
            release, {topic.name: topic.settings for topic in spec.topics}, self._racks
        )
        self._topic_configs = {
            broker: TopicConfigs(self.configured_topics.settings, config, broker)
            for broker, config in self._configs.items()
        }
        self._committed_configs = TopicConfigs(
            self.configured_topics.settings, broker_config(release, spec.settings)
        )
        self.assignments = topic_assignments(spec)
        self.processes = {
            broker.id: Process(
                f"broker-{broker.id}",
                partial(self.stop_broker, broker.id),
                partial(self.crash_broker, broker.id, power_loss=False),
            )
            for broker in spec.brokers
        }
        # Brokers that have not joined the cluster yet.
        self._absent = {broker.id: None for broker in spec.brokers if broker.joins_us != 0}
        for absent in self._absent:
            self.processes[absent].running = False
        self.disks = self._make_disks()
        self.paces = {broker.id: RequestPace() for broker in spec.brokers}
        self.brokers: dict[int, Broker] = {}
        # The last incarnations of brokers that are down.
        self._dead: dict[int, Broker] = {}
        self._partitions = _PartitionRegister(spec, self.trace)
        # Brokers that are stopping, and whether they start again afterwards.
        self._stopping: dict[int, bool] = {}
        self.result_stores: dict[str, Any] = {}
        """The external stores of applications (`clients.programs.ResultStore`), by group."""
        self.without_quota: Collection[str] = ()
        """Clients that are never throttled, because they do not belong to the campaign."""
        # The rate that an administrator set last, in a tuple, because a rate of None means no
        # limit. None before the first.
        self.replication_throttle: tuple[int | None] | None = None
        self._monitor = InvariantMonitor(invariants, self.trace, self.disks, self)
        self.control_plane = make_control_plane(self)
        self.nodes = {**self.processes, **self.control_plane.servers}
        """The processes that faults can strike: brokers, and servers of the control plane."""
        self.expire_session = self.control_plane.expire_session
        self.elect_preferred_leaders = self.control_plane.elect_preferred_leaders
        self.assignment = self.control_plane.assignment
        self.controller = self.control_plane.controller
        self.quorum = self.control_plane.quorum
        self.quorum_leader = self.control_plane.quorum_leader
        self.partition_state = self.control_plane.partition_state
        self.electable = self.control_plane.electable
        self.recovery_sets = self.control_plane.recovery_sets
        self.is_registered = self.control_plane.is_registered

    def _make_disks(self) -> dict[int, Disk]:
        """Return the disk of each broker. Flushes cost nothing where no append waits for them."""
        spec = self.spec.disk
        metadata_log_dir = _METADATA_LOG_DIR if self.metadata == KRAFT else NO_DIR
        flush_us, bytes_per_second = spec.costs
        disks = {}
        for broker, topics in self._topic_configs.items():
            disk = disks[broker] = Disk(log_dirs=spec.log_dirs, metadata_log_dir=metadata_log_dir)
            flushes = any(topic.flush_messages < LONG_MAX for topic in topics.values())
            disk.set_costs(flush_us if flushes else 0, bytes_per_second, spec.page_cache_bytes)
        return disks

    def host(self, process: Process) -> SimulatedHost:
        return SimulatedHost(process, self.simulator, self.network, self.choices, self.trace)

    def replicas_of(self, partition: str) -> tuple[int, ...]:
        """Return a partition's replicas, including those that a reassignment adds or removes."""
        assignment = self.assignment(partition)
        if assignment is not None:
            return assignment.replicas
        topic, number = partition.rsplit("-", 1)
        return self.assignments[topic][int(number)]

    def partition_names(self) -> tuple[str, ...]:
        """Return all partitions of clients: the initial ones of topics, and those added later."""
        created = (name for name in self._partitions.added if self.assignment(name) is not None)
        names = (*self._partitions.initial, *created)
        deleted = self._partitions.deleted
        return tuple(name for name in names if name not in deleted) if deleted else names

    @property
    def has_deleted(self) -> bool:
        """Whether an administrator has deleted a topic."""
        return bool(self._partitions.deleted)

    def is_deleted(self, partition: str) -> bool:
        """Return whether a partition existed until an administrator deleted its topic."""
        return partition in self._partitions.deleted

    def topic_names(self) -> tuple[str, ...]:
        """Return the topics of clients that the campaign declares."""
        return tuple(topic for topic in self.assignments if topic not in INTERNAL_TOPICS)

    def internal_partitions(self) -> tuple[str, ...]:
        """Return the partitions of internal topics, where coordinators keep their state."""
        topics = (topic for topic in self.spec.topics if topic.name in INTERNAL_TOPICS)
        return tuple(name for topic in topics for name in topic.partition_names())

    def broker_config(self, broker: int) -> BrokerConfig:
        return self._configs[broker]

    def topic_config(self, topic: str, broker: int) -> TopicConfig:
        """Return a topic's configuration on a broker (``LogConfig.fromProps``).

        A topic inherits the settings of the broker that reads them, unless it overrides them. So
        for ``min.insync.replicas`` the leader's setting counts, and for
        ``unclean.leader.election.enable`` the controller's
        (``PartitionStateMachine.collectUncleanLeaderElectionState``).
        """
        return self._topic_configs[broker].get(topic)

    def topic_config_at(self, topic: str, broker: int, at_us: int) -> TopicConfig:
        """Return a topic's configuration at a time.

        In KRaft the controller elects by the settings in its log, before brokers apply them.
        """
        config = self._topic_configs[broker].at(topic, at_us)
        if not self._committed_configs.changed_us(topic):
            return config
        elects_uncleanly = self._committed_configs.at(topic, at_us).unclean_leader_election
        return replace(config, unclean_leader_election=elects_uncleanly)

    def topic_config_changed_us(self, topic: str) -> tuple[int, ...]:
        """Return when a topic's configuration changed on any broker, or in the metadata log."""
        all_configs = (self._committed_configs, *self._topic_configs.values())
        return tuple(sorted({at_us for configs in all_configs for at_us in configs.changed_us(topic)}))

    def note_committed_settings(self, topic: str, settings: Mapping[str, Value]) -> None:
        """Note the settings of a topic that a KRaft controller has committed."""
        self._committed_configs.set(topic, settings, self.simulator.now_us)

    def topic_settings(self, topic: str, broker: int) -> Mapping[str, Value]:
        """Return a topic's own settings, as a broker knows them."""
        return self._topic_configs[broker].settings(topic)

    def configure_topic(self, topic: str, settings: Mapping[str, Value]) -> None:
        """Let all brokers follow the settings of a topic that an administrator has changed."""
        for broker, configs in self._topic_configs.items():
            if broker in self.brokers:
                self.brokers[broker].configure_topic(topic, settings)
            else:
                configs.set(topic, settings, self.simulator.now_us)

    # Start

    def start(self) -> None:
        """Start the control plane, then the brokers one by one, and create the topics."""
        self.control_plane.start()
        order = [broker.id for broker in self.spec.initial_brokers()]
        if self.spec.controller is not None:
            order.sort(key=lambda broker: broker != self.spec.controller)
        for position, broker in enumerate(order):
            self.at(self._started_us + position * _START_GAP_US, self._power_on, broker)
        for broker_spec in self.spec.brokers:
            if broker_spec.joins_us:
                self.at(broker_spec.joins_us, self.add_broker, broker_spec.id)
        self.at(self._started_us + US_PER_SECOND, self._create_topics)
        self.simulator.run_until(0)

    def _power_on(self, broker: int) -> None:
        if broker in self.control_plane.servers:
            self.trace.emit(events.BrokerStarted, broker)
            self.control_plane.start_server(broker)
            return
        dead = self._dead.pop(broker, None)
        if dead is not None:
            dead.replicas.dismantle()
        process = self.processes[broker]
        server = Broker(
            broker,
            self.host(process),
            self.disks[broker],
            self._configs[broker],
            self._topic_configs[broker],
            self.behaviours,
            self.control_plane,
            self._racks,
            ClientQuotas.from_specs(
                *(self.spec.quotas, self.simulator, self._configs[broker], self.behaviours.replication),
                without_quota=self.without_quota,
            ),
            self.paces[broker],
        )
        if self.replication_throttle is not None:
            server.replicas.throttle_replication(*self.replication_throttle)
        self.brokers[broker] = server
        self.network.add(process)
        server.start(lambda: self.network.listen(process, server))
        if self.spec.disk.writeback_us is not None:
            phase_us = between(self.choices.disk, 1, self.spec.disk.writeback_us)
            self.simulator.schedule(
                self.simulator.now_us + phase_us,
                process,
                self._write_back,
                (broker, self.spec.disk.writeback_us),
            )

    def _write_back(self, task: tuple[int, int]) -> None:
        """Flush a broker's dirty pages, as its operating system does, once per period."""
        broker, period_us = task
        self.brokers[broker].replicas.logs.flush_all()
        self.simulator.schedule(
            self.simulator.now_us + period_us, self.processes[broker], self._write_back, task
        )

    def _create_topics(self, _: None) -> None:
        for topic in self.spec.topics:
            self.control_plane.create_topic(topic.name, self.assignments[topic.name])

    def at(self, at_us: int, callback: Callable[[Any], None], argument: Any = None) -> None:
        """Schedule an action of a fault or an operator."""
        self.simulator.schedule(at_us, self.world, callback, argument)

    # Actions of faults and operators

    def crash_broker(self, broker: int, *, power_loss: bool, torn_after: int | None = None) -> None:
        """End a broker's process.

        With *power_loss*, its unflushed records are lost. With *torn_after*, the first *torn_after*
        unflushed batches of each log are on disk nevertheless, and so is a part of the next batch.
        """
        self._end(broker, events.POWER_LOSS if power_loss else events.KILLED)
        if power_loss and broker in self.disks:
            for partition, begin, end in self.disks[broker].lose_power(torn_after):
                self.trace.emit(events.UnflushedLost, broker, partition, begin, end)

    def lose_disk(self, broker: int) -> None:
        """Empty the disk of a broker or KRaft controller that is down."""
        if broker in self.disks:
            disk = self.disks[broker]
            for partition, log_file in disk.log_files.items():
                if log_file.log_end_offset:
                    self.trace.emit(events.LogLost, broker, partition, 0, log_file.log_end_offset)
            disk.lose()
        self.control_plane.lose_disk(broker)

    def fail_log_dir(self, broker: int, log_dir: int, room_bytes: int = 0) -> None:
        """Make all writes to a log directory fail, after *room_bytes* more have been written.

        The broker notices at its next write that does not fit.
        """
        if broker not in self.disks:
            return  # A server of the control plane has no logs of partitions.
        self.disks[broker].limit_room(log_dir, room_bytes)

    def repair_log_dir(self, broker: int, log_dir: int, room_bytes: int = 0) -> None:
        """Undo one `fail_log_dir`.

        A broker that has taken the directory offline uses it again only after a restart.
        """
        if broker in self.disks:
            self.disks[broker].lift_limit(log_dir, room_bytes)

    def slow_disk(self, broker: int, write_us: int) -> None:
        """Make each append of a broker wait longer for its disk, behind earlier appends."""
        if broker not in self.disks:
            return  # A server of the control plane has no logs of partitions.
        self.disks[broker].slow_down(write_us)
        process = self.processes[broker]
        if process.running:
            self.network.wake_idle_fetches(process)
            self.brokers[broker].queue_requests()

    def recover_disk(self, broker: int, write_us: int) -> None:
        """Undo one `slow_disk`."""
        if broker in self.disks:
            self.disks[broker].speed_up(write_us)

    def slow_broker(self, broker: int, request_us: int) -> None:
        """Make each request keep an I/O thread of a broker longer."""
        self.paces[broker].slow_down(request_us)
        process = self.processes[broker]
        if process.running:
            self.network.wake_idle_fetches(process)
            self.brokers[broker].queue_requests()

    def recover_broker(self, broker: int, request_us: int) -> None:
        """Undo one `slow_broker`."""
        self.paces[broker].speed_up(request_us)

    def step_clock(self, broker: int, by_us: int) -> None:
        """Make the clock of a broker's machine jump."""
        process = self.processes[broker]
        process.skew_us += by_us
        self.trace.emit(events.ClockStepped, process.name, by_us, process.skew_us)
        if process.running:
            self.network.wake_idle_fetches(process)
            self.brokers[broker].on_clock_step(by_us)

    def damage_batch(self, broker: int, partition: str, offset: int) -> None:
        """Damage the stored batch that contains *offset*."""
        self.disks[broker].log_file(partition).damage(offset)
        self.trace.emit(events.BatchDamaged, broker, partition, offset)

    def revert_checkpoint(self, broker: int, name: str, age_us: int | None) -> None:
        """Revert a checkpoint file of a dead broker to its content of *age_us* ago.

        With None, remove the file.
        """
        if broker not in self.disks:
            return  # A server of the control plane has no logs of partitions.
        disk, at_us = self.disks[broker], None if age_us is None else self.simulator.now_us - age_us
        if name == LEADER_EPOCH_CHECKPOINT:
            changes = self._revert_epochs(broker, disk, at_us)
        else:
            offsets = disk.checkpoints.get(name, {})
            old = {} if at_us is None else checkpoint_at(self.trace.events, broker, name, at_us)
            changes = tuple((part, old.get(part, 0)) for part in offsets if offsets[part] != old.get(part, 0))
            disk.checkpoints[name] = {part: offset for part, offset in old.items() if offset}
        self.trace.emit(events.CheckpointReverted, broker, name, changes)

    def _revert_epochs(self, broker: int, disk: Disk, at_us: int | None) -> tuple[tuple[str, int], ...]:
        old_epochs = {}
        if at_us is not None:
            from_elections = self.behaviours.replication.epoch_entry_on_election
            old_epochs = epochs_at(self.trace.events, broker, at_us, from_elections=from_elections)
        changes = []
        for partition, entries in disk.epoch_checkpoints.items():
            old_entries = old_epochs.get(partition, [])
            lost_entry = next(
                (entry for place, entry in enumerate(entries) if old_entries[place : place + 1] != [entry]),
                None,
            )
            if lost_entry is not None:
                entries[:] = old_entries
                disk.stale_epochs[partition] = None
                changes.append((partition, lost_entry[1]))
        return tuple(changes)

    def _end(self, broker: int, cause: str) -> None:
        process, power_loss = self.nodes[broker], cause == events.POWER_LOSS
        self._stopping.pop(broker, None)
        self.trace.emit(events.BrokerStopped, broker, cause)
        process.kill(power_loss=power_loss)
        self.network.process_died(process, power_loss=power_loss)
        dead = self.brokers.pop(broker, None)
        if dead is not None:
            # It may be on the stack, so it keeps its replicas until the broker starts again.
            self._dead[broker] = dead

    def stop_broker(self, broker: int) -> None:
        """Send SIGTERM to a broker's process.

        A paused process shuts down only after it has resumed.
        """
        if broker not in self._stopping:
            self._stopping[broker] = False
            self.trace.emit(events.BrokerStopping, broker)
            process = self.nodes[broker]
            self.simulator.schedule(self.simulator.now_us, process, self._terminate, broker)

    def _terminate(self, broker: int) -> None:
        if broker in self.control_plane.servers:
            self.control_plane.stop_server(broker, lambda: self._exit(broker, events.SHUT_DOWN))
            return
        process = self.processes[broker]
        self.brokers[broker].stop(lambda: self.network.stop_listening(process), partial(self._exit, broker))

    def _exit(self, broker: int, cause: str) -> None:
        starts_again = self._stopping[broker]
        self._end(broker, cause)
        if starts_again:
            self.start_broker(broker)

    def is_stopping(self, broker: int) -> bool:
        """Return whether a broker's process is shutting down."""
        return broker in self._stopping

    def broker_ids(self) -> tuple[int, ...]:
        """Return the brokers that have started at least once."""
        return tuple(broker for broker in self.processes if broker not in self._absent)

    def absent_ids(self) -> tuple[int, ...]:
        """Return the brokers that have not joined yet."""
        return tuple(self._absent)

    def add_broker(self, broker: int) -> None:
        """Start a broker for the first time, unless it has joined already.

        It registers like any other, and has no replicas until partitions are assigned to it.
        """
        if broker in self._absent:
            del self._absent[broker]
            self.start_broker(broker)

    def start_broker(self, broker: int) -> None:
        """Start a broker that is down.

        A broker that is stopping starts as soon as its process has ended.
        """
        process = self.nodes[broker]
        if broker in self._stopping:
            self._stopping[broker] = True
        elif not process.running and broker not in self._absent:
            had_power = process.powered
            process.start()
            self._power_on(broker)
            if not had_power:
                self.network.machine_booted(process)

    def pause_broker(self, broker: int) -> None:
        process = self.nodes[broker]
        process.paused = True
        self.network.wake_idle_fetches(process)
        self.trace.emit(events.BrokerPaused, broker)

    def resume_broker(self, broker: int) -> None:
        """Resume a broker, if it is paused."""
        process = self.nodes[broker]
        if process.paused:
            self.trace.emit(events.BrokerResumed, broker)
            self.simulator.resume(process)

    def alter_partition_reassignment(self, partition: str, target: tuple[int, ...] | None) -> None:
        """Request, as an administrator, other replicas for a partition.

        A release without KIP-455 refuses.
        """
        if self._version < _REASSIGNMENT_SINCE:
            controller = self.controller()
            broker = events.NO_CONTROLLER if controller is None else controller
            error = errors.UNSUPPORTED_VERSION
            self.trace.emit(events.RequestRejected, broker, REASSIGNMENT_API, partition, ADMIN, error)
        else:
            self.control_plane.alter_partition_reassignment(partition, target)

    def throttle_replication(self, rate: int | None) -> None:
        """Limit the replication rate of throttled replicas on each broker.

        With None, remove the limit.
        """
        self.replication_throttle = (rate,)
        self.trace.emit(events.ReplicationThrottleSet, -1 if rate is None else rate)
        for broker in self.brokers.values():
            broker.replicas.throttle_replication(rate)

    def delete_records(self, partition: str, offset: int) -> None:
        """Request, as an administrator, to delete records below *offset*.

        Releases before KIP-107 refuse.
        """
        if self._version < _DELETE_RECORDS_SINCE:
            broker, error = self._live_leader(partition)[0], errors.UNSUPPORTED_VERSION
            self.trace.emit(events.RequestRejected, broker, DELETE_RECORDS, partition, ADMIN, error)
            return

        def set_timer(delay_us: int, callback: Callable[[None], None]) -> None:
            self.at(self.simulator.now_us + delay_us, callback)

        deletion = RecordDeletion(
            *(partition, offset, self._live_leader, self.trace, set_timer),
            lambda: self.simulator.now_us,
        )
        deletion.send()

    def _live_leader(self, partition: str) -> tuple[int, Broker | None]:
        """Return the leader in the control plane, and its `Broker` if it runs and is not paused."""
        state = self.partition_state(partition)
        leader = NO_LEADER if state is None else state.leader
        process = self.processes.get(leader)
        is_live = process is not None and process.running and not process.paused
        return leader, self.brokers.get(leader) if is_live else None

    def create_partitions(self, topic: str, total: int) -> None:
        """Request, as an administrator, that a topic have *total* partitions."""
        created = len(self.assignments.get(topic, ()))
        self._partitions.added.update((f"{topic}-{number}", None) for number in range(created, total))
        self.control_plane.create_partitions(topic, total, self._racks)

    def delete_controller_znode(self) -> None:
        """Depose the controller. With ZooKeeper this deletes ``/controller``."""
        controller = self.controller()
        if controller is not None:
            self.control_plane.remove_controller()
            self.trace.emit(events.ControllerZnodeDeleted, controller)

    def heal_core(self, brokers: Collection[int]) -> None:
        """Heal some brokers and the links between healed processes, and drop pending actions.

        All other brokers stay as they are: down, paused, cut off or healthy. Restarts that are
        pending, and pending ends of faults, no longer happen.
        """
        self.world.incarnation += 1
        self.trace.emit(events.CoreHealed, tuple(brokers))
        self._stopping.update({broker: False for broker in self._stopping if broker not in brokers})
        outside = (process.name for broker, process in self.processes.items() if broker not in brokers)
        self.network.restore_all_but(frozenset(outside))
        for node in (*self.control_plane.servers, *brokers):
            self._revive(node)
            self._correct_clock(node)

    def heal(self, later: Collection[int] = ()) -> None:
        """End every fault, drop pending actions, and start processes that are down or hang.

        The caller starts the processes in *later* itself; only their clocks are corrected here.
        """
        self.world.incarnation += 1
        self.trace.emit(events.Healed)
        self.network.restore_all()
        for node in self.nodes:
            if node not in later:
                self._revive(node)
            self._correct_clock(node)

    def _revive(self, broker: int) -> None:
        """Make a broker run again.

        If it hangs, kill it first, as a supervisor would do. Also kill it if a log directory is
        offline, or if it would soon exit by itself because it could not register in time.
        """
        self.resume_broker(broker)
        if broker in self.disks:
            self.disks[broker].repair()
            self.paces[broker].heal()
        server = self.brokers.get(broker)
        if server is not None and (
            server.hangs or server.replicas.logs.offline_dirs or self._exits_too_soon(broker, server)
        ):
            self.crash_broker(broker, power_loss=False)
        self.start_broker(broker)

    def _correct_clock(self, broker: int) -> None:
        """Set a broker's clock to the true time."""
        process = self.processes.get(broker)
        if process is not None and process.skew_us:
            self.step_clock(broker, -process.skew_us)

    def _exits_too_soon(self, broker: int, server: Broker) -> bool:
        """Return whether a broker would exit before it can register, even in a healed cluster."""
        exit_us = server.exit_us
        needed_us = self.control_plane.registration_time_max_us(self._configs[broker])
        return exit_us is not None and exit_us - self.simulator.now_us < needed_us

    def dismantle(self) -> None:
        """Drop the replicas and their logs of a cluster that is no longer used.

        Afterwards they are in no cycle of references, so reference counting frees them. The garbage
        collector would take several times as long.
        """
        for broker in (*self.brokers.values(), *self._dead.values()):
            broker.replicas.dismantle()
        self.simulator.dismantle()
        for disk in self.disks.values():
            disk.log_files.clear()
            disk.epoch_checkpoints.clear()
        self._monitor.dismantle()
        self.trace.dismantle()
        self.control_plane.dismantle()

    # Observation

    def log(self, broker: int, partition: str) -> UnifiedLog:
        """Return a broker's open log of a partition."""
        return self.brokers[broker].replicas.logs.log(partition)

    def leader(self, broker: int, partition: str) -> Partition:
        """Return the state of a partition on its leader, *broker*."""
        return self.brokers[broker].replicas.partitions[partition]
