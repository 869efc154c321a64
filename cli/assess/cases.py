"""Turns the assessment of a cluster into test cases for CI systems."""

from collections.abc import Iterator, Sequence

from harrow.campaigns.assess.assessment import Assessment, Limit, reason_text, runs_text
from harrow.campaigns.assess.tally import ModelTally
from harrow.campaigns.language.spelling import counted
from harrow.checks.finding import INCONCLUSIVE, VIOLATED
from harrow.cli.ci.suite import REPRODUCE, Case, Status, Suite, note_suite


def assessment_suites(assessment: Assessment) -> list[Suite]:
    """Return a suite for each fault model: a case for its promises, and one for each limit."""
    suites = [_suite(assessment, tally) for tally in assessment.tallies]
    if assessment.stopped:
        suites.append(note_suite("complete", f"{assessment.stopped}: not all runs finished"))
    return suites


def _suite(assessment: Assessment, tally: ModelTally) -> Suite:
    worst = tally.worst()
    reproduce = "" if worst is None else tally.reproduce(worst)
    return Suite(
        name=tally.model.title,
        file=assessment.cluster,
        cases=tuple(_cases(tally, assessment.limits, reproduce)),
        summary=tally.not_tried or tally.status,
        reproduce=reproduce,
        properties=(("fault_model", tally.model.name), ("runs", str(len(tally.conclusive)))),
    )


def _cases(tally: ModelTally, limits: Sequence[Limit], reproduce: str) -> Iterator[Case]:
    properties = ((REPRODUCE, reproduce),)
    if tally.not_tried:
        message = f"not tried: {tally.not_tried}"
        yield Case(name="promises", status=Status.SKIPPED, message=message, properties=properties)
        return
    details = tuple(
        f"{damage.fate}, {reason_text(damage.fate, damage.setting)}: {runs_text(damage, tally)}"
        for damage in tally.damage()
    )
    broken = ", ".join(f"{rule} in {counted(runs, 'run')}" for rule, runs in tally.broken().items())
    status = {VIOLATED: Status.FAILED, INCONCLUSIVE: Status.SKIPPED}.get(tally.status, Status.PASSED)
    message = f"broken: {broken}" if broken else tally.status
    yield Case(name="promises", status=status, message=message, details=details, properties=properties)
    for limit in limits:
        excess = limit.excess(tally)
        yield Case(
            name=limit.text,
            status=Status.PASSED if excess is None else Status.FAILED,
            message=excess or "",
            details=details if excess else (),
            properties=properties,
        )
