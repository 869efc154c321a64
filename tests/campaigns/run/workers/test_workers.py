"""Code that uses results one by one gets the same with any number of processes."""

import multiprocessing
import pickle
import threading
from contextlib import closing
from itertools import islice

import pytest

from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.loader import load_campaign
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.proof import proven
from harrow.campaigns.run.runner import run_plan
from harrow.campaigns.run.workers import worker_pool, workers
from harrow.campaigns.run.workers.workers import Workers
from harrow.campaigns.search.shrink import Shrinker, Shrunk
from harrow.campaigns.search.shrunk_campaign import shrunk_text
from tests.campaigns.run.eventful_plan import eventful_plan

PLAN = eventful_plan(seconds=1)
FAILS = 5
"""The seed whose run raises an error."""


@pytest.fixture(autouse=True)
def _processes_start_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_ALONE_S", 0.0)


def run_or_fail(plan: Plan, seed: int, processes: Workers) -> str:
    if seed == FAILS:
        raise ValueError("this run fails")
    return run_plan(plan, seed, check=processes.check).trace_digest


def digests(count: int, last: int) -> list[str]:
    """Return the results of seeds in order, up to the *last* that is needed."""
    collected: list[str] = []
    with Workers(count) as processes:
        runs = processes.ahead(run_or_fail, range(20), lambda seed: (PLAN, seed))
        with closing(runs):
            for seed, run in runs:
                assert run is not None
                try:
                    collected.append(run.result())
                except ValueError as error:
                    collected.append(str(error))
                if seed == last:
                    break
    return collected


def test_an_error_is_raised_in_its_place_and_not_if_its_run_is_dropped() -> None:
    alone = digests(1, last=7)
    assert [place for place, text in enumerate(alone) if text == "this run fails"] == [FAILS]
    assert digests(3, last=7) == alone
    assert digests(3, last=FAILS - 1) == alone[:FAILS]


def wait_if_later(plan: Plan, seed: int, processes: Workers) -> int:
    if seed > 1:
        threading.Event().wait()
    return seed


@pytest.mark.parametrize("attempt", range(3), ids="attempt {}".format)
def test_workers_that_die_after_runs_were_dropped_leave_no_thread(attempt: int) -> None:
    # It depends on the moment whether a mistake shows, so there are several attempts.
    others, before = set(multiprocessing.active_children()), set(threading.enumerate())
    with Workers(2) as processes:
        with closing(processes.ahead(wait_if_later, range(20), lambda seed: (PLAN, seed))) as runs:
            for _, run in islice(runs, 2):
                assert run is not None
                run.result()
        for worker in set(multiprocessing.active_children()) - others:
            worker.kill()
        for thread in set(threading.enumerate()) - before:
            if not thread.daemon:  # the thread that manages the workers
                thread.join()
    assert set(threading.enumerate()) == before


def test_only_the_next_run_is_taken_before_processes_may_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_ALONE_S", float("inf"))
    monkeypatch.setattr(worker_pool, "worker_pool", None)
    taken: list[int] = []

    def run_of(seed: int) -> tuple[Plan, int]:
        taken.append(seed)
        return PLAN, seed

    runs = Workers(8).ahead(run_or_fail, range(20), run_of)
    next(runs)
    assert taken == [0]


def test_a_single_run_starts_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_pool, "worker_pool", None)
    ((_, run),) = Workers(8).ahead(run_or_fail, [0], lambda seed: (PLAN, seed))
    assert run is not None
    assert run.result() == run_plan(PLAN, 0).trace_digest


def test_a_search_finds_the_same_on_any_number_of_workers() -> None:
    before = set(threading.enumerate())
    plan = load_campaign(resolve("acks-1-leader-crash")[0]).plans[0]
    searches = []
    for count in (1, 3):
        sizes: list[tuple[int, int]] = []

        def on_run(_: int, best: Shrunk, sizes: list[tuple[int, int]] = sizes) -> None:
            sizes.append(best.size())

        with Workers(count) as processes:
            shrinker = Shrinker(plan, 0, names=["lost-write"], on_run=on_run, workers=processes)
            shrinker.run()
            searches.append((shrunk_text(shrinker, "harrow run"), shrinker.runs, sizes))
    assert searches[0] == searches[1]
    assert searches[0][1] > 20
    assert set(threading.enumerate()) == before


@pytest.mark.parametrize("runs_max", [1, 2, 15])
def test_a_budget_ends_a_search_at_the_same_run_on_any_number_of_workers(runs_max: int) -> None:
    plan = load_campaign(resolve("acks-1-leader-crash")[0]).plans[0]
    texts = []
    for count in (1, 3):
        with Workers(count) as processes:
            shrinker = Shrinker(plan, 0, names=["lost-write"], runs_max=runs_max, workers=processes)
            shrinker.run()
            texts.append(shrunk_text(shrinker, "harrow run"))
            assert shrinker.runs == runs_max
    assert texts[0] == texts[1]


@pytest.mark.parametrize("name", ["acks-1-leader-crash", "power-loss", "loss-by-hw-truncation"])
def test_the_same_remedies_are_tried_on_any_number_of_workers(name: str) -> None:
    result = run_plan(load_campaign(resolve(name)[0]).plans[0], 0)
    with Workers(3) as processes:
        assert proven(result, processes).verdict == proven(result).verdict
    findings = [each for rule in proven(result).verdict.rules.values() for each in rule.findings]
    assert any(way.trial is not None for each in findings for way in each.prevented_by)


@pytest.mark.parametrize("name", ["exactly-once", "cleaned-again", "rolling-restart", "swarm-disks"])
def test_a_result_passes_between_processes(name: str) -> None:
    """Compiled classes can only be pickled if they say how."""
    result = run_plan(load_campaign(resolve(name)[0]).plans[0], 0)
    again = pickle.loads(pickle.dumps(result))
    assert repr(again.evidence.replicas) == repr(result.evidence.replicas)
    assert again.levels == result.levels
    assert (again.trace_digest, again.verdict) == (result.trace_digest, result.verdict)
