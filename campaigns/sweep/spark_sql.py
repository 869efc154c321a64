"""Answers about a sweep by Spark SQL, over the Parquet files."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from campaigns.sweep.queries import RowOfAnswer
from campaigns.sweep.sweep_folder import RUNS

NAME: Final = "Spark SQL"


class SparkSql:
    """Asks the files of a sweep's folder, which the session's executors have to see."""

    name = NAME
    explode = "explode"

    def __init__(self, session: SparkSession, folder: Path) -> None:
        self._session = session
        # To Spark a path is a pattern.
        path = re.sub(r"([\\*?{}\[\]])", r"\\\1", str((folder / RUNS).absolute()))
        session.read.parquet(path).createOrReplaceTempView("runs")

    def ask(self, query: str) -> Sequence[RowOfAnswer]:
        """Return the answer's rows."""
        return [tuple(row) for row in self._session.sql(query).collect()]
