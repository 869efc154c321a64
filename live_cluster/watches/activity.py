"""Whether anything goes on in a cluster that could change what watches look at."""

import math
import threading
import time
from collections.abc import Callable
from typing import Final

_LASTS_S: Final = 0.3
"""How long the consequences of something noted are looked for."""
QUIET_LOOK_S: Final = 0.25
"""How often watches look while nothing goes on: a machine under load may be late with the consequences."""


class Activity:
    """Watches look often while something goes on, and seldom otherwise: most of a run waits, and each look costs a broker time.

    The state of a broker changes when a message arrives, or when harrow does something to it. Where both are noted here, `begin` says so.
    Without that something may go on at any time, as on a cluster of the user's.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        # After this time nothing goes on.
        self._until_s = math.inf

    def begin(self) -> None:
        """Take everything for noted from now on."""
        self._until_s = time.monotonic() + _LASTS_S

    def note(self) -> None:
        """Take note that something goes on. Any thread may."""
        with self._changed:
            if not self.is_quiet():
                self._until_s = max(self._until_s, time.monotonic() + _LASTS_S)
                return
            self._until_s = time.monotonic() + _LASTS_S
            self._changed.notify_all()

    def is_quiet(self) -> bool:
        """Return whether nothing goes on."""
        return time.monotonic() > self._until_s

    def wake(self) -> None:
        """Let whoever waits look at what it waits for."""
        with self._changed:
            self._changed.notify_all()

    def wait_while_quiet(self, timeout_s: float, is_over: Callable[[], bool] = lambda: False) -> None:
        """Wait until something goes on, or the wait *is_over*, as `wake` has it look."""
        with self._changed:
            self._changed.wait_for(lambda: is_over() or not self.is_quiet(), max(timeout_s, 0))
