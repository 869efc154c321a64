"""What compaction has removed, and whether something stands for it.

Of each key the latest record is kept, and that is all that ``cleanup.policy=compact`` promises: a record that is gone because a later
one of its key stands in the same log is no loss. It is one if there was no later one, or if that one is lost, too. A tombstone stays
for ``delete.retention.ms``, so that a slow reader hears of it. That is told from the keys of the records and from the logs;
what a broker gives as its reason is not believed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harrow.checks.causes.clocks import lead_us
from harrow.checks.causes.retention import deletion_of, end_of, last_held, last_leader_with, leaders
from harrow.checks.causes.story import END
from harrow.checks.history.records import Value
from harrow.checks.index import Index
from harrow.checks.replay.partition_state import COMPACTION, LogEntry, PartitionState


@dataclass(frozen=True, slots=True)
class Compaction:
    """A record went from a log that counts: for which later record of its key, if there was one.

    ``was_due``: it is a tombstone without a later record, and had stood for as long as ``delete.retention.ms`` promises. Where that was so by clocks alone
    that were not right, ``lead_us`` is how much older they made it.
    """

    copy: LogEntry
    later: LogEntry | None
    is_tombstone: bool
    was_due: bool
    lead_us: int = 0


def compaction_of(index: Index, partition: str, copies: Sequence[LogEntry]) -> Compaction | None:
    """Return how compaction took a record, of which these are the *copies*, from the leader's log; None if it did not."""
    if not any(copy.removed is not None and copy.removed.cause == COMPACTION for copy in copies):
        return None
    copy = last_held(index, partition, copies)
    if copy is None or copy.lost_with_machine:
        copy = _gone_before(index, partition, copies)
    if copy is None and last_leader_with(index, partition, copies)[0] is None:
        copy = _compacted_out_of_office(index, partition, copies)
    return None if copy is None else _compaction(index, partition, copies, copy)


def _gone_before(index: Index, partition: str, copies: Sequence[LogEntry]) -> LogEntry | None:
    """Return the copy by whose compaction the next leader never had a record: it has copied what stands for that, and a hole."""
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
                for later in _stand_ins(state, copy)
                for other in state.by_value[later.value]
            )
        ),
        None,
    )


def _compacted_out_of_office(index: Index, partition: str, copies: Sequence[LogEntry]) -> LogEntry | None:
    """Return the copy that a broker compacted before it led, and led with what stands for it; None if there is none.

    A leader that does not know of its successor stores records which no reign counts, until it is elected again.
    """
    state = index.partition(partition)
    for begin, leader in reversed(leaders(index, partition)):
        for copy in copies:
            was_compacted = copy.broker == leader and end_of(copy) < begin
            if was_compacted and any(stands.is_there(begin) for stands in _stand_ins(state, copy)):
                return copy
    return None


def _stand_ins(state: PartitionState, copy: LogEntry) -> Iterator[LogEntry]:
    """Yield the record for which a log has compacted a copy, the one for which that went in its turn, and so on."""
    stands: LogEntry | None = copy
    while stands is not None and stands.removed is not None and stands.removed.cause == COMPACTION:
        stands = later_in_log(state, stands)
        if stands is not None:
            yield stands


def standing_for(index: Index, partition: str, copies: Sequence[LogEntry]) -> list[LogEntry]:
    """Return the copies of a record, or in each log that has compacted it the record that stood for it last."""
    state = index.partition(partition)
    return [[copy, *_stand_ins(state, copy)][-1] for copy in copies]


def _compaction(
    index: Index, partition: str, copies: Sequence[LogEntry], copy: LogEntry
) -> Compaction | None:
    removed = copy.removed
    if removed is None or removed.cause != COMPACTION:
        return None
    state = index.partition(partition)
    known = state.keys.get(copy.value)
    is_tombstone = known is not None and known.is_tombstone
    config = index.evidence.partitions[partition].on_broker.get(copy.broker)
    # A follower takes over what its leader has noted of tombstones, so the time counts from the first copy.
    age_us = removed.at_us - min(other.at_us for other in copies)
    lead = lead_us(index, copy.broker, removed.number)
    retention_us = None if config is None or not is_tombstone else config.delete_retention_us
    was_due = retention_us is not None and age_us + lead >= retention_us
    is_by_clock = was_due and retention_us is not None and age_us < retention_us
    return Compaction(copy, later_in_log(state, copy), is_tombstone, was_due, lead if is_by_clock else 0)


def later_in_log(state: PartitionState, copy: LogEntry) -> LogEntry | None:
    """Return the record of a copy's key for which the cleaner removed it: the latest that it had looked at, and not of the whole log."""
    assert copy.removed is not None
    number = copy.removed.number
    there = [
        other
        for other in _of_key(state, copy.value)
        if other.broker == copy.broker
        and copy.offset < other.offset < copy.removed.to_offset
        and other.number < number <= end_of(other)
    ]
    return max(there, key=lambda other: other.offset, default=None)


def _of_key(state: PartitionState, value: str) -> Iterator[LogEntry]:
    """Yield all copies of the records that have the key of a record, its own among them."""
    known = state.keys.get(value)
    if known is not None:
        for other in state.by_key[known.key]:
            yield from state.by_value.get(other, ())


def is_superseded(index: Index, partition: str, value: Value, offset: int | None = None) -> bool:
    """Return whether a record is gone for a later one of its key, which can be read or went in its turn.

    Of one that was lost, sent again and acked at an *offset* that append counts as well: a log in which it stood before, and which
    led in the meantime, takes nothing from it.
    """
    copies = index.partition(partition).by_value.get(str(value), ())
    acked = [copy for copy in copies if copy.offset == offset]
    return _is_superseded(index, partition, copies) or (
        0 < len(acked) < len(copies) and _is_superseded(index, partition, acked)
    )


def _is_superseded(index: Index, partition: str, copies: Sequence[LogEntry]) -> bool:
    state = index.partition(partition)
    taken = compaction_of(index, partition, copies)
    if taken is None:
        return False
    readable = index.readable(partition)
    later = [entry for entry in _of_key(state, taken.copy.value) if entry.offset > taken.copy.offset]
    if any(entry.value in readable for entry in later):
        return True
    return any(
        _went_in_turn(index, partition, state.by_value[name]) for name in {entry.value for entry in later}
    )


def _went_in_turn(index: Index, partition: str, copies: Sequence[LogEntry]) -> bool:
    """Return whether a record went that no later one of its key stands for: a tombstone, or one that retention has deleted."""
    taken = compaction_of(index, partition, copies)
    if taken is not None:
        return taken.was_due and taken.later is None
    sends = index.sends_of(partition, copies[0].value)
    deletion = deletion_of(index, partition, copies, sends[0].invoked_us if sends else None)
    return deletion is not None and deletion.was_due


def is_read_and_expired(index: Index, partition: str, value: Value) -> bool:
    """Return whether a tombstone has been read, and removed after ``delete.retention.ms`` had passed."""
    if not index.orders.is_read(partition, value):
        return False
    taken = compaction_of(index, partition, index.partition(partition).by_value.get(str(value), ()))
    return taken is not None and taken.later is None and taken.was_due


def holes(index: Index, partition: str, between: range, until_us: int) -> set[int]:
    """Return the offsets at which some log had removed a record by a time for a later one of its key: who reads there meets a hole.

    Whichever record that was: another one may have been put there since, and the one before may not be known.
    """
    state = index.partition(partition)
    return {
        copy.offset
        for copies in state.by_value.values()
        for copy in copies
        if copy.offset in between
        and copy.removed is not None
        and copy.removed.at_us <= until_us
        and next(_stand_ins(state, copy), None) is not None
    }


def was_let_go(index: Index, partition: str, value: Value) -> bool:
    """Return whether some log has let a record go in its turn, so that who read there did not get it, though others still have it."""
    state = index.partition(partition)
    copies = state.by_value.get(str(value), ())
    was_superseded = any(next(_stand_ins(state, copy), None) is not None for copy in copies)
    return was_superseded or is_expired_tombstone(index, partition, value, END)


def has_stand_in(index: Index, partition: str, copies: Sequence[LogEntry]) -> bool:
    """Return whether a later record replaces one of *copies*, which a log has compacted.

    That record can still be read, or went in its turn. If it was lost, the copy was lost with it.
    """
    state = index.partition(partition)
    readable = index.readable(partition)
    return any(
        later.value in readable or _went_in_turn(index, partition, state.by_value[later.value])
        for copy in copies
        for later in _stand_ins(state, copy)
    )


def is_expired_tombstone(index: Index, partition: str, value: Value, until_us: int) -> bool:
    """Return whether some log had removed a tombstone by a time, after ``delete.retention.ms`` had passed."""
    copies = index.partition(partition).by_value.get(str(value), ())
    gone = (_compaction(index, partition, copies, copy) for copy in copies)
    return any(
        taken is not None
        and taken.was_due
        and taken.copy.removed is not None
        and taken.copy.removed.at_us <= until_us
        for taken in gone
    )
