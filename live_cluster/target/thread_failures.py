"""Ends the run with a message if one of its threads fails, instead of printing a traceback."""

import threading
import traceback
from pathlib import Path
from typing import Self

from harrow.live_cluster.errors import LiveError


class ThreadFailedError(LiveError):
    """A thread that watches brokers or clients has failed; the message has its exception."""


class ThreadFailures:
    """Collects exceptions of threads; `check` raises the first one in the run's own thread.

    Otherwise a run would continue without its watches, and incomplete evidence would be judged.
    """

    def __init__(self) -> None:
        self._first: str | None = None

    def __enter__(self) -> Self:
        self._previous_hook = threading.excepthook
        threading.excepthook = self._record
        return self

    def __exit__(self, *_: object) -> None:
        threading.excepthook = self._previous_hook

    def check(self) -> None:
        """Raise `ThreadFailedError` if a thread has ended with an exception."""
        if self._first is not None:
            raise ThreadFailedError(self._first)

    def _record(self, failure: threading.ExceptHookArgs) -> None:
        if self._first is not None or issubclass(failure.exc_type, SystemExit):
            return
        name = "without a name" if failure.thread is None else f"`{failure.thread.name}`"
        stack = traceback.extract_tb(failure.exc_traceback)
        place = f" ({Path(stack[-1].filename).name}:{stack[-1].lineno})" if stack else ""
        error = traceback.format_exception_only(failure.exc_type, failure.exc_value)[-1].strip()
        self._first = f"the thread {name} failed: {error}{place}"
