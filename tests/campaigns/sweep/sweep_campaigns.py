"""Small campaigns and definitions for tests of sweeps."""

from collections.abc import Iterable
from pathlib import Path

from harrow.campaigns.language.loader import Campaign, load_text
from harrow.campaigns.sweep.definition import Definition, Vary, define
from harrow.campaigns.sweep.part_file import SeedRange, parquet_of, part_of
from harrow.campaigns.sweep.row import Row
from harrow.campaigns.sweep.row_table import as_table
from harrow.campaigns.sweep.sweep_folder import SweepFolder, read_definition

TEXT = """
name: small
kafka: "2.4"
cluster: {brokers: 2, topics: [{name: t, replication_factor: 2}]}
workload: {duration: 2s, producers: [{name: p, rate: 3/s}]}
faults:
  - rate: 40/m
    do: {broker_crash: {broker: leader of t-0, restart_after: 500ms}}
"""
"""A few records and crashes. With the default acks=1 a run sometimes loses a record, which is
permitted."""


def campaign(text: str = TEXT) -> Campaign:
    return load_text(text, "small.yaml")


def definition(seeds: int = 6, *, text: str = TEXT, varies: tuple[Vary, ...] = ()) -> Definition:
    return define([(campaign(text), "small.yaml")], range(seeds), varies=varies)


def acks(*values: str) -> tuple[Vary, ...]:
    return (Vary(key="acks", values=values),)


HERE = Path(__file__)


def write_rows(folder: SweepFolder, rows: Iterable[Row], covers: Iterable[SeedRange] = ()) -> Path:
    """Write a file of rows of the campaign in a local folder, and return its path."""
    part = part_of("small", covers)
    folder.add(part, parquet_of(part, as_table(rows)))
    return Path(str(folder.location / part.path))


def loaded(path: Path) -> SweepFolder:
    """Return the sweep in a folder, with its files."""
    folder = SweepFolder(path, read_definition(path))
    folder.load()
    return folder
