"""Sends of one process that stand in another order: nonmonotonic-send, and within one operation."""

from collections.abc import Iterator
from typing import Final

from checks.finding import Finding, Link
from checks.history.records import Send, Session
from checks.history.version_order import VersionOrder, VersionOrders
from checks.history.witness import AFTER_LOSS, SKIPPED_SHOWN, numbers, sent
from cluster_model.history import INFO, OK

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
    """Find operations between whose own sends the records of others stand.

    A send of which nobody knows where it stands is left out.
    """
    for session in _sessions(orders) if orders.history.transactions else ():
        order = orders.of(session.partition)
        before: Placed | None = None
        for send in session.sends:
            offset = _place(orders, order, send)
            if offset is None:
                continue
            if before is not None and send.transaction is not None:
                first, end = order.between(before[0], offset)
                if send.transaction is before[1].transaction and first < end:
                    shown = order.offsets[first : min(end, first + SKIPPED_SHOWN)]
                    values = [order.values_at[skipped][0] for skipped in shown]
                    yield _finding(orders, before, (offset, send), (("skipped", values),))
            before = (offset, send)


def _falls(orders: VersionOrders, *, internal: bool) -> Iterator[Finding]:
    """Compare each send with the one before it whose place is known."""
    for session in _sessions(orders) if orders.history.transactions or not internal else ():
        order = orders.of(session.partition)
        before: Placed | None = None
        for send in session.sends:
            offset = send.offset if send.outcome == OK else None
            if offset is None:
                offset = _place(orders, order, send)
            if offset is None:
                continue
            if before is not None and offset <= before[0]:
                within = send.transaction is not None and send.transaction is before[1].transaction
                if within == internal:
                    yield _finding(orders, before, (offset, send), ((AFTER_LOSS, _is_gone(orders, before)),))
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


def _is_gone(orders: VersionOrders, placed: Placed) -> bool:
    """Return whether a record was not there any more when its offset was given away again, for all one can see."""
    offset, send = placed
    order = orders.of(send.partition)
    return send.value not in orders.read(send.partition) or len(order.values_at.get(offset, ())) > 1


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
