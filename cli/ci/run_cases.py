"""Runs for CI systems: a case for each rule, and one for whether all went as the campaign expects.

A case fails when a run violates its rule and is not as its campaign expects, or when the rule came out
otherwise than the campaign says of it.
"""

from collections.abc import Iterator
from dataclasses import replace
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

_expect_line: Final = lru_cache(maxsize=64)(expect_line)  # the same for all seeds


def cases_of(run: FinishedRun) -> Iterator[Case]:
    """Yield the cases of one run: each rule, and last whether it went as its campaign expects."""
    result, expect = run.result, run.result.plan.expect
    line = _expect_line(run.file, result.plan.variant)
    properties = (
        ("seed", str(result.seed)),
        (REPRODUCE, str(run.mapping["reproduce"])),
        ("run_id", str(run.mapping["run_id"])),
        ("trace_digest", result.trace_digest),
    )
    undecided = result.verdict.status == INCONCLUSIVE and expect.verdict != INCONCLUSIVE
    reasons = "; ".join(result.verdict.reasons) or "the run could not tell"
    failed = False
    for rule, judged in result.verdict.rules.items():
        case = _case_of_rule(result, rule, judged, undecided_because=reasons if undecided else None)
        failed = failed or case.status is Status.FAILED
        yield replace(case, line=line, properties=(*properties, ("promise", judged.promise)))
    told = report.reason(result)
    why = (("reason", told),) if told else ()
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
            message=f"otherwise than written for {result.plan.written_for}: {report.reason(result)}",
        )
    else:
        yield expectations


def _case_of_rule(result: RunResult, rule: str, judged: RuleResult, *, undecided_because: str | None) -> Case:
    expected = dict(result.plan.expect.rules).get(rule)
    unexpected = result.missed or not result.expected
    found = "; ".join(anomaly.sentence() for anomaly in report.anomalies(result) if anomaly.rule == rule)
    violated = judged.status == VIOLATED
    # What a campaign says of another release accuses nobody.
    accuses = result.plan.written_for is None or report.outcome(result) == report.UNEXPECTED
    status, message = Status.PASSED, found
    details: tuple[str, ...] = ()
    if accuses and violated and unexpected and not _is_foreseen(result.plan.expect, rule):
        status, message, details = Status.FAILED, found or "violated", (found, *_first_story(judged))
    elif undecided_because is not None and not violated:
        status, message = Status.SKIPPED, f"inconclusive: {undecided_because}"
    elif accuses and expected is not None and expected != judged.status:
        status, message = Status.FAILED, f"{rule} is {judged.status}, expected {expected}"
        details = (message, *_first_story(judged))
    elif judged.status == INCONCLUSIVE and expected is None:
        status, message = Status.SKIPPED, "inconclusive"
    elif violated and found:
        message = f"{found}, as the campaign expects"
    return Case(name=rule, status=status, message=message, details=details)


def _is_foreseen(expect: Expectation, rule: str) -> bool:
    """Return whether a campaign expects that this rule is violated."""
    return dict(expect.rules).get(rule, expect.verdict) == VIOLATED


def _first_story(judged: RuleResult) -> list[str]:
    lines: list[str] = []
    for first in incidents(judged.findings)[:1]:
        lines += story(first.first)
        alike = len(first.findings) - 1
        lines += [f"and {alike} more by the same cause"] if alike else []
        rest = len(judged.findings) - len(first.findings)
        lines += [f"and {rest} more"] if rest else []
    return lines


def story(finding: Finding) -> Iterator[str]:
    """Yield what led to a finding, and what would have prevented it."""
    value = "" if finding.value is None else f"{report.subject(finding)}, "
    yield f"{value}{report.place(finding)}:"
    for link in shortened(finding.chain):
        yield f"  {timed_sentence(link)}"
    for line in prevention_lines(finding):
        yield f"  {'  ' * line.depth}{line.text}"


def summary_of(run: FinishedRun) -> str:
    """Return what happened in a run, in a line; nothing where nothing did."""
    result = run.result
    told = report.reason(result)
    if run.outcome == report.AS_EXPECTED:
        return f"{told}, as expected" if result.verdict.status == VIOLATED else told
    if result.difference is not None and run.outcome != report.UNEXPECTED:
        return told
    found = report.in_short(result) if result.difference is None else told
    missed = [missed.message for missed in result.missed]
    return "; ".join(dict.fromkeys([*filter(None, [found]), *missed, *result.verdict.reasons]))
