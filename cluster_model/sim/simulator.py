"""The event loop: a virtual clock and a heap of what happens next.

An event is a tuple ``(time, sequence, process, incarnation, callback, argument)``.
It happens to a process: it is dropped if the process has died since it was
scheduled, and kept back while the process is paused. Timers that are cancelled are
never searched for; the code that set one checks, when it fires, whether it still matters.
"""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, Final

from harrow.cluster_model.sim.process import Process
from harrow.cluster_model.trace import Clock

_FIRST: Final = 1 << 60
"""More events than any run has."""

Callback = Callable[[Any], None]
Event = tuple[int, int, Process, int, Callback, Any]


class StepLimitExceeded(Exception):
    """The run handled more events than its limit allows."""


class Simulator(Clock):
    """A virtual clock and the queue of events in the order of (time, scheduling)."""

    __slots__ = ("_queue", "_sequence", "events_handled", "events_limit")

    def __init__(self, start_us: int = 0, events_limit: int = 50_000_000) -> None:
        self.now_us = start_us
        self.events_handled = 0
        self.events_limit = events_limit
        self._queue: list[Event] = []
        self._sequence = 0

    def schedule(self, at_us: int, process: Process, callback: Callback, argument: Any) -> None:
        """Have ``callback(argument)`` happen to *process* at *at_us* of virtual time."""
        self._sequence += 1
        heappush(self._queue, (at_us, self._sequence, process, process.incarnation, callback, argument))

    def schedule_first(self, at_us: int, process: Process, callback: Callback, argument: Any) -> None:
        """Schedule what comes before all else at that time."""
        self._sequence += 1
        heappush(
            self._queue,
            (at_us, self._sequence - _FIRST, process, process.incarnation, callback, argument),
        )

    def run_until(self, end_us: int) -> None:
        """Handle every event up to and at *end_us*, and set the clock to it."""
        self._handle(end_us, self.events_limit - self.events_handled + 1)
        self.now_us = max(self.now_us, end_us)

    def step(self, end_us: int) -> bool:
        """Handle the next event if it is due by *end_us*; return whether one was handled."""
        return self._handle(end_us, 1) == 1

    def _handle(self, end_us: int, events_max: int) -> int:
        """Handle events up to and at *end_us*, so many at the most, and return how many there were."""
        queue = self._queue
        handled = 0
        while queue and handled < events_max:
            event = heappop(queue)
            at_us, _, process, incarnation, callback, argument = event
            if at_us > end_us:
                heappush(queue, event)
                break
            if process.incarnation != incarnation:
                continue
            if process.paused:
                process.backlog.append((callback, argument))
                continue
            self.now_us = at_us
            callback(argument)
            handled += 1
        self.events_handled += handled
        if self.events_handled > self.events_limit:
            raise StepLimitExceeded(f"more than {self.events_limit} events")
        return handled

    def resume(self, process: Process) -> None:
        """Let a paused *process* run on; what came in meanwhile happens now, in order."""
        process.paused = False
        backlog, process.backlog = process.backlog, []
        for callback, argument in backlog:
            self.schedule(self.now_us, process, callback, argument)
