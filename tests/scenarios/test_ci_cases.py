"""The test cases that CI systems get agree with the exit code, for any expectations."""

from dataclasses import replace
from pathlib import Path

import pytest

from harrow.campaigns.language.plan import Expectation
from harrow.campaigns.record.report import (
    AS_EXPECTED,
    UNDECIDED,
    UNEXPECTED,
    outcome,
    reproduce_command,
)
from harrow.campaigns.run.required_probes import as_only_run
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.checks.finding import HELD, INCONCLUSIVE, PERMITTED, VIOLATED
from harrow.cli.ci.run_cases import cases_of
from harrow.cli.ci.suite import EXPECTATIONS, Status, Suite
from harrow.cli.commands.run_tally import FinishedRun, Tally
from tests.scenarios.library_plans import each_plan, library_plans, library_run

PLANS = library_plans()
STATUS = {AS_EXPECTED: Status.PASSED, UNEXPECTED: Status.FAILED, UNDECIDED: Status.SKIPPED}
CHOSEN_EXPECTATIONS = {
    "nothing": Expectation(),
    "held": Expectation(verdict=HELD),
    "violated": Expectation(verdict=VIOLATED),
    "inconclusive": Expectation(verdict=INCONCLUSIVE),
    "a loss": Expectation(rules=(("lost-write", VIOLATED),)),
    "a probe": Expectation(probes=("unclean-election",)),
}


ONE_OF_EACH = {plan.expect.verdict: name for name, plan in PLANS.items() if plan.expect.verdict}


@each_plan()
def test_a_suite_has_the_status_of_its_run(name: str) -> None:
    check_suite(library_run(name))


@pytest.mark.parametrize("verdict", [HELD, PERMITTED, VIOLATED, INCONCLUSIVE])
@pytest.mark.parametrize("expected", CHOSEN_EXPECTATIONS)
def test_a_suite_has_the_status_of_its_run_for_any_expectation(verdict: str, expected: str) -> None:
    check_suite(run_plan(replace(PLANS[ONE_OF_EACH[verdict]], expect=CHOSEN_EXPECTATIONS[expected]), 0))


def check_suite(run: RunResult) -> None:
    result, plan = as_only_run(run), run.plan
    reproduce = reproduce_command(plan.campaign, 0, plan.variant)
    finished = FinishedRun(result=result, reproduce=reproduce, file=Path("campaign.yaml"), folder=None)
    cases = tuple(cases_of(finished))
    assert [case.name for case in cases] == [*result.verdict.rules, EXPECTATIONS]
    assert Suite(name="s", cases=cases).status is STATUS[outcome(result)]
    tally = Tally(planned=1)
    tally.add(finished)
    assert (tally.exit_code() == 1) == any(case.status is Status.FAILED for case in cases)
