"""Threads that end with an exception: the run says so and ends, in place of a traceback among its output."""

import threading
import traceback
from pathlib import Path
from typing import Self

from harrow.live_cluster.errors import LiveError


class ThreadFailedError(LiveError):
    """A thread that watches brokers or clients has ended; the message says by what."""


class ThreadFailures:
    """Takes the exceptions that end threads while this context is open; `check` raises the first in the run's own thread.

    A run without its watches would go on, and be judged by what it never saw.
    """

    def __init__(self) -> None:
        self._first: str | None = None

    def __enter__(self) -> Self:
        self._before = threading.excepthook
        threading.excepthook = self._note
        return self

    def __exit__(self, *_: object) -> None:
        threading.excepthook = self._before

    def check(self) -> None:
        """See whether all threads go on.

        Raises:
            ThreadFailedError: one has ended with an exception.

        """
        if self._first is not None:
            raise ThreadFailedError(self._first)

    def _note(self, ended: threading.ExceptHookArgs) -> None:
        if self._first is not None or issubclass(ended.exc_type, SystemExit):
            return
        name = "of harrow's" if ended.thread is None else f"`{ended.thread.name}`"
        stack = traceback.extract_tb(ended.exc_traceback)
        place = f" ({Path(stack[-1].filename).name}:{stack[-1].lineno})" if stack else ""
        said = traceback.format_exception_only(ended.exc_type, ended.exc_value)[-1].strip()
        self._first = f"the thread {name} failed: {said}{place}"
