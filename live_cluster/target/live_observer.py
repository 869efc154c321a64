"""Observes a real cluster: its brokers, control plane, disks and clients."""

from collections.abc import Callable, Iterator, Mapping

from harrow.campaigns.clients.clients import Clients
from harrow.campaigns.run.targets.trace_scan import DelayedTraceScan
from harrow.cluster_model.log.record_batch import RecordBatch
from harrow.cluster_model.trace import Trace
from harrow.live_cluster.clients.reports import ClientReports
from harrow.live_cluster.target.real_cluster import RealCluster, ReplicaLogs
from harrow.live_cluster.watches.broker_watch import BrokerWatch
from harrow.live_cluster.wire.replicas import ReplicaOffsets


class ObservedReplica:
    """The last observation of a replica (`harrow.faults.observer.ReplicaView`)."""

    __slots__ = ("_broker", "_observer", "_offsets", "_partition")

    def __init__(
        self, observer: "LiveObserver", partition: str, broker: int, offsets: ReplicaOffsets
    ) -> None:
        self._observer = observer
        self._partition = partition
        self._broker = broker
        self._offsets = offsets

    @property
    def role(self) -> str:
        return "leader" if self._offsets.leads else "follower"

    @property
    def leo(self) -> int:
        return self._offsets.leo

    @property
    def hw(self) -> int:
        return self._offsets.hw

    @property
    def leader_epoch(self) -> int:
        return self._observer.leader_epoch(self._partition, self._broker)

    @property
    def flushed(self) -> int:
        flushed = self._logs.flushed(self._partition)
        assert flushed is not None, "campaigns that need it are skipped"
        return flushed

    @property
    def isr(self) -> tuple[int, ...]:
        state = self._observer.partition_state(self._partition)
        return () if state is None else state[2]

    @property
    def remote(self) -> dict[int, int]:
        if not self._offsets.leads:
            return {}
        links = self._observer.links
        return {
            replica: links.remote_leo(self._broker, self._partition, replica)
            for replica in self._observer.replicas_of(self._partition)
            if replica != self._broker
        }

    @property
    def log_start(self) -> int:
        """The log start offset according to the trace, so that findings can be explained."""
        return self._observer.log_start(self._broker, self._partition)

    @property
    def epochs(self) -> tuple[tuple[int, int], ...]:
        return self._logs.epochs(self._partition)

    @property
    def log(self) -> tuple[str, ...]:
        return tuple(value for batch in self._readable() for value in batch.values)

    @property
    def records(self) -> Iterator[tuple[int, str]]:
        log_start = self.log_start
        for batch in self._readable():
            yield from ((offset, value) for offset, value in batch.records() if offset >= log_start)

    def _readable(self) -> Iterator[RecordBatch]:
        """Return the batches that are not completely deleted."""
        log_start = self.log_start
        return (batch for batch in self._logs.batches(self._partition) if batch.next_offset > log_start)

    @property
    def _logs(self) -> ReplicaLogs:
        return self._observer.logs[self._broker]


class LiveObserver:
    """Observes brokers, control plane, history and trace of a run (`RunObserver`)."""

    def __init__(
        self,
        cluster: RealCluster,
        clients: Clients,
        reports: ClientReports,
        trace: Trace,
        watches: Mapping[int, BrokerWatch],
        log_start: Callable[[int, str], int],
    ) -> None:
        self._cluster = cluster
        self._watches = watches
        self.log_start = log_start
        self.links = cluster.links
        self.logs = cluster.logs
        scan = DelayedTraceScan(trace.events)
        self.step_taken = scan.step_taken
        self.first_match = scan.first_match
        self.controller = cluster.observed_metadata.controller
        self.partition_state = cluster.observed_metadata.partition_state
        self.electable = cluster.observed_metadata.electable
        self.replicas_of = cluster.replicas_of
        self.is_acked = reports.is_acked
        self.is_failed = reports.is_failed
        self.is_consumed = clients.is_consumed

    def quorum(self) -> tuple[int, ...]:
        return tuple(self._cluster.control.controllers)

    def quorum_leader(self) -> int | None:
        leader = self.controller()
        return leader if leader in self._cluster.control.controllers else None

    def replica(self, partition: str, broker: int) -> ObservedReplica | None:
        # The leader may be -1, which has no watch.
        offsets = self._watches[broker].offsets().get(partition) if broker in self._watches else None
        return None if offsets is None else ObservedReplica(self, partition, broker, offsets)

    def leader_epoch(self, partition: str, broker: int) -> int:
        """Return a broker's latest leader epoch. Up to 2.0, only the broker's log file has it."""
        return max(
            self._watches[broker].leader_epoch(partition), self._cluster.logged_epoch(broker, partition)
        )

    def led_by(self, broker: int) -> frozenset[str]:
        """Return the partitions that a broker leads in its own or the control plane's view."""
        offsets = self._watches[broker].offsets()
        return frozenset(
            partition
            for partition in self._cluster.observed_metadata.assignments.partition_names()
            if (offsets[partition].leads if partition in offsets else self._is_leader(partition, broker))
        )

    def recovery_sets(self, partition: str) -> tuple[tuple[int, ...], ...]:
        """Return the sets of brokers that can recover a partition.

        With an empty ISR, the set has the eligible replicas that run. If none of them runs, each
        replica is a set of its own, because the others may have lost their eligibility when they
        were killed.
        """
        electable = self.electable(partition)
        state = self.partition_state(partition)
        if state is None or state.isr:
            return (electable,)
        running = tuple(broker for broker in electable if self.broker_state(broker) != "down")
        return (running,) if running else tuple((broker,) for broker in electable) or ((),)

    def is_registered(self, broker: int) -> bool:
        return broker in self._cluster.observed_metadata.registered()

    def assignment(self, partition: str) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]] | None:
        return self._cluster.observed_metadata.assignments.of(partition)

    def broker_state(self, broker: int) -> str:
        control = self._cluster.control
        process = control.controllers.get(broker) or self._cluster.brokers[broker]
        if not process.is_running:
            return "down"
        return "paused" if process.is_paused else "up"

    def is_stuck(self, partition: str, broker: int) -> bool:
        return False  # No fault damages disks here.

    def is_impaired(self, broker: int) -> bool:
        is_up = self.broker_state(broker) == "up"
        return is_up and self.links.are_disturbed(broker, self._cluster.control.process_names)

    def _is_leader(self, partition: str, broker: int) -> bool:
        state = self.partition_state(partition)
        return state is not None and state[0] == broker
