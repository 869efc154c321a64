"""Counts the results of runs: those of a task on its worker, and of all tasks on the driver.

The report of a sweep is made with SQL from its rows on disk. During the sweep, this module counts
what can be counted without looking at a row twice. It does not count rows of an earlier sweep.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import field

from harrow.campaigns.sweep.row import FAILED, Row
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

    def add(self, rows: Iterable[Row]) -> None:
        """Count rows. A row has each rare state once, so ``probes`` counts runs."""
        for row in rows:
            cell = row["campaign"], row["cell"]
            self.runs[cell] += 1
            self.verdicts[cell, row["verdict"]] += 1
            if row["outcome"] == FAILED:
                self.failed[cell] += 1
                self._add_failures(
                    (row["campaign"], row["signature"]), FailureTally(1, row["seed"], row["cell"])
                )
            self.probes.update(item["probe"] for item in row["probes"])

    def add_tally(self, other: "SweepTally") -> None:
        """Add the counts of other runs."""
        self.runs.update(other.runs)
        self.verdicts.update(other.verdicts)
        self.failed.update(other.failed)
        self.probes.update(other.probes)
        for key, failure in other.failures.items():
            self._add_failures(key, failure)

    def _add_failures(self, key: tuple[str, str], more: FailureTally) -> None:
        known = self.failures.get(key)
        if known is None:
            self.failures[key] = more
            return
        known.count += more.count
        known.seed, known.cell = min((known.seed, known.cell), (more.seed, more.cell))
