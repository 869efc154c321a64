"""Answers about a sweep by DuckDB, where there is no Spark: it reads the files as a stream too."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import duckdb

from campaigns.sweep.queries import RowOfAnswer
from campaigns.sweep.sweep_folder import RUNS

NAME: Final = "DuckDB"


class DuckSql:
    """Asks the files of a sweep's folder; there has to be one at least."""

    name = NAME
    explode = "unnest"

    def __init__(self, folder: Path) -> None:
        self._connection = duckdb.connect()
        rows = self._connection.read_parquet(str(folder / RUNS / "*" / "*.parquet"), hive_partitioning=True)
        rows.create_view("runs")

    def ask(self, query: str) -> Sequence[RowOfAnswer]:
        """Return the answer's rows."""
        return self._connection.execute(query).fetchall()
