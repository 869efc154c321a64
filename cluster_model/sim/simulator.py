"""Runs the event loop: a virtual clock, and a queue of events ordered by time.

An event happens to a process. It is dropped if the process has died since it was scheduled, and
delayed while the process is paused. A timer that was cancelled stays in the queue: when it fires,
the code that set it checks whether it still matters.
"""

from collections.abc import Callable
from typing import Any, Final, final

from harrow.cluster_model.compiling import i64
from harrow.cluster_model.sim.process import Process, ScheduledEvent
from harrow.cluster_model.trace import Clock

Callback = Callable[[Any], None]

_NEVER_US: Final = 1 << 60
"""Later than any run ends. Settings have times that do not fit into 64 bits."""
_SCANNED: Final = 8
"""How many events a new one is compared with before the search halves the rest of the queue."""


class StepLimitExceeded(Exception):
    """The run handled more events than its limit allows."""


@final
class Timer(ScheduledEvent):
    """A call with one argument."""

    __slots__ = ("_argument", "_callback")

    def __init__(self, callback: Callback, argument: Any) -> None:
        self._callback = callback
        self._argument = argument

    def run(self) -> None:
        self._callback(self._argument)


class Simulator(Clock):
    """A virtual clock and the queue of events.

    Events happen in the order of their times, and at one time in the order of scheduling. The queue
    is a sorted list with the next event at its end. Most events are due soon: four in five belong
    among the last eight, so inserting one compares it with few others and moves as few, and taking
    the next compares nothing.
    """

    __slots__ = ("_queue", "events_handled", "events_limit")

    def __init__(self, start_us: int = 0, events_limit: int = 50_000_000) -> None:
        self.now_us = start_us
        self.events_handled = 0
        self.events_limit = events_limit
        self._queue: list[ScheduledEvent] = []

    def schedule(self, at_us: int, process: Process, callback: Callback, argument: Any) -> None:
        """Have ``callback(argument)`` happen to *process* at *at_us* of virtual time."""
        self.add(min(at_us, _NEVER_US), process, Timer(callback, argument))

    def schedule_first(self, at_us: int, process: Process, callback: Callback, argument: Any) -> None:
        """Schedule a call before all events of its time, except those of earlier calls."""
        self._insert(2 * at_us, process, Timer(callback, argument))

    def add(self, at_us: i64, process: Process, event: ScheduledEvent) -> None:
        """Have *event* happen to *process* at *at_us* of virtual time."""
        self._insert(2 * at_us + 1, process, event)

    def _insert(self, order: i64, process: Process, event: ScheduledEvent) -> None:
        event.process = process
        event.incarnation = process.incarnation
        event.order = order
        queue = self._queue
        position: i64 = len(queue)
        scanned: i64 = max(position - _SCANNED, 0)
        while position > scanned and queue[position - 1].order <= order:
            position -= 1
        if position == scanned:
            low: i64 = 0
            while low < position:
                middle = (low + position) >> 1
                if queue[middle].order > order:
                    low = middle + 1
                else:
                    position = middle
        queue.insert(position, event)

    def run_until(self, end_us: int) -> None:
        """Handle every event up to and at *end_us*, and set the clock to it."""
        self._handle(end_us, self.events_limit - self.events_handled + 1)
        self.now_us = max(self.now_us, end_us)

    def step(self, end_us: int) -> bool:
        """Handle the next event if it is due by *end_us*; return whether one was handled."""
        return self._handle(end_us, 1) == 1

    def _handle(self, end_us: int, events_max: int) -> int:
        """Handle at most *events_max* events up to and at *end_us*; return how many there were."""
        queue = self._queue
        last: i64 = 2 * end_us + 1
        handled = 0
        while queue and handled < events_max:
            event = queue[-1]
            if event.order > last:
                break
            queue.pop()
            process = event.process
            if process.incarnation != event.incarnation:
                continue
            if process.paused:
                process.backlog.append(event)
                continue
            self.now_us = event.order >> 1
            event.run()
            handled += 1
        self.events_handled += handled
        if self.events_handled > self.events_limit:
            raise StepLimitExceeded(f"more than {self.events_limit} events")
        return handled

    def resume(self, process: Process) -> None:
        """Let a paused *process* run on; what came in meanwhile happens now, in order."""
        process.paused = False
        backlog, process.backlog = process.backlog, []
        for event in backlog:
            self.add(self.now_us, process, event)
