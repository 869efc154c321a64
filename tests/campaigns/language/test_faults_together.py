"""Faults that strike together: `do` with a list."""

import pytest

from harrow.campaigns.language.loader import CampaignError, load_text
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.plan_file import campaign_text
from harrow.campaigns.run.runner import run_plan

TOGETHER = """
name: together
cluster: {brokers: 3}
workload: {duration: 12s, producers: [{rate: 1/s}]}
faults:
  - TIMING
    do:
      - broker_crash: {broker: 1, restart_after: 1s}
      - broker_pause: {broker: 2, duration: 1s}
"""


def plan_of(text: str) -> Plan:
    (plan,) = load_text(text, "together.yaml").plans
    return plan


@pytest.mark.parametrize(
    ("timing", "times"), [("at: 2s", [2_000_000]), ("every: 5s", [5_000_000, 10_000_000])]
)
def test_faults_that_strike_together_strike_at_one_time(timing: str, times: list[int]) -> None:
    plan = plan_of(TOGETHER.replace("TIMING", timing))
    struck = [(fault.at_us, fault.fault) for fault in run_plan(plan, 0).faults]
    assert struck == [(at_us, fault) for at_us in times for fault in ("broker_crash", "broker_pause")]


def test_faults_that_strike_together_need_one_time() -> None:
    with pytest.raises(
        CampaignError, match="`do` takes several faults only with `every`, or with a single time in `at`"
    ):
        plan_of(TOGETHER.replace("TIMING", "at: 2s..9s"))


def test_faults_that_strike_together_are_separate_injections_and_written_so() -> None:
    plan = plan_of(TOGETHER.replace("TIMING", "at: 2s"))
    assert [len(entry.faults) for entry in plan.faults] == [1, 1]
    assert plan_of(campaign_text(plan)).digest() == plan.digest()
