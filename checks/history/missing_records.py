"""Committed records that nobody read although others did: lost-write, unseen."""

from collections.abc import Iterator
from operator import itemgetter

from checks.finding import Finding, Link
from checks.history.index import HistoryIndex
from checks.history.records import PartitionHistory, Send
from checks.history.version_order import VersionOrders
from checks.history.witness import READ_DRY, numbers, operation, polled, sent, shown
from cluster_model.history import OK


def lost_writes(orders: VersionOrders) -> Iterator[Finding]:
    """Find committed records below the highest offset that was read, which nobody read."""
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
                        Link(event="conclusion", text=f"no ok poll returned {shown(send.value)}"),
                    ),
                    details=(("operations", numbers(history, send.completed, position)),),
                )


def unseen(orders: VersionOrders) -> Iterator[Finding]:
    """Find acked records that nobody read, beyond the highest offset that was read.

    ``read_dry`` tells whether a process that reads the partition polled once more after the ack and
    got nothing of it: if none did, the recording may have ended before anybody came so far.
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
                    Link(event="conclusion", text=_how_far(history, partition, read_dry=read_dry)),
                ),
                details=(("operations", numbers(history, send.completed)), (READ_DRY, read_dry)),
            )


def _unread(orders: VersionOrders, partition: str) -> list[Send]:
    """Return the committed sends whose values no ok poll returned; of a value that was sent again one."""
    read = orders.read(partition)
    unread = [send for send in orders.of(partition).committed if send.value not in read]
    found = {send.value: send for send in reversed(unread)}
    return list(reversed(found.values()))


def _last_offset(orders: VersionOrders, send: Send) -> int | None:
    offsets = orders.of(send.partition).offsets_of.get(send.value)
    return offsets[-1] if offsets else None


def _how_far(history: HistoryIndex, partition: PartitionHistory, *, read_dry: bool) -> str:
    if not partition.polled:
        return "no ok poll ever returned a record of this partition"
    highest = max(partition.polled, key=itemgetter(0))
    position = partition.polled[highest]
    end = "" if read_dry else ", and nobody who reads the partition has polled it empty after the ack"
    return f"no poll went beyond offset {highest[0]} ({operation(history, position)}){end}"
