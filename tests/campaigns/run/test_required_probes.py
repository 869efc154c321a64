"""A run that does not reach its required probes is inconclusive."""

from dataclasses import replace
from typing import Any

import pytest

from harrow.campaigns.language.plan import Expectation
from harrow.campaigns.probes.probes import PROBES, never_reached
from harrow.campaigns.record.report import AS_EXPECTED, UNDECIDED, UNEXPECTED, document, outcome
from harrow.campaigns.run.required_probes import RequiredProbes, UnreachedProbes, as_only_run
from harrow.campaigns.run.run_result import MissedExpectation, RunResult
from harrow.checks.finding import HELD, INCONCLUSIVE, VIOLATED
from tests.campaigns.language.campaign_texts import plan as plan_of
from tests.campaigns.record.run_results import failed_run, lost_record, plan, run_result

WANTED = ("truncated", "truncated-below-hw")


def requiring(result: RunResult, **probes: int) -> RunResult:
    """Return a run that reached these probes, of a plan that requires `WANTED`."""
    reached = {name.replace("_", "-"): count for name, count in probes.items()}
    required = replace(result.plan, expect=replace(result.plan.expect, probes=WANTED))
    return replace(result, plan=required, probes=reached, probes_missed=never_reached((reached,), WANTED))


def test_a_run_that_reached_every_required_probe_keeps_its_verdict() -> None:
    result = requiring(run_result(), truncated=2, truncated_below_hw=1)
    assert as_only_run(result) is result


def test_a_run_that_missed_a_required_probe_is_inconclusive() -> None:
    result = as_only_run(requiring(run_result(), truncated=2))
    assert result.verdict.status == INCONCLUSIVE
    assert result.verdict.reasons == ("never reached: truncated-below-hw",)
    assert outcome(result) == UNDECIDED


def test_an_expected_loss_without_the_required_probe_is_inconclusive() -> None:
    result = as_only_run(requiring(run_result(lost_record("m1"))))
    assert result.verdict.status == INCONCLUSIVE
    assert result.verdict.rules["lost-write"].status == VIOLATED
    assert outcome(result) == UNDECIDED


def test_an_unexpected_violation_stays_a_violation() -> None:
    result = requiring(failed_run())
    assert as_only_run(result) is result
    assert outcome(result) == UNEXPECTED


def test_a_missed_expectation_without_the_required_probe_is_inconclusive() -> None:
    missed = MissedExpectation(line=0, message="the verdict is held, expected violated")
    result = run_result(plan=plan(expect=Expectation(verdict=VIOLATED)), expected=False, missed=(missed,))
    judged = as_only_run(requiring(result))
    assert judged.missed == ()
    assert outcome(judged) == UNDECIDED


def test_missed_expectations_of_the_script_stay_missed() -> None:
    missed = MissedExpectation(line=7, message="m1 is not acked")
    judged = as_only_run(requiring(run_result(expected=False, missed=(missed,))))
    assert judged.missed == (missed,)
    assert outcome(judged) == UNEXPECTED


def test_a_campaign_can_expect_an_inconclusive_run() -> None:
    result = run_result(plan=plan(expect=Expectation(verdict=INCONCLUSIVE)))
    assert outcome(as_only_run(requiring(result))) == AS_EXPECTED


def test_an_expected_outcome_without_the_required_probe_is_no_success() -> None:
    result = run_result(plan=plan(expect=Expectation(verdict=HELD)))
    judged = as_only_run(requiring(result))
    assert not judged.expected
    assert outcome(judged) == UNDECIDED


@pytest.mark.parametrize(
    ("seeds", "missed"),
    [
        ([{"truncated": 1}, {"truncated_below_hw": 1}, {}], ()),
        ([{"truncated": 1}, {}], ("truncated-below-hw",)),
        ([{}], WANTED),
    ],
)
def test_several_seeds_together_reach_a_required_probe(
    seeds: list[dict[str, int]], missed: tuple[str, ...]
) -> None:
    required = RequiredProbes()
    for reached in seeds:
        required.add(requiring(run_result(), **reached))
    unreached = required.unreached()
    assert [each.probes for each in unreached] == ([missed] if missed else [])
    assert all(each.runs == len(seeds) for each in unreached)


def test_each_plan_has_to_reach_its_own_probes() -> None:
    required = RequiredProbes()
    base = requiring(run_result(), truncated=1, truncated_below_hw=1)
    other = requiring(run_result(plan=replace(base.plan, variant="2.0")))
    required.add(base)
    required.add(other)
    required.add(run_result())
    assert [each.variant for each in required.unreached()] == ["2.0"]


def test_the_document_reports_unreached_probes() -> None:
    missed = UnreachedProbes(campaign="c", variant="v", probes=WANTED, runs=3)
    run: dict[str, Any] = {"verdict": HELD, "probes": {"truncated": 0, "isr-shrank": 2}}
    full = document([run, run], [missed])
    assert full["verdict"] == INCONCLUSIVE
    assert full["reasons"] == ["c[v]: never reached: truncated, truncated-below-hw (in 3 runs)"]
    assert full["probes_never_reached"] == [probe for probe in PROBES if probe != "isr-shrank"]
    assert document([run])["verdict"] == HELD
    assert document([run])["reasons"] == []


def test_required_probes_are_read_without_duplicates() -> None:
    expect = plan_of("expect: {probes: [unclean-election, truncated, truncated]}\n").expect
    assert expect.probes == ("unclean-election", "truncated")
    assert expect.is_empty()
    assert plan_of("expect: {probes: truncated}\n").expect.probes == ("truncated",)
    assert plan_of("expect: {verdict: held}\n").expect.probes == ()
