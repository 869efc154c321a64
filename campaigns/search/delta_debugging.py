"""Delta debugging: the fewest parts of something that still fails.

Zeller and Hildebrandt, Simplifying and Isolating Failure-Inducing Input (TSE 2002), with
removals alone: large pieces first, then smaller ones, then pairs of what little is left.
"""

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Final, TypeVar

T = TypeVar("T")

_PAIRS_OF_MAX: Final = 10


def fewest(parts: Sequence[T], still_fails: Callable[[Sequence[T]], bool]) -> list[T]:
    """Return parts of which none, and no two where they are few, can be left out.

    *still_fails* is asked about subsequences only, and never about *parts* itself, which fails.
    """
    left = list(parts)
    size = len(left)
    while size >= 1:
        start, removed = 0, False
        while start < len(left):
            shorter = left[:start] + left[start + size :]
            if still_fails(shorter):
                left, removed = shorter, True
            else:
                start += size
        if size > 1:
            size = (size + 1) // 2
        elif not removed:
            break
    return _without_pairs(left, still_fails)


def _without_pairs(parts: list[T], still_fails: Callable[[Sequence[T]], bool]) -> list[T]:
    """Return parts without those that can only go two at a time, as a crash and its restart."""
    if len(parts) > _PAIRS_OF_MAX:
        return parts
    for one, other in combinations(range(len(parts)), 2):
        shorter = [part for place, part in enumerate(parts) if place not in (one, other)]
        if still_fails(shorter):
            return fewest(shorter, still_fails)
    return parts
