"""Delta debugging: finds the fewest parts of a failing input that still fail.

This is the algorithm of Zeller and Hildebrandt, Simplifying and Isolating Failure-Inducing Input
(TSE 2002), but it only removes: first large pieces, then smaller ones, then pairs of the few parts
that remain.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations, islice
from typing import Final, TypeVar

T = TypeVar("T")

_PARTS_PAIRED_MAX: Final = 10
"""If more parts remain, pairs are not tried, because there are too many."""

FirstFailing = Callable[[Iterable[list[T]]], int | None]
"""A function that returns the position of the first subsequence that fails; None if all pass."""


def fewest(parts: Sequence[T], first_failing: FirstFailing[T]) -> list[T]:
    """Return a subsequence that fails, but not without any one of its parts.

    If it is short, it does not fail without any two of its parts either. *first_failing* is called
    only with proper subsequences of *parts*, which itself is known to fail.
    """
    remaining = list(parts)
    size, start, removed = len(remaining), 0, False
    while True:
        removals = [*_removals(len(remaining), size, start, removed=removed)]
        place = first_failing(remaining[:start] + remaining[start + size :] for size, start in removals)
        if place is None:
            return _without_pairs(remaining, first_failing)
        # In what remains, the search continues where it was.
        size, start = removals[place]
        del remaining[start : start + size]
        removed = True


def _removals(count: int, size: int, start: int, *, removed: bool) -> Iterator[tuple[int, int]]:
    """Yield the size and start of the pieces that the search tries to leave out, in order.

    *removed* tells whether a piece of this size was left out since the search began with this size.
    """
    while size >= 1:
        yield from ((size, place) for place in range(start, count, size))
        if size == 1 and not removed:
            return
        size, start, removed = (size + 1) // 2 if size > 1 else 1, 0, False


def _without_pairs(parts: list[T], first_failing: FirstFailing[T]) -> list[T]:
    """Leave out pairs of parts that can only go together, such as a crash and its restart."""
    if len(parts) > _PARTS_PAIRED_MAX:
        return parts

    def shorter() -> Iterator[list[T]]:
        for one, other in combinations(range(len(parts)), 2):
            yield [part for place, part in enumerate(parts) if place not in (one, other)]

    place = first_failing(shorter())
    if place is None:
        return parts
    return fewest(next(islice(shorter(), place, None)), first_failing)
