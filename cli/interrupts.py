"""Ctrl-C: at once while something runs, but not in the middle of what is being written."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, NoReturn, Self

from harrow.cli import exit_code


def end_at_once_when_interrupted() -> None:
    """Have an interrupt end the process without a word, until there is something to tell or to keep."""
    # A shell that starts harrow in the background may have told it to ignore interrupts.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def _end(_signal: int, _frame: FrameType | None) -> NoReturn:
    os._exit(exit_code.INTERRUPTED)


class Interrupts:
    """While this context is open, an interrupt raises `KeyboardInterrupt`, but not in a `shielded` block.

    There it waits until the block has ended; a user who presses the keys twice does not wait. An exception
    that is raised at any moment can get lost, in a callback of the garbage collector or of a library: an
    interrupt that was is raised again at the end of the next block, or by `check`.
    """

    def __init__(self) -> None:
        self._shields = 0
        self._waiting = False
        self._installed = False
        self._heeded: dict[signal.Signals, Any] = {}

    def heed(self, *signals: signal.Signals) -> None:
        """Let other signals that end a process be interrupts too: something has to be undone, or kept, first.

        An interrupt itself, too, which a shell has a process in the background ignore: one that has started brokers obeys it.
        """
        for number in (signal.SIGINT, *signals):
            # A process that is to outlive its terminal (nohup) ignores some.
            is_ignored = signal.getsignal(number) is signal.SIG_IGN
            if is_ignored == (number == signal.SIGINT):
                self._heeded[number] = signal.signal(number, self._handle)

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
        for number, handler in self._heeded.items():
            signal.signal(number, handler)
        self._heeded.clear()

    @contextmanager
    def shielded(self) -> Iterator[None]:
        """Let interrupts wait for the end of the block."""
        self._shields += 1
        try:
            yield
        finally:
            self._shields -= 1
        if not self._shields:
            self.check()

    @contextmanager
    def noted(self) -> Iterator[None]:
        """Let interrupts wait for the end of the block, and beyond: what runs there asks (`is_waiting`), and ends by itself."""
        self._shields += 1
        try:
            yield
        finally:
            self._shields -= 1

    def is_waiting(self) -> bool:
        """Return whether there was an interrupt that waits."""
        return self._waiting

    def check(self) -> None:
        """Raise an interrupt that waits, also in a shielded block, or one that got lost."""
        if self._waiting:
            raise KeyboardInterrupt

    def hold(self) -> None:
        """Let interrupts wait from now on: everything is run, and only has to be written."""
        self._shields += 1

    def _handle(self, _signal: int, _frame: FrameType | None) -> None:
        again, self._waiting = self._waiting, True
        if again or not self._shields:
            raise KeyboardInterrupt
