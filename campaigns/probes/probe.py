"""Defines probes, and how to declare one.

A probe is a rare state. A run counts how often it reaches each probe. A campaign whose runs never
reach the state that it is meant to test shows nothing, so a campaign can require probes.

A probe is a function. Its name, with hyphens, is the name of the probe. Its docstring describes the
state and, after an empty line, explains what it means. A function decorated with `probe` returns
how often an event reached the state; the annotation of ``event`` selects the kinds of events. If
the decorator has kinds of events as its arguments, the parameters of the function are names of
fields of these events. This form is for frequent events: to make an object for each of them would
take too much time. A function decorated with `at_each` has no body, because the fields of the event
decide. The declarations of events and requests decide which runs can reach a probe; arguments of
the decorator add conditions.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from itertools import product
from typing import Any, Final, NamedTuple, TypeVar, get_args, get_type_hints

from harrow.campaigns.probes.reach import ProbeReach
from harrow.cluster_model.apis import APIS
from harrow.cluster_model.events import EVENTS, Event
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.registry import Registry, derived
from harrow.cluster_model.release.profiles import SWITCHES
from harrow.cluster_model.topology import CONSUMER_OFFSETS, CONTROL_PLANES, TRANSACTION_STATE

Condition = Callable[..., int]
"""Takes the memory of the run (`harrow.campaigns.probes.probe_memory.ProbeMemory`), and an event or
some of its fields. Returns how often the event reached the state."""
F = TypeVar("F", bound=Callable[..., int | None])

_FIRST_IN_ROWS: Final = {"at_us": 0, "name": 1}
"""The places in a trace's row that all kinds of events have in common."""
_WHY_TOPIC_IS_UNUSED: Final[Mapping[str, str]] = {
    CONSUMER_OFFSETS: "no client is a member of a group",
    TRANSACTION_STATE: "no client has transactions",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A rare state, as declared.

    At each event of a kind in ``at``, either ``condition`` decides whether the state is reached, or
    ``where`` does, which lists the values that fields of the event must have. A condition takes the
    fields of the event that ``fields`` names, or the whole event if ``fields`` is None. ``at_end``
    counts states that last until the end of the run.
    ``subsystems`` names the control plane and the internal topics that the probe needs beyond those
    of its events. ``switch`` is a behaviour that has to be on, and ``protocol`` the
    ``group.protocol`` that a client has to have.
    """

    doc: str
    at: tuple[type[Event], ...]
    condition: Condition | None = None
    fields: tuple[str, ...] | None = None
    where: Mapping[str, tuple[Any, ...]]
    at_end: Condition | None = None
    subsystems: tuple[str, ...] = ()
    switch: str | None = None
    protocol: str | None = None

    def control_planes(self) -> frozenset[str]:
        """Return the control planes with which the probe can be reached."""
        planes = [names & CONTROL_PLANES.keys() for names in self._required_subsystems()]
        return frozenset(CONTROL_PLANES).intersection(*filter(None, planes))

    def topics(self) -> frozenset[str]:
        """Return the internal topics that the probe needs."""
        return frozenset().union(*self._required_subsystems()) & _WHY_TOPIC_IS_UNUSED.keys()

    def _required_subsystems(self) -> tuple[frozenset[str], ...]:
        """Return the subsystems that the probe, its events and its APIs need."""
        apis = (APIS.get(api) for api in self.where.get("api", ()))
        return (
            frozenset(self.subsystems),
            _alternatives(kind.subsystem for kind in self.at),
            _alternatives(apis),
        )

    def obstacle(self, reach: ProbeReach) -> str | None:
        """Explain why no run can reach the probe; return None if a run can."""
        planes, missing = self.control_planes(), self.topics() - reach.topics
        if not planes & reach.control_planes:
            return f"it needs {' or '.join(CONTROL_PLANES[plane] for plane in CONTROL_PLANES if plane in planes)}"
        if self.switch is not None and reach.behaviours is not None and self.switch not in reach.behaviours:
            return f"it needs {self.switch}, which Kafka has since {_first_release(self.switch)}"
        why = next((why for topic, why in _WHY_TOPIC_IS_UNUSED.items() if topic in missing), None)
        if why is None and self.protocol is not None and reach.group_protocols is not None:
            is_possible = self.protocol in reach.group_protocols
            why = None if is_possible else f"no client has group.protocol={self.protocol}"
        return why


def _first_release(switch: str) -> str:
    return next(release for release, value in SWITCHES[switch].history() if value is True)


def _alternatives(subsystems: Iterable[str | None]) -> frozenset[str]:
    """Return the subsystems of several events or APIs; none if one of these needs no subsystem."""
    names = frozenset(subsystems)
    return frozenset() if None in names else frozenset(filter(None, names))


PROBES: Final[Registry[str, Probe]] = Registry()
"""Every rare state, in the order of lists and documents."""


def probe(
    *of_fields: type[Event],
    subsystems: tuple[str, ...] = (),
    switch: str | None = None,
    protocol: str | None = None,
    at_end: Condition | None = None,
) -> Callable[[F], F]:
    """Declare a probe whose condition is the decorated function.

    With *of_fields*, kinds of events, the function takes fields of such an event; otherwise it
    takes the event. *at_end* is called with the memory and the time of the last event, and counts
    states that lasted until then.

    Raises:
        TypeError: Traces do not contain an event that the function takes (only subscribers see it,
            and they have no memory), or the event lacks a field that the function takes.

    """

    def declare(function: F) -> F:
        if not of_fields:
            kind = function.__annotations__["event"]
            kind = get_type_hints(function)["event"] if isinstance(kind, str) else kind
            at, names = get_args(kind) or (kind,), None
        else:
            at = of_fields
            names = tuple(name for name in function.__annotations__ if name != "return")[1:]
            for kind in at:
                _require_fields(function, kind, set(names) - _FIRST_IN_ROWS.keys())
        if not all(event.name in EVENTS for event in at):
            raise TypeError(
                f"{function.__name__}: traces do not have {kind}; declare the probe with `at_each`"
            )
        _declare(
            function,
            at,
            condition=function,
            fields=names,
            at_end=at_end,
            subsystems=subsystems,
            switch=switch,
            protocol=protocol,
            where={},
        )
        return function

    return declare


def at_each(
    kind: type[Event],
    *,
    subsystems: tuple[str, ...] = (),
    switch: str | None = None,
    protocol: str | None = None,
    **where: Any,
) -> Callable[[F], F]:
    """Declare a probe that each event of a kind reaches if its fields have the values in *where*.

    A tuple lists several possible values of a field.

    Raises:
        TypeError: Events of this kind lack a field in *where*.

    """

    def declare(function: F) -> F:
        _require_fields(function, kind, where)
        values = {name: value if isinstance(value, tuple) else (value,) for name, value in where.items()}
        _declare(function, (kind,), subsystems=subsystems, switch=switch, protocol=protocol, where=values)
        return function

    return declare


def _require_fields(function: Callable[..., object], kind: type[Event], names: Iterable[str]) -> None:
    unknown = set(names) - set(_fields_of(kind))
    if unknown:
        raise TypeError(f"{function.__name__}: {kind.__name__} has no field {', '.join(sorted(unknown))}")


def _declare(function: Callable[..., int | None], at: tuple[type[Event], ...], **options: Any) -> None:
    paragraphs = (function.__doc__ or "").split("\n\n")
    doc = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    PROBES[function.__name__.replace("_", "-")] = Probe(doc=doc, at=at, **options)


def _fields_of(kind: type[Event]) -> list[str]:
    return [item.name for item in fields(kind)[1:]]


def _place_in_row(kind: type[Event], field: str) -> int:
    """Return where the trace's row of an event has a field."""
    first = _FIRST_IN_ROWS.get(field)
    return _fields_of(kind).index(field) + len(_FIRST_IN_ROWS) if first is None else first


@dataclass(frozen=True, slots=True)
class Lookup:
    """The probes that events with certain field values reach.

    ``positions`` says which fields of the event to compare. ``probes`` maps their values to the
    names of probes.
    """

    positions: tuple[int, ...]
    probes: Mapping[tuple[Any, ...], tuple[str, ...]]


@derived
def lookups() -> Mapping[type[Event], tuple[Lookup, ...]]:
    """Return the lookups for each kind of event, one for each set of fields that probes compare."""
    by_kind: dict[type[Event], dict[tuple[str, ...], dict[tuple[Any, ...], tuple[str, ...]]]] = {}
    for name, declared in PROBES.items():
        for kind in declared.at if declared.condition is None else ():
            by_values = by_kind.setdefault(kind, {}).setdefault(tuple(declared.where), {})
            for values in product(*declared.where.values()):
                by_values[values] = (*by_values.get(values, ()), name)
    return {
        kind: tuple(
            Lookup(tuple(_fields_of(kind).index(name) for name in where), by_values)
            for where, by_values in by_fields.items()
        )
        for kind, by_fields in by_kind.items()
    }


class FieldCondition(NamedTuple):
    """A condition on fields of an event, and the places of these fields in the trace's row."""

    probe: str
    condition: Condition
    places: tuple[int, ...]


@derived
def conditions() -> Mapping[str, tuple[tuple[str, Condition], ...]]:
    """Return the probes whose condition takes an event, by the name of the event."""
    by_event: dict[str, tuple[tuple[str, Condition], ...]] = {}
    for name, declared in PROBES.items():
        if (condition := declared.condition) is not None and declared.fields is None:
            for kind in declared.at:
                by_event[kind.name] = (*by_event.get(kind.name, ()), (name, condition))
    return by_event


@derived
def field_conditions() -> Mapping[str, tuple[FieldCondition, ...]]:
    """Return the probes whose condition takes fields of an event, by the name of the event."""
    by_event: dict[str, tuple[FieldCondition, ...]] = {}
    for name, declared in PROBES.items():
        if (condition := declared.condition) is not None and declared.fields is not None:
            for kind in declared.at:
                places = tuple(_place_in_row(kind, field) for field in declared.fields)
                by_event[kind.name] = (*by_event.get(kind.name, ()), FieldCondition(name, condition, places))
    return by_event
