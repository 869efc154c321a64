"""Decides whether retention deleted a record, and whether the settings promised to keep it.

Retention is not a loss. Kafka keeps a record for ``retention.ms``, or until the log without it has
``retention.bytes``, even if no consumer has read it. From the settings, the time of the send and
the size of the log after the deletion, this module decides whether a deletion was due. It does not
trust the reason that a broker states. Records that an administrator deleted (DeleteRecords) are not
lost either, up to the offset of the request.
"""

from collections.abc import Mapping, Sequence

from harrow.checks.causes.story import END
from harrow.checks.history.records import Value
from harrow.checks.index import Index
from harrow.checks.promise import CLOCK_SKEW
from harrow.checks.replay.partition_state import COMPACTION, RETENTION, LogEntry
from harrow.cluster_model import events
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.log.disk import LOG_START_OFFSET_CHECKPOINT
from harrow.cluster_model.log.unified_log import (
    DELETE_RECORDS,
    LEADER_LOG_START,
    RETENTION_BYTES,
    RETENTION_MS,
)
from harrow.cluster_model.protocol import NO_LEADER
from harrow.cluster_model.topology import process_name
from harrow.cluster_model.trace import TraceLine, decode


@dataclass(frozen=True, slots=True)
class Deletion:
    """A deletion from the start of a log, and whether it was due.

    ``setting`` is the setting that caused the deletion, or `DELETE_RECORDS`. ``lead_us`` is how
    much older wrong clocks made the record look. If the deletion was due only because of wrong
    clocks, the setting is `CLOCK_SKEW`.
    """

    setting: str
    was_due: bool
    broker: int = -1
    lead_us: int = 0


def deletion_of(
    index: Index, partition: str, copies: Sequence[LogEntry], sent_us: int | None
) -> Deletion | None:
    """Return how retention deleted a record, given its *copies*, or None if it did not.

    The log of the leader with the latest epoch counts. Deletions by a deposed or out-of-sync
    replica do not matter to consumers. If the leader had lost the record before, it stays lost,
    even if other replicas later delete their copies by retention.
    """
    # Only a copy that retention removed can be the answer, and looking for leaders takes time.
    if not any(copy.removed is not None and copy.removed.cause == RETENTION for copy in copies):
        return None
    copy = _decision(copies, last_copy_of_leaders(index, partition, copies))
    if copy is None:
        copy = _decision_before_successor(index, partition, copies)
    return None if copy is None else _deletion(index, partition, copy, sent_us)


def was_deleted(index: Index, partition: str, value: Value, until_us: int) -> bool:
    """Return whether some log had deleted, by *until_us*, a record that was due for deletion.

    The record may return: without a checkpoint of its start, a log starts at an earlier offset
    again.
    """
    copies = index.partition(partition).by_value.get(str(value), ())
    sends = index.sends_of(partition, value)
    sent_us = sends[0].invoked_us if sends else None
    removed = [copy for copy in copies if copy.removed is not None and copy.removed.at_us <= until_us]
    decisions = (_decision(copies, copy) for copy in removed)
    deletions = (_deletion(index, partition, copy, sent_us) for copy in decisions if copy is not None)
    return any(deletion is not None and deletion.was_due for deletion in deletions)


def _deletion(index: Index, partition: str, copy: LogEntry, sent_us: int | None) -> Deletion | None:
    """Return how a broker deleted a copy, by its own settings or at an administrator's request."""
    removed = copy.removed
    if removed is None:
        return None
    config = index.evidence.partitions[partition].config_on(copy.broker, removed.at_us)
    event = decode(index.evidence.trace[removed.number - 1])
    if config is None or not isinstance(event, events.LogStartRaised):
        return None
    if any(
        copy.number < number < removed.number and copy.offset < asked.offset
        for number, asked in index.events(events.DeleteRecordsObeyed, partition=partition)
    ):
        return Deletion(DELETE_RECORDS, was_due=True)
    age_us = removed.at_us - (copy.at_us if sent_us is None else sent_us)
    due = {
        RETENTION_MS: 0 <= config.retention_us < age_us,
        RETENTION_BYTES: 0 <= config.retention_bytes <= event.bytes_left,
    }
    by_size = due[RETENTION_BYTES] and (removed.reason == RETENTION_BYTES or not due[RETENTION_MS])
    setting = RETENTION_BYTES if by_size else RETENTION_MS
    lead = lead_us(index, copy.broker, removed.number)
    if not any(due.values()) and 0 <= config.retention_us < age_us + lead:
        return Deletion(CLOCK_SKEW, was_due=True, broker=copy.broker, lead_us=lead)
    if removed.reason == DELETE_RECORDS and not due[setting]:
        setting = DELETE_RECORDS
    return Deletion(setting, due.get(setting, False))


def last_copy_of_leaders(index: Index, partition: str, copies: Sequence[LogEntry]) -> LogEntry | None:
    """Return the last copy of a record in the leader's log, or in its successor's log."""
    last, end, successor = last_leader_with(index, partition, copies)
    if last is None:
        return None
    of_next = [
        copy
        for copy in copies
        if copy.broker == successor and copy.offset == last.offset and copy.number < end
    ]
    next_last = max(of_next, key=end_of, default=None)
    if end_of(last) >= end:
        return next_last
    if next_last is None or not last.lost_with_machine:
        return last
    # A record lost with the leader's machine is not lost while the successor has it.
    is_outlived = end_of(next_last) > end_of(last)
    was_deleted = next_last.removed is not None and next_last.removed.cause in (COMPACTION, RETENTION)
    return next_last if is_outlived or was_deleted else last


def last_leader_with(
    index: Index, partition: str, copies: Sequence[LogEntry]
) -> tuple[LogEntry | None, int, int | None]:
    """Return the last copy that a leader had while it led.

    Also return the line at which that leadership ended, and the next leader.
    """
    successor: int | None = None
    end = END
    for begin, leader in reversed(leaders(index, partition)):
        copies_then = [
            copy for copy in copies if copy.broker == leader and copy.number < end and end_of(copy) > begin
        ]
        if copies_then:
            # If one disk took two appends of a value, the later append counts.
            return max(copies_then, key=lambda copy: (end_of(copy), copy.number)), end, successor
        successor, end = leader, begin
    return None, END, None


def _decision(copies: Sequence[LogEntry], copy: LogEntry | None) -> LogEntry | None:
    """Return the copy that a broker deleted by its own settings.

    If a follower deleted its copy because its leader's log starts later, the leader's copy counts.
    """
    while copy is not None and copy.removed is not None and copy.removed.cause == RETENTION:
        removed = copy.removed
        if removed.reason == LOG_START_OFFSET_CHECKPOINT:
            return None  # The log was truncated after the checkpoint; the copy was stored later.
        if removed.reason != LEADER_LOG_START:
            return copy
        copy = _last_before(copies, removed.leader, removed.number)
    return None


def _decision_before_successor(index: Index, partition: str, copies: Sequence[LogEntry]) -> LogEntry | None:
    """Return the deleted copy of a record that came back, but that the next leader lacks.

    If a log start was not checkpointed, the log starts at an earlier offset after a restart. A
    follower that had started its own log at the later offset lacks the earlier records. When it
    leads, it removes them from all other logs.
    """
    last, end, successor = last_leader_with(index, partition, copies)
    if last is None or successor is None or end_of(last) < end:
        return None
    moves: Sequence[TraceLine[events.LogStartedAnew | events.LogStartReverted]]
    moves = index.events(events.LogStartedAnew, events.LogStartReverted, partition=partition)
    own = [(number, event) for number, event in moves if event.broker == successor and number < end]
    if not own or not isinstance(own[-1][1], events.LogStartedAnew) or own[-1][1].offset <= last.offset:
        return None
    began, _ = own[-1]
    followed = [
        event.leader
        for number, event in index.events(events.BecameFollower, partition=partition)
        if event.broker == successor and number < began
    ]
    deleted = _last_before(copies, followed[-1], began) if followed else None
    return _decision(copies, deleted)


def _last_before(copies: Sequence[LogEntry], broker: int, line: int) -> LogEntry | None:
    """Return the last copy that a broker removed before a line, or None."""
    removed = [copy for copy in copies if copy.broker == broker and end_of(copy) < line]
    return max(removed, key=end_of, default=None)


def leaders(index: Index, partition: str) -> Sequence[tuple[int, int]]:
    """Return the leaders of a partition by ascending epoch, each with the line of its election.

    If the election was not observed, the line is that at which the broker began to lead. A broker
    that was elected but never led is excluded, because no log followed its own.
    """
    return index.derived(_all_leaders).get(partition, ())


def _all_leaders(index: Index) -> Mapping[str, Sequence[tuple[int, int]]]:
    """Return the leaders of each partition."""
    lines: Sequence[TraceLine[events.LeaderElected | events.BecameLeader]]
    lines = index.events(events.LeaderElected, events.BecameLeader)
    chosen: dict[tuple[str, int], int] = {}
    leaderships: dict[str, dict[int, tuple[int, int]]] = {}
    for number, event in lines:
        place = event.partition, event.leader_epoch
        if isinstance(event, events.BecameLeader):
            by_epoch = leaderships.setdefault(event.partition, {})
            by_epoch.setdefault(event.leader_epoch, (chosen.get(place, number), event.broker))
        elif event.leader != NO_LEADER:
            chosen.setdefault(place, number)
    return {
        partition: [by_epoch[epoch] for epoch in sorted(by_epoch)]
        for partition, by_epoch in leaderships.items()
    }


def end_of(copy: LogEntry) -> int:
    """Return the line at which a copy was removed, `END` if it still exists."""
    return END if copy.removed is None else copy.removed.number


def is_read_and_expired(index: Index, partition: str, value: Value, sent_us: int) -> bool:
    """Return whether a record was read, and then deleted by retention when it was due."""
    if not index.orders.is_read(partition, value):
        return False
    copies = index.partition(partition).by_value.get(str(value), ())
    deletion = deletion_of(index, partition, copies, sent_us)
    return deletion is not None and deletion.was_due


def lead_us(index: Index, broker: int, number: int) -> int:
    """Return how much too old a record may look to a broker at a line of the trace.

    This is how far the broker's clock is ahead of the slowest clock up to that line, because the
    clock that wrote the timestamp is unknown.
    """
    name = process_name(broker)
    ahead = lowest = 0
    for line in index.events(events.ClockStepped):
        if line.number >= number:
            break
        lowest = min(lowest, line.event.skew_us)
        if line.event.process == name:
            ahead = line.event.skew_us
    return ahead - lowest
