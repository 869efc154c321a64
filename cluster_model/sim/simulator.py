"""Runs the event loop: a virtual clock, and a queue of events ordered by time.

An event happens to a process. It is dropped if the process has died since the event was scheduled,
and delayed while the process is paused. Timers cannot be cancelled: when a timer fires, the code
that set it checks whether it still matters.
"""

from collections.abc import Callable
from typing import Any, Final, final

from harrow.cluster_model.compiling import i64, mypyc_attr
from harrow.cluster_model.sim.process import Process, ScheduledEvent
from harrow.cluster_model.trace import Clock

Callback = Callable[[Any], None]

_CHAINED: Final = 12
"""How many of the next events a new event is compared with before it joins the later ones."""


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
    they were scheduled. The next events are a chain in that order, which begins at ``_next``. Most
    events are due soon, so a new event is inserted after a few comparisons, and nothing is moved.
    The other events are ``_later``, a sorted list with its earliest event at the end.
    """

    __slots__ = ("_later", "_next", "events_handled", "events_limit")

    def __init__(self, start_us: int = 0, events_limit: int = 50_000_000) -> None:
        self.now_us = start_us
        self.events_handled = 0
        self.events_limit = events_limit
        self._next: ScheduledEvent | None = None
        self._later: list[ScheduledEvent] = []

    def schedule(self, at_us: int, process: Process, callback: Callback, argument: Any) -> None:
        """Call ``callback(argument)`` for *process* at *at_us* of virtual time."""
        self.add(at_us, process, Timer(callback, argument))

    def schedule_first(self, at_us: int, process: Process, callback: Callback, argument: Any) -> None:
        """Schedule a call before all events at *at_us* that were not scheduled by this method."""
        self.add(at_us, process, Timer(callback, argument), 1)

    def add(self, at_us: int, process: Process, event: ScheduledEvent, precedence: int = 0) -> None:
        """Have *event* happen to *process* at *at_us* of virtual time."""
        event.process = process
        event.incarnation = process.incarnation
        event.at_us = at_us
        # mypyc multiplies only small numbers at once, and adds all that fit into a machine word.
        rank = event.rank = at_us + at_us - precedence
        later = self._later
        if later and later[-1].rank <= rank:
            self._insert_later(event)
            return
        compared: i64 = 0
        previous: ScheduledEvent | None = None
        following = self._next
        while following is not None and following.rank <= rank:
            if compared == _CHAINED:
                assert previous is not None, "the chain has been compared from its beginning"
                previous.following = None
                self._move_to_later(following)
                self._insert_later(event)
                return
            compared += 1
            previous = following
            following = following.following
        event.following = following
        if previous is None:
            self._next = event
        else:
            previous.following = event

    def _insert_later(self, event: ScheduledEvent) -> None:
        later, rank = self._later, event.rank
        low: i64 = 0
        high: i64 = len(later)
        while low < high:
            middle = (low + high) >> 1
            if later[middle].rank > rank:
                low = middle + 1
            else:
                high = middle
        later.insert(low, event)

    def _move_to_later(self, first: ScheduledEvent) -> None:
        """Move *first* and all events that follow it from the chain to the later events."""
        moved: list[ScheduledEvent] = []
        event: ScheduledEvent | None = first
        while event is not None:
            moved.append(event)
            event = event.following
        moved.reverse()
        self._later += moved

    def _chain_later(self) -> ScheduledEvent | None:
        """Begin the chain again with the first of the later events, and return its first event."""
        first: ScheduledEvent | None = None
        for event in self._later[-_CHAINED:]:
            event.following = first
            first = event
        del self._later[-_CHAINED:]
        return first

    @property
    def next_us(self) -> int | None:
        """When the next event is due; None if there is none."""
        if self._next is None:
            self._next = self._chain_later()
        return None if self._next is None else self._next.at_us

    def run_until(self, end_us: int) -> None:
        """Handle every event up to and including *end_us*, and set the clock to *end_us*."""
        self._handle(end_us, self.events_limit - self.events_handled + 1)
        self.now_us = max(self.now_us, end_us)

    def step(self, end_us: int) -> bool:
        """Handle the next event if it is due by *end_us*. Return whether an event was handled."""
        return self._handle(end_us, 1) == 1

    def _handle(self, end_us: int, events_max: int) -> int:
        """Handle events up to and including *end_us*, at most *events_max*. Return their number."""
        handled = 0
        while handled < events_max:
            event = self._next
            if event is None:
                event = self._next = self._chain_later()
            if event is None or event.at_us > end_us:
                break
            self._next = event.following
            event.following = None
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
        self._next = None
        self._later.clear()

    def resume(self, process: Process) -> None:
        """Resume a paused *process*. The events that waited meanwhile happen now, in order."""
        process.paused = False
        backlog, process.backlog = process.backlog, []
        for event in backlog:
            self.add(self.now_us, process, event)
