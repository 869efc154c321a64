"""A folder belongs to one sweep at a time, survives kills, and is rejected if damaged."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from harrow.campaigns.sweep.chunk import Task
from harrow.campaigns.sweep.definition import Definition, define
from harrow.campaigns.sweep.part_file import merge, parquet_of, part_of
from harrow.campaigns.sweep.row import Row, run_task
from harrow.campaigns.sweep.row_table import as_table
from harrow.campaigns.sweep.sweep_folder import (
    RepeatedRun,
    SweepFolder,
    SweepFolderError,
    is_only_begun,
    read_definition,
)
from tests.campaigns.sweep.sweep_campaigns import TEXT, acks, campaign, definition, write_rows


def rows_of(sweep: Definition, seeds: range) -> Iterator[Row]:
    return run_task(dict(enumerate(sweep.cells)), Task(cell=0, seeds=seeds))


def write_sweep(path: Path, sweep: Definition, seeds: range) -> SweepFolder:
    folder = SweepFolder(path, sweep)
    folder.begin()
    cell = sweep.cells[0]
    part = part_of(cell.campaign, [(cell.name, seeds.start, seeds.stop)])
    folder.add(part, parquet_of(part, as_table(rows_of(sweep, seeds))))
    return folder


def files_of_rows(path: Path) -> list[Path]:
    return sorted(path.glob("runs/*/*"))


def test_two_processes_do_not_sweep_into_one_folder(tmp_path: Path) -> None:
    first, second = (SweepFolder(tmp_path / "s", definition()) for _ in range(2))
    with (
        first.exclusively(),
        pytest.raises(SweepFolderError, match="another harrow uses this folder"),
        second.exclusively(),
    ):
        pass
    with second.exclusively():
        pass


def write_parts(folder: SweepFolder, sweep: Definition, *ranges: tuple[int, int]) -> None:
    for start, stop in ranges:
        write_rows(folder, rows_of(sweep, range(start, stop)), [("base", start, stop)])


def test_of_two_sweeps_in_one_folder_the_second_to_end_changes_nothing(tmp_path: Path) -> None:
    """Nothing keeps them apart if shared storage shows new files late."""
    sweep = definition(4)
    first, second = (SweepFolder(tmp_path, sweep) for _ in range(2))
    first.begin()
    write_parts(first, sweep, (0, 4))
    write_parts(second, sweep, (0, 2), (2, 4))
    first.end({"complete": True})
    files = files_of_rows(tmp_path)
    assert len(files) == 1
    with pytest.raises(SweepFolderError, match="has vanished"):
        second.end({"complete": True})
    assert files_of_rows(tmp_path) == files
    assert SweepFolder(tmp_path, sweep).missing() == []


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

    def full(path: Path, _content: bytes) -> int:
        with path.open("wb") as stream:
            stream.write(b"half of a fi")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        write_rows(folder, rows_of(sweep, range(3)), [("base", 0, 3)])
    assert files_of_rows(tmp_path) == []
    assert folder.missing() == [(0, range(3))]


def test_a_file_lists_the_rare_states_of_its_rows(tmp_path: Path) -> None:
    sweep = definition(4)
    write_sweep(tmp_path, sweep, range(4))
    again = SweepFolder(tmp_path, sweep)
    assert again.missing() == []
    (file_of_rows,) = files_of_rows(tmp_path)
    rows = pq.ParquetFile(file_of_rows).read(["probes"]).to_pylist()
    assert again.probes == {item["probe"] for row in rows for item in row["probes"]}
    assert again.probes


def test_a_damaged_line_does_not_damage_the_next_one(tmp_path: Path) -> None:
    folder = SweepFolder(tmp_path, definition())
    runs = [RepeatedRun(cell=0, seed=seed, first="a", again="a", other_worker=True) for seed in range(3)]
    folder.add_repeated(runs)
    folder.write_repeated()
    file = tmp_path / "repeated.jsonl"
    first, _, last = file.read_bytes().splitlines()
    file.write_bytes(first + b'\n{"campaign": "sm\n' + last + b"\n")
    again = SweepFolder(tmp_path, definition())
    assert again.repeated() == [runs[0], runs[2]]
    again.add_repeated([runs[1]])
    again.write_repeated()
    assert SweepFolder(tmp_path, definition()).repeated() == [runs[0], runs[2], runs[1]]


def test_the_larger_of_two_files_with_the_same_rows_counts(tmp_path: Path) -> None:
    """A sweep may be killed after a merge, before it has deleted the files that it merged."""
    sweep = definition(6)
    folder = write_sweep(tmp_path, sweep, range(2))
    write_rows(folder, rows_of(sweep, range(2, 4)), [("base", 2, 4)])
    sources = folder.parts()
    merged = merge(folder.location, sources)
    assert merged is not None
    assert len(files_of_rows(tmp_path)) == 3
    again = SweepFolder(tmp_path, sweep)
    again.load()
    assert [part.covers for part in again.parts()] == [merged.covers] == [(("base", 0, 4),)]
    assert again.missing() == [(0, range(4, 6))]
    assert files_of_rows(tmp_path) == [tmp_path / merged.path]


def test_a_file_that_appears_after_the_end_of_a_sweep_does_not_count(tmp_path: Path) -> None:
    """Such a file comes from a worker of a driver that was killed."""
    sweep = definition(6)
    folder = write_sweep(tmp_path, sweep, range(2))
    folder.end({"complete": False})
    write_rows(SweepFolder(tmp_path, sweep), rows_of(sweep, range(4)), [("base", 0, 4)])
    again = SweepFolder(tmp_path, sweep)
    again.load()
    assert [part.rows for part in again.parts()] == [2]


def test_a_merged_file_has_the_rows_and_the_rare_states_of_its_sources(tmp_path: Path) -> None:
    sweep = definition(4)
    folder = write_sweep(tmp_path / "a", sweep, range(2))
    write_rows(folder, rows_of(sweep, range(2, 4)), [("base", 2, 4)])
    merged = merge(folder.location, folder.parts())
    assert merged is not None
    folder.replace(folder.parts(), merged)
    write_sweep(tmp_path / "b", sweep, range(4))
    (at_once,) = files_of_rows(tmp_path / "b")
    (file,) = files_of_rows(tmp_path / "a")
    assert file.name == at_once.name
    first, second = pq.read_table(file, partitioning=None), pq.read_table(at_once, partitioning=None)
    assert first.drop_columns("wall_us").equals(second.drop_columns("wall_us"))
    assert first.schema.metadata == second.schema.metadata


def query_verdicts(*folders: Path) -> list[list[list[Any]]]:
    """Query the verdicts of sweeps with DuckDB.

    DuckDB runs in its own process, because it reports leaks at the end of pytest.
    """
    script = (
        "import json, sys, pathlib; from harrow.campaigns.sweep.queries import VERDICTS, duck_sql; "
        "from tests.campaigns.sweep.sweep_campaigns import loaded; "
        "print(json.dumps([duck_sql(loaded(pathlib.Path(path))).ask(VERDICTS) for path in sys.argv[1:]]))"
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
    (file_of_rows,) = files_of_rows(path)
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
    read_definition(folder.location)


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
