"""Reads a history of any size into an index of the records that rules need, on this machine."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from itertools import chain, pairwise
from pathlib import Path
from typing import IO, Final

from harrow.campaigns.large_histories.byte_block import ByteBlock, LongLineError, blocks_of
from harrow.campaigns.large_histories.column_reader import ColumnReader, UnusualLinesError
from harrow.campaigns.large_histories.duckdb_tables import DuckDbTables
from harrow.campaigns.large_histories.event_columns import EventColumns
from harrow.campaigns.large_histories.events import Events, EventStore
from harrow.campaigns.large_histories.history_outline import HistoryOutline
from harrow.campaigns.large_histories.operation_order import OperationOrder
from harrow.campaigns.large_histories.plain_records import PlainRecords
from harrow.campaigns.large_histories.plain_reduction import PlainReduction
from harrow.campaigns.large_histories.record_slots import TooIrregularError
from harrow.campaigns.large_histories.reduction import (
    KeptOperations,
    Reduction,
    TooManySuspectsError,
    reduce,
    reduced_history,
)
from harrow.campaigns.record.history_file import (
    LINE_MAX_BYTES,
    MEMORY_MAX_BYTES,
    HistoryError,
    read_operations,
)
from harrow.campaigns.temporary_folder import temporary_folder
from harrow.checks.history.index import HistoryIndex

_EVENTS_OF_FILE_MAX: Final = 100_000
"""If more events of a single file remain, it takes less memory to judge it as a whole."""

Lines = Callable[[], AbstractContextManager[Iterable[bytes]]]
"""Opens a file of a history, as `harrow.campaigns.record.history_file.open_history` does."""


def read_reduced(
    files: Sequence[tuple[str, Lines]], *, line_max: int = LINE_MAX_BYTES, memory_max: int = MEMORY_MAX_BYTES
) -> HistoryIndex:
    """Read a history from *files*, which have names, and keep only what rules need.

    The numbers of operations order a history of several files. The limits are those of
    `read_operations`.

    Raises:
        HistoryError: Lines are malformed.
        ReductionError: Too much remains, or the numbers of operations are not unique.
        TablesError: DuckDB fails.

    """
    numbered = len(files) > 1
    with temporary_folder() as folder, closing(DuckDbTables(folder)) as tables:
        order = OperationOrder(numbered=numbered)
        for name, open_lines in files:
            order.begin_file()
            with open_lines() as lines:
                sink = EventColumns(tables.insert, order)
                read_operations(lines, name, sink, line_max=line_max, memory_max=memory_max)
        reduction = reduce(tables, numbered=numbered)
    order = OperationOrder(numbered=numbered)
    kept = KeptOperations(reduction.places, order)
    for name, open_lines in files:
        order.begin_file()
        with open_lines() as lines:
            read_operations(lines, name, kept, line_max=line_max, memory_max=memory_max)
    return reduced_history(reduction, kept.kept)


def read_large_file(
    path: Path,
    name: str,
    *,
    report: Callable[[int], None] = lambda _: None,
    line_max: int = LINE_MAX_BYTES,
    memory_max: int = MEMORY_MAX_BYTES,
) -> HistoryIndex | None:
    """Read a large file of lines, and keep only what rules need.

    Return None if the file has to be read as a whole: lines are unusual, or too much remains.
    Only for a file of more than *memory_max* bytes, DuckDB looks for what remains if little is
    plain. The limits are those of `read_operations`. *report* gets the bytes read so far.
    """
    reader, places = ColumnReader(), _BlockPlaces(report)
    is_large = path.stat().st_size > memory_max
    with temporary_folder() as folder:
        events = EventStore(folder)
        plain = _Plain(reader)
        try:
            with path.open("rb") as file:
                blocks = places.note(blocks_of(file, line_max), reader)
                events.fill(plain.follow(map(reader.read, blocks), may_stop=not is_large))
        except (HistoryError, LongLineError, UnusualLinesError):
            return None
        reduction = plain.reduce(events)
        if reduction is None and is_large:
            reduction = _reduced_by_duckdb(folder, events, reader)
    if reduction is None:
        return None
    positions: list[int] = []
    kept = KeptOperations(reduction.places, OperationOrder(listed=positions))
    with path.open("rb") as file:
        lines = places.lines(file, sorted(reduction.places), positions)
        read_operations(lines, name, kept, line_max=line_max, memory_max=memory_max)
    return reduced_history(reduction, kept.kept)


class _Plain:
    """Reduces a history by its plain records, unless it has too few of them."""

    def __init__(self, reader: ColumnReader) -> None:
        self._reader = reader
        self._records: PlainRecords | None = PlainRecords(_EVENTS_OF_FILE_MAX)
        self._outline = HistoryOutline()

    def follow(self, parts: Iterable[Events], *, may_stop: bool) -> Iterator[Events]:
        """Yield events, which it follows, and perhaps stop where it can no longer follow them."""
        for events in parts:
            if self._records is not None:
                try:
                    self._records.add(events)
                    self._outline.add(events)
                except TooIrregularError:
                    self._records = None
            if self._records is None and may_stop:
                return
            yield events

    def reduce(self, events: Iterable[Events]) -> Reduction | None:
        """Return the reduction of the history, or None if too much would remain."""
        if self._records is None:
            return None
        self._records.finish()
        try:
            return PlainReduction(self._records, self._outline, self._reader).reduce(
                events, _EVENTS_OF_FILE_MAX
            )
        except TooManySuspectsError:
            return None


def _reduced_by_duckdb(folder: Path, events: Iterable[Events], reader: ColumnReader) -> Reduction | None:
    with closing(DuckDbTables(folder)) as tables:
        for part in chain(events, [reader.totals()]):
            tables.insert_events(part, reader.partitions)
        try:
            return reduce(tables, events_max=_EVENTS_OF_FILE_MAX)
        except TooManySuspectsError:
            return None


class _BlockPlaces:
    """Where the blocks of a file are, and how many operations precede each."""

    def __init__(self, report: Callable[[int], None]) -> None:
        self._report = report
        self._begins = [0]
        self._firsts = [0]

    def note(self, blocks: Iterable[ByteBlock], reader: ColumnReader) -> Iterator[ByteBlock]:
        """Yield the blocks that *reader* reads one by one, and note their places."""
        for block in blocks:
            yield block
            self._begins.append(self._begins[-1] + block.size)
            self._firsts.append(reader.lines)
            self._report(self._begins[-1])

    def lines(self, file: IO[bytes], wanted: Sequence[int], positions: list[int]) -> Iterator[bytes]:
        """Yield the lines of the wanted operations, and add their positions to a list."""
        for (begin, end), (first, following) in zip(
            pairwise(self._begins), pairwise(self._firsts), strict=True
        ):
            here = wanted[bisect_left(wanted, first) : bisect_left(wanted, following)]
            if not here:
                continue
            file.seek(begin)
            lines = [line for line in file.read(end - begin).split(b"\n") if line and not line.isspace()]
            for position in here:
                if position - first < len(lines):
                    positions.append(position)
                    yield lines[position - first]
