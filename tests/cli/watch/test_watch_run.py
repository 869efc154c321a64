"""Playback of runs with a fake clock."""

import math
from collections.abc import Callable
from io import StringIO

import pytest
from rich.console import Console

from harrow.campaigns.story.playback import Playback
from harrow.cli.watch.pace import pace
from harrow.cli.watch.watch_run import RunWatch
from tests.played_runs import TITLE, library_run

SHOW_CURSOR = "\x1b[?25h"
HIDE_CURSOR = "\x1b[?25l"


class Terminal:
    """A terminal with a clock that advances only in sleep."""

    def __init__(self) -> None:
        self.file = StringIO()
        self.console = Console(
            file=self.file, force_terminal=True, color_system=None, width=80, height=24, _environ={}
        )
        self.now_s = 0.0

    def watch(self, speed: float, *, only: bool, check: Callable[[], None] = lambda: None) -> RunWatch:
        return RunWatch(
            self.console, speed=speed, only=only, check=check, clock=lambda: self.now_s, sleep=self.sleep
        )

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now_s += seconds

    def frames(self) -> list[str]:
        """Return the drawn frames; Rich draws the last of a run twice."""
        return self.file.getvalue().split(TITLE)[1:]

    def times(self) -> list[float]:
        return list(dict.fromkeys(float(frame.split("s of ")[0]) for frame in self.frames()))


@pytest.mark.parametrize("speed", [1.0, 5.0, 40.0])
def test_a_playback_takes_the_time_of_its_frames(speed: float) -> None:
    terminal = Terminal()
    result = library_run("loss-by-hw-truncation")
    watch = terminal.watch(speed, only=True)
    watch.play(result)
    expected_s = sum(step.shown_us for step in pace(Playback(result))) / 1_000_000 / speed
    assert terminal.now_s == pytest.approx(expected_s, abs=0.2)
    assert watch.played_s == terminal.now_s
    assert len(terminal.frames()) <= 12 * expected_s + 3


def test_every_turning_point_is_seen() -> None:
    terminal = Terminal()
    result = library_run("loss-by-hw-truncation")
    terminal.watch(5.0, only=True).play(result)
    shown = terminal.file.getvalue()
    for phrase in ("crashed", "became CONTROLLER", "TRUNCATED from 2 to 1", "elected broker 1", "✗ lost m1"):
        assert phrase in shown
    assert shown.index("crashed") < shown.index("TRUNCATED from 2 to 1") < shown.index("✗ lost m1")


def test_the_clock_advances_visibly_through_idle_periods() -> None:
    terminal = Terminal()
    terminal.watch(5.0, only=True).play(library_run("loss-by-hw-truncation"))
    times = terminal.times()
    assert times == sorted(times)
    assert len([time for time in times if 2 < time < 24]) > 5
    assert times[-1] == 40.273


def test_speed_max_shows_only_the_end() -> None:
    terminal = Terminal()
    terminal.watch(math.inf, only=True).play(library_run("loss-by-hw-truncation"))
    assert terminal.now_s == 0
    assert terminal.times() == [40.273]
    assert "✗ lost m1 despite acks=all" in terminal.frames()[0]


def test_speed_max_does_not_delay_many_runs() -> None:
    terminal = Terminal()
    watch = terminal.watch(math.inf, only=False)
    for _ in range(100):
        watch.play(library_run("loss-by-hw-truncation"))
        terminal.now_s += 0.01
    assert 2 <= terminal.file.getvalue().count(HIDE_CURSOR) <= 20


def test_the_end_of_a_run_is_shown_before_the_next_one() -> None:
    alone, followed = Terminal(), Terminal()
    alone.watch(5.0, only=True).play(library_run("loss-by-hw-truncation"))
    followed.watch(5.0, only=False).play(library_run("loss-by-hw-truncation"))
    assert followed.now_s == pytest.approx(alone.now_s + 1, abs=0.2)


@pytest.mark.parametrize("only", [True, False])
def test_an_interrupt_restores_the_terminal(only: bool) -> None:
    terminal = Terminal()
    frames_max = 5

    def check() -> None:
        if len(terminal.frames()) >= frames_max:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        terminal.watch(5.0, only=only, check=check).play(library_run("loss-by-hw-truncation"))
    shown = terminal.file.getvalue()
    assert len(terminal.frames()) <= frames_max + 1
    assert shown.rindex(SHOW_CURSOR) > shown.rindex(HIDE_CURSOR)
    assert TITLE in shown
