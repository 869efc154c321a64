"""Records activity on a cluster, during which the cluster's state may change."""

import math
import threading
import time
from collections.abc import Callable
from typing import Final

_ACTIVITY_S: Final = 0.3
"""How long watches poll often after an activity, to see its consequences."""
QUIET_POLL_INTERVAL_S: Final = 0.25
"""The poll interval without activity. On a busy machine, consequences may be late."""


class Activity:
    """Lets watches poll often during activity and seldom otherwise, because polls cost time.

    The state of a broker changes when a message arrives, or when harrow applies a fault. A cluster
    that reports both calls `begin`. Another cluster, such as a user's, always counts as active.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        # The end of the current activity.
        self._until_s = math.inf

    def begin(self) -> None:
        """From now on, the cluster is active only for a while after each `note`."""
        self._until_s = time.monotonic() + _ACTIVITY_S

    def note(self) -> None:
        """Record an activity, from any thread."""
        with self._changed:
            if not self.is_quiet():
                self._until_s = max(self._until_s, time.monotonic() + _ACTIVITY_S)
                return
            self._until_s = time.monotonic() + _ACTIVITY_S
            self._changed.notify_all()

    def is_quiet(self) -> bool:
        return time.monotonic() > self._until_s

    def wake(self) -> None:
        """Let waiting threads check their conditions."""
        with self._changed:
            self._changed.notify_all()

    def wait_while_quiet(self, timeout_s: float, is_over: Callable[[], bool] = lambda: False) -> None:
        """Wait for an activity, or until *is_over* is true, which is checked after each `wake`."""
        with self._changed:
            self._changed.wait_for(lambda: is_over() or not self.is_quiet(), max(timeout_s, 0))
