"""A switch can be set by its former names, so that no older campaign or recorded run is lost."""

import pytest

from harrow.campaigns.language.loader import CampaignError, load_text
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.plan_file import campaign_text
from harrow.cluster_model.release.former_names import FORMER_NAMES
from harrow.cluster_model.release.profiles import MUTANTS, SWITCHES

HEAD = "name: x\nworkload: {duration: 1s, producers: [{name: p}]}\n"


def loaded(text: str = "", *options: str) -> Plan:
    return load_text(HEAD + text, "x.yaml", options).plans[0]


def word(switch: str) -> str:
    choice = next(iter(SWITCHES[switch].choices))
    return str(choice).lower() if isinstance(choice, bool) else str(choice)


def test_every_former_name_leads_to_a_switch_and_hides_none() -> None:
    assert set(FORMER_NAMES.values()) <= set(SWITCHES)
    assert not set(FORMER_NAMES) & set(SWITCHES)
    assert len(set(FORMER_NAMES.values())) == len(FORMER_NAMES)
    # A mutant's name under `behaviours` gets a hint of its own.
    assert not set(FORMER_NAMES) & {name.replace("-", "_") for name in MUTANTS}


@pytest.mark.parametrize(("former", "name"), FORMER_NAMES.items())
def test_a_former_name_sets_its_switch(former: str, name: str) -> None:
    value = word(name)
    expected = loaded(f"behaviours: {{{name}: {value}}}")
    assert list(expected.behaviours) == [name]
    in_file = loaded(f"behaviours: {{{former}: {value}}}")
    in_option = loaded("", f"behaviours.{former}={value}")
    in_mapping = loaded("", f"behaviours={{{former}: {value}}}")
    assert {plan.digest() for plan in (in_file, in_option, in_mapping)} == {expected.digest()}


def test_a_former_name_is_the_same_key_in_variants_and_options() -> None:
    text = f"{HEAD}behaviours: {{commits_fenced: false}}\nvariants: {{v: {{behaviours: {{commits_fenced: true}}}}}}"
    base, variant = load_text(text, "x.yaml").plans
    assert (base.behaviours, variant.behaviours) == (
        {"generations_fence_commits": False},
        {"generations_fence_commits": True},
    )
    plan = loaded("behaviours: {commits_fenced: false}", "behaviours.generations_fence_commits=true")
    assert plan.behaviours == {"generations_fence_commits": True}


def test_both_names_of_a_switch_in_one_place_are_a_mistake() -> None:
    both = "{generations_fence_commits: true, commits_fenced: false}"
    message = "`generations_fence_commits` and `commits_fenced` are names of the same switch"
    with pytest.raises(CampaignError) as refused:
        loaded(f"behaviours: {both}")
    assert str(refused.value) == f"x.yaml:3:47: {message}"
    with pytest.raises(CampaignError, match=message):
        loaded("", f"behaviours={both}")


def test_a_written_campaign_has_the_present_name() -> None:
    text = campaign_text(loaded("behaviours: {commits_fenced: false}"))
    assert "generations_fence_commits: false" in text
    assert "commits_fenced" not in text.replace("generations_fence_commits", "")
