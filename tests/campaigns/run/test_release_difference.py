"""What keeps a campaign of one release from going as it says on another is named only if a run has shown it."""

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


def tried(plan: Plan) -> tuple[RunResult, Sequence[Plan]]:
    """Return a run with its difference, and the plans that were run to find it."""
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
def test_the_behaviour_that_is_named_brings_back_what_the_campaign_says(
    campaign: str, release: str, switch: str, name: str
) -> None:
    result, _ = tried(plan_of(campaign, f"kafka={release}"))
    assert result.difference is not None
    assert (result.difference.switch, result.difference.step) == (switch, None)
    assert name in reason(result)
    again = run_plan(
        plan_of(campaign, f"kafka={release}", f"behaviours.{switch}={result.difference.value}".lower()), 0
    )
    assert again.expected
    assert not again.missed


def test_a_script_that_waits_for_a_repaired_failure_names_the_repair() -> None:
    result, plans = tried(plan_of("loss-by-hw-truncation", "kafka=4.3"))
    assert reason(result) == (
        "nothing is lost, step 10 waits for something that does not happen: KIP-101, since 0.11 "
        "(tried: with behaviours.follower_truncation=high_watermark it happens)"
    )
    assert len(plans) <= 30


def test_a_script_has_the_time_in_its_trials_that_its_own_steps_take() -> None:
    result, _ = tried(plan_of("unread-partition", "kafka=4.3"))
    assert max(step.after_us or 0 for step in result.plan.script) == 300 * US_PER_SECOND
    assert result.difference is not None
    assert result.difference.switch == "static_leader_skips_assignment"


def test_nothing_is_named_where_no_single_behaviour_is_enough() -> None:
    result, _ = tried(plan_of("last-replica-standing", "kafka=4.3"))
    assert result.missed
    assert result.difference is None


def test_a_run_as_of_its_own_release_is_not_tried_again() -> None:
    result, plans = tried(plan_of("loss-by-hw-truncation"))
    assert (result.difference, plans) == (None, [])
