"""`demand` overrides what settings permit, but not a deletion by the campaign's own script."""

from dataclasses import replace

from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.loader import load_campaign
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.runner import run_plan
from harrow.checks.finding import HELD, PERMITTED, VIOLATED, RuleResult
from harrow.checks.promise import DEMANDED


def demanded_lost_write(campaign: str, variant: str = "base") -> RuleResult:
    plans = load_campaign(resolve(campaign)[0]).plans
    plan = next(plan for plan in plans if (plan.variant or "base") == variant)
    demanding: Plan = replace(plan, demand=("lost-write",))
    return run_plan(demanding, 0).verdict.rules["lost-write"]


def test_a_record_that_the_script_deletes_is_no_violation_even_with_a_demand() -> None:
    result = demanded_lost_write("delete-records")
    assert (result.status, result.promise) == (PERMITTED, DEMANDED)
    assert {finding.value: finding.permitted_by for finding in result.findings} == {
        "m-0": "DeleteRecords",
        "m-1": "DeleteRecords",
    }


def test_a_record_that_retention_deletes_unread_violates_a_demand() -> None:
    result = demanded_lost_write("short-retention")
    assert result.status == VIOLATED
    assert {finding.permitted_by for finding in result.findings} == {None}
    assert {cause.kind.name for finding in result.findings for cause in finding.causes} == {
        "retention-passed"
    }


def test_even_with_a_demand_a_record_that_compaction_replaces_is_not_lost() -> None:
    result = demanded_lost_write("compaction-above-hw", "repaired")
    assert (result.status, result.findings) == (HELD, ())
