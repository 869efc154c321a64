"""Writes the events of a trace as Markdown, from their declarations."""

from dataclasses import fields
from typing import get_type_hints

from harrow.cluster_model.events import EVENTS, Event, FieldKind, Sight

_SEEN_ON = {
    Sight.MODEL: "the model",
    Sight.STARTED_BROKERS: "brokers that harrow starts",
    Sight.ANY_BROKERS: "your cluster too",
}


def event_table() -> str:
    """Return each event with its fields and their kinds."""
    rows = ["| event | fields | meaning | seen on |", "|---|---|---|---|"]
    for name, kind in sorted(EVENTS.items()):
        columns = ", ".join(_fields(kind))
        rows.append(
            f"| `{name}` | {columns} | {' '.join((kind.__doc__ or '').split())} | {_SEEN_ON[kind.seen_by]} |"
        )
    return "\n".join(rows).replace("``", "`")


def _fields(kind: type[Event]) -> list[str]:
    hints = get_type_hints(kind, include_extras=True)
    own = [field.name for field in fields(kind) if field.name != "at_us"]
    return [f"`{name}` ({_kind_of(hints[name])})" for name in own]


def _kind_of(hint: object) -> str:
    (kind,) = (entry for entry in getattr(hint, "__metadata__", ()) if isinstance(entry, FieldKind))
    return str(kind.value)
