"""Delta debugging: the fewest parts of something that still fails.

Zeller and Hildebrandt, Simplifying and Isolating Failure-Inducing Input (TSE 2002), reduced to
removals: first large pieces, then smaller ones, then pairs of the few parts that remain.
"""

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Final, TypeVar

T = TypeVar("T")

_PAIRS_OF_MAX: Final = 10


def fewest(parts: Sequence[T], still_fails: Callable[[Sequence[T]], bool]) -> list[T]:
    """Return a subsequence of which no part can be left out, and no two parts if it is short.

    *still_fails* is called with proper subsequences only. *parts* itself is known to fail.
    """
    remaining = list(parts)
    size = len(remaining)
    while size >= 1:
        start, removed = 0, False
        while start < len(remaining):
            shorter = remaining[:start] + remaining[start + size :]
            if still_fails(shorter):
                remaining, removed = shorter, True
            else:
                start += size
        if size > 1:
            size = (size + 1) // 2
        elif not removed:
            break
    return _without_pairs(remaining, still_fails)


def _without_pairs(parts: list[T], still_fails: Callable[[Sequence[T]], bool]) -> list[T]:
    """Return parts without pairs that can only go together, such as a crash and its restart."""
    if len(parts) > _PAIRS_OF_MAX:
        return parts
    for one, other in combinations(range(len(parts)), 2):
        shorter = [part for place, part in enumerate(parts) if place not in (one, other)]
        if still_fails(shorter):
            return fewest(shorter, still_fails)
    return parts
