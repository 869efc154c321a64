"""Finds sends of one process that the log has in a different order: nonmonotonic-send."""

from collections.abc import Iterator
from functools import partial
from itertools import islice
from operator import lt

from harrow.checks.finding import Finding
from harrow.checks.history.records import FAILED, UNKNOWN, ProducerSession, Transaction
from harrow.checks.history.sighting import Sighting
from harrow.checks.history.version_order import VersionOrder, VersionOrders
from harrow.checks.history.witness import AFTER_LOSS, SKIPPED_SHOWN, numbers, record_text, sent
from harrow.checks.link import FROM_LOGS, RecordValue, cause
from harrow.cluster_model.events import Offset

_Place = tuple[int, int]
"""The offset of a send in the version order, and its row."""


@cause(
    "sent-later-stands-earlier",
    needs_nothing_because=FROM_LOGS,
    no_remedy="Kafka keeps the order of one producer in a partition; concurrent producers have none",
)
def sent_later_stands_earlier(
    *, value: RecordValue, stands_at: Offset, earlier: RecordValue, earlier_at: Offset
) -> str:
    """The log has two records in a different order than their operations sent them."""
    return f"{record_text(value)} was sent after {record_text(earlier)}, which is at offset {earlier_at}, but is at {stands_at}"


def internal_skips(orders: VersionOrders) -> Iterator[Sighting]:
    """Find operations whose records are interleaved with those of other operations in the log.

    Sends with an unknown offset are excluded.
    """
    transaction_of = orders.history.transaction_of
    for session in _sessions(orders) if transaction_of else ():
        order = orders.of(session.partition)
        before: _Place | None = None
        for row in session.rows:
            offset = _place(orders, order, row)
            if offset is None:
                continue
            within = None if before is None else transaction_of.get(row)
            if before is not None and within is not None and within is transaction_of.get(before[1]):
                first, end = order.between(before[0], offset)
                if first < end:
                    yield Sighting(partial(_skip, orders, session, before, (offset, row), first, end))
            before = (offset, row)


def reordered_sends(orders: VersionOrders, *, internal: bool) -> Iterator[Sighting]:
    """Find consecutive sends of a process, or of an operation, that are reordered in the log.

    Each send is compared with the last send before it whose offset is known.
    """
    transaction_of = orders.history.transaction_of
    acked_at = orders.history.records.acked_at
    for session in _sessions(orders) if transaction_of or not internal else ():
        if _has_rising_offsets(orders, session):
            continue
        order = orders.of(session.partition)
        before: _Place | None = None
        for row in session.rows:
            offset: int | None = acked_at[row]
            if offset == UNKNOWN:
                offset = _place(orders, order, row)
            if offset is None:
                continue
            if before is not None and offset <= before[0]:
                within = row in transaction_of and transaction_of[row] is transaction_of.get(before[1])
                if within == internal:
                    is_lost = _is_lost(orders, order, before)
                    details = ((AFTER_LOSS, is_lost),)
                    yield Sighting(
                        partial(_finding, orders, session, before, (offset, row), details),
                        is_after_loss=is_lost,
                    )
            before = (offset, row)


def sends_in_turn(orders: VersionOrders) -> bool:
    """Return whether a process sent several records with known offsets to a partition, in turn.

    Two sends of one operation try other rules. An assignment between two sends does not count,
    although the rule compares no sends across one that leaves out the partition: it would only
    matter if a process got such an assignment before each of its sends.
    """
    history = orders.history
    if history.removed is not None and history.removed.sends_in_turn:
        return True
    acked_at, transaction_of = history.records.acked_at, history.transaction_of
    latest: dict[tuple[int, str], Transaction | None] = {}
    for session in history.sessions:
        of_session, order = (session.process, session.partition), orders.of(session.partition)
        for row in session.rows:
            if acked_at[row] != UNKNOWN or _place(orders, order, row) is not None:
                operation = transaction_of.get(row)
                if of_session in latest and (operation is None or operation is not latest[of_session]):
                    return True
                latest[of_session] = operation
    return False


def _sessions(orders: VersionOrders) -> Iterator[ProducerSession]:
    return (session for session in orders.history.sessions if len(session.rows) > 1)


def _has_rising_offsets(orders: VersionOrders, session: ProducerSession) -> bool:
    """Return whether each send of a session was acked at a higher offset than its predecessor."""
    offsets = list(map(orders.history.records.acked_at.__getitem__, session.rows))
    return offsets[0] != UNKNOWN and all(map(lt, offsets, islice(offsets, 1, None)))


def _place(orders: VersionOrders, order: VersionOrder, row: int) -> int | None:
    """Return the offset of a send, None if it has not committed or its offset is unknown.

    If a send did not fail but its offset is unknown, a poll that returned its record shows it.
    """
    records = orders.history.records
    if records.outcomes[row] == FAILED:
        return None
    offset = records.offset(row)
    if offset is not None and orders.has_committed(order.partition.name, row):
        return offset
    # The offset of a value that the application sent again may be that of the other send.
    value = records.values[row]
    return None if value in order.partition.sent_again else order.first_offset(value)


def _is_lost(orders: VersionOrders, order: VersionOrder, place: _Place) -> bool:
    """Return whether a record seems lost: no poll returned it, or its offset has another value."""
    offset, row = place
    value = orders.history.records.values[row]
    return not orders.is_read(order.partition.name, value) or len(order.values_at(offset)) > 1


def _skip(
    orders: VersionOrders, session: ProducerSession, earlier: _Place, later: _Place, first: int, end: int
) -> Finding:
    skipped = orders.of(session.partition).first_values(first, min(end, first + SKIPPED_SHOWN))
    return _finding(orders, session, earlier, later, (("skipped", skipped),))


def _finding(
    orders: VersionOrders,
    session: ProducerSession,
    earlier: _Place,
    later: _Place,
    details: tuple[tuple[str, object], ...],
) -> Finding:
    history, records = orders.history, orders.history.records
    (here, first), (there, second) = earlier, later
    reorder = sent_later_stands_earlier.conclude(
        value=records.values[second], stands_at=there, earlier=records.values[first], earlier_at=here
    )
    positions = dict.fromkeys((records.completed[first], records.completed[second]))
    return Finding(
        partition=session.partition,
        offset=there,
        value=records.values[second],
        chain=(sent(history, first), sent(history, second), reorder),
        details=(
            ("process", session.process),
            ("operations", numbers(history, *positions)),
            ("offsets", [here, there]),
            *details,
        ),
    )
