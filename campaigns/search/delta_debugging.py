"""Delta debugging: the fewest parts of something that still fails.

Zeller and Hildebrandt, Simplifying and Isolating Failure-Inducing Input (TSE 2002), reduced to
removals: first large pieces, then smaller ones, then pairs of the few parts that remain.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations, islice
from typing import Final, TypeVar

T = TypeVar("T")

_PAIRS_OF_MAX: Final = 10

FirstFailing = Callable[[Iterable[list[T]]], int | None]
"""Returns the position of the first subsequence that fails, None if all pass."""


def fewest(parts: Sequence[T], first_failing: FirstFailing[T]) -> list[T]:
    """Return a subsequence of which no part can be left out, and no two parts if it is short.

    *first_failing* is called with proper subsequences only. *parts* itself is known to fail.
    """
    remaining = list(parts)
    size, start, removed = len(remaining), 0, False
    while True:
        removals = [*_removals(len(remaining), size, start, removed=removed)]
        place = first_failing(remaining[:start] + remaining[start + size :] for size, start in removals)
        if place is None:
            return _without_pairs(remaining, first_failing)
        # The search goes on where it was, in what remains.
        size, start = removals[place]
        del remaining[start : start + size]
        removed = True


def _removals(count: int, size: int, start: int, *, removed: bool) -> Iterator[tuple[int, int]]:
    """Yield the size and start of each piece to leave out next, as long as none of them can be.

    *removed* says whether a piece of this size was left out since the first.
    """
    while size >= 1:
        yield from ((size, place) for place in range(start, count, size))
        if size == 1 and not removed:
            return
        size, start, removed = (size + 1) // 2 if size > 1 else 1, 0, False


def _without_pairs(parts: list[T], first_failing: FirstFailing[T]) -> list[T]:
    """Return parts without pairs that can only go together, such as a crash and its restart."""
    if len(parts) > _PAIRS_OF_MAX:
        return parts

    def shorter() -> Iterator[list[T]]:
        for one, other in combinations(range(len(parts)), 2):
            yield [part for place, part in enumerate(parts) if place not in (one, other)]

    place = first_failing(shorter())
    if place is None:
        return parts
    return fewest(next(islice(shorter(), place, None)), first_failing)
