"""Transactions of which some records took effect and others did not: torn-transaction."""

from collections.abc import Iterator
from functools import partial

from harrow.checks.finding import Finding
from harrow.checks.history.index import HistoryIndex
from harrow.checks.history.missing_records import is_lost
from harrow.checks.history.records import UNKNOWN, UNSURE, Transaction
from harrow.checks.history.sighting import Sighting
from harrow.checks.history.version_order import VersionOrders
from harrow.checks.history.witness import (
    OperationId,
    numbers,
    operation,
    operation_text,
    polled,
    sent,
    shown,
)
from harrow.checks.link import NOTHING_HAPPENED, RecordValue, cause
from harrow.cluster_model.events import PartitionName


@cause("half-polled", free_because=NOTHING_HAPPENED)
def half_polled(*, value: RecordValue, partition: PartitionName, operation: OperationId) -> str:
    """Polls returned other records of an operation, and came to the end of this one's partition without it."""
    return (
        f"{shown(value)} of the same operation ({operation_text(operation)}) was never polled, although {shown(partition)} was "
        "polled empty afterwards"
    )


def torn_transactions(orders: VersionOrders) -> Iterator[Sighting]:
    """Find operations of several sends whose outcome is unknown, and of which polls returned some records and not others.

    Of one that was acknowledged a record that is never read is a lost write, or unseen, and so is one whose offset is known below others
    that were read; what is read of one that failed is an aborted read. A partition tells nothing that was not polled empty once the others had been read: the operation
    may take effect late.
    """
    history, records = orders.history, orders.history.records
    for transaction in history.transactions:
        first = transaction.sends[0][1]
        if records.outcomes[first] != UNSURE:
            continue
        unread, seen = [], UNKNOWN
        for name, row in transaction.sends:
            partition = history.partitions[name]
            value = records.values[row]
            if partition.sent_again.get(value):
                continue
            if orders.is_read(name, value):
                read = _read(history, name, row)
                seen = read if seen == UNKNOWN else min(seen, read, key=records.polled_by.__getitem__)
            elif not is_lost(orders, name, value):
                unread.append((name, row))
        if seen == UNKNOWN:
            continue
        since = max(records.completed[first], records.polled_by[seen])
        dry = [(name, row) for name, row in unread if history.partitions[name].read_dry > since]
        if dry:
            yield Sighting(partial(_finding, history, transaction, *dry[0], seen))


def _finding(history: HistoryIndex, transaction: Transaction, partition: str, row: int, seen: int) -> Finding:
    value, position = history.records.values[row], history.records.polled_by[seen]
    return Finding(
        partition=partition,
        value=value,
        chain=(
            sent(history, row),
            polled(history, position, seen),
            half_polled.conclude(
                value=value, partition=partition, operation=operation(history, transaction.position)
            ),
        ),
        details=(("operations", numbers(history, transaction.position, position)),),
    )


def _read(history: HistoryIndex, partition: str, row: int) -> int:
    """Return the row by which a value is known to have been polled."""
    records = history.records
    rows = history.partitions[partition].rows_polled_of(records.values[row])
    return next(each for each in rows if records.polled_by[each] != UNKNOWN)
