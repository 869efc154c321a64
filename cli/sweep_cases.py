"""A sweep for CI systems: a suite for each cell of its grid, a case for each rule that some run broke."""

from collections.abc import Iterator, Sequence

from campaigns.report import BASE, UNDECIDED, UNEXPECTED
from campaigns.spelling import run_name
from campaigns.sweep.row import ERROR, EXPECTATION, OUTCOMES
from campaigns.sweep.sweep_report import CellCount, FailureGroup, Rate, SweepReport
from checks.finding import VIOLATED
from cli.ci_suite import EXPECTATIONS, REPRODUCE, Case, Status, Suite, note_suite
from cli.render_sweep import grouped, interval, percent


def sweep_suites(report: SweepReport) -> list[Suite]:
    """Return the suites of a sweep, with what is to be known of the whole."""
    suites = [_suite(report, cell) for cell in report.cells]
    if unequal := report.state.get("unequal"):
        message = f"{len(unequal)} repeated runs came out differently: a flaw of harrow, please report it"
        suites.append(note_suite("determinism", message, Status.ERROR))
    if not suites:
        suites.append(note_suite("complete", "nothing ran"))
    elif not report.state.get("complete"):
        message = f"not complete: {grouped(report.runs)} of {grouped(int(report.state['runs']))} runs"
        suites.append(note_suite("complete", message))
    return suites


def _suite(report: SweepReport, cell: CellCount) -> Suite:
    failed = cell.outcomes.get(OUTCOMES[UNEXPECTED], 0)
    groups = [group for group in report.failures if group.campaign == cell.campaign]
    here = [group for group in groups if group.earliest.cell == cell.cell]
    rates = [rate for rate in report.rates if (rate.campaign, rate.cell) == (cell.campaign, cell.cell)]
    cases = list(_rules(rates, groups if failed else [], cell))
    cases.append(_expectations(report, cell, failed, here or [group for group in groups if failed]))
    first = next(iter(here), None)
    return Suite(
        name=run_name(cell.campaign, None if cell.cell == BASE else cell.cell),
        cases=tuple(cases),
        told=f"{grouped(failed)} of {grouped(cell.runs)} runs not as expected" if failed else "",
        reproduce="" if first is None else first.earliest.reproduce,
        properties=(
            ("campaign", cell.campaign),
            ("cell", cell.cell),
            ("runs", str(cell.runs)),
            ("seeds", "..".join(map(str, report.state.get("seeds", ())))),
        ),
    )


def _rules(rates: Sequence[Rate], groups: Sequence[FailureGroup], cell: CellCount) -> Iterator[Case]:
    """Yield a case for each rule: it failed where the cell broke it and some run of it was not expected."""
    for rule in dict.fromkeys(rate.rule for rate in rates):
        of_rule = [rate for rate in rates if rate.rule == rule]
        told = "; ".join(
            f"{rate.status or 'never'}: {grouped(rate.hits)} of {grouped(rate.runs)} runs"
            + (f", {percent(rate.hits / rate.runs)} {interval(rate)}" if rate.runs else "")
            for rate in of_rule
        )
        kinds = [group for group in groups if group.rule == rule]
        broken = any(rate.status == VIOLATED for rate in of_rule)
        if not (broken and kinds):
            yield Case(name=rule, message=told)
            continue
        # The example of a kind of failure is the first of all cells; one of this cell is told first.
        kinds.sort(key=lambda group: group.earliest.cell != cell.cell)
        yield Case(
            name=rule,
            status=Status.FAILED,
            message=told,
            details="\n".join(line for group in kinds for line in _kind(group)),
            properties=_properties(kinds[0]),
        )


def _expectations(report: SweepReport, cell: CellCount, failed: int, groups: Sequence[FailureGroup]) -> Case:
    name = EXPECTATIONS
    undecided = cell.outcomes.get(OUTCOMES[UNDECIDED], 0)
    if errors := cell.verdicts.get(ERROR, 0):
        message = f"{grouped(errors)} of {grouped(cell.runs)} runs ended in an error of harrow's own"
        return Case(name=name, status=Status.ERROR, message=message, details=_details(groups))
    if failed:
        message = f"{grouped(failed)} of {grouped(cell.runs)} runs not as expected"
        missed = [group for group in groups if group.rule == EXPECTATION] or list(groups)
        return Case(
            name=name,
            status=Status.FAILED,
            message=message,
            details=f"{message}\n{_details(groups)}".strip(),
            properties=_properties(missed[0]) if missed else (),
        )
    required = [text for text in report.required if text.startswith(f"{cell.campaign}, {cell.cell}: ")]
    if undecided or required:
        reasons = [f"{grouped(undecided)} of {grouped(cell.runs)} runs"] if undecided else []
        message = f"inconclusive: {'; '.join([*reasons, *required])}"
        return Case(name=name, status=Status.SKIPPED, message=message)
    return Case(name=name, message=f"{grouped(cell.runs)} runs")


def _details(groups: Sequence[FailureGroup]) -> str:
    return "\n".join(line for group in groups for line in _kind(group))


def _kind(group: FailureGroup) -> Iterator[str]:
    times = "once" if group.failures == 1 else f"{grouped(group.failures)} times"
    yield f"{group.rule}, {times} in all cells{f', despite {group.promise}' if group.promise else ''}"
    if group.chain:
        yield f"  {group.chain}"
    yield f"  {group.earliest.reproduce}"


def _properties(group: FailureGroup) -> tuple[tuple[str, str], ...]:
    return (
        ("seed", str(group.earliest.seed)),
        (REPRODUCE, group.earliest.reproduce),
        ("signature", group.signature),
    )
