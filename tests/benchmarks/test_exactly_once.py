"""Runs of the exactly-once table: which ones count, and which verdict they get."""

import pytest

from benchmarks.exactly_once import plan_of, was_struck
from harrow.campaigns.run.runner import run_plan
from harrow.checks.finding import HELD, PERMITTED


@pytest.mark.parametrize("step", ["abort", "commit"])
def test_an_application_dies_at_its_step_even_if_only_failures_lead_there(step: str) -> None:
    result = run_plan(plan_of("link_reset", step, "exactly_once", "3.9"), 0)
    assert was_struck(result, step)
    assert not was_struck(result, "flush")


def test_a_fenced_member_commits_nothing_in_a_transaction_with_either_protocol() -> None:
    """The member is cut off until another member has its partition, and then continues."""
    for protocol in ("classic", "consumer"):
        result = run_plan(plan_of("partition", "poll", "exactly_once", "4.3", protocol), 0)
        assert result.verdict.status in (HELD, PERMITTED)
