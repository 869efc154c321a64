"""The events of a trace as Markdown, from their declarations."""

from dataclasses import fields
from typing import get_type_hints

from harrow.cluster_model.events import EVENTS, Event, FieldKind, Sight

_SEEN_ON = {
    Sight.MODEL: "the model",
    Sight.STARTED_BROKERS: "brokers that harrow starts",
    Sight.ANY_BROKERS: "your cluster too",
}


def event_table() -> str:
    """Return each event with its fields and what these hold."""
    rows = ["| event | fields | what has happened | seen on |", "|---|---|---|---|"]
    for name, kind in sorted(EVENTS.items()):
        told = ", ".join(_fields(kind))
        rows.append(
            f"| `{name}` | {told} | {' '.join((kind.__doc__ or '').split())} | {_SEEN_ON[kind.seen_by]} |"
        )
    return "\n".join(rows).replace("``", "`")


def _fields(kind: type[Event]) -> list[str]:
    hints = get_type_hints(kind, include_extras=True)
    own = [field.name for field in fields(kind) if field.name != "at_us"]
    return [f"`{name}` ({_holds(hints[name])})" for name in own]


def _holds(hint: object) -> str:
    (holds,) = (found for found in getattr(hint, "__metadata__", ()) if isinstance(found, FieldKind))
    return str(holds.value)
