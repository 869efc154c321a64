"""All nondeterminism comes from choices: a seed always draws the same numbers."""

from collections.abc import Callable

import pytest

from harrow.cluster_model.sim.choices import (
    STREAM_NAMES,
    Choices,
    SeededStream,
    Stream,
    between,
    happens,
    pick,
)
from tests.recorded_choices import RecordedStream, RecordingStream, recorded_choices

# Recordings and regression corpora rest on these: if one of them changes, every seed means another
# run.
GOLDEN = {
    "network": [688, 893, 70, 712, 10, 91, 347, 177],
    "disk": [999, 506, 471, 771, 270, 69, 976, 945],
    "schedule": [308, 416, 140, 783, 289, 689, 185, 154],
    "workload": [957, 141, 244, 319, 928, 818, 417, 134],
}


def draws(stream: Stream, count: int, bound: int = 1000) -> list[int]:
    return [stream.below(bound) for _ in range(count)]


@pytest.mark.parametrize("name", STREAM_NAMES)
def test_seed_0_draws_the_golden_numbers(name: str) -> None:
    assert draws(getattr(Choices.from_seed(0), name), 8) == GOLDEN[name]


def test_the_golden_numbers_continue_after_the_first_block() -> None:
    numbers = draws(SeededStream(12345, "network"), 1027, bound=2**32)
    assert numbers[511:514] == [2886821402, 3573020669, 2292118083]
    assert numbers[1023:1027] == [2080846894, 3230212671, 4164455362, 4200126657]


def test_streams_differ_by_name_and_by_seed() -> None:
    drawn_numbers = {
        tuple(draws(SeededStream(seed, name), 4, 2**32))
        for seed in (-1, 0, 1, 2**70)
        for name in STREAM_NAMES
    }
    assert len(drawn_numbers) == 4 * len(STREAM_NAMES)


@pytest.mark.parametrize("busy", STREAM_NAMES)
def test_draws_from_one_stream_do_not_change_the_others(busy: str) -> None:
    choices = Choices.from_seed(7)
    draws(getattr(choices, busy), 1000)
    for name in STREAM_NAMES:
        if name != busy:
            assert draws(getattr(choices, name), 20) == draws(SeededStream(7, name), 20)


@pytest.mark.parametrize("bound", [1, 2, 3, 10, 1_000_000, 2**32, 2**64])
def test_below_draws_every_number_below_its_bound_and_no_other(bound: int) -> None:
    drawn_numbers = draws(SeededStream(3, "disk"), 2000, bound)
    assert all(0 <= draw < bound for draw in drawn_numbers)
    if bound <= 10:
        assert set(drawn_numbers) == set(range(bound))
        # Even: no value has more than one and a half times its share.
        assert max(drawn_numbers.count(value) for value in range(bound)) <= 1.5 * 2000 / bound
    else:
        assert min(drawn_numbers) < bound // 100
        assert max(drawn_numbers) > bound - bound // 100


def test_a_recording_plays_back_its_draws() -> None:
    bounds = (10, 1, 1000, 2**40)
    recording = RecordingStream(SeededStream(5, "schedule"))
    drawn = [recording.below(bound) for bound in bounds]
    source, replay = SeededStream(5, "schedule"), RecordedStream(recording.drawn)
    assert recording.drawn == drawn == [source.below(bound) for bound in bounds]
    assert [replay.below(bound) for bound in bounds] == drawn


@pytest.mark.parametrize(
    ("recorded", "bounds", "played"),
    [
        ([3, 4], [10, 10, 10, 10], [3, 4, 0, 0]),
        ([9, 2], [5, 5], [0, 2]),  # out of range: the smallest choice, and the next one is not skipped
        ([5], [5], [0]),
        ([4], [5], [4]),
        ([], [1, 7], [0, 0]),
    ],
)
def test_a_recorded_draw_outside_the_bound_becomes_the_smallest_choice(
    recorded: list[int], bounds: list[int], played: list[int]
) -> None:
    replay = RecordedStream(recorded)
    assert [replay.below(bound) for bound in bounds] == played


def test_streams_missing_from_a_recording_give_the_smallest_choice() -> None:
    choices = recorded_choices({"disk": [4, 2]})
    assert draws(choices.disk, 3) == [4, 2, 0]
    assert draws(choices.network, 3) == draws(choices.schedule, 3) == draws(choices.workload, 3) == [0, 0, 0]


class CountingStream(Stream):
    """Returns the largest choice, and counts the draws."""

    def __init__(self) -> None:
        self.bounds: list[int] = []

    def below(self, bound: int) -> int:
        self.bounds.append(bound)
        return bound - 1


@pytest.mark.parametrize(
    ("draw", "expected", "bounds"),
    [
        (lambda s: between(s, 3, 7), 7, [5]),
        (lambda s: between(s, 3, 4), 4, [2]),
        (lambda s: between(s, 3, 3), 3, []),
        (lambda s: between(s, 3, 2), 3, []),
        (lambda s: pick(s, ["a", "b", "c"]), "c", [3]),
        (lambda s: pick(s, ["a"]), "a", []),
        (lambda s: happens(s, 0.0), False, []),
        (lambda s: happens(s, 1.0), True, []),
        (lambda s: happens(s, 0.999998), False, [1_000_000]),
        (lambda s: happens(RecordedStream([0]), 0.000001), True, []),
        (lambda s: happens(RecordedStream([1]), 0.000001), False, []),
        (lambda s: happens(RecordedStream([299_999]), 0.3), True, []),
        (lambda s: happens(RecordedStream([300_000]), 0.3), False, []),
    ],
)
def test_helpers_draw_only_when_there_is_a_choice(
    draw: Callable[[Stream], object], expected: object, bounds: list[int]
) -> None:
    stream = CountingStream()
    assert draw(stream) == expected
    assert stream.bounds == bounds
