"""Collects events on real brokers from many threads, and brings them into one order."""

import threading
import time
from typing import Any, Final

from harrow.cluster_model.trace import Clock, Trace
from harrow.live_cluster.watches.activity import Activity

_NS_PER_US: Final = 1_000


class WallClock(Clock):
    """A clock of microseconds since the run began. Before that, it stands at 0.

    ``zero_ns`` is the reading of the monotonic clock when the run began, None before.
    """

    __slots__ = ("zero_ns",)

    def __init__(self) -> None:
        self.zero_ns: int | None = None
        self.now_us = 0

    def begin(self) -> int:
        """Let time pass from now on, and return the zero of the clock."""
        self.zero_ns = time.monotonic_ns()
        return self.zero_ns

    def tick(self) -> int:
        """Advance the clock to the current time; it never goes back."""
        self.now_us = max(self.now_us, self.us_of(time.monotonic_ns()))
        return self.now_us

    def us_of(self, monotonic_ns: int) -> int:
        """Convert a reading of the monotonic clock to a time of this clock.

        The time of a reading from before the beginning is 0.
        """
        return 0 if self.zero_ns is None else max(0, (monotonic_ns - self.zero_ns) // _NS_PER_US)


class EventQueue:
    """Events on their way into the trace. Any thread reports them; one thread moves them."""

    def __init__(self, clock: WallClock, trace: Trace, activity: Activity) -> None:
        self._clock = clock
        self._trace = trace
        self._activity = activity
        self._reported: list[tuple[int, Any, tuple[Any, ...]]] = []
        self._condition = threading.Condition()

    def report(self, kind: Any, *fields: Any) -> None:
        """Report an event that has happened now."""
        with self._condition:
            self._reported.append((time.monotonic_ns(), kind, fields))
            self._condition.notify()
        self._activity.note()

    def wake(self) -> None:
        """Wake waiting threads for a change that is not an event."""
        with self._condition:
            self._condition.notify()
        self._activity.note()

    def wait(self, busy_s: float, quiet_s: float) -> None:
        """Wait for an event, for *busy_s*, or without activity for *quiet_s*."""
        with self._condition:
            if not self._reported:
                self._condition.wait(busy_s)
        self._activity.wait_while_quiet(quiet_s - busy_s)

    def move_to_trace(self) -> None:
        """Move the reported events into the trace, with the times of their reports."""
        with self._condition:
            reported, self._reported = self._reported, []
        for at_ns, kind, fields in reported:
            # Other events may be in the trace already, so the clock must not go back.
            self._clock.now_us = max(self._clock.now_us, self._clock.us_of(at_ns))
            self._trace.emit(kind, *fields)
        self._clock.tick()
