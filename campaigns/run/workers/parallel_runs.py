"""Executes many runs on all cores of this machine, and returns their results in order."""

import time
from collections.abc import Generator, Iterable

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.proof import proven
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.campaigns.run.workers.workers import Run, Workers, each_by
from harrow.cluster_model.lazy_dataclass import replace


def run_all(runs: Iterable[Run], workers: Workers) -> Generator[RunResult]:
    """Yield the result of each run, with trials of the remedies for its findings (`timed_run`)."""
    return each_by(timed_run, runs, workers)


def tried_run(plan: Plan, seed: int, workers: Workers) -> RunResult | str:
    """Run a plan. If harrow itself fails, return the error as text, so that other runs continue."""
    try:
        return run_plan(plan, seed, check=workers.check)
    except Exception as error:  # noqa: BLE001 - returned as text, so that other runs go on
        return f"{type(error).__name__}: {error}"


def timed_run(plan: Plan, seed: int, workers: Workers) -> RunResult:
    """Run a plan, try remedies for its findings, and measure the time of the run."""
    started_s = time.monotonic()
    result = run_plan(plan, seed, check=workers.check)
    wall_ms = round((time.monotonic() - started_s) * 1_000)
    return replace(proven(result, workers), wall_ms=wall_ms)
