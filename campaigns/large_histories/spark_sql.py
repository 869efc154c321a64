"""Computes the tables of a large history with Spark SQL."""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema


class SparkTables:
    """Tables in a Spark session.

    A table is computed and stored on the executors when it is defined. Spark then knows its size,
    and joins a small table without a shuffle.
    """

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._stored: list[DataFrame] = []

    def define(self, name: str, query: str) -> None:
        # The plan of a persisted table has the plans of those below it, each as often as it is
        # used: Spark's driver ran out of memory when it printed them.
        rows = self._session.sql(query).localCheckpoint()
        self._stored.append(rows)
        rows.createOrReplaceTempView(name)

    def view(self, name: str, query: str) -> None:
        self._session.sql(query).createOrReplaceTempView(name)

    def load(self, name: str, table: pa.Table) -> None:
        rows = [tuple(row.values()) for row in table.to_pylist()]
        self._session.createDataFrame(rows, from_arrow_schema(table.schema)).createOrReplaceTempView(name)

    def rows(self, query: str) -> Sequence[tuple[Any, ...]]:
        return [tuple(row) for row in self._session.sql(query).collect()]

    def stream(self, query: str) -> Iterator[tuple[Any, ...]]:
        for batch in self._session.sql(query).toArrow().to_batches():
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)

    def close(self) -> None:
        for rows in self._stored:
            _release(rows)


def _release(rows: DataFrame) -> None:
    """Release a local checkpoint, which `DataFrame.unpersist` does not know.

    Without a JVM in this process, Spark Connect's server releases it when Python forgets *rows*.
    """
    java = getattr(rows, "_jdf", None)
    if java is not None:
        java.queryExecution().analyzed().rdd().unpersist(False)
