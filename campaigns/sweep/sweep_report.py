"""What a sweep found, as data: failures by signature, rates by settings, probes, durations.

Everything is computed where the rows are (`queries`); what comes here is as large as the grid and
the kinds of failures, not as the sweep.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import exp
from typing import Any

from campaigns.probes import PROBES
from campaigns.report import AS_EXPECTED, UNDECIDED, UNEXPECTED
from campaigns.spelling import listed
from campaigns.sweep import queries
from campaigns.sweep.cell import Cell
from campaigns.sweep.confidence import wilson
from campaigns.sweep.definition import Definition
from campaigns.sweep.row import ERROR, OUTCOMES
from campaigns.sweep.row_table import SCHEMA_VERSION
from campaigns.version import VERSION
from checks.finding import HELD, INCONCLUSIVE, PERMITTED, VIOLATED, worst


@dataclass(frozen=True, slots=True, kw_only=True)
class CellCount:
    """The runs of a cell, by verdict and by outcome."""

    campaign: str
    cell: str
    runs: int
    verdicts: Mapping[str, int]
    outcomes: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A run that stands for others; ``events`` is its length where that is why it was taken."""

    cell: str
    seed: int
    reproduce: str
    events: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureGroup:
    """Failures of the same kind, with the run of the smallest seed, and the one of fewest events."""

    campaign: str
    signature: str
    rule: str
    promise: str
    chain: str
    failures: int
    earliest: Example
    shortest: Example


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """How often a rule's anomaly was seen in the runs of a cell that could tell.

    ``status`` is `violated` or `permitted`, None when it was never seen; ``low`` and ``high`` are
    the 95% interval of the rate (Wilson), from 0 to 1.
    """

    rule: str
    campaign: str
    cell: str
    status: str | None
    hits: int
    runs: int
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """In how many runs a rare state was reached, and how often in all."""

    probe: str
    runs: int
    times: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Duration:
    """What the runs of a campaign took: microseconds of one core, events, virtual milliseconds.

    The median and the time within which 99% were over are right to about 1%.
    """

    campaign: str
    runs: int
    events: int
    simulated_ms: int
    wall_us: int
    median_us: float
    p99_us: float
    longest_us: int

    def simulated_per_s(self) -> float:
        """Return simulated seconds a second of one core."""
        return self.simulated_ms * 1_000 / max(1, self.wall_us)


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepReport:
    """All of it. ``state`` is what ``sweep.json`` says; ``answered_by`` computed the rest."""

    state: Mapping[str, Any]
    answered_by: str
    cells: tuple[CellCount, ...]
    failures: tuple[FailureGroup, ...]
    rates: tuple[Rate, ...]
    probes: tuple[Reached, ...]
    never_reached: tuple[str, ...]
    required: tuple[str, ...]
    durations: tuple[Duration, ...]
    reasons: tuple[tuple[str, str, int], ...]

    @property
    def runs(self) -> int:
        """How many runs there are rows of."""
        return sum(cell.runs for cell in self.cells)

    def count(self, outcome: str) -> int:
        """Return how many runs had an outcome, as rows have it."""
        return sum(cell.outcomes.get(outcome, 0) for cell in self.cells)

    def verdicts(self) -> dict[str, int]:
        """Return how many runs had which verdict, the best first."""
        return {
            verdict: count
            for verdict in (HELD, PERMITTED, INCONCLUSIVE, VIOLATED, ERROR)
            if (count := sum(cell.verdicts.get(verdict, 0) for cell in self.cells))
        }

    def verdict(self) -> str:
        """Return the verdict of all; an error of harrow's own is the worst of all."""
        verdicts = self.verdicts()
        if ERROR in verdicts or self.state.get("unequal"):
            return ERROR
        return worst([*verdicts, *([INCONCLUSIVE] if self.required else [])])

    def as_mapping(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "schema": SCHEMA_VERSION,
            "version": VERSION,
            "verdict": self.verdict(),
            "runs": self.runs,
            "sweep": dict(self.state),
            "verdicts": self.verdicts(),
            "outcomes": {name: self.count(name) for name in OUTCOMES.values()},
            "cells": [asdict(cell) for cell in self.cells],
            "failures": [asdict(group) for group in self.failures],
            "rates": [asdict(rate) for rate in self.rates],
            "probes": [asdict(reached) for reached in self.probes],
            "probes_never_reached": list(self.never_reached),
            "reasons": [
                {"campaign": campaign, "reason": reason, "runs": runs}
                for campaign, reason, runs in self.reasons
            ],
            "required_probes_missed": list(self.required),
            "durations": [asdict(duration) for duration in self.durations],
        }


def report_of(sql: queries.Sql, definition: Definition, state: Mapping[str, Any]) -> SweepReport:
    """Ask for everything that is known of a sweep that has rows."""
    order = {(cell.campaign, cell.name): place for place, cell in enumerate(definition.cells)}
    cells = _cells(queries.ask(sql, queries.VERDICTS), order)
    probes = queries.ask(sql, queries.PROBES)
    reached: dict[str, Reached] = {}
    for _, _, probe, runs, times in probes:
        before = reached.get(probe, Reached(probe=probe, runs=0, times=0))
        reached[probe] = Reached(probe=probe, runs=before.runs + runs, times=before.times + int(times))
    return SweepReport(
        state=state,
        answered_by=sql.name,
        cells=cells,
        failures=tuple(_failures(queries.ask(sql, queries.FAILURES), definition)),
        rates=_rates(queries.ask(sql, queries.RULES), cells),
        probes=tuple(sorted(reached.values(), key=lambda each: (each.runs, each.probe))),
        never_reached=tuple(probe for probe in PROBES if probe not in reached),
        required=tuple(_required(definition.cells, {(row[0], row[1], row[2]) for row in probes}, cells)),
        durations=tuple(
            _durations(queries.ask(sql, queries.DURATIONS), queries.ask(sql, queries.WALL_TIMES))
        ),
        reasons=tuple(
            (campaign, reason, int(runs)) for campaign, reason, runs in queries.ask(sql, queries.REASONS)
        ),
    )


def empty_report(state: Mapping[str, Any]) -> SweepReport:
    """Return the report of a sweep without a row."""
    return SweepReport(
        state=state,
        answered_by="",
        cells=(),
        failures=(),
        rates=(),
        probes=(),
        never_reached=tuple(PROBES),
        required=(),
        durations=(),
        reasons=(),
    )


def _cells(
    rows: Iterable[queries.RowOfAnswer], order: Mapping[tuple[str, str], int]
) -> tuple[CellCount, ...]:
    verdicts: dict[tuple[str, str], dict[str, int]] = {}
    outcomes: dict[tuple[str, str], dict[str, int]] = {}
    for campaign, cell, verdict, outcome, runs in rows:
        for counts, name in ((verdicts, verdict), (outcomes, outcome)):
            of_cell = counts.setdefault((campaign, cell), {})
            of_cell[name] = of_cell.get(name, 0) + runs
    return tuple(
        CellCount(
            campaign=campaign,
            cell=cell,
            runs=sum(verdicts[campaign, cell].values()),
            verdicts=verdicts[campaign, cell],
            outcomes=outcomes[campaign, cell],
        )
        for campaign, cell in sorted(verdicts, key=lambda key: order.get(key, len(order)))
    )


def _failures(rows: Iterable[queries.RowOfAnswer], definition: Definition) -> Iterable[FailureGroup]:
    cells = {(cell.campaign, cell.name): cell for cell in definition.cells}

    def example(campaign: str, cell: str, seed: int, events: int | None = None) -> Example:
        reproduce = definition.reproduce(cells[campaign, cell], seed)
        return Example(cell=cell, seed=seed, reproduce=reproduce, events=events)

    for row in rows:
        campaign, signature, rule, promise, chain, failures = row[:6]
        earliest_cell, earliest_seed, shortest_cell, shortest_seed, shortest_events = row[6:]
        yield FailureGroup(
            campaign=campaign,
            signature=signature,
            rule=rule,
            promise=promise,
            chain=chain,
            failures=failures,
            earliest=example(campaign, earliest_cell, earliest_seed),
            shortest=example(campaign, shortest_cell, shortest_seed, shortest_events),
        )


def _rates(rows: Sequence[queries.RowOfAnswer], cells: Sequence[CellCount]) -> tuple[Rate, ...]:
    """Return the matrix of settings and rules: a rule that some cell broke has a line for each cell."""
    hits = {(rule, campaign, cell, status): runs for campaign, cell, rule, status, runs in rows}
    rates: list[Rate] = []
    for rule, campaign in sorted({(row[2], row[0]) for row in rows}):
        for cell in cells:
            if cell.campaign != campaign:
                continue
            tries = sum(cell.verdicts.get(verdict, 0) for verdict in (HELD, PERMITTED, VIOLATED))
            seen: list[tuple[str | None, int]] = [
                (status, hits[rule, campaign, cell.cell, status])
                for status in (VIOLATED, PERMITTED, INCONCLUSIVE)
                if (rule, campaign, cell.cell, status) in hits
            ]
            for status, count in seen or [(None, 0)]:
                low, high = wilson(count, tries)
                rates.append(
                    Rate(
                        rule=rule,
                        campaign=campaign,
                        cell=cell.cell,
                        status=status,
                        hits=count,
                        runs=tries,
                        low=low,
                        high=high,
                    )
                )
    return tuple(rates)


def _required(
    cells: Iterable[Cell],
    reached: frozenset[tuple[str, str, str]] | set[tuple[str, str, str]],
    counted: Iterable[CellCount],
) -> Iterable[str]:
    """Yield what is said of cells whose runs never reached a probe that their campaign requires."""
    runs = {(cell.campaign, cell.cell): cell.runs for cell in counted}
    for cell in cells:
        missed = [p for p in cell.plan.expect.probes if (cell.campaign, cell.name, p) not in reached]
        if missed and (cell.campaign, cell.name) in runs:
            count = runs[cell.campaign, cell.name]
            yield f"{cell.campaign}, {cell.name}: never reached: {listed(missed)} (in {count} runs)"


def _durations(
    rows: Iterable[queries.RowOfAnswer], wall_times: Sequence[queries.RowOfAnswer]
) -> Iterable[Duration]:
    for campaign, runs, events, simulated_ms, wall_us, longest_us in rows:
        steps = [(int(step), int(count)) for name, step, count in wall_times if name == campaign]
        yield Duration(
            campaign=campaign,
            runs=int(runs),
            events=int(events),
            simulated_ms=int(simulated_ms),
            wall_us=int(wall_us),
            median_us=min(longest_us, quantile_us(steps, 0.5)),
            p99_us=min(longest_us, quantile_us(steps, 0.99)),
            longest_us=int(longest_us),
        )


def quantile_us(steps: Sequence[tuple[int, int]], share: float) -> float:
    """Return the time within which a share of the runs was over; *steps* are those of `queries.WALL_TIMES`."""
    left = share * sum(count for _, count in steps)
    for step, count in steps:
        left -= count
        if left <= 0:
            return exp((step + 0.5) / queries.STEPS_PER_E)
    return 0.0


def exit_outcome(report: SweepReport) -> str:
    """Return the outcome of all runs together, as `campaigns.report.outcome` says it of one."""
    if report.count(OUTCOMES[UNEXPECTED]):
        return UNEXPECTED
    undecided = report.count(OUTCOMES[UNDECIDED]) or report.required or not report.runs
    return UNDECIDED if undecided else AS_EXPECTED
