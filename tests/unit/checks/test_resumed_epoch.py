"""A leader that loses power and resumes its epoch, against one that begins a new one."""

from types import SimpleNamespace
from typing import Any

import pytest

from checks.resumed_epoch import is_excused, resumed_from


def evidence(*trace: tuple[Any, ...]) -> Any:
    return SimpleNamespace(trace=trace)


def leader(broker: int, epoch: int, partition: str = "t-0") -> tuple[Any, ...]:
    return (0, "leader", broker, partition, epoch, 0, (0, 1))


def lost(broker: int, from_offset: int, partition: str = "t-0") -> tuple[Any, ...]:
    return (0, "unflushed_lost", broker, partition, from_offset, 9)


@pytest.mark.parametrize(
    ("trace", "expected"),
    [
        ((leader(0, 1), lost(0, 3), leader(0, 1)), 3),
        ((leader(0, 1), lost(0, 3), lost(0, 2), leader(0, 1)), 2),
        ((leader(0, 1), lost(0, 3), leader(0, 2)), None),
        ((lost(0, 3), leader(0, 1)), None),
        ((leader(0, 1), lost(1, 3), leader(0, 1)), None),
        ((leader(0, 1), leader(0, 1)), None),
        ((leader(0, 1), lost(0, 3, "t-1"), leader(0, 1)), None),
    ],
)
def test_resumed_from(trace: tuple[Any, ...], expected: int | None) -> None:
    assert resumed_from(evidence(*trace), "t-0") == expected


def test_excuses_what_was_lost_and_nothing_below() -> None:
    found = evidence(leader(0, 1), lost(0, 3), leader(0, 1))
    assert is_excused(found, "t-0", 3)
    assert is_excused(found, "t-0", None)
    assert not is_excused(found, "t-0", 2)
    assert not is_excused(found, "t-1", 3)
