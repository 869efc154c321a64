"""What an option decides, no seed draws any more: ``--set acks=1`` closes that choice of a swarm."""

from typing import Final

from campaigns.yaml_positions import Entry, MapNode

_SWARM: Final = "swarm"
_SETTINGS: Final = "settings"

_NAMED_ALIKE: Final = frozenset(
    {"partitions", "replication_factor", "latency", "writeback", "duration", "rate"}
)
_CLOSED_BY: Final[tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]] = (
    (("kafka",), ("kafka",)),
    (("cluster", "brokers"), ("brokers", "racks")),
    (("cluster", "topics"), ("partitions", "replication_factor")),
    (("cluster", "network"), ("latency",)),
    (("cluster", "disk"), ("writeback",)),
    (("workload", "producers"), ("producers", "rate")),
    (("workload", "consumers"), ("consumers",)),
)


def without_choice(root: MapNode, parts: tuple[str, ...]) -> MapNode:
    """Return a campaign whose swarm does not draw what stands at the place *parts*."""
    entry = root.entries.get(_SWARM)
    if parts[0] == _SWARM or entry is None or not isinstance(entry.value, MapNode):
        return root
    swarm = _without_setting(entry.value, parts) if _SETTINGS in parts else _without_keys(entry.value, parts)
    return _with(root, _SWARM, swarm)


def _without_keys(swarm: MapNode, parts: tuple[str, ...]) -> MapNode:
    closed: tuple[str, ...] = ()
    if parts[-1] in _NAMED_ALIKE:
        closed = (parts[-1],)
    else:
        for place, keys in _CLOSED_BY:
            if parts[: len(place)] == place:
                closed = keys
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
