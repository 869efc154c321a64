"""The view of a run that goes on, with a fake clock."""

from contextlib import suppress
from typing import Any, cast

import pytest

from harrow.campaigns.story.live_playback import LivePlayback
from harrow.cli.watch.watch_live import LiveWatch
from tests.campaigns.story.test_live_playback import RunInPieces
from tests.cli.test_watch_command import shown_at_last
from tests.cli.watch.test_watch_run import HIDE_CURSOR, SHOW_CURSOR, Terminal
from tests.played_runs import library_run


def playback() -> LivePlayback:
    result = library_run("loss-by-hw-truncation")
    run = RunInPieces(result)
    run.at_us = 26_000_000
    return LivePlayback(result.plan, result.seed, cast("Any", run), cast("Any", run))


def test_a_view_is_drawn_a_few_times_per_second() -> None:
    terminal = Terminal()
    with LiveWatch(terminal.console, clock=lambda: terminal.now_s) as watch:
        assert watch.is_due()
        watch.draw(playback(), 26_000_000, ("app",))
        assert not watch.is_due()
        terminal.now_s += 0.25
        assert watch.is_due()


def test_a_slow_drawing_takes_a_small_share_of_the_time() -> None:
    terminal = Terminal()
    times_s = iter([0.0, 1.0, 8.9, 9.1])
    with LiveWatch(terminal.console, clock=lambda: next(times_s)) as watch:
        watch.draw(playback(), 26_000_000, ())
        assert not watch.is_due()
        assert watch.is_due()


def test_a_view_shows_the_moment_and_its_clients_within_the_terminal() -> None:
    terminal = Terminal()
    with LiveWatch(terminal.console, speed=", 10x", clock=lambda: terminal.now_s) as watch:
        watch.draw(playback(), 26_000_000, ("app", "\x1b[2Jcleaner"))
    text = terminal.file.getvalue()
    lines = shown_at_last(text)
    assert any(line.endswith("26.000s, 10x") for line in lines)
    assert any(line.startswith("clients  app, ") for line in lines)
    assert "\x1b[2J" not in text
    assert "findings judged at the end" in lines
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_the_terminal_gets_its_cursor_back_whatever_ends_the_view(error: type[BaseException]) -> None:
    terminal = Terminal()
    with suppress(error), LiveWatch(terminal.console, clock=lambda: terminal.now_s) as watch:
        watch.draw(playback(), 26_000_000, ())
        raise error
    text = terminal.file.getvalue()
    assert text.rindex(SHOW_CURSOR) > text.rindex(HIDE_CURSOR)
