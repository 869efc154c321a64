"""Processes of this machine that run what they are given.

Interrupts are for their parent alone, and none of them outlives it.
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
"""What giving work to a pool, or waiting for it, raises when one of its processes is gone.

`BrokenProcessPool`, a `RuntimeError`, where a worker died. Where the process that workers are forked from died as it started one,
Python passes on that it could not read or write (`EOFError`, `OSError`). What waited in a pool that was shut down is cancelled.
"""

_WATCH_S: Final = 1.0


class WorkerLostError(Exception):
    """A process of a pool is gone."""


@contextmanager
def losses_noticed() -> Iterator[None]:
    """Give work to a pool, or wait for it, in this context.

    Raises:
        WorkerLostError: a process of the pool is gone, or the work itself failed in one of the same ways.

    """
    try:
        yield
    except _LOST as error:
        raise WorkerLostError("a worker process died") from error


def worker_pool(
    module: str, workers: int, initializer: Callable[..., None], *arguments: Any
) -> ProcessPoolExecutor:
    """Return a pool of *workers* processes that have imported *module*, and call ``initializer(*arguments)``."""
    context = multiprocessing.get_context(_START)
    if _START == "forkserver":
        context.set_forkserver_preload([module])
        _start_forkserver()
    return ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(initializer, arguments))


def _start_forkserver() -> None:
    """Start the process that workers are forked from, if there is none, deaf to interrupts from the first moment.

    It imports what the workers need before it ignores interrupts, and would die of one with a traceback. What
    is blocked stays blocked in a process that is started, and in its children.
    """
    from multiprocessing import forkserver, resource_tracker  # noqa: PLC0415 - not everywhere there are any

    resource_tracker.ensure_running()  # to start it unblocks interrupts, so it has to be there already
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        forkserver.ensure_running()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def kill(pool: ProcessPoolExecutor) -> None:
    """End the processes of a pool at once, and wait for the thread that looks after them.

    Python wakes that thread when it exits, and takes no lock for it (`_python_exit` of `concurrent.futures.process`): where the
    thread closes what it is woken by at the same moment, an `OSError` (Bad file descriptor) is printed.
    """
    # Else a thread that has read half of a result waits for the other half, of a process that is dead.
    results = getattr(pool, "_result_queue", None)
    if results is not None:
        results._writer.close()  # noqa: SLF001 - nothing public closes one end
    for process in list((getattr(pool, "_processes", None) or {}).values()):
        process.kill()
    pool.shutdown(wait=True, cancel_futures=True)


def _begin(initializer: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    initializer(*arguments)


def _end_with_parent() -> None:
    """End this process when harrow has ended, or the process that it was forked from.

    Python takes a worker for dead whose fork server died, and does not kill it.
    """
    parent, forked_from = multiprocessing.parent_process(), os.getppid()
    assert parent is not None
    while parent.is_alive() and os.getppid() == forked_from:
        parent.join(_WATCH_S)
    os._exit(1)
