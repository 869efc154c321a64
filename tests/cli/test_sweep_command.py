"""`harrow sweep` in a pool of processes: its output, files and exit codes."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from harrow.cli.commands.sweep import is_for_spark
from tests.cli.conftest import Harrow
from tests.conftest import kill_after_test
from tests.patience import PATIENCE_S

SMALL = """
name: small
kafka: "2.4"
cluster: {brokers: 3, topics: [{name: t, replication_factor: 3}]}
workload: {duration: 5s, producers: [{name: p, rate: 4/s, settings: {enable.idempotence: false}}]}
faults:
  - rate: 30/m
    do: {broker_crash: {broker: leader of t-0, restart_after: 500ms}}
"""
BROKEN = f"{SMALL}behaviours: {{hw_waits_for_whole_isr: false}}\n"


@pytest.fixture
def small(folder: Path) -> Path:
    """Return a folder with a campaign that sometimes loses a record."""
    (folder / "small.yaml").write_text(SMALL, encoding="utf-8")
    (folder / "broken.yaml").write_text(BROKEN.replace("name: small", "name: broken"), encoding="utf-8")
    return folder


def rows(folder: Path) -> list[dict[str, object]]:
    """Return the rows of a sweep by cell and seed."""
    unsorted = [
        row for part in folder.glob("runs/*/*.parquet") for row in pq.ParquetFile(part).read().to_pylist()
    ]
    return sorted(unsorted, key=lambda row: (row["cell"], row["seed"]))


def test_a_sweep_prints_a_rate_for_each_cell_of_its_grid(harrow: Harrow, small: Path) -> None:
    ended = harrow(
        "sweep", "small.yaml", "--seeds", "0..40", "--vary", "acks=1,all", "--engine", "process", "--out", "s"
    )
    assert ended.returncode == 0, ended.stderr
    assert len(rows(small / "s")) == 80
    assert "80 runs in 2 cells" in ended.stdout
    *_, heading = [line for line in ended.stdout.splitlines() if line.startswith("  acks  ")]
    assert heading.split()[-4:] == ["rate", "95%", "interval", "runs"]
    for settings in ("  1   ", "  all   "):
        rates = [line for line in ended.stdout.splitlines() if line.startswith(settings)]
        assert rates
        assert any(rate.endswith(" of 40") and "[" in rate for rate in rates)
    assert "\x1b" not in ended.stdout + ended.stderr
    assert "the rows are in s" in ended.stderr


def test_failures_are_grouped_and_can_be_run_again(harrow: Harrow, small: Path) -> None:
    ended = harrow(
        "sweep", "broken.yaml", "--seeds", "0..30", "--engine", "process", "--out", "s", "--format", "json"
    )
    assert ended.returncode == 1, ended.stderr
    document = json.loads(ended.stdout)
    assert (document["schema"], document["verdict"]) == ("harrow.sweep/1", "violated")
    group = document["failures"][0]
    command = group["earliest"]["reproduce"].split()
    assert command[:3] == ["harrow", "run", "broken.yaml"]
    assert harrow(*command[1:], "--no-results").returncode == 1
    file = small / "s" / "failures" / group["signature"] / "campaign.yaml"
    seed = str(group["earliest"]["seed"])
    assert harrow("run", str(file), "--seed", seed, "--no-results").returncode == 1
    assert sum(each["failures"] for each in document["failures"]) == document["outcomes"]["unexpected"]


def test_the_shortest_failure_is_shrunk_on_request(harrow: Harrow, small: Path) -> None:
    ended = harrow(
        "sweep",
        "broken.yaml",
        "--seeds",
        "0..6",
        "--engine",
        "process",
        "--out",
        "s",
        "--shrink",
        "--shrink-time",
        "4s",
    )
    assert ended.returncode == 1, ended.stderr
    assert "shrunk    s/failures/" in ended.stdout
    files = list((small / "s" / "failures").glob("*/campaign.yaml"))
    assert any("# Shrunk by harrow" in file.read_text(encoding="utf-8") for file in files)


def test_a_report_prints_the_same_as_its_sweep(harrow: Harrow, small: Path) -> None:
    first = harrow("sweep", "broken.yaml", "--seeds", "0..20", "--engine", "process", "--out", "s")
    again = harrow("sweep", "--report", "s", "--engine", "process")
    assert again.returncode == first.returncode == 1
    assert again.stdout == first.stdout


def test_sweeps_are_written_below_a_folder_of_results(harrow: Harrow, small: Path) -> None:
    assert (
        harrow("sweep", "small.yaml", "--seeds", "0..2", "--engine", "process", "--results", "r").returncode
        == 0
    )
    (swept,) = (small / "r").iterdir()
    assert [row["seed"] for row in rows(swept)] == [0, 1]


def test_a_folder_is_swept_again_only_with_resume(harrow: Harrow, small: Path) -> None:
    words = ("sweep", "small.yaml", "--engine", "process", "--out", "s", "--seeds")
    assert harrow(*words, "0..4").returncode == 0
    refused = harrow(*words, "0..4")
    assert refused.returncode == 2
    assert "s already has this sweep: --resume continues it" in refused.stderr
    assert harrow(*words, "0..9", "--resume").returncode == 0
    assert [row["seed"] for row in rows(small / "s")] == list(range(9))
    fewer = harrow(*words, "0..2", "--resume")
    assert (fewer.returncode, fewer.stdout) == (2, "")
    other = harrow(*words, "0..9", "--resume", "--set", "acks=1")
    assert other.returncode == 2
    assert "s has another sweep" in other.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("small.yaml",), "give the seeds"),
        (("--seeds", "0..3"), "give a campaign"),
        (("small.yaml", "--seeds", "3..3"), "there is no seed"),
        (
            ("small.yaml", "--seeds", "0..3", "--vary", "acks"),
            "--vary: `acks` is not of the form key=value,value",
        ),
        (("small.yaml", "--seeds", "0..3", "--vary", "acks=1,7"), "--vary: acks=7: acks: "),
        (
            ("small.yaml", "--seeds", "0..3", "--vary", "acks=1", "--vary", "acks=all"),
            "give all its values in one option",
        ),
        (("small.yaml", "--seeds", "0..3", "--variant", "nobody"), "no campaign here has a variant `nobody`"),
        (("nowhere.yaml", "--seeds", "0..3"), "nowhere.yaml"),
        (("wrong.yaml", "--seeds", "0..3"), "wrong.yaml:2:8"),
        (
            ("small.yaml", "--seeds", "0..3", "--engine", "process", "--master", "local"),
            "has no meaning with --engine process",
        ),
        (("small.yaml", "--seeds", "0..3", "--master", "local", "--remote", "sc://x"), "not both"),
        (("--report", "nowhere"), "nowhere: not a sweep"),
        (("small.yaml", "--seeds", "0..3", "--by", ""), "--by ``: no cell has this key"),
        (("small.yaml", "--seeds", "0..3", "--by", "kafka,"), "--by ``: no cell has this key"),
        (("small.yaml", "--report", "s"), "omit campaigns, seeds, settings and folders"),
    ],
)
def test_wrong_usage_of_sweep_is_reported(
    harrow: Harrow, small: Path, words: tuple[str, ...], message: str
) -> None:
    ended = harrow("sweep", *words)
    assert ended.returncode == 2
    assert message in " ".join(ended.stderr.split())
    assert "Traceback" not in ended.stderr
    assert ended.stdout == ""


def test_a_sweep_without_java_runs_in_a_pool_unless_spark_is_demanded(harrow: Harrow, small: Path) -> None:
    no_java = {"JAVA_HOME": str(small / "no-java")}
    words = ("sweep", "small.yaml", "--seeds", "0..3")
    refused = harrow(*words, "--engine", "spark", **no_java)
    assert refused.returncode == 2
    assert refused.stderr.splitlines() == [
        "harrow: Java is not installed: Spark needs version 17 or newer (set JAVA_HOME or PATH)"
    ]
    by_itself = harrow(*words, **no_java)
    assert by_itself.returncode == 0
    assert by_itself.stderr.startswith("harrow: no Spark (Java is not installed")
    assert "running in a pool of processes" in by_itself.stderr


def test_spark_sql_reads_only_large_sweeps() -> None:
    assert [is_for_spark(state) for state in ({}, {"rows": 999_999}, {"rows": 1_000_000})] == [
        False,
        False,
        True,
    ]


def test_an_old_java_is_refused_for_spark(harrow: Harrow, small: Path) -> None:
    java = small / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_392\"' >&2\n")
    java.chmod(0o755)
    ended = harrow(
        "sweep", "small.yaml", "--seeds", "0..3", "--engine", "spark", JAVA_HOME=str(small / "jdk")
    )
    assert ended.returncode == 2
    assert "is version 8, Spark needs 17 or newer" in ended.stderr


def start(
    processes: ExitStack, folder: Path, environment: dict[str, str], *words: str
) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "harrow", "sweep", *words],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Its own session, as for a job of a shell, so that signals reach only it.
        start_new_session=True,
    )
    return kill_after_test(processes, process)


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    while not condition():
        assert process.poll() is None, process.stderr and process.stderr.read()
        time.sleep(0.05)


LONG = ("--seeds", "0..4000", "--engine", "process", "--out", "s")


def parts(folder: Path) -> list[Path]:
    return list(folder.glob("s/runs/*/part-*.parquet"))


def test_an_interrupt_keeps_the_finished_entries(
    processes: ExitStack, small: Path, environment: dict[str, str], harrow: Harrow
) -> None:
    process = start(processes, small, environment, "small.yaml", *LONG)
    wait_for(lambda: len(parts(small)) > 0, process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert "finished runs are written; to continue: harrow sweep small.yaml" in err
    assert "--resume" in err
    assert "not complete" in out
    assert "Traceback" not in err
    done = len(rows(small / "s"))
    assert 0 < done < 4_000
    assert harrow("sweep", "--report", "s", "--engine", "process").returncode == 0


def child_pids(parent_pid: int) -> list[int]:
    pids = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = status.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == parent_pid:
            pids.append(int(status.parent.name))
    return pids


def descendant_pids(parent_pid: int) -> list[int]:
    return [pid for child in child_pids(parent_pid) for pid in (child, *descendant_pids(child))]


def worker_pids(parent_pid: int) -> list[int]:
    """Return the children of the fork server, which live as long as the sweep."""
    return [pid for child in child_pids(parent_pid) for pid in child_pids(child)]


linux = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")


def fork_server(parent_pid: int) -> list[int]:
    return [pid for pid in child_pids(parent_pid) if child_pids(pid)]


@linux
@pytest.mark.parametrize("victims", [worker_pids, fork_server])
def test_a_killed_worker_or_fork_server_costs_no_row(
    processes: ExitStack, small: Path, environment: dict[str, str], victims: Callable[[int], list[int]]
) -> None:
    words = ("small.yaml", "--seeds", "0..600", "--engine", "process", "--out", "s")
    process = start(processes, small, environment, *words)
    wait_for(lambda: len(worker_pids(process.pid)) > 0, process)
    os.kill(victims(process.pid)[-1], signal.SIGKILL)
    _, err = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, err
    assert [row["seed"] for row in rows(small / "s")] == list(range(600))
    assert {row["verdict"] for row in rows(small / "s")} <= {"held", "permitted", "inconclusive"}


@linux
def test_a_killed_driver_can_resume_and_leaves_no_process_behind(
    processes: ExitStack, small: Path, environment: dict[str, str], harrow: Harrow
) -> None:
    words = ("small.yaml", "--seeds", "0..1200", "--engine", "process", "--out", "s")
    process = start(processes, small, environment, *words)
    wait_for(lambda: len(parts(small)) > 0, process)
    orphans = descendant_pids(process.pid)
    process.kill()
    process.communicate()
    before = len(rows(small / "s"))
    assert 0 < before < 1_200
    ended = harrow("sweep", *words, "--resume")
    assert ended.returncode == 0, ended.stderr
    assert [row["seed"] for row in rows(small / "s")] == list(range(1_200))
    deadline_s = time.monotonic() + PATIENCE_S
    while any(Path(f"/proc/{pid}").exists() for pid in orphans) and time.monotonic() < deadline_s:
        time.sleep(0.1)
    assert [pid for pid in orphans if Path(f"/proc/{pid}").exists()] == []
