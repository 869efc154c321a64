"""What a swarm may leave open; and what an option decides, no seed draws: ``--set acks=1`` closes that choice."""

from collections.abc import Iterator
from dataclasses import is_dataclass
from typing import Any, Final, NamedTuple

from harrow.campaigns.clients.clients import application_kinds
from harrow.campaigns.language.plan import Plan, Swarm
from harrow.campaigns.language.yaml_positions import ListNode, MapNode, Node, Path, without
from harrow.cluster_model.fields import DeclaredField, fields_of
from harrow.cluster_model.registry import derived

_SWARM: Final = "swarm"
_SETTINGS: Final = "settings"
_AIMS: Final = "aims"
_LISTED: Final = "any_of"


class OpenField(NamedTuple):
    """A field of a plan that a swarm may draw: where it stands in a campaign, and its declaration."""

    path: str
    field: DeclaredField

    @property
    def key(self) -> str:
        """Return the key under which a swarm has its values."""
        return self.field.options.open


@derived
def open_fields() -> tuple[OpenField, ...]:
    """Return every field of a plan that is declared as open."""
    return tuple(OpenField(path, item) for path, item in _plan_fields() if item.options.open)


def _plan_fields() -> Iterator[tuple[str, DeclaredField]]:
    yield from _fields(Plan, "")
    for key, kind in application_kinds():
        yield from _fields(kind.spec, f"workload.{key}.")


def _fields(declared: type[Any], above: str) -> Iterator[tuple[str, DeclaredField]]:
    for item in fields_of(declared):
        path = above + item.key
        yield path, item
        if is_dataclass(item.kind) and item.kind is not Swarm:
            yield from _fields(item.kind, f"{path}.")


@derived
def _choices() -> dict[str, tuple[str, ...]]:
    """Return the places of a campaign that decide each choice of a swarm: first that of what it draws."""
    found = {item.key: item.options.closed_by for item in fields_of(Swarm)}
    found |= {key: (f"workload.{key}",) for key, _ in application_kinds()}
    return found | {choice.key: (choice.path, *choice.field.options.closed_by) for choice in open_fields()}


@derived
def _lists() -> frozenset[str]:
    """Return the places of a campaign that have a list of sections."""
    declared = {path for path, item in _fields(Plan, "") if item.many and is_dataclass(item.kind)}
    return frozenset(declared | {f"workload.{key}" for key, _ in application_kinds()})


def _closed(place: str) -> set[str]:
    """Return the choices that are closed by an option about *place*, or about a part of it.

    One that puts a whole list closes what would be drawn for each item of it.
    """
    return {
        key
        for key, places in _choices().items()
        for number, closed_by in enumerate(places)
        if f"{place}.".startswith(f"{closed_by}.")
        or (number == 0 and place in _lists() and closed_by.startswith(f"{place}."))
    }


def without_choice(root: MapNode, parts: tuple[str, ...], value: Node) -> MapNode:
    """Return a campaign whose swarm does not draw what an option says: a *value* at the place *parts*."""
    entry = root.entries.get(_SWARM)
    if parts[0] == _SWARM or entry is None or not isinstance(entry.value, MapNode):
        return root
    gone: list[Path] = []
    for place in (parts, *_places(parts, value)):
        if _SETTINGS in place:
            gone.append((_SWARM, _SETTINGS, place[-1]))
        else:
            gone += [(_SWARM, key) for key in _closed(".".join(part for part in place if not part.isdigit()))]
    return without(root, [*gone, *_in_aims(entry.value, gone)])


def _in_aims(swarm: MapNode, gone: list[Path]) -> Iterator[Path]:
    """Yield where an aim says what a swarm does not draw any more."""
    aims = swarm.entries.get(_AIMS)
    listed = aims.value.entries.get(_LISTED) if aims is not None and isinstance(aims.value, MapNode) else None
    if listed is not None and isinstance(listed.value, ListNode):
        for number in range(len(listed.value.items)):
            yield from ((_SWARM, _AIMS, _LISTED, number, *path[1:]) for path in gone)


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
