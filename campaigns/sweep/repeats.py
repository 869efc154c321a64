"""Checks determinism by sampling: another worker repeats a run and must get the same digest."""

import itertools
import zlib
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import Final

import pyarrow as pa

from harrow.campaigns.sweep.cell import Cell
from harrow.campaigns.sweep.chunk import Chunk, Task
from harrow.campaigns.sweep.row_table import PARTITION, WORKER
from harrow.campaigns.sweep.sweep_folder import RepeatedRun
from harrow.cluster_model.lazy_dataclass import dataclass

ONE_IN: Final = 50
"""One in this many runs is repeated."""

_TRIES_MAX: Final = 6
"""The worker that ran a run first leaves its repetition to another worker.

The last of this many tries is open to every worker, because there may be no other.
"""
_BATCH: Final = 40
NOTHING: Final[Mapping[int, Collection[int]]] = MappingProxyType({})


@dataclass(slots=True, kw_only=True)
class _Sample:
    cell: int
    seed: int
    digest: str | None
    worker: str
    tries: int = 0


def is_sampled(cell: Cell, seed: int) -> bool:
    """Return whether a run is repeated.

    Its plan and seed decide, so the answer is the same on every machine.
    """
    return zlib.crc32(f"{cell.digest}:{seed}".encode()) % ONE_IN == 0


@dataclass(slots=True)
class Repeats:
    """The runs that are waiting to be repeated."""

    cells: Sequence[Cell]
    workers: int
    _waiting: deque[_Sample] = field(default_factory=deque)
    _under_way: dict[tuple[int, int], _Sample] = field(default_factory=dict)
    _numbers: dict[tuple[str, str], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._numbers = {(cell.campaign, cell.name): number for number, cell in enumerate(self.cells)}

    def are_missing(self, covers: Iterable[tuple[int, range]], done: Mapping[int, Collection[int]]) -> bool:
        """Return whether any of these runs is sampled, but not *done* (seeds by cell)."""
        return any(
            seed not in done.get(number, ()) and is_sampled(self.cells[number], seed)
            for number, seeds in covers
            for seed in seeds
        )

    def sample(self, rows: pa.Table, done: Mapping[int, Collection[int]] = NOTHING) -> None:
        """Queue the sampled runs among rows, except the *done* ones (seeds by cell)."""
        for number, seed, digest, worker in self._runs(rows):
            if digest is None or seed in done.get(number, ()) or not is_sampled(self.cells[number], seed):
                continue
            self._waiting.append(_Sample(cell=number, seed=seed, digest=digest, worker=worker))

    def _runs(self, rows: pa.Table) -> Iterator[tuple[int, int, str | None, str]]:
        """Yield cell, seed, digest and worker. Rows read from a file have no worker."""
        columns = [rows.column(name).to_pylist() for name in (PARTITION, "cell", "seed", "trace_digest")]
        workers = rows.column(WORKER).to_pylist() if WORKER in rows.column_names else itertools.repeat("")
        for campaign, name, seed, digest, worker in zip(*columns, workers, strict=False):
            yield self._numbers[campaign, name], seed, digest, worker

    def waiting(self) -> int:
        return len(self._waiting)

    def next_chunk(self, *, last: bool) -> Chunk | None:
        """Return a chunk of repeats if enough runs are waiting, or if these are the *last* ones."""
        if not self._waiting or (not last and len(self._waiting) < _BATCH * self.workers):
            return None
        samples_now = [self._waiting.popleft() for _ in range(min(len(self._waiting), _BATCH * self.workers))]
        by_cell: dict[int, list[_Sample]] = {}
        for sample in samples_now:
            sample.tries += 1
            self._under_way[sample.cell, sample.seed] = sample
            by_cell.setdefault(sample.cell, []).append(sample)
        tasks: list[Task] = []
        for cell, samples in by_cell.items():
            size = max(1, -(-len(samples) // self.workers))
            for start in range(0, len(samples), size):
                task_samples = samples[start : start + size]
                tasks.append(
                    Task(
                        cell=cell,
                        seeds=tuple(sample.seed for sample in task_samples),
                        not_on=tuple(s.worker if s.tries < _TRIES_MAX else "" for s in task_samples),
                    )
                )
        return Chunk(tasks=tuple(tasks), campaign=self.cells[samples_now[0].cell].campaign, repeats=True)

    def compare(self, chunk: Chunk, rows: pa.Table) -> list[RepeatedRun]:
        """Compare the digests of a chunk of repeats with those of the first runs.

        Runs that the worker left out, because it ran them first, are queued again.
        """
        repeated: list[RepeatedRun] = []
        for number, seed, digest, worker in self._runs(rows):
            sample = self._under_way.pop((number, seed), None)
            if sample is not None:
                repeated.append(
                    RepeatedRun(
                        cell=sample.cell,
                        seed=seed,
                        first=sample.digest,
                        again=digest,
                        other_worker=worker != sample.worker,
                    )
                )
        self.requeue(chunk)
        return repeated

    def requeue(self, chunk: Chunk) -> None:
        """Queue the runs of a chunk that were not repeated again, up to a number of tries."""
        for task in chunk.tasks:
            for seed in task.seeds:
                sample = self._under_way.pop((task.cell, seed), None)
                if sample is not None and sample.tries < _TRIES_MAX:
                    self._waiting.append(sample)
