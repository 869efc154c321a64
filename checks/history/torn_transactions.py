"""Transactions of which some records took effect and others did not: torn-transaction."""

from collections.abc import Iterator

from harrow.checks.finding import Finding
from harrow.checks.history.records import ACKED, UNKNOWN
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
from harrow.checks.link import RecordValue, cause
from harrow.cluster_model.events import PartitionName


@cause("half-polled")
def half_polled(*, value: RecordValue, partition: PartitionName, operation: OperationId) -> str:
    """Polls returned other records of an operation, and came to the end of this one's partition without it."""
    return (
        f"{shown(value)} of the same operation ({operation_text(operation)}) was never polled, although {shown(partition)} was "
        "polled empty afterwards"
    )


def torn_transactions(orders: VersionOrders) -> Iterator[Finding]:
    """Find operations of several sends that were not acknowledged, and of which polls returned some records and not others.

    Of those that were acknowledged a record that nobody reads is a lost write, or unseen. A partition that nobody polled empty after
    the operation had ended tells nothing.
    """
    history, records = orders.history, orders.history.records
    for transaction in history.transactions:
        if len(transaction.sends) < 2 or records.outcomes[transaction.sends[0][1]] == ACKED:
            continue
        read, unread = [], []
        for name, row in transaction.sends:
            partition = history.partitions[name]
            if partition.sent_again.get(records.values[row]):
                continue
            if orders.is_read(name, records.values[row]):
                read.append((name, row))
            elif partition.read_dry > max(records.completed[row], records.invoked[row]):
                unread.append((name, row))
        if not read or not unread:
            continue
        name, row = unread[0]
        seen = next(
            each
            for each in history.partitions[read[0][0]].rows_of(records.values[read[0][1]])
            if records.polled_by[each] != UNKNOWN
        )
        position = records.polled_by[seen]
        yield Finding(
            partition=name,
            value=records.values[row],
            chain=(
                sent(history, row),
                polled(history, position, seen),
                half_polled.conclude(
                    value=records.values[row],
                    partition=name,
                    operation=operation(history, transaction.position),
                ),
            ),
            details=(("operations", numbers(history, transaction.position, position)),),
        )
