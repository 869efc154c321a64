"""The loop of a sweep: submits chunks to an engine until every run has its row."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext
from dataclasses import field
from typing import Final

import pyarrow.parquet as pq

from harrow.campaigns.probes.probes import PROBES
from harrow.campaigns.sweep.chunk import Chunk, Planner, RunCosts, chunks_in_flight, halves
from harrow.campaigns.sweep.definition import Definition
from harrow.campaigns.sweep.engine import ChunkLostError, Engine, EngineLostError
from harrow.campaigns.sweep.part_file import PartFile, merge, worth_merging
from harrow.campaigns.sweep.repeats import Repeats
from harrow.campaigns.sweep.row import error_row, run_row
from harrow.campaigns.sweep.sweep_folder import RepeatedRun, SweepFolder
from harrow.campaigns.sweep.sweep_tally import SweepTally
from harrow.campaigns.sweep.task_result import TaskResult, is_sampled, result_of
from harrow.cluster_model.lazy_dataclass import dataclass, replace
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND

_ATTEMPTS_MAX: Final = 3
"""Tries of a whole chunk. Then it is halved until the run that kills workers is alone in one."""
_TICK_S: Final = 0.2
_MERGES_MAX: Final = 4
"""Merges at the same time, each of another campaign's files."""
_GUESSES: Final = 4
_GUESS_MAX_S: Final = 0.5


@dataclass(slots=True, kw_only=True)
class Progress:
    """The progress of a sweep, in runs. Times are in seconds.

    ``already`` counts runs with rows from an earlier sweep, and ``done`` the others. ``repeated``
    counts the runs that were repeated, and ``unequal`` are those whose digests differ. ``lost``
    counts lost chunks, by reason. ``stopped`` is the limit that ended the sweep early.
    """

    planned: int
    workers: int
    done: int = 0
    already: int = 0
    in_reach: tuple[str, ...] = tuple(PROBES)
    probes: set[str] = field(default_factory=set)
    tally: SweepTally = field(default_factory=SweepTally)
    repeated: int = 0
    repeated_elsewhere: int = 0
    unequal: list[RepeatedRun] = field(default_factory=list)
    lost: Counter[str] = field(default_factory=Counter)
    begun_s: float = field(default_factory=time.monotonic)
    left_s: float | None = None
    stopped: str | None = None
    interrupted: bool = False
    engine_lost: str | None = None

    @property
    def failed(self) -> Counter[str]:
        """The number of failed runs by signature."""
        failed: Counter[str] = Counter()
        for (_, signature), failure in self.tally.failures.items():
            failed[signature] += failure.count
        return failed

    def elapsed_s(self) -> float:
        return time.monotonic() - self.begun_s

    def runs_per_s(self) -> float:
        return self.done / max(1e-9, self.elapsed_s())

    def probes_missing(self) -> list[str]:
        """Return the reachable rare states that no run has reached yet."""
        return [probe for probe in self.in_reach if probe not in self.probes]

    def is_complete(self) -> bool:
        return self.already + self.done == self.planned


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """When to stop a sweep early."""

    failures_max: int | None = None
    time_max_s: float | None = None


class Sweep:
    """The driver's loop: submits chunks, and counts the files that workers write.

    *on_progress* is called several times a second. *shielded* returns a context manager within
    which an interrupt has to wait.
    """

    def __init__(
        self,
        definition: Definition,
        folder: SweepFolder,
        engine: Engine,
        *,
        limits: Limits | None = None,
        on_progress: Callable[[Progress], None] = lambda _: None,
        shielded: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self._definition = definition
        self._folder = folder
        self._engine = engine
        self._limits = limits or Limits()
        self._on_progress = on_progress
        self._shielded = shielded
        self.progress = Progress(
            planned=definition.runs(), workers=engine.workers, in_reach=definition.probes()
        )
        self._repeats = Repeats(definition.cells, engine.workers)
        self._again: list[Chunk] = []
        self._under_way: dict[Future[Sequence[TaskResult]], Chunk] = {}
        self._merging: dict[Future[PartFile | None], list[PartFile]] = {}
        self._unmerged: set[str] = set()
        """Files whose merge failed. They stay small."""

    def run(self) -> Progress:
        """Run the missing seeds. An interrupt ends the sweep, but finished chunks are written."""
        missing = self._folder.missing()
        remaining = sum(len(seeds) for _, seeds in missing)
        self.progress.already = self.progress.planned - remaining
        self.progress.probes |= self._folder.probes
        self._queue_earlier_samples()
        cells = self._definition.cells
        costs = RunCosts(self._first_guess_s(missing))
        planner = Planner(cells, self._engine.workers, costs, missing)
        with ThreadPoolExecutor(
            chunks_in_flight(self._engine.workers) + _MERGES_MAX, thread_name_prefix="chunk"
        ) as threads:
            try:
                self._loop(planner, threads)
                if self.progress.is_complete():
                    self._merge_the_rest(threads)
            except (KeyboardInterrupt, EngineLostError) as error:
                self.progress.interrupted = isinstance(error, KeyboardInterrupt)
                self.progress.engine_lost = str(error) if isinstance(error, EngineLostError) else None
                self._write_finished(planner)
            finally:
                if self._under_way or self._merging:
                    self._engine.cancel()
                    self._count_unfinished_chunks()
        self._folder.write_repeated()
        self.progress.left_s = None
        return self.progress

    def _first_guess_s(self, missing: list[tuple[int, range]]) -> float:
        """Estimate the processor time of a run from a few runs.

        Only the sizes of the first tasks depend on the estimate.
        """
        begun_s = time.process_time()
        runs = 0
        for cell, seeds in missing[:: max(1, len(missing) // _GUESSES)]:
            for seed in seeds[:_GUESSES]:
                if time.process_time() - begun_s > _GUESS_MAX_S:
                    break
                run_row(self._definition.cells[cell], seed)
                runs += 1
        return (time.process_time() - begun_s) / runs if runs else 1.0

    def _queue_earlier_samples(self) -> None:
        """Queue sampled runs that an earlier sweep wrote but did not repeat."""
        done: dict[int, set[int]] = {}
        for run in self._folder.repeated():
            if run.seed not in done.setdefault(run.cell, set()):
                done[run.cell].add(run.seed)
                self._count_repeated([run])
        cells = self._definition.cells
        for part in self._folder.parts():
            owed = {
                (number, seed)
                for number, seeds in self._folder.covers(part)
                for seed in seeds
                if seed not in done.get(number, ()) and is_sampled(cells[number], seed)
            }
            if not owed:
                continue
            with (self._folder.location / part.path).open() as file:
                columns = pq.ParquetFile(file).read(["cell", "seed", "trace_digest"]).to_pydict()
            numbers = {cells[number].name: number for number, _ in self._folder.covers(part)}
            for name, seed, digest in zip(*columns.values(), strict=True):
                if (numbers[name], seed) in owed:
                    self._repeats.sample(numbers[name], ((seed, digest),))

    def _count_unfinished_chunks(self) -> None:
        """Count the files that workers had written for chunks that did not come back."""
        self._folder.load()
        rows = sum(part.rows for part in self._folder.parts())
        self.progress.done = rows - self.progress.already
        self.progress.probes |= self._folder.probes

    # The loop

    def _loop(self, planner: Planner, threads: ThreadPoolExecutor) -> None:
        while True:
            if self._folder.is_lost():
                self._folder.check_claim()
            self._hand_out(planner, threads)
            if not self._under_way:
                return
            finished, _ = wait(self._under_way, timeout=_TICK_S, return_when=FIRST_COMPLETED)
            for future in finished:
                with self._shielded():
                    self._take_in(self._under_way.pop(future), future, planner)
            with self._shielded():
                self._take_in_merges()
                self._start_merges(threads)
            self._report_progress(planner)

    def _hand_out(self, planner: Planner, threads: ThreadPoolExecutor) -> None:
        if self.progress.stopped is None:
            self.progress.stopped = self._reason_to_stop()
        limit = chunks_in_flight(self._engine.workers)
        while len(self._under_way) < limit:
            chunk = self._next_chunk(planner)
            if chunk is None:
                return
            if chunk.attempt > 1 and self._under_way:
                # A chunk that may have killed its workers runs alone, so that no other chunk is
                # blamed.
                self._again.insert(0, chunk)
                return
            self._under_way[threads.submit(self._engine.run, chunk)] = chunk
            if chunk.attempt > 1:
                return

    def _next_chunk(self, planner: Planner) -> Chunk | None:
        if any(chunk.attempt > 1 for chunk in self._under_way.values()):
            return None
        if self.progress.stopped is not None:
            return None
        if self._again:
            return self._again.pop(0)
        chunk = self._repeats.next_chunk(last=False) or planner.next_chunk()
        return chunk or self._repeats.next_chunk(last=not self._under_way)

    def _reason_to_stop(self) -> str | None:
        limits, progress = self._limits, self.progress
        if limits.failures_max is not None and progress.failed.total() >= limits.failures_max:
            return f"--max-failures {limits.failures_max} reached"
        if limits.time_max_s is not None and progress.elapsed_s() >= limits.time_max_s:
            return "--max-time reached"
        return None

    def _report_progress(self, planner: Planner) -> None:
        under_way_s = sum(
            len(task.seeds) * planner.costs.of(task.cell)
            for chunk in self._under_way.values()
            for task in chunk.tasks
        )
        work_s = planner.left_s() + under_way_s / 2
        self.progress.left_s = work_s * planner.costs.slowdown / self._engine.workers
        self._on_progress(self.progress)

    def _write_finished(self, planner: Planner) -> None:
        """Write the chunks that finished while the loop was ending."""
        for future, chunk in list(self._under_way.items()):
            if future.done() and not future.cancelled() and future.exception() is None:
                del self._under_way[future]
                self._take_in(chunk, future, planner)

    # Results

    def _take_in(self, chunk: Chunk, future: Future[Sequence[TaskResult]], planner: Planner) -> None:
        try:
            results = future.result()
        except ChunkLostError as error:
            self.progress.lost[str(error)] += 1
            self._retry(chunk)
            return
        if chunk.repeats:
            self._compare(chunk, results)
            return
        if len(results) != len(chunk.tasks):
            self.progress.lost[f"{len(results)} of {len(chunk.tasks)} results came back"] += 1
            self._retry(chunk)
            return
        for task, result in zip(chunk.tasks, results, strict=True):
            self._count(result, len(task.seeds))
            runs = len(task.seeds) * US_PER_SECOND
            planner.costs.measure(task.cell, result.cpu_us / runs, result.wall_us / runs)

    def _retry(self, chunk: Chunk) -> None:
        """Retry a lost chunk, first whole, then in halves. A run that is lost alone is an error."""
        if chunk.repeats:
            self._repeats.requeue(chunk)
            return
        if chunk.attempt < _ATTEMPTS_MAX:
            self._again.append(replace(chunk, attempt=chunk.attempt + 1))
            return
        parts = halves(chunk)
        if parts:
            # A half may have the run that kills workers, so it runs alone, and with one try fewer.
            self._again += [replace(part, attempt=_ATTEMPTS_MAX - 1) for part in parts]
            return
        task = chunk.tasks[0]
        message = f"the worker died in each of {_ATTEMPTS_MAX} attempts at this run"
        cell = self._definition.cells[task.cell]
        row = error_row(cell, task.seeds[0], message, "worker died")
        self._count(result_of(cell, task, [row], None), 1)

    def _count(self, result: TaskResult, runs: int) -> None:
        assert result.part is not None, "only repeats have no rows"
        self._folder.add(result.part, result.content)
        self.progress.done += runs
        self.progress.tally.add_tally(result.tally)
        self.progress.probes.update(result.tally.probes)
        self._repeats.sample(result.cell, result.digests, result.worker)

    def _compare(self, chunk: Chunk, results: Sequence[TaskResult]) -> None:
        repeated = self._repeats.compare(chunk, results)
        self._folder.add_repeated(repeated)
        self._count_repeated(repeated)

    def _count_repeated(self, runs: Sequence[RepeatedRun]) -> None:
        self.progress.repeated += len(runs)
        self.progress.repeated_elsewhere += sum(run.other_worker for run in runs)
        self.progress.unequal += [run for run in runs if not run.is_equal]

    # Merges of small files

    def _start_merges(self, threads: ThreadPoolExecutor, *, at_end: bool = False) -> None:
        """Merge small files of campaigns that have many of them, one group of each at a time."""
        busy = {sources[0].campaign for sources in self._merging.values()}
        small: dict[str, list[PartFile]] = {}
        for part in self._folder.parts():
            if part.campaign not in busy and part.path not in self._unmerged:
                small.setdefault(part.campaign, []).append(part)
        for parts in small.values():
            for group in worth_merging(parts, at_end=at_end)[:1]:
                if len(self._merging) < _MERGES_MAX:
                    self._merging[threads.submit(self._merge, group)] = group

    def _merge(self, parts: Sequence[PartFile]) -> PartFile | None:
        if self._engine.folder is None:
            return merge(self._folder.location, parts)
        return self._engine.merge(parts)

    def _take_in_merges(self) -> None:
        for future in [future for future in self._merging if future.done()]:
            sources = self._merging.pop(future)
            try:
                merged = future.result()
            except ChunkLostError:
                merged = None
            if merged is None:
                self._unmerged.update(source.path for source in sources)
            else:
                self._folder.replace(sources, merged)

    def _merge_the_rest(self, threads: ThreadPoolExecutor) -> None:
        while True:
            with self._shielded():
                self._take_in_merges()
                self._start_merges(threads, at_end=True)
            if not self._merging:
                return
            wait(self._merging, timeout=_TICK_S, return_when=FIRST_COMPLETED)


def state_of(progress: Progress, engine: str) -> dict[str, object]:
    """Return the state of a sweep at its end, for ``sweep.json``."""
    return {
        "complete": progress.is_complete(),
        "rows": progress.already + progress.done,
        "engine": engine,
        "workers": progress.workers,
        "elapsed_s": round(progress.elapsed_s(), 1),
        "stopped": progress.stopped,
        "interrupted": progress.interrupted,
        "repeated": progress.repeated,
        "repeated_elsewhere": progress.repeated_elsewhere,
        "unequal": [[run.cell, run.seed] for run in progress.unequal],
    }
