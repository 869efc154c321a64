"""Decides whether compaction removed a record, and whether a later record replaces it.

``cleanup.policy=compact`` promises to keep the latest record of each key, and nothing else. If
compaction removed a record because the same log has a later record of its key, the record is not
lost. It is lost if there was no later record, or if the later record was lost too. A tombstone
stays for ``delete.retention.ms``, so that slow readers see it. A record that has no key, because it
was sent before its topic was compacted, need not stay (``Cleaner.shouldRetainRecord``). This module
decides by the keys of the records and by the logs, and does not trust the reason that a broker
states.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import islice
from operator import attrgetter
from typing import Any, Final

from harrow.checks.causes.retention import (
    deletion_of,
    end_of,
    last_copy_of_leaders,
    last_leader_with,
    lead_us,
    leaders,
)
from harrow.checks.causes.story import END
from harrow.checks.history.records import Value
from harrow.checks.index import Index
from harrow.checks.replay.partition_state import COMPACTION, LogEntry
from harrow.cluster_model.lazy_dataclass import dataclass

_offset_of: Final[Any] = attrgetter("offset")


@dataclass(frozen=True, slots=True)
class Compaction:
    """The removal of a record by compaction, with the later record of its key, if there was one.

    ``was_due`` is true for a tombstone without a later record if ``delete.retention.ms`` had
    passed. If the time had passed only by wrong clocks, ``lead_us`` is how much older the clocks
    made the tombstone look.
    """

    copy: LogEntry
    later: LogEntry | None
    is_tombstone: bool
    was_due: bool
    lead_us: int = 0


def compaction_of(index: Index, partition: str, copies: Sequence[LogEntry]) -> Compaction | None:
    """Return how compaction removed a record, given its *copies*, from a leader's log, or None."""
    if not any(copy.removed is not None and copy.removed.cause == COMPACTION for copy in copies):
        return None
    copy = last_copy_of_leaders(index, partition, copies)
    if copy is None or copy.lost_with_machine:
        copy = _compacted_before_fetch(index, partition, copies)
    if copy is None and last_leader_with(index, partition, copies)[0] is None:
        copy = _compacted_before_election(index, partition, copies)
    return None if copy is None else _compaction(index, partition, copies, copy)


def _compacted_before_fetch(index: Index, partition: str, copies: Sequence[LogEntry]) -> LogEntry | None:
    """Return the copy that was compacted before the next leader could fetch it.

    The next leader fetched the record that replaced the copy, and has a hole at the copy's offset.
    """
    state = index.partition(partition)
    _, _, leader = last_leader_with(index, partition, copies)
    if leader is None or any(copy.broker == leader for copy in copies):
        return None
    return next(
        (
            copy
            for copy in copies
            if any(
                other.broker == leader
                for later in _replacements(index, partition, copy)
                for other in state.by_value[later.value]
            )
        ),
        None,
    )


def _compacted_before_election(index: Index, partition: str, copies: Sequence[LogEntry]) -> LogEntry | None:
    """Return the copy that a broker compacted before it led with the replacement, or None.

    A leader that does not know of its successor still appends records. They belong to no leadership
    until the broker is elected again.
    """
    for begin, leader in reversed(leaders(index, partition)):
        for copy in copies:
            was_compacted = copy.broker == leader and end_of(copy) < begin
            if was_compacted and any(
                later.is_there(begin) for later in _replacements(index, partition, copy)
            ):
                return copy
    return None


def _replacements(index: Index, partition: str, copy: LogEntry) -> Iterator[LogEntry]:
    """Yield the record that replaced a compacted copy, then its replacement, and so on."""
    later: LogEntry | None = copy
    while later is not None and later.removed is not None and later.removed.cause == COMPACTION:
        later = later_in_log(index, partition, later)
        if later is not None:
            yield later


def with_replacements(index: Index, partition: str, copies: Sequence[LogEntry]) -> list[LogEntry]:
    """Return the copies of a record, each compacted copy replaced by its last replacement."""
    return [[copy, *_replacements(index, partition, copy)][-1] for copy in copies]


def _compaction(
    index: Index, partition: str, copies: Sequence[LogEntry], copy: LogEntry
) -> Compaction | None:
    removed = copy.removed
    if removed is None or removed.cause != COMPACTION:
        return None
    state = index.partition(partition)
    keyed = state.keys.get(copy.value)
    is_tombstone = keyed is not None and keyed.is_tombstone
    config = index.evidence.partitions[partition].config_on(copy.broker, removed.at_us)
    # A follower adopts the leader's deletion time, so the age counts from the first copy.
    age_us = removed.at_us - min(other.at_us for other in copies)
    lead = lead_us(index, copy.broker, removed.number)
    retention_us = None if config is None or not is_tombstone else config.delete_retention_us
    was_due = retention_us is not None and age_us + lead >= retention_us
    is_by_clock = was_due and retention_us is not None and age_us < retention_us
    return Compaction(
        copy, later_in_log(index, partition, copy), is_tombstone, was_due, lead if is_by_clock else 0
    )


def later_in_log(index: Index, partition: str, copy: LogEntry) -> LogEntry | None:
    """Return the record that made the cleaner remove a copy: the latest with the same key."""
    assert copy.removed is not None
    number = copy.removed.number
    copies = index.copies_of_key(partition, copy.value)
    end = bisect_left(copies, copy.removed.to_offset, key=_offset_of)
    for other in islice(reversed(copies), len(copies) - end, None):
        if other.offset <= copy.offset:
            break
        if other.broker == copy.broker and other.number < number <= end_of(other):
            return other
    return None


def is_superseded(index: Index, partition: str, value: Value, offset: int | None = None) -> bool:
    """Return whether compaction replaced a record by a later one that is readable or expired.

    If the record was lost, sent again and acked at an *offset*, it is enough if compaction replaced
    the copies at that offset. A leader's log that had the record earlier does not matter then.
    """
    copies = index.partition(partition).by_value.get(str(value), ())
    acked = [copy for copy in copies if copy.offset == offset]
    return _is_superseded(index, partition, copies) or (
        0 < len(acked) < len(copies) and _is_superseded(index, partition, acked)
    )


def _is_superseded(index: Index, partition: str, copies: Sequence[LogEntry]) -> bool:
    state = index.partition(partition)
    compaction = compaction_of(index, partition, copies)
    if compaction is None:
        return False
    if _lacked_key(index, partition, compaction.copy):
        return True
    readable = index.readable(partition)
    of_key = index.copies_of_key(partition, compaction.copy.value)
    later = of_key[bisect_right(of_key, compaction.copy.offset, key=_offset_of) :]
    # The latest record of a key is the likeliest to be readable.
    if any(entry.value in readable for entry in reversed(later)):
        return True
    return any(
        _was_removed_by_policy(index, partition, state.by_value[name])
        for name in {entry.value for entry in later}
    )


def _was_removed_by_policy(index: Index, partition: str, copies: Sequence[LogEntry]) -> bool:
    """Return whether an expired tombstone, or a record past its retention, was removed."""
    compaction = compaction_of(index, partition, copies)
    if compaction is not None:
        return compaction.was_due and compaction.later is None
    sends = index.sends_of(partition, copies[0].value)
    deletion = deletion_of(index, partition, copies, sends[0].invoked_us if sends else None)
    return deletion is not None and deletion.was_due


def is_read_and_expired(index: Index, partition: str, value: Value) -> bool:
    """Return whether a tombstone was read, and removed after ``delete.retention.ms`` had passed."""
    if not index.orders.is_read(partition, value):
        return False
    compaction = compaction_of(index, partition, index.partition(partition).by_value.get(str(value), ()))
    return compaction is not None and compaction.later is None and compaction.was_due


def holes(index: Index, partition: str, between: range, until_us: int) -> set[int]:
    """Return the offsets at which compaction had removed a record from some log by a time.

    It does not matter which record was removed. Another record may be at the offset now, and the
    removed record may be unknown.
    """
    state = index.partition(partition)
    return {
        copy.offset
        for copies in state.by_value.values()
        for copy in copies
        if copy.offset in between
        and copy.removed is not None
        and copy.removed.at_us <= until_us
        and _was_compacted(index, partition, copy)
    }


def was_compacted_away(index: Index, partition: str, value: Value) -> bool:
    """Return whether compaction removed a record from some log, so readers of that log miss it."""
    state = index.partition(partition)
    copies = state.by_value.get(str(value), ())
    was_compacted = any(_was_compacted(index, partition, copy) for copy in copies)
    return was_compacted or is_expired_tombstone(index, partition, value, END)


def _was_compacted(index: Index, partition: str, copy: LogEntry) -> bool:
    """Return whether compaction removed a copy that has a replacement, or needs none."""
    return (
        _lacked_key(index, partition, copy) or next(_replacements(index, partition, copy), None) is not None
    )


def _lacked_key(index: Index, partition: str, copy: LogEntry) -> bool:
    """Return whether compaction removed a copy because its record has no key."""
    is_compacted = copy.removed is not None and copy.removed.cause == COMPACTION
    return is_compacted and copy.value not in index.partition(partition).keys


def is_replaced(index: Index, partition: str, copies: Sequence[LogEntry]) -> bool:
    """Return whether a later record replaces one of *copies*, which a log has compacted.

    A later record replaces the copy if it can still be read, or if a policy removed it. If the
    later record was lost, the copy is lost with it.
    """
    state = index.partition(partition)
    readable = index.readable(partition)
    return any(
        later.value in readable or _was_removed_by_policy(index, partition, state.by_value[later.value])
        for copy in copies
        for later in _replacements(index, partition, copy)
    )


def is_expired_tombstone(index: Index, partition: str, value: Value, until_us: int) -> bool:
    """Return whether some log had removed a tombstone by a time, after ``delete.retention.ms``."""
    copies = index.partition(partition).by_value.get(str(value), ())
    compactions = (_compaction(index, partition, copies, copy) for copy in copies)
    return any(
        compaction is not None
        and compaction.was_due
        and compaction.copy.removed is not None
        and compaction.copy.removed.at_us <= until_us
        for compaction in compactions
    )
