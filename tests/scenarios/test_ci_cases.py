"""What a CI system is told of the library is what the exit code says, whatever is expected."""

from dataclasses import replace
from pathlib import Path

import pytest

from campaigns.plan import Expectation, Plan
from campaigns.report import AS_EXPECTED, UNDECIDED, UNEXPECTED, outcome, reproduce_command, run_as_mapping
from campaigns.required_probes import as_only_run
from campaigns.runner import run_plan
from checks.finding import HELD, INCONCLUSIVE, VIOLATED
from cli.ci_suite import EXPECTATIONS, Status, Suite
from cli.run_cases import cases_of
from cli.run_tally import FinishedRun, Tally
from tests.scenarios.library_plans import library_plans

PLANS = library_plans()
STATUS = {AS_EXPECTED: Status.PASSED, UNEXPECTED: Status.FAILED, UNDECIDED: Status.SKIPPED}
EXPECTED = {
    "as it stands": None,
    "nothing": Expectation(),
    "held": Expectation(verdict=HELD),
    "violated": Expectation(verdict=VIOLATED),
    "inconclusive": Expectation(verdict=INCONCLUSIVE),
    "a loss": Expectation(rules=(("lost-write", VIOLATED),)),
    "a probe": Expectation(probes=("unclean-election",)),
}


@pytest.mark.parametrize("expected", EXPECTED)
@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS.keys())
def test_a_suite_is_what_its_run_is(plan: Plan, expected: str) -> None:
    expect = EXPECTED[expected]
    result = as_only_run(run_plan(plan if expect is None else replace(plan, expect=expect), 0))
    mapping = run_as_mapping(result, reproduce_command(plan.campaign, 0, plan.variant))
    run = FinishedRun(result=result, mapping=mapping, file=Path("campaign.yaml"), folder=None)
    cases = tuple(cases_of(run))
    assert [case.name for case in cases] == [*result.verdict.rules, EXPECTATIONS]
    assert Suite(name="s", cases=cases).status is STATUS[outcome(result)]
    tally = Tally(planned=1)
    tally.add(run)
    assert (tally.exit_code() == 1) == any(case.status is Status.FAILED for case in cases)
