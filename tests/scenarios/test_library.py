"""Every library campaign has its expected outcome, in each variant and with any latencies."""

from dataclasses import replace

import pytest

from harrow.campaigns.record.report import reason
from harrow.campaigns.run.runner import run_plan
from harrow.checks.finding import HELD, INCONCLUSIVE
from harrow.cluster_model.clients.programs import POLL
from harrow.faults.clients import ApplicationCrash
from tests.scenarios.library_plans import each_plan, library_plans, library_run

PLANS = library_plans()
SEEDS = (0, 1, 2)


@each_plan()
def test_a_campaign_has_its_expected_outcome(name: str) -> None:
    for seed in SEEDS:
        result, plan = library_run(name, seed), PLANS[name]
        because = [line.message for line in result.missed] + list(result.verdict.reasons)
        assert not [line for line in because if "waited in vain" in line], f"seed {seed}: {because}"
        if plan.expect.verdict != INCONCLUSIVE:
            assert result.verdict.status != INCONCLUSIVE, f"seed {seed} is inconclusive: {because}"
        assert result.expected, f"seed {seed} missed expectations: {because}"
        assert result.verdict.status != HELD or not any(
            rule_result.findings for rule_result in result.verdict.rules.values()
        ), f"seed {seed} holds despite findings"
        assert reason(result) or result.verdict.status == HELD, f"seed {seed} gives no reason"


@each_plan()
def test_a_campaign_has_a_description_and_expectations(name: str) -> None:
    plan = PLANS[name]
    assert plan.description, "the campaign has no description"
    # An open campaign can only promise that no promise is broken.
    has_expectation = plan.expect.verdict or plan.expect.rules or plan.swarm is not None
    assert has_expectation, "the campaign expects neither a verdict nor the status of a rule"


@pytest.mark.parametrize("variant", ["base", "highest-finished"])
def test_workers_may_commit_again_before_the_fault_strikes(variant: str) -> None:
    """On real brokers the application learns of a commit only during its next poll.

    So the fault kills it one loop later, after another commit.
    """
    plan = PLANS[f"parallel-workers-watermark[{variant}]"]
    late = tuple(
        replace(
            step,
            actions=tuple(
                replace(action, after=1)
                if isinstance(action, ApplicationCrash) and action.step == POLL
                else action
                for action in step.actions
            ),
        )
        for step in plan.script
    )
    assert late != plan.script
    result = run_plan(replace(plan, script=late), 0)
    assert (result.missed, result.verdict.reasons, result.expected) == ((), (), True)
