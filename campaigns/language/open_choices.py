"""Finds the choices that a swarm leaves open, and closes those that options decide.

With ``--set acks=1``, for example, a swarm no longer draws ``acks``.
"""

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
_ANY_OF: Final = "any_of"


class OpenField(NamedTuple):
    """A field of a plan that a swarm can draw: its path in a campaign, and its declaration."""

    path: str
    field: DeclaredField

    @property
    def key(self) -> str:
        """Return the key under ``swarm`` for the values of the field."""
        return self.field.options.open


@derived
def open_fields() -> tuple[OpenField, ...]:
    return tuple(OpenField(path, item) for path, item in _plan_fields() if item.options.open)


def _plan_fields() -> Iterator[tuple[str, DeclaredField]]:
    yield from _fields(Plan, "")
    for key, kind in application_kinds():
        yield from _fields(kind.spec, f"workload.{key}.")


def _fields(declared: type[Any], prefix: str) -> Iterator[tuple[str, DeclaredField]]:
    for item in fields_of(declared):
        path = prefix + item.key
        yield path, item
        if is_dataclass(item.kind) and item.kind is not Swarm:
            yield from _fields(item.kind, f"{path}.")


@derived
def _choices() -> dict[str, tuple[str, ...]]:
    """Return, for each choice, the paths in a campaign that decide it.

    An option for one of them closes the choice. A seed draws a value for the first of them.
    """
    choices = {item.key: item.options.closed_by for item in fields_of(Swarm)}
    choices |= {key: (f"workload.{key}",) for key, _ in application_kinds()}
    return choices | {choice.key: (choice.path, *choice.field.options.closed_by) for choice in open_fields()}


@derived
def _section_lists() -> frozenset[str]:
    """Return the paths in a campaign whose values are lists of sections."""
    declared = {path for path, item in _fields(Plan, "") if item.many and is_dataclass(item.kind)}
    return frozenset(declared | {f"workload.{key}" for key, _ in application_kinds()})


def _choices_closed_by(place: str) -> set[str]:
    """Return the choices that an option for the path *place* closes.

    An option that sets a whole list also closes choices within its items.
    """
    return {
        key
        for key, places in _choices().items()
        for number, closed_by in enumerate(places)
        if f"{place}.".startswith(f"{closed_by}.")
        or (number == 0 and place in _section_lists() and closed_by.startswith(f"{place}."))
    }


def without_choice(root: MapNode, parts: tuple[str, ...], value: Node) -> MapNode:
    """Return a campaign whose swarm does not draw what an option sets to *value*.

    *parts* are the keys in the option.
    """
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
    return without(root, [*closed, *_aim_paths_of(entry.value, closed)])


def _aim_paths_of(swarm: MapNode, closed: list[Path]) -> Iterator[Path]:
    """Yield the paths in the swarm's aims of the choices that are closed."""
    aims = swarm.entries.get(_AIMS)
    listed = aims.value.entries.get(_ANY_OF) if aims is not None and isinstance(aims.value, MapNode) else None
    if listed is not None and isinstance(listed.value, ListNode):
        for number in range(len(listed.value.items)):
            yield from ((_SWARM, _AIMS, _ANY_OF, number, *path[1:]) for path in closed)


def _places(parts: tuple[str, ...], value: Node) -> Iterator[tuple[str, ...]]:
    """Yield the paths that a value at the path *parts* sets: those of its leaves, or *parts*."""
    if isinstance(value, MapNode) and value.entries:
        for key, entry in value.entries.items():
            yield from _places((*parts, key), entry.value)
    elif isinstance(value, ListNode) and value.items:
        for number, item in enumerate(value.items):
            yield from _places((*parts, str(number)), item)
    else:
        yield parts
