"""A folder belongs to one sweep at a time, survives kills, and is rejected if damaged."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harrow.campaigns.sweep.chunk import Task
from harrow.campaigns.sweep.definition import Definition, define
from harrow.campaigns.sweep.row import run_task
from harrow.campaigns.sweep.row_table import as_batch
from harrow.campaigns.sweep.sweep_folder import (
    RepeatedRun,
    SweepFolder,
    SweepFolderError,
    is_only_begun,
    read_definition,
)
from tests.campaigns.sweep.sweep_campaigns import TEXT, acks, campaign, definition


def table(sweep: Definition, seeds: range) -> pa.Table:
    cells = dict(enumerate(sweep.cells))
    return pa.Table.from_batches([as_batch(run_task(cells, Task(cell=0, seeds=seeds)))])


def write_sweep(path: Path, sweep: Definition, seeds: range) -> SweepFolder:
    folder = SweepFolder(path, sweep)
    folder.begin()
    folder.write(sweep.cells[0].campaign, table(sweep, seeds), [(0, seeds)])
    return folder


def test_two_processes_do_not_sweep_into_one_folder(tmp_path: Path) -> None:
    first, second = (SweepFolder(tmp_path / "s", definition()) for _ in range(2))
    with (
        first.exclusively(),
        pytest.raises(SweepFolderError, match="another harrow is sweeping into this folder"),
        second.exclusively(),
    ):
        pass
    with second.exclusively():
        pass


def test_a_folder_whose_sweep_was_killed_at_its_start_can_be_used(tmp_path: Path) -> None:
    path = tmp_path / "s"
    assert is_only_begun(path)
    folder = SweepFolder(path, definition())
    with folder.exclusively():
        folder.begin()
    (path / "sweep.json").rename(path / ".sweep.json.123")
    (path / "spark.log").touch()
    assert is_only_begun(path)


@pytest.mark.parametrize("name", ["thesis.txt", "runs/campaign=small/part-00000.parquet"])
def test_a_folder_with_other_files_is_not_used(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).touch()
    assert not is_only_begun(tmp_path)


def test_a_file_that_cannot_be_written_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = definition(3)
    folder = SweepFolder(tmp_path, sweep)
    folder.begin()

    def full(_table: pa.Table, path: Path, **_: Any) -> None:
        path.write_bytes(b"half of a fi")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", full)
    with pytest.raises(OSError, match="No space left"):
        folder.write("small", table(sweep, range(3)), [(0, range(3))])
    assert list(tmp_path.glob("runs/*/*")) == []
    assert folder.missing() == [(0, range(3))]


def test_a_file_lists_the_rare_states_of_its_rows(tmp_path: Path) -> None:
    sweep = definition(4)
    write_sweep(tmp_path, sweep, range(4))
    again = SweepFolder(tmp_path, sweep)
    assert again.missing() == []
    (file_of_rows,) = again.parts()
    rows = pq.ParquetFile(file_of_rows).read(["probes"]).to_pylist()
    assert again.probes == {item["probe"] for row in rows for item in row["probes"]}
    assert again.probes


def test_a_truncated_line_does_not_damage_the_next_one(tmp_path: Path) -> None:
    folder = SweepFolder(tmp_path, definition())
    run = RepeatedRun(cell=0, seed=3, first="a", again="a", other_worker=True)
    folder.add_repeated([run])
    with (tmp_path / "repeated.jsonl").open("ab") as stream:
        stream.write(b'{"campaign": "sm')
    folder.add_repeated([run])
    assert list(folder.repeated()) == [run, run]


def query_verdicts(*folders: Path) -> list[list[list[Any]]]:
    """Query the verdicts of sweeps with DuckDB.

    DuckDB runs in its own process, because it reports leaks at the end of pytest.
    """
    script = (
        "import json, sys, pathlib; from harrow.campaigns.sweep.queries import VERDICTS, duck_sql; "
        "print(json.dumps([duck_sql(pathlib.Path(path)).ask(VERDICTS) for path in sys.argv[1:]]))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script, *map(str, folders)], stdout=subprocess.PIPE, text=True, check=True
    )
    found: list[list[list[Any]]] = json.loads(ended.stdout)
    return found


def test_the_name_of_a_campaign_stays_text(tmp_path: Path) -> None:
    names = ["2024", "007", "2024-01-01", "1e5", "null", "true", "a.b", "Small"]
    for name in names:
        sweep = define([(campaign(TEXT.replace("name: small", f"name: '{name}'")), "x.yaml")], range(2))
        write_sweep(tmp_path / name, sweep, range(2))
    answers = query_verdicts(*(tmp_path / name for name in names))
    assert [{row[0] for row in rows} for rows in answers] == [{name} for name in names]


def test_a_folder_may_have_any_name(tmp_path: Path) -> None:
    names = ["s[1]", "s*", "s?", "a b'c", "{a,b}", "date=2024"]
    for name in names:
        write_sweep(tmp_path / name, definition(2), range(2))
    answers = query_verdicts(*(tmp_path / name for name in names))
    assert [sum(row[4] for row in rows) for rows in answers] == [2] * len(names)


def test_the_largest_seeds_are_kept_exactly(tmp_path: Path) -> None:
    last = 2**63 - 1
    sweep = define([(campaign(), "small.yaml")], range(last - 2, last + 1))
    folder = write_sweep(tmp_path, sweep, range(last - 2, last + 1))
    assert folder.missing() == []
    assert read_definition(tmp_path).seeds == sweep.seeds


@pytest.mark.parametrize("lost", ["cells", "campaigns", "seeds"])
def test_a_sweep_with_a_damaged_definition_is_rejected(tmp_path: Path, lost: str) -> None:
    SweepFolder(tmp_path, definition(varies=acks("1"))).begin()
    state = json.loads((tmp_path / "sweep.json").read_text())
    del state[lost]
    (tmp_path / "sweep.json").write_text(json.dumps(state))
    with pytest.raises(SweepFolderError, match="does not define a sweep"):
        read_definition(tmp_path)


def test_a_missing_campaign_is_reported_by_name(tmp_path: Path) -> None:
    SweepFolder(tmp_path, definition()).begin()
    (tmp_path / "campaigns" / "small.yaml").unlink()
    with pytest.raises(SweepFolderError, match=r"small\.yaml: missing"):
        read_definition(tmp_path)


def write_file_of_rows_with(path: Path, metadata: dict[bytes, bytes]) -> SweepFolder:
    """Write a sweep of three runs, and change the metadata of its file of rows."""
    sweep = definition(3)
    folder = write_sweep(path, sweep, range(3))
    (file_of_rows,) = folder.parts()
    rows = pq.ParquetFile(file_of_rows).read()
    pq.write_table(rows.replace_schema_metadata({**rows.schema.metadata, **metadata}), file_of_rows)
    return folder


NO_SEEDS = (
    *("null", "3", '"x"', '{"a": 1}', '["x"]', '[["small"]]', '[[["small"], 0, 1]]', "[[{}, 0, 1]]", "{"),
    *('[["small", "0", 3]]', '[["small", 0.5, 3]]', '[["small", -1, 3]]', f'[["small", 0, {10**30}]]', ""),
    "[" * 100_000,
)


@pytest.mark.parametrize("metadata", NO_SEEDS, ids=lambda metadata: metadata[:20])
def test_a_file_of_rows_that_does_not_list_its_seeds_is_rejected(tmp_path: Path, metadata: str) -> None:
    folder = write_file_of_rows_with(tmp_path, {b"harrow.covers": metadata.encode()})
    with pytest.raises(SweepFolderError, match="it does not list its seeds"):
        folder.check()


@pytest.mark.parametrize(
    "metadata", ["null", "3", "[[1]]", "[{}]", "[" * 100_000], ids=lambda metadata: metadata[:20]
)
def test_a_file_of_rows_with_damaged_probes_is_rejected(tmp_path: Path, metadata: str) -> None:
    folder = write_file_of_rows_with(tmp_path, {b"harrow.probes": metadata.encode()})
    with pytest.raises(SweepFolderError, match="not a file of a sweep"):
        folder.check()


@pytest.mark.parametrize(
    "name",
    [
        "campaign=small/part-x.parquet",
        "campaign=small/part-1_0.parquet",
        "campaign=small/x.parquet",
        "x.parquet",
    ],
)
def test_a_foreign_file_that_queries_would_read_is_rejected(tmp_path: Path, name: str) -> None:
    folder = write_sweep(tmp_path, definition(3), range(3))
    (tmp_path / "runs" / name).touch()
    with pytest.raises(SweepFolderError, match="not a file of a sweep"):
        folder.check()
    assert folder.missing() == []


def read_all(folder: SweepFolder) -> None:
    folder.check()
    read_definition(folder.path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
@pytest.mark.parametrize(
    "name", ["runs/campaign=small/part-00007.parquet", "sweep.json", "campaigns/small.yaml"]
)
def test_a_pipe_in_place_of_a_file_is_rejected(tmp_path: Path, name: str) -> None:
    """Opening it would wait for a writer, in Parquet's own code, which ignores Ctrl-C."""
    folder = write_sweep(tmp_path, definition(3), range(3))
    (tmp_path / name).unlink(missing_ok=True)
    os.mkfifo(tmp_path / name)
    with pytest.raises(SweepFolderError, match="it is not a file"):
        read_all(folder)
