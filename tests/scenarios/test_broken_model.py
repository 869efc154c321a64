"""Break the model, and the campaigns that ship notice: their expectations are more than decoration."""

from dataclasses import replace

import pytest

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.runner import run_plan
from harrow.checks.finding import INCONCLUSIVE
from harrow.cluster_model.settings import Value
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from tests.scenarios.library_plans import library_plans

# A campaign whose script waits in vain need not wait long to be of no use here.
LIMIT_US = 120 * US_PER_SECOND

# What is broken, and a campaign that is there to notice it.
BROKEN: tuple[tuple[str, Value, str], ...] = (
    ("follower_truncation", "none", "unclean-election[base]"),
    ("producer_batches_retained", 0, "ack-lost[idempotent]"),
    ("hw_counts_whole_isr", False, "hw-two-rounds[base]"),
    ("ack_waits_for_hw", False, "acks-1-leader-crash[acks-all]"),
    ("consumer_limited_by_hw", False, "visibility[base]"),
    ("controller_epoch_fencing", False, "controller-split-brain[base]"),
    ("leader_epoch_fencing", False, "controller-split-brain[leader-epoch-alone]"),
    ("sequence_check", False, "retry-reorders[idempotent]"),
)


@pytest.mark.parametrize(("switch", "value", "campaign"), BROKEN, ids=[switch for switch, *_ in BROKEN])
def test_broken_model_is_noticed(switch: str, value: Value, campaign: str) -> None:
    plans = library_plans()
    if not _misses(plans[campaign], switch, value):
        noticed = [name for name, plan in plans.items() if _misses(plan, switch, value)]
        pytest.fail(f"with {switch}={value} these miss their expectations: {noticed or 'none'}")


def _misses(plan: Plan, switch: str, value: Value) -> bool:
    """Return whether a plan misses its expectations; one that gets nowhere does not count."""
    broken = replace(
        plan,
        behaviours={**plan.behaviours, switch: value},
        script_limit_us=min(plan.script_limit_us, LIMIT_US),
        recovery_limit_us=min(plan.recovery_limit_us, LIMIT_US),
    )
    result = run_plan(broken, seed=0)
    return not result.expected and result.verdict.status != INCONCLUSIVE
