"""Handles Ctrl-C, which stops runs at once but never interrupts a write."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, NoReturn, Self

from harrow.cli import exit_code


def end_at_once_when_interrupted() -> None:
    """Let an interrupt end the process silently, because there is nothing to report or save yet."""
    # A shell that starts harrow in the background may make it ignore interrupts.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)


def _end(_signal: int, _frame: FrameType | None) -> NoReturn:
    os._exit(exit_code.INTERRUPTED)


class Interrupts:
    """A context in which an interrupt raises `KeyboardInterrupt`, except in a `shielded` block.

    In a shielded block, an interrupt waits for the end of the block, unless the user presses Ctrl-C
    twice. An exception that is raised at an arbitrary moment can get lost in a callback of the
    garbage collector or of a library. So an interrupt is raised again at the end of the next
    shielded block, or by `check`.
    """

    def __init__(self) -> None:
        self._shields = 0
        self._is_pending = False
        self._is_installed = False
        self._former_handlers: dict[signal.Signals, Any] = {}

    def handle_also(self, *signals: signal.Signals) -> None:
        """Treat other signals that end a process as interrupts, to undo or save something first.

        This includes SIGINT in a background process. The shell makes background processes ignore
        SIGINT, but a process that has started brokers must stop them.
        """
        for number in (signal.SIGINT, *signals):
            # A process that should outlive its terminal (nohup) has to keep ignoring some signals.
            is_ignored = signal.getsignal(number) is signal.SIG_IGN
            if is_ignored == (number == signal.SIGINT):
                self._former_handlers[number] = signal.signal(number, self._handle)

    def __enter__(self) -> Self:
        if signal.getsignal(signal.SIGINT) in (signal.default_int_handler, _end):
            signal.signal(signal.SIGINT, self._handle)
            self._is_installed = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._is_installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self._is_installed = False
        for number, handler in self._former_handlers.items():
            signal.signal(number, handler)
        self._former_handlers.clear()

    @contextmanager
    def shielded(self) -> Iterator[None]:
        """Delay interrupts until the end of the block."""
        with self.deferred():
            yield
        if not self._shields:
            self.check()

    @contextmanager
    def deferred(self) -> Iterator[None]:
        """Delay interrupts beyond the block. Code in the block calls `is_pending` and stops."""
        self._shields += 1
        try:
            yield
        finally:
            self._shields -= 1

    def is_pending(self) -> bool:
        return self._is_pending

    def check(self) -> None:
        """Raise an interrupt that is pending or was lost, even in a shielded block."""
        if self._is_pending:
            raise KeyboardInterrupt

    def defer_to_the_end(self) -> None:
        """Delay interrupts from now on: all runs have finished, and the results must be written."""
        self._shields += 1

    def _handle(self, _signal: int, _frame: FrameType | None) -> None:
        again, self._is_pending = self._is_pending, True
        if again or not self._shields:
            raise KeyboardInterrupt
