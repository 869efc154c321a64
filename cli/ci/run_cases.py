"""Turns a run into test cases for CI systems: one for each rule, and one for its expectations.

A case fails when the run unexpectedly violates its rule, or when the status of the rule differs
from the one that the campaign expects.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from harrow.campaigns.language.plan import Expectation
from harrow.campaigns.record import report
from harrow.campaigns.record.campaign_copy import expect_line
from harrow.campaigns.record.phrases import prevention_lines, shortened, timed_sentence
from harrow.campaigns.run.run_result import RunResult
from harrow.checks.finding import INCONCLUSIVE, VIOLATED, Finding, RuleResult
from harrow.checks.incident import incidents
from harrow.cli.ci.suite import EXPECTATIONS, MS_PER_S, REPRODUCE, Case, Status
from harrow.cli.commands.run_tally import FinishedRun
from harrow.cluster_model.lazy_dataclass import replace

_expect_line: Final = lru_cache(maxsize=64)(expect_line)  # The line is the same for all seeds.


def cases_of(run: FinishedRun) -> Iterator[Case]:
    """Yield the cases of one run: one for each rule, and then one for its expectations."""
    result, expect = run.result, run.result.plan.expect
    line = _expect_line(run.file, result.plan.variant)
    properties = (
        ("seed", str(result.seed)),
        (REPRODUCE, run.reproduce),
        ("run_id", report.run_id(run.result)),
        ("trace_digest", result.trace_digest),
    )
    undecided = result.verdict.status == INCONCLUSIVE and expect.verdict != INCONCLUSIVE
    reasons = "; ".join(result.verdict.reasons) or "the run did not decide it"
    failed = False
    for rule, judged in result.verdict.rules.items():
        case = _case_of_rule(result, rule, judged, undecided_because=reasons if undecided else None)
        failed = failed or case.status is Status.FAILED
        yield replace(case, line=line, properties=(*properties, ("promise", judged.promise)))
    why = (("reason", report.reason(result)),) if report.reason(result) else ()
    expectations = Case(
        name=EXPECTATIONS, line=line, properties=(*properties, *why), time_s=result.wall_ms / MS_PER_S
    )
    missed = result.missed if run.outcome == report.UNEXPECTED else ()
    if missed or (run.outcome == report.UNEXPECTED and not failed):
        yield replace(
            expectations,
            status=Status.FAILED,
            message=missed[0].message if missed else report.in_short(result) or "not as expected",
            details=tuple(f"{run.file}:{each.line or line or 1}: {each.message}" for each in missed),
            line=next((each.line for each in missed if each.line), line),
        )
    elif run.outcome == report.NOT_RUN:
        yield replace(expectations, status=Status.SKIPPED, message=f"skipped: {reasons}")
    elif run.outcome == report.UNDECIDED:
        yield replace(expectations, status=Status.SKIPPED, message=f"inconclusive: {reasons}")
    elif run.outcome == report.OTHERWISE:
        yield replace(
            expectations,
            message=f"differs from what it expects of {result.plan.written_for}: {report.reason(result)}",
        )
    else:
        yield expectations


def _case_of_rule(result: RunResult, rule: str, judged: RuleResult, *, undecided_because: str | None) -> Case:
    expected = dict(result.plan.expect.rules).get(rule)
    unexpected = result.missed or not result.expected
    anomalies = "; ".join(each.sentence() for each in report.anomalies(result) if each.rule == rule)
    violated = judged.status == VIOLATED
    # Expectations that were written for another release do not make a case fail.
    may_fail = result.plan.written_for is None or report.outcome(result) == report.UNEXPECTED
    status, message = Status.PASSED, anomalies
    details: tuple[str, ...] = ()
    if may_fail and violated and unexpected and not _is_expected(result.plan.expect, rule):
        status, message = Status.FAILED, anomalies or "violated"
        details = (anomalies, *_first_story(judged))
    elif undecided_because is not None and not violated:
        status, message = Status.SKIPPED, f"inconclusive: {undecided_because}"
    elif may_fail and expected is not None and expected != judged.status:
        status, message = Status.FAILED, f"{rule} is {judged.status}, expected {expected}"
        details = (message, *_first_story(judged))
    elif judged.status == INCONCLUSIVE and expected is None:
        status, message = Status.SKIPPED, "inconclusive"
    elif violated and anomalies:
        message = f"{anomalies}, as the campaign expects"
    return Case(name=rule, status=status, message=message, details=details)


def _is_expected(expect: Expectation, rule: str) -> bool:
    """Return whether the campaign expects a violation of this rule."""
    return dict(expect.rules).get(rule, expect.verdict) == VIOLATED


def _first_story(judged: RuleResult) -> list[str]:
    lines: list[str] = []
    for first in incidents(judged.findings)[:1]:
        lines += story(first.first)
        other_count = len(first.findings) - 1
        lines += [f"and {other_count} more by the same cause"] if other_count else []
        rest = len(judged.findings) - len(first.findings)
        lines += [f"and {rest} more"] if rest else []
    return lines


def story(finding: Finding) -> Iterator[str]:
    """Yield the chain that led to a finding, and what would have prevented the finding."""
    value = "" if finding.value is None else f"{report.subject(finding)}, "
    yield f"{value}{report.place(finding)}:"
    for link in shortened(finding.chain):
        yield f"  {timed_sentence(link)}"
    for line in prevention_lines(finding):
        yield f"  {'  ' * line.depth}{line.text}"


def summary_of(run: FinishedRun) -> str:
    """Return what happened in a run in one line; empty if there is nothing to tell."""
    result = run.result
    reason = report.reason(result)
    if run.outcome == report.AS_EXPECTED:
        return f"{reason}, as expected" if result.verdict.status == VIOLATED else reason
    if result.difference is not None and run.outcome != report.UNEXPECTED:
        return reason
    findings = report.in_short(result) if result.difference is None else reason
    missed = [each.message for each in result.missed]
    return "; ".join(dict.fromkeys([*filter(None, [findings]), *missed, *result.verdict.reasons]))
