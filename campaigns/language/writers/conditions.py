"""Writes the conditions of a campaign: under ``when``, in assertions, and under ``final``."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, TypeVar

from harrow.campaigns.language.catalogue_shapes import is_value, unkeyed_fields
from harrow.campaigns.language.writers.section import WRITERS, UnwritablePlanError, section_map, value_of
from harrow.cluster_model import fields as kinds
from harrow.faults.condition import FACTS, Condition
from harrow.faults.event_pattern import EventPattern
from harrow.faults.facts import Fact

_Key = TypeVar("_Key", bound=Hashable)


def condition_map(condition: Condition) -> dict[str, Any]:
    """Return a condition as a mapping, with its keys in the order of the reference."""
    mapping: dict[str, Any] = {}
    for name, kind in FACTS.items():
        facts = [fact for fact in condition.facts if fact.name == name]
        if facts:
            mapping[name] = _one_or_many(
                _nested_mappings(kind, facts) if kind.keyed_by else [_fact_value(fact) for fact in facts]
            )
            if len(facts) > 1 and kind.is_single:
                raise UnwritablePlanError(f"{name} is listed twice in a condition")
    return mapping


def _nested_mappings(kind: type[Fact], facts: Iterable[Fact]) -> list[Any]:
    """Return facts as nested mappings. A fact that would change the order starts a new mapping."""
    mappings: list[dict[Any, Any]] = [{}]
    last: list[Any] = []
    for fact in facts:
        keys = [getattr(fact, attribute) for attribute in kind.keyed_by]
        if not _can_append(mappings[-1], keys, last):
            if not kind.repeats:
                raise UnwritablePlanError(f"{keys[0]} is listed twice in a condition")
            mappings.append({})
        mapping = mappings[-1]
        for key in keys[:-1]:
            mapping = mapping.setdefault(key, {})
        mapping[keys[-1]] = _fact_value(fact)
        last = keys
    return mappings


def _can_append(mapping: dict[Any, Any], keys: list[Any], last: list[Any]) -> bool:
    """Return whether a fact can be appended to a mapping without changing the order of facts.

    *keys* are new in the mapping, and share their beginning with the keys of the *last* fact.
    """
    for depth, key in enumerate(keys):
        if key not in mapping:
            return True
        if key != last[depth] or depth == len(keys) - 1:
            return False
        mapping = mapping[key]
    return True


def _fact_value(fact: Fact) -> Any:
    items = unkeyed_fields(type(fact))
    if is_value(items):
        return value_of(items[0], items[0].value_in(fact))
    return section_map(fact, without=fact.keyed_by)


def _one_or_many(values: Sequence[Any]) -> Any:
    return values[0] if len(values) == 1 else list(values)


def _mapping(items: Iterable[tuple[_Key, Any]]) -> dict[_Key, Any]:
    mapping: dict[_Key, Any] = {}
    for key, value in items:
        if key in mapping:
            raise UnwritablePlanError(f"{key} is listed twice in a condition")
        mapping[key] = value
    return mapping


def _event(pattern: EventPattern) -> Any:
    return {pattern.event: _mapping(pattern.fields)} if pattern.fields else pattern.event


WRITERS[kinds.ConditionMarker] = condition_map
WRITERS[kinds.EventMarker] = _event
WRITERS[kinds.OffsetsByBrokerMarker] = _mapping
WRITERS[kinds.EpochStartsMarker] = list
