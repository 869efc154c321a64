"""Runs on all cores give the results of one core, in the same order."""

import threading
import time
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.workers import worker_pool, workers
from harrow.campaigns.run.workers.parallel_runs import run_all, timed_run
from harrow.campaigns.run.workers.workers import RunOne, Workers
from tests.campaigns.run.eventful_plan import eventful_plan

PLAN = eventful_plan(seconds=3)
RUNS = [(PLAN, seed) for seed in range(12)]


def digests(count: int) -> list[tuple[int, str]]:
    return [(result.seed, result.trace_digest) for result in run_all(RUNS, Workers(count))]


def test_several_processes_yield_the_same_results_in_the_same_order_as_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(workers, "_ALONE_S", 0.0)
    alone = digests(1)
    assert digests(3) == alone
    assert [seed for seed, _ in alone] == list(range(12))


def test_short_runs_start_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_ALONE_S", float("inf"))
    monkeypatch.setattr(worker_pool, "worker_pool", None)
    assert len(digests(3)) == len(RUNS)


class DyingPool:
    """A pool whose worker dies at one of its runs."""

    def __init__(self, dies_at: int, *, is_broken_at_submit: bool) -> None:
        self.dies_at = dies_at
        self.is_broken_at_submit = is_broken_at_submit

    def submit(
        self, _: object, run_one: RunOne[RunResult], plan: Plan, seed: int, *_rest: object
    ) -> Future[RunResult]:
        future: Future[RunResult] = Future()
        if seed == self.dies_at:
            if self.is_broken_at_submit:
                raise BrokenProcessPool
            future.set_exception(BrokenProcessPool())
        else:
            future.set_result(run_one(plan, seed, Workers()))
        return future

    def shutdown(self, *, wait: bool, cancel_futures: bool) -> None:
        pass


@pytest.mark.parametrize("dies_at", [1, 5, 11])
@pytest.mark.parametrize("is_broken_at_submit", [False, True])
def test_unfinished_runs_of_a_dead_worker_run_in_this_process(
    monkeypatch: pytest.MonkeyPatch, dies_at: int, *, is_broken_at_submit: bool
) -> None:
    monkeypatch.setattr(workers, "_ALONE_S", 0.0)
    monkeypatch.setattr(
        worker_pool, "worker_pool", lambda *_: DyingPool(dies_at, is_broken_at_submit=is_broken_at_submit)
    )
    losses: list[None] = []
    results = run_all(RUNS, Workers(2, on_lost=lambda: losses.append(None)))
    assert [result.seed for result in results] == list(range(12))
    assert len(losses) == 1


def test_no_worker_thread_remains_when_python_exits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_ALONE_S", 0.0)
    before = set(threading.enumerate())
    results = run_all(RUNS, Workers(2))
    next(results)
    results.close()
    assert set(threading.enumerate()) == before


def test_a_result_has_the_wall_time_of_its_run() -> None:
    assert timed_run(PLAN, 0, Workers()).wall_ms > 0


WAITS_IN_VAIN = """
cluster: {brokers: 1, topics: [{name: t}]}
workload: {producers: [{name: p}]}
script: [{do: {send: m0}}, {when: {acked: never}}]
limits: {script: 24h}
"""


@pytest.mark.parametrize("text", [WAITS_IN_VAIN, "cluster: {brokers: 3}\nworkload: {duration: 24h}\n"])
def test_a_run_stops_when_its_time_is_over(text: str) -> None:
    plan = load_text(f"name: long\n{text}", "long.yaml").plans[0]
    (result,) = run_all([(plan, 0)], Workers(end_s=time.monotonic()))
    assert result.verdict.status == "inconclusive"
    assert result.given_up == "the run was given up after its time was over"
    assert result.simulated_us < 60_000_000
