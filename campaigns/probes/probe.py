"""What a probe is, and how one is declared.

A probe is a rare state that a run counts when it reaches it. A campaign that never reached what it is meant to test has
shown nothing, and can say what it has to reach.

A probe is a function. Its name, with hyphens, is that of the probe; its docstring says what the state is and, after an empty
line, what it means. Below `probe` the annotation of ``event`` says at which kinds of events it is asked, and it returns how
often the state was reached. Below `at_each` it has no body: the fields of the event decide. Where runs can reach it follows
from the declaration of the events and of the requests; what does not follow is an argument of the decorator.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from itertools import product
from typing import Any, Final, TypeVar, get_args, get_type_hints

from harrow.campaigns.probes.reach import ProbeReach
from harrow.cluster_model.apis import APIS
from harrow.cluster_model.events import EVENTS, Event
from harrow.cluster_model.registry import Registry, derived
from harrow.cluster_model.release.profiles import SWITCHES
from harrow.cluster_model.topology import CONSUMER_OFFSETS, CONTROL_PLANES, TRANSACTION_STATE

Condition = Callable[[Any, Any], int]
"""Asked with what the run has done so far (`harrow.campaigns.probes.probe_memory.ProbeMemory`), and an event."""
F = TypeVar("F", bound=Callable[..., int | None])

_MISSING: Final[Mapping[str, str]] = {
    CONSUMER_OFFSETS: "no client is a member of a group",
    TRANSACTION_STATE: "no client has transactions",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A rare state, as it was declared.

    It is asked ``at`` events of these kinds: by its ``condition``, or where fields of the event have one of the values in
    ``where``. ``at_end`` counts what lasted until the end of the run. ``of`` names the control plane and the internal topics that
    it needs beside those of the events, ``switch`` a behaviour that has to be on, ``protocol`` the ``group.protocol`` of a client.
    """

    doc: str
    at: tuple[type[Event], ...]
    condition: Condition | None = None
    where: Mapping[str, tuple[Any, ...]]
    at_end: Condition | None = None
    of: tuple[str, ...] = ()
    switch: str | None = None
    protocol: str | None = None

    def control_planes(self) -> frozenset[str]:
        """Return the control planes with which it can be reached."""
        planes = [parts & CONTROL_PLANES.keys() for parts in self._parts()]
        return frozenset(CONTROL_PLANES).intersection(*filter(None, planes))

    def topics(self) -> frozenset[str]:
        """Return the internal topics without which it is never reached."""
        return frozenset().union(*self._parts()) & _MISSING.keys()

    def _parts(self) -> tuple[frozenset[str], ...]:
        apis = (APIS.get(api) for api in self.where.get("api", ()))
        return frozenset(self.of), _bound(kind.of for kind in self.at), _bound(apis)

    def obstacle(self, reach: ProbeReach) -> str | None:
        """Return why runs can never reach it; None if they can."""
        planes, missing = self.control_planes(), self.topics() - reach.topics
        if not planes & reach.control_planes:
            return f"it needs {' or '.join(CONTROL_PLANES[plane] for plane in CONTROL_PLANES if plane in planes)}"
        if self.switch is not None and reach.behaviours is not None and self.switch not in reach.behaviours:
            return f"it needs {self.switch}, which Kafka has since {_first_release(self.switch)}"
        why = next((_MISSING[topic] for topic in _MISSING if topic in missing), None)
        if why is None and self.protocol is not None and reach.group_protocols is not None:
            is_there = self.protocol in reach.group_protocols
            why = None if is_there else f"no client has group.protocol={self.protocol}"
        return why


def _first_release(switch: str) -> str:
    return next(release for release, value in SWITCHES[switch].history() if value is True)


def _bound(parts: Iterable[str | None]) -> frozenset[str]:
    """Return the only parts of Kafka that several alternatives belong to; none if one of them belongs to no part."""
    found = frozenset(parts)
    return frozenset() if None in found else frozenset(part for part in found if part is not None)


PROBES: Final[Registry[str, Probe]] = Registry()
"""Every rare state, in the order in which they are listed."""


def probe(
    *,
    of: tuple[str, ...] = (),
    switch: str | None = None,
    protocol: str | None = None,
    at_end: Condition | None = None,
) -> Callable[[F], F]:
    """Declare a probe whose condition the function decides.

    *at_end* is called with the memory and the time of the last event: it counts what has lasted until then.

    Raises:
        TypeError: only subscribers see one of its events, and those are counted without a memory.

    """

    def declare(function: F) -> F:
        kind = function.__annotations__["event"]
        kind = get_type_hints(function)["event"] if isinstance(kind, str) else kind
        at = get_args(kind) or (kind,)
        if not all(each.name in EVENTS for each in at):
            raise TypeError(f"{function.__name__}: no trace has {kind}; declare it below `at_each`")
        _declare(
            function, at, condition=function, at_end=at_end, of=of, switch=switch, protocol=protocol, where={}
        )
        return function

    return declare


def at_each(
    kind: type[Event],
    *,
    of: tuple[str, ...] = (),
    switch: str | None = None,
    protocol: str | None = None,
    **where: Any,
) -> Callable[[F], F]:
    """Declare a probe that is reached at each event of a kind, or at those whose fields have a value, or one of several.

    Raises:
        TypeError: such events have no field of that name.

    """

    def declare(function: F) -> F:
        unknown = where.keys() - set(_fields_of(kind))
        if unknown:
            raise TypeError(f"{function.__name__}: {kind.__name__} has no field {', '.join(sorted(unknown))}")
        values = {name: value if isinstance(value, tuple) else (value,) for name, value in where.items()}
        _declare(function, (kind,), of=of, switch=switch, protocol=protocol, where=values)
        return function

    return declare


def _declare(function: Callable[..., int | None], at: tuple[type[Event], ...], **more: Any) -> None:
    paragraphs = (function.__doc__ or "").split("\n\n")
    doc = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    PROBES[function.__name__.replace("_", "-")] = Probe(doc=doc, at=at, **more)


def _fields_of(kind: type[Event]) -> list[str]:
    return [item.name for item in fields(kind)[1:]]


@dataclass(frozen=True, slots=True)
class Lookup:
    """Which probes an event reaches by the values of some fields; ``places`` are those of the fields behind the event's name."""

    places: tuple[int, ...]
    probes: Mapping[tuple[Any, ...], tuple[str, ...]]


@derived
def lookups() -> Mapping[type[Event], tuple[Lookup, ...]]:
    """Return how events of each kind are looked up, one for each choice of fields that probes go by."""
    found: dict[type[Event], dict[tuple[str, ...], dict[tuple[Any, ...], tuple[str, ...]]]] = {}
    for name, each in PROBES.items():
        for kind in each.at if each.condition is None else ():
            by_values = found.setdefault(kind, {}).setdefault(tuple(each.where), {})
            for values in product(*each.where.values()):
                by_values[values] = (*by_values.get(values, ()), name)
    return {
        kind: tuple(
            Lookup(tuple(_fields_of(kind).index(name) for name in where), by_values)
            for where, by_values in by_fields.items()
        )
        for kind, by_fields in found.items()
    }


@derived
def conditions() -> Mapping[str, tuple[tuple[str, Condition], ...]]:
    """Return the probes with a condition, by the name of the events at which they are asked."""
    found: dict[str, tuple[tuple[str, Condition], ...]] = {}
    for name, each in PROBES.items():
        for kind in each.at if each.condition is not None else ():
            assert each.condition is not None
            found[kind.name] = (*found.get(kind.name, ()), (name, each.condition))
    return found
