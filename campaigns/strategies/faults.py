"""Faults of every kind, from the fields that a campaign may give them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from cluster_model.virtual_time import US_PER_MS
from faults import fields as markers
from faults.catalogue import FAULTS
from faults.fault import Fault
from faults.message import Release
from faults.partition import NetworkPartition

Kind = str | type[Fault] | Fault
Values = Mapping[Any, st.SearchStrategy[Any]]
"""Strategies by marker (`faults.fields`) or plain type, in place of the usual ones."""

ANY: Final = "any"
DURATIONS_US: Final = st.integers(0, 120).map(lambda tenths: tenths * 100 * US_PER_MS)
"""Up to twelve seconds: longer than what brokers wait for by default."""
KINDS: Final = tuple(name for name, kind in FAULTS.items() if kind is not Release)
"""What is drawn where no kinds are named; a message is released by its name, so by who gave it one."""


def faults(
    *,
    kinds: Iterable[Kind] | None = None,
    brokers: Sequence[int] = (0, 1, 2),
    partitions: Sequence[str] = ("t-0",),
    clients: Sequence[str] = ("producer-0",),
    values: Values | None = None,
) -> st.SearchStrategy[Fault]:
    """Return faults of some *kinds*, or of all: names, classes, or faults that leave something open.

    Of a class every field is drawn. A fault stands for itself, with a duration drawn from each range
    and a broker for each ``any``. *values* replaces what a kind of field can hold.
    """
    known = {**_usual(brokers, partitions, clients), **(values or {})}
    return st.one_of([_of_kind(kind, known, brokers) for kind in (KINDS if kinds is None else kinds)])


def _of_kind(kind: Kind, known: Values, brokers: Sequence[int]) -> st.SearchStrategy[Fault]:
    if isinstance(kind, str):
        if kind not in FAULTS:
            raise ValueError(f"there is no fault `{kind}`; there are {', '.join(FAULTS)}")
        kind = FAULTS[kind]
    if not isinstance(kind, type):
        return decided(kind, brokers)
    drawn = st.builds(kind, **{name: of_hint(hint, known) for name, hint in _fields(kind).items()})
    return drawn.filter(_may_strike)


def _may_strike(fault: Fault) -> bool:
    """Return whether a campaign file may say a fault: one that cuts no link is refused."""
    return not isinstance(fault, NetworkPartition) or bool(fault.links())


def _fields(kind: type[Fault]) -> dict[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    hints.pop("name")
    return hints


def _usual(brokers: Sequence[int], partitions: Sequence[str], clients: Sequence[str]) -> dict[Any, Any]:
    """Return what a field can hold: the plainest first, for that is what Hypothesis shrinks to."""
    roles = [f"{role} of {name}" for name in partitions for role in ("leader", "follower")]
    return {
        markers.DurationMarker: DURATIONS_US,
        markers.DurationRangeMarker: DURATIONS_US.map(lambda us: (us, us)),
        markers.BrokerMarker: st.sampled_from([*brokers, "controller", *roles]),
        markers.EndpointMarker: st.sampled_from([*brokers, "zookeeper", *clients]),
        markers.ClientMarker: st.sampled_from(list(clients)) if clients else st.nothing(),
        markers.PartitionMarker: st.sampled_from(list(partitions)),
        markers.ProbabilityMarker: st.sampled_from([1.0, 0.5, 0.1]),
        markers.CountMarker: st.integers(1, 4),
        markers.SkipMarker: st.integers(0, 20),
        markers.ApiMarker: st.sampled_from(markers.APIS),
        bool: st.booleans(),
        str: st.just("message"),
    }


def of_hint(hint: Any, known: Values) -> st.SearchStrategy[Any]:
    """Return what a field of this type can hold."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType) and NoneType in arguments:
        parts = tuple(part for part in arguments if part is not NoneType)
        rest: Any = Union[parts]  # noqa: UP007 - known only here, so `|` cannot be written out
        return st.none() | of_hint(rest, known)
    if origin is Annotated:
        return known[arguments[1]]
    if origin is tuple:
        return st.lists(of_hint(arguments[0], known), min_size=1, max_size=3).map(tuple)
    if origin is Literal:
        return st.sampled_from(arguments)
    return known[hint]


@st.composite
def decided(draw: st.DrawFn, fault: Fault, brokers: Sequence[int]) -> Fault:
    """Draw what a fault leaves open: how long, and which broker ``any`` is."""
    found: dict[str, Any] = {}
    for name, hint in _fields(type(fault)).items():
        value, marker = getattr(fault, name), repr(hint)
        if value is not None and markers.DurationRangeMarker.__name__ in marker:
            low_us, high_us = value
            length_us = draw(st.integers(low_us // US_PER_MS, high_us // US_PER_MS)) * US_PER_MS
            found[name] = (length_us, length_us) if low_us != high_us else value
        elif value == ANY and markers.BrokerMarker.__name__ in marker:
            found[name] = draw(st.sampled_from(list(brokers)))
    changed: Any = fault  # A fault is a dataclass, which its protocol cannot say.
    made: Fault = replace(changed, **found)
    return made
