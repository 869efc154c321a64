"""Divides a sweep into tasks, and groups the tasks into chunks.

A task has seeds of one cell for one worker, and its rows become one file. The tasks of a chunk
belong to one campaign, and are submitted together. If a sweep ends before it has written the row of
a run, the next sweep into the same folder repeats the run.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from math import ceil
from typing import Final

from harrow.campaigns.sweep.cell import Cell
from harrow.cluster_model.lazy_dataclass import dataclass, replace

_TASK_MIN_S: Final = 1.0
"""A task must take long compared to its submission, which takes hundredths of a second on Spark.

Both are processor time. On a busy machine a task of some seconds does little, and its submission
takes as much processor time as ever.
"""
_TASK_MAX_S: Final = 5.0
_TASKS_EACH: Final = 8
"""Tasks that each worker should still get, so that no worker is idle for long at the end."""
_CHUNK_TASKS_EACH: Final = 2
_CHUNK_ROWS_MAX: Final = 50_000
_IN_FLIGHT_MAX: Final = 16
_COST_WEIGHT: Final = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Seeds of a cell, for one process to run one after the other. ``cell`` is the cell's number.

    A task with ``not_on`` repeats runs. ``not_on`` names, for each seed, the worker that ran the
    seed first. If that worker gets the task, it leaves the seed out.
    """

    cell: int
    seeds: Sequence[int]
    not_on: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Tasks that are submitted together. ``attempt`` counts from 1.

    If ``repeats`` is set, the chunk runs seeds a second time, only to compare their digests.
    """

    tasks: tuple[Task, ...]
    campaign: str
    attempt: int = 1
    repeats: bool = False

    def rows(self) -> int:
        return sum(len(task.seeds) for task in self.tasks)


def halves(chunk: Chunk) -> tuple[Chunk, ...]:
    """Return two chunks with half of the work each, or none if the chunk is a single run."""
    tasks = chunk.tasks
    if len(tasks) == 1:
        task = tasks[0]
        middle = len(task.seeds) // 2
        if not middle:
            return ()
        tasks = tuple(
            replace(task, seeds=task.seeds[part], not_on=task.not_on[part])
            for part in (slice(middle), slice(middle, None))
        )
    middle = len(tasks) // 2
    return tuple(replace(chunk, tasks=part, attempt=1) for part in (tasks[:middle], tasks[middle:]))


def chunks_in_flight(workers: int, rows_per_task: int = 1) -> int:
    """Return how many chunks to submit at once, so that no worker waits for the end of a chunk."""
    tasks = _tasks_of_chunk(workers, rows_per_task)
    return min(_IN_FLIGHT_MAX, ceil(_CHUNK_TASKS_EACH * workers / tasks) + 1)


def _tasks_of_chunk(workers: int, rows_per_task: int) -> int:
    return max(1, min(_CHUNK_TASKS_EACH * workers, _CHUNK_ROWS_MAX // max(1, rows_per_task)))


@dataclass(slots=True)
class RunCosts:
    """Measures the processor time of a run in seconds, by cell, as results come in.

    ``slowdown`` is how many times as long the runs take on these machines.
    """

    first_guess_s: float = 1.0
    slowdown: float = 1.0
    _by_cell: dict[int, float] = field(default_factory=dict)
    _overall: float | None = None

    def is_measured(self) -> bool:
        return self._overall is not None

    def measure(self, cell: int, run_s: float, elapsed_s: float) -> None:
        """Record the mean times of some runs of a cell."""
        self.slowdown += _COST_WEIGHT * (max(1.0, elapsed_s / max(1e-9, run_s)) - self.slowdown)
        before = self._by_cell.get(cell, run_s)
        self._by_cell[cell] = before + _COST_WEIGHT * (run_s - before)
        overall = run_s if self._overall is None else self._overall
        self._overall = overall + _COST_WEIGHT * (run_s - overall)

    def of(self, cell: int) -> float:
        """Return the expected processor time of a run of a cell."""
        measured_s = self._by_cell.get(cell, self._overall)
        return max(1e-5, self.first_guess_s if measured_s is None else measured_s)


@dataclass(slots=True)
class Planner:
    """Makes chunks of the remaining runs. Their size depends on how long runs have taken so far.

    ``missing`` has the remaining ranges of seeds, each with the number of its cell.
    """

    cells: Sequence[Cell]
    workers: int
    costs: RunCosts
    missing: list[tuple[int, range]]

    def left_s(self) -> float:
        """Return the processor time of the work that is not submitted yet."""
        return sum(len(seeds) * self.costs.of(cell) for cell, seeds in self.missing)

    def next_chunk(self) -> Chunk | None:
        """Return the next chunk, None if nothing is left."""
        if not self.missing:
            return None
        share_s = self.left_s() / (self.workers * _TASKS_EACH) if self.costs.is_measured() else 0.0
        task_s = min(_TASK_MAX_S, max(_TASK_MIN_S, share_s))
        campaign = self.cells[self.missing[0][0]].campaign
        tasks: list[Task] = []
        rows = 0
        for task in self._tasks(campaign, task_s):
            tasks.append(task)
            rows += len(task.seeds)
            if len(tasks) >= _tasks_of_chunk(self.workers, rows // len(tasks)):
                break
        return Chunk(tasks=tuple(tasks), campaign=campaign)

    def _tasks(self, campaign: str, task_s: float) -> Iterator[Task]:
        """Yield tasks of a campaign, and remove their runs from the missing ones."""
        while self.missing and self.cells[self.missing[0][0]].campaign == campaign:
            cell, seeds = self.missing[0]
            count = max(1, ceil(task_s / self.costs.of(cell)))
            if len(seeds) <= count:
                self.missing.pop(0)
            else:
                self.missing[0] = (cell, seeds[count:])
            yield Task(cell=cell, seeds=seeds[:count])


def uncovered_ranges(seeds: range, done: Iterable[range]) -> list[range]:
    """Return the parts of a range of seeds that no range in *done* covers."""
    gaps: list[range] = []
    start = seeds.start
    for other in sorted(done, key=lambda gap: gap.start):
        if other.start > start:
            gaps.append(range(start, min(other.start, seeds.stop)))
        start = max(start, other.stop)
    gaps.append(range(start, seeds.stop))
    return [gap for gap in gaps if gap]
