"""The folder of a sweep: its rows in Parquet files, and all that is needed to resume it.

``runs/campaign=NAME/part-DIGEST.parquet`` has rows (`harrow.campaigns.sweep.part_file`). Its
metadata list its cells and seeds, so a sweep can be resumed without a search in the rows. Even so,
each local file is read once, to find damage before hours go into the remaining runs. ``sweep.json``
has the definition, ``campaigns/`` the campaigns, and ``repeated.jsonl`` the repeated runs.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from harrow.campaigns.language.spelling import quoted
from harrow.campaigns.record.json_text import json_document, json_line
from harrow.campaigns.storage.claim import CLAIMS, LOCK, Claim, ClaimError, exclusively
from harrow.campaigns.storage.location import LocalLocation, Location, location
from harrow.campaigns.sweep.cell import cell_of
from harrow.campaigns.sweep.chunk import uncovered_ranges
from harrow.campaigns.sweep.definition import Definition, SkippedCells, SweepSource, load_stored_cell
from harrow.campaigns.sweep.part_file import RUNS, SWEEP, PartFile
from harrow.campaigns.sweep.row import SCHEMA_VERSION
from harrow.campaigns.sweep.row_table import FILE_SCHEMA, PARTITION
from harrow.campaigns.sweep.sweep_state import probes_of, problem_of, seed_ranges_of
from harrow.cluster_model.lazy_dataclass import dataclass

REPEATED: Final = "repeated.jsonl"
CAMPAIGNS: Final = "campaigns"
FAILURES: Final = "failures"

_PART_PATH: Final = re.compile(rf"{RUNS}/{PARTITION}=[^/]+/part-[0-9a-f]{{5,16}}\.parquet")
_REQUESTS: Final = 16
"""Files to open at once, because an object store takes its time for each."""
_REPEATED_MIN: Final = 1_000
_BEGUN: Final = frozenset({"spark.log", LOCK})
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
    """A sweep in a folder, by path or URI."""

    def __init__(self, place: Path | Location, definition: Definition) -> None:
        self.location = location(place)
        self._definition = definition
        self.probes: set[str] = set()
        """Rare states that earlier rows reached. Filled by `load`."""
        self._parts: dict[str, PartFile] = {}
        self._repeated: list[RepeatedRun] = []
        self._repeated_written = 0
        self._claim: Claim | None = None
        self._cells = {(cell.campaign, cell.name): number for number, cell in enumerate(definition.cells)}

    @contextmanager
    def exclusively(self, on_wait: Callable[[str], None] = lambda _: None) -> Iterator[None]:
        """Keep other processes from sweeping into the folder. *on_wait* says what takes a while.

        Raises:
            SweepFolderError: Another process is sweeping into the folder, or has taken it over.

        """
        try:
            with exclusively(self.location, on_wait) as self._claim:
                yield
        except ClaimError as error:
            raise SweepFolderError(f"{self.location}: {error}") from None
        finally:
            self._claim = None

    def is_lost(self) -> bool:
        """Return whether another process has taken over the folder."""
        return self._claim is not None and self._claim.is_lost()

    def check_claim(self) -> None:
        """Check that the folder still belongs to this process, before files change or go.

        Raises:
            ClaimError: Another process has taken over the folder.

        """
        if self._claim is not None:
            self._claim.check()

    def begin(self) -> None:
        """Write the definition.

        Raises:
            OSError: The folder cannot be written.

        """
        for source in self._definition.sources:
            (self.location / CAMPAIGNS / f"{source.campaign}.yaml").write_text(source.text)
        self._write_state({"complete": False})

    def end(self, state: Mapping[str, Any]) -> None:
        """Write the end state of the sweep, with its files. Delete files that do not count.

        Raises:
            SweepFolderError: Files of this sweep have vanished.

        """
        found = self._found()
        if vanished := sorted(self._parts.keys() - found):
            raise SweepFolderError(
                f"{self.location / vanished[0]} has vanished; --resume runs again what is missing"
            )
        self.write_repeated()
        self._write_state({**state, "files": sorted(self._parts)})
        for path in sorted(found - self._parts.keys()):
            if _is_part(path):
                (self.location / path).delete()

    def _write_state(self, state: Mapping[str, Any]) -> None:
        self.check_claim()
        (self.location / SWEEP).write_text(json_document({**self._definition.as_mapping(), **state}))

    # The files of rows

    def parts(self) -> list[PartFile]:
        """Return the files that count, since the last `load` or `missing`."""
        return [self._parts[path] for path in sorted(self._parts)]

    def has_rows(self) -> bool:
        return any(map(_is_part, self._found()))

    def load(self) -> None:
        """Find the files that count.

        After a kill, two files may have the same rows, for example a merged file and its sources.
        Then those count that the sweep listed at its end, or otherwise the larger ones.

        Raises:
            SweepFolderError: A file does not belong to this sweep.

        """
        listed: set[str] = set()
        with suppress(SweepFolderError):
            listed.update(read_state(self.location).get("files", ()))
        with ThreadPoolExecutor(_REQUESTS) as threads:
            parts = list(threads.map(self._read_part, sorted(filter(_is_part, self._found()))))
        taken: dict[tuple[str, str], list[range]] = {}
        self._parts = {}
        for part, probes in sorted(parts, key=lambda read: (read[0].path not in listed, -read[0].rows)):
            ranges = [((part.campaign, name), range(start, stop)) for name, start, stop in part.covers]
            if all(uncovered_ranges(seeds, taken.get(key, ())) == [seeds] for key, seeds in ranges):
                for key, seeds in ranges:
                    taken.setdefault(key, []).append(seeds)
                self._parts[part.path] = part
                self.probes.update(probes)

    def missing(self) -> list[tuple[int, range]]:
        """Load the files, and return the seeds of each cell for which none has rows.

        Also remove what a killed sweep left behind.

        Raises:
            SweepFolderError: A file does not belong to this sweep.

        """
        self.load()
        for path in self._found() - self._parts.keys():
            if _is_part(path) or _is_hidden(path):
                (self.location / path).delete()
        done: dict[int, list[range]] = {}
        for part in self._parts.values():
            for cell, seeds in self.covers(part):
                done.setdefault(cell, []).append(seeds)
        return [
            (number, seeds)
            for number in range(len(self._definition.cells))
            for seeds in uncovered_ranges(self._definition.seeds, done.get(number, ()))
        ]

    def covers(self, part: PartFile) -> list[tuple[int, range]]:
        """Return the numbers of a file's cells, with the seeds of each."""
        return [(self._cells[part.campaign, name], range(start, stop)) for name, start, stop in part.covers]

    def add(self, part: PartFile, content: bytes | None = None) -> None:
        """Count a file. Write it first if its *content* is given.

        Raises:
            OSError: The file cannot be written.

        """
        if content is not None:
            (self.location / part.path).write(content)
        self._parts[part.path] = part

    def replace(self, sources: Iterable[PartFile], merged: PartFile) -> None:
        """Count a merged file in place of its sources, and delete them."""
        self.check_claim()
        self.add(merged)
        for source in sources:
            if source.path != merged.path:
                del self._parts[source.path]
                (self.location / source.path).delete()

    def _found(self) -> set[str]:
        """Return the paths of all files of rows, and of others beside them."""
        return {f"{RUNS}/{name}" for name in (self.location / RUNS).names()}

    def _read_part(self, path: str) -> tuple[PartFile, list[str]]:
        """Read what a file covers, and the rare states that its rows reached, from its metadata."""
        place = self.location / path
        try:
            with place.open() as file:
                metadata = pq.read_schema(file).metadata or {}
            entries = seed_ranges_of(metadata)
            probes = probes_of(metadata)
        except ValidationError:
            raise SweepFolderError(f"{place}: not a file of a sweep (it does not list its seeds)") from None
        except (OSError, ValueError, pa.ArrowException) as error:
            raise SweepFolderError(f"{place}: not a file of a sweep ({error})") from None
        campaign = path.split("/")[1].removeprefix(f"{PARTITION}=")
        for name, _, _ in entries:
            if (campaign, name) not in self._cells:
                raise SweepFolderError(f"{place}: this sweep has no cell {(campaign, name)}")
        return PartFile(campaign, tuple(entries), path), probes

    def check(self) -> None:
        """Check that all files of rows are whole and belong to this sweep.

        Queries do not check this. Object stores check what they return, so harrow does not read
        whole files from there.

        Raises:
            SweepFolderError: A file is damaged or has other contents.

        """
        # Spark and DuckDB read every file in the folder.
        for path in sorted(self._found()):
            if not (_is_part(path) or _is_hidden(path)):
                raise SweepFolderError(f"{self.location / path}: not a file of a sweep")
        self.load()
        read = pq.read_table if isinstance(self.location, LocalLocation) else pq.read_schema
        for part in self.parts():
            place = self.location / part.path
            try:
                with place.open() as file:
                    found = read(file)
            except (OSError, pa.ArrowException) as error:
                raise SweepFolderError(f"{place}: damaged ({error})") from None
            schema = getattr(found, "schema", found)
            for field in FILE_SCHEMA:
                index = schema.get_field_index(field.name)
                if index < 0 or schema.field(index).type != field.type:
                    raise SweepFolderError(f"{place}: no column {field.name} of this version's type")

    # The repeated runs

    def add_repeated(self, repeated: Iterable[RepeatedRun]) -> None:
        """Add repeated runs.

        The file is written whole, and not each time. After a kill, some runs are repeated again.
        """
        self._repeated += repeated
        if len(self._repeated) >= 2 * self._repeated_written + _REPEATED_MIN:
            self.write_repeated()

    def write_repeated(self) -> None:
        if len(self._repeated) == self._repeated_written:
            return
        cells = self._definition.cells
        lines = (
            json_line({"campaign": cells[run.cell].campaign, **asdict(run), "cell": cells[run.cell].name})
            for run in self._repeated
        )
        (self.location / REPEATED).write_text("".join(f"{line}\n" for line in lines))
        self._repeated_written = len(self._repeated)

    def repeated(self) -> list[RepeatedRun]:
        """Read and return the repeated runs of an earlier sweep, without damaged lines."""
        self._repeated = []
        with suppress(FileNotFoundError):
            for line in (self.location / REPEATED).read().splitlines():
                with suppress(ValueError, KeyError, TypeError):
                    entry = json.loads(line)
                    run = RepeatedRun(
                        cell=self._cells[entry["campaign"], entry["cell"]],
                        seed=entry["seed"],
                        first=entry["first"],
                        again=entry["again"],
                        other_worker=entry["other_worker"],
                    )
                    self._repeated.append(run)
        self._repeated_written = len(self._repeated)
        return list(self._repeated)


def _is_part(path: str) -> bool:
    return _PART_PATH.fullmatch(path) is not None


def _is_hidden(path: str) -> bool:
    return path.rpartition("/")[2].startswith(".")


def is_only_begun(place: Path | Location) -> bool:
    """Return whether a folder is empty, or has only what a sweep killed at its start leaves."""
    return all(
        name in _BEGUN or name.startswith((f"{CAMPAIGNS}/", f"{CLAIMS}/", f".{SWEEP}", ".trial-"))
        for name in location(place).names()
    )


def read_state(place: Path | Location) -> dict[str, Any]:
    """Read ``sweep.json``.

    Raises:
        SweepFolderError: The folder does not have a sweep.

    """
    path = location(place)
    try:
        state = json.loads((path / SWEEP).read_text())
    except FileNotFoundError:
        raise SweepFolderError(f"{path}: not a sweep ({SWEEP} is missing)") from None
    except (OSError, ValueError, RecursionError) as error:
        raise SweepFolderError(f"{path / SWEEP}: cannot be read: {error}") from None
    if not isinstance(state, dict) or state.get("schema") != SCHEMA_VERSION:
        raise SweepFolderError(f"{path / SWEEP}: not the file of a sweep ({SCHEMA_VERSION})")
    if (problem := problem_of(state)) is not None:
        raise SweepFolderError(f"{path / SWEEP}: does not define a sweep: {problem}")
    return state


def read_definition(place: Path | Location) -> Definition:
    """Return the definition of the sweep in a folder, as written there.

    Raises:
        SweepFolderError: The folder has no sweep, or this version reads its campaigns differently.
        CampaignError: One of its campaigns cannot be read by this version.

    """
    path = location(place)
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


def _campaign_text(path: Location) -> str:
    try:
        return path.read_text()
    except FileNotFoundError:
        raise SweepFolderError(f"{path}: missing: the sweep's copy of its campaign") from None
    except OSError as error:
        raise SweepFolderError(f"{path}: cannot be read: {error.strerror or error}") from None
    except ValueError:
        raise SweepFolderError(f"{path}: not text in UTF-8") from None
