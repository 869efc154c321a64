"""Sends of one process that stand in another order: nonmonotonic-send, and within one operation."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from checks.finding import Finding, Link
from checks.history.index import Send, Session
from checks.history.version_order import VersionOrder, VersionOrders
from checks.history.witness import numbers, sent
from cluster_model.history import INFO, OK

_SKIPPED_SHOWN: Final = 8
_MAY_HAVE_COMMITTED: Final = frozenset({OK, INFO})

Placed = tuple[int, Send]
"""A send with its offset in the version order."""


def nonmonotonic_sends(orders: VersionOrders) -> Iterator[Finding]:
    """Find two operations in a row of a process the second of which stands at or before the first."""
    return _falls(orders, internal=False)


def internal_nonmonotonic_sends(orders: VersionOrders) -> Iterator[Finding]:
    """Find operations whose own sends stand in another order than they were sent."""
    return _falls(orders, internal=True)


def internal_send_skips(orders: VersionOrders) -> Iterator[Finding]:
    """Find operations between whose own sends the records of others stand."""
    for session in _sessions(orders):
        order = orders.of(session.partition)
        for first, second in pairwise(session.sends):
            if first.transaction is None or first.transaction is not second.transaction:
                continue
            here, there = _place(orders, order, first), _place(orders, order, second)
            skipped = [] if here is None or there is None else order.between(here, there)
            if here is not None and there is not None and skipped:
                values = [order.values_at[offset][0] for offset in skipped[:_SKIPPED_SHOWN]]
                yield _finding(orders, (here, first), (there, second), (("skipped", values),))


def _falls(orders: VersionOrders, *, internal: bool) -> Iterator[Finding]:
    """Compare each send with the one before it whose place is known."""
    for session in _sessions(orders):
        order = orders.of(session.partition)
        before: Placed | None = None
        for send in session.sends:
            offset = _place(orders, order, send)
            if offset is None:
                continue
            if before is not None and offset <= before[0]:
                within = send.transaction is not None and send.transaction is before[1].transaction
                if within == internal:
                    yield _finding(orders, before, (offset, send), ())
            before = (offset, send)


def _sessions(orders: VersionOrders) -> Iterator[Session]:
    return (session for session in orders.history.sessions if len(session.sends) > 1)


def _place(orders: VersionOrders, order: VersionOrder, send: Send) -> int | None:
    """Return the offset of a send, None if it has not committed or nobody can tell.

    What a poll returned stands in the log, whatever became of the send and of the poll.
    """
    if send.outcome not in _MAY_HAVE_COMMITTED:
        return None
    if send.offset is not None and orders.has_committed(send):
        return send.offset
    # Of a value that the application sent again the offset may be that of the other send.
    return order.first_offset(send.value) if len(order.partition.sends[send.value]) == 1 else None


def _finding(
    orders: VersionOrders, earlier: Placed, later: Placed, details: tuple[tuple[str, object], ...]
) -> Finding:
    history = orders.history
    (here, first), (there, second) = earlier, later
    told = (
        f"{second.value} was sent after {first.value}, which stands at offset {here}, and stands at {there}"
    )
    positions = dict.fromkeys((first.completed, second.completed))
    return Finding(
        partition=second.partition,
        offset=there,
        value=second.value,
        chain=(sent(history, first), sent(history, second), Link(event="conclusion", text=told)),
        details=(
            ("process", second.process),
            ("operations", numbers(history, *positions)),
            ("offsets", [here, there]),
            *details,
        ),
    )
