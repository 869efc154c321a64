"""Delta debugging finds the fewest parts that still fail."""

from collections.abc import Callable, Collection, Iterable, Sequence

import pytest

from harrow.campaigns.search import delta_debugging


def fewest(parts: Sequence[int], still_fails: Callable[[Sequence[int]], bool]) -> list[int]:
    def first_failing(subsets: Iterable[Sequence[int]]) -> int | None:
        return next((place for place, subset in enumerate(subsets) if still_fails(subset)), None)

    return delta_debugging.fewest(parts, first_failing)


@pytest.mark.parametrize(
    ("count", "needed"),
    [(0, set()), (1, set()), (1, {0}), (20, {3}), (20, {0, 7, 19}), (33, {15, 16}), (8, set(range(8)))],
)
def test_needed_parts_keep_their_order(count: int, needed: set[int]) -> None:
    assert fewest(range(count), lambda parts: needed <= set(parts)) == sorted(needed)


def test_two_parts_that_can_only_go_together_are_removed() -> None:
    def still_fails(parts: Collection[int]) -> bool:
        return 0 in parts and (1 in parts) == (5 in parts)

    assert fewest(range(6), still_fails) == [0]


def test_only_proper_subsequences_are_tried() -> None:
    candidates: list[Sequence[int]] = []

    def still_fails(parts: Sequence[int]) -> bool:
        candidates.append(parts)
        return len(parts) >= 3

    assert len(fewest(range(7), still_fails)) == 3
    assert max(map(len, candidates)) < 7
