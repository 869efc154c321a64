"""Sends of one process that stand in another order: nonmonotonic-send, and within one operation."""

from collections.abc import Iterator
from typing import Final

from harrow.checks.finding import Finding
from harrow.checks.history.records import ProducerSession, SendRecord
from harrow.checks.history.version_order import VersionOrder, VersionOrders
from harrow.checks.history.witness import AFTER_LOSS, SKIPPED_SHOWN, numbers, sent
from harrow.checks.link import RecordValue, cause
from harrow.cluster_model.events import Offset
from harrow.cluster_model.history import INFO, OK

_MAY_HAVE_COMMITTED: Final = frozenset({OK, INFO})

_Place = tuple[int, SendRecord]
"""A send with its offset in the version order."""


@cause("sent-later-stands-earlier")
def sent_later_stands_earlier(
    *, value: RecordValue, stands_at: Offset, earlier: RecordValue, earlier_at: Offset
) -> str:
    return f"{value} was sent after {earlier}, which stands at offset {earlier_at}, and stands at {stands_at}"


def internal_skips(orders: VersionOrders) -> Iterator[Finding]:
    """Find operations between whose own sends the records of others stand.

    A send whose place is not known is left out.
    """
    for session in _sessions(orders) if orders.history.transactions else ():
        order = orders.of(session.partition)
        before: _Place | None = None
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


def falls(orders: VersionOrders, *, internal: bool) -> Iterator[Finding]:
    """Find two sends in a row of a process, or of one operation, the second of which stands at or before the first.

    Each is compared with the one before it whose place is known.
    """
    for session in _sessions(orders) if orders.history.transactions or not internal else ():
        order = orders.of(session.partition)
        before: _Place | None = None
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


def _sessions(orders: VersionOrders) -> Iterator[ProducerSession]:
    return (session for session in orders.history.sessions if len(session.sends) > 1)


def _place(orders: VersionOrders, order: VersionOrder, send: SendRecord) -> int | None:
    """Return the offset of a send, None if it has not committed or its place is not known.

    What a poll returned stands in the log, whatever became of the send and of the poll.
    """
    if send.outcome not in _MAY_HAVE_COMMITTED:
        return None
    if send.offset is not None and orders.has_committed(send):
        return send.offset
    # Of a value that the application sent again the offset may be that of the other send.
    return order.first_offset(send.value) if len(order.partition.sends[send.value]) == 1 else None


def _is_gone(orders: VersionOrders, place: _Place) -> bool:
    """Return whether a record, by what is known, was gone when its offset was given to another."""
    offset, send = place
    order = orders.of(send.partition)
    return send.value not in orders.read(send.partition) or len(order.values_at.get(offset, ())) > 1


def _finding(
    orders: VersionOrders, earlier: _Place, later: _Place, details: tuple[tuple[str, object], ...]
) -> Finding:
    history = orders.history
    (here, first), (there, second) = earlier, later
    told = sent_later_stands_earlier.conclude(
        value=second.value, stands_at=there, earlier=first.value, earlier_at=here
    )
    positions = dict.fromkeys((first.completed, second.completed))
    return Finding(
        partition=second.partition,
        offset=there,
        value=second.value,
        chain=(sent(history, first), sent(history, second), told),
        details=(
            ("process", second.process),
            ("operations", numbers(history, *positions)),
            ("offsets", [here, there]),
            *details,
        ),
    )
