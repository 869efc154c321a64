"""What the runs of a sweep have come to so far, counted as they come back.

The report of a sweep is made of its rows on disk, by SQL; this is what can be told while it goes on, without
looking at a row twice. Rows that an earlier sweep of the same folder has written are not in it.
"""

from collections import Counter
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from harrow.campaigns.sweep.row import FAILED

CellKey = tuple[str, str]
"""A campaign and the name of one of its cells."""


@dataclass(slots=True)
class FailureTally:
    """The failures of a campaign that are alike: how many, and the earliest, by its seed and then its cell."""

    count: int
    seed: int
    cell: str


@dataclass(slots=True)
class SweepTally:
    """Counts of the runs so far. ``probes`` counts runs that reached each rare state."""

    runs: Counter[CellKey] = field(default_factory=Counter)
    verdicts: Counter[tuple[CellKey, str]] = field(default_factory=Counter)
    failed: Counter[CellKey] = field(default_factory=Counter)
    failures: dict[tuple[str, str], FailureTally] = field(default_factory=dict)
    probes: Counter[str] = field(default_factory=Counter)

    def add(self, rows: pa.Table) -> None:
        columns = [rows.column(name).to_pylist() for name in ("campaign", "cell", "verdict")]
        for campaign, cell, verdict in zip(*columns, strict=True):
            self.runs[campaign, cell] += 1
            self.verdicts[(campaign, cell), verdict] += 1
        failed = rows.filter(pc.equal(rows.column("outcome"), FAILED))
        for row in failed.select(["campaign", "cell", "seed", "signature"]).to_pylist():
            self._add_failure(**row)
        # A row names each rare state once, so this counts runs.
        reached = pc.struct_field(pc.list_flatten(rows.column("probes").combine_chunks()), "probe")
        self.probes.update(reached.to_pylist())

    def _add_failure(self, campaign: str, cell: str, seed: int, signature: str) -> None:
        self.failed[campaign, cell] += 1
        found = self.failures.get((campaign, signature))
        if found is None:
            self.failures[campaign, signature] = FailureTally(1, seed, cell)
            return
        found.count += 1
        found.seed, found.cell = min((found.seed, found.cell), (seed, cell))
