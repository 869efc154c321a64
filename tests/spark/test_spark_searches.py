"""Trials and searches on Spark end with the same answer as in a pool of processes."""

import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cli.advise.test_advise_command import CLUSTER, POWER
from tests.conftest import kill_after_test
from tests.patience import PATIENCE_S
from tests.plain_environment import PYTHONPATH, plain_environment

ADVISE = ("advise", "shop.yaml", "--fault-model", "power.yaml", "--runs", "4", "--allow", "reordered")
ASSESS = ("assess", "shop.yaml", "--runs", "2")


def harrow(processes: ExitStack, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "harrow", *words],
        cwd=folder,
        env={**plain_environment(), "PYTHONPATH": PYTHONPATH},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    kill_after_test(processes, process)
    stdout, stderr = process.communicate(timeout=PATIENCE_S)
    return subprocess.CompletedProcess(words, process.returncode, stdout, stderr)


@pytest.mark.parametrize("words", [ADVISE, ASSESS], ids=["advise", "assess"])
def test_spark_gives_the_answer_of_local_processes(
    processes: ExitStack, tmp_path: Path, words: tuple[str, ...]
) -> None:
    (tmp_path / "shop.yaml").write_text(CLUSTER, encoding="utf-8")
    (tmp_path / "power.yaml").write_text(POWER, encoding="utf-8")
    local = harrow(processes, tmp_path, *words, "-j", "1")
    on_spark = harrow(processes, tmp_path, *words, "--engine", "spark", "--master", "local[2]")
    assert on_spark.returncode == local.returncode == 0, on_spark.stderr
    assert on_spark.stdout == local.stdout
    assert "harrow: starting Spark (local[2])\n" in on_spark.stderr
    assert "harrow: harrow on Spark's executors: " in on_spark.stderr
    assert "lost" not in on_spark.stderr
