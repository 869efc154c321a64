"""Ctrl-C: it takes effect at once while something runs, but never in the middle of a write."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, NoReturn, Self

from harrow.cli import exit_code


def end_at_once_when_interrupted() -> None:
    """Let an interrupt end the process silently, until there is something to report or to save."""
    # A shell that starts harrow in the background may make it ignore interrupts.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def _end(_signal: int, _frame: FrameType | None) -> NoReturn:
    os._exit(exit_code.INTERRUPTED)


class Interrupts:
    """In this context an interrupt raises `KeyboardInterrupt`, except in a `shielded` block.

    There it waits for the end of the block, unless the user presses the keys twice. An exception
    that is raised at an arbitrary moment can get lost in a callback of the garbage collector or of
    a library. So an interrupt is raised again at the end of the next block, or by `check`.
    """

    def __init__(self) -> None:
        self._shields = 0
        self._waiting = False
        self._installed = False
        self._former_handlers: dict[signal.Signals, Any] = {}

    def heed(self, *signals: signal.Signals) -> None:
        """Treat other terminating signals as interrupts, to undo or save something first.

        This includes SIGINT in a background process, where the shell makes it ignored: a process
        that has started brokers must obey it.
        """
        for number in (signal.SIGINT, *signals):
            # A process that should outlive its terminal (nohup) ignores some signals.
            is_ignored = signal.getsignal(number) is signal.SIG_IGN
            if is_ignored == (number == signal.SIGINT):
                self._former_handlers[number] = signal.signal(number, self._handle)

    def __enter__(self) -> Self:
        if signal.getsignal(signal.SIGINT) in (signal.default_int_handler, _end):
            signal.signal(signal.SIGINT, self._handle)
            self._installed = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self._installed = False
        for number, handler in self._former_handlers.items():
            signal.signal(number, handler)
        self._former_handlers.clear()

    @contextmanager
    def shielded(self) -> Iterator[None]:
        """Delay interrupts until the end of the block."""
        with self.noted():
            yield
        if not self._shields:
            self.check()

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Delay interrupts beyond the block, whose code asks `is_waiting` and ends by itself."""
        self._shields += 1
        try:
            yield
        finally:
            self._shields -= 1

    def is_waiting(self) -> bool:
        return self._waiting

    def check(self) -> None:
        """Raise a waiting or lost interrupt, even in a shielded block."""
        if self._waiting:
            raise KeyboardInterrupt

    def hold(self) -> None:
        """Delay interrupts for good: all runs are over, and the results must be written."""
        self._shields += 1

    def _handle(self, _signal: int, _frame: FrameType | None) -> None:
        again, self._waiting = self._waiting, True
        if again or not self._shields:
            raise KeyboardInterrupt
