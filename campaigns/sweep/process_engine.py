"""A pool of processes, for sweeps on this machine without Spark."""

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Final, TypeVar

from harrow.campaigns.run.workers.available_workers import available_workers
from harrow.campaigns.run.workers.worker_pool import WorkerLostError, detect_lost_workers, kill, worker_pool
from harrow.campaigns.storage.location import Location
from harrow.campaigns.sweep.cell import Cell
from harrow.campaigns.sweep.chunk import Chunk, Task
from harrow.campaigns.sweep.engine import ChunkLostError
from harrow.campaigns.sweep.part_file import PartFile, merge
from harrow.campaigns.sweep.task_result import TaskResult, perform

NAME: Final = "process"

_Result = TypeVar("_Result")

_cells: Mapping[int, Cell] = {}


class ProcessEngine:
    """A pool of *workers* processes. If a process dies, a new pool replaces the whole pool."""

    def __init__(
        self, cells: Sequence[Cell], workers: int | None = None, folder: Location | None = None
    ) -> None:
        self.name = NAME
        self.folder = folder
        self.workers = available_workers() if workers is None else workers
        self._cells = dict(enumerate(cells))
        self._lock = threading.Lock()
        self._pool: ProcessPoolExecutor | None = None
        self._cancelled = False

    def run(self, chunk: Chunk) -> list[TaskResult]:
        return self._map(_perform, [(task, self.folder) for task in chunk.tasks])

    def merge(self, parts: Sequence[PartFile]) -> PartFile | None:
        assert self.folder is not None, "the driver merges what only it can reach"
        return self._map(merge, [(self.folder, parts)])[0]

    def _map(self, function: Callable[..., _Result], calls: Sequence[tuple[object, ...]]) -> list[_Result]:
        """Call a function in workers, once with each of some arguments.

        Raises:
            ChunkLostError: A worker died.

        """
        pool = self._living_pool()
        try:
            with detect_lost_workers():
                futures = [pool.submit(function, *arguments) for arguments in calls]
                return [future.result() for future in futures]
        except WorkerLostError as error:
            self._drop(pool)
            raise ChunkLostError(str(error)) from error

    def cancel(self) -> None:
        self._cancelled = True
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            kill(pool)

    def close(self) -> None:
        self.cancel()

    def _living_pool(self) -> ProcessPoolExecutor:
        with self._lock:
            if self._cancelled:
                raise ChunkLostError("the sweep was cancelled")
            if self._pool is None:
                self._pool = worker_pool(__name__, self.workers, _receive_cells, self._cells)
            return self._pool

    def _drop(self, pool: ProcessPoolExecutor) -> None:
        """Kill a pool, unless another thread has already begun to kill it.

        To close a file descriptor twice could close another file that has reused it.
        """
        with self._lock:
            if self._pool is not pool:
                return
            self._pool = None
        kill(pool)


def _receive_cells(cells: Mapping[int, Cell]) -> None:
    global _cells  # noqa: PLW0603 - a worker process has nothing else to keep its cells in
    _cells = cells


def _perform(task: Task, folder: Location | None) -> TaskResult:
    return perform(_cells, task, folder)
