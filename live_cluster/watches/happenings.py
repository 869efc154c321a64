"""What happens on real brokers, as it is noticed: by many threads, put into one order."""

import threading
import time
from typing import Any, Final

from harrow.cluster_model.trace import Clock, Trace
from harrow.live_cluster.watches.activity import Activity

_NS_PER_US: Final = 1_000


class WallClock(Clock):
    """Microseconds since the cluster was ready, by the system's monotonic clock; negative before."""

    __slots__ = ("_zero_ns",)

    def __init__(self) -> None:
        self._zero_ns = time.monotonic_ns()
        self.now_us = 0

    def set_ready(self) -> None:
        """From now on times are counted."""
        self._zero_ns = time.monotonic_ns()
        self.now_us = 0

    def tick(self) -> int:
        """Take note of the time, and return it; it never goes back."""
        self.now_us = max(self.now_us, self.us_of(time.monotonic_ns()))
        return self.now_us

    def us_of(self, monotonic_ns: int) -> int:
        """Return the time of a reading of the monotonic clock."""
        return (monotonic_ns - self._zero_ns) // _NS_PER_US

    def ns_of(self, at_us: int) -> int:
        """Return the reading of the monotonic clock at a time."""
        return self._zero_ns + at_us * _NS_PER_US


class Happenings:
    """Events on their way into the trace. Any thread may report; one takes them over. Each is *activity* of the cluster."""

    def __init__(self, clock: WallClock, trace: Trace, activity: Activity) -> None:
        self._clock = clock
        self._trace = trace
        self._activity = activity
        self._reported: list[tuple[int, Any, tuple[Any, ...]]] = []
        self._something = threading.Condition()

    def report(self, kind: Any, *fields: Any) -> None:
        """Take note of an event that is noticed now."""
        with self._something:
            self._reported.append((time.monotonic_ns(), kind, fields))
            self._something.notify()
        self._activity.note()

    def wake(self) -> None:
        """Let waiting threads go on: something has happened that is no event."""
        with self._something:
            self._something.notify()
        self._activity.note()

    def wait(self, busy_s: float, quiet_s: float) -> None:
        """Wait until something has happened: for *busy_s*, and where there is no activity for *quiet_s*."""
        with self._something:
            if not self._reported:
                self._something.wait(busy_s)
        self._activity.wait_while_quiet(quiet_s - busy_s)

    def take_over(self) -> None:
        """Put what was reported into the trace, with the times at which it was noticed."""
        with self._something:
            reported, self._reported = self._reported, []
        for at_ns, kind, fields in reported:
            # What was put there meanwhile by other ways is not older than what comes after it.
            self._clock.now_us = max(self._clock.now_us, self._clock.us_of(at_ns))
            self._trace.emit(kind, *fields)
        self._clock.tick()
