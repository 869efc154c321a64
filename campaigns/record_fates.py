"""What became of the records of a partition, in words: what was lost, where the logs differ, what is doubled.

All is told from the replayed state at one moment, with the events at which it was decided.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from campaigns.replica_diff import DIFFERENT, DiffRow, RecordFate
from campaigns.replica_states import (
    ACKED,
    LEADER,
    NO_LEADER,
    POWER_LOSS,
    LogEntry,
    PartitionState,
    RemovedEntry,
    ReplicaState,
)
from campaigns.spelling import printable
from checks.story import seconds

LOST: Final = "lost"
DIVERGED: Final = "diverged"
DOUBLED: Final = "doubled"
REORDERED: Final = "reordered"


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A moment worth looking at: after the event with this number of ``trace.jsonl``."""

    number: int
    at_us: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordNote:
    """What there is to say of one record or place. ``kind`` is `LOST`, `DIVERGED`, `DOUBLED` or `REORDERED`.

    ``lines`` are (who, what) pairs. ``values`` are the records that it is about; those after the first
    went the same way by the same events (``decided``). ``places`` are the offsets to look at.
    """

    kind: str
    offset: int | None
    values: tuple[str, ...]
    head: str
    lines: tuple[tuple[str, str], ...] = ()
    decided: tuple[int, ...] = ()
    places: tuple[int, ...] = ()
    moments: tuple[Moment, ...] = ()


def record_notes(
    partition: PartitionState, rows: Sequence[DiffRow], *, truncates_to_hw: bool = False
) -> list[RecordNote]:
    """Return what there is to say of a partition: lost records first, in the order of the log.

    *truncates_to_hw* says whether followers go by their high watermark alone (before KIP-101).
    """
    lost = [_lost(partition, fate) for fate in _different_fates(rows) if fate.is_lost]
    diverged = [
        _diverged(partition, row, truncates_to_hw=truncates_to_hw)
        for row in rows
        if any(c.state == DIFFERENT for c in row.cells.values())
    ]
    return [
        *_joined(lost),
        *_never_stored(partition),
        *diverged,
        *_doubled(partition),
        *_reordered(partition),
    ]


def _joined(notes: Iterable[RecordNote]) -> list[RecordNote]:
    """Return notes of one record each, with those that went the same way in one."""
    groups: dict[tuple[int, ...], list[RecordNote]] = {}
    for note in notes:
        groups.setdefault(note.decided, []).append(note)
    return [
        replace(same[0], values=tuple(value for note in same for value in note.values))
        for same in groups.values()
    ]


def _decided(replica: ReplicaState, entry: LogEntry) -> int:
    """Return the event by which a record went from a replica, -1 if it was never there, 0 if it is."""
    if replica.entry(entry.offset) == entry:
        return 0
    gone = _went(replica, entry)
    return -1 if gone is None else gone.number


def _different_fates(rows: Iterable[DiffRow]) -> Iterator[RecordFate]:
    seen: set[str] = set()
    for row in rows:
        for fate in row.fates:
            if fate.entry.value not in seen:
                seen.add(fate.entry.value)
                yield fate


def _lost(partition: PartitionState, fate: RecordFate) -> RecordNote:
    entry = fate.entry
    value = printable(entry.value)
    acked = f", acked at {seconds(fate.acked_us)}" if fate.acked_us is not None else ""
    isr = f", ISR {_brokers(sorted(fate.isr))}" if fate.acks == "all" else ""
    by = f" (acks={fate.acks}{isr})" if fate.acks else ""
    if not fate.held_by:
        where = "is in no log"
    else:
        where = f"is not in the log of the leader, broker {partition.leader}"
    read = f"; {', '.join(map(printable, fate.readers))} had read it" if fate.readers else ""
    lines = [
        (f"broker {broker}", _life(replica, entry)) for broker, replica in sorted(partition.replicas.items())
    ]
    lines += _elections(partition, entry)
    return RecordNote(
        kind=LOST,
        offset=entry.offset,
        values=(entry.value,),
        head=f"{value}, offset {entry.offset}{acked}{by}, {where}{read}",
        lines=tuple(lines),
        decided=tuple(_decided(replica, entry) for replica in partition.replicas.values()),
        moments=tuple(_moments_of_loss(partition, entry)),
    )


def _life(replica: ReplicaState, entry: LogEntry) -> str:
    """Return how a replica got a record, and how it went."""
    standing = replica.entry(entry.offset)
    if standing == entry and standing is not None:
        return f"{_came(standing)}, has it"
    gone = _went(replica, entry)
    if gone is None:
        return "never had it"
    instead = ""
    if standing is not None:
        instead = f"; has {printable(standing.value)} of epoch {standing.leader_epoch} there since {seconds(standing.at_us)}"
    return f"{_came(gone.entry)}; {seconds(gone.at_us)} {_how(gone)}{instead}"


def _came(entry: LogEntry) -> str:
    return (
        f"{seconds(entry.at_us)} {'copied' if entry.is_copy else 'appended'} it (epoch {entry.leader_epoch})"
    )


def _how(gone: RemovedEntry) -> str:
    """Return why a record went."""
    if gone.cause == POWER_LOSS:
        return f"lost it with its power: flushed only below {gone.to_offset}"
    if gone.reason == "high watermark":
        return f"truncated {gone.leo} -> {gone.to_offset}, its own HW, to follow broker {gone.leader}"
    if gone.reason == "leader epoch":
        return f"truncated {gone.leo} -> {gone.to_offset}, where leader {gone.leader} says its epoch ends"
    if gone.reason == "out of range":
        return f"truncated {gone.leo} -> {gone.to_offset}, the end of leader {gone.leader}'s log"
    return f"cut from {gone.leo} to {gone.to_offset} ({gone.reason})"


def _elections(partition: PartitionState, entry: LogEntry) -> Iterator[tuple[str, str]]:
    """Yield the elections of leaders that did not have a record which others had had before."""
    stored = min((copy.number for copy, _ in _copies(partition, entry)), default=0)
    for election in partition.elections:
        if election.number > stored and election.leader != NO_LEADER:
            leader = partition.replicas.get(election.leader)
            if leader is not None and not _had(leader, entry, election.number):
                how = "unclean election: " if election.unclean else ""
                what = f"{seconds(election.at_us)} {how}broker {election.leader} leads epoch {election.leader_epoch}"
                yield ("election", f"{what} without it, ISR {_brokers(election.isr)}")


def _moments_of_loss(partition: PartitionState, entry: LogEntry) -> Iterator[Moment]:
    value = printable(entry.value)
    for broker, replica in sorted(partition.replicas.items()):
        gone = _went(replica, entry)
        if gone is not None:
            how = "loses its power" if gone.cause == POWER_LOSS else "truncates"
            yield Moment(
                number=gone.number - 1,
                at_us=gone.at_us,
                text=f"before broker {broker} {how}, {value} still there",
            )
    stored = min((copy.number for copy, _ in _copies(partition, entry)), default=0)
    for election in partition.elections:
        leader = partition.replicas.get(election.leader)
        if election.number > stored and leader is not None and not _had(leader, entry, election.number):
            kind = "uncleanly, " if election.unclean else ""
            yield Moment(
                number=election.number,
                at_us=election.at_us,
                text=f"broker {election.leader} is elected {kind}without {value}",
            )
            break


def _copies(partition: PartitionState, entry: LogEntry) -> Iterator[tuple[LogEntry, int]]:
    """Yield each copy of a record that is or was, with its broker."""
    for broker, replica in partition.replicas.items():
        standing = replica.entry(entry.offset)
        if standing is not None and standing == entry:
            yield standing, broker
        for gone in replica.removed_at(entry.offset):
            if gone.entry == entry:
                yield gone.entry, broker


def _went(replica: ReplicaState, entry: LogEntry) -> RemovedEntry | None:
    """Return how a record left a replica that does not have it any more."""
    if replica.entry(entry.offset) == entry:
        return None
    return next((gone for gone in reversed(replica.removed_at(entry.offset)) if gone.entry == entry), None)


def _had(replica: ReplicaState, entry: LogEntry, number: int) -> bool:
    """Return whether a replica had a record when an event happened."""
    standing = replica.entry(entry.offset)
    if standing is not None and standing == entry and standing.number < number:
        return True
    return any(
        gone.entry == entry and gone.entry.number < number < gone.number
        for gone in replica.removed_at(entry.offset)
    )


def _diverged(partition: PartitionState, row: DiffRow, *, truncates_to_hw: bool) -> RecordNote:
    """Tell of an offset at which replicas have different records."""
    by_entry: dict[LogEntry, list[int]] = {}
    for broker, cell in row.cells.items():
        if cell.entry is not None and cell.removed is None:
            by_entry.setdefault(cell.entry, []).append(broker)
    lines = []
    moments = []
    for entry, brokers in by_entry.items():
        came = [partition.replicas[broker].log[row.offset] for broker in brokers]
        first = min(came, key=lambda copy: copy.number)
        who = f"broker {_brokers(brokers)}"
        what = f"{seconds(first.at_us)} stored {printable(entry.value)} (epoch {entry.leader_epoch})"
        lines.append(
            (who, f"{what}; {_why_it_stays(partition.replicas[brokers[0]], entry, truncates_to_hw)}")
        )
        moments.append(first)
    last = max(moments, key=lambda copy: copy.number)
    value = printable(last.value)
    return RecordNote(
        kind=DIVERGED,
        offset=row.offset,
        values=tuple(entry.value for entry in by_entry),
        head=f"offset {row.offset} has different records: {_lists(by_entry)}",
        lines=tuple(lines),
        moments=(
            Moment(
                number=last.number - 1,
                at_us=last.at_us,
                text=f"before {value} is stored at offset {row.offset}",
            ),
        ),
    )


def _why_it_stays(replica: ReplicaState, entry: LogEntry, truncates_to_hw: bool) -> str:
    high_watermark = replica.high_watermark
    if not replica.is_open:
        return "its log is not open: the broker is down, or has not been told of the partition"
    if replica.role == LEADER:
        return f"leads epoch {replica.leader_epoch}, HW {high_watermark}"
    if entry.offset >= high_watermark:
        return f"follows broker {replica.leader}, HW {high_watermark}"
    what = f"follows broker {replica.leader}, and its own HW is {high_watermark}"
    return f"{what}: to truncate to that cuts nothing" if truncates_to_hw else what


def _never_stored(partition: PartitionState) -> Iterator[RecordNote]:
    """Tell of records that were acked and were never in any log."""
    stored: set[str] = set()
    for replica in partition.replicas.values():
        stored.update(entry.value for entry in replica.log)
        stored.update(gone.entry.value for gone in replica.removed)
    for value, sends in partition.sends.items():
        acked = next((send for send in sends if send.status == ACKED), None)
        if acked is not None and acked.ended_us is not None and value not in stored:
            by = " (acks=0: nobody answers)" if acked.offset is None else ""
            head = f"{printable(value)}, sent by {printable(acked.client)} and taken as acked at "
            yield RecordNote(
                kind=LOST,
                offset=acked.offset,
                values=(value,),
                head=f"{head}{seconds(acked.ended_us)}{by}, was never in any log",
            )


def _doubled(partition: PartitionState) -> Iterator[RecordNote]:
    """Tell of values that stand at several offsets of the leader's log, or of the longest without a leader."""
    places: dict[str, list[LogEntry]] = {}
    for entry in _leading_log(partition):
        places.setdefault(entry.value, []).append(entry)
    for value, entries in places.items():
        if len(entries) > 1:
            offsets = ", ".join(str(entry.offset) for entry in entries)
            yield RecordNote(
                kind=DOUBLED,
                offset=entries[1].offset,
                values=(value,),
                places=tuple(entry.offset for entry in entries),
                head=f"{printable(value)} stands {len(entries)} times, at the offsets {offsets}",
                lines=tuple((f"offset {entry.offset}", _origin(partition, entry)) for entry in entries),
                moments=(
                    Moment(
                        number=entries[1].number - 1,
                        at_us=entries[1].at_us,
                        text=f"before {printable(value)} is stored again",
                    ),
                ),
            )


def _reordered(partition: PartitionState) -> Iterator[RecordNote]:
    """Tell of records that stand behind one that the same client sent later."""
    first: dict[str, LogEntry] = {}
    for entry in _leading_log(partition):
        first.setdefault(entry.value, entry)
    last: dict[str, LogEntry] = {}
    for value, sends in partition.sends.items():
        stands = first.get(value)
        # A value that its application sent again has no order of its own.
        if stands is None or len(sends) > 1:
            continue
        client = sends[0].client
        before = last.get(client)
        if before is not None and before.offset > stands.offset:
            head = f"{printable(value)} stands before {printable(before.value)}, which {printable(client)} sent earlier"
            yield RecordNote(
                kind=REORDERED,
                offset=stands.offset,
                values=(value, before.value),
                places=(stands.offset, before.offset),
                head=head,
                lines=tuple(
                    (f"offset {each.offset}", f"{printable(each.value)}: {_origin(partition, each)}")
                    for each in (stands, before)
                ),
                moments=(
                    Moment(
                        number=stands.number - 1,
                        at_us=stands.at_us,
                        text=f"before {printable(value)} overtakes {printable(before.value)}",
                    ),
                ),
            )
        else:
            last[client] = stands


def _leading_log(partition: PartitionState) -> Sequence[LogEntry]:
    """Return the log of the leader, or the longest where none leads."""
    replicas = partition.replicas
    if partition.leader in replicas:
        return replicas[partition.leader].log
    return max((replica.log for replica in replicas.values()), key=len, default=())


def _origin(partition: PartitionState, entry: LogEntry) -> str:
    first, broker = min(_copies(partition, entry), key=lambda copy: copy[0].number)
    producer = (
        "no producer id"
        if entry.producer_id < 0
        else f"producer {entry.producer_id}, sequence {entry.sequence}"
    )
    return f"{seconds(first.at_us)} appended by broker {broker} in epoch {entry.leader_epoch}, {producer}"


def _brokers(brokers: Iterable[int]) -> str:
    return ", ".join(map(str, brokers))


def _lists(entries: Iterable[LogEntry]) -> str:
    return ", ".join(printable(entry.value) for entry in entries)
