"""Finds the choices that a swarm leaves open, and closes one for an option (``--set acks=1``)."""

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
    """A field of a plan that a swarm may draw: its path in a campaign, and its declaration."""

    path: str
    field: DeclaredField

    @property
    def key(self) -> str:
        """Return the swarm's key for its values."""
        return self.field.options.open


@derived
def open_fields() -> tuple[OpenField, ...]:
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
    """Return the places of a campaign that close each choice; a seed draws the first of them."""
    choices = {item.key: item.options.closed_by for item in fields_of(Swarm)}
    choices |= {key: (f"workload.{key}",) for key, _ in application_kinds()}
    return choices | {choice.key: (choice.path, *choice.field.options.closed_by) for choice in open_fields()}


@derived
def _section_lists() -> frozenset[str]:
    """Return the places of a campaign whose values are lists of sections."""
    declared = {path for path, item in _fields(Plan, "") if item.many and is_dataclass(item.kind)}
    return frozenset(declared | {f"workload.{key}" for key, _ in application_kinds()})


def _choices_closed_by(place: str) -> set[str]:
    """Return the choices that an option for *place*, or for a part of it, closes.

    An option that sets a whole list closes the choices inside its items as well.
    """
    return {
        key
        for key, places in _choices().items()
        for number, closed_by in enumerate(places)
        if f"{place}.".startswith(f"{closed_by}.")
        or (number == 0 and place in _section_lists() and closed_by.startswith(f"{place}."))
    }


def without_choice(root: MapNode, parts: tuple[str, ...], value: Node) -> MapNode:
    """Return a campaign whose swarm does not draw the place that an option sets to *value*."""
    entry = root.entries.get(_SWARM)
    if parts[0] == _SWARM or entry is None or not isinstance(entry.value, MapNode):
        return root
    closed: list[Path] = []
    for place in (parts, *_places(parts, value)):
        if _SETTINGS in place:
            closed.append((_SWARM, _SETTINGS, place[-1]))
        else:
            keys = _choices_closed_by(".".join(part for part in place if not part.isdigit()))
            closed += [(_SWARM, key) for key in keys]
    return without(root, [*closed, *_closed_in_aims(entry.value, closed)])


def _closed_in_aims(swarm: MapNode, closed: list[Path]) -> Iterator[Path]:
    """Yield the places in aims of the choices that are closed in the swarm."""
    aims = swarm.entries.get(_AIMS)
    listed = aims.value.entries.get(_LISTED) if aims is not None and isinstance(aims.value, MapNode) else None
    if listed is not None and isinstance(listed.value, ListNode):
        for number in range(len(listed.value.items)):
            yield from ((_SWARM, _AIMS, _LISTED, number, *path[1:]) for path in closed)


def _places(parts: tuple[str, ...], value: Node) -> Iterator[tuple[str, ...]]:
    """Yield the places that a value sets: its leaves, or *parts* itself."""
    if isinstance(value, MapNode) and value.entries:
        for key, entry in value.entries.items():
            yield from _places((*parts, key), entry.value)
    elif isinstance(value, ListNode) and value.items:
        for number, item in enumerate(value.items):
            yield from _places((*parts, str(number)), item)
    else:
        yield parts
