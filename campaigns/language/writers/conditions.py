"""Conditions, as they stand under ``when``, ``expect`` and ``final``."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, TypeVar

from harrow.campaigns.language.catalogue_shapes import is_value, unkeyed_fields
from harrow.campaigns.language.writers.section import FORMS, UnwritablePlanError, section_map, value_of
from harrow.cluster_model import fields as kinds
from harrow.faults.condition import FACTS, Condition, Fact
from harrow.faults.event_pattern import EventPattern

_Key = TypeVar("_Key", bound=Hashable)


def condition_map(condition: Condition) -> dict[str, Any]:
    """Return a condition, keys in the order of the reference."""
    found: dict[str, Any] = {}
    for name, kind in FACTS.items():
        facts = [fact for fact in condition.facts if fact.name == name]
        if facts:
            found[name] = _one_or_many(_tables(kind, facts) if kind.keyed_by else [_row(f) for f in facts])
            if len(facts) > 1 and kind.once:
                raise UnwritablePlanError(f"a condition speaks twice of {name}")
    return found


def _tables(kind: type[Fact], facts: Iterable[Fact]) -> list[Any]:
    """Return facts by their keys; a new table begins where one cannot go on in their order."""
    tables: list[dict[Any, Any]] = [{}]
    last: list[Any] = []
    for fact in facts:
        keys = [getattr(fact, attribute) for attribute in kind.keyed_by]
        if not _fits(tables[-1], keys, last):
            if not kind.repeats:
                raise UnwritablePlanError(f"a condition speaks twice of {keys[0]}")
            tables.append({})
        place = tables[-1]
        for key in keys[:-1]:
            place = place.setdefault(key, {})
        place[keys[-1]] = _row(fact)
        last = keys
    return tables


def _fits(table: dict[Any, Any], keys: list[Any], last: list[Any]) -> bool:
    """Return whether a table has no such fact yet, nor one behind which this would not come."""
    for depth, key in enumerate(keys):
        if key not in table:
            return True
        if key != last[depth] or depth == len(keys) - 1:
            return False
        table = table[key]
    return True


def _row(fact: Fact) -> Any:
    items = unkeyed_fields(type(fact))
    if is_value(items):
        return value_of(items[0], items[0].of(fact))
    return section_map(fact, without=fact.keyed_by)


def _one_or_many(values: Sequence[Any]) -> Any:
    return values[0] if len(values) == 1 else list(values)


def _mapping(items: Iterable[tuple[_Key, Any]]) -> dict[_Key, Any]:
    found: dict[_Key, Any] = {}
    for key, value in items:
        if key in found:
            raise UnwritablePlanError(f"a condition speaks twice of {key}")
        found[key] = value
    return found


def _event(pattern: EventPattern) -> Any:
    return {pattern.event: _mapping(pattern.fields)} if pattern.fields else pattern.event


FORMS[kinds.ConditionMarker] = condition_map
FORMS[kinds.EventMarker] = _event
FORMS[kinds.OffsetsByBrokerMarker] = _mapping
FORMS[kinds.EpochStartsMarker] = list
