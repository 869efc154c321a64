"""Makes the links of a chain from the operations of a history.

Jepsen uses plain numbers for values and partitions. The links name them so that a reader knows
which number is which.
"""

from collections.abc import Iterable
from typing import Annotated, Final

from harrow.checks.history.index import HistoryIndex
from harrow.checks.history.records import ACKED, FAILED, UNKNOWN, Pair, PartitionHistory, Value
from harrow.checks.link import IN_HISTORY, Link, RecordValue, link
from harrow.cluster_model import events

SKIPPED_SHOWN: Final = 8
"""The maximal number of skipped records that a finding names."""

AFTER_LOSS: Final = "after_loss"
"""The key of a detail: whether the record was lost, so that what permits the loss permits the
anomaly."""

READ_DRY: Final = "read_dry"
"""The key of a detail: whether a process polled the partition to its end after the ack."""

_CLAIMS_SHOWN: Final = 10
_TEXT_MAX: Final = 200

OperationId = Annotated[tuple[int, int], events.FieldKind.OBJECT]
"""An operand for an operation: its number in the history, and its process."""


def operation_text(operation: OperationId) -> str:
    """Name an operation: ``operation 17 of process 3``."""
    return f"operation {operation[0]} of process {operation[1]}"


def record_text(value: Value) -> str:
    """Name a record by its value: ``m0``, or ``value 5`` if that is a number, as in Jepsen."""
    return f"value {value}" if isinstance(value, int) else _shortened(value)


def partition_text(name: str) -> str:
    """Name a partition: ``t-0``, or ``partition 1`` if that is a number, as in Jepsen."""
    return f"partition {name}" if name.isdecimal() else _shortened(name)


def _shortened(text: str) -> str:
    """Format a text for a terminal: escape unprintable characters, and cut a long text."""
    if len(text) > _TEXT_MAX:
        text = f"{text[:_TEXT_MAX]}... ({len(text)} characters)"
    return text if text.isprintable() else ascii(text)[1:-1]


def _send_text(value: Value, outcome: str, offset: int | None, operation: OperationId) -> str:
    place = "" if offset is None else f" at offset {offset}"
    return f"{record_text(value)} {outcome}{place} ({operation_text(operation)})"


@link(
    "send-acked",
    events.BatchAcknowledged,
    events.ClientEnded,
    event="acked",
    impersonal=True,
    needs_nothing_because=IN_HISTORY,
)
def send_acked(*, value: RecordValue, operation: OperationId, offset: events.Offset | None = None) -> str:
    return _send_text(value, "acked", offset, operation)


@link("send-failed", impersonal=True, needs_nothing_because=IN_HISTORY)
def send_failed(*, value: RecordValue, operation: OperationId, offset: events.Offset | None = None) -> str:
    return _send_text(value, "sent in vain", offset, operation)


@link("send-unsure", impersonal=True, needs_nothing_because=IN_HISTORY)
def send_unsure(*, value: RecordValue, operation: OperationId, offset: events.Offset | None = None) -> str:
    return _send_text(value, "sent, with an unknown outcome,", offset, operation)


@link("polled", events.ClientPolled, impersonal=True, needs_nothing_because=IN_HISTORY)
def polled_by(*, value: RecordValue, offset: events.Offset, operation: OperationId) -> str:
    return f"{record_text(value)} polled at offset {offset} ({operation_text(operation)})"


@link("claims-folded", event="folded", impersonal=True, needs_nothing_because=IN_HISTORY)
def claims_folded(*, count: events.Number) -> str:
    return f"({count} more)"


_OUTCOMES: Final = {ACKED: send_acked, FAILED: send_failed}


def operation(history: HistoryIndex, position: int) -> OperationId:
    return history.numbers[position], history.processes[position]


def end_of_send(history: HistoryIndex, row: int) -> int:
    """Return the position at which a send ended; if it did not end, where it began."""
    records = history.records
    return records.invoked[row] if records.completed[row] == UNKNOWN else records.completed[row]


def sent(history: HistoryIndex, row: int) -> Link:
    records, position = history.records, end_of_send(history, row)
    kind = _OUTCOMES.get(records.outcomes[row], send_unsure)
    return kind(
        history.times_us[position],
        None,
        value=records.values[row],
        operation=operation(history, position),
        offset=records.offset(row),
    )


def polled_pair(history: HistoryIndex, position: int, pair: Pair) -> Link:
    reader = operation(history, position)
    return polled_by(history.times_us[position], None, value=pair[1], offset=pair[0], operation=reader)


def polled(history: HistoryIndex, position: int, row: int) -> Link:
    return polled_pair(history, position, history.records.pair(row))


def _reader(history: HistoryIndex, partition: PartitionHistory, pair: Pair) -> int | None:
    """Return the position of an operation that read a pair, None if none did."""
    records = history.records
    row = partition.row_polled_at(*pair, records.polled_at)
    if row is None:
        return None
    position = records.polled_by[row]
    return partition.polled_in_vain.get(row) if position == UNKNOWN else position


def claims(history: HistoryIndex, partition: PartitionHistory, pairs: Iterable[Pair]) -> tuple[Link, ...]:
    """Return the links that show values at offsets: sends that were acked there, and polls.

    Sends without an offset come first. If there are too many links, one link counts the others.
    """
    wanted = list(pairs)
    offset_of = history.records.offset
    links = [
        sent(history, row)
        for value in dict.fromkeys(value for _, value in wanted[:_CLAIMS_SHOWN])
        for row in history.sends_of(partition, value)[:_CLAIMS_SHOWN]
        if offset_of(row) is None
    ]
    for offset, value in wanted[:_CLAIMS_SHOWN]:
        rows = history.sends_of(partition, value)[:_CLAIMS_SHOWN]
        links += [sent(history, row) for row in rows if offset_of(row) == offset]
        position = _reader(history, partition, (offset, value))
        if position is not None:
            links.append(polled_pair(history, position, (offset, value)))
    if len(wanted) > _CLAIMS_SHOWN:
        links.append(claims_folded.conclude(count=len(wanted) - _CLAIMS_SHOWN))
    return tuple(links)


def numbers(history: HistoryIndex, *positions: int) -> list[int]:
    return [history.numbers[position] for position in positions if position >= 0]
