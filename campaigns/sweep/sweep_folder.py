"""The folder of a sweep: Parquet files, each whole, and what is needed to go on with it.

``runs/campaign=NAME/part-NNNNN.parquet`` are the rows, one file a chunk; the file itself says which
seeds of which cells it has, so that going on looks for none in the rows; it reads them once, to find what is
damaged before hours are spent on the rest. ``sweep.json`` says what the sweep is of,
``campaigns/`` has the campaigns, ``repeated.jsonl`` the runs that were run twice.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from filelock import FileLock, Timeout
from pydantic import ValidationError

from harrow.campaigns.language.spelling import quoted
from harrow.campaigns.record.json_text import json_document, json_line
from harrow.campaigns.record.regular_file import open_regular, regular_text
from harrow.campaigns.record.whole_file import whole_file, whole_path
from harrow.campaigns.sweep.cell import cell_of
from harrow.campaigns.sweep.chunk import without
from harrow.campaigns.sweep.definition import Definition, SkippedCells, SweepSource, load_cell_plans
from harrow.campaigns.sweep.row_table import FILE_SCHEMA, PARTITION, SCHEMA_VERSION
from harrow.campaigns.sweep.sweep_state import COVERS, PROBES, covers_of, probes_of, problem_of

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
"""What a folder has when its sweep was killed before it had said what it is of."""


class SweepFolderError(Exception):
    """A folder that is no sweep, or another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """A run that was run a second time, and the digests of both."""

    cell: int
    seed: int
    first: str | None
    again: str | None
    other_worker: bool

    @property
    def is_equal(self) -> bool:
        return self.first == self.again


class SweepFolder:
    """A sweep on disk. *path* is its folder."""

    def __init__(self, path: Path, definition: Definition) -> None:
        self.path = path
        self._definition = definition
        self._next = 0
        self.probes: set[str] = set()
        """Rare states that the rows reached that were there before; known once `missing` has been asked."""
        self._cells = {(cell.campaign, cell.name): number for number, cell in enumerate(definition.cells)}

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other processes from sweeping into the folder at the same time.

        Raises:
            SweepFolderError: another one does.

        """
        self.path.mkdir(parents=True, exist_ok=True)
        try:
            held = FileLock(self.path / _LOCK).acquire(blocking=False)
        except Timeout:
            raise SweepFolderError(f"{self.path}: another harrow is sweeping into it just now") from None
        with held:
            yield

    def begin(self) -> None:
        """Make the folder and write what the sweep is of.

        Raises:
            OSError: it cannot be written.

        """
        (self.path / RUNS).mkdir(parents=True, exist_ok=True)
        (self.path / CAMPAIGNS).mkdir(exist_ok=True)
        for source in self._definition.sources:
            with whole_file(self.path / CAMPAIGNS / f"{source.campaign}.yaml") as stream:
                stream.write(source.text)
        self._write_state({"complete": False})

    def end(self, state: Mapping[str, Any]) -> None:
        """Write how the sweep ended."""
        self._write_state(state)

    def _write_state(self, state: Mapping[str, Any]) -> None:
        with whole_file(self.path / SWEEP) as stream:
            stream.write(json_document({**self._definition.as_mapping(), **state}))

    def missing(self) -> list[tuple[int, range]]:
        """Return the seeds of each cell that no file has yet; leftovers of a killed sweep are removed.

        Raises:
            SweepFolderError: a file is none of this sweep's.

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
            for seeds in without(self._definition.seeds, done.get(number, ()))
        ]

    def parts(self) -> list[Path]:
        """Return the files of rows."""
        found = self.path.glob(f"{RUNS}/{PARTITION}=*/{_PART}*.parquet")
        return sorted(path for path in found if _PART_NAME.fullmatch(path.name))

    def write(self, campaign: str, rows: pa.Table, covers: Iterable[tuple[int, range]]) -> Path:
        """Write the rows of a chunk, which has *covers*: seeds by cell; the file appears whole."""
        folder = self.path / RUNS / f"{PARTITION}={campaign}"
        folder.mkdir(exist_ok=True)
        path = folder / f"{_PART}{self._next:05}.parquet"
        self._next += 1
        cells = self._definition.cells
        said = [[cells[cell].name, seeds.start, seeds.stop] for cell, seeds in covers]
        table = rows.select(FILE_SCHEMA.names).cast(FILE_SCHEMA)
        table = table.replace_schema_metadata(
            {
                _SCHEMA: SCHEMA_VERSION.encode(),
                COVERS: json.dumps(said).encode(),
                PROBES: json.dumps(sorted(probes_in(rows))).encode(),
            }
        )
        with whole_path(path) as temporary:
            pq.write_table(table, temporary, compression="zstd")
        return path

    def covers(self, path: Path) -> list[tuple[int, range]]:
        """Return the seeds of cells that a file has, as the file itself says.

        Raises:
            SweepFolderError: it is none of this sweep's.

        """
        try:
            with open_regular(path) as file:
                metadata = pq.read_schema(file).metadata or {}
            said = covers_of(metadata)
            self.probes.update(probes_of(metadata))
        except ValidationError:
            raise SweepFolderError(
                f"{path}: not a file of a sweep (it does not say which seeds it has)"
            ) from None
        except (OSError, ValueError, pa.ArrowException) as error:
            raise SweepFolderError(f"{path}: not a file of a sweep ({error})") from None
        campaign = path.parent.name.removeprefix(f"{PARTITION}=")
        try:
            return [(self._cells[campaign, name], range(start, stop)) for name, start, stop in said]
        except KeyError as error:
            raise SweepFolderError(f"{path}: this sweep has no cell {error}") from None

    def check(self) -> None:
        """Look whether all files of rows are this sweep's, and whole: what none of them has, no query asks for.

        Raises:
            SweepFolderError: one is damaged, or has something else in it.

        """
        parts = self.parts()
        # Spark and DuckDB read everything that is there.
        for path in sorted({*self.path.glob(f"{RUNS}/**/*")} - {*parts}):
            if not (path.name.startswith(".") or path.is_dir()):
                raise SweepFolderError(f"{path}: not a file of a sweep")
        for path in parts:
            self.covers(path)
            try:
                with open_regular(path) as file:
                    schema = pq.read_table(file).schema
            except (OSError, pa.ArrowException) as error:
                raise SweepFolderError(f"{path}: is damaged ({error})") from None
            for field in FILE_SCHEMA:
                found = schema.get_field_index(field.name)
                if found < 0 or schema.field(found).type != field.type:
                    raise SweepFolderError(f"{path}: has no column {field.name} of this version's type")

    def add_repeated(self, repeated: Iterable[Repeated]) -> None:
        """Take down runs that were run twice."""
        cells = self._definition.cells
        with (self.path / REPEATED).open("ab+") as stream:
            end = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, end - 1))
            if stream.read(1) not in (b"", b"\n"):
                stream.write(b"\n")  # A kill has cut the last line off: it must not take the next one along.
            for run in repeated:
                cell = cells[run.cell]
                line = {"campaign": cell.campaign, **asdict(run), "cell": cell.name}
                stream.write(f"{json_line(line)}\n".encode())

    def repeated(self) -> Iterator[Repeated]:
        """Yield the runs that were run twice; a line that a kill cut off is left out."""
        try:
            lines = open_regular(self.path / REPEATED)
        except FileNotFoundError:
            return
        with lines:
            for line in lines:
                try:
                    said = json.loads(line)
                    yield Repeated(
                        cell=self._cells[said["campaign"], said["cell"]],
                        seed=said["seed"],
                        first=said["first"],
                        again=said["again"],
                        other_worker=said["other_worker"],
                    )
                except (ValueError, KeyError, TypeError):
                    continue


def probes_in(rows: pa.Table) -> set[str]:
    """Return the rare states that rows reached."""
    probes = pc.list_flatten(rows.column("probes").combine_chunks())
    return set(pc.struct_field(probes, "probe").unique().to_pylist())


def is_only_begun(path: Path) -> bool:
    """Return whether a folder has at most what a sweep leaves that was killed as it began."""
    names = {child.name for child in path.iterdir()} if path.exists() else set()
    strange = {name for name in names - _BEGUN if not name.startswith(f".{SWEEP}")}
    return not strange and not any(path.glob(f"{RUNS}/*"))


def read_state(path: Path) -> dict[str, Any]:
    """Return what ``sweep.json`` says.

    Raises:
        SweepFolderError: the folder is no sweep.

    """
    try:
        state = json.loads(regular_text(path / SWEEP))
    except FileNotFoundError:
        raise SweepFolderError(f"{path}: no sweep is there ({SWEEP} is missing)") from None
    except (OSError, ValueError, RecursionError) as error:
        raise SweepFolderError(f"{path / SWEEP}: cannot be read: {error}") from None
    if not isinstance(state, dict) or state.get("schema") != SCHEMA_VERSION:
        raise SweepFolderError(f"{path / SWEEP}: not of a sweep ({SCHEMA_VERSION})")
    if (problem := problem_of(state)) is not None:
        raise SweepFolderError(f"{path / SWEEP}: does not say what the sweep is of: {problem}")
    return state


def read_definition(path: Path) -> Definition:
    """Return what the sweep in a folder is of, as it was written there.

    Raises:
        SweepFolderError: the folder is no sweep, or was written by a version that read its campaigns otherwise.
        CampaignError: a campaign of it cannot be read any more.

    """
    state = read_state(path)
    sources = {
        said["campaign"]: SweepSource(
            campaign=said["campaign"],
            argument=said["argument"],
            text=_campaign_text(path / CAMPAIGNS / f"{said['campaign']}.yaml"),
            overrides=tuple(said["set"]),
        )
        for said in state["campaigns"]
    }
    cells = []
    for said in state["cells"]:
        source = sources.get(said["campaign"])
        if source is None:
            raise SweepFolderError(f"{path / SWEEP}: has a cell of {said['campaign']}, and no such campaign")
        settings = tuple(said["settings"].items())
        file = str(path / CAMPAIGNS / f"{source.campaign}.yaml")
        plans = load_cell_plans(source, file, settings, (said["variant"],))
        found = [cell for cell in (cell_of(plan, settings) for plan in plans) if cell.name == said["cell"]]
        if not found:
            raise SweepFolderError(f"{file}: has no cell {quoted(said['cell'])} any more")
        cells.append(found[0])
    skipped = tuple(
        SkippedCells(
            campaign=said["campaign"], settings=tuple(said["settings"].items()), reason=said["reason"]
        )
        for said in state.get("skipped", ())
    )
    return Definition(
        sources=tuple(sources.values()), cells=tuple(cells), seeds=range(*state["seeds"]), skipped=skipped
    )


def _campaign_text(path: Path) -> str:
    try:
        return regular_text(path)
    except FileNotFoundError:
        raise SweepFolderError(f"{path}: is missing: the campaign as it was swept") from None
    except OSError as error:
        raise SweepFolderError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError:
        raise SweepFolderError(f"{path}: is no text in UTF-8") from None
