"""Strategies for scripts: steps in order, each after a time or when a condition holds."""

from collections.abc import Sequence
from typing import Any, Final

from hypothesis import strategies as st

from harrow.campaigns.language.plan import Step
from harrow.campaigns.search.strategies.field_values import USUAL, Values, specs
from harrow.cluster_model import fields as kinds
from harrow.cluster_model.lazy_dataclass import replace
from harrow.cluster_model.release.switch import DEFAULT_RELEASE
from harrow.cluster_model.sim.virtual_time import US_PER_MS
from harrow.faults.action import Action
from harrow.faults.actions import AddPartitions, Send
from harrow.faults.catalogue import ACTIONS
from harrow.faults.condition import Condition
from harrow.faults.fault import Fault

STEPS_MAX: Final = 6
ACTIONS_MAX: Final = 3
ADDED_MAX: Final = 2
"""Most partitions that a topic gets in addition to its own."""
PAUSES_US: Final = tuple(ms * US_PER_MS for ms in (0, 1, 10, 100, 1_000, 7_000))
"""Pauses before a step, from none to longer than a ZooKeeper session."""


def values(count: int = STEPS_MAX * ACTIONS_MAX) -> tuple[str, ...]:
    return tuple(f"m{number}" for number in range(count))


@st.composite
def scripts(
    draw: st.DrawFn,
    /,
    *,
    struck: st.SearchStrategy[Fault] | None = None,
    waits: st.SearchStrategy[Condition] | None = None,
    producers: Sequence[str] = ("producer-0",),
    partitions: Sequence[str] = (),
    brokers: Sequence[int] = (0, 1, 2),
    kafka: str = DEFAULT_RELEASE,
    size: tuple[int, int] = (0, STEPS_MAX),
) -> tuple[Step, ...]:
    """Draw steps: sends of records m0, m1 and so on, restarts of producers, and elections.

    A step waits for a while, or until one of the conditions *waits* holds. If a condition never
    holds, the script ends there, and the run is inconclusive unless it broke a promise. With
    *partitions*, a record may be sent to one of them instead of the one that the partitioner picks.
    *struck* are faults to add. Unlike a scheduled fault, a scripted fault that has nothing to act
    on is a missed expectation.
    """
    actions = st.lists(
        _actions(struck, producers, partitions, brokers, kafka), min_size=1, max_size=ACTIONS_MAX
    ).map(tuple)
    pauses = st.sampled_from(PAUSES_US).map(lambda us: {"after_us": us or None})
    moments: st.SearchStrategy[dict[str, Any]] = pauses
    if waits is not None:
        moments |= st.builds(lambda condition: {"when": condition}, waits)
    steps = st.builds(lambda moment, done: Step(actions=done, **moment), moments, actions)
    return _numbered(draw(st.lists(steps, min_size=size[0], max_size=size[1])))


def _actions(
    struck: st.SearchStrategy[Fault] | None,
    producers: Sequence[str],
    partitions: Sequence[str],
    brokers: Sequence[int],
    kafka: str,
) -> st.SearchStrategy[Action]:
    topics = list(dict.fromkeys(name.rpartition("-")[0] for name in partitions))
    usual: Values = {
        **USUAL,
        kinds.ClientMarker: st.sampled_from(list(producers)) if producers else st.nothing(),
        kinds.PartitionMarker: st.sampled_from(list(partitions)) if partitions else st.nothing(),
        kinds.BrokerIdMarker: st.sampled_from(list(brokers)),
        kinds.TopicMarker: st.sampled_from(topics) if topics else st.nothing(),
        str: st.just(""),
    }
    sends = specs(Send, usual, count=None)
    # Actions that the run records (`is_recorded`) are sends and faults, or they change nothing, so
    # they are left out. AddPartitions needs a number above that of the existing partitions.
    counts: dict[type[Action], dict[str, Any]] = {
        AddPartitions: {"partitions": st.integers(1, len(partitions) + ADDED_MAX)}
    }
    others = [
        specs(kind, usual, **counts.get(kind, {}))
        for kind in ACTIONS.values()
        if not kind.is_recorded and kind.exists_in(kafka)
    ]
    strategies = [sends, *([] if struck is None else [struck]), *others]
    return st.one_of([strategy for strategy in strategies if not strategy.is_empty])


def _numbered(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Return the steps with their records numbered in order, so that the numbers have no gap."""
    numbered: list[Step] = []
    sent = 0
    for step in steps:
        actions: list[Action] = []
        for action in step.actions:
            if isinstance(action, Send):
                actions.append(replace(action, value=f"m{sent}"))
                sent += 1
            else:
                actions.append(action)
        numbered.append(replace(step, actions=tuple(actions)))
    return tuple(numbered)
