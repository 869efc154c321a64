"""Starts worker processes on this machine.

Workers ignore interrupts (Ctrl-C); only their parent handles them. No worker outlives its parent.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, ProcessPoolExecutor
from contextlib import contextmanager
from typing import Any, Final

_START: Final = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"

_LOST: Final = (RuntimeError, CancelledError, EOFError, OSError)
"""The errors that a pool raises when one of its processes is gone.

`BrokenProcessPool`, a `RuntimeError`: a worker died. `EOFError` or `OSError`: the fork server died
while it started a worker. `CancelledError`: the pool was shut down with work in its queue."""

_WATCH_S: Final = 1.0


class WorkerLostError(Exception):
    """A process of a pool is gone."""


@contextmanager
def detect_lost_workers() -> Iterator[None]:
    """Turn the errors of a lost process into a `WorkerLostError`.

    Submit work to a pool, or wait for it, in this context.

    Raises:
        WorkerLostError: A process of the pool is gone, or the work itself raised such an error.

    """
    try:
        yield
    except _LOST as error:
        raise WorkerLostError("a worker process died") from error


def worker_pool(
    module: str, workers: int, initializer: Callable[..., None], *arguments: Any
) -> ProcessPoolExecutor:
    """Return a pool whose processes import *module* and then call ``initializer(*arguments)``."""
    context = multiprocessing.get_context(_START)
    if _START == "forkserver":
        context.set_forkserver_preload([module])
        _start_forkserver()
    return ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(initializer, arguments))


def shared_numbers(count: int) -> Any:
    """Return an array of zeros that this process can change and its workers can read."""
    return multiprocessing.get_context(_START).RawArray("Q", count)


def _start_forkserver() -> None:
    """Start the fork server if there is none, with interrupts blocked from the first moment.

    The fork server imports the modules of the workers before it ignores interrupts. An interrupt
    during these imports would end it with a traceback. Signals that are blocked here stay blocked
    in the fork server and in its children.
    """
    from multiprocessing import forkserver, resource_tracker  # noqa: PLC0415 - some platforms have no fork server

    resource_tracker.ensure_running()  # its start would unblock interrupts, so it comes first
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def kill(pool: ProcessPoolExecutor) -> None:
    """Kill the processes of a pool, and wait for the thread that manages them.

    At exit, Python wakes that thread without a lock (`_python_exit` of
    `concurrent.futures.process`). If the thread then closes its wake-up pipe, Python prints an
    `OSError` (Bad file descriptor). The wait avoids that.
    """
    # Without this, the thread may have read half a result, and wait for the rest from a process
    # that is dead.
    results = getattr(pool, "_result_queue", None)
    if results is not None:
        results._writer.close()  # noqa: SLF001 - no public method closes one end
    for process in list((getattr(pool, "_processes", None) or {}).values()):
        process.kill()
    pool.shutdown(wait=True, cancel_futures=True)


def _begin(initializer: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    initializer(*arguments)


def _end_with_parent() -> None:
    """End this process when harrow, or the process that it was forked from, has ended.

    Python itself does not kill a worker whose fork server has died: it considers the worker dead.
    """
    parent, forked_from = multiprocessing.parent_process(), os.getppid()
    assert parent is not None
    while parent.is_alive() and os.getppid() == forked_from:
        parent.join(_WATCH_S)
    os._exit(1)
