"""The folder of a sweep: its rows in Parquet files, and all that is needed to resume it.

``runs/campaign=NAME/part-NNNNN.parquet`` has the rows, one file for each chunk. The metadata of a
file list its cells and seeds, so a sweep can be resumed without a search in the rows. Even so, each
file is read once, to find damage before hours go into the remaining runs. ``sweep.json`` has the
definition, ``campaigns/`` the campaigns, and ``repeated.jsonl`` the runs that were repeated.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from filelock import FileLock, Timeout
from pydantic import ValidationError

from harrow.campaigns.language.regular_file import open_regular, regular_text
from harrow.campaigns.language.spelling import quoted
from harrow.campaigns.record.json_text import json_document, json_line
from harrow.campaigns.storage.whole_file import whole_file, whole_path
from harrow.campaigns.sweep.cell import cell_of
from harrow.campaigns.sweep.chunk import uncovered_ranges
from harrow.campaigns.sweep.definition import Definition, SkippedCells, SweepSource, load_stored_cell
from harrow.campaigns.sweep.row_table import FILE_SCHEMA, PARTITION, SCHEMA_VERSION
from harrow.campaigns.sweep.sweep_state import PROBES, SEED_RANGES, probes_of, problem_of, seed_ranges_of
from harrow.cluster_model.lazy_dataclass import dataclass

SWEEP: Final = "sweep.json"
RUNS: Final = "runs"
REPEATED: Final = "repeated.jsonl"
CAMPAIGNS: Final = "campaigns"
FAILURES: Final = "failures"

_SCHEMA: Final = b"harrow.schema"
_PART: Final = "part-"
_PART_NAME: Final = re.compile(rf"{_PART}([0-9]{{5,9}})\.parquet")
_LOCK: Final = ".lock"
_BEGUN: Final = frozenset({RUNS, CAMPAIGNS, "spark.log", _LOCK})
"""What a sweep may leave behind if it is killed before it has written its definition."""


class SweepFolderError(Exception):
    """A folder does not have a sweep, or has a different one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatedRun:
    """A repeated run. ``first`` and ``again`` are the digests of the first and the second run."""

    cell: int
    seed: int
    first: str | None
    again: str | None
    other_worker: bool

    @property
    def is_equal(self) -> bool:
        return self.first == self.again


class SweepFolder:
    """A sweep on disk."""

    def __init__(self, path: Path, definition: Definition) -> None:
        self.path = path
        self._definition = definition
        self._next = 0
        self.probes: set[str] = set()
        """Rare states that earlier rows reached. Filled by `missing`."""
        self._cells = {(cell.campaign, cell.name): number for number, cell in enumerate(definition.cells)}

    @contextmanager
    def exclusively(self) -> Iterator[None]:
        """Keep other processes from sweeping into the folder at the same time.

        Raises:
            SweepFolderError: Another process is sweeping into the folder.

        """
        self.path.mkdir(parents=True, exist_ok=True)
        try:
            lock = FileLock(self.path / _LOCK).acquire(blocking=False)
        except Timeout:
            raise SweepFolderError(f"{self.path}: another harrow is sweeping into this folder now") from None
        with lock:
            yield

    def begin(self) -> None:
        """Create the folder and write the definition.

        Raises:
            OSError: The folder cannot be written.

        """
        (self.path / RUNS).mkdir(parents=True, exist_ok=True)
        (self.path / CAMPAIGNS).mkdir(exist_ok=True)
        for source in self._definition.sources:
            with whole_file(self.path / CAMPAIGNS / f"{source.campaign}.yaml") as stream:
                stream.write(source.text)
        self._write_state({"complete": False})

    def end(self, state: Mapping[str, Any]) -> None:
        """Write the end state of the sweep."""
        self._write_state(state)

    def _write_state(self, state: Mapping[str, Any]) -> None:
        with whole_file(self.path / SWEEP) as stream:
            stream.write(json_document({**self._definition.as_mapping(), **state}))

    def missing(self) -> list[tuple[int, range]]:
        """Return the seeds of each cell for which no file has rows.

        Also remove what a killed sweep left behind.

        Raises:
            SweepFolderError: A file does not belong to this sweep.

        """
        done: dict[int, list[range]] = {}
        for path in sorted(self.path.glob(f"{RUNS}/*/.*")):
            path.unlink()
        for path in self.parts():
            self._next = max(self._next, int(path.stem.removeprefix(_PART)) + 1)
            for cell, seeds in self.covers(path):
                done.setdefault(cell, []).append(seeds)
        return [
            (number, seeds)
            for number in range(len(self._definition.cells))
            for seeds in uncovered_ranges(self._definition.seeds, done.get(number, ()))
        ]

    def parts(self) -> list[Path]:
        paths = self.path.glob(f"{RUNS}/{PARTITION}=*/{_PART}*.parquet")
        return sorted(path for path in paths if _PART_NAME.fullmatch(path.name))

    def write(self, campaign: str, rows: pa.Table, covers: Iterable[tuple[int, range]]) -> Path:
        """Write the rows of a chunk atomically. *covers* are its seeds by cell."""
        folder = self.path / RUNS / f"{PARTITION}={campaign}"
        folder.mkdir(exist_ok=True)
        path = folder / f"{_PART}{self._next:05}.parquet"
        self._next += 1
        cells = self._definition.cells
        covered = [[cells[cell].name, seeds.start, seeds.stop] for cell, seeds in covers]
        table = rows.select(FILE_SCHEMA.names).cast(FILE_SCHEMA)
        table = table.replace_schema_metadata(
            {
                _SCHEMA: SCHEMA_VERSION.encode(),
                SEED_RANGES: json.dumps(covered).encode(),
                PROBES: json.dumps(sorted(probes_in(rows))).encode(),
            }
        )
        with whole_path(path) as temporary:
            pq.write_table(table, temporary, compression="zstd")
        return path

    def covers(self, path: Path) -> list[tuple[int, range]]:
        """Return the cells and seeds of the rows in a file, from the file's metadata.

        Raises:
            SweepFolderError: The file does not belong to this sweep.

        """
        try:
            with open_regular(path) as file:
                metadata = pq.read_schema(file).metadata or {}
            entries = seed_ranges_of(metadata)
            self.probes.update(probes_of(metadata))
        except ValidationError:
            raise SweepFolderError(f"{path}: not a file of a sweep (it does not list its seeds)") from None
        except (OSError, ValueError, pa.ArrowException) as error:
            raise SweepFolderError(f"{path}: not a file of a sweep ({error})") from None
        campaign = path.parent.name.removeprefix(f"{PARTITION}=")
        try:
            return [(self._cells[campaign, name], range(start, stop)) for name, start, stop in entries]
        except KeyError as error:
            raise SweepFolderError(f"{path}: this sweep has no cell {error}") from None

    def check(self) -> None:
        """Check that all files of rows are whole and belong to this sweep.

        Queries do not check this.

        Raises:
            SweepFolderError: A file is damaged or has other contents.

        """
        parts = self.parts()
        # Spark and DuckDB read every file in the folder.
        for path in sorted({*self.path.glob(f"{RUNS}/**/*")} - {*parts}):
            if not (path.name.startswith(".") or path.is_dir()):
                raise SweepFolderError(f"{path}: not a file of a sweep")
        for path in parts:
            self.covers(path)
            try:
                with open_regular(path) as file:
                    schema = pq.read_table(file).schema
            except (OSError, pa.ArrowException) as error:
                raise SweepFolderError(f"{path}: damaged ({error})") from None
            for field in FILE_SCHEMA:
                index = schema.get_field_index(field.name)
                if index < 0 or schema.field(index).type != field.type:
                    raise SweepFolderError(f"{path}: no column {field.name} of this version's type")

    def add_repeated(self, repeated: Iterable[RepeatedRun]) -> None:
        """Append repeated runs."""
        cells = self._definition.cells
        with (self.path / REPEATED).open("ab+") as stream:
            end = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, end - 1))
            if stream.read(1) not in (b"", b"\n"):
                stream.write(b"\n")  # A kill cut off the last line, and the next one must start anew.
            for run in repeated:
                cell = cells[run.cell]
                line = {"campaign": cell.campaign, **asdict(run), "cell": cell.name}
                stream.write(f"{json_line(line)}\n".encode())

    def repeated(self) -> Iterator[RepeatedRun]:
        """Yield the repeated runs, without a line that a kill cut off."""
        try:
            lines = open_regular(self.path / REPEATED)
        except FileNotFoundError:
            return
        with lines:
            for line in lines:
                try:
                    entry = json.loads(line)
                    yield RepeatedRun(
                        cell=self._cells[entry["campaign"], entry["cell"]],
                        seed=entry["seed"],
                        first=entry["first"],
                        again=entry["again"],
                        other_worker=entry["other_worker"],
                    )
                except (ValueError, KeyError, TypeError):
                    continue


def probes_in(rows: pa.Table) -> set[str]:
    probes = pc.list_flatten(rows.column("probes").combine_chunks())
    return set(pc.struct_field(probes, "probe").unique().to_pylist())


def is_only_begun(path: Path) -> bool:
    """Return whether a folder is empty, or has only what a sweep killed at its start leaves."""
    names = {child.name for child in path.iterdir()} if path.exists() else set()
    strange = {name for name in names - _BEGUN if not name.startswith(f".{SWEEP}")}
    return not strange and not any(path.glob(f"{RUNS}/*"))


def read_state(path: Path) -> dict[str, Any]:
    """Read ``sweep.json``.

    Raises:
        SweepFolderError: The folder does not have a sweep.

    """
    try:
        state = json.loads(regular_text(path / SWEEP))
    except FileNotFoundError:
        raise SweepFolderError(f"{path}: not a sweep ({SWEEP} is missing)") from None
    except (OSError, ValueError, RecursionError) as error:
        raise SweepFolderError(f"{path / SWEEP}: cannot be read: {error}") from None
    if not isinstance(state, dict) or state.get("schema") != SCHEMA_VERSION:
        raise SweepFolderError(f"{path / SWEEP}: not the file of a sweep ({SCHEMA_VERSION})")
    if (problem := problem_of(state)) is not None:
        raise SweepFolderError(f"{path / SWEEP}: does not define a sweep: {problem}")
    return state


def read_definition(path: Path) -> Definition:
    """Return the definition of the sweep in a folder, as written there.

    Raises:
        SweepFolderError: The folder has no sweep, or this version reads its campaigns differently.
        CampaignError: One of its campaigns cannot be read by this version.

    """
    state = read_state(path)
    sources = {
        entry["campaign"]: SweepSource(
            campaign=entry["campaign"],
            argument=entry["argument"],
            text=_campaign_text(path / CAMPAIGNS / f"{entry['campaign']}.yaml"),
            overrides=tuple(entry["set"]),
            cluster_files=entry.get("cluster_files", {}),
        )
        for entry in state["campaigns"]
    }
    cells = []
    for entry in state["cells"]:
        source = sources.get(entry["campaign"])
        if source is None:
            raise SweepFolderError(f"{path / SWEEP}: has a cell of {entry['campaign']} but no such campaign")
        settings = tuple(entry["settings"].items())
        file = str(path / CAMPAIGNS / f"{source.campaign}.yaml")
        plans = load_stored_cell(source, file, settings, (entry["variant"],)).plans
        matches = [cell for cell in (cell_of(plan, settings) for plan in plans) if cell.name == entry["cell"]]
        if not matches:
            raise SweepFolderError(f"{file}: no longer has a cell {quoted(entry['cell'])}")
        cells.append(matches[0])
    skipped = tuple(
        SkippedCells(
            campaign=entry["campaign"], settings=tuple(entry["settings"].items()), reason=entry["reason"]
        )
        for entry in state.get("skipped", ())
    )
    return Definition(
        sources=tuple(sources.values()), cells=tuple(cells), seeds=range(*state["seeds"]), skipped=skipped
    )


def _campaign_text(path: Path) -> str:
    try:
        return regular_text(path)
    except FileNotFoundError:
        raise SweepFolderError(f"{path}: missing: the sweep's copy of its campaign") from None
    except OSError as error:
        raise SweepFolderError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError:
        raise SweepFolderError(f"{path}: not text in UTF-8") from None
