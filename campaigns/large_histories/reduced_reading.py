"""Reads a history of any size into an index of the records that rules need, on this machine."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Final

from harrow.campaigns.large_histories.duckdb_tables import DuckDbTables
from harrow.campaigns.large_histories.event_columns import EventColumns
from harrow.campaigns.large_histories.operation_order import OperationOrder
from harrow.campaigns.large_histories.reduction import (
    KeptOperations,
    TooManySuspectsError,
    reduce,
    reduced_history,
)
from harrow.campaigns.record.history_file import LINE_MAX_BYTES, MEMORY_MAX_BYTES, read_operations
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


def read_json_lines(
    path: Path,
    name: str,
    open_lines: Lines,
    *,
    line_max: int = LINE_MAX_BYTES,
    memory_max: int = MEMORY_MAX_BYTES,
) -> HistoryIndex | None:
    """Read a large file of JSON lines, and keep only what rules need.

    Return None if the file has to be read as a whole: lines are unusual, or too much remains.
    The parameters are those of `read_reduced`.
    """
    with temporary_folder() as folder, closing(DuckDbTables(folder)) as tables:
        if not tables.insert_json_lines(path, line_max):
            return None
        try:
            reduction = reduce(tables, events_max=_EVENTS_OF_FILE_MAX)
        except TooManySuspectsError:
            return None
    positions: list[int] = []
    kept = KeptOperations(reduction.places, OperationOrder(listed=positions))
    with open_lines() as lines:
        wanted = _wanted_lines(lines, reduction.places, positions)
        read_operations(wanted, name, kept, line_max=line_max, memory_max=memory_max)
    return reduced_history(reduction, kept.kept)


def _wanted_lines(lines: Iterable[bytes], wanted: Collection[int], positions: list[int]) -> Iterator[bytes]:
    """Yield the wanted lines, and add their positions to a list."""
    position = 0
    for line in lines:
        if not line.isspace():
            if position in wanted:
                positions.append(position)
                yield line
            position += 1
