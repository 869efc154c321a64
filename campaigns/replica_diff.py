"""The replica logs of a partition side by side: a row for each offset, a cell for each replica.

Rows are plain data; how they are folded and shown is for `cli.render_diff`, what they mean is said
by `campaigns.record_fates`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from campaigns.replica_states import (
    ACKED,
    FAILED,
    NO_LEADER,
    SENDING,
    UNKNOWN,
    LogEntry,
    PartitionState,
    RemovedEntry,
    ReplicaState,
)

SAME: Final = "same"
DIFFERENT: Final = "different"
MISSING: Final = "missing"
REMOVED: Final = "removed"
"""What a cell is: the row's record, another one, none, or one that stood there once."""

_RANK: Final = (ACKED, SENDING, UNKNOWN, FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """What a replica has at an offset. ``state`` is `SAME`, `DIFFERENT`, `MISSING` or `REMOVED`.

    ``committed`` says whether it is below the replica's own high watermark, or below the checkpointed one
    of a log that is not open (of a removed one: whether it was), ``flushed`` whether power loss would
    leave it. ``removed`` is how a record went.
    """

    state: str
    entry: LogEntry | None = None
    committed: bool = False
    flushed: bool = False
    removed: RemovedEntry | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFate:
    """What clients know of a record that stands, or stood, at an offset.

    ``status`` is what its producer's application was told: `campaigns.replica_states.ACKED` and so on,
    None if the record was not sent by a client of the run. ``acks`` is what the broker's answer was for, "all", "1"
    or "0", None where no broker answered; ``isr`` was the ISR of the broker that did. ``acked_us`` is when the application was told, None before.
    ``acked_offset`` is where it was told that the record stands: with retries that may be another copy.
    ``readers`` are consumers in the order in which they first read it. ``held_by`` are the replicas
    that have the record, at whatever offset; ``on_leader`` says whether the leader is one of them.
    """

    entry: LogEntry
    status: str | None
    acks: str | None
    isr: tuple[int, ...]
    acked_us: int | None
    acked_offset: int | None
    error: str | None
    readers: tuple[str, ...]
    held_by: tuple[int, ...]
    on_leader: bool

    @property
    def is_acked(self) -> bool:
        """Whether the application was told that the record is stored."""
        return self.status == ACKED

    @property
    def is_lost(self) -> bool:
        """Whether it was acked and consumers cannot get it from the partition's leader."""
        return self.is_acked and not self.on_leader

    @property
    def is_nowhere(self) -> bool:
        """Whether it was acked and is in no log."""
        return self.is_acked and not self.held_by


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffRow:
    """An offset of a partition, a cell for each replica; or what once stood there (``is_past``).

    ``is_again`` says of what is past that the same value stands there now, stored once more.
    ``fates`` are of the different records in the row, the leader's first.
    """

    offset: int
    cells: Mapping[int, Cell]
    fates: tuple[RecordFate, ...]
    is_past: bool = False
    is_again: bool = False

    def is_equal(self) -> bool:
        """Return whether every replica has the same record, and had no other."""
        return not self.is_past and all(cell.state == SAME for cell in self.cells.values())


def partition_rows(partition: PartitionState) -> list[DiffRow]:
    """Return the rows of a partition by offset; what once stood at one comes after what stands there."""
    fates = Fates(partition)
    replicas = dict(sorted(partition.replicas.items()))
    removed = {broker: _by_offset(replica.removed) for broker, replica in replicas.items()}
    rows: list[DiffRow] = []
    for offset in range(_end(replicas.values(), removed.values())):
        past = {broker: by_offset.get(offset, ()) for broker, by_offset in removed.items()}
        rows += _rows_at(offset, partition, replicas, past, fates)
    return rows


def cells_at_end(partition: PartitionState, count_max: int) -> tuple[range, dict[int, list[Cell]]]:
    """Return the last offsets at which a record stands or once stood, and each replica's cells there.

    No fates of records: whoever watches a run asks for this many times a second.
    """
    replicas = dict(sorted(partition.replicas.items()))
    removed = {broker: _by_offset(replica.removed) for broker, replica in replicas.items()}
    end = _end(replicas.values(), removed.values())
    offsets = range(max(0, end - count_max), end)
    cells: dict[int, list[Cell]] = {broker: [] for broker in replicas}
    for offset in offsets:
        standing = {broker: replica.entry(offset) for broker, replica in replicas.items()}
        past = {broker: by_offset.get(offset, ()) for broker, by_offset in removed.items()}
        reference = _reference(partition.leader, standing, past)
        for broker, replica in replicas.items():
            cells[broker].append(
                Cell(state=MISSING)
                if reference is None
                else _cell(replica, standing[broker], reference, past[broker])
            )
    return offsets, cells


def _end(replicas: Iterable[ReplicaState], removed: Iterable[Mapping[int, Sequence[RemovedEntry]]]) -> int:
    """Return the offset after the last at which a record stands or once stood."""
    ends = [replica.leo for replica in replicas]
    ends += [max(by_offset, default=-1) + 1 for by_offset in removed]
    return max(ends, default=0)


class Fates:
    """Looks up what became of the records of a partition."""

    def __init__(self, partition: PartitionState) -> None:
        self._partition = partition
        self._held = {
            broker: frozenset(entry.value for entry in replica.log)
            for broker, replica in sorted(partition.replicas.items())
        }

    def of(self, entry: LogEntry) -> RecordFate:
        """Return the fate of a record."""
        partition = self._partition
        place = (entry.offset, entry.value)
        sends = partition.sends.get(entry.value, [])
        # Of a value that was sent again by its application: what went best.
        send = min(
            sends, key=lambda send: (_RANK.index(send.status), send.offset != entry.offset), default=None
        )
        answers = partition.acks.get(place, ())
        acks = next(("all" if answer.acks < 0 else str(answer.acks) for answer in answers), None)
        if acks is None and send is not None and send.status == ACKED:
            # Without acks there is no answer; an answer for another offset is of another copy.
            acks = "0" if send.offset is None else None
        held_by = tuple(broker for broker, values in self._held.items() if entry.value in values)
        return RecordFate(
            entry=entry,
            status=None if send is None else send.status,
            acks=acks,
            isr=answers[0].isr if answers else (),
            acked_us=send.ended_us if send is not None and send.status == ACKED else None,
            acked_offset=None if send is None else send.offset,
            error=None if send is None else send.error,
            readers=tuple(partition.reads.get(place, ())),
            held_by=held_by,
            on_leader=self._is_on_leader(held_by),
        )

    def _is_on_leader(self, held_by: tuple[int, ...]) -> bool:
        """Return whether the leader has it; without a leader, whether anybody does."""
        leader = self._partition.leader
        return bool(held_by) if leader == NO_LEADER else leader in held_by


def _rows_at(
    offset: int,
    partition: PartitionState,
    replicas: Mapping[int, ReplicaState],
    past: Mapping[int, Sequence[RemovedEntry]],
    fates: Fates,
) -> Iterator[DiffRow]:
    standing = {broker: replica.entry(offset) for broker, replica in replicas.items()}
    reference = _reference(partition.leader, standing, past)
    values = {entry.value for entry in (reference, *standing.values()) if entry is not None}
    if reference is not None:
        cells = {
            broker: _cell(replicas[broker], entry, reference, past[broker])
            for broker, entry in standing.items()
        }
        others = [cell.entry for cell in cells.values() if cell.state == DIFFERENT and cell.entry is not None]
        shown = dict.fromkeys((reference, *others))
        yield DiffRow(offset=offset, cells=cells, fates=tuple(map(fates.of, shown)))
    gone = sorted((went for of_broker in past.values() for went in of_broker), key=lambda went: went.number)
    for entry in dict.fromkeys(went.entry for went in gone):
        if entry != reference:
            cells = {
                broker: _past_cell(entry, standing[broker], of_broker) for broker, of_broker in past.items()
            }
            if any(cell.state == REMOVED for cell in cells.values()):
                yield DiffRow(
                    offset=offset,
                    cells=cells,
                    fates=(fates.of(entry),),
                    is_past=True,
                    is_again=entry.value in values,
                )


def _reference(
    leader: int,
    standing: Mapping[int, LogEntry | None],
    past: Mapping[int, Sequence[RemovedEntry]],
) -> LogEntry | None:
    """Return the record that the others are compared with: the leader's, else the most frequent one.

    Where no replica has any, the one that was there last.
    """
    if standing.get(leader) is not None:
        return standing[leader]
    entries = [entry for entry in standing.values() if entry is not None]
    if entries:
        return max(entries, key=entries.count)
    gone = [went for of_broker in past.values() for went in of_broker]
    return max(gone, key=lambda went: went.number).entry if gone else None


def _cell(
    replica: ReplicaState, entry: LogEntry | None, reference: LogEntry, past: Sequence[RemovedEntry]
) -> Cell:
    if entry is not None:
        return Cell(
            state=SAME if entry == reference else DIFFERENT,
            entry=entry,
            committed=entry.offset < replica.known_high_watermark,
            flushed=entry.offset < replica.flushed,
        )
    return _removed_cell(reference, past)


def _past_cell(entry: LogEntry, standing: LogEntry | None, past: Sequence[RemovedEntry]) -> Cell:
    return Cell(state=MISSING) if standing == entry else _removed_cell(entry, past)


def _removed_cell(entry: LogEntry, past: Sequence[RemovedEntry]) -> Cell:
    went = next((went for went in reversed(past) if went.entry == entry), None)
    if went is None:
        return Cell(state=MISSING)
    return Cell(state=REMOVED, entry=went.entry, committed=went.committed, removed=went)


def _by_offset(removed: Iterable[RemovedEntry]) -> dict[int, list[RemovedEntry]]:
    found: dict[int, list[RemovedEntry]] = {}
    for went in removed:
        found.setdefault(went.entry.offset, []).append(went)
    return found
