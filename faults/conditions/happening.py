"""Whether something has happened since the step before."""

from dataclasses import dataclass
from typing import ClassVar

from harrow.cluster_model.fields import EventMatch, described
from harrow.faults.conditions.event_pattern import EventPattern
from harrow.faults.conditions.fact import Fact
from harrow.faults.observer import Observer


@dataclass(frozen=True, slots=True)
class HasHappened(Fact):
    """What has happened since the step before."""

    name: ClassVar[str] = "event"

    event: EventMatch = described("Which event.")

    def mismatches(self, observer: Observer) -> list[str]:
        missing = observer.first_match(self.event) is None
        return [f"{self.event.describe()} has not happened"] if missing else []

    def patterns(self) -> tuple[EventPattern, ...]:
        return (self.event,)

    def position(self, observer: Observer) -> int | None:
        return observer.first_match(self.event)


@dataclass(frozen=True, slots=True)
class HasNotHappened(Fact):
    """What has not happened since the step before."""

    name: ClassVar[str] = "no_event"

    event: EventMatch = described("Which event.")

    def mismatches(self, observer: Observer) -> list[str]:
        found = observer.first_match(self.event) is not None
        return [f"{self.event.describe()} has happened"] if found else []

    def patterns(self) -> tuple[EventPattern, ...]:
        return (self.event,)
