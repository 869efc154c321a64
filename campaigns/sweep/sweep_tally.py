"""Counts the results of a sweep's runs as they come back.

The report of a sweep is made with SQL from its rows on disk. During the sweep, this module counts
what can be counted without looking at a row twice. It does not count rows of an earlier sweep.
"""

from collections import Counter
from dataclasses import field

import pyarrow as pa
import pyarrow.compute as pc

from harrow.campaigns.sweep.row import FAILED
from harrow.cluster_model.lazy_dataclass import dataclass

CellKey = tuple[str, str]
"""A campaign and the name of one of its cells."""


@dataclass(slots=True)
class FailureTally:
    """Failures of a campaign with one signature: their number, and the one of the smallest seed."""

    count: int
    seed: int
    cell: str


@dataclass(slots=True)
class SweepTally:
    """Counts of the runs so far. ``probes`` counts the runs that reached each rare state."""

    runs: Counter[CellKey] = field(default_factory=Counter)
    verdicts: Counter[tuple[CellKey, str]] = field(default_factory=Counter)
    failed: Counter[CellKey] = field(default_factory=Counter)
    failures: dict[tuple[str, str], FailureTally] = field(default_factory=dict)
    probes: Counter[str] = field(default_factory=Counter)

    def add(self, rows: pa.Table) -> None:
        # One thread keeps the order of the rows.
        by_verdict = rows.group_by(["campaign", "cell", "verdict"], use_threads=False)
        for group in by_verdict.aggregate([([], "count_all")]).to_pylist():
            cell = group["campaign"], group["cell"]
            self.runs[cell] += group["count_all"]
            self.verdicts[cell, group["verdict"]] += group["count_all"]
        failed = rows.filter(pc.equal(rows.column("outcome"), FAILED))
        for row in failed.select(["campaign", "cell", "seed", "signature"]).to_pylist():
            self._add_failure(**row)
        # A row has each rare state once, so this counts runs.
        reached = pc.struct_field(pc.list_flatten(rows.column("probes").combine_chunks()), "probe")
        for probe in reached.value_counts().to_pylist():
            self.probes[probe["values"]] += probe["counts"]

    def _add_failure(self, campaign: str, cell: str, seed: int, signature: str) -> None:
        self.failed[campaign, cell] += 1
        failure = self.failures.get((campaign, signature))
        if failure is None:
            self.failures[campaign, signature] = FailureTally(1, seed, cell)
            return
        failure.count += 1
        failure.seed, failure.cell = min((failure.seed, failure.cell), (seed, cell))
