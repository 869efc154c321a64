"""One thing that can be seen of a cluster to hold or not."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from harrow.faults.conditions.event_pattern import EventPattern
from harrow.faults.observer import Observer


class Fact(ABC):
    """A frozen dataclass whose fields are its campaign syntax (`harrow.cluster_model.fields`).

    ``name`` is its key in a condition. Of the fields, those in ``keyed_by`` lead to the others through mappings
    (``leader: {t-0: 1}``). With ``once`` a condition has it once at the most; with ``repeats`` it
    may have several of the same, in a list. Brokers beside a ``partition`` are replicas of it.
    """

    __slots__ = ()

    name: ClassVar[str]
    keyed_by: ClassVar[tuple[str, ...]] = ()
    once: ClassVar[bool] = False
    repeats: ClassVar[bool] = False

    @abstractmethod
    def mismatches(self, observer: Observer) -> list[str]:
        """Return what is different, in words; empty when it holds."""

    def patterns(self) -> tuple[EventPattern, ...]:
        """Return which events it looks for."""
        return ()

    def position(self, observer: Observer) -> int | None:
        """Return the position in the trace behind what made it hold, if that was an event."""
        return None


def difference(subject: str, actual: Any, wanted: Any) -> list[str]:
    """Return in words that something is not as wanted; nothing where it is."""
    return [] if actual == wanted else [f"{subject} is {shown(actual)}, expected {shown(wanted)}"]


def shown(value: Any) -> str:
    """Return a value in words."""
    if value is None:
        return "unknown"
    if isinstance(value, tuple):
        return "[" + ", ".join(shown(part) for part in value) + "]"
    return str(value)
