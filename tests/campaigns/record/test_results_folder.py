"""A process that fails or is killed leaves only complete files in results/."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from harrow.campaigns.record.report import run_as_mapping, run_id
from harrow.campaigns.record.results_folder import LATEST, RUN, trace_line, write_run
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.storage.whole_file import unfinished, whole_file
from harrow.cluster_model.events import EVENTS, event_fields
from harrow.cluster_model.trace import as_mapping
from tests.campaigns.record.run_results import failed_run, run_result

needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="looks in /proc for flushed files")


def write(results: Path, result: RunResult, campaign_text: str = "name: loss\n") -> Path:
    return write_run(results, result, run_as_mapping(result, "harrow run loss --seed 0"), campaign_text)


def test_a_run_is_written_and_latest_points_to_it(tmp_path: Path) -> None:
    result = failed_run()
    folder = write(tmp_path, result)
    assert folder == tmp_path / "loss" / run_id(result)
    trace = [json.loads(line) for line in (folder / "trace.jsonl").read_text(encoding="utf-8").splitlines()]
    expected = [json.loads(json.dumps(as_mapping(event))) for event in result.evidence.trace]
    assert trace == expected
    assert (tmp_path / "latest").resolve() == folder
    assert (folder / "campaign.yaml").read_text(encoding="utf-8") == "name: loss\n"


def test_the_remains_of_a_killed_process_with_the_same_pid_are_replaced(tmp_path: Path) -> None:
    result = failed_run()
    left_over = unfinished(tmp_path / "loss" / run_id(result))
    left_over.mkdir(parents=True)
    (left_over / "history.jsonl").write_text("half of a li")
    folder = write(tmp_path, result)
    assert {path.name for path in folder.parent.iterdir()} == {folder.name}


@pytest.mark.parametrize("name", EVENTS)
def test_a_line_of_the_trace_names_every_field(name: str) -> None:
    samples = (1, "t-0", (1, 0), None, True, 'a "quoted" %s', (("m0", 1), ()), False, "ü")
    event = (-5, name, *samples[: len(event_fields(name))])
    assert json.loads(trace_line(event)) == json.loads(json.dumps(as_mapping(event)))


def test_the_name_latest_selects_the_newest_results(tmp_path: Path) -> None:
    write(tmp_path, run_result(seed=1))
    second = write(tmp_path, run_result(seed=2))
    assert (tmp_path / "latest").resolve() == second


def test_latest_is_a_relative_link_so_that_results_can_be_moved(tmp_path: Path) -> None:
    write(tmp_path / "here", run_result())
    (tmp_path / "here").rename(tmp_path / "there")
    assert (tmp_path / "there" / "latest" / "run.json").exists()


def test_the_same_run_is_replaced_file_by_file(tmp_path: Path) -> None:
    folder = write(tmp_path, run_result(), "first\n")
    reader = (folder / "campaign.yaml").open(encoding="utf-8")
    write(tmp_path, run_result(), "second\n")
    with reader:
        assert reader.read() == "first\n"
    assert (folder / "campaign.yaml").read_text(encoding="utf-8") == "second\n"
    assert sorted(path.name for path in (tmp_path / "loss").iterdir()) == [folder.name]


@needs_proc
def test_a_renamed_file_is_flushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A power cut keeps only flushed files and names, so both are flushed in order."""
    steps = flushes_and_renames(monkeypatch)
    result = run_result()
    folder = write(tmp_path, result)
    renamed = steps.index(f"rename to {folder.name}")
    files = {path.name for path in folder.iterdir()}
    assert set(steps[:renamed]) == {f"flush {name}" for name in (*files, unfinished(folder).name)}
    assert steps[renamed + 1] == f"flush {folder.parent.name}"
    # The folder now exists, so each file is replaced, and last the file that marks it as a run.
    steps.clear()
    write(tmp_path, result)
    replaced = [moment for moment in steps if moment.startswith("rename")]
    assert {f"rename to {name}" for name in files} == set(replaced[:-1])
    assert replaced[-2:] == [f"rename to {RUN}", f"rename to {LATEST}"]
    first = steps.index(replaced[0])
    assert {f"flush {name}" for name in files} <= set(steps[:first])
    assert steps[steps.index(f"rename to {RUN}") + 1] == f"flush {folder.name}"


@needs_proc
def test_a_file_is_flushed_before_it_is_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = flushes_and_renames(monkeypatch)
    path = tmp_path / "out.json"
    with whole_file(path) as stream:
        stream.write("all")
    assert steps == [
        f"flush {unfinished(path).name}",
        "rename to out.json",
        f"flush {tmp_path.name}",
    ]


def flushes_and_renames(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a growing list of the flushes and renames of files and folders."""
    steps: list[str] = []
    flush, replace, rename = os.fsync, Path.replace, Path.rename

    def flushed(descriptor: int) -> None:
        flush(descriptor)
        steps.append(f"flush {Path(f'/proc/self/fd/{descriptor}').readlink().name}")

    def renamed(do: Callable[[Path, Path], Path]) -> Callable[[Path, Path], Path]:
        def note(path: Path, target: Path) -> Path:
            steps.append(f"rename to {target.name}")
            return do(path, target)

        return note

    monkeypatch.setattr(os, "fsync", flushed)
    monkeypatch.setattr(Path, "replace", renamed(replace))
    monkeypatch.setattr(Path, "rename", renamed(rename))
    return steps


def test_a_failed_write_leaves_no_file(tmp_path: Path) -> None:
    result = run_result()
    with pytest.raises(TypeError):
        write_run(tmp_path, result, {"reproduce": object()}, "")
    assert not list((tmp_path / "loss").iterdir())
    assert not (tmp_path / "latest").exists()


def test_without_symbolic_links_latest_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError("not permitted")

    monkeypatch.setattr(Path, "symlink_to", refuse)
    folder = write(tmp_path, run_result())
    assert (tmp_path / "latest").read_text(encoding="utf-8") == f"loss/{folder.name}\n"


def test_a_file_appears_only_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.write_text("before", encoding="utf-8")
    with whole_file(path) as stream:
        stream.write("after")
        stream.flush()
        assert path.read_text(encoding="utf-8") == "before"
    assert path.read_text(encoding="utf-8") == "after"
    writer = whole_file(path)
    writer.__enter__().write("half")
    writer.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert path.read_text(encoding="utf-8") == "after"
    assert [file.name for file in tmp_path.iterdir()] == ["out.json"]
