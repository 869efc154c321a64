"""What a worker does with a task: it runs the seeds, writes their rows, and reports counts.

A worker may have only Python, pyarrow and harrow's core.
"""

import time
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, TypeVar

from harrow.campaigns.run.workers.workers import Run, RunOne, Workers
from harrow.campaigns.storage.location import Location
from harrow.campaigns.sweep.cell import Cell
from harrow.campaigns.sweep.chunk import Task
from harrow.campaigns.sweep.part_file import SWEEP, PartFile, merge, parquet_of, part_of
from harrow.campaigns.sweep.row import Row, run_task, this_worker
from harrow.campaigns.sweep.row_table import as_table
from harrow.campaigns.sweep.sweep_tally import SweepTally
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.compilation import compilation

T = TypeVar("T")

ONE_IN: Final = 50
"""One in this many runs is repeated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult:
    """The result of a task, without its rows.

    ``digests`` has seeds with the digests of their traces: all of a task that repeats runs, and the
    sampled ones of any other. ``wall_us`` is how long the runs took, and ``cpu_us`` their processor
    time. ``content`` is the file of rows if the worker could not write it, so that the driver can
    try.
    """

    cell: int
    worker: str
    digests: tuple[tuple[int, str | None], ...]
    tally: SweepTally
    wall_us: int
    cpu_us: int
    part: PartFile | None = None
    content: bytes | None = None


def is_sampled(cell: Cell, seed: int) -> bool:
    """Return whether a run is repeated.

    Its plan and seed decide, so the answer is the same on every machine.
    """
    return zlib.crc32(f"{cell.digest}:{seed}".encode()) % ONE_IN == 0


def perform(cells: Mapping[int, Cell], task: Task, folder: Location | None) -> TaskResult:
    """Run a task, and write its rows into the folder of the sweep.

    *cells* maps the number of a cell in the sweep to the cell. Without a *folder*, the result
    contains the file of rows.
    """
    begun_ns = time.process_time_ns()
    rows = list(run_task(cells, task))
    cpu_us = (time.process_time_ns() - begun_ns) // 1_000
    return result_of(cells[task.cell], task, rows, folder, cpu_us=cpu_us)


def result_of(
    cell: Cell, task: Task, rows: Sequence[Row], folder: Location | None, *, cpu_us: int = 0
) -> TaskResult:
    """Return the result of a task with these rows, and write them as `perform` does."""
    tally = SweepTally()
    part, content = None, None
    if not task.not_on:
        tally.add(rows)
        covered = range(task.seeds[0], task.seeds[-1] + 1)
        assert len(covered) == len(task.seeds), "only tasks that repeat runs have gaps between their seeds"
        part = part_of(cell.campaign, [(cell.name, covered.start, covered.stop)])
        content = parquet_of(part, as_table(rows))
        if folder is not None:
            with suppress(OSError):
                (folder / part.path).write(content)
                content = None
    return TaskResult(
        cell=task.cell,
        worker=this_worker(),
        digests=tuple(
            (row["seed"], row.get("trace_digest"))
            for row in rows
            if task.not_on or is_sampled(cell, row["seed"])
        ),
        tally=tally,
        wall_us=sum(row["wall_us"] for row in rows),
        cpu_us=cpu_us,
        part=part,
        content=content,
    )


@dataclass(frozen=True, slots=True)
class WorkerCheck:
    """How a worker runs harrow, compiled or in plain Python, and why it cannot write results."""

    core: str
    problem: str | None


def check_worker(folder: Location | None, number: int) -> WorkerCheck:
    """Check whether this worker can write into a sweep's folder, where the driver has begun."""
    problem = None
    if folder is not None:
        trial = folder / f".trial-{this_worker().replace(':', '-')}-{number}"
        try:
            trial.write(b"")
            trial.delete()
            if not (folder / SWEEP).exists():
                problem = f"{folder} is another folder there than on the driver"
        except OSError as error:
            problem = f"{error.filename or folder}: {error.strerror or error}"
    return WorkerCheck(compilation()[0], problem)


def perform_nth(
    cells: Mapping[int, Cell], tasks: Sequence[Task], folder: Location | None, number: int
) -> TaskResult:
    """Perform one of several tasks."""
    return perform(cells, tasks[number], folder)


def merge_nth(folder: Location, groups: Sequence[Sequence[PartFile]], number: int) -> PartFile | None:
    """Merge one of several groups of files."""
    return merge(folder, groups[number])


def execute_nth(run_one: RunOne[T], runs: Sequence[Run], number: int) -> T:
    """Execute one of several runs of a search."""
    return run_one(*runs[number], Workers())
