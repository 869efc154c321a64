"""An engine, such as Spark, executes the runs of a search with the same results as one process."""

import threading
from collections.abc import Sequence
from typing import TypeVar

from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.loader import load_campaign
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.workers.engine_pool import EnginePool
from harrow.campaigns.run.workers.workers import Run, RunOne, Workers, each_by

T = TypeVar("T")
PLAN = load_campaign(resolve("ack-lost")[0]).plans[0]
RUNS = [(PLAN, seed) for seed in range(12)]


def seed_of(_plan: Plan, seed: int, _workers: Workers) -> int:
    return seed


class Engine:
    """An engine of this process. It breaks when it is given the seed *breaks_at*."""

    workers = 3

    def __init__(self, breaks_at: int = -1) -> None:
        self.breaks_at = breaks_at
        self.jobs: list[list[int]] = []
        self.may_run = threading.Event()
        self.may_run.set()

    def results(self, run_one: RunOne[T], runs: Sequence[Run]) -> list[T]:
        self.jobs.append([seed for _, seed in runs])
        self.may_run.wait()
        if any(seed == self.breaks_at for _, seed in runs):
            raise ValueError("lost")
        return [run_one(*run, Workers()) for run in runs]

    def cancel(self) -> None:
        self.may_run.set()


def on(engine: Engine, losses: list[None]) -> Workers:
    return Workers(engine.workers, pool=EnginePool(engine), on_lost=lambda: losses.append(None))


def test_results_come_in_the_order_of_the_runs_and_no_thread_remains() -> None:
    before = set(threading.enumerate())
    engine, losses = Engine(), list[None]()
    assert list(each_by(seed_of, RUNS, on(engine, losses))) == list(range(12))
    assert sorted(seed for job in engine.jobs for seed in job) == list(range(12))
    assert not losses
    assert set(threading.enumerate()) == before


def test_an_engine_is_given_as_many_runs_at_once_as_it_has_workers() -> None:
    engine = Engine()
    list(each_by(seed_of, RUNS, on(engine, [])))
    assert all(len(job) <= engine.workers for job in engine.jobs)


def test_if_the_engine_is_lost_the_remaining_runs_happen_in_this_process() -> None:
    losses = list[None]()
    assert list(each_by(seed_of, RUNS, on(Engine(breaks_at=5), losses))) == list(range(12))
    assert len(losses) == 1


def test_a_search_that_ends_leaves_its_waiting_runs_out() -> None:
    engine = Engine()
    engine.may_run.clear()
    pool = EnginePool(engine)
    for run in RUNS:
        pool.submit(seed_of, run, float("inf"), 1)
    pool.drop(1)
    other = pool.submit(seed_of, (PLAN, 100), float("inf"), 2)
    engine.may_run.set()
    assert other.result() == 100
    pool.close()
    # Two jobs may have been under way.
    assert len([seed for job in engine.jobs for seed in job if seed != 100]) <= 2 * engine.workers
