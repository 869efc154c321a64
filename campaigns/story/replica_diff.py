"""Compares the replica logs of a partition: a row for each offset, a cell for each replica.

Rows are plain data. `harrow.cli.render.diff` folds and shows them.
`harrow.campaigns.story.record_fates` explains them.
"""

from collections.abc import Collection, Iterator, Mapping
from operator import attrgetter
from typing import Final

from harrow.checks.replay.partition_state import (
    ACKED,
    FAILED,
    SENDING,
    UNKNOWN,
    LogEntry,
    PartitionState,
    RemovedEntry,
)
from harrow.cluster_model.lazy_dataclass import dataclass

SAME: Final = "same"
DIFFERENT: Final = "different"
MISSING: Final = "missing"
REMOVED: Final = "removed"
"""The states of a cell: it has the row's record, a different one, none, or had it removed."""

_RANK: Final = (ACKED, SENDING, UNKNOWN, FAILED)
"""The statuses of a send, from the best to the worst."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCell:
    """What a replica has at an offset. ``state`` is `SAME`, `DIFFERENT`, `MISSING` or `REMOVED`.

    ``committed`` tells whether the record is below the replica's own high watermark, or below the
    checkpointed one if the log is not open; for a removed record, whether it was ever below it. A
    ``flushed`` record survives power loss. ``removed`` tells how a record was removed.
    """

    state: str
    entry: LogEntry | None = None
    committed: bool = False
    flushed: bool = False
    removed: RemovedEntry | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFate:
    """What became of a record that is, or was, at an offset.

    ``status`` is how its send ended: `harrow.checks.replay.partition_state.ACKED` and so on, None
    if no client of the run sent it. ``acks`` is "all", "1" or "0", None if no broker answered.
    ``isr`` is the ISR of the broker that answered. ``acked_us`` and ``acked_offset`` come from the
    response. After a retry, the offset may be that of another copy. ``readers`` are the consumers
    that read it, in the order of their first read. ``holders`` are the replicas that have the
    record undamaged, at any offset. ``is_lost`` tells whether a finding calls it lost, and the last
    event of that finding has happened.
    """

    entry: LogEntry
    status: str | None
    acks: str | None
    isr: tuple[int, ...]
    acked_us: int | None
    acked_offset: int | None
    error: str | None
    readers: tuple[str, ...]
    holders: tuple[int, ...]
    is_lost: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffRow:
    """A row for what is at an offset of a partition, or for a record that was removed from there.

    ``cells`` has a cell for each replica, by broker. ``is_past`` marks the row of a removed record,
    and ``is_second_copy`` that of a removed record whose value is at this offset again. ``fates``
    describe the different records in the row, the leader's first.
    """

    offset: int
    cells: Mapping[int, LogCell]
    fates: tuple[RecordFate, ...]
    is_past: bool = False
    is_second_copy: bool = False

    def is_equal(self) -> bool:
        """Return whether every replica has the same record and never had another."""
        return not self.is_past and all(cell.state == SAME for cell in self.cells.values())


def partition_rows(partition: PartitionState, lost: Collection[str]) -> list[DiffRow]:
    """Return the rows of a partition by offset. At an offset, removed records come last.

    *lost* are the values of the records that findings call lost.
    """
    logs, fates = _Logs(partition), Fates(partition, lost)
    return [row for offset in range(logs.end) for row in logs.rows(offset, fates)]


def cells_at_end(partition: PartitionState, count_max: int) -> tuple[range, dict[int, list[LogCell]]]:
    """Return the last offsets that have or had a record, and each replica's cells there.

    It does not look up the fates of records, because the screen of a run calls it many times a
    second.
    """
    logs = _Logs(partition)
    offsets = range(max(0, logs.end - count_max), logs.end)
    cells = [logs.cells(offset, logs.reference(offset)) for offset in offsets]
    return offsets, {broker: [by_broker[broker] for by_broker in cells] for broker in logs.replicas}


class Fates:
    """Looks up the fates of a partition's records. Findings call the values in *lost* lost."""

    def __init__(self, partition: PartitionState, lost: Collection[str]) -> None:
        self._partition = partition
        self._lost = frozenset(lost)
        self._values = {
            broker: frozenset(entry.value for entry in replica.log if entry.damaged is None)
            for broker, replica in sorted(partition.replicas.items())
        }

    def fate(self, entry: LogEntry) -> RecordFate:
        partition = self._partition
        place = (entry.offset, entry.value)
        sends = partition.sends.get(entry.value, [])
        # If an application sent a value more than once, the best outcome counts.
        send = min(
            sends, key=lambda send: (_RANK.index(send.status), send.offset != entry.offset), default=None
        )
        answers = [ack for ack in partition.acks.get(entry.value, ()) if ack.offset == entry.offset]
        acks = next(("all" if answer.acks < 0 else str(answer.acks) for answer in answers), None)
        if acks is None and send is not None and send.status == ACKED:
            # With acks=0 the broker does not respond. A response with another offset acknowledges
            # another copy.
            acks = "0" if send.offset is None else None
        holders = tuple(broker for broker, values in self._values.items() if entry.value in values)
        readers = tuple(partition.reads.get(place, ()))
        return RecordFate(
            entry=entry,
            status=None if send is None else send.status,
            acks=acks,
            isr=answers[0].isr if answers else (),
            acked_us=send.ended_us if send is not None and send.status == ACKED else None,
            acked_offset=None if send is None else send.offset,
            error=None if send is None else send.error,
            readers=readers,
            holders=holders,
            is_lost=entry.value in self._lost,
        )


class _Logs:
    """The logs of a partition's replicas, with removed records."""

    def __init__(self, partition: PartitionState) -> None:
        self.replicas = dict(sorted(partition.replicas.items()))
        self._leader = partition.leader
        self._removed: dict[int, list[RemovedEntry]] = {}
        for replica in self.replicas.values():
            for removed in replica.removed:
                self._removed.setdefault(removed.entry.offset, []).append(removed)
        self.end = max([max(self._removed, default=-1) + 1, *(r.leo for r in self.replicas.values())])

    def rows(self, offset: int, fates: Fates) -> Iterator[DiffRow]:
        reference = self.reference(offset)
        present = [replica.entry(offset) for replica in self.replicas.values()]
        values = {entry.value for entry in (reference, *present) if entry is not None}
        if reference is not None:
            cells = self.cells(offset, reference)
            others = [
                cell.entry for cell in cells.values() if cell.state == DIFFERENT and cell.entry is not None
            ]
            entries = dict.fromkeys((reference, *others))
            yield DiffRow(offset=offset, cells=cells, fates=tuple(map(fates.fate, entries)))
        past = sorted(self._removed.get(offset, ()), key=attrgetter("number"))
        for entry in dict.fromkeys(removed.entry for removed in past):
            cells = {
                broker: LogCell(state=MISSING)
                if replica.entry(offset) == entry
                else self._past_cell(broker, entry)
                for broker, replica in self.replicas.items()
            }
            if entry != reference and any(cell.state == REMOVED for cell in cells.values()):
                is_second_copy = entry.value in values
                yield DiffRow(
                    offset=offset,
                    cells=cells,
                    fates=(fates.fate(entry),),
                    is_past=True,
                    is_second_copy=is_second_copy,
                )

    def reference(self, offset: int) -> LogEntry | None:
        """Return the record to compare with: the leader's, or else the most frequent one.

        If no replica has a record, return the one that was removed last.
        """
        present = {broker: replica.entry(offset) for broker, replica in self.replicas.items()}
        entries = [entry for entry in present.values() if entry is not None]
        last = max(self._removed.get(offset, ()), key=attrgetter("number"), default=None)
        if not entries:
            return None if last is None else last.entry
        return present.get(self._leader) or max(entries, key=entries.count)

    def cells(self, offset: int, reference: LogEntry | None) -> dict[int, LogCell]:
        cells = {}
        for broker, replica in self.replicas.items():
            entry = replica.entry(offset)
            if entry is None:
                cells[broker] = (
                    LogCell(state=MISSING) if reference is None else self._past_cell(broker, reference)
                )
            else:
                cells[broker] = LogCell(
                    state=SAME if entry == reference else DIFFERENT,
                    entry=entry,
                    committed=offset < replica.known_high_watermark,
                    flushed=offset < replica.flushed,
                )
        return cells

    def _past_cell(self, broker: int, entry: LogEntry) -> LogCell:
        for removed in reversed(self._removed.get(entry.offset, ())):
            if removed.entry == entry and removed.entry.broker == broker:
                return LogCell(
                    state=REMOVED, entry=removed.entry, committed=removed.committed, removed=removed
                )
        return LogCell(state=MISSING)
