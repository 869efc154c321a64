"""Runs for CI systems: a case for each rule, and one for whether all went as the campaign expects.

A case fails when its rule was violated in a run that is not as its campaign expects, or came out
otherwise than the campaign says of it.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Final

from campaigns.campaign_copy import expect_line
from campaigns.plan import Expectation
from campaigns.report import AS_EXPECTED, UNDECIDED, UNEXPECTED, anomalies, in_short, place, subject
from campaigns.run_result import RunResult
from checks.finding import INCONCLUSIVE, VIOLATED, RuleResult
from cli.ci_suite import EXPECTATIONS, MS_PER_S, REPRODUCE, Case, Status
from cli.run_tally import FinishedRun

_FINDINGS_TOLD: Final = 1
_expect_line: Final = lru_cache(maxsize=64)(expect_line)  # the same for all seeds


def cases_of(run: FinishedRun) -> Iterator[Case]:
    """Yield the cases of one run: each rule, and last whether it went as its campaign expects."""
    result, expect = run.result, run.result.plan.expect
    line = _expect_line(run.file, result.plan.variant)
    properties = _properties(run)
    undecided = result.verdict.status == INCONCLUSIVE and expect.verdict != INCONCLUSIVE
    reasons = "; ".join(result.verdict.reasons) or "the run could not tell"
    failed = False
    for rule, judged in result.verdict.rules.items():
        case = _case_of_rule(result, rule, judged, undecided_because=reasons if undecided else None)
        failed = failed or case.status is Status.FAILED
        yield replace(case, line=line, properties=(*properties, ("promise", judged.promise)))
    expectations = Case(name=EXPECTATIONS, line=line, properties=properties, time_s=result.wall_ms / MS_PER_S)
    missed = result.missed if run.outcome == UNEXPECTED else ()
    if missed or (run.outcome == UNEXPECTED and not failed):
        told = [f"{run.file}:{each.line or line or 1}: {each.message}" for each in missed]
        yield replace(
            expectations,
            status=Status.FAILED,
            message=missed[0].message if missed else in_short(result) or "not as expected",
            details="\n".join(told),
            line=next((each.line for each in missed if each.line), line),
        )
    elif run.outcome == UNDECIDED:
        yield replace(expectations, status=Status.SKIPPED, message=f"inconclusive: {reasons}")
    else:
        yield expectations


def _case_of_rule(result: RunResult, rule: str, judged: RuleResult, *, undecided_because: str | None) -> Case:
    wanted = dict(result.plan.expect.rules).get(rule)
    unexpected = result.missed or not result.expected
    told = "; ".join(anomaly.sentence() for anomaly in anomalies(result) if anomaly.rule == rule)
    if judged.status == VIOLATED and unexpected and not _is_foreseen(result.plan.expect, rule):
        return Case(
            name=rule, status=Status.FAILED, message=told or "violated", details=f"{told}\n{_story(judged)}"
        )
    if undecided_because is not None and judged.status != VIOLATED:
        return Case(name=rule, status=Status.SKIPPED, message=f"inconclusive: {undecided_because}")
    if wanted is not None and wanted != judged.status:
        message = f"{rule} is {judged.status}, expected {wanted}"
        return Case(
            name=rule, status=Status.FAILED, message=message, details=f"{message}\n{_story(judged)}".strip()
        )
    if judged.status == INCONCLUSIVE and wanted is None:
        return Case(name=rule, status=Status.SKIPPED, message="inconclusive")
    expected = ", as the campaign expects" if judged.status == VIOLATED else ""
    return Case(name=rule, message=f"{told}{expected}" if told else "")


def _is_foreseen(expect: Expectation, rule: str) -> bool:
    """Return whether a campaign expects that this rule is violated."""
    rules = dict(expect.rules)
    return rules[rule] == VIOLATED if rule in rules else expect.verdict == VIOLATED


def _story(judged: RuleResult) -> str:
    lines: list[str] = []
    for finding in judged.findings[:_FINDINGS_TOLD]:
        value = "" if finding.value is None else f"{subject(finding)}, "
        lines.append(f"{value}{place(finding)}:")
        lines += [f"  {link.text}" for link in finding.chain]
        lines += [f"  prevented by {' or by '.join(finding.prevented_by)}"] if finding.prevented_by else []
    if len(judged.findings) > _FINDINGS_TOLD:
        lines.append(f"and {len(judged.findings) - _FINDINGS_TOLD} more")
    return "\n".join(lines)


def told_of(run: FinishedRun) -> str:
    """Return what happened in a run, in a line; nothing where nothing did."""
    result = run.result
    words = in_short(result)
    if run.outcome == AS_EXPECTED:
        return f"{words}, as expected" if words and result.verdict.status == VIOLATED else words
    missed = [missed.message for missed in result.missed]
    return "; ".join(dict.fromkeys([*filter(None, [words]), *missed, *result.verdict.reasons]))


def _properties(run: FinishedRun) -> tuple[tuple[str, str], ...]:
    return (
        ("seed", str(run.result.seed)),
        (REPRODUCE, str(run.mapping["reproduce"])),
        ("run_id", str(run.mapping["run_id"])),
        ("trace_digest", run.result.trace_digest),
    )
