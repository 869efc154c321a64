"""The line that says how far something long is."""

import time
from io import StringIO

import pytest
from rich.console import Console

from harrow.cli.progress import ProgressLine

ERASE_LINE = "\r\x1b[2K"


class Watched:
    """A line on a terminal, and a clock that is set by hand."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, *, total: int | None = 20, terminal: bool = True
    ) -> None:
        self.now_s = 100.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now_s)
        self.file = StringIO()
        console = Console(file=self.file, width=40, force_terminal=terminal, _environ={})
        self.line = ProgressLine(console, total=total)

    def at(self, after_s: float, done: int) -> str:
        """Return what is written when so many are done after so many seconds."""
        self.now_s = 100 + after_s
        self.file.seek(0)
        self.file.truncate()
        self.line.update(done, "harrow run swarm --seed 12345678")
        return self.file.getvalue()


def test_what_is_over_soon_shows_none(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch)
    assert watched.at(0.0, 0) + watched.at(0.3, 4) + watched.at(0.9, 19) == ""
    watched.line.clear()
    assert watched.file.getvalue() == ""


def test_what_takes_long_shows_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch)
    assert watched.at(1.01, 5) == f"{ERASE_LINE}━━━━──────────── 5/20  harrow run swarm"
    assert watched.at(1.05, 6) == ""  # it has just been written
    assert watched.at(1.2, 20).startswith(f"{ERASE_LINE}━━━━━━━━━━━━━━━━ 20/20  harrow")
    watched.line.clear()
    assert watched.file.getvalue().endswith(ERASE_LINE)


def test_without_a_total_there_is_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch, total=None)
    assert watched.at(2.0, 5).startswith(f"{ERASE_LINE}5  harrow run")


def test_what_is_no_terminal_gets_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch, terminal=False)
    assert watched.at(5.0, 5) + watched.at(29.0, 8) == ""
    assert watched.at(31.0, 9) == "harrow: 9 finished of 20, now: harrow run swarm --seed 12345678\n"
    assert watched.at(60.0, 12) == ""
    assert watched.at(61.5, 13).startswith("harrow: 13 finished of 20")
