"""The verdict on a history for CI systems: a case for each anomaly that it was searched for."""

import shlex
from collections.abc import Iterator

from campaigns.check_report import HistorySize
from campaigns.report import place, subject
from checks.finding import INCONCLUSIVE, PERMITTED, VIOLATED, Finding, Verdict
from cli.ci_suite import EXPECTATIONS, REPRODUCE, Case, Status, Suite

_FINDINGS_TOLD = 3


def check_suite(verdict: Verdict, size: HistorySize, name: str, arguments: list[str]) -> Suite:
    """Return the suite of a history; *arguments* are those that `harrow check` was given."""
    reproduce = shlex.join(["harrow", "check", *arguments])
    cases = list(_cases(verdict, (REPRODUCE, reproduce)))
    if verdict.status == INCONCLUSIVE:
        reasons = "; ".join(verdict.reasons) or "the history does not tell"
        cases.append(Case(name=EXPECTATIONS, status=Status.SKIPPED, message=f"inconclusive: {reasons}"))
    return Suite(
        name=name,
        cases=tuple(cases),
        told="" if verdict.status == VIOLATED else verdict.status,
        reproduce=reproduce,
        properties=(
            ("lines", str(size.lines)),
            ("sent", str(size.sent)),
            ("acked", str(size.acked)),
            ("polled", str(size.polled)),
        ),
    )


def _cases(verdict: Verdict, *properties: tuple[str, str]) -> Iterator[Case]:
    for rule, judged in verdict.rules.items():
        broken = [finding for finding in judged.findings if finding.permitted_by is None]
        told = ", ".join(subject(finding) for finding in (broken or judged.findings)[:_FINDINGS_TOLD])
        rest = len(broken or judged.findings) - _FINDINGS_TOLD
        told += f" and {rest} more" if rest > 0 else ""
        said = (*properties, ("promise", judged.promise))
        if judged.status == VIOLATED:
            details = "\n".join(line for finding in broken[:_FINDINGS_TOLD] for line in _story(finding))
            message = f"{told}: {rule} despite {judged.promise}"
            yield Case(name=rule, status=Status.FAILED, message=message, details=details, properties=said)
        elif judged.status == INCONCLUSIVE or (verdict.status == INCONCLUSIVE and judged.status != PERMITTED):
            yield Case(name=rule, status=Status.SKIPPED, message="inconclusive", properties=said)
        else:
            settings = dict.fromkeys(finding.permitted_by for finding in judged.findings)
            permitted = " and ".join(str(setting) for setting in settings)
            message = f"{told}: permitted by {permitted}" if permitted else ""
            yield Case(name=rule, message=message, properties=said)


def _story(finding: Finding) -> Iterator[str]:
    value = "" if finding.value is None else f"{subject(finding)}, "
    yield f"{value}{place(finding)}:"
    for link in finding.chain:
        yield f"  {link.text}"
