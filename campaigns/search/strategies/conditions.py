"""Strategies for the conditions that steps wait for and that trigger faults."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from hypothesis import strategies as st

from harrow.campaigns.search.strategies.field_values import USUAL, Values, of_field
from harrow.cluster_model import fields as kinds
from harrow.cluster_model.events import (
    EVENTS,
    BatchAcknowledged,
    BatchAppended,
    BatchDeduplicated,
    BatchReplicated,
    BecameLeader,
    BrokerStarted,
    BrokerStopped,
    ControllerElected,
    FieldTrait,
    HighWatermarkSet,
    IsrChanged,
    LogTruncated,
    SessionExpired,
    event_fields,
    fields_with,
)
from harrow.cluster_model.fields import FieldOptions, fields_of
from harrow.cluster_model.lazy_dataclass import replace
from harrow.faults.condition import FACTS, Condition
from harrow.faults.event_pattern import EventPattern
from harrow.faults.facts import Fact

SAYS_MAX: Final = 2
"""Most facts in a condition. A condition with more facts hardly ever holds."""
COMMON_EVENTS: Final = tuple(
    kind.name
    for kind in (
        *(BatchAppended, BatchAcknowledged, BatchReplicated, HighWatermarkSet),
        *(IsrChanged, BecameLeader, LogTruncated, BatchDeduplicated),
        *(BrokerStopped, BrokerStarted, SessionExpired, ControllerElected),
    )
)
"""Events that are worth waiting for: those of records, replicas and brokers."""
_FEW: Final = st.integers(0, 5)
_EPOCHS: Final = st.integers(0, 3)


class _Names:
    """The names and values that conditions can use."""

    def __init__(
        self,
        brokers: Sequence[int],
        partitions: Sequence[str],
        values: Sequence[str],
        replicas: Mapping[str, Sequence[int]] | None,
        events: Sequence[str],
        controllers: Sequence[int],
    ) -> None:
        self._brokers = list(brokers)
        self._replicas = dict.fromkeys(partitions, self._brokers) | {
            name: list(replica_brokers) for name, replica_brokers in (replicas or {}).items()
        }
        about = {"broker": st.sampled_from(self._brokers), "partition": st.sampled_from(list(partitions))}
        self._usual: Values = {
            **USUAL,
            kinds.PartitionMarker: st.sampled_from(list(partitions)),
            kinds.EventMarker: _patterns(list(events), about, st.sampled_from(list(controllers))),
            kinds.ControllerIdMarker: st.sampled_from(list(controllers)),
            kinds.EpochStartsMarker: _EPOCHS.map(lambda epoch: ((epoch, 0),)),
            kinds.SkipMarker: _FEW,
            str: st.sampled_from(list(values)),
            int: _EPOCHS,
        }

    def values_for(self, partition: str | None, broker: int | None) -> Values:
        """Return strategies for fields of a fact about a partition, a broker, both or neither."""
        among = self._brokers if partition is None else self._replicas[partition]
        others = [other for other in among if other != broker]
        row = st.tuples(st.sampled_from(others), _FEW) if others else st.nothing()
        return {
            **self._usual,
            kinds.BrokerIdMarker: st.sampled_from(among),
            kinds.BrokerOrNoneMarker: st.sampled_from(among),
            kinds.OffsetsByBrokerMarker: row.map(lambda pair: (pair,)),
        }


def conditions(
    *,
    brokers: Sequence[int] = (0, 1, 2),
    partitions: Sequence[str] = ("t-0",),
    values: Sequence[str] = ("m0",),
    replicas: Mapping[str, Sequence[int]] | None = None,
    says: Sequence[str] | None = None,
    events: Sequence[str] = COMMON_EVENTS,
    controllers: Sequence[int] | None = None,
) -> st.SearchStrategy[Condition]:
    """Return conditions that can come true, with a few facts each.

    *values* are values of records. *replicas* are the brokers that have replicas of a partition, by
    default all brokers. *says* are the kinds of facts to draw, by default all kinds, and *events*
    are names of trace events. *controllers* are the nodes that can become the active controller: in
    KRaft the voters, and by default the brokers, as with ZooKeeper.
    """
    order = sorted(FACTS, key=lambda name: (name not in _FIRST, _FIRST.index(name) if name in _FIRST else 0))
    for name in says or ():
        if name not in FACTS:
            raise ValueError(f"conditions have no key `{name}`; they have {', '.join(order)}")
    for event in events:
        if event not in EVENTS:
            raise ValueError(f"traces have no event `{event}`")
    names = _Names(
        brokers, partitions, values, replicas, events, brokers if controllers is None else controllers
    )
    kinds_of_facts = [FACTS[name] for name in (order if says is None else says)]
    chosen = st.lists(st.sampled_from(kinds_of_facts), min_size=1, max_size=SAYS_MAX, unique=True)
    return chosen.flatmap(lambda facts: st.tuples(*(_fact(fact, names) for fact in facts))).map(Condition)


_FIRST: Final = ("acked", "replicas", "leader", "isr", "brokers", "event")
"""The kinds of facts that come first, because Hypothesis shrinks towards them."""


@st.composite
def _fact(draw: st.DrawFn, kind: type[Fact], names: _Names) -> Fact:
    """Draw a fact, with its required fields and a few of its optional ones."""
    values: dict[str, Any] = {}
    rest: dict[str, st.SearchStrategy[Any]] = {}
    for item in fields_of(kind):
        # A fact with a value that is far out of bounds never holds.
        plain = replace(item, optional=False, options=FieldOptions(unique=True))
        strategy = of_field(plain, names.values_for(values.get("partition"), values.get("broker")))
        if item.required:
            values[item.attribute] = draw(strategy)
        elif not strategy.is_empty:
            rest[item.attribute] = strategy
    if rest:
        chosen = draw(st.lists(st.sampled_from(list(rest)), min_size=1, max_size=SAYS_MAX, unique=True))
        values |= {name: draw(rest[name]) for name in chosen}
    return kind(**values)


@st.composite
def _patterns(
    draw: st.DrawFn,
    events: Sequence[str],
    about: Mapping[str, st.SearchStrategy[Any]],
    controller: st.SearchStrategy[int],
) -> EventPattern:
    event = draw(st.sampled_from(events))
    about = {**about, **dict.fromkeys(fields_with(event, FieldTrait.NAMES_CONTROLLER), controller)}
    names = [name for name in event_fields(event) if name in about]
    chosen = draw(st.lists(st.sampled_from(names), unique=True)) if names else []
    return EventPattern(event=event, fields=tuple((name, draw(about[name])) for name in chosen))
