"""Computes the tables of a large history with DuckDB, in bounded memory."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa

from harrow.campaigns.large_histories.event_columns import batch_of_events
from harrow.campaigns.large_histories.events import Events
from harrow.campaigns.large_histories.tables import ROWS, VIEWS, TablesError

MEMORY_BYTES: Final = 256 << 20
"""How much memory DuckDB may use. What does not fit is on disk."""

_ROWS_AT_ONCE: Final = 10_000
_COLUMNS: Final = """
partition varchar, value bigint, record_offset bigint, position bigint, place bigint, process bigint,
kind tinyint, together tinyint
"""


class DuckDbTables:
    """Tables in DuckDB, which uses *folder* for what does not fit into memory."""

    def __init__(self, folder: Path) -> None:
        settings: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": f"{MEMORY_BYTES}B",
            "temp_directory": str(folder),
            "threads": "1",
        }
        self._connection = duckdb.connect(config=settings)
        self._execute(f"create table {ROWS} ({_COLUMNS})")
        for name, query in VIEWS.items():
            self._execute(f"create view {name} as {query}")

    def insert(self, batch: pa.RecordBatch) -> None:
        """Add rows of the history, and hash their values."""
        self._insert(batch, "* replace ((hash(value) >> 1)::bigint as value)")

    def insert_events(self, events: Events, partitions: Sequence[str]) -> None:
        """Add rows of the history whose values are hashed already. *partitions* are the names."""
        self._insert(batch_of_events(events, partitions), "*")

    def _insert(self, batch: pa.RecordBatch, columns: str) -> None:
        self._connection.register("batch", batch)
        self._execute(f"insert into {ROWS} select {columns} from batch")
        self._connection.unregister("batch")

    def define(self, name: str, query: str) -> None:
        self._execute(f"create temp table {name} as {query}")

    def view(self, name: str, query: str) -> None:
        self._execute(f"create temp view {name} as {query}")

    def load(self, name: str, table: pa.Table) -> None:
        self._connection.register(f"{name}_loaded", table)
        self.define(name, f"select * from {name}_loaded")
        self._connection.unregister(f"{name}_loaded")

    def stream(self, query: str) -> Iterator[tuple[Any, ...]]:
        cursor = self._execute(query)
        while rows := cursor.fetchmany(_ROWS_AT_ONCE):
            yield from rows

    def rows(self, query: str) -> Sequence[tuple[Any, ...]]:
        return self._execute(query).fetchall()

    def _execute(self, statement: str) -> duckdb.DuckDBPyConnection:
        try:
            return self._connection.execute(statement)
        except RuntimeError as error:
            # DuckDB handles Ctrl-C itself.
            raise KeyboardInterrupt from error
        except duckdb.Error as error:
            raise TablesError(f"DuckDB cannot judge the history: {str(error).splitlines()[0]}") from error

    def close(self) -> None:
        self._connection.close()
