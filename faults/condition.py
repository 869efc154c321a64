"""Defines conditions.

A condition is a set of facts about a cluster that must all hold. A step of a script may wait for a
condition (``when:``), and a script may assert one during the run or at its end (``expect:``).
"""

from typing import Annotated, Final

from harrow.cluster_model.fields import ConditionMarker
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.registry import Registry, named_classes
from harrow.faults import facts
from harrow.faults.event_pattern import EventPattern
from harrow.faults.facts import Fact
from harrow.faults.observer import Observer

FACTS: Final[Registry[str, type[Fact]]] = Registry(named_classes(Fact, facts.__dict__))
"""The facts, by their keys in a campaign."""


@dataclass(frozen=True, slots=True)
class Condition:
    """Facts that must all hold.

    They are in the order of `FACTS`, so that conditions with the same facts are equal.
    """

    facts: tuple[Fact, ...] = ()

    def __post_init__(self) -> None:
        names = list(FACTS)
        object.__setattr__(self, "facts", tuple(sorted(self.facts, key=lambda fact: names.index(fact.name))))

    def mismatches(self, observer: Observer) -> list[str]:
        return [line for fact in self.facts for line in fact.mismatches(observer)]

    def holds(self, observer: Observer) -> bool:
        return not any(fact.mismatches(observer) for fact in self.facts)

    def matched_position(self, observer: Observer) -> int | None:
        """Return the trace position after the last event that the facts need; None without one."""
        positions = (fact.position(observer) for fact in self.facts)
        return max((position for position in positions if position is not None), default=None)

    def patterns(self) -> tuple[EventPattern, ...]:
        return tuple(pattern for fact in self.facts for pattern in fact.patterns())


ConditionField = Annotated[Condition, ConditionMarker]
"""A condition, as a field of an action or of a campaign."""
