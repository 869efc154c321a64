"""Conditions in few words, by the keys of a campaign."""

from collections.abc import Iterable
from typing import Any

from harrow.faults.condition import FACTS, Condition
from harrow.faults.facts import Fact


def condition(**said: Iterable[Any]) -> Condition:
    """Return a condition of facts by their keys: each the values of its fields, or the only one, or the fact."""
    return Condition(tuple(_fact(key, value) for key, values in said.items() for value in values))


def _fact(key: str, value: Any) -> Fact:
    if isinstance(value, Fact):
        return value
    kind: Any = FACTS[key]
    made: Fact = kind(*value) if isinstance(value, tuple) else kind(value)
    return made
