"""Strategies for faults of every kind, from the fields that a campaign can set."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from hypothesis import strategies as st

from harrow.campaigns.search.strategies.field_values import USUAL, Values, of_field
from harrow.cluster_model import fields as kinds
from harrow.cluster_model.fields import fields_of
from harrow.cluster_model.lazy_dataclass import replace
from harrow.cluster_model.sim.virtual_time import US_PER_MS
from harrow.faults.catalogue import FAULTS
from harrow.faults.fault import Fault
from harrow.faults.link_ends import GROUPS, ZOOKEEPER

Kind = str | type[Fault] | Fault

ANY: Final = "any"


def usual_kinds() -> tuple[str, ...]:
    """Return the default kinds: all except those that refer to a message rule by its name."""
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
    """Return a strategy for faults of some *kinds*, by default of all kinds.

    A kind is a name, a class, or a fault with open values. For a name or a class, every field is
    drawn. For a fault, only open values are drawn: a duration from each range, and a broker for
    each ``any``. *values* replaces the strategies for a kind of field.
    """
    usual = {**USUAL, **_usual(brokers, partitions, clients), **(values or {})}
    return st.one_of([_of_kind(kind, usual, brokers) for kind in (usual_kinds() if kinds is None else kinds)])


def _of_kind(kind: Kind, usual: Values, brokers: Sequence[int]) -> st.SearchStrategy[Fault]:
    if isinstance(kind, str):
        if kind not in FAULTS:
            raise ValueError(f"there is no fault `{kind}`; there are {', '.join(FAULTS)}")
        kind = FAULTS[kind]
    if not isinstance(kind, type):
        return decided(kind, brokers)
    strategy = st.builds(kind, **{item.attribute: of_field(item, usual) for item in fields_of(kind)})
    # A campaign file with such a fault would be rejected.
    return strategy.filter(lambda fault: fault.problem() is None)


def _usual(brokers: Sequence[int], partitions: Sequence[str], clients: Sequence[str]) -> Values:
    """Return strategies for fields. Hypothesis shrinks to the first value, the simplest one."""
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
    """Draw the open values of a fault: its durations, and a broker for ``any``."""
    changes: dict[str, Any] = {}
    for item in fields_of(type(fault)):
        value = item.value_in(fault)
        if value is not None and issubclass(item.kind, kinds.DurationRangeMarker):
            low_us, high_us = value
            length_us = draw(st.integers(low_us // US_PER_MS, high_us // US_PER_MS)) * US_PER_MS
            changes[item.attribute] = (length_us, length_us) if low_us != high_us else value
        elif value == ANY and item.kind is kinds.BrokerMarker:
            changes[item.attribute] = draw(st.sampled_from(list(brokers)))
    dataclass_fault: Any = fault  # Every fault is a dataclass, which its protocol cannot express.
    concrete: Fault = replace(dataclass_fault, **changes)
    return concrete
