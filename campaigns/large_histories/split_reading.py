"""What executors do with a history. They need pyarrow, pydantic-core and NumPy only."""

import json
import pickle
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from harrow.campaigns.large_histories.alternating_files import (
    MergedPart,
    merged_parts,
    outline_rows,
    range_rows,
)
from harrow.campaigns.large_histories.byte_block import Ints
from harrow.campaigns.large_histories.event_columns import (
    HASHED_SCHEMA,
    SCHEMA,
    EventColumns,
    batch_of_events,
)
from harrow.campaigns.large_histories.events import Events
from harrow.campaigns.large_histories.facts import FactRow, batches_of_rows, rows_of_batches
from harrow.campaigns.large_histories.joined_facts import Jumps, compare_offsets, compare_values
from harrow.campaigns.large_histories.operation_order import OperationOrder
from harrow.campaigns.large_histories.reduction import KeptOperations
from harrow.campaigns.large_histories.split_facts import (
    EventQuery,
    events_for_tables,
    found_rows,
    kept_lines,
    read_split,
    stored_events_for_tables,
)
from harrow.campaigns.large_histories.splits import Split
from harrow.campaigns.large_histories.tables import NOT_PLAIN
from harrow.campaigns.record.history_file import HistoryError, read_operations

Batches = Iterator[pa.RecordBatch]

KEPT_SCHEMA: Final = pa.schema({"kept": pa.binary()})
"""The column of the operations that remain: lists of `KeptOperation`."""


def facts_of_split(split: Split, limits: dict[str, int], *, numbered: bool) -> Batches:
    return batches_of_rows(read_split(split, limits, numbered=numbered))


def outline_of_split(split: Split, limits: dict[str, int]) -> Batches:
    return batches_of_rows(outline_rows(split, limits))


def ranges_of_split(split: Split, limits: dict[str, int], edges: Ints) -> Batches:
    return batches_of_rows(range_rows(split, limits, edges))


def facts_of_ranges(batches: Batches, limits: dict[str, int]) -> Batches:
    """Yield the facts of the ranges whose lines come one range after the other."""
    return batches_of_rows(
        row
        for part in merged_parts(rows_of_batches(batches))
        for row in ((part,) if isinstance(part, FactRow) else read_split(part, limits, numbered=True))
    )


def table_of_ranges(
    batches: Batches, limits: dict[str, int], partitions: Ints, known_suspects: Ints
) -> Batches:
    for part in merged_parts(rows_of_batches(batches)):
        assert isinstance(part, MergedPart), "the first stage has read all parts"
        yield from _tables(events_for_tables(part, limits, partitions, known_suspects, numbered=True))


def range_facts_of_rows(batches: Batches, jumps: Jumps, whole: Ints, parts: int) -> Batches:
    return batches_of_rows(compare_offsets(rows_of_batches(batches), jumps, whole, parts))


def value_facts_of_rows(batches: Batches, with_sends: Ints) -> Batches:
    return batches_of_rows(compare_values(rows_of_batches(batches), with_sends))


def events_of_rows(batches: Batches, query: EventQuery) -> Batches:
    return batches_of_rows(found_rows(rows_of_batches(batches), query))


def table_of_split(
    split: Split, limits: dict[str, int], partitions: Ints, known_suspects: Ints, *, numbered: bool
) -> Batches:
    return _tables(events_for_tables(split, limits, partitions, known_suspects, numbered=numbered))


def table_of_rows(
    batches: Batches, partitions: Ints, known_suspects: Ints, without: Collection[int]
) -> Batches:
    return _tables(stored_events_for_tables(rows_of_batches(batches), partitions, known_suspects, without))


def _tables(parts: Iterable[tuple[Events, Sequence[str]]]) -> Batches:
    for events, names in parts:
        columns = batch_of_events(events, names).columns
        arrays = [column.cast(field.type) for column, field in zip(columns, HASHED_SCHEMA, strict=True)]
        yield pa.record_batch(arrays, schema=HASHED_SCHEMA)


def rows_of_split(split: Split, limits: dict[str, int], *, numbered: bool) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a part. If it is malformed, its only row has the problems."""
    found: list[pa.RecordBatch] = []
    sink = EventColumns(found.append, OperationOrder(numbered=numbered, split=split.number))
    try:
        read_operations(split.lines(**limits), split.name, sink, line_max=limits["line_max"])
    except HistoryError as error:
        problems = [(problem.line, problem.column, problem.message) for problem in error.problems]
        text = json.dumps([problems, error.more])
        row = (text, None, None, None, None, split.number, NOT_PLAIN, None)
        arrays = [pa.array([value], field.type) for value, field in zip(row, SCHEMA, strict=True)]
        yield pa.record_batch(arrays, schema=SCHEMA)
        return
    yield from found


def kept_lines_of_split(
    split: Split, limits: dict[str, int], *, first_number: int, places: Mapping[int, Any], numbered: bool
) -> Iterator[pa.RecordBatch]:
    """Yield the operations of a part that remain, pickled. Each has a line of its own."""
    positions = sorted(places)
    order = OperationOrder(
        numbered=numbered,
        split=split.number,
        first_number=first_number,
        listed=None if numbered else positions,
    )
    sink = KeptOperations(places, order)
    lines = kept_lines(split, limits, np.array(positions, np.int64), numbered=numbered)
    read_operations(lines, split.name, sink, line_max=limits["line_max"])
    yield pa.record_batch([pa.array([pickle.dumps(sink.kept)], pa.binary())], schema=KEPT_SCHEMA)


def kept_of_split(
    split: Split, limits: dict[str, int], *, numbered: bool, first_number: int, places: Mapping[int, Any]
) -> Iterator[pa.RecordBatch]:
    """Yield the operations of a part that remain, pickled."""
    order = OperationOrder(numbered=numbered, split=split.number, first_number=first_number)
    sink = KeptOperations(places, order)
    read_operations(split.lines(**limits), split.name, sink, line_max=limits["line_max"])
    yield pa.record_batch([pa.array([pickle.dumps(sink.kept)], pa.binary())], schema=KEPT_SCHEMA)
