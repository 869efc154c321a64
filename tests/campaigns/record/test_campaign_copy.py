"""``campaign.yaml`` beside a run loads as the plan of the run."""

from dataclasses import replace
from pathlib import Path

import pytest

from harrow.campaigns.language.library_index import library_names, resolve
from harrow.campaigns.language.loader import load_campaign, load_text
from harrow.campaigns.record.campaign_copy import campaign_copy


@pytest.mark.parametrize("name", library_names())
def test_the_copy_of_any_plan_of_the_library_has_its_digest(name: str) -> None:
    for options in ((), ("name=other", "replica.lag.time.max.ms=9s")):
        campaign = load_campaign(resolve(name)[0], options)
        for plan in campaign.plans:
            copy = load_text(campaign_copy(campaign, plan, 0, options), "campaign.yaml")
            assert plan.digest() in [copied.digest() for copied in copy.plans]


def test_the_copy_does_not_depend_on_later_changes_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "first.yaml"
    file.write_text("settings: {acks: 1}\n", encoding="utf-8")
    campaign = load_campaign(file)
    file.write_text("settings: {acks: 0}\n", encoding="utf-8")
    (plan,) = campaign.plans
    (copied,) = load_text(campaign_copy(campaign, plan, 0), "campaign.yaml").plans
    assert copied.digest() == plan.digest()
    assert copied.campaign == "first"


def test_a_plan_that_differs_from_the_text_is_written_from_the_plan(tmp_path: Path) -> None:
    file = tmp_path / "first.yaml"
    file.write_text("name: first\nsettings: {acks: 1}\n", encoding="utf-8")
    campaign = load_campaign(file)
    plan = replace(campaign.plans[0], kafka="0.11")
    (copied,) = load_text(campaign_copy(campaign, plan, 0), "campaign.yaml").plans
    assert (copied.kafka, copied.digest()) == ("0.11", plan.digest())
