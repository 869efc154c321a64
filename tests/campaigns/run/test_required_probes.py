"""What follows when a campaign requires rare states and its runs do not reach them."""

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
from tests.campaigns.record.run_results import failed_run, lost, plan, run_result

WANTED = ("truncated", "truncated-below-hw")


def requiring(result: RunResult, **probes: int) -> RunResult:
    """Return a run whose plan requires what is `WANTED`, with these probes reached."""
    reached = {name.replace("_", "-"): count for name, count in probes.items()}
    required = replace(result.plan, expect=replace(result.plan.expect, probes=WANTED))
    return replace(result, plan=required, probes=reached, probes_missed=never_reached((reached,), WANTED))


def test_a_run_that_reached_everything_is_what_it_was() -> None:
    result = requiring(run_result(), truncated=2, truncated_below_hw=1)
    assert as_only_run(result) is result


def test_a_run_that_missed_one_is_inconclusive() -> None:
    result = as_only_run(requiring(run_result(), truncated=2))
    assert result.verdict.status == INCONCLUSIVE
    assert result.verdict.reasons == ("never reached: truncated-below-hw",)
    assert outcome(result) == UNDECIDED


def test_a_loss_that_is_expected_but_came_another_way_decides_nothing() -> None:
    result = as_only_run(requiring(run_result(lost("m1"))))
    assert result.verdict.status == INCONCLUSIVE
    assert result.verdict.rules["lost-write"].status == VIOLATED
    assert outcome(result) == UNDECIDED


def test_a_broken_promise_stays_broken() -> None:
    result = requiring(failed_run())
    assert as_only_run(result) is result
    assert outcome(result) == UNEXPECTED


def test_an_expectation_that_was_missed_for_want_of_the_state_decides_nothing() -> None:
    missed = MissedExpectation(line=0, message="the verdict is held, expected violated")
    result = run_result(plan=plan(expect=Expectation(verdict=VIOLATED)), expected=False, missed=(missed,))
    judged = as_only_run(requiring(result))
    assert judged.missed == ()
    assert outcome(judged) == UNDECIDED


def test_what_the_script_missed_stays_missed() -> None:
    missed = MissedExpectation(line=7, message="m1 is not acked")
    judged = as_only_run(requiring(run_result(expected=False, missed=(missed,))))
    assert judged.missed == (missed,)
    assert outcome(judged) == UNEXPECTED


def test_an_inconclusive_run_may_be_what_is_expected() -> None:
    result = run_result(plan=plan(expect=Expectation(verdict=INCONCLUSIVE)))
    assert outcome(as_only_run(requiring(result))) == AS_EXPECTED


def test_what_was_expected_and_seen_is_no_success_without_the_state() -> None:
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
def test_several_seeds_reach_it_together(seeds: list[dict[str, int]], missed: tuple[str, ...]) -> None:
    required = RequiredProbes()
    for reached in seeds:
        required.add(requiring(run_result(), **reached))
    found = required.unreached()
    assert [each.probes for each in found] == ([missed] if missed else [])
    assert all(each.runs == len(seeds) for each in found)


def test_each_plan_for_itself() -> None:
    required = RequiredProbes()
    base = requiring(run_result(), truncated=1, truncated_below_hw=1)
    other = requiring(run_result(plan=replace(base.plan, variant="2.0")))
    required.add(base)
    required.add(other)
    required.add(run_result())
    assert [each.variant for each in required.unreached()] == ["2.0"]


def test_the_document_says_so() -> None:
    missed = UnreachedProbes(campaign="c", variant="v", probes=WANTED, runs=3)
    run: dict[str, Any] = {"verdict": HELD, "probes": {"truncated": 0, "isr-shrank": 2}}
    whole = document([run, run], [missed])
    assert whole["verdict"] == INCONCLUSIVE
    assert whole["reasons"] == ["c[v]: never reached: truncated, truncated-below-hw (in 3 runs)"]
    assert whole["probes_never_reached"] == [probe for probe in PROBES if probe != "isr-shrank"]
    assert document([run])["verdict"] == HELD
    assert document([run])["reasons"] == []


def test_as_it_is_read() -> None:
    expect = plan_of("expect: {probes: [unclean-election, truncated, truncated]}\n").expect
    assert expect.probes == ("unclean-election", "truncated")
    assert expect.is_empty()
    assert plan_of("expect: {probes: truncated}\n").expect.probes == ("truncated",)
    assert plan_of("expect: {verdict: held}\n").expect.probes == ()
