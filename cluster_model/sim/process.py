"""Defines processes and the events that happen to them. A process runs, is paused, or is dead."""

from collections.abc import Callable
from dataclasses import field

from harrow.cluster_model.lazy_dataclass import dataclass


def _refuse_to_exit() -> None:
    raise AssertionError("this process never ends by itself")


class ScheduledEvent:
    """Something that happens to a process at a certain time: a message arrives, or a timer fires.

    The simulator sets all attributes when it schedules the event. So the queue must not have the
    same event object twice. Events happen in the order of their ``rank``.
    """

    __slots__ = ("at_us", "following", "incarnation", "process", "rank")

    process: "Process"
    incarnation: int
    at_us: int
    rank: int
    following: "ScheduledEvent | None"

    def run(self) -> None:
        """Make the event happen."""
        raise NotImplementedError


@dataclass(slots=True, eq=False)
class Process:
    """A process on a machine of its own.

    ``incarnation`` counts the times that the process has died. Events that were scheduled for an
    earlier incarnation are dropped. A paused process (SIGSTOP, or a long garbage collection) keeps
    its sockets and its memory, and its events wait in ``backlog``. The process calls ``on_exit`` to
    shut down cleanly, and ``on_halt`` to end at once. ``powered`` says whether its machine has
    power.
    """

    name: str
    on_exit: Callable[[], None] = _refuse_to_exit
    on_halt: Callable[[], None] = _refuse_to_exit
    incarnation: int = 0
    running: bool = True
    paused: bool = False
    powered: bool = True
    skew_us: int = 0
    """How far its machine's wall clock is ahead of the true time."""
    backlog: list[ScheduledEvent] = field(default_factory=list)

    def kill(self, *, power_loss: bool = False) -> None:
        """End the process at once. With *power_loss*, its machine loses power, too."""
        self.incarnation += 1
        self.running = False
        self.paused = False
        self.powered = not power_loss
        self.backlog.clear()

    def start(self) -> None:
        """Start the process, on a machine with power."""
        self.running = True
        self.powered = True
