"""The progress line of long work."""

import time
from collections.abc import Callable
from io import StringIO

import pytest
from rich.console import Console

from harrow.cli.progress import ProgressLine, ReadingProgress

ERASE_LINE = "\r\x1b[2K"


class WatchedProgress:
    """A progress line on a terminal with a clock that a test sets."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        *,
        total: int | None = 20,
        terminal: bool = True,
        log: bool = False,
    ) -> None:
        self.now_s = 100.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now_s)
        self.file = StringIO()
        console = Console(file=self.file, width=40, force_terminal=terminal, _environ={})
        self.line = ProgressLine(console, total=total, log=log)

    def at(
        self,
        after_s: float,
        done: int,
        doing: str | Callable[[], str] = "harrow run swarm --seed 12345678",
    ) -> str:
        """Return the output of an update at a time."""
        self.now_s = 100 + after_s
        self.file.seek(0)
        self.file.truncate()
        self.line.update(done, doing)
        return self.file.getvalue()


def test_short_work_shows_no_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = WatchedProgress(monkeypatch)
    assert watched.at(0.0, 0) + watched.at(0.3, 4) + watched.at(0.9, 19) == ""
    watched.line.clear()
    assert watched.file.getvalue() == ""


def test_long_work_shows_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = WatchedProgress(monkeypatch)
    assert watched.at(1.01, 5) == f"{ERASE_LINE}━━━━──────────── 5/20  harrow run swarm"
    assert watched.at(1.05, 6) == ""  # the line was just written
    assert watched.at(1.2, 20).startswith(f"{ERASE_LINE}━━━━━━━━━━━━━━━━ 20/20  harrow")
    watched.line.clear()
    assert watched.file.getvalue().endswith(ERASE_LINE)


def test_without_a_total_there_is_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = WatchedProgress(monkeypatch, total=None)
    assert watched.at(2.0, 5).startswith(f"{ERASE_LINE}5  harrow run")


def test_a_pipe_gets_a_progress_line_every_half_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = WatchedProgress(monkeypatch, terminal=False)
    assert watched.at(5.0, 5) + watched.at(29.0, 8) == ""
    assert watched.at(31.0, 9) == "harrow: 9 finished of 20, now: harrow run swarm --seed 12345678\n"
    assert watched.at(60.0, 12) == ""
    assert watched.at(61.5, 13).startswith("harrow: 13 finished of 20")


def test_a_log_has_plain_lines_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = WatchedProgress(monkeypatch, log=True)
    assert watched.at(5.0, 0) == ""
    assert watched.at(31.0, 0, "ISR of t-0").endswith("0 finished of 20, now: ISR of t-0\n")
    watched.line.clear()
    assert ERASE_LINE not in watched.file.getvalue()


def test_progress_text_is_computed_only_when_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = WatchedProgress(monkeypatch)
    calls: list[int] = []

    def doing() -> str:
        calls.append(1)
        return "m0\x1b[2J"

    assert watched.at(0.5, 0, doing) == ""
    assert calls == []
    assert watched.at(1.5, 0, doing).count("\x1b") == ERASE_LINE.count("\x1b")
    assert calls == [1]


@pytest.mark.parametrize(
    ("size", "terminal", "shown"),
    [
        (400 << 20, True, f"{ERASE_LINE}━━━━──────────── 100/400  MiB read, about 9 s left"),
        (None, True, f"{ERASE_LINE}100  MiB read"),
        (400 << 20, False, ""),
    ],
)
def test_reading_a_file_shows_how_long_the_rest_takes(
    size: int | None, shown: str, monkeypatch: pytest.MonkeyPatch, *, terminal: bool
) -> None:
    now_s = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now_s)
    file = StringIO()
    console = Console(file=file, width=80, force_terminal=terminal, _environ={})
    progress = ReadingProgress(console, size, enabled=True)
    now_s = 103.0
    progress.update(100 << 20)
    assert file.getvalue() == shown
    progress.clear()
