"""A kind of client in a file outside harrow needs one registration, and then works like others."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from hypothesis import find, settings

from harrow.campaigns.clients.clients import CLIENTS
from harrow.campaigns.language.loader import CampaignError, load_text
from harrow.campaigns.language.plan_file import campaign_text
from harrow.campaigns.language.schema import json_schema
from harrow.campaigns.run.runner import run_plan
from harrow.campaigns.run.swarm import draw_for_seed
from harrow.campaigns.search.explicit_plan import explicit_plans
from harrow.campaigns.search.simpler_schedule import with_fewer_clients
from harrow.campaigns.search.strategies import plans
from harrow.cli.completion import names
from harrow.cli.render.catalogue import explain
from tests.extending.conftest import FILES, Register

TEXT = FILES["heartbeats.yaml"]


@pytest.fixture(autouse=True)
def _heartbeats(example: Callable[[str], ModuleType], register: Register) -> None:
    register(CLIENTS, "heartbeats", example("campaigns/clients/heartbeat.py").HEARTBEATS)


def plan(text: str = TEXT) -> Any:
    return load_text(text, "heartbeats.yaml").plans[0]


def test_the_client_runs_and_its_records_are_judged() -> None:
    result = run_plan(plan(), 0)
    assert result.verdict.status == "held"
    assert set(result.evidence.process_names.values()) == {"heartbeat-0", "reader"}
    sent = [operation for operation in result.evidence.operations if operation.f == "send"]
    assert len(sent) > 20
    assert [promise.acks for promise in result.evidence.producers.values()] == ["1"]


@pytest.mark.parametrize(
    ("text", "replacement", "message"),
    [
        ("partition: t-0", "partition: t-9", "unknown partition `t-9`"),
        ("partition: t-0, ", "", "`partition` is missing"),
        ("every: 500ms", "name: producer-0", "duplicate client name producer-0"),
        ("every: 500ms", "evry: 500ms", "did you mean `every`"),
    ],
)
def test_mistakes_are_refused(text: str, replacement: str, message: str) -> None:
    campaign = TEXT.replace("workload:", "workload:\n  producers: [{}]").replace(text, replacement)
    with pytest.raises(CampaignError, match=message):
        plan(campaign)


def test_faults_and_links_can_name_the_client() -> None:
    cut = plan(
        TEXT + "faults: [{at: 2s, do: {partition: {between: heartbeat-0, and: [0, 1, 2], duration: 1s}}}]"
    )
    assert run_plan(cut, 0).faults


def test_the_client_survives_a_round_trip_through_the_campaign_file() -> None:
    assert "heartbeats:" in campaign_text(plan())
    assert plan(campaign_text(plan())).digest() == plan().digest()


def test_the_client_is_in_the_schema_in_explain_and_in_completion() -> None:
    _, section = json_schema()["$defs"]["WorkloadSection"]["anyOf"]
    assert "heartbeats" in section["properties"]
    (entry,) = explain("heartbeat")
    assert entry.kind == "client"
    assert "heartbeat" in names("heartb")


def test_a_shrinker_keeps_the_client_and_tries_to_remove_it() -> None:
    explicit = next(explicit_plans(run_plan(plan(), 0)))
    assert explicit.applications == plan().applications
    assert explicit.script == ()
    assert any(not smaller.applications for smaller in with_fewer_clients(explicit))


def test_a_swarm_draws_the_number_of_clients() -> None:
    opened = plan(f"{TEXT}swarm: {{heartbeats: 0..3}}")
    draws = [draw_for_seed(opened, seed) for seed in range(20)]
    assert {len(draw.plan.applications) for draw in draws} == {0, 1, 2, 3}
    (three, *_) = (draw for draw in draws if len(draw.plan.applications) == 3)
    assert ("heartbeats", "3") in three.values
    assert [client.name for client in three.plan.applications] == [f"heartbeat-{n}" for n in range(3)]
    assert {client.every_us for client in three.plan.applications} == {500_000}
    assert run_plan(three.plan, 0).verdict.status == "held"
    assert plan(campaign_text(opened)).digest() == opened.digest()
    assert "heartbeats" in json_schema()["$defs"]["SwarmSection"]["properties"]


def test_an_explicit_client_closes_the_choice() -> None:
    source = f"{TEXT}swarm: {{heartbeats: 0..3, brokers: 1..2}}"
    closed = load_text(source, "heartbeats.yaml", ["workload.heartbeats=[{partition: t-0}]"]).plans[0]
    assert closed.swarm is not None
    assert (closed.swarm.applications, closed.swarm.brokers) == ((), (1, 2))


def test_a_swarm_needs_a_client_as_a_template() -> None:
    with pytest.raises(
        CampaignError, match=r"copies of the first one in `workload\.heartbeats`, which is missing"
    ):
        plan("swarm: {heartbeats: 0..3}")


def test_strategies_draw_the_client_with_its_fields() -> None:
    example = find(plans(), lambda candidate: bool(candidate.applications), settings=settings(database=None))
    assert example.applications[0].name == "heartbeat-0"
    assert example.applications[0].partition in example.cluster.partition_names()
    assert plan(campaign_text(example)).applications == example.applications
