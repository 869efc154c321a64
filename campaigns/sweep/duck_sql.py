"""Answers about a sweep by DuckDB, where there is no Spark: it reads the files as a stream too."""

from collections.abc import Sequence
from glob import escape
from pathlib import Path
from typing import Final

import duckdb

from campaigns.sweep.queries import RowOfAnswer
from campaigns.sweep.row_table import PARTITION
from campaigns.sweep.sweep_folder import RUNS

NAME: Final = "DuckDB"


class DuckSql:
    """Asks the files of a sweep's folder; there has to be one at least."""

    name = NAME
    explode = "unnest"

    def __init__(self, folder: Path) -> None:
        self._connection = duckdb.connect()
        files = f"{escape(str(folder / RUNS))}/{PARTITION}=*/*.parquet".replace("'", "''")
        # Names of campaigns stay text, also those that are numbers or dates.
        self._connection.execute(
            f"CREATE VIEW runs AS SELECT * FROM read_parquet('{files}', "  # noqa: S608 - a path, quoted
            "hive_partitioning = true, hive_types_autocast = false)"
        )

    def ask(self, query: str) -> Sequence[RowOfAnswer]:
        """Return the answer's rows."""
        return self._connection.execute(query).fetchall()
