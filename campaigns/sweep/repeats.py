"""Checks determinism by sampling: another worker repeats a run and must get the same digest."""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Final

from harrow.campaigns.sweep.cell import Cell
from harrow.campaigns.sweep.chunk import Chunk, Task
from harrow.campaigns.sweep.sweep_folder import RepeatedRun
from harrow.campaigns.sweep.task_result import TaskResult
from harrow.cluster_model.lazy_dataclass import dataclass

_TRIES_MAX: Final = 6
"""The worker that ran a run first leaves its repetition to another worker.

The last of this many tries is open to every worker, because there may be no other.
"""
_BATCH: Final = 40


@dataclass(slots=True, kw_only=True)
class _Sample:
    cell: int
    seed: int
    digest: str | None
    worker: str
    tries: int = 0


@dataclass(slots=True)
class Repeats:
    """The runs that are waiting to be repeated."""

    cells: Sequence[Cell]
    workers: int
    _waiting: deque[_Sample] = field(default_factory=deque)
    _under_way: dict[tuple[int, int], _Sample] = field(default_factory=dict)

    def sample(self, cell: int, digests: Iterable[tuple[int, str | None]], worker: str = "") -> None:
        """Queue sampled runs of a cell: seeds and digests, and the worker that ran them."""
        for seed, digest in digests:
            if digest is not None:
                self._waiting.append(_Sample(cell=cell, seed=seed, digest=digest, worker=worker))

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

    def compare(self, chunk: Chunk, results: Iterable[TaskResult]) -> list[RepeatedRun]:
        """Compare the digests of a chunk of repeats with those of the first runs.

        Runs that the worker left out, because it ran them first, are queued again.
        """
        repeated: list[RepeatedRun] = []
        for result in results:
            for seed, digest in result.digests:
                sample = self._under_way.pop((result.cell, seed), None)
                if sample is not None:
                    repeated.append(
                        RepeatedRun(
                            cell=sample.cell,
                            seed=seed,
                            first=sample.digest,
                            again=digest,
                            other_worker=result.worker != sample.worker,
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
