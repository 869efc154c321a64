"""Finds records that were polled from a partition to which they were not sent: misrouted.

Up to 4.1.1, Kafka's Java producer sent such records (KAFKA-19012): it reused the memory of an
expired batch for a batch of another partition while the request was still being written. The broker
cannot notice this, because the checksum of a batch does not cover its topic.
"""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import partial

from harrow.checks.finding import Finding
from harrow.checks.history.index import HistoryIndex
from harrow.checks.history.records import NEVER_SENT, UNKNOWN, Value
from harrow.checks.history.sighting import Sighting
from harrow.checks.history.version_order import VersionOrders
from harrow.checks.history.witness import numbers, partition_text, polled, record_text, sent
from harrow.checks.link import RecordValue, claim
from harrow.cluster_model.events import PartitionName


@claim("sent-elsewhere")
def was_sent_elsewhere(*, value: RecordValue, here: PartitionName, there: PartitionName) -> str:
    return f"{record_text(value)} was sent to {partition_text(there)}, not to {partition_text(here)}"


def misrouted_records(orders: VersionOrders, *, is_complete: bool = False) -> Iterator[Sighting]:
    """Find records that were polled in a partition although they were sent to another.

    A value that was sent to no partition comes from a producer outside the history. Unless the
    history *is_complete*, such a producer may also use a value that the history sent to another
    partition. So partitions without any sends are excluded. Histories that sent one value to two
    partitions are excluded too: there, each partition has its own values, as in Jepsen's workload.
    """
    history = orders.history
    if NEVER_SENT not in history.records.outcomes:
        return
    unsent = {
        name: rows
        for name in history.partitions
        if (is_complete or _has_sends(history, name)) and (rows := _polled_but_not_sent(history, name))
    }
    if not unsent or (not is_complete and _values_repeat(history)):
        return
    values = history.records.values
    senders = first_sends(history, {values[row] for rows in unsent.values() for row in rows})
    for name, rows in unsent.items():
        yield from _misrouted(history, name, rows, senders)


def polls_beside_sends(orders: VersionOrders) -> bool:
    """Return whether a poll read a partition with sends, and another one has sends, too."""
    history = orders.history
    with_sends = [partition for name, partition in history.partitions.items() if _has_sends(history, name)]
    is_read = any(partition.polled or partition.polled_in_vain for partition in with_sends)
    return is_read and len(with_sends) > 1 and not _values_repeat(history)


def first_sends(history: HistoryIndex, values: AbstractSet[Value]) -> dict[Value, tuple[str, int]]:
    """Return the first partition to which each value was sent, and the row of that send.

    All values are looked up at once, because there may be very many partitions and values.
    """
    sends: dict[Value, tuple[str, int]] = {}
    for name, partition in history.partitions.items():
        for value in values & partition.rows.keys():
            rows = history.sends_of(partition, value)
            if rows:
                sends.setdefault(value, (name, rows[0]))
    return sends


def _has_sends(history: HistoryIndex, name: str) -> bool:
    partition = history.partitions[name]
    return bool(partition.acked or partition.failed or partition.unsure)


def _polled_but_not_sent(history: HistoryIndex, name: str) -> list[int]:
    """Return the rows of records that were polled in a partition but never sent to it."""
    partition, records = history.partitions[name], history.records
    return [
        row
        for row in dict.fromkeys((*partition.polled, *partition.polled_in_vain))
        if records.outcomes[row] == NEVER_SENT and not history.sends_of(partition, records.values[row])
    ]


def _values_repeat(history: HistoryIndex) -> bool:
    """Return whether some value was sent to several partitions."""
    outcomes = history.records.outcomes
    has_unsent = NEVER_SENT in outcomes
    earlier: set[Value] = set()
    for partition in history.partitions.values():
        sent: AbstractSet[Value] = partition.rows.keys()
        if has_unsent:
            sent = {value for value in sent if outcomes[partition.rows[value]] != NEVER_SENT}
        if not earlier.isdisjoint(sent):
            return True
        earlier |= sent
    return False


def _misrouted(
    history: HistoryIndex, name: str, rows: list[int], senders: Mapping[Value, tuple[str, int]]
) -> Iterator[Sighting]:
    values = history.records.values
    for row in rows:
        if values[row] in senders:
            place, send = senders[values[row]]
            yield Sighting(partial(_finding, history, name, row, place, send))


def _finding(history: HistoryIndex, name: str, row: int, place: str, send: int) -> Finding:
    records = history.records
    value, position = records.values[row], records.polled_by[row]
    if position == UNKNOWN:
        position = history.partitions[name].polled_in_vain[row]
    return Finding(
        partition=name,
        offset=records.polled_at[row],
        value=value,
        chain=(
            sent(history, send),
            polled(history, position, row),
            was_sent_elsewhere.conclude(value=value, here=name, there=place),
        ),
        details=(
            ("sent_to", place),
            ("operations", numbers(history, records.invoked[send], position)),
        ),
    )
