"""Defines catalogues that other projects can extend, and caches values derived from them.

A fault, a setting or an action is registered once. Values such as the syntax of a campaign file and
lists of names are derived from the catalogues. Deriving them is expensive and they are often
needed, so `derived` caches them until a catalogue changes.
"""

# Plain Python: `Registry` assigns to a `ClassVar` at run time.

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, wraps
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, TypeVar, cast

if TYPE_CHECKING:
    from functools import _lru_cache_wrapper

K = TypeVar("K")
V = TypeVar("V")
P = ParamSpec("P")
R = TypeVar("R")


class Registry(dict[K, V]):
    """A catalogue, by name. A change empties the caches of all derived values.

    ``changes`` counts the insertions and removals in all catalogues. ``filled`` has the caches that
    may have values.
    """

    changes: ClassVar[int] = 0
    filled: ClassVar[dict["_lru_cache_wrapper[Any]", None]] = {}

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        _forget_derived_values()

    def __delitem__(self, key: K) -> None:
        super().__delitem__(key)
        _forget_derived_values()


def _forget_derived_values() -> None:
    Registry.changes += 1
    while Registry.filled:
        Registry.filled.popitem()[0].cache_clear()


def named_classes(base: type, *namespaces: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield (name, class) for each subclass of *base* with a ``name`` that *namespaces* define.

    A namespace is the ``__dict__`` of a module. Imported classes do not count as defined there.
    """
    for namespace in namespaces:
        for value in namespace.values():
            is_own = isinstance(value, type) and value.__module__ == namespace["__name__"]
            if is_own and issubclass(value, base) and "name" in value.__dict__:
                yield value.__dict__["name"], value


def derived(function: Callable[P, R]) -> Callable[P, R]:
    """Cache the results of a function until any registry changes."""
    return _until_changes(function, None)


def derived_up_to(results_max: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Cache the results that a function returned last, until any registry changes."""
    return lambda function: _until_changes(function, results_max)


def _until_changes(function: Callable[P, R], results_max: int | None) -> Callable[P, R]:
    @wraps(function)
    def compute(*args: P.args, **kwargs: P.kwargs) -> R:
        while True:
            changes = Registry.changes
            result = function(*args, **kwargs)
            # The function may have imported a module that registers more.
            if changes == Registry.changes:
                Registry.filled[cached] = None
                return result

    cached = lru_cache(results_max)(compute)
    return cast("Callable[P, R]", cached)


def typed_items(values: Mapping[str, V]) -> tuple[tuple[str, type, V], ...]:
    """Return the items of a mapping as a key for a cache, which tells True from 1."""
    return tuple((name, type(value), value) for name, value in values.items())


class DerivedMapping(Mapping[K, V]):
    """A catalogue derived from others. It is computed again after any registry has changed."""

    def __init__(self, make: Callable[[], Mapping[K, V]]) -> None:
        self._mapping = derived(make)

    def __getitem__(self, key: K) -> V:
        return self._mapping()[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._mapping())

    def __len__(self) -> int:
        return len(self._mapping())
