"""What tasks pass on about the records of a large history: rows with arrays of many records.

A record's *key* is a number for its partition and its value. A partition is known by the hash of
its name, because a task that reads a part of the history cannot number all partitions.
"""

import pickle
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from harrow.campaigns.large_histories.byte_block import Ints

SUMMARY: Final = 0
PLACED: Final = 1
LOOSE: Final = 2
EVENTS: Final = 3
UNUSUAL: Final = 4
RANGE: Final = 5
VALUES: Final = 6
VALUE_RANGE: Final = 7
FOUND: Final = 8
WHOLE: Final = 9
OUTLINE: Final = 10
LINES_OF_RANGE: Final = 11
"""The kinds of rows. A part of the history has a summary, its records at offsets, its sends without
an offset, and its events, or it is unusual. Then there are findings about a range of offsets,
values with their partitions, findings about a range of values, events of suspects, and events of
whole partitions. If files alternate, a part also has an outline, and its lines by ranges of
numbers."""

SENT: Final = 1
LOOSE_BIT: Final = 8
"""Flags of a value in a partition, besides `ACKED_AT` and `POLLED_AT` of
`harrow.campaigns.large_histories.record_slots`. It is loose if a send did not name its offset."""

RANGE_BITS: Final = 20
"""Offsets per range, as a power of two. A task judges whole ranges."""

SUSPECTS_OF_TASK_MAX: Final = 250_000
"""Limit of suspects per task. Beyond it, SQL judges the history."""

NO_INTS: Final = np.zeros(0, np.int64)
_BATCH_BYTES: Final = 1 << 20
_FACTOR: Final = 0x1E3779B97F4A7C15

SCHEMA: Final = pa.schema(
    {"kind": pa.int32(), "partition": pa.int64(), "range": pa.int64(), "content": pa.binary()}
)


class FactRow(NamedTuple):
    """A row: its kind, the partition and the range that it belongs to, and its content, pickled."""

    kind: int
    partition: int
    range: int
    content: bytes

    def load(self) -> Any:
        return pickle.loads(self.content)  # noqa: S301 - harrow's own data


def fact_row(kind: int, content: Any, *, partition: int = 0, range_: int = 0) -> FactRow:
    return FactRow(kind, partition, range_, pickle.dumps(content, pickle.HIGHEST_PROTOCOL))


def rows_of_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[FactRow]:
    for batch in batches:
        for row in range(len(batch)):
            yield FactRow(*(column[row].as_py() for column in batch.columns))


def batches_of_rows(rows: Iterable[FactRow]) -> Iterator[pa.RecordBatch]:
    batch: list[FactRow] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += len(row.content)
        if size > _BATCH_BYTES:
            yield _batch(batch)
            batch, size = [], 0
    if batch:
        yield _batch(batch)


def _batch(rows: Iterable[FactRow]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
    return pa.record_batch(arrays, schema=SCHEMA)


def key_of(partition: Ints | int, value: Ints) -> Ints:
    """Return the keys of records, given the hashes of partitions and values."""
    keys: Ints = value + np.atleast_1d(partition) * _FACTOR
    return keys


def concatenation(parts: Iterable[Ints]) -> Ints:
    return np.concatenate([NO_INTS, *parts])
