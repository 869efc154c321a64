"""The driver's loop, with an engine in this process that fails on demand."""

import json
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from harrow.campaigns.storage.location import Location, location
from harrow.campaigns.sweep import chunk as chunk_module
from harrow.campaigns.sweep import part_file as part_module
from harrow.campaigns.sweep import sweep as sweep_module
from harrow.campaigns.sweep.chunk import Chunk
from harrow.campaigns.sweep.definition import Definition, define
from harrow.campaigns.sweep.engine import ChunkLostError, EngineLostError
from harrow.campaigns.sweep.part_file import PartFile, merge
from harrow.campaigns.sweep.sweep import Limits, Progress, Sweep, state_of
from harrow.campaigns.sweep.sweep_folder import SweepFolder, SweepFolderError, read_definition, read_state
from harrow.campaigns.sweep.task_result import TaskResult, is_sampled, perform
from tests.campaigns.sweep.sweep_campaigns import TEXT, acks, campaign, definition


def accept(_chunk: Chunk) -> None:
    """Let a chunk through."""


@dataclass
class InProcessEngine:
    """Runs chunks in this process. *before* may raise the errors of an engine."""

    definition: Definition
    before: Callable[[Chunk], None] = accept
    change: Callable[[Chunk, list[TaskResult]], list[TaskResult]] = lambda _chunk, results: results
    name: str = "here"
    workers: int = 1
    folder: Location | None = None
    ran: list[Chunk] = field(default_factory=list)

    def run(self, chunk: Chunk) -> list[TaskResult]:
        self.before(chunk)
        self.ran.append(chunk)
        cells = dict(enumerate(self.definition.cells))
        return self.change(chunk, [perform(cells, task, self.folder) for task in chunk.tasks])

    def merge(self, parts: Sequence[PartFile]) -> PartFile | None:
        assert self.folder is not None
        return merge(self.folder, parts)

    def cancel(self) -> None:
        """Do nothing: chunks run at once."""

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


def sweep(path: Path, engine: InProcessEngine, limits: Limits | None = None) -> Progress:
    folder = SweepFolder(path, engine.definition)
    folder.begin()
    return Sweep(engine.definition, folder, engine, limits=limits).run()


def keys(path: Path) -> list[tuple[str, int]]:
    """Return (cell, seed) of every row in a sweep's files."""
    finished = []
    for part in sorted(path.glob("runs/*/*.parquet")):
        rows = pq.ParquetFile(part).read(["cell", "seed"]).to_pylist()
        finished += [(row["cell"], row["seed"]) for row in rows]
    return sorted(finished)


def keys_of(sweep_definition: Definition) -> list[tuple[str, int]]:
    return sorted((cell.name, seed) for cell in sweep_definition.cells for seed in sweep_definition.seeds)


def test_every_key_has_one_row(tmp_path: Path) -> None:
    sweep_definition = definition(20, varies=acks("1", "all"))
    progress = sweep(tmp_path, InProcessEngine(sweep_definition))
    assert keys(tmp_path) == keys_of(sweep_definition)
    assert (progress.done, progress.planned, progress.is_complete()) == (40, 40, True)
    assert progress.tally.verdicts.total() == 40
    assert progress.probes


def test_resuming_runs_only_the_missing_seeds(tmp_path: Path) -> None:
    sweep_definition = definition(40, varies=acks("1", "all"))
    first = sweep(tmp_path, InProcessEngine(sweep_definition), Limits(time_max_s=0.0))
    assert not first.is_complete()
    assert first.stopped == "--max-time reached"
    partly = sweep(tmp_path, InProcessEngine(definition(15, varies=acks("1", "all"))))
    assert partly.done == 30
    engine = InProcessEngine(sweep_definition)
    last = sweep(tmp_path, engine)
    assert keys(tmp_path) == keys_of(sweep_definition)
    assert (last.already, last.done) == (30, 50)
    assert {
        seed for chunk in engine.ran if not chunk.repeats for task in chunk.tasks for seed in task.seeds
    } == set(range(15, 40))
    again = sweep(tmp_path, InProcessEngine(sweep_definition))
    assert (again.already, again.done) == (80, 0)


def test_leftovers_of_a_killed_writer_are_not_rows(tmp_path: Path) -> None:
    sweep_definition = definition(5)
    folder = SweepFolder(tmp_path, sweep_definition)
    folder.begin()
    place = tmp_path / "runs" / "campaign=small"
    place.mkdir(parents=True)
    (place / ".part-00000.parquet.123").write_bytes(b"half of a fi")
    sweep(tmp_path, InProcessEngine(sweep_definition))
    assert keys(tmp_path) == keys_of(sweep_definition)
    assert not list(place.glob(".*"))


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    sweep_definition = definition(3)
    sweep(tmp_path, InProcessEngine(sweep_definition))
    (part,) = tmp_path.glob("runs/*/*.parquet")
    part.write_bytes(b"nothing")
    with pytest.raises(SweepFolderError, match=r"part-[0-9a-f]+\.parquet: not a file of a sweep"):
        SweepFolder(tmp_path, sweep_definition).missing()


def test_files_of_another_grid_are_rejected(tmp_path: Path) -> None:
    sweep(tmp_path, InProcessEngine(definition(3, varies=acks("1"))))
    with pytest.raises(SweepFolderError, match=r"no cell .*acks=1"):
        SweepFolder(tmp_path, definition(3)).missing()


def test_a_lost_chunk_is_run_again(tmp_path: Path) -> None:
    sweep_definition = definition(30)
    lost: list[Chunk] = []

    def lose_first(chunk: Chunk) -> None:
        if not lost:
            lost.append(chunk)
            raise ChunkLostError("a worker died")

    progress = sweep(tmp_path, InProcessEngine(sweep_definition, lose_first))
    assert keys(tmp_path) == keys_of(sweep_definition)
    assert progress.lost["a worker died"] == 1
    assert not any(verdict == "error" for _, verdict in progress.tally.verdicts)


def test_a_run_that_always_kills_its_worker_is_isolated_and_becomes_an_error(tmp_path: Path) -> None:
    sweep_definition = definition(30)

    def kill_worker(chunk: Chunk) -> None:
        if any(13 in task.seeds for task in chunk.tasks):
            raise ChunkLostError("a worker died")

    progress = sweep(tmp_path, InProcessEngine(sweep_definition, kill_worker))
    assert keys(tmp_path) == keys_of(sweep_definition)
    assert [count for (_, verdict), count in progress.tally.verdicts.items() if verdict == "error"] == [1]
    rows = [
        row for part in tmp_path.glob("runs/*/*.parquet") for row in pq.ParquetFile(part).read().to_pylist()
    ]
    (error,) = [row for row in rows if row["verdict"] == "error"]
    assert error["seed"] == 13
    assert error["error"] == "the worker died in each of 3 attempts at this run"


def test_results_that_do_not_come_back_are_run_again(tmp_path: Path) -> None:
    sweep_definition = definition(30)
    cut: list[Chunk] = []

    def drop_result(chunk: Chunk, results: list[TaskResult]) -> list[TaskResult]:
        if cut:
            return results
        cut.append(chunk)
        return results[1:]

    progress = sweep(tmp_path, InProcessEngine(sweep_definition, change=drop_result))
    assert keys(tmp_path) == keys_of(sweep_definition)
    assert list(progress.lost) == [f"{len(cut[0].tasks) - 1} of {len(cut[0].tasks)} results came back"]


@pytest.mark.parametrize("reaches_folder", [False, True])
def test_a_sweep_ends_with_few_files_whoever_writes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, reaches_folder: bool
) -> None:
    monkeypatch.setattr(chunk_module, "_TASK_MIN_S", 0.0)
    monkeypatch.setattr(part_module, "SMALL_FILES_MAX", 8)
    campaigns = [(campaign(TEXT.replace("name: small", f"name: {name}")), f"{name}.yaml") for name in "ab"]
    sweep_definition = define(campaigns, range(60))
    engine = InProcessEngine(sweep_definition, folder=location(tmp_path) if reaches_folder else None)
    sweep(tmp_path, engine)
    assert sum(len(chunk.tasks) for chunk in engine.ran if not chunk.repeats) > 16
    assert [path.parent.name for path in sorted(tmp_path.glob("runs/*/*"))] == ["campaign=a", "campaign=b"]
    assert keys(tmp_path) == sorted([("base", seed) for seed in range(60)] * 2)


def test_files_that_cannot_be_merged_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunk_module, "_TASK_MIN_S", 0.0)
    monkeypatch.setattr(sweep_module, "merge", lambda *_: None)
    sweep_definition = definition(20)
    assert sweep(tmp_path, InProcessEngine(sweep_definition)).is_complete()
    assert len(list(tmp_path.glob("runs/*/*"))) > 1
    assert keys(tmp_path) == keys_of(sweep_definition)


def test_an_interrupt_during_a_chunk_keeps_finished_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a fast machine, the first chunk would have all runs.
    monkeypatch.setattr(chunk_module, "_TASK_MIN_S", 0.01)
    sweep_definition = definition(300, varies=acks("1", "all"))
    engine = InProcessEngine(sweep_definition)
    folder = SweepFolder(tmp_path, sweep_definition)
    folder.begin()

    def interrupt(progress: Progress) -> None:
        if progress.done:
            raise KeyboardInterrupt

    progress = Sweep(sweep_definition, folder, engine, on_progress=interrupt).run()
    assert progress.interrupted
    assert not progress.is_complete()
    assert progress.left_s is None
    assert len(keys(tmp_path)) == progress.done > 0
    assert sweep(tmp_path, InProcessEngine(sweep_definition)).is_complete()
    assert keys(tmp_path) == keys_of(sweep_definition)


def test_resuming_knows_the_rare_states_reached_before(tmp_path: Path) -> None:
    first = sweep(tmp_path, InProcessEngine(definition(5)))
    again = sweep(tmp_path, InProcessEngine(definition(5)))
    assert again.done == 0
    assert again.probes == first.probes


def test_resuming_reads_no_rows_if_no_repeat_is_owed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep_definition = definition(200)
    assert sweep(tmp_path, InProcessEngine(sweep_definition)).repeated

    def read(_path: Path) -> None:
        raise AssertionError("no result is due")

    monkeypatch.setattr(pq, "ParquetFile", read)
    assert sweep(tmp_path, InProcessEngine(sweep_definition)).is_complete()


def test_repeats_by_the_same_worker_do_not_count_as_repeated_elsewhere(tmp_path: Path) -> None:
    progress = sweep(tmp_path, InProcessEngine(definition(200)))
    assert progress.repeated > 0
    assert progress.repeated_elsewhere == 0
    assert state_of(progress, "here")["repeated_elsewhere"] == 0


def test_a_lost_engine_ends_the_sweep_and_keeps_finished_rows(tmp_path: Path) -> None:
    sweep_definition = definition(30, varies=acks("1", "all"))

    def lose_engine(_chunk: Chunk) -> None:
        raise EngineLostError("no executors")

    progress = sweep(tmp_path, InProcessEngine(sweep_definition, lose_engine))
    assert progress.engine_lost == "no executors"
    assert not progress.is_complete()
    assert sweep(tmp_path, InProcessEngine(sweep_definition)).is_complete()
    assert keys(tmp_path) == keys_of(sweep_definition)


def test_a_sweep_stops_after_its_maximum_of_failures(tmp_path: Path) -> None:
    sweep_definition = definition(
        20_000,
        text="name: small\nexpect: {verdict: violated}\ncluster: {brokers: 1, topics: [{name: t}]}\n"
        "workload: {duration: 1s, producers: [{name: p, rate: 3/s}]}",
    )
    progress = sweep(tmp_path, InProcessEngine(sweep_definition), Limits(failures_max=1))
    assert progress.stopped == "--max-failures 1 reached"
    assert 0 < progress.done < 20_000


def test_one_run_in_fifty_is_repeated_and_compared(tmp_path: Path) -> None:
    sweep_definition = definition(200)
    progress = sweep(tmp_path, InProcessEngine(sweep_definition))
    sampled = [seed for seed in sweep_definition.seeds if is_sampled(sweep_definition.cells[0], seed)]
    assert sampled
    assert progress.repeated == len(sampled)
    assert progress.unequal == []
    lines = [json.loads(line) for line in (tmp_path / "repeated.jsonl").read_text().splitlines()]
    assert sorted(line["seed"] for line in lines) == sampled
    assert {line["other_worker"] for line in lines} == {False}
    assert sweep(tmp_path, InProcessEngine(sweep_definition)).repeated == len(sampled)


def test_a_repeat_with_another_digest_is_reported(tmp_path: Path) -> None:
    sweep_definition = definition(200)

    def change_digest(chunk: Chunk, results: list[TaskResult]) -> list[TaskResult]:
        if not chunk.repeats:
            return results
        return [
            replace(result, digests=tuple((seed, "other") for seed, _ in result.digests))
            for result in results
        ]

    progress = sweep(tmp_path, InProcessEngine(sweep_definition, change=change_digest))
    assert len(progress.unequal) == progress.repeated > 0
    assert keys(tmp_path) == keys_of(sweep_definition)
    assert len(state_of(progress, "here")["unequal"]) == progress.repeated  # type: ignore[arg-type]  # JSON


def test_repeats_that_a_killed_sweep_owed_happen_on_resume(tmp_path: Path) -> None:
    sweep_definition = definition(200)
    first = sweep(tmp_path, InProcessEngine(sweep_definition))
    (tmp_path / "repeated.jsonl").write_text('{"cut of')
    assert sweep(tmp_path, InProcessEngine(sweep_definition)).repeated == first.repeated


def test_a_definition_survives_being_written_to_its_folder_and_read(tmp_path: Path) -> None:
    sweep_definition = definition(7, varies=acks("1", "all"))
    folder = SweepFolder(tmp_path, sweep_definition)
    folder.begin()
    read = read_definition(tmp_path)
    assert [(c.campaign, c.name, c.digest) for c in read.cells] == [
        (c.campaign, c.name, c.digest) for c in sweep_definition.cells
    ]
    assert (read.seeds, read.name()) == (sweep_definition.seeds, sweep_definition.name())
    assert read_state(tmp_path)["complete"] is False


@pytest.mark.parametrize("text", [None, "", "[]", "{}", '{"schema": "harrow.sweep/99"}'])
def test_a_folder_without_a_sweep_is_rejected(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "sweep.json").write_text(text)
    with pytest.raises(SweepFolderError, match="sweep"):
        read_state(tmp_path)


def test_a_chunk_that_may_have_killed_its_worker_is_retried_alone(tmp_path: Path) -> None:
    campaigns = [(campaign(TEXT.replace("name: small", f"name: {name}")), f"{name}.yaml") for name in "abcde"]
    sweep_definition = define(campaigns, range(2))
    under_way: list[Chunk] = []
    together: list[tuple[str, ...]] = []

    def lost_at_first(chunk: Chunk) -> None:
        under_way.append(chunk)
        for _ in range(5):
            time.sleep(0.01)
            if len(under_way) > 1 and any(each.attempt > 1 for each in under_way):
                together.append(tuple(each.campaign for each in under_way))
        if chunk.attempt == 1 and chunk.campaign in "ab" and not chunk.repeats:
            under_way.remove(chunk)
            raise ChunkLostError("a worker died")

    def back(chunk: Chunk, results: list[TaskResult]) -> list[TaskResult]:
        under_way.remove(chunk)
        return results

    progress = sweep(tmp_path, InProcessEngine(sweep_definition, lost_at_first, back))
    assert together == []
    assert (progress.lost["a worker died"], progress.is_complete()) == (2, True)


def test_chunks_that_finish_during_an_interrupt_are_written(tmp_path: Path) -> None:
    campaigns = [(campaign(TEXT.replace("name: small", f"name: {name}")), f"{name}.yaml") for name in "ab"]
    sweep_definition = define(campaigns, range(2))
    returned: list[Chunk] = []

    def back(chunk: Chunk, results: list[TaskResult]) -> list[TaskResult]:
        returned.append(chunk)
        return results

    engine = InProcessEngine(sweep_definition, change=back)
    folder = SweepFolder(tmp_path, sweep_definition)
    folder.begin()
    reports: list[Progress] = []

    def shielded() -> AbstractContextManager[None]:
        # Both chunks have come back, but neither is written yet.
        while len(returned) < 2:
            time.sleep(0.01)
        time.sleep(0.2)
        raise KeyboardInterrupt

    progress = Sweep(sweep_definition, folder, engine, on_progress=reports.append, shielded=shielded).run()
    assert progress.interrupted
    assert progress.done == len(keys(tmp_path)) == 4
