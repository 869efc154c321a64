"""Library campaigns notice a broken model, because it misses their expectations."""

from dataclasses import replace

import pytest

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.runner import run_plan
from harrow.checks.finding import INCONCLUSIVE
from harrow.cluster_model.settings import Value
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from tests.scenarios.library_plans import library_plans

# A script that waits in vain shows nothing, so it may stop early.
LIMIT_US = 120 * US_PER_SECOND

# A switch, its broken value, and a campaign that notices it.
BROKEN: tuple[tuple[str, Value, str], ...] = (
    ("follower_truncation", "none", "unclean-election[base]"),
    ("producer_batches_retained", 0, "ack-lost[idempotent]"),
    ("hw_waits_for_whole_isr", False, "hw-two-rounds[base]"),
    ("ack_waits_for_hw", False, "acks-1-leader-crash[acks-all]"),
    ("consumer_reads_below_hw", False, "visibility[base]"),
    ("controller_epoch_fencing", False, "controller-split-brain[base]"),
    ("leader_epoch_fencing", False, "controller-split-brain[leader-epoch-alone]"),
    ("sequence_check", False, "retry-reorders[idempotent]"),
)


@pytest.mark.parametrize(("switch", "value", "campaign"), BROKEN, ids=[switch for switch, *_ in BROKEN])
def test_a_library_campaign_notices_the_broken_model(switch: str, value: Value, campaign: str) -> None:
    plans = library_plans()
    if not _misses(plans[campaign], switch, value):
        noticed = [name for name, plan in plans.items() if _misses(plan, switch, value)]
        pytest.fail(f"with {switch}={value} these miss their expectations: {noticed or 'none'}")


def _misses(plan: Plan, switch: str, value: Value) -> bool:
    """Return whether a plan misses its expectations with a conclusive verdict."""
    broken = replace(
        plan,
        behaviours={**plan.behaviours, switch: value},
        script_limit_us=min(plan.script_limit_us, LIMIT_US),
        recovery_limit_us=min(plan.recovery_limit_us, LIMIT_US),
    )
    result = run_plan(broken, seed=0)
    return not result.expected and result.verdict.status != INCONCLUSIVE
