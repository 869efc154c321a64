"""One offset with several values, one value at several offsets: inconsistent-offsets, duplicate."""

from collections.abc import Iterator

from harrow.checks.finding import Finding
from harrow.checks.history.records import Value
from harrow.checks.history.version_order import VersionOrders
from harrow.checks.history.witness import claims
from harrow.checks.promise import NOT_TRANSACTIONAL


def inconsistent_offsets(orders: VersionOrders) -> Iterator[Finding]:
    """Find offsets at which acks and polls saw different values."""
    for name, partition in orders.history.partitions.items():
        order = orders.of(name)
        if order.is_plain:
            continue
        for offset, values in order.standing():
            if len(values) > 1:
                yield Finding(
                    partition=name,
                    offset=offset,
                    value=values[0],
                    chain=claims(orders.history, partition, ((offset, value) for value in values)),
                    details=(("values", values),),
                )


def duplicates(orders: VersionOrders) -> Iterator[Finding]:
    """Find values that acks and polls saw at several offsets."""
    for name, partition in orders.history.partitions.items():
        order = orders.of(name)
        if order.is_plain:
            continue
        found: dict[Value, list[int]] = {}
        for offset, values in order.standing():
            for value in values:
                found.setdefault(value, []).append(offset)
        for value, offsets in found.items():
            if len(offsets) > 1:
                # As often as the application itself has sent it, it may be there.
                sent_again = len(orders.history.sends_of(partition, value)) >= len(offsets)
                yield Finding(
                    partition=name,
                    offset=offsets[1],
                    value=value,
                    chain=claims(orders.history, partition, ((offset, value) for offset in offsets)),
                    permitted_by=NOT_TRANSACTIONAL if sent_again else None,
                    details=(("offsets", offsets),),
                )
