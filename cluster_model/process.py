"""Processes as the operating system sees them: running, paused or dead."""

from collections.abc import Callable
from typing import Any


class Process:
    """A process on a machine of its own.

    ``incarnation`` counts its starts; whatever was scheduled for an earlier one
    never happens. A paused process (stopped, or in a long garbage collection) keeps
    its sockets and its memory; what comes in waits in ``backlog``.
    """

    __slots__ = ("backlog", "incarnation", "name", "paused", "powered", "running")

    def __init__(self, name: str) -> None:
        self.name = name
        self.incarnation = 0
        self.running = True
        self.paused = False
        self.powered = True
        self.backlog: list[tuple[Callable[[Any], None], Any]] = []

    def kill(self, *, power_loss: bool = False) -> None:
        """End the process at once; with *power_loss* its machine goes dark too."""
        self.incarnation += 1
        self.running = False
        self.paused = False
        self.powered = not power_loss
        self.backlog.clear()

    def start(self) -> None:
        """Start the process again, on a machine that has power again."""
        self.running = True
        self.powered = True
