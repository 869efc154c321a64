"""Creates conditions from the keys of campaigns."""

from collections.abc import Iterable
from typing import Any

from harrow.faults.condition import FACTS, Condition
from harrow.faults.facts import Fact


def condition(**facts: Iterable[Any]) -> Condition:
    """Return a condition.

    Each fact is a tuple of the values of its fields, its only value, or a `Fact`.
    """
    return Condition(tuple(_fact(key, value) for key, values in facts.items() for value in values))


def _fact(key: str, value: Any) -> Fact:
    if isinstance(value, Fact):
        return value
    kind: Any = FACTS[key]
    fact: Fact = kind(*value) if isinstance(value, tuple) else kind(value)
    return fact
