"""What one worker is given to do: seeds of one cell, at least about a second of work."""

import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from campaigns.sweep.cell import Cell
from campaigns.sweep.row import Row, run_row


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Seeds of a cell (its number in the sweep), to be run one after the other in one process.

    With ``not_on`` the task repeats runs: a worker that a seed names there leaves that seed out,
    for it is the one that ran it first.
    """

    cell: int
    seeds: Sequence[int]
    not_on: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkDone:
    """A row, and the worker that ran it."""

    row: Row
    worker: str


def this_worker() -> str:
    """Return the name of this process among all workers."""
    return f"{socket.gethostname()}:{os.getpid()}"


def run_task(cells: Mapping[int, Cell], task: Task) -> Iterator[WorkDone]:
    """Run a task's seeds; *cells* are by their number in the sweep."""
    worker = this_worker()
    cell = cells[task.cell]
    for place, seed in enumerate(task.seeds):
        if not task.not_on or task.not_on[place] != worker:
            yield WorkDone(row=run_row(cell, seed), worker=worker)
