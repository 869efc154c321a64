"""Executes runs on all cores of this machine, for code that uses their results one by one.

For example, a search decides after each result which run comes next. It lists the runs that come
next if no result changes its course (`Workers.ahead`), and other processes begin them. If a result
does change its course, the runs that it no longer needs are dropped. So the search uses the same
results in the same order with any number of processes.
"""

import gc
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, Self, TypeVar

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.runner import RunStopped

if TYPE_CHECKING:
    from concurrent.futures import Future

Item = TypeVar("Item")
T = TypeVar("T")

Run = tuple[Plan, int]
"""A plan and a seed."""

RunOne = Callable[[Plan, int, "Workers"], T]
"""Executes a run. It calls `Workers.check` from time to time, and may submit more runs."""

_ALONE_S: Final = 1.0
"""How much processor time this process uses before it starts workers."""
_AHEAD: Final = 4
"""How many runs are queued for each worker. More would keep more results in memory."""
_SEARCHES: Final = 64
"""How many searches the workers can tell apart."""


class RunPool(Protocol):
    """Executes runs in other processes."""

    def submit(self, run_one: RunOne[T], run: Run, end_s: float, search: int) -> "Future[T]":
        """Submit a run of a search. It is stopped at *end_s*, by the clock of this machine."""

    def drop(self, search: int) -> None:
        """Leave out runs of a search that are not finished: nobody needs their results."""

    def close(self) -> None:
        """End the processes, or what this pool has them do."""


class Workers:
    """At most *count* worker processes. They start when this process has used a core for a second.

    With a *pool*, the runs happen there from the beginning.

    Processes take a second to start and to import harrow, and most commands end before that. With a
    *count* of 1 all runs happen in this process. A run that is not over at *end_s*, by the clock of
    `time.monotonic`, is stopped then.

    A result does not depend on the process that made it. If a worker dies, perhaps for lack of
    memory, the remaining runs happen in this process, and *on_lost* is called. In a worker,
    *is_dropped* returns whether the result of its current run is no longer needed.
    """

    def __init__(
        self,
        count: int = 1,
        *,
        pool: RunPool | None = None,
        end_s: float = float("inf"),
        is_dropped: Callable[[], bool] = lambda: False,
        on_lost: Callable[[], None] = lambda: None,
    ) -> None:
        self._count = count
        self._on_lost = on_lost
        self._end_s = end_s
        self._is_dropped = is_dropped
        self._started_cpu_s = time.process_time()
        self._pool = pool
        self._searches = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def check(self) -> None:
        """Raise `RunStopped` if the time of the run is over, or its result is no longer needed."""
        if time.monotonic() >= self._end_s:
            raise RunStopped("its time was over")
        if self._is_dropped():
            raise RunStopped("its result was dropped")

    def ahead(
        self, run_one: RunOne[T], items: Iterable[Item], run_of: Callable[[Item], Run | None]
    ) -> Generator[tuple[Item, "RunAhead[T] | None"]]:
        """Yield each item with its run, if it has one, while workers begin the runs of later items.

        Closing the returned generator drops the runs of later items.
        """
        waiting = iter(items)
        begun: deque[tuple[Item, RunAhead[T] | None]] = deque()
        self._searches += 1
        search = self._searches
        try:
            while True:
                while not begun or (self._is_parallel() and len(begun) < self._count * _AHEAD):
                    try:
                        item = next(waiting)
                    except StopIteration:
                        break
                    run = run_of(item)
                    future = None if run is None else self._begin(run_one, run, search, is_next=not begun)
                    begun.append((item, None if run is None else RunAhead(self, run_one, run, future)))
                if not begun:
                    return
                yield begun.popleft()
        finally:
            if self._pool is not None:
                self._pool.drop(search)

    def continue_alone(self) -> None:
        """Continue without workers after one has died."""
        if self._pool is not None:
            self.close()
            self._on_lost()

    def close(self) -> None:
        """Kill the workers. All later runs happen in this process."""
        self._count = 1
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    def _is_parallel(self) -> bool:
        if self._pool is not None:
            return True
        return self._count > 1 and time.process_time() - self._started_cpu_s >= _ALONE_S

    def _begin(self, run_one: RunOne[T], run: Run, search: int, *, is_next: bool) -> "Future[T] | None":
        """Submit a run to the workers; return None if it has to happen in this process.

        If the workers have to be started first, the run that *is_next* happens in this process.
        """
        if not self._is_parallel() or (self._pool is None and is_next):
            return None
        # Most commands never need the modules that make processes.
        from harrow.campaigns.run.workers.worker_pool import (  # noqa: PLC0415 - see above
            WorkerLostError,
            detect_lost_workers,
        )

        if self._pool is None:
            self._pool = _ProcessPool(_module(run_one), self._count)
        try:
            with detect_lost_workers():
                return self._pool.submit(run_one, run, self._end_s, search)
        except WorkerLostError:
            self.continue_alone()
            return None


class RunAhead(Generic[T]):
    """A run that another process may have begun."""

    def __init__(self, workers: Workers, run_one: RunOne[T], run: Run, future: "Future[T] | None") -> None:
        self.plan, self.seed = run
        self._workers = workers
        self._run_one = run_one
        self._future = future

    def result(self) -> T:
        """Return the result. The run happens in this process if no worker has been given it."""
        if self._future is not None:
            from harrow.campaigns.run.workers.worker_pool import (  # noqa: PLC0415 - loaded already
                WorkerLostError,
                detect_lost_workers,
            )

            try:
                with detect_lost_workers():
                    return self._future.result()
            except WorkerLostError:
                # If the run itself raised such an error, it raises it again here.
                result = self._run_one(self.plan, self.seed, self._workers)
                self._workers.continue_alone()
                return result
        return self._run_one(self.plan, self.seed, self._workers)


def each_by(run_one: RunOne[T], runs: Iterable[Run], workers: Workers) -> Generator[T]:
    """Yield what *run_one* returns for each plan and seed.

    Closing the returned generator kills the workers.
    """
    with workers:
        for _, run in workers.ahead(run_one, runs, lambda run: run):
            assert run is not None
            yield run.result()


class _ProcessPool:
    """Processes of this machine."""

    def __init__(self, module: str, count: int) -> None:
        from harrow.campaigns.run.workers.worker_pool import shared_numbers, worker_pool  # noqa: PLC0415 - see `_begin`

        self._dropped = shared_numbers(_SEARCHES)
        self._executor = worker_pool(module, count, _begin_worker, self._dropped)

    def submit(self, run_one: RunOne[T], run: Run, end_s: float, search: int) -> "Future[T]":
        return self._executor.submit(_run_in_worker, run_one, run[0], run[1], end_s, search)

    def drop(self, search: int) -> None:
        # No future is cancelled: if the pool broke later, `terminate_broken` of
        # `concurrent.futures.process` would fail on a cancelled one.
        self._dropped[search % _SEARCHES] = search

    def close(self) -> None:
        from harrow.campaigns.run.workers.worker_pool import kill  # noqa: PLC0415 - see `_begin`

        kill(self._executor)


def _module(run_one: Callable[..., Any]) -> str:
    return str((run_one.func if isinstance(run_one, partial) else run_one).__module__)


_dropped: Any = ()
"""In a worker: the numbers of the latest searches (calls of `Workers.ahead`) that have ended.
Search *n* is at index *n* modulo `_SEARCHES`."""


def _begin_worker(dropped: Any) -> None:
    global _dropped  # noqa: PLW0603 - a worker process has no object that could hold it
    _dropped = dropped
    gc.freeze()


def _run_in_worker(run_one: RunOne[Any], plan: Plan, seed: int, end_s: float, search: int) -> Any:
    def is_dropped() -> bool:
        return bool(_dropped[search % _SEARCHES] >= search)

    result = None if is_dropped() else run_one(plan, seed, Workers(end_s=end_s, is_dropped=is_dropped))
    return None if is_dropped() else result
