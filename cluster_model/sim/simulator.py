"""Runs the event loop: a virtual clock, and a queue of events ordered by time.

An event happens to a process. It is dropped if the process has died since the event was scheduled,
and delayed while the process is paused. Timers cannot be cancelled: when a timer fires, the code
that set it checks whether it still matters.
"""

from bisect import bisect_left
from collections.abc import Callable
from typing import Any, Final, final

from harrow.cluster_model.compiling import i64, mypyc_attr
from harrow.cluster_model.sim.process import Process, ScheduledEvent
from harrow.cluster_model.trace import Clock

Callback = Callable[[Any], None]

_SCANNED: Final = 8
"""How many ranks compiled code compares one by one before it searches the rest by bisection."""


class StepLimitExceeded(Exception):
    """The run handled more events than its limit allows."""


@final
@mypyc_attr(free_list_len=1)
class Timer(ScheduledEvent):
    """A call of a function with one argument."""

    __slots__ = ("_argument", "_callback")

    def __init__(self, callback: Callback, argument: Any) -> None:
        self._callback = callback
        self._argument = argument

    def run(self) -> None:
        self._callback(self._argument)


class Simulator(Clock):
    """A virtual clock and the queue of events.

    Events happen in the order of their times, and events at the same time in the order in which
    they were scheduled. The queue is a sorted list with the next event at its end. Most events are
    due soon: four in five belong among the last eight of the list. So inserting an event compares
    it with few others and moves as few, and taking the next event compares nothing. ``_ranks`` has
    the sort key of each event. It is the event's time in microseconds, negated so that the list
    ascends, plus a half if the event precedes others of its time.
    """

    __slots__ = ("_queue", "_ranks", "events_handled", "events_limit")

    def __init__(self, start_us: int = 0, events_limit: int = 50_000_000) -> None:
        self.now_us = start_us
        self.events_handled = 0
        self.events_limit = events_limit
        self._queue: list[ScheduledEvent] = []
        self._ranks: list[float] = []

    def schedule(self, at_us: int, process: Process, callback: Callback, argument: Any) -> None:
        """Call ``callback(argument)`` for *process* at *at_us* of virtual time."""
        self.add(at_us, process, Timer(callback, argument))

    def schedule_first(self, at_us: int, process: Process, callback: Callback, argument: Any) -> None:
        """Schedule a call before all events at *at_us* that were not scheduled by this method."""
        self.add(at_us, process, Timer(callback, argument), 0.5)

    def add(self, at_us: int, process: Process, event: ScheduledEvent, precedence: float = 0.0) -> None:
        """Have *event* happen to *process* at *at_us* of virtual time."""
        event.process = process
        event.incarnation = process.incarnation
        event.at_us = at_us
        rank = precedence - at_us
        place = Simulator._place(self._ranks, rank)
        self._ranks.insert(place, rank)
        self._queue.insert(place, event)

    @staticmethod
    def _place(ranks: list[float], rank: float) -> int:
        """Return how many of the ascending *ranks* are below *rank*."""
        # A call of `bisect_left` would cost more than the comparisons, as it compares objects.
        place: i64 = len(ranks)
        scanned: i64 = place - _SCANNED if place > _SCANNED else 0
        while place > scanned and ranks[place - 1] >= rank:
            place -= 1
        if place > scanned:
            return place
        low: i64 = 0
        while low < place:
            middle: i64 = (low + place) >> 1
            if ranks[middle] < rank:
                low = middle + 1
            else:
                place = middle
        return low

    @property
    def next_us(self) -> int | None:
        """When the next event is due; None if there is none."""
        return self._queue[-1].at_us if self._queue else None

    def run_until(self, end_us: int) -> None:
        """Handle every event up to and including *end_us*, and set the clock to *end_us*."""
        self._handle(end_us, self.events_limit - self.events_handled + 1)
        self.now_us = max(self.now_us, end_us)

    def step(self, end_us: int) -> bool:
        """Handle the next event if it is due by *end_us*. Return whether an event was handled."""
        return self._handle(end_us, 1) == 1

    def _handle(self, end_us: int, events_max: int) -> int:
        """Handle events up to and including *end_us*, at most *events_max*. Return their number."""
        queue, ranks = self._queue, self._ranks
        last = float(-end_us)
        handled = 0
        while queue and handled < events_max:
            if ranks[-1] < last:
                break
            ranks.pop()
            event = queue.pop()
            process = event.process
            if process.incarnation != event.incarnation:
                continue
            if process.paused:
                process.backlog.append(event)
                continue
            self.now_us = event.at_us
            event.run()
            handled += 1
        self.events_handled += handled
        if self.events_handled > self.events_limit:
            raise StepLimitExceeded(f"more than {self.events_limit} events")
        return handled

    def dismantle(self) -> None:
        """Drop all events that are left (`Cluster.dismantle`)."""
        self._queue.clear()
        self._ranks.clear()

    def resume(self, process: Process) -> None:
        """Resume a paused *process*. The events that waited meanwhile happen now, in order."""
        process.paused = False
        backlog, process.backlog = process.backlog, []
        for event in backlog:
            self.add(self.now_us, process, event)


# Compiled code always calls the method above, even after this assignment. In plain Python the
# comparisons of that method would cost more than a call, so there `_place` becomes a function that
# is written in C.
setattr(Simulator, "_place", staticmethod(bisect_left))  # noqa: B010 - mypy refuses an assignment
