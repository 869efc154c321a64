"""Finds transactions that took effect for some of their records only: torn-transaction."""

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
    partition_text,
    polled,
    record_text,
    sent,
)
from harrow.checks.link import NOTHING_HAPPENED, RecordValue, cause
from harrow.cluster_model.events import PartitionName


@cause("half-polled", needs_nothing_because=NOTHING_HAPPENED)
def half_polled(*, value: RecordValue, partition: PartitionName, operation: OperationId) -> str:
    return (
        f"{record_text(value)} of the same operation ({operation_text(operation)}) was never polled, although {partition_text(partition)} "
        "was read to the end afterwards"
    )


def torn_transactions(orders: VersionOrders) -> Iterator[Sighting]:
    """Find operations with an unknown outcome if polls returned some of their records, not all.

    Other rules find the other cases. If no poll returned a record of an acknowledged operation, or
    a record below others that were read, the record is a lost write or unseen. If a poll returned a
    record of a failed operation, this is an aborted read. A partition counts only if it was read to
    the end after the other records were read, because the operation may take effect late.
    """
    history, records = orders.history, orders.history.records
    for transaction in history.transactions:
        first = transaction.sends[0][1]
        if records.outcomes[first] != UNSURE:
            continue
        unread, first_read = [], UNKNOWN
        for name, row in transaction.sends:
            partition = history.partitions[name]
            value = records.values[row]
            if partition.sent_again.get(value):
                continue
            if orders.is_read(name, value):
                read = _read(history, name, row)
                first_read = (
                    read
                    if first_read == UNKNOWN
                    else min(first_read, read, key=records.polled_by.__getitem__)
                )
            elif not is_lost(orders, name, value):
                unread.append((name, row))
        if first_read == UNKNOWN:
            continue
        since = max(records.completed[first], records.polled_by[first_read])
        dry = [(name, row) for name, row in unread if history.partitions[name].read_dry > since]
        if dry:
            yield Sighting(partial(_finding, history, transaction, *dry[0], first_read))


def _finding(
    history: HistoryIndex, transaction: Transaction, partition: str, row: int, first_read: int
) -> Finding:
    value, position = history.records.values[row], history.records.polled_by[first_read]
    return Finding(
        partition=partition,
        value=value,
        chain=(
            sent(history, row),
            polled(history, position, first_read),
            half_polled.conclude(
                value=value, partition=partition, operation=operation(history, transaction.position)
            ),
        ),
        details=(("operations", numbers(history, transaction.position, position)),),
    )


def _read(history: HistoryIndex, partition: str, row: int) -> int:
    records = history.records
    rows = history.partitions[partition].rows_polled_of(records.values[row])
    return next(each for each in rows if records.polled_by[each] != UNKNOWN)
