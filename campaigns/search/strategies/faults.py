"""Faults of every kind, from the fields that a campaign may give them."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Final

from hypothesis import strategies as st

from harrow.campaigns.search.strategies.field_values import USUAL, Values, of_field
from harrow.cluster_model import fields as kinds
from harrow.cluster_model.fields import fields_of
from harrow.cluster_model.sim.virtual_time import US_PER_MS
from harrow.faults.catalogue import FAULTS
from harrow.faults.fault import Fault
from harrow.faults.link_ends import GROUPS, ZOOKEEPER

Kind = str | type[Fault] | Fault

ANY: Final = "any"


def usual_kinds() -> tuple[str, ...]:
    """Return what is drawn by default: all but faults that refer to a rule, which needs a name to refer to."""
    return tuple(
        name
        for name, kind in FAULTS.items()
        if not any(item.kind is kinds.MessageRuleMarker for item in fields_of(kind))
    )


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
    known = {**USUAL, **_usual(brokers, partitions, clients), **(values or {})}
    return st.one_of([_of_kind(kind, known, brokers) for kind in (usual_kinds() if kinds is None else kinds)])


def _of_kind(kind: Kind, known: Values, brokers: Sequence[int]) -> st.SearchStrategy[Fault]:
    if isinstance(kind, str):
        if kind not in FAULTS:
            raise ValueError(f"there is no fault `{kind}`; there are {', '.join(FAULTS)}")
        kind = FAULTS[kind]
    if not isinstance(kind, type):
        return decided(kind, brokers)
    drawn = st.builds(kind, **{item.attribute: of_field(item, known) for item in fields_of(kind)})
    # What has a problem is refused in a campaign file.
    return drawn.filter(lambda fault: fault.problem() is None)


def _usual(brokers: Sequence[int], partitions: Sequence[str], clients: Sequence[str]) -> Values:
    """Return what a field can hold: the plainest first, for that is what Hypothesis shrinks to."""
    roles = [f"{role} of {name}" for name in partitions for role in ("leader", "follower")]
    return {
        kinds.BrokerMarker: st.sampled_from([*brokers, "controller", *roles]),
        kinds.EndpointMarker: st.sampled_from([*brokers, "zookeeper", *clients]),
        kinds.LinkEndMarker: st.sampled_from(
            [*brokers, ZOOKEEPER, *clients, *GROUPS, "controller", "any", *roles]
        ),
        kinds.ClientMarker: st.sampled_from(list(clients)) if clients else st.nothing(),
        kinds.ClientTargetMarker: st.sampled_from([*clients, "any", "all"]),
        kinds.PartitionMarker: st.sampled_from(list(partitions)),
        kinds.MessageRuleNameMarker: st.just("message"),
        kinds.MessageRuleMarker: st.just("message"),
    }


@st.composite
def decided(draw: st.DrawFn, fault: Fault, brokers: Sequence[int]) -> Fault:
    """Draw what a fault leaves open: how long, and which broker ``any`` is."""
    found: dict[str, Any] = {}
    for item in fields_of(type(fault)):
        value = item.of(fault)
        if value is not None and issubclass(item.kind, kinds.DurationRangeMarker):
            low_us, high_us = value
            length_us = draw(st.integers(low_us // US_PER_MS, high_us // US_PER_MS)) * US_PER_MS
            found[item.attribute] = (length_us, length_us) if low_us != high_us else value
        elif value == ANY and item.kind is kinds.BrokerMarker:
            found[item.attribute] = draw(st.sampled_from(list(brokers)))
    changed: Any = fault  # A fault is a dataclass, which its protocol cannot say.
    made: Fault = replace(changed, **found)
    return made
