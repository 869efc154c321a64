"""Catalogues that can be added to from outside, and what is derived from them.

A fault, a setting, an action is registered once. What follows from it (models of a campaign file, lists of
names) is costly to make and asked for often, so it is kept until some catalogue changes.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import cache, wraps
from typing import ClassVar, ParamSpec, TypeVar

K = TypeVar("K")
V = TypeVar("V")
P = ParamSpec("P")
R = TypeVar("R")


class Registry(dict[K, V]):
    """A catalogue by name; ``changes`` counts what was put into any of them or taken out."""

    changes: ClassVar[int] = 0

    def __setitem__(self, key: K, value: V) -> None:
        Registry.changes += 1
        super().__setitem__(key, value)

    def __delitem__(self, key: K) -> None:
        Registry.changes += 1
        super().__delitem__(key)


def derived(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function that remembers its results until a registry changes."""
    remembered = cache(function)
    seen = -1

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        nonlocal seen
        if seen != Registry.changes:
            remembered.cache_clear()
            seen = Registry.changes
        return remembered(*args, **kwargs)  # type: ignore[arg-type]  # hashable, or the cache says so

    return call


class DerivedMapping(Mapping[K, V]):
    """A catalogue that follows from others, made again when some registry has changed."""

    def __init__(self, make: Callable[[], Mapping[K, V]]) -> None:
        self._made = derived(make)

    def __getitem__(self, key: K) -> V:
        return self._made()[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._made())

    def __len__(self) -> int:
        return len(self._made())
