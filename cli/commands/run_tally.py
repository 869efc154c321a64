"""Counts the results of all runs of a command."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import field
from pathlib import Path
from typing import Any

from harrow.campaigns.language.plan_reach import reach_of
from harrow.campaigns.probes.probes import in_reach
from harrow.campaigns.probes.reach import ProbeReach
from harrow.campaigns.record.report import (
    AS_EXPECTED,
    NOT_RUN,
    OTHERWISE,
    UNDECIDED,
    UNEXPECTED,
    outcome,
    run_as_mapping,
    variant_name,
)
from harrow.campaigns.run.required_probes import RequiredProbes
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.storage.location import Location
from harrow.cli import exit_code
from harrow.cli.commands.run_selection import Selection
from harrow.cluster_model.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRun:
    """A finished run. ``reproduce`` is the command that repeats it, ``file`` its campaign file.

    ``folder`` has its result files.
    """

    result: RunResult
    reproduce: str
    file: Path
    folder: Location | None

    @property
    def outcome(self) -> str:
        return outcome(self.result)

    @property
    def variant(self) -> str:
        """The name that selects the variant with ``--variant``."""
        return variant_name(self.result.plan)

    def as_mapping(self) -> dict[str, Any]:
        """Return the JSON of the run, which contains its id: that needs a digest of all sources."""
        return run_as_mapping(self.result, self.reproduce)


@dataclass(slots=True, kw_only=True)
class Tally:
    """Counts of all runs. ``stopped`` says why fewer than ``planned`` ran."""

    planned: int
    several_seeds: bool = False
    campaigns: set[str] = field(default_factory=set)
    verdicts: Counter[tuple[str, str]] = field(default_factory=Counter)
    failed: list[str] = field(default_factory=list)
    probes: set[str] = field(default_factory=set)
    reach: ProbeReach = field(default_factory=ProbeReach)
    required: RequiredProbes = field(default_factory=RequiredProbes)
    simulated_us: int = 0
    wall_s: float = 0.0
    stopped: str | None = None
    interrupted: bool = False
    program_code: int = 0
    """The exit code of the program that used a served cluster."""

    def add(self, run: FinishedRun) -> None:
        plan = run.result.plan
        self.campaigns.add(plan.campaign)
        self.verdicts[run.result.verdict.status, run.outcome] += 1
        self.reach |= reach_of(plan)
        self.probes.update(probe for probe, count in run.result.probes.items() if count)
        if self.several_seeds:
            # With one seed, each run has to reach all required probes, and itself reports misses.
            self.required.add(run.result)
        self.simulated_us += run.result.simulated_us
        if run.outcome == UNEXPECTED:
            self.failed.append(run.reproduce)

    @property
    def finished(self) -> int:
        return self.verdicts.total()

    def probes_never_reached(self) -> list[str]:
        """Return the rare states that the runs could have reached but did not."""
        return [probe for probe in in_reach(self.reach) if probe not in self.probes]

    def exit_code(self) -> int:
        if self.interrupted:
            return exit_code.INTERRUPTED
        if self.program_code:
            return self.program_code
        outcomes = [outcome for _, outcome in self.verdicts]
        return exit_code_of([*outcomes, UNDECIDED] if self.required.unreached() else outcomes)

    def exit_meaning(self) -> str:
        """Return the exit code in words."""
        if self.program_code and not self.interrupted:
            return "the exit code of the program"
        return exit_code.MEANINGS[self.exit_code()]


class RunPrinter:
    """Prints runs in one format. A subclass for a format overrides the methods that it needs."""

    def begin(self, selection: Selection) -> None:
        """Handle the start of a campaign's runs."""

    def add(self, run: FinishedRun) -> None:
        """Handle a finished run."""

    def end(self) -> None:
        """Handle the end of the campaign's runs, even if some are missing."""

    def finish(self, tally: Tally) -> None:
        """Complete the output after all runs."""


@dataclass(frozen=True, slots=True)
class SeveralPrinters(RunPrinter):
    """Prints runs in several formats."""

    printers: tuple[RunPrinter, ...]

    def begin(self, selection: Selection) -> None:
        for printer in self.printers:
            printer.begin(selection)

    def add(self, run: FinishedRun) -> None:
        for printer in self.printers:
            printer.add(run)

    def end(self) -> None:
        for printer in self.printers:
            printer.end()

    def finish(self, tally: Tally) -> None:
        for printer in self.printers:
            printer.finish(tally)


def exit_code_of(outcomes: Iterable[str]) -> int:
    """Return the exit code for runs with these outcomes. A failure outweighs an undecided run.

    Skipped runs count only if all were skipped. If a campaign was written for another release, a
    run that ends differently than expected does not fail (`OTHERWISE`).
    """
    decisive = frozenset(outcomes) - {NOT_RUN}
    if UNEXPECTED in decisive:
        return exit_code.BROKEN
    return exit_code.OK if decisive and decisive <= {AS_EXPECTED, OTHERWISE} else exit_code.INCONCLUSIVE
