"""Writes a section of a campaign file from the declared fields of its dataclass."""

from collections.abc import Callable, Collection
from dataclasses import is_dataclass
from typing import Any, Final

from harrow.campaigns.language.literals import field_text
from harrow.campaigns.language.yaml_text import Items, Word
from harrow.cluster_model import fields as kinds
from harrow.cluster_model.fields import DeclaredField, by_kind, fields_of
from harrow.cluster_model.lazy_dataclass import replace

WRITERS: Final[dict[type[Any], Callable[[Any], Any]]] = {}
"""Functions that convert values to the notation of a campaign, by the kind of the value."""


class UnwritablePlanError(ValueError):
    """No campaign file can express a plan. The message gives the reason."""


def section_map(declared: Any, *, without: Collection[str] = (), **written: Any) -> dict[str, Any]:
    """Return the fields that differ from their defaults, in the order of their declaration.

    *written* maps attributes to values that are already in the notation of a campaign; None leaves
    an attribute out. The attributes in *without* are left out too.
    """
    section: dict[str, Any] = {}
    for item in fields_of(type(declared)):
        if item.attribute in without:
            continue
        value = item.value_in(declared)
        if item.attribute in written:
            value = written[item.attribute]
            if value is None:
                continue
        elif value == item.default:
            continue
        else:
            value = value_of(item, value)
        *heads, key = item.key.split(".")
        mapping = section
        for head in heads:
            mapping = mapping.setdefault(head, {})
        mapping[key] = value
    return section


def value_of(item: DeclaredField, value: Any) -> Any:
    """Return a field's value in the notation of a campaign."""
    writer = by_kind(WRITERS, item.kind)
    if writer is not None and not item.many:
        return writer(value)
    if is_dataclass(item.kind):
        return Items(map(section_map, value)) if item.many else section_map(value)
    if item.many:
        return [value_of(replace(item, depth=item.depth - 1), element) for element in value]
    if isinstance(value, tuple) and item.kind is kinds.BrokerMarker:
        return [value_of(item, element) for element in value]
    text = field_text(item.kind, value)
    if text is None:
        return value
    # Without quotes YAML would read a bound such as `> 5s` as a block of text.
    return text if text.startswith(">") else Word(text)
