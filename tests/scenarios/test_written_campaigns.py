"""The plan of every library campaign and variant can be written as a campaign file."""

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.language.plan_file import campaign_text
from harrow.campaigns.language.template import new_campaign
from tests.campaigns.language.campaign_texts import reference_example
from tests.campaigns.language.test_campaign_schema import errors
from tests.properties.campaign_mutants import EVERYTHING
from tests.scenarios.library_plans import each_plan, library_plans


@each_plan()
def test_a_library_plan_survives_a_round_trip_through_its_file(name: str) -> None:
    plan = library_plans()[name]
    text = campaign_text(plan)
    campaign = load_text(text, "written.yaml")
    (again,) = campaign.plans
    assert campaign.name == plan.campaign
    assert again.digest() == plan.digest()
    assert again.description == plan.description
    assert [step.note for step in again.script] == [step.note for step in plan.script]
    assert campaign_text(again) == text


@pytest.mark.parametrize("text", [reference_example(), EVERYTHING, new_campaign("first")])
def test_other_campaigns_survive_a_round_trip(text: str) -> None:
    for plan in load_text(text, "file.yaml").plans:
        assert load_text(campaign_text(plan), "written.yaml").plans[0].digest() == plan.digest()


@each_plan()
def test_a_written_campaign_is_valid_and_readable(name: str) -> None:
    text = campaign_text(library_plans()[name])
    assert max(map(len, text.splitlines())) <= 100
    assert "&" not in text
    assert errors(text) == []
