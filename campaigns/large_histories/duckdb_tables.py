"""Computes the tables of a large history with DuckDB, in bounded memory."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import duckdb
import pyarrow as pa

from harrow.campaigns.large_histories.json_scan import INSERT_JSON_LINES, INSERT_SIZE, MACROS
from harrow.campaigns.large_histories.tables import NOT_PLAIN, ROWS, VIEWS, TablesError

MEMORY_BYTES: Final = 256 << 20
"""How much memory DuckDB may use. What does not fit is on disk."""

_PATTERN: Final = re.compile(r"[*?\[]")
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
        for macro in MACROS:
            self._execute(macro)
        self._execute(f"create table {ROWS} ({_COLUMNS})")
        for name, query in VIEWS.items():
            self._execute(f"create view {name} as {query}")

    def insert(self, batch: pa.RecordBatch) -> None:
        """Add rows of the history, and hash their values."""
        self._connection.register("batch", batch)
        self._execute(f"insert into {ROWS} select * replace (hash_of(value) as value) from batch")
        self._connection.unregister("batch")

    def insert_json_lines(self, path: Path, line_max: int) -> bool:
        """Add the rows of a file, and return whether all its lines are plain.

        A line longer than *line_max* bytes is not. If one is not plain, rows may be missing.
        """
        if _PATTERN.search(str(path)):
            return False  # DuckDB would read it as a pattern
        try:
            self._execute(INSERT_JSON_LINES, {"path": str(path), "line_max": line_max})
        except TablesError:
            return False
        self._execute(INSERT_SIZE)
        return not self.rows(f"select 1 from {ROWS} where kind = {NOT_PLAIN} limit 1")

    def define(self, name: str, query: str) -> None:
        self._execute(f"create temp table {name} as {query}")

    def rows(self, query: str) -> Sequence[tuple[Any, ...]]:
        return self._execute(query).fetchall()

    def _execute(
        self, statement: str, values: Mapping[str, object] | None = None
    ) -> duckdb.DuckDBPyConnection:
        try:
            return self._connection.execute(statement, values)
        except RuntimeError as error:
            # DuckDB handles Ctrl-C itself.
            raise KeyboardInterrupt from error
        except duckdb.Error as error:
            raise TablesError(f"DuckDB cannot judge the history: {str(error).splitlines()[0]}") from error

    def close(self) -> None:
        self._connection.close()
