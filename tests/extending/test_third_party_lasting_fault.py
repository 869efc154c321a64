"""A lasting fault in a file outside harrow needs one registration, and then works everywhere."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from hypothesis import find, settings

from harrow.campaigns.language.loader import CampaignError, load_text
from harrow.campaigns.language.plan_file import campaign_text
from harrow.campaigns.language.schema import json_schema
from harrow.campaigns.run.runner import run_plan
from harrow.campaigns.run.swarm import draw_for_seed
from harrow.campaigns.search import strategies
from harrow.campaigns.search.explicit_plan import explicit_plans
from harrow.campaigns.search.simpler_schedule import with_plainer_faults, with_rounder_times
from harrow.campaigns.story.run_state import RunState
from harrow.cli.completion import names
from harrow.cli.render.catalogue import explain
from harrow.faults.catalogue import FAULTS
from tests.extending.conftest import FILES, Register

QUIET = settings(database=None, derandomize=True, deadline=None)
SECOND = 1_000_000


@pytest.fixture(autouse=True)
def outage(example: Callable[[str], ModuleType], register: Register) -> Any:
    fault = example("faults/outage.py").Outage
    register(FAULTS, fault.name, fault)
    return fault


def plans(text: str = FILES["outages.yaml"]) -> Any:
    return load_text(text, "outages.yaml").plans


def test_the_fault_strikes_and_ends() -> None:
    base, power_loss = (run_plan(plan, 0) for plan in plans())
    assert base.expected
    assert power_loss.expected
    (injected,) = base.faults
    names_of_events = [event[1] for event in base.evidence.trace if event[1] in ("fault", "fault_ended")]
    assert names_of_events == ["fault", "fault_ended"]
    assert 2 * SECOND <= injected.concrete.lasts_us() <= 5 * SECOND  # type: ignore[union-attr]  # a lasting fault that struck


def active_times(result: Any) -> list[tuple[int, int]]:
    """Return when the outage was active according to `RunState`, which all commands show."""
    state = RunState({"t-0": (0, 1, 2)}, (0, 1, 2))
    spans: list[tuple[int, int]] = []
    for event in result.evidence.trace:
        state.advance(event)
        if any(fault.fault == "outage" for fault in state.faults):
            start = spans.pop()[0] if spans else event[0]
            spans.append((start, event[0]))
    return spans


def test_the_fault_is_active_until_it_ends() -> None:
    result = run_plan(plans()[0], 0)
    (injected,) = result.faults
    ((begin_us, _),) = active_times(result)
    assert begin_us == injected.at_us
    state = RunState({"t-0": (0, 1, 2)}, (0, 1, 2))
    for event in result.evidence.trace:
        state.advance(event)
        if event[1] == "fault_ended":
            assert state.faults == []


def test_the_fault_is_over_when_other_actions_have_ended_it() -> None:
    restarts = "\n".join(
        f"  - at: 11s\n    do: {{broker_restart: {{broker: {broker}}}}}" for broker in range(3)
    )
    text = FILES["outages.yaml"].replace("\nexpect:", f"\n{restarts}\nexpect:", 1)
    result = run_plan(plans(text)[0], 0)
    assert not [event for event in result.evidence.trace if event[1] == "fault_ended"]
    ((_, end_us),) = active_times(result)
    assert end_us <= 11 * SECOND


def test_the_fault_survives_a_round_trip_through_the_campaign_file() -> None:
    for plan in plans():
        assert plans(campaign_text(plan))[0].digest() == plan.digest()


def test_the_fault_is_in_the_schema_in_explain_and_in_completion() -> None:
    assert "outage" in str(json_schema()["$defs"]["Fault"])
    # The glossary has the word too.
    assert [entry.kind for entry in explain("outage")] == ["term", "fault"]
    assert names("outa") == ["outage"]


def test_mistakes_are_refused() -> None:
    with pytest.raises(CampaignError, match="is not one of process, power_loss"):
        plans(FILES["outages.yaml"].replace("kind: power_loss", "kind: water"))


def test_a_swarm_and_hypothesis_draw_the_fault(outage: Any) -> None:
    swarm = "workload: {duration: 9s}\nswarm: {faults: {any_of: [outage], in_play: 1, rate: 30/m}}"
    assert isinstance(draw_for_seed(plans(swarm)[0], 0).plan.faults[0].faults[0], outage)
    # The fault is one of many kinds, so a hundred examples may lack it.
    thorough = settings(QUIET, max_examples=1_000)
    example = find(strategies.faults(), lambda fault: isinstance(fault, outage), settings=thorough)
    assert example.name == outage.name


def test_a_shrinker_simplifies_the_fault(outage: Any) -> None:
    def outages(plans: Any) -> list[Any]:
        return [a for plan in plans for step in plan.script for a in step.actions if a.name == "outage"]

    explicit = next(explicit_plans(run_plan(plans()[1], 0)))
    (fault,) = outages([explicit])
    assert fault.kind == "power_loss"
    assert outage() in outages(with_plainer_faults(explicit))
    assert any(fault.duration[0] % SECOND == 0 for fault in outages(with_rounder_times(explicit)))
