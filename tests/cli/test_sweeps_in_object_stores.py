"""A sweep into an object store has the rows of one on disk, and can be resumed and reported."""

import json
import os
from pathlib import Path

import pyarrow.dataset as ds
import pytest

from harrow.campaigns.storage import claim
from harrow.campaigns.storage.location import location
from harrow.campaigns.sweep.chunk import Task
from harrow.campaigns.sweep.row import run_task
from harrow.campaigns.sweep.sweep_folder import SweepFolder, SweepFolderError, read_state
from tests.campaigns.sweep.sweep_campaigns import definition, write_rows
from tests.cli.conftest import Harrow
from tests.s3_server import BUCKET

FAILING = """
name: failing
cluster: {brokers: 2, topics: [{name: t, replication_factor: 2}]}
workload: {duration: 2s, producers: [{name: p, rate: 3/s, settings: {acks: "1", enable.idempotence: false}}]}
faults:
  - rate: 40/m
    do: {broker_crash: {broker: leader of t-0, restart_after: 500ms}}
expect: {verdict: held}
"""
SWEEP = ("sweep", "failing.yaml", "--engine", "process", "--workers", "1")


def test_a_sweep_into_an_object_store_is_resumed_and_reported_from_there(
    harrow: Harrow, folder: Path, s3: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "failing.yaml").write_text(FAILING, encoding="utf-8")
    on_disk = harrow(*SWEEP, "--seeds", "0..12", "--out", "on-disk", "--format", "json")
    uri = f"s3a://{BUCKET}/sweeps/one"
    first = harrow(*SWEEP, "--seeds", "0..6", "--out", uri, **s3)
    assert (first.returncode, on_disk.returncode) == (1, 1)
    refused = harrow(*SWEEP, "--seeds", "0..6", "--out", uri, **s3)
    assert refused.returncode == 2
    assert "already has this sweep: --resume continues it" in refused.stderr
    resumed = harrow(*SWEEP, "--seeds", "0..12", "--out", uri, "--resume", "--format", "json", **s3)
    assert resumed.returncode == 1
    reported = harrow("sweep", "--report", uri, "--format", "json", **s3)
    reports = [json.loads(ended.stdout) for ended in (on_disk, resumed, reported)]
    for key in ("verdict", "runs", "cells", "failures", "rates", "probes", "service"):
        assert reports[0][key] == reports[1][key] == reports[2][key], key
    for name, value in s3.items():
        monkeypatch.setenv(name, value)
    names = location(uri).names()
    assert [name for name in names if name.startswith("failures/")]
    (rows,) = [name for name in names if name.startswith("runs/")]
    system, top = location(uri).in_arrow()
    stored = ds.dataset(f"{top}/{rows}", filesystem=system).to_table().drop_columns("wall_us")
    local = ds.dataset(folder / "on-disk" / rows).to_table().drop_columns("wall_us")
    assert stored.sort_by("seed").equals(local.sort_by("seed"))


def test_a_folder_in_an_object_store_without_a_sweep_is_refused(
    harrow: Harrow, folder: Path, s3: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "failing.yaml").write_text(FAILING, encoding="utf-8")
    for name, value in s3.items():
        monkeypatch.setenv(name, value)
    (location(f"s3://{BUCKET}/other") / "thesis.txt").write_text("mine")
    ended = harrow(*SWEEP, "--seeds", "0..2", "--out", f"s3://{BUCKET}/other", **s3)
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert f"s3://{BUCKET}/other is not empty and has no sweep" in ended.stderr


def test_two_sweeps_do_not_write_into_one_folder_of_an_object_store(
    harrow: Harrow, folder: Path, s3: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "failing.yaml").write_text(FAILING, encoding="utf-8")
    for name, value in s3.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(claim, "_BEAT_S", 0.1)
    uri = f"s3://{BUCKET}/shared"
    command = (*SWEEP, "--seeds", "0..2", "--out", uri)
    with claim.exclusively(location(uri)):
        refused = harrow(*command, **s3)
    assert (refused.returncode, refused.stdout) == (2, "")
    *_, last = refused.stderr.splitlines()
    assert f"{uri}: process {os.getpid()} on " in last
    assert "uses this folder now" in last
    assert harrow(*command, **s3).returncode == 1
    assert not [name for name in location(uri).names() if name.startswith(claim.CLAIMS)]


def test_a_sweep_that_lost_its_folder_changes_nothing(
    s3: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(claim, "_LOST_AFTER_S", 0.0)
    sweep = definition(4)
    place = location(f"s3://{BUCKET}/taken")
    first, second = SweepFolder(place, sweep), SweepFolder(place, sweep)
    rows = list(run_task(dict(enumerate(sweep.cells)), Task(cell=0, seeds=range(4))))

    def lose_the_folder() -> None:
        with first.exclusively():
            first.begin()
            write_rows(first, rows[:3], [("base", 0, 3)])
            with second.exclusively():
                assert [seeds for _, seeds in second.missing()] == [range(3, 4)]
                write_rows(second, rows[3:], [("base", 3, 4)])
                second.end({"complete": True})
            first.end({"complete": False})

    with pytest.raises(SweepFolderError, match="another harrow took over"):
        lose_the_folder()
    assert read_state(place)["complete"]
    assert SweepFolder(place, sweep).missing() == []
