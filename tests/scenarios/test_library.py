"""Every campaign that ships turns out as it says, in each of its variants and whatever the latencies."""

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
def test_campaign_turns_out_as_expected(name: str) -> None:
    for seed in SEEDS:
        result, plan = library_run(name, seed), PLANS[name]
        because = [line.message for line in result.missed] + list(result.verdict.reasons)
        assert not [line for line in because if "waited in vain" in line], f"seed {seed}: {because}"
        if plan.expect.verdict != INCONCLUSIVE:
            assert result.verdict.status != INCONCLUSIVE, f"seed {seed} got nowhere: {because}"
        assert result.expected, f"seed {seed} missed what the campaign expects: {because}"
        assert result.verdict.status != HELD or not any(
            judged.findings for judged in result.verdict.rules.values()
        ), f"seed {seed} holds and has findings"
        assert reason(result) or result.verdict.status == HELD, f"seed {seed} gives no reason"


@each_plan()
def test_campaign_says_what_it_shows_and_what_it_expects(name: str) -> None:
    plan = PLANS[name]
    assert plan.description, "it does not say what happens and why"
    # Of what each seed draws nobody can say more than that no promise is broken.
    says = plan.expect.verdict or plan.expect.rules or plan.swarm is not None
    assert says, "it does not say which verdict it expects, or what holds"


@pytest.mark.parametrize("variant", ["base", "highest-finished"])
def test_workers_may_commit_once_more_before_they_are_struck(variant: str) -> None:
    """On real brokers a commit is seen a moment later, when the next poll has begun: the application dies a loop later, and commits before."""
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
