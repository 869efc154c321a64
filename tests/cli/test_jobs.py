"""Parallel runs print the same output as sequential runs."""

import re
from pathlib import Path

import pytest

from tests.cli.conftest import Harrow

WALL = re.compile(r"(?<= in )[\d.]+ m?s$", re.MULTILINE)


@pytest.mark.parametrize("output_format", ["table", "ndjson"])
def test_the_number_of_jobs_does_not_change_the_output(harrow: Harrow, output_format: str) -> None:
    words = ("run", "permitted.yaml", "endless.yaml", "--no-results", "--format", output_format)
    outputs = []
    # The second campaign takes long enough for a process to run its third seed.
    for jobs in ("1", "3"):
        ended = harrow(*words, "--seeds", "12", "-j", jobs)
        assert ended.returncode == 0, ended.stderr
        outputs.append(re.sub(r'"wall_ms":\d+', "", WALL.sub("", ended.stdout)))
    assert outputs[0] == outputs[1]
    assert "12" in outputs[0]


@pytest.mark.parametrize(
    "words",
    [
        "run calm.yaml --engine hypothesis -j 2",
        "run calm.yaml --target kafka:2.4.1 -j 2",
        "regress --add calm.yaml corpus -j 2",
        "run calm.yaml -j 0",
    ],
)
def test_jobs_is_refused_where_runs_are_sequential(harrow: Harrow, folder: Path, words: str) -> None:
    ended = harrow(*words.split())
    assert ended.returncode == 2
    assert "--jobs" in ended.stderr
    assert not (folder / "results").exists()
