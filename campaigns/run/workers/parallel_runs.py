"""Many runs, on all cores of this machine, in the order in which they were asked for.

Processes take a second to start and to import what they need, so runs that are over by then are made here.
"""

import gc
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Final, TypeVar

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.proof import proven
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import RunStopped, run_plan

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")

_ALONE_S: Final = 1.0
_AHEAD: Final = 4
"""How many runs a worker has been given: what is finished out of order is kept in memory."""


def run_all(
    runs: Iterable[tuple[Plan, int]], workers: int, end_s: float = float("inf")
) -> Generator[RunResult]:
    """Yield the result of each plan and seed, with the proofs of its findings (`timed_run`)."""
    return each_by(timed_run, runs, workers, end_s)


def each_by(
    run_one: Callable[[Plan, int, float], T],
    runs: Iterable[tuple[Plan, int]],
    workers: int,
    end_s: float = float("inf"),
) -> Generator[T]:
    """Yield what *run_one* returns for each plan and seed. Closing the iterator ends the processes at once.

    A run that is not over at *end_s*, by the clock of `time.monotonic`, ends there.

    A result is the same wherever it was made. Where a process of the pool dies, for want of memory perhaps, what is left
    is run here.
    """
    waiting = iter(runs)
    started_s = time.monotonic()
    while workers == 1 or time.monotonic() - started_s < _ALONE_S:
        run = next(waiting, None)
        if run is None:
            return
        yield run_one(*run, end_s)
    # Most commands end before this: they need none of what makes processes.
    from harrow.campaigns.run.workers.worker_pool import (  # noqa: PLC0415 - see above
        WorkerLostError,
        kill,
        losses_noticed,
        worker_pool,
    )

    given: deque[tuple[Plan, int]] = deque()
    futures: deque[Future[T]] = deque()
    pool = worker_pool(__name__, workers, gc.freeze)

    def give(count: int) -> None:
        for run in islice(waiting, count):
            given.append(run)
            with losses_noticed():
                futures.append(pool.submit(run_one, *run, end_s))

    try:
        give(workers * _AHEAD)
        while given:
            with losses_noticed():
                result = futures.popleft().result()
            yield result
            given.popleft()
            give(1)
    except WorkerLostError:
        pass
    finally:
        kill(pool)
    for run in chain(given, waiting):
        yield run_one(*run, end_s)


def tried_run(plan: Plan, seed: int, end_s: float = float("inf")) -> RunResult | str:
    """Run a plan, and return what went wrong where harrow itself fails: other runs go on."""
    try:
        return run_plan(plan, seed, check=_until(end_s))
    except Exception as error:  # noqa: BLE001 - returned as text, so that other runs go on
        return f"{type(error).__name__}: {error}"


def timed_run(plan: Plan, seed: int, end_s: float = float("inf")) -> RunResult:
    """Run a plan, up to the given end, try what would have prevented its findings, and say how long the run took."""
    check = _until(end_s)
    begun_s = time.monotonic()
    result = run_plan(plan, seed, check=check)
    wall_ms = round((time.monotonic() - begun_s) * 1_000)
    return replace(proven(result, partial(run_plan, check=check)), wall_ms=wall_ms)


def _until(end_s: float) -> Callable[[], None]:
    def check() -> None:
        if time.monotonic() >= end_s:
            raise RunStopped("its time was over")

    return check
