"""A sweep is divided into tasks and chunks."""

from dataclasses import replace
from typing import Any, Final

import pytest

from harrow.campaigns.sweep.chunk import (
    Chunk,
    Planner,
    RunCosts,
    Task,
    chunks_in_flight,
    halves,
    uncovered_ranges,
)
from harrow.campaigns.sweep.definition import define
from harrow.campaigns.sweep.repeats import Repeats
from harrow.campaigns.sweep.task_result import is_sampled
from tests.campaigns.sweep.sweep_campaigns import acks, campaign, definition


def planner(
    seeds: int, run_s: float, *, slowdown: float = 1.0, workers: int = 2, is_measured: bool = True
) -> Planner:
    cells = definition(1, varies=acks("1", "all")).cells
    costs = RunCosts(run_s)
    if is_measured:
        for cell in range(len(cells)):
            costs.measure(cell, run_s, slowdown * run_s)
    return Planner(cells, workers, costs, [(cell, range(seeds)) for cell in range(len(cells))])


def all_chunks(sweep: Planner) -> list[Chunk]:
    chunks = []
    while (chunk := sweep.next_chunk()) is not None:
        chunks.append(chunk)
    return chunks


def keys(chunks: list[Chunk]) -> list[tuple[int, int]]:
    return [(task.cell, seed) for chunk in chunks for task in chunk.tasks for seed in task.seeds]


@pytest.mark.parametrize("run_s", [0.0, 0.002, 0.05, 3.0])
def test_every_run_is_in_one_chunk(run_s: float) -> None:
    seed_keys = keys(all_chunks(planner(1_000, run_s)))
    assert sorted(seed_keys) == [(cell, seed) for cell in (0, 1) for seed in range(1_000)]


def test_a_task_is_at_least_a_second_of_work_and_at_most_some() -> None:
    sweep = planner(100_000, 0.01)
    sizes = [len(task.seeds) for chunk in all_chunks(sweep) for task in chunk.tasks]
    assert max(sizes) == 500
    ends_of_cells = 2
    assert sum(size < 100 for size in sizes) <= ends_of_cells


def test_tasks_become_smaller_towards_the_end() -> None:
    sizes = [len(chunk.tasks[0].seeds) for chunk in all_chunks(planner(2_000, 0.02))]
    assert sizes[0] > sizes[-2]


def test_tasks_do_not_become_smaller_on_a_busy_machine() -> None:
    assert all_chunks(planner(10_000, 0.01, slowdown=20.0)) == all_chunks(planner(10_000, 0.01))


def test_the_slowdown_of_a_busy_machine_is_measured() -> None:
    costs = RunCosts()
    for _ in range(50):
        costs.measure(0, 0.01, 0.2)
    assert costs.slowdown == pytest.approx(20.0)
    assert costs.of(0) == pytest.approx(0.01)


def test_tasks_are_small_until_a_run_is_measured() -> None:
    chunk = planner(100_000, 0.01, is_measured=False).next_chunk()
    assert chunk is not None
    assert {len(task.seeds) for task in chunk.tasks} == {100}


def test_a_chunk_keeps_every_worker_busy_and_has_a_bounded_number_of_rows() -> None:
    chunk = planner(10_000_000, 0.0001, workers=1_000).next_chunk()
    assert chunk is not None
    assert chunk.rows() <= 50_000
    small = planner(10_000, 0.05, workers=4).next_chunk()
    assert small is not None
    assert len(small.tasks) == 8


def test_a_chunk_belongs_to_one_campaign() -> None:
    other = campaign("name: other\ncluster: {brokers: 1, topics: [{name: t}]}")
    cells = define([(campaign(), "small.yaml"), (other, "other.yaml")], range(3)).cells
    sweep = Planner(cells, 2, RunCosts(0.01), [(0, range(3)), (1, range(3))])
    assert [chunk.campaign for chunk in all_chunks(sweep)] == ["small", "other"]


def test_enough_chunks_are_in_flight_to_keep_every_worker_busy() -> None:
    assert chunks_in_flight(2) == 2
    assert chunks_in_flight(1_000, rows_per_task=5_000) == 16


def chunk(*tasks: Task) -> Chunk:
    return Chunk(tasks=tasks, campaign="small")


def test_a_chunk_is_halved_first_by_tasks_and_then_by_seeds() -> None:
    two = chunk(Task(cell=0, seeds=range(4)), Task(cell=1, seeds=range(4)))
    assert [half.tasks for half in halves(two)] == [(task,) for task in two.tasks]
    assert [half.tasks[0].seeds for half in halves(chunk(Task(cell=0, seeds=range(5))))] == [
        range(2),
        range(2, 5),
    ]
    assert halves(chunk(Task(cell=0, seeds=range(7, 8)))) == ()


@pytest.mark.parametrize(
    ("done", "left"),
    [
        ([], [range(2, 10)]),
        ([range(2, 10)], []),
        ([range(4, 6)], [range(2, 4), range(6, 10)]),
        ([range(8, 10), range(2, 3)], [range(3, 8)]),
        ([range(12)], []),
        ([range(20, 30)], [range(2, 10)]),
        ([range(4), range(3, 5)], [range(5, 10)]),
        ([range(2, 9), range(3, 5)], [range(9, 10)]),
    ],
)
def test_seeds_without_finished_ranges_are_the_gaps(done: list[range], left: list[range]) -> None:
    remaining: Any = uncovered_ranges(range(2, 10), done)
    assert remaining == left


_RUNS: Final = 900
"""Enough seeds that a few of them are sampled."""


def repeats_of_sampled_runs(worker: str) -> tuple[Repeats, list[tuple[int, int]]]:
    """Return the repeats that a cell owes after *worker* ran its sampled seeds, and their keys."""
    cells = definition(1).cells
    owed = Repeats(cells, 1)
    sampled = [seed for seed in range(_RUNS) if is_sampled(cells[0], seed)]
    owed.sample(0, [(seed, "d") for seed in sampled], worker)
    return owed, [(0, seed) for seed in sampled]


def test_a_repeat_is_left_to_another_worker_if_there_may_be_another() -> None:
    owed, sampled = repeats_of_sampled_runs("w")
    assert owed.waiting() == len(sampled) > 2
    assert owed.next_chunk(last=False) is None
    excluded = []
    while (repeated := owed.next_chunk(last=True)) is not None:
        assert sorted(keys([repeated])) == sampled
        excluded.append({worker for task in repeated.tasks for worker in task.not_on})
        assert owed.compare(repeated, []) == []
    assert excluded == [{"w"}] * 5 + [{""}]


def test_the_same_runs_are_repeated_on_any_machine() -> None:
    cell = replace(definition(1).cells[0], digest="0123456789abcdef")
    assert [seed for seed in range(250) if is_sampled(cell, seed)] == [16, 96, 230, 233]
