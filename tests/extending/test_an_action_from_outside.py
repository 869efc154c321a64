"""An action that one file and one registration bring is everywhere where actions are."""

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


def test_it_is_taken(redeploy: Any) -> None:
    result = run_plan(plan(), 0)
    assert result.expected
    sessions = [settings.name for settings in result.evidence.producers.values()]
    assert sorted(sessions) == ["producer-0", "producer-0", "producer-1", "producer-1"]
    assert [action for _, action in result.operated] == [redeploy(producers=("producer-0", "producer-1"))]


def test_what_it_refers_to_is_checked() -> None:
    text = FILES["redeploy.yaml"].replace("redeploy: [producer-0,", "redeploy: [producer-7,")
    with pytest.raises(CampaignError, match="unknown producer `producer-7`"):
        load_text(text, "redeploy.yaml")


def test_it_is_written_as_it_is_read() -> None:
    assert "redeploy: [producer-0, producer-1]" in campaign_text(plan())
    assert load_text(campaign_text(plan()), "again.yaml").plans[0].digest() == plan().digest()


def test_it_is_in_the_schema_and_explained_and_completed() -> None:
    assert "redeploy" in str(json_schema()["$defs"]["Action"])
    (entry,) = explain("redeploy")
    assert entry.kind == "action"
    assert names("redep") == ["redeploy"]


def test_it_is_drawn() -> None:
    def has_it(script: Any) -> bool:
        return any(action.name == "redeploy" for step in script for action in step.actions)

    assert has_it(find(strategies.scripts(), has_it, settings=QUIET))


def test_a_shrinker_repeats_it_and_renames_what_it_names(redeploy: Any) -> None:
    explicit = next(explicit_plans(run_plan(plan(), 0)))
    taken = [action for step in explicit.script for action in step.actions]
    assert redeploy(producers=("producer-0", "producer-1")) in taken
    one = next(p for p in with_fewer_clients(explicit) if len(p.producers) == 1)
    assert [action for step in one.script for action in step.actions if action.name == "redeploy"] == [
        redeploy(producers=(one.producers[0].name,) * 2)
    ]
