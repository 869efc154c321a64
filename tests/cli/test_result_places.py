"""Unwritable places for results are refused before the first run."""

from pathlib import Path

import pytest

from tests.cli.conftest import Harrow

ADDRESSES = ("s3a://bucket/folder", "gs://bucket/x", "hdfs://name:9000/x", "FILE:///tmp/x")
OPTIONS = {
    "sweep calm.yaml --seeds 0..2 --engine process --results": "--results",
    "conform calm.yaml --results": "--results",
    "run calm.yaml --output": "--output",
    "shrink failing.yaml --seed 0 -o": "--output",
}


@pytest.mark.parametrize(("command", "option"), OPTIONS.items())
@pytest.mark.parametrize("address", ADDRESSES)
def test_an_address_is_refused_as_a_folder(
    harrow: Harrow, folder: Path, command: str, option: str, address: str
) -> None:
    before = sorted(folder.iterdir())
    ended = harrow(*command.split(), address, COLUMNS="300")
    assert ended.returncode == 2
    assert option in ended.stderr
    assert "is an address" in ended.stderr
    assert ended.stdout == ""
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("command", "refusal"),
    [
        (
            "sweep calm.yaml --seeds 0..2 --engine process --out",
            "nothing was run: s3://bucket/x cannot be written: ",
        ),
        ("sweep --report", "s3://bucket/x/sweep.json: cannot be read: "),
        ("run calm.yaml --results", "nothing was run: s3://bucket/x cannot be written: "),
        ("regress", "s3://bucket/x: cannot be read: "),
        ("regress --add failing.yaml", "to server: s3://bucket/x"),
        ("replay", "s3a://bucket/x: cannot be read: "),
    ],
)
def test_a_storage_that_cannot_be_reached_is_refused_in_one_line(
    harrow: Harrow, command: str, refusal: str
) -> None:
    reach = {"AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    ended = harrow(*command.split(), "s3a://bucket/x", COLUMNS="300", **reach)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert refusal in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_the_refusal_of_a_file_address_names_the_path_to_give(harrow: Harrow) -> None:
    ended = harrow("conform", "calm.yaml", "--results", "file:///tmp/some/where", COLUMNS="300")
    assert "give the path instead: /tmp/some/where" in ended.stderr


@pytest.mark.parametrize(
    "command",
    [
        "run calm.yaml --results",
        "run calm.yaml --engine hypothesis --max-examples 1 --results",
        "sweep calm.yaml --seeds 0..2 --engine process --out",
        "sweep calm.yaml --seeds 0..2 --engine process --results",
    ],
)
def test_a_results_folder_that_cannot_be_created_is_refused_before_the_first_run(
    harrow: Harrow, command: str
) -> None:
    ended = harrow(*command.split(), "calm.yaml/below/a/file")
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert ended.stderr.startswith("harrow: nothing was run: calm.yaml/below/a/file")
    assert ended.stderr.count("\n") == 1


def test_a_run_without_results_needs_no_folder_for_them(harrow: Harrow) -> None:
    assert harrow("run", "calm.yaml", "--no-results", "--results", "calm.yaml/x").returncode == 0
