"""Folds the similar rows of a diff, and renders each cell in a few characters."""

from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import Final, NamedTuple

from harrow.campaigns.language.spelling import printable
from harrow.campaigns.story import replica_diff
from harrow.checks.causes.story import seconds
from harrow.checks.replay.partition_state import (
    ACKED,
    COMPACTION,
    CORRUPTION,
    DELETED,
    DISK_LOSS,
    FAILED,
    POWER_LOSS,
    RETENTION,
    SENDING,
    TRUNCATED,
    UNKNOWN,
    LogEntry,
)
from harrow.cli.text import Text, lines
from harrow.cluster_model.lazy_dataclass import dataclass

FOLDED_MIN: Final = 4
"""So many similar rows, or more, are shown as one row."""


class _Sign(NamedTuple):
    """A sign in a cell, its meaning, and the sign for a terminal that shows only ASCII."""

    sign: str
    meaning: str
    style: str = ""
    ascii: str = ""


_SIGNS: Final = {
    replica_diff.DIFFERENT: _Sign("≠", "not the leader's record", "bold red", ascii="!"),
    replica_diff.MISSING: _Sign("·", "never there", "dim", ascii="."),
    TRUNCATED: _Sign("-", "was there, truncated", "magenta"),
    POWER_LOSS: _Sign("x", "was there, lost with the power", "magenta"),
    DISK_LOSS: _Sign("#", "was there, lost with the disk", "magenta"),
    CORRUPTION: _Sign("%", "was there, removed by recovery at a bad CRC", "magenta"),
    DELETED: _Sign("/", "was there, deleted with its replica", "magenta"),
    RETENTION: _Sign("<", "was there, deleted below the log start", "magenta"),
    COMPACTION: _Sign("c", "was there, compacted away", "magenta"),
    "uncommitted": _Sign("~", "not below this replica's HW", "yellow"),
    "unflushed": _Sign("*", "not flushed"),
}
LOST: Final = "LOST"
_STATUS: Final = {None: "-", SENDING: "not yet", UNKNOWN: "unknown", FAILED: "no"}


@dataclass(frozen=True, slots=True)
class FoldedRows:
    """Rows that are shown as one."""

    first: replica_diff.DiffRow
    last: replica_diff.DiffRow
    count: int
    producers: int = 1

    def offsets(self) -> str:
        """Return the offsets. If there are several, add how many."""
        if self.count == 1:
            return str(self.first.offset)
        return f"{self.first.offset}..{self.last.offset} ({self.count})"


class CellSigns:
    """The signs in a diff. The legend explains only the signs that were used."""

    def __init__(self, *, is_unicode: bool, missing: str = _SIGNS[replica_diff.MISSING].meaning) -> None:
        """Start before any sign is used. *missing* is the meaning of the sign for no record."""
        self._is_unicode = is_unicode
        self._absent_cell = missing
        self._used: set[str] = set()

    def of(self, name: str) -> str:
        self._used.add(name)
        return _SIGNS[name].sign if self._is_unicode else _SIGNS[name].ascii or _SIGNS[name].sign

    def legend(self) -> list[str]:
        """Return the meanings of the used signs."""
        used = [name for name in _SIGNS if name in self._used]
        meanings = {name: _SIGNS[name].meaning for name in used} | {replica_diff.MISSING: self._absent_cell}
        return [f"{self.of(name)} {meanings[name]}" for name in used]


def fold_rows(
    rows: Sequence[replica_diff.DiffRow],
    *,
    only_different: bool,
    unfolded_offsets: Collection[int] = (),
    fold_limits: Collection[int] = (),
) -> Iterator[FoldedRows]:
    """Yield rows, with similar neighbours folded into one.

    With *only_different*, all rows with equal records are folded. An offset has a row for its
    current records, and one for each record that was removed there. Both kinds are folded side by
    side, so a log that was replaced takes two rows. *unfolded_offsets* keep their own rows, and
    folding stops before each offset of *fold_limits*.
    """
    block: list[_OffsetRows] = []
    for stack in _rows_by_offset(rows):
        offset = stack[0].offset
        alone = (
            offset in fold_limits
            or offset in unfolded_offsets
            or (block and block[-1][0].offset in unfolded_offsets)
        )
        if block and (alone or not _may_be_folded(block[-1], stack, only_different=only_different)):
            yield from _fold(block, only_different=only_different)
            block = []
        block.append(stack)
    yield from _fold(block, only_different=only_different)


_OffsetRows = Sequence[replica_diff.DiffRow]
"""The rows of one offset: first that of its current records, then those of removed records."""


def _rows_by_offset(rows: Sequence[replica_diff.DiffRow]) -> Iterator[_OffsetRows]:
    for _, stack in groupby(rows, attrgetter("offset")):
        yield list(stack)


def _fold(block: Sequence[_OffsetRows], *, only_different: bool) -> Iterator[FoldedRows]:
    if len(block) >= FOLDED_MIN or (only_different and block and _is_equal(block[0])):
        for rows in zip(*block, strict=True):
            ids = {row.fates[0].entry.producer_id for row in rows}
            yield FoldedRows(rows[0], rows[-1], len(rows), len(ids))
    else:
        for stack in block:
            yield from (FoldedRows(row, row, 1) for row in stack)


def _is_equal(stack: _OffsetRows) -> bool:
    return len(stack) == 1 and stack[0].is_equal()


def _may_be_folded(one: _OffsetRows, other: _OffsetRows, *, only_different: bool) -> bool:
    if other[0].offset != one[0].offset + 1:
        return False
    if only_different and _is_equal(one) and _is_equal(other):
        return True
    return list(map(_fold_key, one)) == list(map(_fold_key, other))


def _fold_key(row: replica_diff.DiffRow) -> object:
    """Return a key that is equal for similar rows. Values, offsets and times may differ."""
    cells = tuple(
        (
            *(cell.state, cell.committed, cell.flushed),
            None if cell.entry is None else cell.entry.leader_epoch,
            None if cell.removed is None else cell.removed.number,
        )
        for cell in row.cells.values()
    )
    fates = tuple(
        (
            fate.status,
            fate.acks,
            fate.acked_offset == fate.entry.offset,
            fate.error,
            frozenset(fate.readers),
            fate.holders,
            fate.is_lost,
        )
        for fate in row.fates
    )
    return row.is_past, row.is_second_copy, cells, fates


def cell_text(rows: FoldedRows, broker: int, signs: CellSigns, *, with_ids: bool) -> Text:
    """Return a replica's record: its value, its leader epoch and, *with_ids*, its producer."""
    first, last = rows.first.cells[broker], rows.last.cells[broker]
    if first.entry is None:
        return _absent_cell(rows, signs)
    sign, style = _sign(first, signs)
    record = record_text(
        first.entry, last.entry if rows.count > 1 else None, rows.producers, with_ids=with_ids
    )
    return Text(f"{sign or ' '} {record}{_suffix(first, signs)}".rstrip(), style)


def short_cell(rows: FoldedRows, broker: int, signs: CellSigns, *, with_ids: bool) -> Text:
    """Return a replica's cell in a row that already shows its record: "=" for the same record."""
    first = rows.first.cells[broker]
    if first.entry is None:
        return _absent_cell(rows, signs)
    sign, style = _sign(first, signs)
    if first.state == replica_diff.SAME:
        return Text(f"={_suffix(first, signs)}", style)
    if first.state == replica_diff.REMOVED:
        return Text(sign, style)
    return cell_text(rows, broker, signs, with_ids=with_ids)


def row_record(rows: FoldedRows, *, with_ids: bool) -> Text:
    """Return the record of a row. For a folded row, return the first and, *with_ids*, the last."""
    first, last = rows.first.fates[0].entry, rows.last.fates[0].entry
    if with_ids:
        return Text(record_text(first, last, rows.producers, with_ids=True))
    more = ".." if rows.count > 1 else ""
    return Text(f"{first.value}{more} e{first.leader_epoch}")


def record_text(first: LogEntry, last: LogEntry | None, producers: int, *, with_ids: bool) -> str:
    """Return a text for one record, or for the first and the last of several records."""
    several = last is not None and last != first
    value = first.value
    if several and last is not None:
        value = f"{value}..{last.value}"
    text = f"{value} e{first.leader_epoch}"
    if not with_ids or first.producer_id < 0:
        return text
    if producers > 1:
        return f"{text} #{producers} producers"
    sequences = f"{first.sequence}..{last.sequence}" if several and last is not None else str(first.sequence)
    return f"{text} #{first.producer_id}:{sequences}"


def acked_text(rows: FoldedRows, *, with_times: bool) -> Text:
    """Return, for each record in a row, the response that its producer got."""
    if rows.first.is_second_copy:
        return Text("as above")
    several = len(rows.first.fates) > 1
    return lines(
        Text.assemble(
            f"{fate.entry.value}: " if several else "",
            _ack_text(fate, with_time=with_times and rows.count == 1),
            (f" {LOST}", "bold red") if fate.is_lost else "",
        )
        for fate in rows.first.fates
    )


def _ack_text(fate: replica_diff.RecordFate, *, with_time: bool) -> str:
    if fate.status == ACKED and fate.acked_offset not in {None, fate.entry.offset}:
        # The producer got an ack for another copy. If this copy was acked, that ack did not arrive.
        return f"as {fate.acked_offset}" if fate.acks is None else f"{fate.acks}, not received"
    if fate.status == ACKED:
        acks = fate.acks or "yes"
        return f"{acks} {seconds(fate.acked_us)}" if with_time and fate.acked_us is not None else acks
    word = _STATUS[fate.status]
    if fate.acks is not None and fate.status is not None:
        return f"{fate.acks}, not received"
    return f"{word}: {fate.error}" if with_time and fate.error is not None else word


def readers_text(rows: FoldedRows, *, with_names: bool) -> Text:
    """Return the consumers that have read a row's records, or their number."""
    if rows.first.is_second_copy:
        return Text()
    if not with_names:
        return lines(str(len(fate.readers) or "-") for fate in rows.first.fates)
    several = len(rows.first.fates) > 1
    return lines(
        f"{fate.entry.value}: {_reader_names(fate)}" if several else _reader_names(fate)
        for fate in rows.first.fates
    )


def _reader_names(fate: replica_diff.RecordFate) -> str:
    return ", ".join(map(printable, sorted(fate.readers))) or "-"


def _absent_cell(rows: FoldedRows, signs: CellSigns) -> Text:
    # A row for removed records shows only the replicas that had them.
    if rows.first.is_past:
        return Text()
    return Text(signs.of(replica_diff.MISSING), _SIGNS[replica_diff.MISSING].style)


def _sign(cell: replica_diff.LogCell, signs: CellSigns) -> tuple[str, str]:
    if cell.removed is not None:
        return signs.of(cell.removed.cause), _SIGNS[cell.removed.cause].style
    if cell.state == replica_diff.DIFFERENT:
        return signs.of(replica_diff.DIFFERENT), _SIGNS[replica_diff.DIFFERENT].style
    return "", "" if cell.committed else _SIGNS["uncommitted"].style


def _suffix(cell: replica_diff.LogCell, signs: CellSigns) -> str:
    if cell.removed is not None:
        return ""
    uncommitted = "" if cell.committed else signs.of("uncommitted")
    unflushed = "" if cell.flushed else signs.of("unflushed")
    return f" {uncommitted}{unflushed}".rstrip()
