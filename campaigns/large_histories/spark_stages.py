"""Runs the stages of a reduction by columns on Spark."""

import os
import pickle
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from harrow.campaigns.large_histories.alternating_files import SplitOutline, alternate, range_edges
from harrow.campaigns.large_histories.byte_block import Ints
from harrow.campaigns.large_histories.event_columns import HASHED_SCHEMA
from harrow.campaigns.large_histories.facts import (
    EVENTS,
    LOOSE,
    PLACED,
    SCHEMA,
    SUMMARY,
    UNUSUAL,
    WHOLE,
    FactRow,
)
from harrow.campaigns.large_histories.joined_facts import Jumps, RangeFacts, ValueFacts
from harrow.campaigns.large_histories.record_slots import TooIrregularError
from harrow.campaigns.large_histories.spark_sql import SparkTables
from harrow.campaigns.large_histories.split_facts import EventQuery, FoundEvents, SplitSummary, partly_stored
from harrow.campaigns.large_histories.split_reading import (
    events_of_rows,
    facts_of_ranges,
    facts_of_split,
    outline_of_split,
    range_facts_of_rows,
    ranges_of_split,
    table_of_ranges,
    table_of_rows,
    table_of_split,
    value_facts_of_rows,
)
from harrow.campaigns.large_histories.splits import Split, in_tasks
from harrow.campaigns.large_histories.tables import ROWS, VIEWS
from harrow.campaigns.storage.location import storage_variables

_RECORDS_PER_BATCH: Final = "spark.sql.execution.arrow.maxRecordsPerBatch"
_ROWS_AT_ONCE: Final = 16
"""Rows per Arrow batch that an executor passes to Python. A row has up to some megabytes."""

_COLLECTED_BYTES_MAX: Final = 1 << 28
"""Limit of the bytes that tasks return. Spark ends a job that returns more than a gibibyte."""

_SHUFFLE_PARTITIONS: Final = "spark.sql.shuffle.partitions"
_ROWS_OF_TASK: Final = 500_000

Batches = Iterator[pa.RecordBatch]


def for_each(
    session: SparkSession,
    parts: Sequence[Mapping[str, Any]],
    read: Callable[..., Batches],
    schema: pa.Schema,
) -> DataFrame:
    """Return what executors *read* of each part, given its keyword arguments.

    One of these is its ``split``. Small parts share a task.

    Spark sends a nested function as code. A function of this module would go by name, and executors
    would import this module, with libraries that they need not have.
    """
    tasks = in_tasks([part["split"] for part in parts])
    shipped = [pickle.dumps((read, [parts[number] for number in numbers])) for numbers in tasks]
    variables = storage_variables()

    def read_parts(batches: Iterable[pa.RecordBatch]) -> Batches:
        os.environ.update(variables)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                read, parts = pickle.loads(shipped[number])  # noqa: S301 - the driver's own data
                for part in parts:
                    yield from read(**part)

    return session.range(0, len(tasks), 1, len(tasks)).mapInArrow(read_parts, from_arrow_schema(schema))


class SparkStages:
    """The stages on the executors of a session, which store what the first stage has read.

    Afterwards, ``summaries`` has those of the parts. For a *numbered* history, ``outlines`` has
    those of the splits. If its files alternate, the parts are not splits, but ranges of numbers.
    """

    def __init__(
        self, session: SparkSession, splits: Sequence[Split], limits: Mapping[str, int], *, numbered: bool
    ) -> None:
        self.summaries: Sequence[SplitSummary] = ()
        self.outlines: Sequence[SplitOutline] = ()
        self._edges: Ints | None = None
        self._numbered = numbered
        self._splits = splits
        self._limits = limits
        self._session = session
        session.conf.set(_RECORDS_PER_BATCH, str(_ROWS_AT_ONCE))
        self._rows = session.createDataFrame([], from_arrow_schema(SCHEMA))

    def close(self) -> None:
        self._rows.unpersist()
        self._session.conf.unset(_RECORDS_PER_BATCH)

    def read(self) -> Sequence[SplitSummary] | None:
        if self._numbered and not self._find_outlines():
            return None
        # Spark never releases a local checkpoint, and cannot recompute it if an executor is lost.
        self._rows = self._facts().persist(StorageLevel.DISK_ONLY)
        rows = self._of(SUMMARY, UNUSUAL)
        if _exceed_limits(rows):
            return None
        self.summaries = [row.load() for row in _collected(rows)]
        return self.summaries

    def _find_outlines(self) -> bool:
        """Find out whether files alternate. Return whether all of them can be read like this."""
        parts = [{"split": split, "limits": self._limits} for split in self._splits]
        rows = _collected(for_each(self._session, parts, outline_of_split, SCHEMA))
        if any(row.kind == UNUSUAL for row in rows):
            return False
        self.outlines = [row.load() for row in rows]
        if alternate(self.outlines):
            self._edges = range_edges(self.outlines)
        return True

    def _facts(self) -> DataFrame:
        if self._edges is not None:
            return _mapped(self._ranges(self._edges), facts_of_ranges, limits=self._limits)
        parts = [
            {"split": split, "limits": self._limits, "numbered": self._numbered} for split in self._splits
        ]
        return for_each(self._session, parts, facts_of_split, SCHEMA)

    def _ranges(self, edges: Ints) -> DataFrame:
        """Return the lines of the ranges of numbers, one range after the other in each task."""
        parts = [{"split": split, "limits": self._limits, "edges": edges} for split in self._splits]
        lines = for_each(self._session, parts, ranges_of_split, SCHEMA)
        return lines.repartition(len(edges) + 1, "range").sortWithinPartitions("range")

    def compare(self, jumps: Jumps, whole: Ints, with_sends: Ints) -> Iterable[RangeFacts | ValueFacts]:
        parts = max(len(in_tasks(self._splits)), 2)
        by_offset = self._of(PLACED, LOOSE).repartition(parts, "partition", "range")
        values = _mapped(by_offset, range_facts_of_rows, jumps=jumps, whole=whole, parts=parts)
        facts = _mapped(values.repartition(parts, "range"), value_facts_of_rows, with_sends=with_sends)
        facts = facts.persist(StorageLevel.DISK_ONLY)
        try:
            if _exceed_limits(facts):
                raise TooIrregularError
            rows = _collected(facts)
        finally:
            facts.unpersist()
        for row in rows:
            yield row.load()

    @contextmanager
    def tables(self, partitions: Ints, known_suspects: Ints, events: int) -> Iterator[SparkTables]:
        session, count = self._session, str(max(events // _ROWS_OF_TASK, 2))
        earlier = session.conf.get(_SHUFFLE_PARTITIONS)
        session.conf.unset(_RECORDS_PER_BATCH)
        session.conf.set(_SHUFFLE_PARTITIONS, count)
        tables = SparkTables(session)
        try:
            again = partly_stored(self.summaries, partitions)
            known = {"partitions": partitions, "known_suspects": known_suspects}
            rows = _mapped(self._of(WHOLE), table_of_rows, HASHED_SCHEMA, **known, without=again)
            if again:
                rows = rows.union(self._tables_again(again, known))
            rows.repartition(int(count)).createOrReplaceTempView("hashed_rows")
            tables.define(ROWS, "select * from hashed_rows")
            for name, query in VIEWS.items():
                tables.view(name, query)
            yield tables
        finally:
            tables.close()
            session.conf.set(_SHUFFLE_PARTITIONS, str(earlier))
            session.conf.set(_RECORDS_PER_BATCH, str(_ROWS_AT_ONCE))

    def _tables_again(self, numbers: Collection[int], known: Mapping[str, Ints]) -> DataFrame:
        """Read some parts again, for tables."""
        if self._edges is not None:
            lines = self._ranges(self._edges).where(f"range in ({', '.join(map(str, sorted(numbers)))})")
            return _mapped(lines, table_of_ranges, HASHED_SCHEMA, limits=self._limits, **known)
        parts = [
            {"split": split, "limits": self._limits, "numbered": self._numbered, **known}
            for split in self._splits
            if split.number in numbers
        ]
        return for_each(self._session, parts, table_of_split, HASHED_SCHEMA)

    def find(self, query: EventQuery) -> Sequence[FoundEvents]:
        found = _mapped(self._of(EVENTS), events_of_rows, query=query)
        return [row.load() for row in _collected(found)]

    def _of(self, *kinds: int) -> DataFrame:
        return self._rows.where(f"kind in ({', '.join(map(str, kinds))})")


def _mapped(
    rows: DataFrame, task: Callable[..., Batches], schema: pa.Schema = SCHEMA, **arguments: Any
) -> DataFrame:
    shipped = pickle.dumps((task, arguments))

    def run_task(batches: Iterable[pa.RecordBatch]) -> Batches:
        task, arguments = pickle.loads(shipped)  # noqa: S301 - the driver's own data
        yield from task(batches, **arguments)

    return rows.mapInArrow(run_task, from_arrow_schema(schema))


def _exceed_limits(rows: DataFrame) -> bool:
    """Return whether a row is unusual, or all together are too large for this process."""
    [(is_unusual, size)] = rows.selectExpr(f"bool_or(kind = {UNUSUAL})", "sum(length(content))").collect()
    return bool(is_unusual) or (size or 0) > _COLLECTED_BYTES_MAX


def _collected(rows: DataFrame) -> list[FactRow]:
    return [FactRow(row[0], row[1], row[2], bytes(row[3])) for row in rows.collect()]
