"""A behaviour that changes the outcome on another release is named only after a trial."""

from collections.abc import Sequence

import pytest

from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.loader import load_campaign
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.record.report import reason
from harrow.campaigns.run.release_difference import with_difference
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND


def plan_of(name: str, *overrides: str) -> Plan:
    return load_campaign(resolve(name)[0], overrides).plans[0]


def run_and_trials(plan: Plan) -> tuple[RunResult, Sequence[Plan]]:
    """Return a run with its difference, and the plans of the trials."""
    plans: list[Plan] = []

    def run(trial: Plan, seed: int) -> RunResult:
        plans.append(trial)
        return run_plan(trial, seed)

    return with_difference(run_plan(plan, 0), run), plans


@pytest.mark.parametrize(
    ("campaign", "release", "switch", "name"),
    [
        ("compaction-above-hw", "4.3", "cleaner_waits_for_hw", "KAFKA-13194, since 3.1"),
        ("delayed-end-txn", "4.3", "transactions_v2", "KIP-890, since 4.0"),
        ("divergence-by-hw", "1.1", "follower_truncation", "KIP-101, since 0.11"),
    ],
)
def test_the_named_behaviour_restores_the_expected_outcome(
    campaign: str, release: str, switch: str, name: str
) -> None:
    result, _ = run_and_trials(plan_of(campaign, f"kafka={release}"))
    assert result.difference is not None
    assert (result.difference.switch, result.difference.step) == (switch, None)
    assert name in reason(result)
    again = run_plan(
        plan_of(campaign, f"kafka={release}", f"behaviours.{switch}={result.difference.value}".lower()), 0
    )
    assert again.expected
    assert not again.missed


def test_a_script_that_waits_for_a_repaired_failure_names_the_repair() -> None:
    result, plans = run_and_trials(plan_of("loss-by-hw-truncation", "kafka=4.3"))
    assert reason(result) == (
        "nothing is lost, step 10 waits for something that does not happen: KIP-101, since 0.11 "
        "(tried: with behaviours.follower_truncation=high_watermark it happens)"
    )
    assert len(plans) <= 30


def test_a_trial_allows_the_script_the_time_that_its_steps_state() -> None:
    result, _ = run_and_trials(plan_of("unread-partition", "kafka=4.3"))
    assert max(step.after_us or 0 for step in result.plan.script) == 300 * US_PER_SECOND
    assert result.difference is not None
    assert result.difference.switch == "static_leader_skips_assignment"


def test_no_behaviour_is_named_if_no_single_one_is_enough() -> None:
    result, _ = run_and_trials(plan_of("last-replica-standing", "kafka=4.3"))
    assert result.missed
    assert result.difference is None


def test_a_run_on_the_campaigns_own_release_has_no_trials() -> None:
    result, plans = run_and_trials(plan_of("loss-by-hw-truncation"))
    assert (result.difference, plans) == (None, [])
