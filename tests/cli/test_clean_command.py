"""`clean` removes only old runs."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Harrow


@pytest.fixture
def results(harrow: Harrow, folder: Path) -> Path:
    """Return the results of five runs of one campaign, oldest first, and of another campaign."""
    assert harrow("run", "failing.yaml", "--quiet").returncode == 1
    assert harrow("run", "calm.yaml", "--seeds", "0..5").returncode == 0
    for path in (folder / "results").glob("calm/*/run.json"):
        seed = json.loads(path.read_text(encoding="utf-8"))["seed"]
        os.utime(path, (1_000_000 + seed, 1_000_000 + seed))
    return folder / "results"


def seeds(results: Path) -> list[int]:
    return sorted(int(path.name.split("-")[1]) for path in (results / "calm").glob("*-*"))


def test_clean_keeps_the_newest_runs_of_each_campaign(harrow: Harrow, results: Path) -> None:
    ended = harrow("clean", "--keep", "2")
    assert ended.returncode == 0
    assert ended.stdout == ""
    assert ended.stderr.startswith("harrow: 3 runs removed (")
    assert ended.stderr.endswith(" kB), 3 kept\n")
    assert seeds(results) == [3, 4]
    assert len(list((results / "failing").iterdir())) == 1
    assert (results / "latest" / "run.json").is_file()
    assert harrow("clean", "--keep", "2").stderr == "harrow: 0 runs removed (0 bytes), 3 kept\n"


def test_a_dry_run_removes_nothing(harrow: Harrow, results: Path) -> None:
    ended = harrow("clean", "--keep", "1", "--dry-run")
    assert ended.returncode == 0
    named = ended.stdout.splitlines()
    assert [name.split("-")[1] for name in named] == ["0", "1", "2", "3"]
    assert all((results.parent / name / "run.json").is_file() for name in named)
    assert "4 runs would be removed" in ended.stderr


def test_clean_keeps_the_run_of_latest(harrow: Harrow, results: Path) -> None:
    oldest = min(results.glob("calm/*"), key=lambda path: (path / "run.json").stat().st_mtime)
    (results / "latest").unlink()
    (results / "latest").symlink_to(oldest.relative_to(results))
    harrow("clean", "--keep", "1")
    assert seeds(results) == [0, 4]
    assert (results / "latest" / "run.json").is_file()


@pytest.mark.parametrize("link", [True, False])
def test_keep_0_removes_everything(harrow: Harrow, results: Path, link: bool) -> None:
    if not link:
        target = (results / "latest").readlink()
        (results / "latest").unlink()
        (results / "latest").write_text(f"{target}\n", encoding="utf-8")
    assert harrow("clean", "--keep", "0").returncode == 0
    assert list(results.iterdir()) == []


def test_clean_removes_only_runs(harrow: Harrow, results: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (results / "calm").rename(elsewhere / "calm")
    (results / "linked").symlink_to(elsewhere / "calm")
    (run,) = (results / "failing").iterdir()
    (results / "failing" / "link").symlink_to(run)
    (run / "notes.md").write_text("mine", encoding="utf-8")
    other = results / "failing" / "other"
    other.mkdir()
    (other / "run.json").write_text('{"scripts": {}}', encoding="utf-8")
    broken = results / "failing" / "broken"
    broken.mkdir()
    (broken / "run.json").write_text("{", encoding="utf-8")
    (results / "failing" / ".hidden").mkdir()
    (results / "README.md").write_text("mine", encoding="utf-8")
    before = sorted(tmp_path.rglob("*"))
    ended = harrow("clean", "--keep", "0", "--sweeps", "--format", "json")
    document = json.loads(ended.stdout)
    assert (document["schema"], document["removed"]) == ("harrow.clean/1", [])
    assert sorted(Path(left["path"]).name for left in document["left"]) == sorted(
        ["broken", "other", run.name]
    )
    assert sorted(tmp_path.rglob("*")) == before


def test_clean_keeps_sweeps_without_the_option(harrow: Harrow, folder: Path) -> None:
    for seed in (2, 3):
        arguments = ("sweep", "calm.yaml", "--seeds", f"0..{seed}", "--engine", "process")
        assert harrow(*arguments, "--out", f"results/sweep-{seed}").returncode == 0
    os.utime(folder / "results" / "sweep-2" / "sweep.json", (1_000_000, 1_000_000))
    assert harrow("clean", "--keep", "1").stderr == "harrow: 0 runs removed (0 bytes), 0 kept\n"
    state = folder / "results" / "sweep-2" / "sweep.json"
    text = state.read_text(encoding="utf-8")
    state.write_text(text.replace('"complete": true', '"complete": false'), encoding="utf-8")
    assert "not complete" in harrow("clean", "--keep", "0", "--sweeps", "--dry-run").stderr
    state.write_text(text, encoding="utf-8")
    os.utime(state, (1_000_000, 1_000_000))
    ended = harrow("clean", "--keep", "1", "--sweeps")
    assert ended.stderr.startswith("harrow: 0 runs and 1 sweep removed (")
    assert [path.name for path in (folder / "results").iterdir()] == ["sweep-3"]


def test_clean_without_results_succeeds(harrow: Harrow) -> None:
    ended = harrow("clean")
    assert ended.returncode == 0
    assert "the folder results does not exist" in ended.stderr


def ended_process() -> int:
    """Return the id of an ended process."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    return ended.pid


def test_clean_removes_leftovers_of_killed_processes_but_not_of_live_ones(
    harrow: Harrow, results: Path
) -> None:
    (whole, *_) = sorted((results / "calm").glob("*-*"))
    dead_pid = ended_process()
    leftover = results / "calm" / f".12345678-0-0.2.0.{dead_pid}"
    shutil.copytree(whole, leftover)
    foreign = results / "calm" / f".87654321-0-0.2.0.{dead_pid}"
    foreign.mkdir()
    (foreign / "mine.txt").touch()
    living = results / "calm" / f".12345678-1-0.2.0.{os.getpid()}"
    living.mkdir()
    assert harrow("clean", "--dry-run").stdout == f"results/calm/{leftover.name}\n"
    assert harrow("clean").stderr.startswith("harrow: 1 run removed (")
    assert (leftover.exists(), foreign.exists(), living.exists()) == (False, True, True)
