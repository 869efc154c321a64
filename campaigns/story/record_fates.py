"""What became of the records of a partition at one moment, in words: lost, diverged, doubled, reordered."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Final

from harrow.campaigns.language.spelling import printable
from harrow.campaigns.story.replica_diff import DIFFERENT, DiffRow, RecordFate
from harrow.checks.causes.story import seconds
from harrow.checks.replay.partition_state import (
    ACKED,
    COMPACTION,
    CORRUPTION,
    DELETED,
    DISK_LOSS,
    LEADER,
    POWER_LOSS,
    RETENTION,
    TRUNCATED,
    LogEntry,
    PartitionState,
    RemovedEntry,
    ReplicaState,
)
from harrow.cluster_model.events import LeaderElected

LOST: Final = "lost"
DIVERGED: Final = "diverged"
DOUBLED: Final = "doubled"
REORDERED: Final = "reordered"

_VERBS: Final = {
    POWER_LOSS: "loses its power",
    TRUNCATED: "truncates",
    DISK_LOSS: "loses its disk",
    CORRUPTION: "recovers",
    RETENTION: "deletes old segments",
    COMPACTION: "compacts its log",
    DELETED: "deletes its log",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordMoment:
    """A moment worth looking at: after the event with this line of ``trace.jsonl``."""

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
    moments: tuple[RecordMoment, ...] = ()


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


def _joined(notes: Iterable[RecordNote]) -> Iterator[RecordNote]:
    """Yield notes of one record each, with those that went the same way in one."""
    groups: dict[tuple[int, ...], list[RecordNote]] = {}
    for note in notes:
        groups.setdefault(note.decided, []).append(note)
    for same in groups.values():
        yield replace(same[0], values=tuple(value for note in same for value in note.values))


def _different_fates(rows: Iterable[DiffRow]) -> Iterable[RecordFate]:
    fates: dict[str, RecordFate] = {}
    for fate in (fate for row in rows for fate in row.fates):
        fates.setdefault(fate.entry.value, fate)
    return fates.values()


def _lost(partition: PartitionState, fate: RecordFate) -> RecordNote:
    entry, value = fate.entry, printable(fate.entry.value)
    acked = f", acked at {seconds(fate.acked_us)}" if fate.acked_us is not None else ""
    isr = f", ISR {_brokers(sorted(fate.isr))}" if fate.acks == "all" else ""
    by = f" (acks={fate.acks}{isr})" if fate.acks else ""
    where = f"not in the log of the leader, broker {partition.leader}" if fate.held_by else "in no log"
    read = f"; {', '.join(map(printable, fate.readers))} had read it" if fate.readers else ""
    copies = _copies(partition, entry)
    last = {
        broker: next((c for c in reversed(copies) if c.broker == broker), None)
        for broker in partition.replicas
    }
    elections = [
        election
        for election in partition.elections
        if election.number > min((copy.number for copy in copies), default=0)
        and election.event.leader in partition.replicas
        and not any(
            copy.broker == election.event.leader and copy.is_there(election.number) for copy in copies
        )
    ]
    lines = [
        (f"broker {broker}", _life(partition.replicas[broker], entry, copy))
        for broker, copy in sorted(last.items())
    ]
    lines += [("election", _election_without(election.event)) for election in elections]
    moments = [
        _before(copy.removed, f"broker {broker} {_VERBS[copy.removed.cause]}, {value} still there")
        for broker, copy in sorted(last.items())
        if copy is not None and copy.removed is not None
    ]
    for election in elections[:1]:
        text = f"broker {election.event.leader} is elected {'uncleanly, ' if election.event.unclean else ''}without {value}"
        moments.append(RecordMoment(number=election.number, at_us=election.event.at_us, text=text))
    return RecordNote(
        kind=LOST,
        offset=entry.offset,
        values=(entry.value,),
        head=f"{value}, offset {entry.offset}{acked}{by}, is {where}{read}",
        lines=tuple(lines),
        decided=tuple(
            -1 if copy is None else 0 if copy.removed is None else copy.removed.number
            for copy in last.values()
        ),
        moments=tuple(moments),
    )


def _copies(partition: PartitionState, entry: LogEntry) -> list[LogEntry]:
    """Return each copy of a record that is or was in a log, in the order of storing."""
    return [copy for copy in partition.by_value.get(entry.value, ()) if copy == entry]


def _life(replica: ReplicaState, entry: LogEntry, copy: LogEntry | None) -> str:
    """Return how a replica got a record, and how it went."""
    if copy is None:
        return "never had it"
    came = f"{seconds(copy.at_us)} {'copied' if copy.is_copy else 'appended'} it (epoch {copy.leader_epoch})"
    if copy.removed is None and copy.damaged:
        return f"{came}, has it with damaged bytes"
    if copy.removed is None:
        return f"{came}, has it"
    life = f"{came}; {seconds(copy.removed.at_us)} {_removal(copy.removed)}"
    other = replica.entry(entry.offset)
    if other is None:
        return life
    return f"{life}; has {printable(other.value)} of epoch {other.leader_epoch} there since {seconds(other.at_us)}"


def _removal(removed: RemovedEntry) -> str:
    if removed.cause == POWER_LOSS:
        return f"lost it with its power: flushed only below {removed.to_offset}"
    if removed.cause == DISK_LOSS:
        return "lost it with its disk"
    if removed.cause == CORRUPTION:
        return f"cut it off when it recovered: a bad CRC at {removed.to_offset}"
    if removed.cause == RETENTION:
        return f"deleted it with all below {removed.to_offset} ({removed.reason})"
    if removed.cause == COMPACTION:
        return "removed it when it compacted its log"
    if removed.cause == DELETED:
        return "deleted its log, being no replica any more"
    why = {
        "high watermark": f"its own HW, to follow broker {removed.leader}",
        "leader epoch": f"where leader {removed.leader} says its epoch ends",
        "out of range": f"the end of leader {removed.leader}'s log",
    }.get(removed.reason)
    if why is None:
        return f"cut from {removed.leo} to {removed.to_offset} ({removed.reason})"
    return f"truncated {removed.leo} -> {removed.to_offset}, {why}"


def _election_without(election: LeaderElected) -> str:
    unclean = "unclean election: " if election.unclean else ""
    leader = f"broker {election.leader} leads epoch {election.leader_epoch}"
    return f"{seconds(election.at_us)} {unclean}{leader} without it, ISR {_brokers(election.isr)}"


def _before(event: LogEntry | RemovedEntry, text: str) -> RecordMoment:
    return RecordMoment(number=event.number - 1, at_us=event.at_us, text=f"before {text}")


def _diverged(partition: PartitionState, row: DiffRow, *, truncates_to_hw: bool) -> RecordNote:
    """Return a note of an offset at which replicas have different records."""
    by_entry: dict[LogEntry, list[int]] = {}
    for broker, cell in row.cells.items():
        if cell.entry is not None and cell.removed is None:
            by_entry.setdefault(cell.entry, []).append(broker)
    lines = []
    copies = []
    for entry, brokers in by_entry.items():
        first = min((partition.replicas[broker].log[row.offset] for broker in brokers), key=_number_of)
        what = f"{seconds(first.at_us)} stored {printable(entry.value)} (epoch {entry.leader_epoch})"
        why = _why_it_stays(partition.replicas[brokers[0]], entry, truncates_to_hw)
        lines.append((f"broker {_brokers(brokers)}", f"{what}; {why}"))
        copies.append(first)
    last = max(copies, key=_number_of)
    values = tuple(entry.value for entry in by_entry)
    return RecordNote(
        kind=DIVERGED,
        offset=row.offset,
        values=values,
        head=f"offset {row.offset} has different records: {', '.join(map(printable, values))}",
        lines=tuple(lines),
        moments=(_before(last, f"{printable(last.value)} is stored at offset {row.offset}"),),
    )


def _why_it_stays(replica: ReplicaState, entry: LogEntry, truncates_to_hw: bool) -> str:
    high_watermark = replica.high_watermark
    if not replica.is_open:
        return "its log is not open: the broker is down, or has not learned of the partition"
    if replica.role == LEADER:
        return f"leads epoch {replica.leader_epoch}, HW {high_watermark}"
    if entry.offset >= high_watermark:
        return f"follows broker {replica.leader}, HW {high_watermark}"
    what = f"follows broker {replica.leader}, and its own HW is {high_watermark}"
    return f"{what}: to truncate to that cuts nothing" if truncates_to_hw else what


def _never_stored(partition: PartitionState) -> Iterator[RecordNote]:
    for value, sends in partition.sends.items():
        acked = next((send for send in sends if send.status == ACKED), None)
        if acked is not None and acked.ended_us is not None and value not in partition.by_value:
            by = " (acks=0: no broker answers)" if acked.offset is None else ""
            head = f"{printable(value)}, sent by {printable(acked.client)} and taken as acked at "
            yield RecordNote(
                kind=LOST,
                offset=acked.offset,
                values=(value,),
                head=f"{head}{seconds(acked.ended_us)}{by}, was never in any log",
            )


def _doubled(partition: PartitionState) -> Iterator[RecordNote]:
    """Yield notes of values that stand at several offsets of the leader's log, or of the longest without a leader.

    What was aborted with its transaction stands nowhere.
    """
    places: dict[str, list[LogEntry]] = {}
    for entry in _leading_log(partition):
        places.setdefault(entry.value, []).append(entry)
    for value, several in places.items():
        entries = several
        if len(several) > 1:
            entries = [entry for entry in several if not partition.replica(entry.broker).is_aborted(entry)]
        if len(entries) > 1:
            offsets = ", ".join(str(entry.offset) for entry in entries)
            yield RecordNote(
                kind=DOUBLED,
                offset=entries[1].offset,
                values=(value,),
                places=tuple(entry.offset for entry in entries),
                head=f"{printable(value)} stands {len(entries)} times, at the offsets {offsets}",
                lines=tuple((f"offset {entry.offset}", _origin(partition, entry)) for entry in entries),
                moments=(_before(entries[1], f"{printable(value)} is stored again"),),
            )


def _reordered(partition: PartitionState) -> Iterator[RecordNote]:
    """Yield notes of records that stand behind one that the same client sent later."""
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
                moments=(_before(stands, f"{printable(value)} overtakes {printable(before.value)}"),),
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
    first = _copies(partition, entry)[0]
    appended = f"{seconds(first.at_us)} appended by broker {first.broker} in epoch {entry.leader_epoch}"
    if entry.producer_id < 0:
        return f"{appended}, no producer id"
    return f"{appended}, producer {entry.producer_id}, sequence {entry.sequence}"


def _brokers(brokers: Iterable[int]) -> str:
    return ", ".join(map(str, brokers))


_number_of: Final = attrgetter("number")
