"""Reads a history of any size into an index of the records that rules need, on this machine."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import Any, Final

from harrow.campaigns.large_histories.duckdb_tables import DuckDbTables
from harrow.campaigns.large_histories.event_columns import EventColumns
from harrow.campaigns.large_histories.operation_order import OperationOrder
from harrow.campaigns.large_histories.reduction import KeptOperations, Reduction, reduce, reduced_history
from harrow.campaigns.record.history_file import read_operations
from harrow.campaigns.temporary_folder import temporary_folder
from harrow.checks.history.index import HistoryIndex

EVENTS_MAX: Final = 1_000_000
"""How many events of suspects are judged together. Each takes up to a kilobyte."""

Lines = Callable[[], AbstractContextManager[Iterable[bytes]]]
"""Opens a file of a history, as `harrow.campaigns.record.history_file.open_history` does."""


def read_reduced(
    files: Sequence[tuple[str, Lines]], *, json_lines: Path | None = None, **limits: Any
) -> HistoryIndex:
    """Read a history from *files*, which have names, and keep only what rules need.

    A history of several files is ordered by the numbers of its operations. *json_lines* is the path
    of a single file that DuckDB may read itself. *limits* are those of `read_operations`.

    Raises:
        HistoryError: Lines are malformed.
        TooManySuspectsError: More remains than `EVENTS_MAX`.

    """
    with temporary_folder() as folder:
        if json_lines is not None:
            with closing(DuckDbTables(folder)) as tables:
                if tables.insert_json_lines(json_lines):
                    return _read_wanted_lines(files[0], reduce(tables, events_max=EVENTS_MAX), limits)
        with closing(DuckDbTables(folder)) as tables:
            order = OperationOrder(numbered=len(files) > 1)
            for name, open_lines in files:
                order.begin_file()
                with open_lines() as lines:
                    read_operations(lines, name, EventColumns(tables.insert, order), **limits)
            reduction = reduce(tables, events_max=EVENTS_MAX)
    order = OperationOrder(numbered=len(files) > 1)
    sink = KeptOperations(reduction.places, order)
    for name, open_lines in files:
        order.begin_file()
        with open_lines() as lines:
            read_operations(lines, name, sink, **limits)
    return reduced_history(reduction, sink.kept)


def _read_wanted_lines(file: tuple[str, Lines], reduction: Reduction, limits: dict[str, Any]) -> HistoryIndex:
    """Read only the lines of operations that are needed."""
    name, open_lines = file
    with open_lines() as lines:
        wanted = dict(wanted_lines(lines, reduction.places))
    sink = KeptOperations(reduction.places, OperationOrder(listed=list(wanted)))
    read_operations(wanted.values(), name, sink, **limits)
    return reduced_history(reduction, sink.kept)


def wanted_lines(
    lines: Iterable[bytes], positions: Collection[int], *, first_position: int = 0
) -> Iterator[tuple[int, bytes]]:
    """Yield the lines at some positions. A line has one operation, or is blank."""
    position = first_position
    for line in lines:
        if not line.isspace():
            if position in positions:
                yield position, line
            position += 1
