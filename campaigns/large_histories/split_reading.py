"""What executors do with a part of a history. They need pyarrow and pydantic-core only."""

import json
import pickle
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pyarrow as pa

from harrow.campaigns.large_histories.event_columns import SCHEMA, EventColumns
from harrow.campaigns.large_histories.operation_order import OperationOrder
from harrow.campaigns.large_histories.reduction import KeptOperations
from harrow.campaigns.large_histories.splits import Split
from harrow.campaigns.large_histories.tables import NOT_PLAIN
from harrow.campaigns.record.history_file import HistoryError, read_operations

KEPT_SCHEMA: Final = pa.schema({"kept": pa.binary()})
"""The column of the operations that remain: lists of `KeptOperation`."""


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


def kept_of_split(
    split: Split, limits: dict[str, int], *, numbered: bool, first_number: int, places: Mapping[int, Any]
) -> Iterator[pa.RecordBatch]:
    """Yield the operations of a part that remain, pickled."""
    order = OperationOrder(numbered=numbered, split=split.number, first_number=first_number)
    sink = KeptOperations(places, order)
    read_operations(split.lines(**limits), split.name, sink, line_max=limits["line_max"])
    yield pa.record_batch([pa.array([pickle.dumps(sink.kept)], pa.binary())], schema=KEPT_SCHEMA)
