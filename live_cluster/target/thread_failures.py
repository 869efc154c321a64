"""Threads that fail end the run with a message instead of printing a traceback."""

import threading
import traceback
from pathlib import Path
from typing import Self

from harrow.live_cluster.errors import LiveError


class ThreadFailedError(LiveError):
    """A thread that watches brokers or clients has failed; the message has its exception."""


class ThreadFailures:
    """Collects exceptions of threads; `check` raises the first one in the run's own thread.

    Without this, a run would continue without its watches and be judged by incomplete evidence.
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
        """Raise `ThreadFailedError` if a thread has ended with an exception."""
        if self._first is not None:
            raise ThreadFailedError(self._first)

    def _note(self, ended: threading.ExceptHookArgs) -> None:
        if self._first is not None or issubclass(ended.exc_type, SystemExit):
            return
        name = "of harrow's" if ended.thread is None else f"`{ended.thread.name}`"
        stack = traceback.extract_tb(ended.exc_traceback)
        place = f" ({Path(stack[-1].filename).name}:{stack[-1].lineno})" if stack else ""
        error = traceback.format_exception_only(ended.exc_type, ended.exc_value)[-1].strip()
        self._first = f"the thread {name} failed: {error}{place}"
