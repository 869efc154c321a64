"""Turns the verdict on a history into test cases for CI systems, one for each rule."""

import shlex
from collections.abc import Iterator

from harrow.campaigns.record.check_report import HistorySize
from harrow.campaigns.record.report import subject
from harrow.checks.finding import INCONCLUSIVE, PERMITTED, SKIPPED, VIOLATED, Verdict
from harrow.cli.ci.run_cases import story
from harrow.cli.ci.suite import EXPECTATIONS, REPRODUCE, Case, Status, Suite
from harrow.cli.render.figures import grouped

_FINDINGS_SHOWN = 3


def check_suite(verdict: Verdict, size: HistorySize, name: str, arguments: list[str]) -> Suite:
    """Return the suite of a history. *arguments* are those of `harrow check`.

    Rules about which the history cannot show anything have no case.
    """
    reproduce = shlex.join(["harrow", "check", *arguments])
    reasons = "; ".join(verdict.reasons) or "the history does not decide it"
    undecided = f"inconclusive: {reasons}"
    cases = list(_cases(verdict, undecided, (REPRODUCE, reproduce)))
    if verdict.status == INCONCLUSIVE:
        cases.append(Case(name=EXPECTATIONS, status=Status.SKIPPED, message=undecided))
    return Suite(
        name=name,
        cases=tuple(cases),
        summary="" if verdict.status == VIOLATED else verdict.status,
        reproduce=reproduce,
        properties=tuple((key, str(getattr(size, key))) for key in ("lines", "sent", "acked", "polled")),
    )


def _cases(verdict: Verdict, undecided: str, reproduce: tuple[str, str]) -> Iterator[Case]:
    for rule, judged in verdict.rules.items():
        if judged.status == SKIPPED:
            continue
        broken = [finding for finding in judged.findings if finding.permitted_by is None]
        shown = broken or judged.findings
        values = ", ".join(subject(finding) for finding in shown[:_FINDINGS_SHOWN])
        total = judged.broken or judged.count
        if total > _FINDINGS_SHOWN:
            values += f" and {grouped(total - _FINDINGS_SHOWN)} more"
        status, message = Status.PASSED, ""
        details: tuple[str, ...] = ()
        if judged.status == VIOLATED:
            status, message = Status.FAILED, f"{values}: {rule} despite {judged.promise}"
            details = tuple(line for finding in broken[:_FINDINGS_SHOWN] for line in story(finding))
        elif judged.status == INCONCLUSIVE or (verdict.status == INCONCLUSIVE and judged.status != PERMITTED):
            status, message = Status.SKIPPED, undecided
        elif judged.findings:
            settings = dict.fromkeys(str(finding.permitted_by) for finding in judged.findings)
            message = f"{values}: permitted by {' and '.join(settings)}"
        properties = (reproduce, ("promise", judged.promise))
        yield Case(name=rule, status=status, message=message, details=details, properties=properties)
