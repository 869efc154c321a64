"""Files of a sweep's rows. Workers write them, and merge small ones into larger ones.

A file is named after its work: the cells and seeds that it covers. So a worker that repeats work
writes the same file again, and no row is ever there twice.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from io import BytesIO
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from harrow.campaigns.storage.location import Location
from harrow.campaigns.sweep.row import SCHEMA_VERSION
from harrow.campaigns.sweep.row_table import FILE_SCHEMA, PARTITION
from harrow.cluster_model.lazy_dataclass import dataclass

SWEEP: Final = "sweep.json"
"""The file that defines the sweep. It is there before any worker starts."""
RUNS: Final = "runs"
SCHEMA: Final = b"harrow.schema"
SEED_RANGES: Final = b"harrow.covers"
PROBES: Final = b"harrow.probes"

ROWS_WANTED: Final = 50_000
"""Files with fewer rows are merged, up to this number of rows, a few megabytes."""
SMALL_FILES_MAX: Final = 64
"""The number of small files of a campaign that starts a merge."""

SeedRange = tuple[str, int, int]
"""The name of a cell, its first seed, and the end of its seeds (exclusive)."""


@dataclass(frozen=True, slots=True)
class PartFile:
    """A file of rows of one campaign: what it covers, in order."""

    campaign: str
    covers: tuple[SeedRange, ...]
    file: str = ""
    """The path within the sweep's folder, if it does not follow from the other fields."""

    @property
    def path(self) -> str:
        text = json.dumps([self.campaign, *self.covers])
        name = f"part-{hashlib.sha256(text.encode()).hexdigest()[:16]}.parquet"
        return self.file or f"{RUNS}/{PARTITION}={self.campaign}/{name}"

    @property
    def rows(self) -> int:
        return sum(stop - start for _, start, stop in self.covers)


def part_of(campaign: str, covers: Iterable[SeedRange]) -> PartFile:
    """Return the file for some work. Adjacent ranges of seeds become one."""
    joined: list[SeedRange] = []
    for name, start, stop in sorted(covers):
        if joined and joined[-1][0] == name and joined[-1][2] == start:
            joined[-1] = name, joined[-1][1], stop
        else:
            joined.append((name, start, stop))
    return PartFile(campaign, tuple(joined))


def parquet_of(part: PartFile, rows: pa.Table) -> bytes:
    """Return the content of a file of rows."""
    table = rows.select(FILE_SCHEMA.names).cast(FILE_SCHEMA)
    probes = pc.struct_field(pc.list_flatten(table.column("probes").combine_chunks()), "probe").unique()
    metadata = {
        SCHEMA: SCHEMA_VERSION.encode(),
        SEED_RANGES: json.dumps(part.covers).encode(),
        PROBES: json.dumps(sorted(probes.to_pylist())).encode(),
    }
    stream = BytesIO()
    pq.write_table(table.replace_schema_metadata(metadata), stream, compression="zstd")
    return stream.getvalue()


def merge(folder: Location, sources: Sequence[PartFile]) -> PartFile | None:
    """Write one file with the rows of several. Return None if that fails. The sources remain."""
    try:
        tables = []
        for source in sorted(sources, key=lambda part: part.covers):
            with (folder / source.path).open() as file:
                tables.append(pq.read_table(file).replace_schema_metadata())
        merged = part_of(sources[0].campaign, (covered for source in sources for covered in source.covers))
        (folder / merged.path).write(parquet_of(merged, pa.concat_tables(tables)))
    except (OSError, pa.ArrowException):
        return None
    return merged


def worth_merging(parts: Iterable[PartFile], *, at_end: bool) -> list[list[PartFile]]:
    """Return groups of small files of one campaign, each of which should become one file."""
    small = sorted((part for part in parts if part.rows < ROWS_WANTED), key=lambda part: part.rows)
    if not at_end and len(small) < SMALL_FILES_MAX:
        return []
    groups: list[list[PartFile]] = [[]]
    rows = 0
    for part in small:
        if rows + part.rows > ROWS_WANTED and groups[-1]:
            groups.append([])
            rows = 0
        groups[-1].append(part)
        rows += part.rows
    return [group for group in groups[: None if at_end else 1] if len(group) > 1]
