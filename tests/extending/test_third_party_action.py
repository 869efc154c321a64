"""An action in a file outside harrow needs one registration, and then works everywhere."""

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
from harrow.campaigns.search.explicit_plan import explicit_plans
from harrow.campaigns.search.simpler_schedule import with_fewer_clients
from harrow.cli.completion import names
from harrow.cli.render.catalogue import explain
from harrow.faults.catalogue import ACTIONS
from tests.extending.conftest import FILES, Register

QUIET = settings(database=None, derandomize=True, deadline=None)


@pytest.fixture(autouse=True)
def redeploy(example: Callable[[str], ModuleType], register: Register) -> Any:
    action = example("faults/redeploy.py").Redeploy
    register(ACTIONS, action.name, action)
    return action


def plan() -> Any:
    return load_text(FILES["redeploy.yaml"], "redeploy.yaml").plans[0]


def test_a_script_performs_the_action(redeploy: Any) -> None:
    result = run_plan(plan(), 0)
    assert result.expected
    sessions = [settings.name for settings in result.evidence.producers.values()]
    assert sorted(sessions) == ["producer-0", "producer-0", "producer-1", "producer-1"]
    assert [action for _, action in result.other_actions] == [
        redeploy(producers=("producer-0", "producer-1"))
    ]


def test_references_of_the_action_are_checked() -> None:
    text = FILES["redeploy.yaml"].replace("redeploy: [producer-0,", "redeploy: [producer-7,")
    with pytest.raises(CampaignError, match="unknown producer `producer-7`"):
        load_text(text, "redeploy.yaml")


def test_the_action_survives_a_round_trip_through_the_campaign_file() -> None:
    assert "redeploy: [producer-0, producer-1]" in campaign_text(plan())
    assert load_text(campaign_text(plan()), "again.yaml").plans[0].digest() == plan().digest()


def test_the_action_is_in_the_schema_in_explain_and_in_completion() -> None:
    assert "redeploy" in str(json_schema()["$defs"]["Action"])
    (entry,) = explain("redeploy")
    assert entry.kind == "action"
    assert names("redep") == ["redeploy"]


def test_strategies_draw_the_action() -> None:
    def has_action(script: Any) -> bool:
        return any(action.name == "redeploy" for step in script for action in step.actions)

    assert has_action(find(strategies.scripts(), has_action, settings=QUIET))


def test_a_shrinker_keeps_the_action_and_renames_its_references(redeploy: Any) -> None:
    explicit = next(explicit_plans(run_plan(plan(), 0)))
    actions = [action for step in explicit.script for action in step.actions]
    assert redeploy(producers=("producer-0", "producer-1")) in actions
    one = next(p for p in with_fewer_clients(explicit) if len(p.producers) == 1)
    assert [action for step in one.script for action in step.actions if action.name == "redeploy"] == [
        redeploy(producers=(one.producers[0].name,) * 2)
    ]
