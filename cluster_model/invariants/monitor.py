"""Checks the invariants of a cluster while it runs.

The monitor subscribes to events, and each check looks only at what has changed. A breach is an
event of the trace and not an error, because a run of an old release or of a known flaw may be meant
to find it.
"""

from collections.abc import Collection, Mapping
from typing import Any, Protocol

from harrow.cluster_model import events
from harrow.cluster_model.invariants.catalogue import INVARIANTS
from harrow.cluster_model.invariants.checks import Checks
from harrow.cluster_model.invariants.control import CONTROL_CHECKS
from harrow.cluster_model.invariants.groups import GROUP_CHECKS
from harrow.cluster_model.invariants.logs import LOG_CHECKS
from harrow.cluster_model.invariants.replicas import REPLICA_CHECKS
from harrow.cluster_model.invariants.watched_replica import Leader, WatchedPartition, WatchedReplica
from harrow.cluster_model.log.disk import Disk
from harrow.cluster_model.log.unified_log import UnifiedLog
from harrow.cluster_model.trace import Trace, TraceEvent


class LiveReplicas(Protocol):
    """The replicas of running brokers."""

    def log(self, broker: int, partition: str) -> UnifiedLog:
        """Return the open log of a broker's replica."""

    def leader(self, broker: int, partition: str) -> Leader:
        """Return the state of a partition on its leader, *broker*."""


class InvariantMonitor:
    """Runs the checks of one cluster. Invariants that are not checked cost no time."""

    __slots__ = ("_checks", "_disks", "_live", "_partitions")

    def __init__(
        self, names: Collection[str], trace: Trace, disks: Mapping[int, Disk], live: LiveReplicas
    ) -> None:
        self._disks = disks
        self._live = live
        self._partitions: dict[str, WatchedPartition] = {}
        self._checks = Checks(trace)
        watched = {**LOG_CHECKS, **REPLICA_CHECKS, **CONTROL_CHECKS, **GROUP_CHECKS}
        for name in INVARIANTS:
            if name in names and name in watched:
                watched[name](self._checks)
        self._subscribe(trace)

    def _subscribe(self, trace: Trace) -> None:
        """Subscribe to the events that the registered checks need."""
        checks = self._checks
        if checks.watch_replicas():
            trace.follow(events.LogOpened, self._log_opened)
            trace.follow(events.HighWatermarkSet, self._on_high_watermark)
            trace.subscribe(events.LogTruncated, self._on_truncation)
            trace.follow(events.BecameLeader, self._became_leader)
            trace.follow(events.BecameFollower, self._became_follower)
            trace.subscribe(events.IsrChanged, self._isr_changed)
            trace.follow(events.LeaderElected, self._isr_written)
            trace.follow(events.IsrReduced, self._isr_written)
            trace.subscribe(events.BrokerStopped, self._on_broker_stop)
            trace.subscribe(events.LogDeleted, self._log_deleted)
            trace.subscribe(events.LogStartRaised, self._log_start_raised)
            trace.subscribe(events.ReplicasAssigned, self._on_assignment)
        if checks.on_append:
            trace.follow(events.BatchAppended, self._on_append)
            trace.follow(events.BatchReplicated, self._on_append)
        if checks.on_checkpoint:
            trace.subscribe(events.CheckpointWritten, self._checkpoint_written)

    def dismantle(self) -> None:
        """Break the cycles of checks, partitions and replicas (`Cluster.dismantle`)."""
        self._checks.dismantle()
        for partition in self._partitions.values():
            partition.replicas.clear()
        self._partitions.clear()

    # Logs

    def _log_opened(self, row: TraceEvent) -> None:
        replica = self._opened_replica_in(row)
        log = replica.log = self._live.log(replica.broker, replica.partition.name)
        replica.leader = None
        replica.hw = 0
        for check in self._checks.on_open:
            check(replica)
        replica.hw = log.high_watermark

    def _on_append(self, row: TraceEvent) -> None:
        replica = self._replica_in(row)
        for check in self._checks.on_append:
            check(replica)

    def _on_high_watermark(self, row: TraceEvent) -> None:
        replica = self._replica_in(row)
        for check in self._checks.on_high_watermark:
            check(replica)
        if replica.log is not None:
            replica.hw = replica.log.high_watermark

    def _replica_in(self, row: TraceEvent) -> WatchedReplica:
        """Return the replica of an event whose first fields are a broker and a partition."""
        broker: int = row[2]
        partition: str = row[3]
        return self._partitions[partition].replicas[broker]

    def _opened_replica_in(self, row: TraceEvent) -> WatchedReplica:
        """Return the replica of such an event, which may be the first one of the replica."""
        broker: int = row[2]
        partition: str = row[3]
        return self._partition(partition).replica(broker)

    def _on_truncation(self, broker: int, partition: str, *_: Any) -> None:
        """Check a truncated log. The truncation may also have lowered the high watermark."""
        replica = self._partitions[partition].replicas[broker]
        for check in self._checks.on_truncate:
            check(replica)
        if replica.log is not None:
            replica.hw = replica.log.high_watermark

    def _checkpoint_written(self, broker: int, kind: str, offsets: tuple[tuple[str, int], ...]) -> None:
        """Check the entries of the broker's open logs.

        The entries of other logs have not changed.
        """
        for name, offset in offsets:
            replica = self._partition(name).replica(broker)
            if replica.log is not None:
                for check in self._checks.on_checkpoint:
                    check(replica, kind, offset)

    def _log_deleted(self, broker: int, partition: str, _leo: int) -> None:
        """Forget the replica. If the broker gets a replica again, that is a new one."""
        self._partition(partition).replicas.pop(broker, None)

    def _log_start_raised(self, _broker: int, partition: str, offset: int, *_: Any) -> None:
        watched = self._partition(partition)
        watched.deleted_below = max(watched.deleted_below, offset)

    def _on_assignment(self, partition: str, replicas: tuple[int, ...], *_: Any) -> None:
        self._partition(partition).assigned = replicas

    def _on_broker_stop(self, broker: int, cause: str) -> None:
        """Note that the broker's logs are closed, and that it leads nothing."""
        for partition in self._partitions.values():
            replica = partition.replicas.get(broker)
            if replica is not None:
                for check in self._checks.on_shutdown if cause == events.SHUT_DOWN and replica.log else ():
                    check(replica)
                replica.log = None
                replica.leader = None

    # Leaders and ISRs

    def _became_leader(self, row: TraceEvent) -> None:
        """Check a new leader, or the same leader in a new epoch."""
        replica = self._opened_replica_in(row)
        leader = replica.leader = self._live.leader(replica.broker, replica.partition.name)
        self._set_isr(replica.partition, leader.leader_epoch, leader.isr)
        for check in self._checks.on_leader:
            check(replica, leader)

    def _became_follower(self, row: TraceEvent) -> None:
        self._opened_replica_in(row).leader = None

    def _isr_changed(
        self, _broker: int, partition: str, leader_epoch: int, isr: tuple[int, ...], _change: str
    ) -> None:
        self._set_isr(self._partition(partition), leader_epoch, isr)

    def _isr_written(self, row: TraceEvent) -> None:
        """Apply a leader epoch and its ISR once they are written.

        Leaders may learn of them late or never.
        """
        self._set_isr(self._partition(row[3]), row[5], row[6])

    def _partition(self, name: str) -> WatchedPartition:
        partition = self._partitions.get(name)
        if partition is None:
            partition = self._partitions[name] = WatchedPartition(name, self._disks)
        return partition

    def _set_isr(self, partition: WatchedPartition, leader_epoch: int, isr: tuple[int, ...]) -> None:
        """Set the ISR of a partition, unless the ISR of a later leader epoch is already known."""
        if leader_epoch < partition.leader_epoch:
            return
        joined = [partition.replica(broker) for broker in isr if broker not in partition.isr]
        partition.leader_epoch = leader_epoch
        partition.isr = isr
        for check in self._checks.on_isr:
            check(partition, joined)
