"""An event in a file outside harrow needs one registration, and then works in all traces."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import find, settings
from typer.testing import CliRunner

from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.loader import CampaignError, load_campaign, load_text
from harrow.campaigns.language.plan_file import campaign_text
from harrow.campaigns.language.schema import json_schema
from harrow.campaigns.record.report import run_as_mapping
from harrow.campaigns.record.results_folder import write_run
from harrow.campaigns.run.runner import Run
from harrow.campaigns.search.strategies import conditions
from harrow.campaigns.story.event_phrases import PHRASES
from harrow.cli.main import app
from harrow.cluster_model.events import (
    EVENTS,
    ControllerId,
    Event,
    FieldTrait,
    event,
    event_fields,
    fields_with,
)
from harrow.cluster_model.sim.choices import Choices
from harrow.cluster_model.trace import Trace

LONELY = "lonely_leader"
WAITING = "script: [{when: {event: {lonely_leader: {broker: 0, left: [1]}}}}]"


@pytest.fixture(autouse=True)
def example_event(example: Callable[[str], ModuleType]) -> Iterator[ModuleType]:
    module = example("cluster_model/lonely_leader.py")
    yield module
    del PHRASES[module.LonelyLeader]
    del EVENTS[LONELY]


def command(*arguments: str) -> str:
    """Return the output of a command in this process, because another process lacks the example."""
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return str(result.output)


@pytest.fixture
def recorded(example_event: ModuleType, tmp_path: Path) -> Path:
    """Return the folder of a run with the event."""
    return record(tmp_path, example_event.LonelyLeaders)


def record(results: Path, *subscribers: Callable[[Trace], object]) -> Path:
    (campaign,) = resolve("acks-all-degrades")
    plan = load_campaign(campaign).plans[0]
    run = Run(plan, 0, Choices.from_seed(0))
    for subscriber in subscribers:
        subscriber(run.target.trace)
    result = run.result()
    return write_run(results, result, run_as_mapping(result, "harrow run"), campaign_text(plan))


def test_the_event_is_in_the_trace_with_its_fields(recorded: Path) -> None:
    lines = map(json.loads, (recorded / "trace.jsonl").read_text(encoding="utf-8").splitlines())
    (event,) = (line for line in lines if line["event"] == LONELY)
    assert (event["broker"], event["partition"], event["left"]) == (0, "t-0", [])


def test_annotations_of_an_event_may_be_text() -> None:
    @event("broker_renamed")
    class BrokerRenamed(Event):
        broker: "ControllerId"

    try:
        assert event_fields(BrokerRenamed.name) == {"broker": event_fields(LONELY)["broker"]}
        assert fields_with(BrokerRenamed.name, FieldTrait.NAMES_CONTROLLER) == {"broker"}
    finally:
        del EVENTS[BrokerRenamed.name]


@pytest.mark.parametrize("options", [(), ("--format", "json"), ("--format", "html"), ("--format", "mermaid")])
def test_the_story_has_the_sentence_of_the_event(recorded: Path, options: tuple[str, ...]) -> None:
    assert "is ALONE in the ISR" in command("trace", str(recorded), "--all", *options)


def test_a_diff_shows_the_name_and_fields_of_the_event(recorded: Path) -> None:
    lines = (recorded / "trace.jsonl").read_text(encoding="utf-8").splitlines()
    number = next(n for n, line in enumerate(lines, 1) if LONELY in line)
    shown = " ".join(command("diff", str(recorded), "--at", str(number)).split())
    assert f"{LONELY} broker=0 partition=t-0 left=[]" in shown


@pytest.mark.parametrize("is_milestone", [True, False])
def test_a_diff_of_runs_compares_the_event_if_it_is_a_milestone(
    recorded: Path,
    tmp_path: Path,
    example_event: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    is_milestone: bool,
) -> None:
    monkeypatch.setattr(example_event.LonelyLeader, "is_milestone", is_milestone)
    without = record(tmp_path / "without")
    result = CliRunner().invoke(app, ["diff", str(recorded), str(without), "--format", "json"])
    (event, _) = json.loads(result.output)["first_telling_difference"]
    assert (event is not None and event["event"] == LONELY) == is_milestone


def test_a_condition_can_wait_for_the_event() -> None:
    plan = load_text(WAITING, "waiting.yaml").plans[0]
    assert load_text(campaign_text(plan), "again.yaml").plans[0].digest() == plan.digest()
    assert LONELY in json.dumps(json_schema())
    with pytest.raises(CampaignError, match="did you mean `left`"):
        load_text(WAITING.replace("left", "lft"), "waiting.yaml")


def test_strategies_draw_the_event() -> None:
    def waits_for_it(condition: Any) -> bool:
        return any(pattern.event == LONELY for pattern in condition.patterns())

    examples = conditions(brokers=(0, 1), partitions=("t-0",), events=(LONELY,))
    assert waits_for_it(find(examples, waits_for_it, settings=settings(database=None)))
