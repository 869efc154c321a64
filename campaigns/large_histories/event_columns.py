"""Turns the operations of a history into the rows of the table `ROWS`."""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

import pyarrow as pa

from harrow.campaigns.large_histories.events import NONE, Events
from harrow.campaigns.large_histories.operation_order import OperationOrder
from harrow.campaigns.large_histories.tables import (
    ACKED,
    ASSIGNED_PARTITION,
    ASSIGNMENT,
    CALLED_SEND,
    CALLED_TXN,
    FAILED,
    INVOKED,
    LINES,
    PLACE_BITS,
    POLL_ENDED,
    POLL_INVOKED,
    POLLED,
    POLLED_IN_VAIN,
    POLLED_TOGETHER,
    PROCESS,
    SENT_NOTHING,
    UNSURE,
)
from harrow.campaigns.record import history_line
from harrow.checks.history.index import OperationColumns
from harrow.cluster_model.history import (
    ASSIGN,
    FAIL,
    INFO,
    INVOKE,
    OK,
    POLL,
    READING_OR_WRITING,
    SEND,
    SUBSCRIBE,
    TXN,
)

SCHEMA: Final = pa.schema(
    {
        "partition": pa.string(),
        "value": pa.string(),
        "record_offset": pa.int64(),
        "position": pa.int64(),
        "place": pa.int64(),
        "process": pa.int64(),
        "kind": pa.int8(),
        "together": pa.int8(),
    }
)
"""The columns of a row. Its value is text, which the engine hashes."""

HASHED_SCHEMA: Final = SCHEMA.set(1, pa.field("value", pa.int64()))
"""The columns of a row whose value is hashed already."""

_ROWS_AT_ONCE: Final = 1 << 16
_KINDS: Final = {INVOKE: INVOKED, OK: ACKED, FAIL: FAILED, INFO: UNSURE}
_ASSIGNING: Final = frozenset({ASSIGN, SUBSCRIBE})
_CHANGES_NOTHING: Final = frozenset({INVOKE, FAIL})
_PAIRS: Final = frozenset({tuple, list})


class EventColumns:
    """Collects rows, and passes them to *flush* as record batches.

    It is an `OperationSink`. *order* has the positions of the operations.
    """

    def __init__(self, flush: Callable[[pa.RecordBatch], None], order: OperationOrder) -> None:
        self._processes: set[int] = set()
        self._lines = 0
        self._passed_over = 0
        self._polled_together = False
        self._flush = flush
        self._order = order
        self._rows: list[tuple[Any, ...]] = []

    def next_number(self) -> int:
        return self._order.next_number()

    def take_any_offset(self) -> None:
        raise history_line.MalformedOperation(
            "value", "this offset needs more than 64 bits; harrow reads such a history only as one file"
        )

    def memory_bytes(self) -> int:
        return 0

    def pass_over(self, time_us: int, number: int) -> None:
        self._order.positions([number])
        self._passed_over += 1
        self._lines += 1

    def add(self, operations: OperationColumns) -> None:
        """Add the next operations."""
        processes, types, fs, values, _, numbers, rebalances = operations
        positions = self._order.positions(numbers)
        self._processes.update(processes)
        self._lines += len(processes)
        rows = self._rows
        for at, (process, type_, f, value, position) in enumerate(
            zip(processes, types, fs, values, positions, strict=True)
        ):
            if f in READING_OR_WRITING:
                if f == SEND and len(value) == 1:
                    _, partition, written = value[0]
                    offset, sent = written if type(written) in _PAIRS else (None, written)
                    rows.append((partition, _text(sent), offset, position, 0, process, _KINDS[type_], 0))
                else:
                    self._add_micros(process, type_, f, value, position)
                    if not self._polled_together and type_ != INVOKE:
                        self._note_polled_together(value, position, process, rebalances.get(at, ()))
            elif f in _ASSIGNING and type_ not in _CHANGES_NOTHING:
                self._add_row(ASSIGNMENT, position, process)
                for name in dict.fromkeys(value):
                    self._add_row(ASSIGNED_PARTITION, position, process, partition=name)
        if len(rows) >= _ROWS_AT_ONCE:
            self._flush_rows()

    def _add_micros(self, process: int, type_: str, f: str, value: Sequence[Any], position: int) -> None:
        """Add the micro-operations of a poll or a transaction.

        Only operations with several micro-operations, and completed transactions with a send, are
        transactions for the rules.
        """
        rows = self._rows
        if f == SEND and not value:
            self._add_row(SENT_NOTHING, position, process)
        sends = any(micro[0] == SEND for micro in value)
        together = 0
        if sends and (len(value) != 1 or (f == TXN and type_ != INVOKE)):
            together = CALLED_SEND if f == SEND else CALLED_TXN
        has_polled = False
        kind = POLLED if type_ == OK else POLLED_IN_VAIN
        for number, micro in enumerate(value):
            place = number << PLACE_BITS
            if micro[0] == SEND:
                _, partition, written = micro
                offset, sent = written if type(written) in _PAIRS else (None, written)
                rows.append(
                    (partition, _text(sent), offset, position, place, process, _KINDS[type_], together)
                )
            elif len(micro) > 1 and type_ != INVOKE:
                has_polled = True
                for partition, pairs in micro[1].items():
                    rows += [
                        (partition, _text(read), offset, position, at, process, kind, together)
                        for at, (offset, read) in enumerate(pairs, place)
                    ]
        if type_ == INVOKE and (len(value) != 1 or not sends):
            self._add_row(POLL_INVOKED, position, process)
        elif type_ == OK and has_polled:
            self._add_row(POLL_ENDED, position, process)

    def _note_polled_together(
        self, value: Sequence[Any], position: int, process: int, rebalanced: Collection[str]
    ) -> None:
        """Note the first operation that polled several records of a partition."""
        counts = Counter[str]()
        for micro in value:
            if micro[0] == POLL and len(micro) > 1:
                counts.update({partition: len(pairs) for partition, pairs in micro[1].items()})
        if any(count > 1 and partition not in rebalanced for partition, count in counts.items()):
            self._polled_together = True
            self._add_row(POLLED_TOGETHER, position, process)

    def _add_row(
        self, kind: int, position: int, process: int | None, *, place: int = 0, partition: str | None = None
    ) -> None:
        self._rows.append((partition, None, None, position, place, process, kind, 0))

    def finish(self) -> None:
        """Add the rows about the operations as a whole."""
        self._add_row(LINES, self._lines, self._order.split, place=self._passed_over)
        for process in sorted(self._processes):
            self._add_row(PROCESS, 0, process)
        self._flush_rows()

    def _flush_rows(self) -> None:
        columns = zip(*self._rows, strict=True)
        arrays = [_array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
        self._flush(pa.record_batch(arrays, schema=SCHEMA))
        self._rows.clear()


def batch_of_events(events: Events, partitions: Sequence[str]) -> pa.RecordBatch:
    """Return events as rows whose values are hashed. *partitions* are the names."""
    numbers = pa.array(events.partition, pa.int32(), mask=events.partition == NONE)
    names = pa.DictionaryArray.from_arrays(numbers, pa.array(partitions, pa.string()))
    offsets = pa.array(events.offset, mask=events.offset == NONE)
    _, value, _, *columns = events.columns()
    arrays = [names, pa.array(value), offsets, *map(pa.array, columns)]
    return pa.record_batch(arrays, names=SCHEMA.names)


def _text(value: str | int) -> str:
    """Return a text for a value. Equal texts and numbers are different values."""
    return f'"{value}' if isinstance(value, str) else str(value)


def _array(column: Sequence[Any], type_: pa.DataType) -> pa.Array:
    try:
        return pa.array(column, type_)
    except UnicodeEncodeError:
        # Half of a surrogate pair is no UTF-8. Its escape may equal another value, which then looks
        # suspicious too.
        escaped = (
            text if text is None else text.encode("utf-8", "backslashreplace").decode() for text in column
        )
        return pa.array(list(escaped), type_)
