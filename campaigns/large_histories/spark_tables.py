"""Computes the tables of a large history on Spark, from its files to the operations that remain.

Executors read the parts of the files. Only suspects return to this process, which judges them.
"""

import json
import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import accumulate
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from harrow.campaigns.language.problem import Problem
from harrow.campaigns.large_histories.event_columns import SCHEMA
from harrow.campaigns.large_histories.operation_order import split_of
from harrow.campaigns.large_histories.reduction import KeptOperation, Reduction, reduce, reduced_history
from harrow.campaigns.large_histories.split_reading import kept_of_split, rows_of_split
from harrow.campaigns.large_histories.splits import Split, lines_before
from harrow.campaigns.large_histories.tables import LINES, NOT_PLAIN, ROWS, VIEWS
from harrow.campaigns.record.history_file import HistoryError
from harrow.campaigns.storage.location import storage_variables
from harrow.campaigns.sweep.engine import EngineError
from harrow.campaigns.sweep.spark_engine import ship_code
from harrow.campaigns.sweep.spark_session import in_short
from harrow.campaigns.temporary_folder import temporary_folder
from harrow.checks.history.index import HistoryIndex

_PARTS_MIN: Final = 2
_KEPT: Final = "kept"
_Batches = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


class SparkTables:
    """Tables in a Spark session. Each is stored on the executors when it is first used."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._stored: list[DataFrame] = []

    def define(self, name: str, query: str) -> None:
        self.store(name, self._session.sql(query))

    def store(self, name: str, rows: DataFrame) -> None:
        self._stored.append(rows.persist())
        rows.createOrReplaceTempView(name)

    def rows(self, query: str) -> Sequence[tuple[Any, ...]]:
        return [tuple(row) for row in self._session.sql(query).collect()]

    def close(self) -> None:
        for rows in reversed(self._stored):
            rows.unpersist()


def read_on_spark(
    session: SparkSession, splits: Sequence[Split], *, numbered: bool, **limits: int
) -> HistoryIndex:
    """Read a history from the parts of its files, and keep only what rules need.

    If it is *numbered*, the numbers of operations order them. *limits* are ``line_max`` and
    ``unpacked_max`` of `harrow.campaigns.record.history_file`.

    Raises:
        HistoryError: Lines are malformed.
        ReductionError: Too much remains, or the numbers of operations are not unique.
        EngineError: Spark cannot run tasks.

    """
    with ExitStack() as opened:
        ship_code(session, opened.enter_context(temporary_folder()))
        # A table has about as many rows as the files have lines, so it gets as many parts.
        session.conf.set("spark.sql.shuffle.partitions", str(max(len(splits), _PARTS_MIN)))
        tables = SparkTables(session)
        opened.callback(tables.close)
        try:
            rows = _for_each(session, len(splits), _read_rows(splits, limits, numbered=numbered), SCHEMA)
            rows.createOrReplaceTempView("text_rows")
            tables.define(
                ROWS,
                "select * except (value), case when kind <= 5 then xxhash64(value) end as value from text_rows",
            )
            _raise_problems(
                splits, tables.rows(f"select partition, process from {ROWS} where kind = {NOT_PLAIN}")
            )
            for name, query in VIEWS.items():
                session.sql(query).createOrReplaceTempView(name)
            reduction = reduce(tables, numbered=numbered)
            sizes = dict(tables.rows(f"select process, position from {ROWS} where kind = {LINES}"))
            kept = _kept_on_spark(session, splits, reduction, sizes, limits, numbered=numbered)
        except HistoryError:
            raise
        except Exception as error:
            if not type(error).__module__.startswith(("pyspark", "py4j", "grpc")):
                raise
            message = f"Spark cannot judge the history: {in_short(error)} (executors need Python, pyarrow and pydantic-core)"
            raise EngineError(message) from error
    return reduced_history(reduction, kept)


def _for_each(session: SparkSession, count: int, task: _Batches, schema: pa.Schema) -> DataFrame:
    """Return the rows of a task for each number below *count*."""
    return session.range(0, count, 1, count).mapInArrow(task, from_arrow_schema(schema))


def _read_rows(splits: Sequence[Split], limits: Mapping[str, int], *, numbered: bool) -> _Batches:
    """Return the function with which executors read the rows of parts.

    Spark sends a nested function as code. A function of this module would go by name, and executors
    would import this module, with libraries that they need not have.
    """
    shipped = pickle.dumps((tuple(splits), dict(limits), numbered))
    variables = storage_variables()

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        os.environ.update(variables)
        splits, limits, numbered = pickle.loads(shipped)  # noqa: S301 - the driver's own data
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from rows_of_split(splits[number], limits, numbered=numbered)

    return read


def _raise_problems(splits: Sequence[Split], rows: Iterable[tuple[Any, ...]]) -> None:
    """Raise `HistoryError` if parts are malformed."""
    problems: list[Problem] = []
    more = 0
    for text, number in sorted(rows, key=lambda row: row[1]):
        split = splits[number]
        found, others = json.loads(text)
        more += others
        before = lines_before(split) if split.begin else 0
        problems += [Problem(split.name, before + line, column, message) for line, column, message in found]
    if problems:
        raise HistoryError(problems[:20], more + len(problems[20:]))


def _kept_on_spark(
    session: SparkSession,
    splits: Sequence[Split],
    reduction: Reduction,
    sizes: Mapping[int, int],
    limits: Mapping[str, int],
    *,
    numbered: bool,
) -> list[KeptOperation]:
    """Read the operations that remain, from the parts of the files that have some."""
    firsts = accumulate((sizes[split.number] for split in splits), initial=0)
    by_split: dict[int, dict[int, Any]] = {}
    if numbered:
        by_split = {split.number: dict(reduction.places) for split in splits if reduction.places}
    else:
        for position, places in reduction.places.items():
            by_split.setdefault(split_of(position), {})[position] = places
    parts = [
        (split, first, by_split[split.number])
        for split, first in zip(splits, firsts, strict=False)
        if split.number in by_split
    ]
    if not parts:
        return []
    schema = pa.schema({_KEPT: pa.binary()})
    rows = _for_each(session, len(parts), _read_kept(parts, limits, numbered=numbered), schema)
    return [kept for row in rows.collect() for kept in pickle.loads(row[0])]  # noqa: S301 - harrow's own data


def _read_kept(parts: Sequence[Any], limits: Mapping[str, int], *, numbered: bool) -> _Batches:
    """Return the function with which executors read the operations that remain of parts."""
    shipped = pickle.dumps((tuple(parts), dict(limits), numbered))
    variables = storage_variables()

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        os.environ.update(variables)
        parts, limits, numbered = pickle.loads(shipped)  # noqa: S301 - the driver's own data
        for batch in batches:
            for number in batch.column(0).to_pylist():
                split, first_number, places = parts[number]
                kept = kept_of_split(split, first_number, places, limits, numbered=numbered)
                yield pa.record_batch([pa.array([pickle.dumps(kept)], pa.binary())], names=[_KEPT])

    return read
