"""A fact in a file outside harrow needs one registration, and then all conditions can use it."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from hypothesis import find, settings

from harrow.campaigns.language.loader import CampaignError, load_text
from harrow.campaigns.language.plan_file import campaign_text
from harrow.campaigns.language.schema import json_schema
from harrow.campaigns.run.runner import run_plan
from harrow.campaigns.search import strategies
from harrow.cli.completion import names
from harrow.cli.render.catalogue import explain
from harrow.faults.condition import FACTS, Condition
from tests.extending.conftest import FILES, Register

QUIET = settings(database=None, derandomize=True, deadline=None)


@pytest.fixture(autouse=True)
def isr_size(example: Callable[[str], ModuleType], register: Register) -> Any:
    fact = example("faults/isr_size.py").IsrSize
    register(FACTS, fact.name, fact)
    return fact


def plan(text: str = FILES["isr-size.yaml"]) -> Any:
    return load_text(text, "isr-size.yaml").plans[0]


def test_steps_wait_for_the_fact_and_the_final_state_is_compared_with_it(isr_size: Any) -> None:
    assert plan().script[1].when == Condition((isr_size("t-0", 2),))
    result = run_plan(plan(), 0)
    assert result.expected
    assert result.verdict.status == "held"


def test_a_difference_is_reported() -> None:
    result = run_plan(
        plan(FILES["isr-size.yaml"].replace("final: {isr_size: {t-0: 3}}", "final: {isr_size: {t-0: 1}}")), 0
    )
    assert [missed.message for missed in result.missed] == ["the ISR of t-0 has 3, expected 1"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("{t-9: 2}", "unknown partition `t-9`"),
        ("{t-0: 0}", "0 is too small"),
        ("{}", "this part of the condition is empty"),
    ],
)
def test_mistakes_are_refused(wrong: str, message: str) -> None:
    with pytest.raises(CampaignError, match=message):
        plan(FILES["isr-size.yaml"].replace("when: {isr_size: {t-0: 2}}", f"when: {{isr_size: {wrong}}}"))


def test_the_fact_survives_a_round_trip_through_the_campaign_file() -> None:
    assert plan(campaign_text(plan())).digest() == plan().digest()


def test_the_fact_is_in_the_schema_in_explain_and_in_completion() -> None:
    assert "isr_size" in str(json_schema()["$defs"]["ConditionSection"])
    (entry,) = explain("isr_size")
    assert entry.kind == "condition"
    assert names("isr_si") == ["isr_size"]


def test_strategies_draw_the_fact() -> None:
    def has_fact(condition: Condition) -> bool:
        return any(fact.name == "isr_size" for fact in condition.facts)

    assert has_fact(find(strategies.conditions(), has_fact, settings=QUIET))
