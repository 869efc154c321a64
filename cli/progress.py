"""What stderr says of something that takes long: one line that changes, or a line now and then."""

import time
from collections.abc import Callable
from typing import Final

from rich.console import Console

from harrow.campaigns.language.spelling import printable
from harrow.cli.console import is_unicode, say

_APPEARS_S: Final = 1.0
"""What is over by then is better without a line that flashes up."""

_REFRESH_S: Final = 0.1
_PLAIN_EVERY_S: Final = 30.0
"""Where lines are kept, as in the log of a CI job. A minute of silence looks like a job that hangs."""

_BAR_WIDTH: Final = 16
_ERASE_LINE: Final = "\r\x1b[2K"


class ProgressLine:
    """A line that is rewritten in place, and gone before anything else is printed.

    Nothing is shown of what does not take long. Without a *total* it is not known how many there will be; with one
    there is a bar. Where stderr is no terminal, or its lines are to be *kept*, a plain line is printed now and then.
    """

    def __init__(
        self, console: Console, *, total: int | None, enabled: bool = True, kept: bool = False
    ) -> None:
        self._console = console
        self._total = total
        self._enabled = enabled
        self._redrawn = console.is_terminal and not console.is_dumb_terminal and not kept
        self._shown = False
        self._next_s = time.monotonic() + (_APPEARS_S if self._redrawn else _PLAIN_EVERY_S)

    def update(self, done: int, doing: str | Callable[[], str]) -> None:
        """Say how many runs are *done* and what runs now, a few times a second at most. A function is called only then."""
        now_s = time.monotonic()
        if not self._enabled or now_s < self._next_s:
            return
        # What a run waits for may have in it what records say.
        doing = printable(doing() if callable(doing) else doing)
        if not self._redrawn:
            self._next_s = now_s + _PLAIN_EVERY_S
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
