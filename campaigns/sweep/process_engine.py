"""The pool of processes: a sweep on this machine, where there is no Spark."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Final

import pyarrow as pa

from harrow.campaigns.sweep.cell import Cell
from harrow.campaigns.sweep.chunk import Chunk, Task
from harrow.campaigns.sweep.engine import ChunkLostError
from harrow.campaigns.sweep.row import run_task
from harrow.campaigns.sweep.row_table import as_batch

NAME: Final = "process"

_START: Final = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"

_cells: Mapping[int, Cell] = {}


def available_workers() -> int:
    """Return how many processes this one may keep busy."""
    allowed = getattr(os, "sched_getaffinity", None)
    return (os.cpu_count() or 1) if allowed is None else len(allowed(0))


class ProcessEngine:
    """A pool of *workers* processes; it is made anew when one of them dies."""

    def __init__(self, cells: Sequence[Cell], workers: int | None = None) -> None:
        self.name = NAME
        self.workers = available_workers() if workers is None else workers
        self._cells = dict(enumerate(cells))
        self._context = multiprocessing.get_context(_START)
        if _START == "forkserver":
            self._context.set_forkserver_preload([__name__])
        self._lock = threading.Lock()
        self._pool: ProcessPoolExecutor | None = None
        self._cancelled = False

    def run(self, chunk: Chunk) -> pa.Table:
        """Run a chunk; see `Engine`."""
        pool = self._living_pool()
        try:
            futures: list[Future[pa.RecordBatch]] = [pool.submit(_run, task) for task in chunk.tasks]
            return pa.Table.from_batches([future.result() for future in futures])
        except (BrokenProcessPool, CancelledError, RuntimeError) as error:
            # submit() raises RuntimeError once the pool is shut down; what waited then is cancelled.
            self._drop(pool)
            raise ChunkLostError("a worker process died") from error

    def cancel(self) -> None:
        """Give up what is under way."""
        self._cancelled = True
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            _kill(pool)

    def close(self) -> None:
        """End the processes."""
        self.cancel()

    def _living_pool(self) -> ProcessPoolExecutor:
        with self._lock:
            if self._cancelled:
                raise ChunkLostError("the sweep has been ended")
            if self._pool is None:
                if _START == "forkserver":
                    _start_forkserver()
                self._pool = ProcessPoolExecutor(
                    self.workers, self._context, initializer=_begin, initargs=(self._cells,)
                )
            return self._pool

    def _drop(self, pool: ProcessPoolExecutor) -> None:
        with self._lock:
            if self._pool is pool:
                self._pool = None
        _kill(pool)


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


def _kill(pool: ProcessPoolExecutor) -> None:
    processes = list((getattr(pool, "_processes", None) or {}).values())
    pool.shutdown(wait=False, cancel_futures=True)
    for process in processes:
        process.kill()


def _begin(cells: Mapping[int, Cell]) -> None:
    """Prepare a worker: the parent handles interrupts, and a worker does not outlive it."""
    global _cells  # noqa: PLW0603 - a worker process has nothing else to keep its cells in
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _cells = cells
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)


def _run(task: Task) -> pa.RecordBatch:
    return as_batch(run_task(_cells, task))
