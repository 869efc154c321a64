"""One line on stderr that says what is going on, when a person watches."""

import time
from typing import Final

from rich.console import Console

from harrow.cli.console import is_unicode

_APPEARS_S: Final = 1.0
"""What is over by then is better without a line that flashes up."""

_REFRESH_S: Final = 0.1
_BAR_WIDTH: Final = 16
_ERASE_LINE: Final = "\r\x1b[2K"


class ProgressLine:
    """A line that is rewritten in place, and gone before anything else is printed.

    Nothing is shown when stderr is no terminal, nor of what does not take long. Without a *total* nobody
    knows how many there will be; with one there is a bar.
    """

    def __init__(self, console: Console, *, total: int | None, enabled: bool = True) -> None:
        self._console = console
        self._total = total
        self._enabled = enabled and console.is_terminal and not console.is_dumb_terminal
        self._shown = False
        self._next_s = time.monotonic() + _APPEARS_S

    def update(self, done: int, doing: str) -> None:
        """Say that *done* runs are finished and what runs now; at most some times a second."""
        now_s = time.monotonic()
        if not self._enabled or now_s < self._next_s:
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
        """Take the line away."""
        if self._shown:
            self._console.file.write(_ERASE_LINE)
            self._console.file.flush()
            self._shown = False
