"""Runs and corpora can be in an object store: what one command writes there, the others read."""

import json
from pathlib import Path

import pytest

from harrow.campaigns.storage.location import location
from tests.cli.conftest import Harrow
from tests.cli.test_regress_command import CALM, LOSS
from tests.s3_server import BUCKET


def test_a_run_in_an_object_store_has_the_files_of_one_on_disk_and_is_replayed_from_there(
    harrow: Harrow, folder: Path, s3: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "loss.yaml").write_text(LOSS, encoding="utf-8")
    uri = f"s3://{BUCKET}/results"
    assert harrow("run", "loss.yaml", "--results", "on-disk").returncode == 0
    ended = harrow("run", "loss.yaml", "--results", uri, COLUMNS="300", **s3)
    assert ended.returncode == 0
    for name, value in s3.items():
        monkeypatch.setenv(name, value)
    (run,) = {name.rpartition("/")[0] for name in location(uri).names()} - {""}
    assert f"harrow diff {uri}/{run}\n" in ended.stdout
    for name in ("history.jsonl", "trace.jsonl", "campaign.yaml"):
        on_disk = (folder / "on-disk" / run / name).read_bytes()
        assert (location(uri) / f"{run}/{name}").read() == on_disk, name
    for place in (f"{uri}/{run}", f"{uri}/latest"):
        assert "events as recorded" in harrow("replay", place, **s3).stdout
    local = harrow("diff", f"on-disk/{run}")
    assert harrow("diff", f"{uri}/{run}", **s3).stdout == local.stdout.replace(
        f"on-disk/{run}", f"{uri}/{run}"
    )
    missing = harrow("replay", f"{uri}/nothing", COLUMNS="300", **s3)
    assert (missing.returncode, missing.stderr.count("\n")) == (2, 1)
    assert f"{uri}/nothing: not the folder of a run" in missing.stderr
    (location(uri) / f"{run}/run.json").write_text("{")
    damaged = harrow("replay", f"{uri}/{run}", COLUMNS="300", **s3)
    assert (damaged.returncode, damaged.stderr.count("\n")) == (2, 1)
    assert f"{uri}/{run}/run.json:1:" in damaged.stderr


def test_a_corpus_in_an_object_store_is_checked_and_extended(
    harrow: Harrow, folder: Path, s3: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = f"s3://{BUCKET}/corpus"
    for name, value in s3.items():
        monkeypatch.setenv(name, value)
    for name, text in {"loss.yaml": LOSS, "old/calm.yaml": CALM, ".hidden/x.yaml": "", "a.txt": ""}.items():
        (location(uri) / name).write_text(text)
    ended = harrow("regress", uri, "--format", "json", **s3)
    assert ended.returncode == 0, ended.stderr
    entries = json.loads(ended.stdout)["entries"]
    assert [entry["file"] for entry in entries] == [f"{uri}/loss.yaml", f"{uri}/old/calm.yaml"]
    assert harrow(*entries[0]["reproduce"].split()[1:], **s3).returncode == 0
    (folder / "loss.yaml").write_text(LOSS, encoding="utf-8")
    add = ("regress", "--add", "loss.yaml", uri, "--seed", "2", "--name", "again")
    assert harrow(*add, **s3).returncode == 0
    assert "lost-write" in (location(uri) / "again.yaml").read_text()
    refused = harrow(*add, **s3)
    assert refused.returncode == 2
    assert f"{uri}/again.yaml already exists" in refused.stderr
    (location(uri) / "broken.yaml").write("name: ä".encode("latin-1"))
    broken = harrow("regress", uri, COLUMNS="300", **s3)
    assert broken.returncode == 2
    assert f"{uri}/broken.yaml:1:7: " in broken.stdout + broken.stderr


def test_runs_on_brokers_need_a_mounted_folder(harrow: Harrow, s3: dict[str, str]) -> None:
    command = ("run", "calm.yaml", "--target", "kafka:4.3.1", "--results", f"s3://{BUCKET}/x")
    ended = harrow(*command, COLUMNS="300", **s3)
    assert ended.returncode == 2
    assert "brokers write their files only to mounted folders" in ended.stderr
