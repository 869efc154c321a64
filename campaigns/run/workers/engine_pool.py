"""Lets an engine such as a Spark cluster execute the runs of a search.

An engine executes several runs as one job. So while its jobs are under way, further runs wait, and
the next job takes as many of them as the engine can execute at once.
"""

import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import BrokenExecutor, Future
from typing import Any, Final, Protocol, TypeVar

from harrow.campaigns.run.workers.workers import Run, RunOne

T = TypeVar("T")
_JOBS: Final = 2
"""How many jobs are under way at once, so that no worker waits for the end of a job."""


class RunEngine(Protocol):
    """Executes runs on *workers* workers. Several threads call `results` at the same time."""

    workers: int

    def results(self, run_one: RunOne[T], runs: Sequence[Run]) -> list[T]:
        """Execute runs at once, and return what *run_one* returns for each."""

    def cancel(self) -> None:
        """Cancel all jobs. Their `results` may raise any error."""


class EnginePool:
    """A pool of runs (`harrow.campaigns.run.workers.workers.RunPool`) that an engine executes.

    If the engine loses a job, the futures of its runs raise `BrokenExecutor`.
    """

    def __init__(self, engine: RunEngine) -> None:
        self._engine = engine
        self._waiting: deque[tuple[int, RunOne[Any], Run, Future[Any]]] = deque()
        self._changed = threading.Condition()
        self._is_closed = False
        self._threads = [threading.Thread(target=self._execute_jobs, daemon=True) for _ in range(_JOBS)]
        for thread in self._threads:
            thread.start()

    def submit(self, run_one: RunOne[T], run: Run, _end_s: float, search: int) -> Future[T]:
        future: Future[T] = Future()
        with self._changed:
            if self._is_closed:
                raise BrokenExecutor("the engine is closed")
            self._waiting.append((search, run_one, run, future))
            self._changed.notify()
        return future

    def drop(self, search: int) -> None:
        with self._changed:
            self._waiting = deque(each for each in self._waiting if each[0] != search)

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._waiting.clear()
            self._changed.notify_all()
        self._engine.cancel()
        for thread in self._threads:
            thread.join()

    def _execute_jobs(self) -> None:
        while job := self._next_job():
            _, run_one, _, _ = job[0]
            try:
                results = self._engine.results(run_one, [run for _, _, run, _ in job])
            except Exception as error:  # noqa: BLE001 - each engine has errors of its own
                for _, _, _, future in job:
                    future.set_exception(BrokenExecutor(str(error)))
            else:
                for (_, _, _, future), result in zip(job, results, strict=True):
                    future.set_result(result)

    def _next_job(self) -> list[tuple[int, RunOne[Any], Run, Future[Any]]]:
        """Return runs of one search, as many as the engine has workers; none if it is closed."""
        with self._changed:
            while not self._waiting and not self._is_closed:
                self._changed.wait()
            if self._is_closed:
                return []
            job = [self._waiting.popleft()]
            while self._waiting and self._waiting[0][0] == job[0][0] and len(job) < self._engine.workers:
                job.append(self._waiting.popleft())
            return job
