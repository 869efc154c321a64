"""Executes runs in a background process while the foreground process mostly waits."""

import os
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Final, Generic, Self, TypeVar

from harrow.campaigns.language.plan import Plan

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

T = TypeVar("T")
_NICENESS: Final = 10
"""Lowers the priority of the background process, so that it does not slow down the foreground."""


def _lower_priority() -> None:
    os.nice(_NICENESS)


class RunsMeanwhile(Generic[T]):
    """Yields what *run_one* returns for each plan and seed, in order. It is a context manager.

    The background process ends with the context. If it dies earlier, the remaining runs take place
    in the foreground process.
    """

    def __init__(self, run_one: Callable[[Plan, int], T], runs: Sequence[tuple[Plan, int]]) -> None:
        self._run_one = run_one
        self._runs = runs
        self._pool: ProcessPoolExecutor | None = None
        self._futures: list[Future[T]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._pool is not None:
            from harrow.campaigns.run.workers.worker_pool import kill  # noqa: PLC0415 - not every command needs it

            kill(self._pool)

    def begin(self) -> None:
        """Start the process, unless it has started."""
        if self._pool is None:
            from harrow.campaigns.run.workers.worker_pool import worker_pool  # noqa: PLC0415 - see above

            self._pool = worker_pool(self._run_one.__module__, 1, _lower_priority)
            self._futures = [self._pool.submit(self._run_one, *run) for run in self._runs]

    def __iter__(self) -> Iterator[T]:
        from concurrent.futures.process import BrokenProcessPool  # noqa: PLC0415 - see above

        yielded = 0
        try:
            for future in self._futures:
                yield future.result()
                yielded += 1
        except BrokenProcessPool:
            pass  # The process was killed, perhaps for lack of memory.
        for run in self._runs[yielded:]:
            yield self._run_one(*run)
