"""What an option decides, no seed draws any more: ``--set acks=1`` closes that choice of a swarm."""

from collections.abc import Iterator
from typing import Final

from campaigns.yaml_positions import Entry, ListNode, MapNode, Node

_SWARM: Final = "swarm"
_SETTINGS: Final = "settings"

_CLOSED_BELOW: Final[dict[tuple[str, ...], tuple[str, ...]]] = {
    ("kafka",): ("kafka",),
    ("cluster", "brokers"): ("brokers", "racks"),
    ("cluster", "topics", "partitions"): ("partitions",),
    ("cluster", "topics", "replication_factor"): ("replication_factor",),
    # It names brokers, and is dropped where a number of them is drawn.
    ("cluster", "topics", "assignment"): ("partitions", "replication_factor", "brokers"),
    ("cluster", "network", "latency"): ("latency",),
    ("cluster", "disk", "writeback"): ("writeback",),
    ("workload", "duration"): ("duration",),
    ("workload", "producers", "name"): ("producers",),
    ("workload", "producers", "rate"): ("rate",),
    # Whoever draws a rate has producers send to all partitions.
    ("workload", "producers", "partitions"): ("rate",),
    ("workload", "consumers"): ("consumers",),
    ("core", "order"): ("core",),
}
"""What of a swarm is closed by an option about a place of the campaign, or about a part of it."""
_CLOSED_AT: Final[dict[tuple[str, ...], tuple[str, ...]]] = {
    ("cluster", "topics"): ("partitions", "replication_factor"),
    ("workload", "producers"): ("producers", "rate"),
}
"""What is closed by an option that puts something whole in a place."""


def without_choice(root: MapNode, parts: tuple[str, ...], value: Node) -> MapNode:
    """Return a campaign whose swarm does not draw what an option says: a *value* at the place *parts*."""
    entry = root.entries.get(_SWARM)
    if parts[0] == _SWARM or entry is None or not isinstance(entry.value, MapNode):
        return root
    swarm = entry.value
    for place in (parts, *_places(parts, value)):
        swarm = _without_setting(swarm, place) if _SETTINGS in place else _without_keys(swarm, place)
    return _with(root, _SWARM, swarm)


def _places(parts: tuple[str, ...], value: Node) -> Iterator[tuple[str, ...]]:
    """Yield where a value puts something: itself, or what it consists of."""
    if isinstance(value, MapNode) and value.entries:
        for key, entry in value.entries.items():
            yield from _places((*parts, key), entry.value)
    elif isinstance(value, ListNode) and value.items:
        for number, item in enumerate(value.items):
            yield from _places((*parts, str(number)), item)
    else:
        yield parts


def _without_keys(swarm: MapNode, parts: tuple[str, ...]) -> MapNode:
    place = tuple(part for part in parts if not part.isdigit())
    closed = set(_CLOSED_AT.get(place, ()))
    for length in range(1, len(place) + 1):
        closed.update(_CLOSED_BELOW.get(place[:length], ()))
    entries = {key: entry for key, entry in swarm.entries.items() if key not in closed}
    return MapNode(entries, swarm.mark, swarm.lost)


def _without_setting(swarm: MapNode, parts: tuple[str, ...]) -> MapNode:
    entry = swarm.entries.get(_SETTINGS)
    if entry is None or not isinstance(entry.value, MapNode):
        return swarm
    name = parts[-1]
    kept = {key: each for key, each in entry.value.entries.items() if key != name}
    return _with(swarm, _SETTINGS, MapNode(kept, entry.value.mark, entry.value.lost))


def _with(node: MapNode, key: str, value: MapNode) -> MapNode:
    entries = {**node.entries, key: Entry(node.entries[key].key_mark, value)}
    return MapNode(entries, node.mark, node.lost)
