"""Computes the tables of a large history on Spark, from its files to the operations that remain.

Executors read the parts of the files. Only suspects return to this process, which judges them.
"""

import json
import pickle
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from itertools import accumulate
from typing import Any, Final

from pyspark.sql import SparkSession

from harrow.campaigns.language.problem import Problem
from harrow.campaigns.large_histories.event_columns import SCHEMA
from harrow.campaigns.large_histories.operation_order import split_of
from harrow.campaigns.large_histories.range_reduction import TooManyJumpsError, reduce_by_ranges
from harrow.campaigns.large_histories.record_slots import TooIrregularError
from harrow.campaigns.large_histories.reduction import (
    KeptOperation,
    Reduction,
    TooManySuspectsError,
    reduce,
    reduced_history,
)
from harrow.campaigns.large_histories.spark_sql import SparkTables
from harrow.campaigns.large_histories.spark_stages import Batches, SparkStages, for_each
from harrow.campaigns.large_histories.split_reading import (
    KEPT_SCHEMA,
    kept_lines_of_split,
    kept_of_split,
    rows_of_split,
)
from harrow.campaigns.large_histories.splits import Split, in_tasks, lines_before
from harrow.campaigns.large_histories.tables import LINES, NOT_PLAIN, ROWS, VIEWS
from harrow.campaigns.record.history_file import HistoryError
from harrow.campaigns.sweep.engine import EngineError
from harrow.campaigns.sweep.spark_engine import ship_code
from harrow.campaigns.sweep.spark_session import in_short
from harrow.campaigns.temporary_folder import temporary_folder
from harrow.checks.history.index import HistoryIndex

_PARTS_MIN: Final = 2


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
    with ExitStack() as resources:
        ship_code(session, resources.enter_context(temporary_folder()))
        # A table has about as many rows as the files have lines, so it gets as many tasks.
        session.conf.set("spark.sql.shuffle.partitions", str(max(len(in_tasks(splits)), _PARTS_MIN)))
        try:
            read = _by_columns(session, splits, limits, numbered=numbered)
            reduction, kept = read or _by_tables(session, splits, limits, resources, numbered=numbered)
        except HistoryError:
            raise
        except Exception as error:
            if not type(error).__module__.startswith(("pyspark", "py4j", "grpc")):
                raise
            message = f"Spark cannot judge the history: {in_short(error)} (executors need Python, NumPy, pyarrow and pydantic-core)"
            raise EngineError(message) from error
    return reduced_history(reduction, kept)


_Read = tuple[Reduction, list[KeptOperation]]


def _by_columns(
    session: SparkSession,
    splits: Sequence[Split],
    limits: dict[str, int],
    *,
    numbered: bool,
) -> _Read | None:
    """Reduce a history of plain records; return None if it is not one."""
    with closing(SparkStages(session, splits, limits, numbered=numbered)) as stages:
        try:
            reduction = reduce_by_ranges(stages)
        except (TooIrregularError, TooManyJumpsError, TooManySuspectsError):
            return None
    if reduction is None:
        return None
    parts = [{"split": split, "limits": limits, "numbered": numbered} for split in splits]
    sizes: Mapping[int, int] = {}
    if numbered:
        positions = sorted(reduction.places)
        places: _Places = {
            outline.split: {
                position: reduction.places[position]
                for position in positions[
                    bisect_left(positions, outline.first[0]) : bisect_right(positions, outline.last[-1])
                ]
            }
            for outline in stages.outlines
            if len(outline.first)
        }
    else:
        sizes = {summary.split: summary.lines for summary in stages.summaries}
        places = _places_by_split(reduction, split_of)
    return reduction, _kept_on_spark(session, parts, kept_lines_of_split, places, sizes)


def _by_tables(
    session: SparkSession,
    splits: Sequence[Split],
    limits: dict[str, int],
    resources: ExitStack,
    *,
    numbered: bool,
) -> _Read:
    """Reduce any history."""
    tables = SparkTables(session)
    resources.callback(tables.close)
    parts = [{"split": split, "limits": limits, "numbered": numbered} for split in splits]
    for_each(session, parts, rows_of_split, SCHEMA).createOrReplaceTempView("text_rows")
    tables.define(
        ROWS,
        "select * except (value), case when kind <= 5 then xxhash64(value) end as value from text_rows",
    )
    _raise_problems(splits, tables.rows(f"select partition, process from {ROWS} where kind = {NOT_PLAIN}"))
    for name, query in VIEWS.items():
        tables.view(name, query)
    reduction = reduce(tables, numbered=numbered)
    sizes = dict(tables.rows(f"select process, position from {ROWS} where kind = {LINES}"))
    places = (
        {split.number: reduction.places for split in splits}
        if numbered
        else _places_by_split(reduction, split_of)
    )
    return reduction, _kept_on_spark(session, parts, kept_of_split, places, sizes)


_Places = Mapping[int, Mapping[int, Any]]


def _places_by_split(reduction: Reduction, split_of_position: Callable[[int], int]) -> _Places:
    by_split: dict[int, dict[int, Any]] = {}
    for position, places in reduction.places.items():
        by_split.setdefault(split_of_position(position), {})[position] = places
    return by_split


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
    parts: Sequence[Mapping[str, Any]],
    read: Callable[..., Batches],
    places: _Places,
    sizes: Mapping[int, int],
) -> list[KeptOperation]:
    """Read the operations that remain, from the parts of the files that have some.

    *sizes* count the operations of each part, unless the history numbers them.
    """
    firsts = accumulate((sizes.get(part["split"].number, 0) for part in parts), initial=0)
    kept_parts = [
        {**part, "first_number": first_number, "places": places[part["split"].number]}
        for part, first_number in zip(parts, firsts, strict=False)
        if places.get(part["split"].number)
    ]
    if not kept_parts:
        return []
    rows = for_each(session, kept_parts, read, KEPT_SCHEMA).collect()
    return [kept for row in rows for kept in pickle.loads(row[0])]  # noqa: S301 - harrow's own data
