"""A section of a campaign file, from what the dataclass declares that it was read into."""

from collections.abc import Callable, Collection
from dataclasses import is_dataclass, replace
from typing import Any, Final

from harrow.campaigns.language.literals import field_text
from harrow.campaigns.language.yaml_text import Items, Word
from harrow.cluster_model import fields as kinds
from harrow.cluster_model.fields import DeclaredField, by_kind, fields_of

FORMS: Final[dict[type[Any], Callable[[Any], Any]]] = {}
"""How values are written of the kinds that are more than their fields."""


class UnwritablePlanError(ValueError):
    """A plan that no campaign file says; the message says what a file would be refused for."""


def section_map(declared: Any, *, without: Collection[str] = (), **written: Any) -> dict[str, Any]:
    """Return what is not as by default, in the order in which it is declared.

    What is *written*, by attribute, stands as it is given here, and nowhere if it is None; what is
    *without* is left out.
    """
    rows: dict[str, Any] = {}
    for item in fields_of(type(declared)):
        if item.attribute in without:
            continue
        value = item.of(declared)
        if item.attribute in written:
            value = written[item.attribute]
            if value is None:
                continue
        elif value == item.default:
            continue
        else:
            value = value_of(item, value)
        *heads, key = item.key.split(".")
        place = rows
        for head in heads:
            place = place.setdefault(head, {})
        place[key] = value
    return rows


def value_of(item: DeclaredField, value: Any) -> Any:
    """Return a field's value as a campaign has it."""
    form = by_kind(FORMS, item.kind)
    if form is not None and not item.many:
        return form(value)
    if is_dataclass(item.kind):
        return Items(map(section_map, value)) if item.many else section_map(value)
    if item.many:
        return [value_of(replace(item, depth=item.depth - 1), each) for each in value]
    if isinstance(value, tuple) and item.kind is kinds.BrokerMarker:
        return [value_of(item, each) for each in value]
    text = field_text(item.kind, value)
    if text is None:
        return value
    # Without quotes a bound such as `> 5s` begins a block of text.
    return text if text.startswith(">") else Word(text)
