"""Sweeps on a real Spark give the rows of local processes, even if processes are killed.

Spark is embedded, has separate executors, or is reached through Spark Connect.
"""

import os
import re
import signal
import subprocess
import sys
import sysconfig
import time
import venv
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from harrow.compilation import compilation
from tests.patience import PATIENCE_S
from tests.plain_environment import PYTHONPATH, plain_environment
from tests.spark.sweep_processes import (
    CLUSTER,
    SMALL,
    descendants_of,
    kill_with_children_after_test,
    process_table,
    python_workers,
    start,
    sweep,
    wait_for,
)

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a campaign outside the checkout."""
    (tmp_path / "small.yaml").write_text(SMALL, encoding="utf-8")
    return tmp_path


def rows(folder: Path) -> list[dict[str, Any]]:
    """Return the rows of a sweep by key, without times."""
    all_rows = [
        row for part in folder.glob("runs/*/*.parquet") for row in pq.ParquetFile(part).read().to_pylist()
    ]
    for row in all_rows:
        del row["wall_us"]
    return sorted(all_rows, key=lambda row: (row["cell"], row["seed"]))


def seeds(folder: Path) -> list[int]:
    return [row["seed"] for row in rows(folder)]


def without_times(report: str) -> str:
    """Return a report without times, engines and repeated runs.

    Timing decides which worker repeats a run.
    """
    return re.sub(r"(?m)^(small: .*simulated seconds.*|(spark|process), .*|.* repeated.*)$", "", report)


GRID = ("--seeds", "0..40", "--vary", "acks=1,all")


@pytest.fixture(scope="module")
def results_of_processes(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[dict[str, Any]], str]:
    """Return the rows and the report of the grid from a pool of processes."""
    folder = tmp_path_factory.mktemp("processes")
    (folder / "small.yaml").write_text(SMALL, encoding="utf-8")
    with ExitStack() as processes:
        report = sweep(processes, folder, "s", *GRID, "--engine", "process")
    return rows(folder / "s"), report


def test_embedded_spark_gives_the_same_rows_and_report_without_files_of_java(
    processes: ExitStack, folder: Path, results_of_processes: tuple[list[dict[str, Any]], str]
) -> None:
    """The folder may have any name. Spark SQL and the documented query also agree with DuckDB."""
    out = "s[1]{a}"
    (folder / "tmp").mkdir()
    words = ("small.yaml", "--out", out, *GRID, "--engine", "spark", "--workers", "2")
    process = start(processes, folder, *words, TMPDIR=str(folder / "tmp"))
    report, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1, stderr
    expected_rows, expected_report = results_of_processes
    assert rows(folder / out) == expected_rows
    assert len(expected_rows) == 80
    assert {row["verdict"] for row in expected_rows} >= {"violated"}
    assert "queried with DuckDB" in report
    assert without_times(report.replace(out, "s")) == without_times(expected_report)
    assert all(line.startswith("harrow: ") for line in stderr.splitlines()), stderr
    assert "starting Spark (local[2])" in stderr
    # The core that this process runs is also right for workers with the same Python.
    assert f"harrow on Spark's executors: {compilation()[0]}\n" in stderr
    assert (folder / out / "spark.log").stat().st_size > 0
    assert {path.name for path in folder.iterdir()} == {"small.yaml", out, "tmp"}
    query = "\n".join(
        block
        for block in re.findall(
            r"```python\n(.*?)```", (ROOT / "docs" / "how-to" / "query-sweeps.md").read_text(), re.DOTALL
        )
        if "spark." in block
    )
    (folder / "sweep").symlink_to(folder / out)
    script = (
        "from pyspark.sql import SparkSession\n"
        "spark = SparkSession.builder.master('local[1]').config('spark.ui.enabled', 'false').getOrCreate()\n"
        + query.replace("results/sweep-1f0c35ab-5d07c3e1", "sweep")
        + "\nimport sys; from harrow.cli.main import main\n"
        "print('Again:'); sys.argv = ['harrow', 'sweep', '--report', 's[1]{a}', '--engine', 'spark']; main()\n"
    )
    environment = {**plain_environment(), "PYTHONPATH": PYTHONPATH}
    completed = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 1, completed.stderr
    again = completed.stdout.partition("Again:\n")[2]
    assert "queried with Spark SQL" in again
    assert without_times(again.replace(out, "s")) == without_times(expected_report)
    rule = "isr-holds-committed"
    broken = [row["cell"] for row in expected_rows if rule in {result["rule"] for result in row["rules"]}]
    count = broken.count("base acks=1")
    assert re.search(rf"\| +base acks=1\|{rule}\| +{count}\|", completed.stdout), completed.stdout
    assert re.search(rf"\|[^|]+\| +1\|{rule}\| +{count}\|", completed.stdout), completed.stdout


def bare_python(folder: Path) -> str:
    """Return a Python with pyarrow and its dependencies, but without harrow."""
    venv.create(folder, with_pip=False, symlinks=True)
    ours = Path(sysconfig.get_paths()["purelib"])
    theirs = next(folder.glob("lib/python*/site-packages"))
    for name in (
        "pyarrow",
        "pyarrow.libs",
        "numpy",
        "numpy.libs",
        "pandas",
        "pytz",
        "dateutil",
        "six.py",
        "tzdata",
        "pydantic_core",
        "typing_extensions.py",
    ):
        if (ours / name).exists():
            (theirs / name).symlink_to(ours / name)
    python = str(folder / "bin" / "python")
    script = "import pyarrow\ntry: import harrow\nexcept ImportError: print('bare')"
    completed = subprocess.run(
        [python, "-c", script], cwd="/", env={}, capture_output=True, text=True, check=True
    )
    assert completed.stdout == "bare\n"
    return python


def test_spark_connect_gives_the_same_rows(
    processes: ExitStack, folder: Path, results_of_processes: tuple[list[dict[str, Any]], str]
) -> None:
    process = start(processes, folder, "small.yaml", "--out", "s", *GRID, "--remote", "local[2]")
    report, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1, stderr
    assert rows(folder / "s") == results_of_processes[0]
    assert "queried with DuckDB" in report
    assert f"harrow on Spark's executors: {compilation()[0]}\n" in stderr


def test_an_executor_without_its_dependencies_is_reported_at_once(
    processes: ExitStack, folder: Path, tmp_path: Path
) -> None:
    venv.create(tmp_path / "empty", with_pip=False, symlinks=True)
    python = str(tmp_path / "empty" / "bin" / "python")
    words = ("small.yaml", "--out", "s", "--seeds", "0..3", "--engine", "spark", "--master", "local[1]")
    process = start(processes, folder, *words, PYSPARK_PYTHON=python, PYSPARK_DRIVER_PYTHON=sys.executable)
    stdout, stderr = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, stdout) == (2, "")
    assert "Spark's executors cannot run harrow: ModuleNotFoundError: No module named" in stderr
    assert "Traceback" not in stderr


# Killed processes


RUNS = 600
LONG = ("--seeds", f"0..{RUNS}", "--engine", "spark")


def part_count(folder: Path) -> int:
    return len(list(folder.glob("s/runs/*/part-*.parquet")))


@pytest.fixture(scope="module")
def expected_rows_of_long_sweep(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Return the rows of the long sweep from a pool of processes without kills."""
    folder = tmp_path_factory.mktemp("expected_rows_of_long_sweep")
    (folder / "small.yaml").write_text(SMALL, encoding="utf-8")
    with ExitStack() as processes:
        sweep(processes, folder, "s", "--seeds", f"0..{RUNS}", "--engine", "process")
    return rows(folder / "s")


def assert_complete(
    folder: Path, process: subprocess.Popen[str], expected_rows_of_long_sweep: list[dict[str, Any]]
) -> None:
    _, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1, stderr
    assert [row["seed"] for row in expected_rows_of_long_sweep] == list(range(RUNS))
    assert rows(folder / "s") == expected_rows_of_long_sweep


def test_executors_need_only_python_and_pyarrow_and_a_killed_one_costs_no_row(
    processes: ExitStack,
    linux: None,
    folder: Path,
    tmp_path: Path,
    expected_rows_of_long_sweep: list[dict[str, Any]],
) -> None:
    """The driver imports the checkout by its own path, which executors do not inherit."""
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"import sys; sys.path.insert(0, {str(ROOT / 'src')!r}); sys.argv[0] = 'harrow'; from harrow.cli.main import main; main()",
            *("sweep", "small.yaml", "--out", "s", *LONG, "--master", CLUSTER),
        ],
        cwd=folder,
        env={
            **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
            "PYSPARK_PYTHON": bare_python(tmp_path / "bare"),
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    kill_with_children_after_test(processes, process)
    wait_for(lambda: part_count(folder), process)
    executors = [
        p for p, command in descendants_of(process.pid).items() if "CoarseGrainedExecutorBackend" in command
    ]
    assert len(executors) >= 2
    os.kill(executors[0], signal.SIGKILL)
    assert_complete(folder, process, expected_rows_of_long_sweep)


def test_a_killed_driver_can_be_resumed_and_then_a_killed_python_worker_costs_no_row(
    processes: ExitStack, linux: None, folder: Path, expected_rows_of_long_sweep: list[dict[str, Any]]
) -> None:
    words = ("small.yaml", "--out", "s", *LONG, "--master", "local[2]")
    process = start(processes, folder, *words)
    wait_for(lambda: part_count(folder), process)
    process.kill()
    process.communicate()
    done = seeds(folder / "s")
    assert 0 < len(done) < RUNS
    assert done == sorted(set(done))
    again = start(processes, folder, *words, "--resume")
    os.kill(max(wait_for(lambda: python_workers(again.pid), again)), signal.SIGKILL)
    assert_complete(folder, again, expected_rows_of_long_sweep)


def test_an_interrupt_keeps_finished_runs(processes: ExitStack, folder: Path) -> None:
    process = start(processes, folder, "small.yaml", "--out", "s", *LONG, "--master", "local[2]")
    wait_for(lambda: part_count(folder), process)
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, stderr
    assert "finished runs are written; to continue: harrow sweep" in stderr
    assert "Traceback" not in stderr
    assert "not complete" in stdout
    assert 0 < len(seeds(folder / "s")) < RUNS


def test_java_that_dies_ends_the_sweep_in_one_line(processes: ExitStack, linux: None, folder: Path) -> None:
    process = start(processes, folder, "small.yaml", "--out", "s", *LONG, "--master", "local[2]")
    wait_for(lambda: part_count(folder), process)
    (java,) = [
        pid for pid, command in descendants_of(process.pid).items() if "org.apache.spark.deploy" in command
    ]
    os.kill(java, signal.SIGKILL)
    stdout, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 1, stderr  # because some runs failed before Spark was lost
    assert "harrow: lost Spark: it no longer responds" in stderr
    assert "finished runs are written; to continue: harrow sweep" in stderr
    assert "Traceback" not in stderr
    assert "not complete" in stdout
    assert "queried with DuckDB" in stdout
    before = seeds(folder / "s")
    assert before == sorted(set(before))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("--master", "spark://127.0.0.1:1"),
            "Spark at spark://127.0.0.1:1 cannot be reached: 127.0.0.1:1: ",
        ),
        (("--remote", "sc://127.0.0.1:1/;token=secret"), "token=... cannot be reached: 127.0.0.1:1: "),
        (("--master", "local[x]"), "Could not parse Master URL"),
        (("--master", "http://127.0.0.1"), "Master must either be yarn or start with spark, k8s, or local"),
        (("--master", "k8s://https://127.0.0.1:1"), "cannot be reached: 127.0.0.1:1: "),
        (("--master", "yarn"), "either HADOOP_CONF_DIR or YARN_CONF_DIR must be set"),
        (("--remote", "http://127.0.0.1"), "The URL must start with 'sc://'"),
    ],
)
def test_an_unreachable_spark_is_reported_in_one_line(
    processes: ExitStack, folder: Path, words: tuple[str, ...], message: str
) -> None:
    process = start(processes, folder, "small.yaml", "--out", "s", "--seeds", "0..3", *words)
    stdout, stderr = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, stdout) == (2, "")
    starting, failed = stderr.splitlines()
    assert starting.startswith("harrow: starting Spark (")
    assert message in failed
    assert "secret" not in stderr


def test_an_interrupt_while_java_starts_leaves_no_processes(
    processes: ExitStack, linux: None, folder: Path
) -> None:
    process = start(processes, folder, "small.yaml", "--out", "s", *LONG, "--master", "local[1]")
    java = wait_for(
        lambda: [pid for pid, command in descendants_of(process.pid).items() if "SparkSubmit" in command],
        process,
    )
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr
    deadline_s = time.monotonic() + PATIENCE_S
    while remaining := {pid for pid in java if "SparkSubmit" in process_table().get(pid, (0, ""))[1]}:
        assert time.monotonic() < deadline_s, remaining
        time.sleep(0.1)
