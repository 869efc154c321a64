"""Which events of a trace are meant."""

from dataclasses import dataclass
from typing import Any

from harrow.cluster_model.events import EVENTS, FieldKind, event_fields
from harrow.cluster_model.trace import TraceEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class EventPattern:
    """A trace event; only the given fields have to match."""

    event: str
    fields: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        """Put the fields in the trace's order: theirs says nothing, and equal patterns should be equal."""
        names = list(event_fields(self.event)) if self.event in EVENTS else []
        ordered = sorted(self.fields, key=lambda item: names.index(item[0]) if item[0] in names else -1)
        object.__setattr__(self, "fields", tuple(ordered))

    def matches(self, event: TraceEvent) -> bool:
        """Return whether one event is of this kind."""
        if event[1] != self.event:
            return False
        kinds = event_fields(self.event)
        names = list(kinds)
        return all(
            _field_matches(event[2 + names.index(name)], wanted, kinds[name]) for name, wanted in self.fields
        )

    def describe(self) -> str:
        """Return the pattern in a campaign's words."""
        fields = ", ".join(f"{name}: {_shown(value)}" for name, value in self.fields)
        return f"event {self.event}" + (f" ({fields})" if fields else "")


def _field_matches(actual: Any, wanted: Any, kind: FieldKind) -> bool:
    if isinstance(actual, tuple) and not isinstance(wanted, tuple):
        return wanted in actual
    if kind is FieldKind.BROKERS:
        # An ISR is a set: in which order a controller writes it differs between ZooKeeper and KRaft.
        return sorted(actual) == sorted(wanted)
    return bool(actual == wanted)


def _shown(value: Any) -> str:
    return f"[{', '.join(map(_shown, value))}]" if isinstance(value, tuple) else str(value)
