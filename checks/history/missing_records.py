"""Finds committed records that no poll returned: the anomalies lost-write and unseen."""

from collections.abc import Iterator
from functools import partial

from harrow.checks.finding import Finding
from harrow.checks.history.index import HistoryIndex
from harrow.checks.history.records import ACKED, UNKNOWN, Transaction, Value
from harrow.checks.history.sighting import Sighting
from harrow.checks.history.version_order import VersionOrders
from harrow.checks.history.witness import (
    READ_DRY,
    OperationId,
    numbers,
    operation,
    operation_text,
    polled,
    record_text,
    sent,
)
from harrow.checks.link import NOTHING_HAPPENED, Link, RecordValue, cause
from harrow.cluster_model.events import Flag, Offset
from harrow.cluster_model.history import INFO


@cause("never-polled", needs_nothing_because=NOTHING_HAPPENED)
def never_polled(*, value: RecordValue) -> str:
    return f"no ok poll returned {record_text(value)}"


@cause("partition-never-polled", needs_nothing_because=NOTHING_HAPPENED)
def partition_never_polled() -> str:
    return "no ok poll ever returned a record of this partition"


@cause("polled-so-far", needs_nothing_because=NOTHING_HAPPENED)
def polled_so_far(*, highest: Offset, operation: OperationId, read_dry: Flag) -> str:
    """The highest polled offset, and whether a later poll returned nothing more."""
    end = "" if read_dry else ", and no process that reads the partition polled it empty after the ack"
    return f"no poll went beyond offset {highest} ({operation_text(operation)}){end}"


def lost_writes(orders: VersionOrders) -> Iterator[Sighting]:
    """Find committed records that no poll returned, below the highest offset that was read."""
    history, records = orders.history, orders.history.records
    for name in history.partitions:
        highest = orders.highest(name)
        if highest is None:
            continue
        for row in _unread(orders, name):
            last = _last_offset(orders, name, records.values[row])
            if last is not None and last <= records.polled_at[highest]:
                yield Sighting(partial(_lost, history, name, row, last, highest))


def polls_beyond_sends(orders: VersionOrders) -> bool:
    """Return whether polls reached the offset of a committed record.

    An acked record has committed. If the outcome of an operation is unknown, all of its records
    have committed once a poll has returned one of them.
    """
    history, records = orders.history, orders.history.records
    if history.removed is not None and history.removed.acked:
        return True  # a record that was acked and not polled is never removed
    for name, partition in history.partitions.items():
        highest = orders.highest(name)
        if highest is not None:
            for row in partition.acked:
                if _is_below(history, _last_offset(orders, name, records.values[row]), highest):
                    return True
    return any(map(partial(_may_be_lost, orders), history.transactions))


def _may_be_lost(orders: VersionOrders, transaction: Transaction) -> bool:
    """Return whether a record of an operation with an unknown outcome could be known to be lost."""
    if transaction.outcome != INFO or len(transaction.sends) < 2:
        return False
    history = orders.history
    sends, records = transaction.sends, history.records
    return any(
        any(
            _is_below(history, offset, orders.highest(name))
            for offset in (records.offset(row), _last_offset(orders, name, records.values[row]))
        )
        and any(history.partitions[other].polled for other, _ in (*sends[:at], *sends[at + 1 :]))
        for at, (name, row) in enumerate(sends)
    )


def unseen(orders: VersionOrders) -> Iterator[Sighting]:
    """Find acked records that no poll returned, beyond the highest offset that was read.

    The detail ``read_dry`` is true if, after the ack, a process that reads the partition polled and
    got no record of it. Otherwise the recording may have ended before a consumer could read the
    record.
    """
    history, records = orders.history, orders.history.records
    for name, partition in history.partitions.items():
        highest = orders.highest(name)
        for row in _unread(orders, name):
            last = _last_offset(orders, name, records.values[row])
            if records.outcomes[row] != ACKED or _is_below(history, last, highest):
                continue
            read_dry = partition.read_dry > records.completed[row]
            yield Sighting(
                partial(_unseen, history, name, row, last, highest, read_dry=read_dry),
                is_undecided=not read_dry,
            )


def is_lost(orders: VersionOrders, partition: str, value: Value) -> bool:
    """Return whether an unread value is a lost write: values at higher offsets were read."""
    return _is_below(orders.history, _last_offset(orders, partition, value), orders.highest(partition))


def _unread(orders: VersionOrders, partition: str) -> list[int]:
    """Return the rows of committed sends whose values no ok poll returned, one for each value."""
    records = orders.history.records
    values, polled_by = records.values, records.polled_by
    unread = [
        row
        for row in orders.of(partition).committed
        if polled_by[row] == UNKNOWN and not orders.is_read(partition, values[row])
    ]
    sends = {values[row]: row for row in reversed(unread)}
    return list(reversed(sends.values()))


def _last_offset(orders: VersionOrders, partition: str, value: Value) -> int | None:
    offsets = orders.of(partition).offsets_of(value)
    return offsets[-1] if offsets else None


def _is_below(history: HistoryIndex, offset: int | None, highest: int | None) -> bool:
    return offset is not None and highest is not None and offset <= history.records.polled_at[highest]


def _lost(history: HistoryIndex, partition: str, row: int, offset: int, highest: int) -> Finding:
    records = history.records
    value, position = records.values[row], records.polled_by[highest]
    return Finding(
        partition=partition,
        offset=offset,
        value=value,
        chain=(
            sent(history, row),
            polled(history, position, highest),
            never_polled.conclude(value=value),
        ),
        details=(("operations", numbers(history, records.completed[row], position)),),
    )


def _unseen(
    history: HistoryIndex,
    partition: str,
    row: int,
    offset: int | None,
    highest: int | None,
    *,
    read_dry: bool,
) -> Finding:
    records = history.records
    return Finding(
        partition=partition,
        offset=offset,
        value=records.values[row],
        chain=(sent(history, row), _end_of_polls(history, highest, read_dry=read_dry)),
        details=(("operations", numbers(history, records.completed[row])), (READ_DRY, read_dry)),
    )


def _end_of_polls(history: HistoryIndex, highest: int | None, *, read_dry: bool) -> Link:
    if highest is None:
        return partition_never_polled.conclude()
    records = history.records
    who = operation(history, records.polled_by[highest])
    return polled_so_far.conclude(highest=records.polled_at[highest], operation=who, read_dry=read_dry)
