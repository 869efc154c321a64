"""Finds reads of records that were not committed: G1a (aborted read), precommitted-read."""

from collections.abc import Iterator
from functools import partial

from harrow.checks.finding import Finding
from harrow.checks.history.index import HistoryIndex
from harrow.checks.history.records import Pair, Transaction
from harrow.checks.history.sighting import Sighting
from harrow.checks.history.version_order import VersionOrders
from harrow.checks.history.witness import numbers, polled, polled_pair, sent


def aborted_reads(orders: VersionOrders) -> Iterator[Sighting]:
    """Find values whose send failed but that an ok poll returned."""
    history, records = orders.history, orders.history.records
    values = records.values
    for name, partition in history.partitions.items():
        aborted = {values[row]: row for row in partition.failed if orders.is_read(name, values[row])}
        # If the value was sent again and that send committed, polls may return the value.
        for sent_again in orders.of(name).committed if aborted else ():
            aborted.pop(values[sent_again], None)
        for row in partition.polled if aborted else ():
            send = aborted.get(values[row])
            if send is not None:
                yield Sighting(partial(_aborted, history, name, send, row))


def precommitted_reads(orders: VersionOrders) -> Iterator[Sighting]:
    """Find operations that polled a record that they had sent themselves."""
    history = orders.history
    for transaction in history.transactions:
        if not transaction.reads:
            continue
        read = {
            (partition, pair[1]): pair
            for partition, pairs in transaction.reads.items()
            for pair in reversed(pairs)
        }
        for partition, row in transaction.sends:
            first = read.get((partition, history.records.values[row]))
            if first is not None:
                yield Sighting(partial(_precommitted, history, transaction, partition, row, first))


def _aborted(history: HistoryIndex, partition: str, send: int, row: int) -> Finding:
    records = history.records
    position = records.polled_by[row]
    return Finding(
        partition=partition,
        offset=records.polled_at[row],
        value=records.values[row],
        chain=(sent(history, send), polled(history, position, row)),
        details=(("operations", numbers(history, records.completed[send], position)),),
    )


def _precommitted(
    history: HistoryIndex, transaction: Transaction, partition: str, row: int, first: Pair
) -> Finding:
    return Finding(
        partition=partition,
        offset=first[0],
        value=history.records.values[row],
        chain=(
            sent(history, row),
            polled_pair(history, transaction.position, first),
        ),
        details=(("operations", numbers(history, transaction.position)),),
    )
