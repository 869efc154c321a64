"""Committed records that no poll returned: lost-write, unseen."""

from collections.abc import Iterator
from operator import itemgetter

from harrow.checks.finding import Finding
from harrow.checks.history.index import HistoryIndex
from harrow.checks.history.records import PartitionHistory, SendRecord
from harrow.checks.history.version_order import VersionOrders
from harrow.checks.history.witness import (
    READ_DRY,
    OperationId,
    numbers,
    operation,
    operation_text,
    polled,
    sent,
    shown,
)
from harrow.checks.link import Link, RecordValue, cause
from harrow.cluster_model.events import Flag, Offset
from harrow.cluster_model.history import OK


@cause("never-polled")
def never_polled(*, value: RecordValue) -> str:
    return f"no ok poll returned {shown(value)}"


@cause("partition-never-polled")
def partition_never_polled() -> str:
    return "no ok poll ever returned a record of this partition"


@cause("polled-so-far")
def polled_so_far(*, highest: Offset, operation: OperationId, read_dry: Flag) -> str:
    """How far polls went, and whether they found nothing more."""
    end = "" if read_dry else ", and no process that reads the partition polled it empty after the ack"
    return f"no poll went beyond offset {highest} ({operation_text(operation)}){end}"


def lost_writes(orders: VersionOrders) -> Iterator[Finding]:
    """Find committed records that no poll returned, below the highest offset that was read."""
    history = orders.history
    for name, partition in history.partitions.items():
        if not partition.polled:
            continue
        highest = max(partition.polled, key=itemgetter(0))
        for send in _unread(orders, name):
            last = _last_offset(orders, send)
            if last is not None and last <= highest[0]:
                position = partition.polled[highest]
                yield Finding(
                    partition=name,
                    offset=last,
                    value=send.value,
                    chain=(
                        sent(history, send),
                        polled(history, position, highest),
                        never_polled.conclude(value=send.value),
                    ),
                    details=(("operations", numbers(history, send.completed, position)),),
                )


def unseen(orders: VersionOrders) -> Iterator[Finding]:
    """Find acked records that no poll returned, beyond the highest offset that was read.

    ``read_dry`` tells whether a process that reads the partition polled once more after the ack and
    got nothing of it: if none did, the recording may have ended before a consumer came so far.
    """
    history = orders.history
    for name, partition in history.partitions.items():
        highest = max(map(itemgetter(0), partition.polled), default=-1)
        for send in _unread(orders, name):
            last = _last_offset(orders, send)
            if send.outcome != OK or (last is not None and last <= highest):
                continue
            read_dry = partition.read_dry > send.completed
            yield Finding(
                partition=name,
                offset=last,
                value=send.value,
                chain=(
                    sent(history, send),
                    _how_far(history, partition, read_dry=read_dry),
                ),
                details=(("operations", numbers(history, send.completed)), (READ_DRY, read_dry)),
            )


def _unread(orders: VersionOrders, partition: str) -> list[SendRecord]:
    """Return the committed sends whose values no ok poll returned; of a value that was sent again one."""
    read = orders.read(partition)
    unread = [send for send in orders.of(partition).committed if send.value not in read]
    found = {send.value: send for send in reversed(unread)}
    return list(reversed(found.values()))


def _last_offset(orders: VersionOrders, send: SendRecord) -> int | None:
    offsets = orders.of(send.partition).offsets_of.get(send.value)
    return offsets[-1] if offsets else None


def _how_far(history: HistoryIndex, partition: PartitionHistory, *, read_dry: bool) -> Link:
    if not partition.polled:
        return partition_never_polled.conclude()
    highest = max(partition.polled, key=itemgetter(0))
    who = operation(history, partition.polled[highest])
    return polled_so_far.conclude(highest=highest[0], operation=who, read_dry=read_dry)
