"""Checks the invariants that compare several replicas or several controllers."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from harrow.cluster_model.events import ControllerElected
from harrow.cluster_model.invariants import catalogue
from harrow.cluster_model.invariants.checks import Checks
from harrow.cluster_model.invariants.watched_replica import (
    Leader,
    WatchedPartition,
    WatchedReplica,
    are_equal,
    first_difference,
)
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.log.disk import LogFile


@dataclass(slots=True, eq=False)
class _Committed:
    """The committed records of a partition: those below ``end`` in a leader's log, ``file``."""

    file: LogFile
    end: int = 0


class IsrHoldsCommitted:
    """Every member of the ISR has all committed records.

    The check runs when a leader raises its high watermark, and then for the ISR that this leader
    knows. It also runs when a replica joins the ISR or becomes the leader, and when a member of the
    ISR truncates or opens its log. A leader that lacks committed records is reported once. From
    then on its log is what others are compared with.
    """

    def __init__(self, checks: Checks) -> None:
        self._report_breach = checks.report_breach
        self._committed: dict[str, _Committed] = {}
        checks.on_high_watermark.append(self._high_watermark_set)
        checks.on_isr.append(self._isr_changed)
        checks.on_leader.append(self._became_leader)
        checks.on_truncate.append(self._log_may_be_shorter)
        checks.on_open.append(self._log_may_be_shorter)

    def _high_watermark_set(self, replica: WatchedReplica) -> None:
        leader, log = replica.leader, replica.log
        if leader is None or log is None:
            return
        partition, file = replica.partition, replica.file
        start, high_watermark = max(replica.hw, partition.deleted_below), log.high_watermark
        for broker in leader.isr:
            if broker != replica.broker and partition.is_replica(broker, leader):
                member = partition.replica(broker)
                missing = _first_missing(member.file, file, start, high_watermark)
                if missing is not None:
                    self._report(member, missing, high_watermark)
        # The current leader need not have records that a deposed leader still commits.
        if leader.leader_epoch >= partition.leader_epoch:
            committed = self._committed[partition.name]
            _follow(committed, replica)
            committed.end = max(committed.end, high_watermark)

    def _isr_changed(self, partition: WatchedPartition, joined: list[WatchedReplica]) -> None:
        committed = self._committed.get(partition.name)
        if committed is not None:
            for member in joined:
                missing = _first_lost(member, committed)
                if missing is not None:
                    self._report(member, missing, committed.end)

    def _became_leader(self, replica: WatchedReplica, leader: Leader) -> None:
        partition = replica.partition
        if leader.leader_epoch < partition.leader_epoch:
            return
        committed = self._committed.get(partition.name)
        if committed is None:
            self._committed[partition.name] = _Committed(replica.file)
            return
        missing = _first_lost(replica, committed)
        if missing is not None:
            self._report(replica, missing, committed.end)
            committed.end = missing
        _follow(committed, replica)

    def _log_may_be_shorter(self, replica: WatchedReplica) -> None:
        partition = replica.partition
        committed = self._committed.get(partition.name)
        if committed is None:
            return
        is_reference = replica.file is committed.file
        _compare_again(partition.replicas.values() if is_reference else (replica,), _stored_end(replica.file))
        leo = replica.file.log_end_offset
        if leo >= committed.end:
            return
        if replica.broker in partition.isr:
            self._report(replica, leo, committed.end)
        if is_reference:
            committed.end = leo  # Later appends put other records at these offsets.

    def _report(self, member: WatchedReplica, missing: int, committed: int) -> None:
        details = (
            f"it is in the ISR and lacks offset {missing}, although everything below {committed} is committed"
        )
        self._report_breach(catalogue.ISR_HOLDS_COMMITTED, member, missing, details)


def _stored_end(file: LogFile) -> int:
    """Return the end of the last batch. A log that was truncated within a batch ends later."""
    return file.batches[-1].next_offset if file.batches else 0


def _compare_again(replicas: Iterable[WatchedReplica], end: int) -> None:
    """Compare the records of *replicas* at or above *end* again."""
    for replica in replicas:
        replica.compared_end = min(replica.compared_end, end)


def _follow(committed: _Committed, leader: WatchedReplica) -> None:
    """Let the log of *leader* be the one with the committed records."""
    if committed.file is not leader.file:
        _compare_again(leader.partition.replicas.values(), leader.compared_end)
        committed.file = leader.file


def _first_lost(member: WatchedReplica, committed: _Committed) -> int | None:
    """Return the first committed offset that a replica lacks.

    Batches that were compared before are not compared again. Otherwise each election would compare
    a long log from its beginning.
    """
    deleted_below = member.partition.deleted_below
    if are_equal(committed.file, member.file, max(member.compared_end, deleted_below), committed.end):
        member.compared_end = committed.end
        return None
    return _first_missing(member.file, committed.file, deleted_below, committed.end)


def _first_missing(file: LogFile, committed: LogFile, start: int, end: int) -> int | None:
    """Return the first offset from *start* to below *end* where *file* lacks committed records."""
    different = first_difference(committed, file, start, end)
    if different is None and file.log_end_offset < end:
        return file.log_end_offset  # Neither log has a record here, so there was no difference.
    return different


class LogMatching:
    """Live replicas have the same batches below the smaller of their high watermarks.

    When a high watermark rises, the batches that are now below it are compared with those of the
    replica with the highest other high watermark. That replica has already been compared with the
    others. An opened log may be long. So it is not compared where both logs are known to equal the
    one with the committed records.
    """

    def __init__(self, checks: Checks) -> None:
        self._report_breach = checks.report_breach
        checks.on_high_watermark.append(self._compare)
        checks.on_open.append(self._compare)

    def _compare(self, replica: WatchedReplica) -> None:
        if replica.log is None:
            return
        start, end = max(replica.hw, replica.partition.deleted_below), replica.log.high_watermark
        other: WatchedReplica | None = None
        other_end = start
        for candidate in replica.partition.replicas.values():
            if candidate.hw > other_end and candidate is not replica and candidate.log is not None:
                other, other_end = candidate, candidate.hw
        if other is None:
            return
        start = max(start, min(replica.compared_end, other.compared_end))
        different = first_difference(replica.file, other.file, start, min(end, other_end))
        if different is not None:
            details = (
                f"at offset {different}, below its high watermark {end}, it differs from broker "
                f"{other.broker}, with high watermark {other_end}"
            )
            self._report_breach(catalogue.LOG_MATCHING, replica, different, details)


class HwWaitsForMinIsr:
    """A leader commits nothing while its ISR is smaller than min.insync.replicas (KAFKA-15583)."""

    def __init__(self, checks: Checks) -> None:
        self._report_breach = checks.report_breach
        checks.on_high_watermark.append(self._high_watermark_set)

    def _high_watermark_set(self, replica: WatchedReplica) -> None:
        leader, log = replica.leader, replica.log
        if leader is None or log is None or log.high_watermark <= replica.hw:
            return
        needed = min(leader.min_insync_replicas, len(leader.replicas))
        if len(leader.isr) < needed:
            details = (
                f"its high watermark rose to {log.high_watermark} with the ISR {list(leader.isr)}, but min.insync.replicas "
                f"is {leader.min_insync_replicas}"
            )
            self._report_breach(catalogue.HW_WAITS_FOR_MIN_ISR, replica, replica.hw, details)


class OneControllerPerEpoch:
    """A controller epoch has one controller."""

    def __init__(self, checks: Checks) -> None:
        self._report_broker_breach = checks.report_broker_breach
        self._controllers: dict[int, int] = {}
        checks.trace.subscribe(ControllerElected, self._controller_elected)

    def _controller_elected(self, broker: int, controller_epoch: int) -> None:
        first = self._controllers.setdefault(controller_epoch, broker)
        if first != broker:
            details = f"brokers {first} and {broker} became controller in controller epoch {controller_epoch}"
            self._report_broker_breach(
                catalogue.ONE_CONTROLLER_PER_EPOCH, broker, "", controller_epoch, -1, details
            )


REPLICA_CHECKS: Final[Mapping[str, Callable[[Checks], object]]] = {
    catalogue.ISR_HOLDS_COMMITTED: IsrHoldsCommitted,
    catalogue.ONE_CONTROLLER_PER_EPOCH: OneControllerPerEpoch,
    catalogue.LOG_MATCHING: LogMatching,
    catalogue.HW_WAITS_FOR_MIN_ISR: HwWaitsForMinIsr,
}
"""The checks across replicas or brokers, by invariant."""
