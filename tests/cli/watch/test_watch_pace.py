"""A playback shows each event for a time that its kind and the chosen speed decide."""

import math
from itertools import pairwise

import pytest
import typer

from harrow.campaigns.story.playback import Playback
from harrow.cli.options import parse_speed
from harrow.cli.watch.pace import pace
from tests.played_runs import library_run

CAMPAIGNS = ("loss-by-hw-truncation", "standard", "swarm", "rack-outage")


@pytest.mark.parametrize("campaign", CAMPAIGNS)
def test_every_moment_is_played_once_and_in_order(campaign: str) -> None:
    playback = Playback(library_run(campaign))
    steps = list(pace(playback))
    positions = [step.position for step in steps]
    assert all(one <= other for one, other in pairwise(positions))
    assert positions[-1] == len(playback.events) - 1
    assert sum(step.advance_us for step in steps) == playback.end_us
    assert all(step.advance_us >= 0 and step.shown_us >= 0 for step in steps)


def test_a_burst_of_events_is_slowed_down() -> None:
    """No time passes between the crash of broker 1 and its restart."""
    playback = Playback(library_run("loss-by-hw-truncation"))
    turns = [
        step for step in pace(playback) if step.position >= 0 and playback.is_turning_point(step.position)
    ]
    assert any(step.advance_us == 0 for step in turns[:-1])
    assert all(step.shown_us >= 1_000_000 for step in turns[:-1])


@pytest.mark.parametrize("campaign", CAMPAIGNS)
def test_idle_periods_and_bursts_take_a_limited_time(campaign: str) -> None:
    playback = Playback(library_run(campaign))
    steps = list(pace(playback))
    assert max(step.shown_us for step in steps) <= 5_000_000
    assert sum(step.shown_us for step in steps) <= playback.end_us + 140_000_000


def test_events_before_time_zero_take_no_time() -> None:
    playback = Playback(library_run("loss-by-hw-truncation"))
    first = next(iter(pace(playback)))
    assert playback.events[first.position].at_us < 0
    assert first.advance_us > 0


@pytest.mark.parametrize(
    ("text", "speed"), [("5", 5.0), ("0.5", 0.5), ("20x", 20.0), ("1e2", 100.0), ("max", math.inf)]
)
def test_a_speed_is_a_number_or_max(text: str, speed: float) -> None:
    assert parse_speed(text) == speed


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "1e400", "fast", "x", "", "5s"])
def test_an_invalid_speed_is_refused(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="a number above 0"):
        parse_speed(text)
