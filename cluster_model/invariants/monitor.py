"""Watches the invariants of a cluster while it runs.

The monitor subscribes to events; each check looks at what has changed, and at nothing else. A broken
invariant is an event of the trace and no error: under an old release or a mutant it is what the run is there
to find.
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
from harrow.cluster_model.invariants.watched_replica import Leader, WatchedPartition
from harrow.cluster_model.log.disk import Disk
from harrow.cluster_model.log.unified_log import UnifiedLog
from harrow.cluster_model.trace import Trace


class LiveReplicas(Protocol):
    """The replicas of the brokers that run."""

    def log(self, broker: int, partition: str) -> UnifiedLog:
        """Return the log that a broker has opened."""

    def leader(self, broker: int, partition: str) -> Leader:
        """Return a replica that leads, as its broker knows it."""


class InvariantMonitor:
    """The invariants of one cluster that are watched, by name; of those that are not, nothing is done."""

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
        """Subscribe to what some check looks at."""
        checks = self._checks
        if checks.watch_replicas():
            trace.subscribe(events.LogOpened, self._log_opened)
            trace.subscribe(events.HighWatermarkSet, self._high_watermark_set)
            trace.subscribe(events.LogTruncated, self._truncated)
            trace.subscribe(events.BecameLeader, self._became_leader)
            trace.subscribe(events.BecameFollower, self._became_follower)
            trace.subscribe(events.IsrChanged, self._isr_changed)
            trace.subscribe(events.LeaderElected, self._isr_written)
            trace.subscribe(events.IsrReduced, self._isr_written)
            trace.subscribe(events.BrokerStopped, self._broker_stopped)
            trace.subscribe(events.LogDeleted, self._log_deleted)
            trace.subscribe(events.LogStartRaised, self._log_start_raised)
            trace.subscribe(events.ReplicasAssigned, self._assigned)
        if checks.on_append:
            trace.subscribe(events.BatchAppended, self._appended)
            trace.subscribe(events.BatchReplicated, self._appended)
        if checks.on_checkpoint:
            trace.subscribe(events.CheckpointWritten, self._checkpoint_written)

    # What happens to a log

    def _log_opened(self, _at_us: int, broker: int, partition: str, _leo: int, _hw: int) -> None:
        replica = self._partition(partition).replica(broker)
        log = replica.log = self._live.log(broker, partition)
        replica.leader = None
        replica.hw = 0
        for check in self._checks.on_open:
            check(replica)
        replica.hw = log.high_watermark

    def _appended(self, _at_us: int, broker: int, partition: str, *_: Any) -> None:
        """A log has got a batch, of a producer or of a leader."""
        replica = self._partitions[partition].replicas[broker]
        for check in self._checks.on_append:
            check(replica)

    def _high_watermark_set(self, _at_us: int, broker: int, partition: str, _hw: int) -> None:
        replica = self._partitions[partition].replicas[broker]
        for check in self._checks.on_high_watermark:
            check(replica)
        if replica.log is not None:
            replica.hw = replica.log.high_watermark

    def _truncated(self, _at_us: int, broker: int, partition: str, *_: Any) -> None:
        """A log has been cut back; its high watermark may have gone down with it."""
        replica = self._partitions[partition].replicas[broker]
        for check in self._checks.on_truncate:
            check(replica)
        if replica.log is not None:
            replica.hw = replica.log.high_watermark

    def _checkpoint_written(
        self, _at_us: int, broker: int, kind: str, offsets: tuple[tuple[str, int], ...]
    ) -> None:
        """Look at the logs that the broker has open; of others the file keeps what it had."""
        for name, offset in offsets:
            replica = self._partition(name).replica(broker)
            if replica.log is not None:
                for check in self._checks.on_checkpoint:
                    check(replica, kind, offset)

    def _log_deleted(self, _at_us: int, broker: int, partition: str, _leo: int) -> None:
        """A replica is gone; one that its broker gets later begins anew."""
        self._partition(partition).replicas.pop(broker, None)

    def _log_start_raised(self, _at_us: int, _broker: int, partition: str, offset: int, *_: Any) -> None:
        watched = self._partition(partition)
        watched.deleted_below = max(watched.deleted_below, offset)

    def _assigned(self, _at_us: int, partition: str, replicas: tuple[int, ...], *_: Any) -> None:
        self._partition(partition).assigned = replicas

    def _broker_stopped(self, _at_us: int, broker: int, cause: str) -> None:
        """Its logs are on its disk, and it leads nothing."""
        for partition in self._partitions.values():
            replica = partition.replicas.get(broker)
            if replica is not None:
                for check in self._checks.on_shutdown if cause == events.SHUT_DOWN and replica.log else ():
                    check(replica)
                replica.log = None
                replica.leader = None

    # Leaders and ISRs

    def _became_leader(self, _at_us: int, broker: int, partition: str, *_: Any) -> None:
        """A broker has become leader, or goes on as leader in a new epoch."""
        watched = self._partition(partition)
        replica = watched.replica(broker)
        leader = replica.leader = self._live.leader(broker, partition)
        self._isr_is(watched, leader.leader_epoch, leader.isr)
        for check in self._checks.on_leader:
            check(replica, leader)

    def _became_follower(self, _at_us: int, broker: int, partition: str, *_: int) -> None:
        self._partition(partition).replica(broker).leader = None

    def _isr_changed(
        self, _at_us: int, _broker: int, partition: str, leader_epoch: int, isr: tuple[int, ...], _change: str
    ) -> None:
        self._isr_is(self._partition(partition), leader_epoch, isr)

    def _isr_written(
        self,
        _at_us: int,
        _controller: int,
        partition: str,
        _leader: int,
        leader_epoch: int,
        isr: tuple[int, ...],
        *_: Any,
    ) -> None:
        """A new leader epoch and its ISR hold once they are written: leaders may hear of them late, or never."""
        self._isr_is(self._partition(partition), leader_epoch, isr)

    # Small parts

    def _partition(self, name: str) -> WatchedPartition:
        partition = self._partitions.get(name)
        if partition is None:
            partition = self._partitions[name] = WatchedPartition(name, self._disks)
        return partition

    def _isr_is(self, partition: WatchedPartition, leader_epoch: int, isr: tuple[int, ...]) -> None:
        """Take over an ISR, unless a later leader epoch has one already."""
        if leader_epoch < partition.leader_epoch:
            return
        joined = [partition.replica(broker) for broker in isr if broker not in partition.isr]
        partition.leader_epoch = leader_epoch
        partition.isr = isr
        for check in self._checks.on_isr:
            check(partition, joined)
