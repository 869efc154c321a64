"""Every prevention that a swarm run names prevents its finding, in all releases and mutants."""

from dataclasses import replace
from itertools import count

import pytest

from harrow.campaigns.language.plan_file import WrittenPlan
from harrow.campaigns.run.proof import proven
from harrow.campaigns.run.remedies import options_of
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.checks.finding import PERMITTED, VIOLATED, Finding
from harrow.checks.prevention import Prevention
from harrow.cluster_model.release.profiles import MUTANTS, RELEASES
from tests.library_swarm import library_swarm, swarm_with_mutant

MODELS = (*RELEASES, *MUTANTS)


def failing_run(number: int) -> RunResult:
    """Return a run with a violated or permitted finding."""
    name = MODELS[number * 7 % len(MODELS)]
    plan = swarm_with_mutant(name) if name in MUTANTS else library_swarm()
    if name in RELEASES and plan.swarm is not None:
        plan = replace(plan, kafka=name, swarm=replace(plan.swarm, releases=()))
    runs = (run_plan(plan, seed) for seed in count(50 * number))
    return next(run for run in runs if run.verdict.status in (VIOLATED, PERMITTED))


def causes(finding: Finding) -> frozenset[str]:
    return frozenset(cause.kind.name for cause in finding.causes)


@pytest.mark.soak(size=2, rounds_in_test=1, rounds_in_soak=120)
def test_a_named_prevention_prevents_the_finding(numbers: range) -> None:
    checked = 0
    for number in numbers:
        result = proven(failing_run(number))
        for rule, rule_result in result.verdict.rules.items():
            for finding in rule_result.findings:
                for way in finding.prevented_by:
                    if way.held:
                        checked += 1
                        assert prevents(way, result, rule, finding), (result.seed, rule, way.text)
    assert checked


def prevents(way: Prevention, result: RunResult, rule: str, finding: Finding) -> bool:
    """Return whether the same run with a prevention lacks the finding, without use of the proof."""
    plan = WrittenPlan(result.plan).with_options(options_of(way.remedy))
    assert plan is not None
    again = run_plan(plan, result.seed).verdict.rules[rule].findings
    return not any(
        (other.partition, other.offset, other.value) == (finding.partition, finding.offset, finding.value)
        or (causes(other), other.permitted_by) == (causes(finding), finding.permitted_by)
        for other in again
    )
