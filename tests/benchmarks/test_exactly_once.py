"""The table of exactly once: which runs count, and what they have shown."""

import pytest

from benchmarks.exactly_once import plan_of, was_struck
from harrow.campaigns.run.runner import run_plan
from harrow.checks.finding import HELD, PERMITTED


@pytest.mark.parametrize("step", ["abort", "commit"])
def test_an_application_dies_at_the_step_also_at_one_that_only_failures_lead_to(step: str) -> None:
    result = run_plan(plan_of("link_reset", step, "exactly_once", "3.9"), 0)
    assert was_struck(result, step)
    assert not was_struck(result, "flush")


def test_a_member_that_was_fenced_commits_nothing_in_a_transaction_with_either_protocol() -> None:
    """Its leader and coordinator is cut off from it for so long that another one has its partition, and it goes on with what it had."""
    for protocol in ("classic", "consumer"):
        result = run_plan(plan_of("partition", "poll", "exactly_once", "4.3", protocol), 0)
        assert result.verdict.status in (HELD, PERMITTED)
