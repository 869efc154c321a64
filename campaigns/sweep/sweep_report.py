"""The report of a sweep, as data: failures by signature, rates by settings, probes, durations.

Queries (`queries`) run where the rows are. The size of their results depends on the grid and on the
number of kinds of failures, not on the number of runs.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, field
from math import exp
from typing import Any, Final

from harrow.campaigns.language.spelling import counted, listed, quoted
from harrow.campaigns.record.report import AS_EXPECTED, UNDECIDED, UNEXPECTED
from harrow.campaigns.sweep import queries
from harrow.campaigns.sweep.cell import Cell
from harrow.campaigns.sweep.confidence import wilson
from harrow.campaigns.sweep.definition import Definition
from harrow.campaigns.sweep.grouping import Grouping
from harrow.campaigns.sweep.queries import Answer, Sql
from harrow.campaigns.sweep.row import ERROR, OUTCOMES, SCHEMA_VERSION
from harrow.campaigns.sweep.sweep_folder import SweepFolderError
from harrow.campaigns.version import version
from harrow.checks.finding import HELD, INCONCLUSIVE, PERMITTED, VIOLATED, worst
from harrow.cluster_model.lazy_dataclass import dataclass

_STEPS_PER_BIN: Final = 25
BIN_RATIO: Final = exp(_STEPS_PER_BIN / queries.STEPS_PER_E)
"""How much longer each bin of times (`TimeBin`) is than the one before: 28%."""

_FOLDER_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,200}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CellCount:
    """The number of runs of a cell, by verdict and by outcome."""

    campaign: str
    cell: str
    runs: int
    verdicts: Mapping[str, int]
    outcomes: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """An example of a run. ``events`` is its length if the run was chosen for its length."""

    cell: str
    seed: int
    reproduce: str
    events: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureGroup:
    """Failures of one kind, with the run of the smallest seed and that with the fewest events.

    ``cells`` has the number of failures in each cell, the most first.
    """

    campaign: str
    signature: str
    rule: str
    promise: str
    chain: str
    failures: int
    earliest: Example
    shortest: Example
    cells: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRate:
    """How often a rule's anomaly occurred in the conclusive runs of a cell.

    ``status`` is `violated` or `permitted`, None if it never occurred. ``low`` and ``high`` are the
    95% interval of the rate (Wilson), from 0 to 1.
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
class ProbeCount:
    """How many runs reached a rare state, and how often all runs together reached it."""

    probe: str
    runs: int
    times: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Duration:
    """The cost of a campaign's runs: microseconds of one core, events, virtual milliseconds.

    The median and the 99th percentile are accurate to about 1%.
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
        """Return simulated seconds per second of one core."""
        return self.simulated_ms * 1_000 / max(1, self.wall_us)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantiles:
    """Quantiles of one number per run, accurate to about 1%."""

    median_us: float
    p99_us: float
    max_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeBin:
    """The number of runs with a time of at least ``from_us`` and below ``to_us``.

    Each bin is `BIN_RATIO` times as long as the one before. Bins without runs are left out.
    """

    from_us: float
    to_us: float
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CellService:
    """The service levels of the runs of a cell that sent records.

    ``outage`` has quantiles of the longest outage of each run: a time in which producers sent to a
    partition, but got no ack from it. ``ack_p99`` has quantiles of the 99th percentile of each
    run's times to ack; None if nothing was acked. ``outage_bins`` has the distribution of outages.
    """

    campaign: str
    cell: str
    runs: int
    sent: int
    acked: int
    failed: int
    unknown: int
    outages: int
    outage: Quantiles
    ack_p99: Quantiles | None
    outage_bins: tuple[TimeBin, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepReport:
    """The whole report.

    ``state`` comes from ``sweep.json``. The rest comes from queries, which the engine with the name
    ``answered_by`` has answered. ``required`` are reasons: a required probe was never reached.
    With ``by``, cells that have equal values of these keys are reported as one.
    """

    state: Mapping[str, Any]
    answered_by: str = ""
    cells: tuple[CellCount, ...] = ()
    failures: tuple[FailureGroup, ...] = ()
    rates: tuple[FailureRate, ...] = ()
    probes: tuple[ProbeCount, ...] = ()
    never_reached: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    durations: tuple[Duration, ...] = ()
    service: tuple[CellService, ...] = ()
    reasons: tuple[tuple[str, str, int], ...] = ()
    by: tuple[str, ...] = ()

    @property
    def runs(self) -> int:
        return sum(cell.runs for cell in self.cells)

    def count(self, outcome: str) -> int:
        """Return the number of runs with an outcome, which is named as in rows."""
        return sum(cell.outcomes.get(outcome, 0) for cell in self.cells)

    def verdicts(self) -> dict[str, int]:
        """Return the number of runs with each verdict, the best first."""
        return {
            verdict: count
            for verdict in (HELD, PERMITTED, INCONCLUSIVE, VIOLATED, ERROR)
            if (count := sum(cell.verdicts.get(verdict, 0) for cell in self.cells))
        }

    def verdict(self) -> str:
        """Return the verdict of the sweep. An error of harrow itself is the worst."""
        verdicts = self.verdicts()
        if ERROR in verdicts or self.state.get("unequal"):
            return ERROR
        return worst([*verdicts, *([INCONCLUSIVE] if self.required else [])])

    def as_mapping(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA_VERSION,
            "version": version(),
            "verdict": self.verdict(),
            "runs": self.runs,
            "sweep": dict(self.state),
            "verdicts": self.verdicts(),
            "outcomes": {name: self.count(name) for name in OUTCOMES.values()},
            "cells": [asdict(cell) for cell in self.cells],
            "failures": [asdict(group) for group in self.failures],
            "rates": [asdict(rate) for rate in self.rates],
            "probes": [asdict(count) for count in self.probes],
            "probes_never_reached": list(self.never_reached),
            "reasons": [
                {"campaign": campaign, "reason": reason, "runs": runs}
                for campaign, reason, runs in self.reasons
            ],
            "required_probes_missed": list(self.required),
            "durations": [asdict(duration) for duration in self.durations],
            "service": [asdict(cell) for cell in self.service],
        }


def report_of(
    sql: Sql, definition: Definition, state: Mapping[str, Any], by: Sequence[str] = ()
) -> SweepReport:
    """Return the report of a sweep that has rows.

    With *by*, cells that have equal values of these keys are reported together.

    Raises:
        SweepFolderError: A row is not one that this sweep could have written.
        VaryError: No cell has one of the keys in *by*.

    """
    for run in sql.ask(queries.IMPOSSIBLE):
        raise SweepFolderError(f"no sweep writes a row like that of {_run_text(*run)}")
    verdicts = sql.ask(queries.VERDICTS)
    each_cell = cells = tuple(_cells(verdicts, [(cell.campaign, cell.name) for cell in definition.cells]))
    failure_cells, rules = sql.ask(queries.FAILURE_CELLS), sql.ask(queries.RULES)
    service, service_times = sql.ask(queries.SERVICE), sql.ask(queries.SERVICE_TIMES)
    if by:
        grouping = Grouping(definition.cells, by)
        groups = grouping.as_cells()
        state = {**state, "cells": groups}
        cells = tuple(
            _cells(grouping.merged(verdicts, 4), [(group["campaign"], group["cell"]) for group in groups])
        )
        failure_cells = grouping.merged(failure_cells, 3, cell=2)
        rules, service_times = grouping.merged(rules, 4), grouping.merged(service_times, 4)
        service = grouping.merged(service, 2, maxima=2)
    probes = sql.ask(queries.PROBES)
    runs: Counter[str] = Counter()
    times: Counter[str] = Counter()
    for _, _, probe, run_count, time_count in probes:
        runs[probe] += run_count
        times[probe] += int(time_count)
    counts = [ProbeCount(probe=probe, runs=runs[probe], times=times[probe]) for probe in runs]
    return SweepReport(
        state=state,
        answered_by=sql.name,
        by=tuple(by),
        cells=cells,
        failures=tuple(_failures(sql.ask(queries.FAILURES), failure_cells, definition)),
        rates=tuple(_rates(rules, cells)),
        probes=tuple(sorted(counts, key=lambda count: (count.runs, count.probe))),
        never_reached=tuple(probe for probe in definition.probes() if probe not in runs),
        required=tuple(_required(definition.cells, {row[:3] for row in probes}, each_cell)),
        durations=tuple(_durations(sql.ask(queries.DURATIONS), sql.ask(queries.WALL_TIMES))),
        service=tuple(_service(service, service_times, cells)),
        reasons=tuple((campaign, reason, int(count)) for campaign, reason, count in sql.ask(queries.REASONS)),
    )


def _run_text(*parts: object) -> str:
    return quoted(", ".join(map(str, parts)))


def _cells(rows: Answer, names: Iterable[tuple[str, str]]) -> Iterator[CellCount]:
    order = {name: place for place, name in enumerate(names)}
    verdicts: dict[tuple[str, str], Counter[str]] = {}
    outcomes: dict[tuple[str, str], Counter[str]] = {}
    for campaign, cell, verdict, outcome, runs in rows:
        if (campaign, cell) not in order:
            raise SweepFolderError(f"the sweep has no cell {_run_text(campaign, cell)}")
        verdicts.setdefault((campaign, cell), Counter())[verdict] += runs
        outcomes.setdefault((campaign, cell), Counter())[outcome] += runs
    for key in sorted(verdicts, key=order.__getitem__):
        yield CellCount(
            campaign=key[0],
            cell=key[1],
            runs=verdicts[key].total(),
            verdicts=dict(verdicts[key]),
            outcomes=dict(outcomes[key]),
        )


def _failures(rows: Answer, by_cell: Answer, definition: Definition) -> Iterator[FailureGroup]:
    cells = {(cell.campaign, cell.name): cell for cell in definition.cells}
    failures_in: dict[tuple[str, str], dict[str, int]] = {}
    for campaign, signature, cell, failures in sorted(by_cell, key=lambda row: -row[3]):
        failures_in.setdefault((campaign, signature), {})[cell] = failures

    def example(campaign: str, cell: str, seed: int, events: int | None = None) -> Example:
        if (campaign, cell) not in cells:
            raise SweepFolderError(f"rows of {quoted(campaign)} disagree about the signature of a failure")
        reproduce = definition.reproduce(cells[campaign, cell], seed)
        return Example(cell=cell, seed=seed, reproduce=reproduce, events=events)

    for campaign, signature, rule, promise, chain, failures, *examples in rows:
        if not _FOLDER_NAME.fullmatch(signature):
            raise SweepFolderError(f"no failure of a sweep has the signature {quoted(signature)}")
        yield FailureGroup(
            campaign=campaign,
            signature=signature,
            rule=rule,
            promise=promise,
            chain=chain,
            failures=failures,
            earliest=example(campaign, *examples[:2]),
            shortest=example(campaign, *examples[2:]),
            cells=failures_in[campaign, signature],
        )


def _rates(rows: Answer, cells: Sequence[CellCount]) -> Iterator[FailureRate]:
    """Yield the matrix of rules and cells. A rule that one cell broke has a line for every cell."""
    hits = {(rule, campaign, cell, status): runs for campaign, cell, rule, status, runs in rows}
    for rule, campaign in sorted({(row[2], row[0]) for row in rows}):
        for cell in (cell for cell in cells if cell.campaign == campaign):
            tries = sum(cell.verdicts.get(verdict, 0) for verdict in (HELD, PERMITTED, VIOLATED))
            statuses: list[tuple[str | None, int]] = [
                (status, hits[rule, campaign, cell.cell, status])
                for status in (VIOLATED, PERMITTED, INCONCLUSIVE)
                if (rule, campaign, cell.cell, status) in hits
            ]
            for status, count in statuses or [(None, 0)]:
                low, high = wilson(count, tries)
                yield FailureRate(
                    rule=rule,
                    campaign=campaign,
                    cell=cell.cell,
                    status=status,
                    hits=count,
                    runs=tries,
                    low=low,
                    high=high,
                )


def _required(
    cells: Iterable[Cell], reached: Collection[tuple[str, ...]], counts: Iterable[CellCount]
) -> Iterator[str]:
    """Yield a reason for each cell whose runs never reached a required probe."""
    runs = {(count.campaign, count.cell): count.runs for count in counts}
    for cell in cells:
        missed = [p for p in cell.plan.expect.probes if (cell.campaign, cell.name, p) not in reached]
        if missed and (count := runs.get((cell.campaign, cell.name))):
            yield f"{cell.campaign}, {cell.name}: never reached: {listed(missed)} (in {counted(count, 'run')})"


def _durations(rows: Answer, wall_times: Answer) -> Iterator[Duration]:
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


def _service(rows: Answer, times: Answer, cells: Sequence[CellCount]) -> Iterator[CellService]:
    steps: dict[tuple[str, ...], list[tuple[int, int]]] = {}
    for campaign, name, measure, step, count in times:
        steps.setdefault((campaign, name, measure), []).append((int(step), int(count)))

    def quantiles(campaign: str, name: str, measure: str, max_us: int) -> Quantiles:
        cell_steps = steps[campaign, name, measure]
        median_us, p99_us = (min(max_us, quantile_us(cell_steps, share)) for share in (0.5, 0.99))
        return Quantiles(median_us=median_us, p99_us=p99_us, max_us=max_us)

    by_cell = {(row[0], row[1]): row[2:] for row in rows}
    for cell in cells:
        key = (cell.campaign, cell.cell)
        if key not in by_cell:
            continue
        runs, sent, acked, failed, unknown, outages, outage_us, ack_p99_us = by_cell[key]
        yield CellService(
            campaign=cell.campaign,
            cell=cell.cell,
            runs=int(runs),
            sent=int(sent),
            acked=int(acked),
            failed=int(failed),
            unknown=int(unknown),
            outages=int(outages),
            outage=quantiles(*key, queries.OUTAGE, int(outage_us)),
            outage_bins=tuple(_bins(steps[*key, queries.OUTAGE])),
            ack_p99=None if ack_p99_us is None else quantiles(*key, queries.ACK_P99, int(ack_p99_us)),
        )


def _bins(steps: Iterable[tuple[int, int]]) -> Iterator[TimeBin]:
    runs: Counter[int] = Counter()
    for step, count in steps:
        runs[step // _STEPS_PER_BIN] += count
    for number in sorted(runs):
        yield TimeBin(from_us=BIN_RATIO**number, to_us=BIN_RATIO ** (number + 1), runs=runs[number])


def quantile_us(steps: Sequence[tuple[int, int]], share: float) -> float:
    """Return a quantile of times. *steps* are (step, count) pairs as of `queries.WALL_TIMES`."""
    remaining = share * sum(count for _, count in steps)
    for step, count in steps:
        remaining -= count
        if remaining <= 0:
            return exp((step + 0.5) / queries.STEPS_PER_E)
    return 0.0


def exit_outcome(report: SweepReport) -> str:
    """Return the outcome of all runs together, named as by `harrow.campaigns.record.report`."""
    if report.count(OUTCOMES[UNEXPECTED]):
        return UNEXPECTED
    undecided = report.count(OUTCOMES[UNDECIDED]) or report.required or not report.runs
    return UNDECIDED if undecided else AS_EXPECTED
