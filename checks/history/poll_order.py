"""Finds consumers that skipped records (poll-skip) or went back (nonmonotonic-poll)."""

from bisect import bisect_left
from collections.abc import Iterator
from functools import partial

from harrow.checks.finding import Finding
from harrow.checks.history.records import Jump, PartitionHistory
from harrow.checks.history.sighting import Sighting
from harrow.checks.history.version_order import VersionOrder, VersionOrders
from harrow.checks.history.witness import AFTER_LOSS, SKIPPED_SHOWN, numbers, polled_pair
from harrow.checks.promise import SUBSCRIBED


def skips(orders: VersionOrders, *, internal: bool) -> Iterator[Sighting]:
    """Find consecutive polls of a process, or of one operation, that skipped known records."""
    for name, partition in orders.history.partitions.items():
        order = orders.of(name)
        for jump in order.jumps(internal=internal):
            here, there = jump.last[0], jump.next[0]
            if there <= here:
                continue
            first, end = order.between(here, there)
            if first < end:
                delta = order.distance(here, there)
                # A record that was removed from the history is never aborted.
                if delta - 1 == end - first and _were_aborted(order, first, end):
                    continue
                values = order.first_values(first, min(end, first + SKIPPED_SHOWN))
                # If no poll returned the skipped records, they were lost, and the skip tells
                # nothing more.
                after_loss = delta <= SKIPPED_SHOWN + 1 and not any(
                    orders.is_read(name, value) for value in values
                )
                details = (("delta", delta), ("skipped", values), (AFTER_LOSS, after_loss))
                yield _sighting(orders, partition, jump, details, is_after_loss=after_loss)


def _were_aborted(order: VersionOrder, first: int, end: int) -> bool:
    """Return whether all records between two indices were aborted, so that none has to be read."""
    return bisect_left(order.required, first) == bisect_left(order.required, end)


def backward_polls(orders: VersionOrders, *, internal: bool) -> Iterator[Sighting]:
    """Find consecutive polls of a process, or of one operation, that went back or stood still."""
    for name, partition in orders.history.partitions.items():
        for jump in orders.of(name).jumps(internal=internal):
            here, there = jump.last[0], jump.next[0]
            if there <= here:
                delta = orders.of(name).distance(here, there)
                yield _sighting(orders, partition, jump, (("delta", delta),))


def _sighting(
    orders: VersionOrders,
    partition: PartitionHistory,
    jump: Jump,
    details: tuple[tuple[str, object], ...],
    *,
    is_after_loss: bool = False,
) -> Sighting:
    permitted_by = SUBSCRIBED if jump.subscribed and not jump.internal else None
    return Sighting(
        partial(_finding, orders, partition, jump, permitted_by, details),
        permitted_by=permitted_by,
        is_after_loss=is_after_loss,
    )


def _finding(
    orders: VersionOrders,
    partition: PartitionHistory,
    jump: Jump,
    permitted_by: str | None,
    details: tuple[tuple[str, object], ...],
) -> Finding:
    history = orders.history
    return Finding(
        partition=partition.name,
        offset=jump.next[0],
        value=jump.next[1],
        chain=(
            polled_pair(history, jump.last_operation, jump.last),
            polled_pair(history, jump.next_operation, jump.next),
        ),
        permitted_by=permitted_by,
        details=(
            ("process", jump.process),
            ("operations", numbers(history, *dict.fromkeys((jump.last_operation, jump.next_operation)))),
            ("offsets", [jump.last[0], jump.next[0]]),
            ("values", [jump.last[1], jump.next[1]]),
            *details,
        ),
    )
