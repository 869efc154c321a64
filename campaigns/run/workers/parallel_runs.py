"""Executes many runs on all cores of this machine, and returns their results in order.

Worker processes take a second to start and import. Runs that finish sooner run in this process.
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
"""Runs queued for each worker. Results that finish out of order stay in memory."""


def run_all(
    runs: Iterable[tuple[Plan, int]], workers: int, end_s: float = float("inf")
) -> Generator[RunResult]:
    """Yield the result of each plan and seed, with its remedies tried (`timed_run`)."""
    return each_by(timed_run, runs, workers, end_s)


def each_by(
    run_one: Callable[[Plan, int, float], T],
    runs: Iterable[tuple[Plan, int]],
    workers: int,
    end_s: float = float("inf"),
) -> Generator[T]:
    """Yield the value of *run_one* for each plan and seed. Closing the iterator kills the workers.

    A run that is not over at *end_s*, by the clock of `time.monotonic`, ends there.

    A result does not depend on the process that made it. If a worker dies, perhaps for lack of
    memory, the remaining runs happen in this process.
    """
    waiting = iter(runs)
    started_s = time.monotonic()
    while workers == 1 or time.monotonic() - started_s < _ALONE_S:
        run = next(waiting, None)
        if run is None:
            return
        yield run_one(*run, end_s)
    # Most commands end before this and never need the modules that make processes.
    from harrow.campaigns.run.workers.worker_pool import (  # noqa: PLC0415 - see above
        WorkerLostError,
        kill,
        losses_noticed,
        worker_pool,
    )

    queued: deque[tuple[Plan, int]] = deque()
    futures: deque[Future[T]] = deque()
    pool = worker_pool(__name__, workers, gc.freeze)

    def give(count: int) -> None:
        for run in islice(waiting, count):
            queued.append(run)
            with losses_noticed():
                futures.append(pool.submit(run_one, *run, end_s))

    try:
        give(workers * _AHEAD)
        while queued:
            with losses_noticed():
                result = futures.popleft().result()
            yield result
            queued.popleft()
            give(1)
    except WorkerLostError:
        pass
    finally:
        kill(pool)
    for run in chain(queued, waiting):
        yield run_one(*run, end_s)


def tried_run(plan: Plan, seed: int, end_s: float = float("inf")) -> RunResult | str:
    """Run a plan. If harrow itself fails, return the error as text, so that other runs go on."""
    try:
        return run_plan(plan, seed, check=_until(end_s))
    except Exception as error:  # noqa: BLE001 - returned as text, so that other runs go on
        return f"{type(error).__name__}: {error}"


def timed_run(plan: Plan, seed: int, end_s: float = float("inf")) -> RunResult:
    """Run a plan until *end_s* at most, try remedies for its findings, and measure its time."""
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
