"""Defines patterns that match events of a trace."""

from typing import Any

from harrow.cluster_model.events import EVENTS, FieldKind, event_fields
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.trace import TraceEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPattern:
    """Matches events with a name. The fields that are given must have these values."""

    event: str
    fields: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        """Sort the fields as in the trace, so that the order in a campaign has no meaning."""
        names = list(event_fields(self.event)) if self.event in EVENTS else []
        ordered = sorted(self.fields, key=lambda item: names.index(item[0]) if item[0] in names else -1)
        object.__setattr__(self, "fields", tuple(ordered))

    def matches(self, event: TraceEvent) -> bool:
        """Return whether an event of a trace matches."""
        if event[1] != self.event:
            return False
        kinds = event_fields(self.event)
        names = list(kinds)
        return all(
            _field_matches(event[2 + names.index(name)], expected, kinds[name])
            for name, expected in self.fields
        )

    def describe(self) -> str:
        """Return the pattern as a campaign would write it."""
        fields = ", ".join(f"{name}: {_text(value)}" for name, value in self.fields)
        return f"event {self.event}" + (f" ({fields})" if fields else "")


def _field_matches(actual: Any, expected: Any, kind: FieldKind) -> bool:
    if isinstance(actual, tuple) and not isinstance(expected, tuple):
        return expected in actual
    if kind is FieldKind.BROKERS:
        # A list of brokers is compared as a set: ZooKeeper and KRaft write an ISR in different
        # orders.
        return sorted(actual) == sorted(expected)
    return bool(actual == expected)


def _text(value: Any) -> str:
    return f"[{', '.join(map(_text, value))}]" if isinstance(value, tuple) else str(value)
