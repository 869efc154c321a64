"""Finds offsets with several values, and values at several offsets.

The former are the anomaly inconsistent-offsets, the latter duplicate.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from harrow.checks.finding import Finding
from harrow.checks.history.index import HistoryIndex
from harrow.checks.history.records import PartitionHistory, Value
from harrow.checks.history.sighting import Sighting
from harrow.checks.history.version_order import VersionOrder, VersionOrders
from harrow.checks.history.witness import claims
from harrow.checks.promise import NOT_TRANSACTIONAL


def inconsistent_offsets(orders: VersionOrders) -> Iterator[Sighting]:
    """Find offsets at which acks and polls saw different values."""
    for name, partition in orders.history.partitions.items():
        order = orders.of(name)
        if order.is_plain:
            continue
        for offset, values in order.values_by_offset():
            if len(values) > 1:
                yield Sighting(partial(_conflict, orders.history, partition, offset, values))


def duplicates(orders: VersionOrders) -> Iterator[Sighting]:
    """Find values that acks and polls saw at several offsets."""
    for name, partition in orders.history.partitions.items():
        order = orders.of(name)
        if order.is_plain:
            continue
        offsets_of: dict[Value, list[int]] = {}
        for offset, values in order.values_by_offset():
            for value in values:
                offsets_of.setdefault(value, []).append(offset)
        for value, offsets in offsets_of.items():
            if len(offsets) > 1:
                # The log may have a value as often as the application sent it.
                sent_again = len(orders.history.sends_of(partition, value)) >= len(offsets)
                permitted_by = NOT_TRANSACTIONAL if sent_again else None
                yield Sighting(
                    partial(_duplicate, orders.history, partition, value, offsets, permitted_by),
                    permitted_by=permitted_by,
                )


def offsets_seen_again(orders: VersionOrders) -> bool:
    """Return whether acks and polls named two offsets in a partition, which could be the same."""
    return _is_seen_again(orders, lambda order: sum(1 for _ in order.acked_offsets()) > 1)


def values_seen_again(orders: VersionOrders) -> bool:
    """Return whether acks and polls named two offsets in a partition for what could be one value.

    A poll could have returned any value. An ack is for the value that was sent, so two acks try the
    rule only if that value was sent again.
    """
    return _is_seen_again(orders, _is_acked_again)


def _is_seen_again(orders: VersionOrders, by_acks: Callable[[VersionOrder], bool]) -> bool:
    """Return whether a partition was polled several times, or polled and acked, or *by_acks*.

    A polled record remains in a reduced history from each partition that was polled, so a record
    that was removed is another one.
    """
    history = orders.history
    if history.removed is not None and history.removed.polled:
        return True
    for name, partition in history.partitions.items():
        polled = len(partition.polled) + len(partition.polled_in_vain) + partition.is_polled_again
        if polled > 1:
            return True
        order = orders.of(name)
        if by_acks(order) if not polled else any(True for _ in order.acked_offsets()):
            return True
    return False


def _is_acked_again(order: VersionOrder) -> bool:
    sent_again = order.partition.sent_again
    acked = Counter(value for value, _ in order.acked_offsets() if value in sent_again) if sent_again else {}
    return any(count > 1 for count in acked.values())


def _conflict(
    history: HistoryIndex, partition: PartitionHistory, offset: int, values: Sequence[Value]
) -> Finding:
    return Finding(
        partition=partition.name,
        offset=offset,
        value=values[0],
        chain=claims(history, partition, ((offset, value) for value in values)),
        details=(("values", values),),
    )


def _duplicate(
    history: HistoryIndex,
    partition: PartitionHistory,
    value: Value,
    offsets: Sequence[int],
    permitted_by: str | None,
) -> Finding:
    return Finding(
        partition=partition.name,
        offset=offsets[1],
        value=value,
        chain=claims(history, partition, ((offset, value) for offset in offsets)),
        permitted_by=permitted_by,
        details=(("offsets", offsets),),
    )
