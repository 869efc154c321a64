"""What a campaign can wait for or assert: conditions on what can be observed.

The same condition starts a step (``when:``), is asserted in the middle of a run
(``expect:``) and at its end. Everything in it can be seen from outside: log offsets
and epochs, znodes, what clients got back, and what happened (trace events).
"""

from dataclasses import dataclass
from typing import Annotated, Final

from harrow.cluster_model.fields import ConditionMarker
from harrow.cluster_model.registry import Registry
from harrow.faults.conditions.broker import BrokerIs, ControllerIs, IsRegistered
from harrow.faults.conditions.event_pattern import EventPattern
from harrow.faults.conditions.fact import Fact
from harrow.faults.conditions.happening import HasHappened, HasNotHappened
from harrow.faults.conditions.partition_state import (
    AssignmentIs,
    IsrIs,
    LeaderEpochIs,
    LeaderIs,
    ReassignmentIs,
)
from harrow.faults.conditions.record import HasFailed, IsAcked, IsConsumed, IsNotAcked, IsNotConsumed
from harrow.faults.conditions.replica import ReplicaIs
from harrow.faults.observer import Observer

FACTS: Final[Registry[str, type[Fact]]] = Registry(
    (fact.name, fact)
    for fact in (
        *(
            ReplicaIs,
            LeaderIs,
            LeaderEpochIs,
            IsrIs,
            AssignmentIs,
            ReassignmentIs,
            ControllerIs,
            BrokerIs,
            IsRegistered,
        ),
        *(IsAcked, IsNotAcked, HasFailed, IsConsumed, IsNotConsumed, HasHappened, HasNotHappened),
    )
)
"""What conditions can be made of, by the key that a campaign uses."""


@dataclass(frozen=True, slots=True)
class Condition:
    """All of these have to hold. They are kept in the order of `FACTS`; the order in a campaign means nothing."""

    facts: tuple[Fact, ...] = ()

    def __post_init__(self) -> None:
        names = list(FACTS)
        object.__setattr__(self, "facts", tuple(sorted(self.facts, key=lambda fact: names.index(fact.name))))

    def mismatches(self, observer: Observer) -> list[str]:
        return [line for fact in self.facts for line in fact.mismatches(observer)]

    def holds(self, observer: Observer) -> bool:
        """Return whether everything holds now."""
        return not any(fact.mismatches(observer) for fact in self.facts)

    def matched_position(self, observer: Observer) -> int | None:
        """Return the position in the trace behind the last wanted event; None when none is wanted."""
        positions = (fact.position(observer) for fact in self.facts)
        return max((position for position in positions if position is not None), default=None)

    def patterns(self) -> tuple[EventPattern, ...]:
        return tuple(pattern for fact in self.facts for pattern in fact.patterns())


ConditionField = Annotated[Condition, ConditionMarker]
"""A condition, as a field of an action or of a campaign."""
