"""What became of a record, as clients see it."""

from dataclasses import dataclass
from typing import ClassVar

from harrow.cluster_model.fields import described
from harrow.faults.conditions.fact import Fact
from harrow.faults.observer import Observer


@dataclass(frozen=True, slots=True)
class IsAcked(Fact):
    """Values whose send was reported as a success."""

    name: ClassVar[str] = "acked"

    value: str = described("The record's value.")

    def mismatches(self, observer: Observer) -> list[str]:
        return [f"{self.value} is not acked"] if not observer.is_acked(self.value) else []


@dataclass(frozen=True, slots=True)
class IsNotAcked(Fact):
    """Values whose send was not reported as a success."""

    name: ClassVar[str] = "not_acked"

    value: str = described("The record's value.")

    def mismatches(self, observer: Observer) -> list[str]:
        return [f"{self.value} is acked"] if observer.is_acked(self.value) else []


@dataclass(frozen=True, slots=True)
class HasFailed(Fact):
    """Values whose send was reported as a failure."""

    name: ClassVar[str] = "failed"

    value: str = described("The record's value.")

    def mismatches(self, observer: Observer) -> list[str]:
        return [f"{self.value} has not failed"] if not observer.is_failed(self.value) else []


@dataclass(frozen=True, slots=True)
class IsConsumed(Fact):
    """Values that a consumer got."""

    name: ClassVar[str] = "consumed"

    value: str = described("The record's value.")

    def mismatches(self, observer: Observer) -> list[str]:
        return [f"{self.value} is not consumed"] if not observer.is_consumed(self.value) else []


@dataclass(frozen=True, slots=True)
class IsNotConsumed(Fact):
    """Values that no consumer got."""

    name: ClassVar[str] = "not_consumed"

    value: str = described("The record's value.")

    def mismatches(self, observer: Observer) -> list[str]:
        return [f"{self.value} is consumed"] if observer.is_consumed(self.value) else []
