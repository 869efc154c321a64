"""Turns a sweep into test suites for CI systems: a suite for each cell, a case for each rule."""

from collections.abc import Iterator, Sequence

from harrow.campaigns.language.spelling import run_name
from harrow.campaigns.record.report import BASE, UNDECIDED, UNEXPECTED
from harrow.campaigns.sweep.row import ERROR, EXPECTATION, OUTCOMES
from harrow.campaigns.sweep.sweep_report import CellCount, FailureGroup, FailureRate, SweepReport
from harrow.checks.finding import VIOLATED
from harrow.cli.ci.suite import EXPECTATIONS, REPRODUCE, Case, Status, Suite, note_suite
from harrow.cli.render.figures import grouped, interval, percent, times


def sweep_suites(report: SweepReport) -> list[Suite]:
    """Return the suites of a sweep, and one more if repeated runs differ or runs are missing."""
    suites = [_suite(report, cell) for cell in report.cells]
    if unequal := report.state.get("unequal"):
        message = f"{len(unequal)} repeated runs differ from the first: a bug in harrow, please report it"
        suites.append(note_suite("determinism", message, Status.ERROR))
    if not suites:
        suites.append(note_suite("complete", "nothing ran"))
    elif not report.state.get("complete"):
        message = f"not complete: {grouped(report.runs)} of {grouped(int(report.state['runs']))} runs"
        suites.append(note_suite("complete", message))
    return suites


def _suite(report: SweepReport, cell: CellCount) -> Suite:
    failed = cell.outcomes.get(OUTCOMES[UNEXPECTED], 0)
    summary = f"{grouped(failed)} of {grouped(cell.runs)} runs not as expected" if failed else ""
    groups = [group for group in report.failures if failed and group.campaign == cell.campaign]
    first_seen_here = [group for group in report.failures if _is_in(group, cell)]
    rates = [rate for rate in report.rates if (rate.campaign, rate.cell) == (cell.campaign, cell.cell)]
    return Suite(
        name=run_name(cell.campaign, None if cell.cell == BASE else cell.cell),
        cases=(*_rules(rates, groups, cell), _expectations(report, cell, summary, first_seen_here or groups)),
        summary=summary,
        reproduce=first_seen_here[0].earliest.reproduce if first_seen_here else "",
        properties=(
            ("campaign", cell.campaign),
            ("cell", cell.cell),
            ("runs", str(cell.runs)),
            ("seeds", "..".join(map(str, report.state.get("seeds", ())))),
        ),
    )


def _is_in(group: FailureGroup, cell: CellCount) -> bool:
    """Return whether a cell has the earliest failure of a kind."""
    return (group.campaign, group.earliest.cell) == (cell.campaign, cell.cell)


def _rules(rates: Sequence[FailureRate], groups: Sequence[FailureGroup], cell: CellCount) -> Iterator[Case]:
    """Yield a case for each rule, which fails if the cell broke it and has an unexpected run."""
    for rule in dict.fromkeys(rate.rule for rate in rates):
        rule_rates = [rate for rate in rates if rate.rule == rule]
        message = "; ".join(
            f"{rate.status or 'never'}: {grouped(rate.hits)} of {grouped(rate.runs)} runs"
            + (f", {percent(rate.hits / rate.runs)} {interval(rate.low, rate.high)}" if rate.runs else "")
            for rate in rule_rates
        )
        # Each kind of failure has one example. Kinds whose example is from this cell come first.
        kinds = sorted((group for group in groups if group.rule == rule), key=lambda g: not _is_in(g, cell))
        if kinds and any(rate.status == VIOLATED for rate in rule_rates):
            yield Case(
                name=rule,
                status=Status.FAILED,
                message=message,
                details=_details(kinds),
                properties=_properties(kinds[0]),
            )
        else:
            yield Case(name=rule, message=message)


def _expectations(report: SweepReport, cell: CellCount, summary: str, groups: Sequence[FailureGroup]) -> Case:
    status, message = Status.PASSED, f"{grouped(cell.runs)} runs"
    details: tuple[str, ...] = ()
    properties: tuple[tuple[str, str], ...] = ()
    undecided = cell.outcomes.get(OUTCOMES[UNDECIDED], 0)
    required = [text for text in report.required if text.startswith(f"{cell.campaign}, {cell.cell}: ")]
    if errors := cell.verdicts.get(ERROR, 0):
        status, details = Status.ERROR, _details(groups)
        message = f"{grouped(errors)} of {grouped(cell.runs)} runs ended in an error in harrow itself"
    elif summary:
        status, message, details = Status.FAILED, summary, (summary, *_details(groups))
        missed = [group for group in groups if group.rule == EXPECTATION] or groups
        properties = _properties(missed[0]) if missed else ()
    elif undecided or required:
        reasons = [f"{grouped(undecided)} of {grouped(cell.runs)} runs"] if undecided else []
        status, message = Status.SKIPPED, f"inconclusive: {'; '.join([*reasons, *required])}"
    return Case(name=EXPECTATIONS, status=status, message=message, details=details, properties=properties)


def _details(groups: Sequence[FailureGroup]) -> tuple[str, ...]:
    return tuple(line for group in groups for line in _kind(group))


def _kind(group: FailureGroup) -> Iterator[str]:
    yield f"{group.rule}, {times(group.failures)} in all cells{f', despite {group.promise}' if group.promise else ''}"
    if group.chain:
        yield f"  {group.chain}"
    yield f"  {group.earliest.reproduce}"


def _properties(group: FailureGroup) -> tuple[tuple[str, str], ...]:
    return (
        ("seed", str(group.earliest.seed)),
        (REPRODUCE, group.earliest.reproduce),
        ("signature", group.signature),
    )
