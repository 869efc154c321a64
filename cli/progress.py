"""Shows the progress of long work on stderr: rewrites one line, or prints a line at intervals."""

import time
from collections.abc import Callable
from math import ceil
from typing import Final

from rich.console import Console

from harrow.campaigns.language.spelling import printable
from harrow.campaigns.language.units import rough_duration_text
from harrow.cli.console import is_unicode, say
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND

_DELAY_S: Final = 1.0
"""For work that is shorter than this, progress would only flash up, so it is not shown."""

_REFRESH_S: Final = 0.1
_LOG_INTERVAL_S: Final = 30.0
"""The interval between lines in a log. A CI job that is silent for a minute seems to hang."""

_BAR_WIDTH: Final = 16
_MIB_BITS: Final = 20
_ERASE_LINE: Final = "\r\x1b[2K"


class ProgressLine:
    """A line that is rewritten in place, and cleared before anything else is printed.

    For short work, nothing is shown. With a *total*, the line has a bar. If stderr is not a
    terminal, or if progress should stay on screen as a *log*, a plain line is printed from time to
    time.
    """

    def __init__(
        self, console: Console, *, total: int | None, enabled: bool = True, log: bool = False
    ) -> None:
        self._console = console
        self._total = total
        self._enabled = enabled
        self._is_rewritten = console.is_terminal and not console.is_dumb_terminal and not log
        self._shown = False
        self._next_s = time.monotonic() + (_DELAY_S if self._is_rewritten else _LOG_INTERVAL_S)

    def update(self, done: int, doing: str | Callable[[], str]) -> None:
        """Show how many runs are *done* and what runs now, at most a few times per second.

        *doing* may be a function, which is called only if the line is shown.
        """
        now_s = time.monotonic()
        if not self._enabled or now_s < self._next_s:
            return
        # The text may contain data, such as a record in a condition for which a run waits.
        doing = printable(doing() if callable(doing) else doing)
        if not self._is_rewritten:
            self._next_s = now_s + _LOG_INTERVAL_S
            say(self._console, f"{done} finished{f' of {self._total}' if self._total else ''}, now: {doing}")
            return
        self._next_s = now_s + _REFRESH_S
        count = f"{done}" if self._total is None else f"{self._bar(done, self._total)} {done}/{self._total}"
        line = f"{count}  {doing}"[: self._console.width - 1]
        self._console.file.write(f"{_ERASE_LINE}{line}")
        self._console.file.flush()
        self._shown = True

    def _bar(self, done: int, total: int) -> str:
        full, empty = ("━", "─") if is_unicode(self._console) else ("=", "-")
        filled = _BAR_WIDTH * done // max(1, total)
        return full * filled + empty * (_BAR_WIDTH - filled)

    def clear(self) -> None:
        if self._shown:
            self._console.file.write(_ERASE_LINE)
            self._console.file.flush()
            self._shown = False


class ReadingProgress:
    """Shows how much of a file was read, and how long the rest takes at the same rate.

    Nothing is shown if stderr is not a terminal. The size of a file may be unknown.
    """

    def __init__(self, console: Console, size: int | None, *, enabled: bool) -> None:
        self._size = size
        total = None if size is None else size >> _MIB_BITS
        self._line = ProgressLine(console, total=total, enabled=enabled and console.is_terminal)
        self._began_s = time.monotonic()

    def update(self, read: int) -> None:
        """Show that so many bytes were read."""
        self._line.update(read >> _MIB_BITS, lambda: f"MiB read{self._left(read)}")

    def _left(self, read: int) -> str:
        if self._size is None or not read:
            return ""
        left_s = (time.monotonic() - self._began_s) * max(self._size - read, 0) / read
        return f", about {rough_duration_text(ceil(left_s) * US_PER_SECOND)} left"

    def clear(self) -> None:
        self._line.clear()
