"""One declaration adds a field or a setting to all parts of campaigns."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, is_dataclass
from typing import Any, ClassVar

import pytest
from hypothesis import find, settings
from typer.testing import CliRunner

from harrow.campaigns.language.loader import CampaignError, load_text
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.plan_file import campaign_text
from harrow.campaigns.language.schema import json_schema
from harrow.campaigns.run.swarm import draw_for_seed
from harrow.campaigns.search import strategies
from harrow.campaigns.search.simpler_cluster import with_defaults, with_fewer_settings
from harrow.cli.completion import names
from harrow.cli.main import app
from harrow.cluster_model.fields import (
    EXTENSIONS,
    BrokerId,
    Count,
    Duration,
    Partition,
    described,
    fields_of,
)
from harrow.cluster_model.settings import PRODUCER, SETTINGS, Setting
from harrow.cluster_model.topology import ConsumerSpec, DiskSpec

QUIET = settings(database=None, derandomize=True, deadline=None)

LEVEL = Setting(
    "compression.level",
    PRODUCER,
    "int",
    (("0.10.2", 6),),
    "How hard a producer compresses.",
    minimum=1,
    maximum=9,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FragileDisk(DiskSpec):
    """A disk that wears out."""

    wear: Count = described("How worn it is.", default=1, maximum=9, open="wear")
    spare: BrokerId | None = described("Which broker has the spare one.", default=None)
    seek_us: Duration = described("How long a head moves.", default=0, key="head.seek")

    SECTIONS: ClassVar[Mapping[str, str]] = {"head": "The head."}


@dataclass(frozen=True, slots=True, kw_only=True)
class PrioritisingConsumer(ConsumerSpec):
    """A consumer that reads one partition before the others."""

    first: Partition | None = described("Which partition it looks at first.", default=None)


@pytest.fixture
def level(monkeypatch: pytest.MonkeyPatch) -> Setting:
    monkeypatch.setitem(SETTINGS, (LEVEL.scope, LEVEL.name), LEVEL)
    return LEVEL


@pytest.fixture
def wear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(EXTENSIONS, DiskSpec, FragileDisk)
    monkeypatch.setitem(EXTENSIONS, ConsumerSpec, PrioritisingConsumer)


def plan_of(text: str, *options: str) -> Plan:
    return load_text(text, "f.yaml", options).plans[0]


def problem_of(text: str, *options: str) -> str:
    with pytest.raises(CampaignError) as error:
        load_text(text, "f.yaml", options)
    return "; ".join(map(str, error.value.problems))


def round_trip(plan: Plan) -> Plan:
    return plan_of(campaign_text(plan))


def disk(plan: Plan) -> FragileDisk:
    assert isinstance(plan.cluster.disk, FragileDisk)
    return plan.cluster.disk


# A setting


@pytest.mark.usefixtures("level")
def test_a_new_setting_reaches_the_processes_of_its_scope() -> None:
    plan = plan_of("settings: {compression.level: 3}")
    assert plan.producers[0].settings == {"compression.level": 3}
    assert plan.cluster.settings == {}
    own = "workload: {producers: [{settings: {compression.level: 4}}]}"
    assert plan_of(own).producers[0].settings == {"compression.level": 4}
    assert plan_of(own, "compression.level=5").producers[0].settings == {"compression.level": 5}


@pytest.mark.usefixtures("level")
def test_a_wrong_value_of_a_new_setting_is_reported_at_its_position() -> None:
    assert problem_of("settings: {compression.level: 10}") == (
        "f.yaml:1:31: compression.level: 10 is too large: at most 9"
    )
    assert "it is a producer's setting" in problem_of(
        "cluster: {topics: [{name: t, settings: {compression.level: 3}}]}"
    )
    assert "--set: compression.level=no: " in problem_of("name: x", "compression.level=no")


def test_a_setting_is_unknown_again_after_it_is_unregistered() -> None:
    assert "unknown setting" in problem_of("settings: {compression.level: 3}")
    assert "compression.level" not in json.dumps(json_schema())


@pytest.mark.usefixtures("level")
def test_a_new_setting_is_in_the_schema_and_in_the_catalogues() -> None:
    definitions = json_schema()["$defs"]
    for section in ("Settings", "ProducerSettings", "OpenSettings"):
        assert definitions[section]["properties"]["compression.level"]["description"] == LEVEL.doc
    assert "compression.level" not in definitions["BrokerSettings"]["properties"]
    shown = CliRunner().invoke(app, ["explain", "compression.level"])
    assert shown.exit_code == 0
    assert LEVEL.doc in shown.output
    assert "compression.level" in CliRunner().invoke(app, ["list", "settings"]).output
    assert names("compression.l") == ["compression.level"]


@pytest.mark.usefixtures("level")
def test_a_new_setting_is_drawn_by_swarms_and_strategies_and_left_out_by_the_shrinker() -> None:
    swarm = plan_of("swarm: {settings: {compression.level: [2, 7]}}")
    values = {
        draw_for_seed(swarm, seed).plan.producers[0].settings["compression.level"] for seed in range(20)
    }
    assert values == {2, 7}
    assert round_trip(swarm) == swarm
    plan = draw_for_seed(swarm, 0).plan
    assert round_trip(plan).producers == plan.producers
    assert any(simpler.producers[0].settings == {} for simpler in with_fewer_settings(plan))
    assert find(
        strategies.settings(PRODUCER),
        lambda drawn_settings: "compression.level" in drawn_settings,
        settings=QUIET,
    )


# A field


@pytest.mark.usefixtures("wear")
def test_a_new_field_is_read_and_written() -> None:
    assert disk(plan_of("name: x")) == FragileDisk()
    plan = plan_of("cluster: {disk: {wear: 3, spare: 1, head: {seek: 2ms}}}")
    assert disk(plan) == FragileDisk(wear=3, spare=1, seek_us=2_000)
    assert "disk: {wear: 3, spare: 1, head: {seek: 2ms}}" in campaign_text(plan)
    assert round_trip(plan) == plan
    assert disk(plan_of("name: x", "cluster.disk.wear=4")).wear == 4


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("cluster: {disk: {wear: 10}}", "f.yaml:1:24: wear: 10 is too large: at most 9"),
        ("cluster: {disk: {wear: 0}}", "f.yaml:1:24: wear: 0 is too small: at least 1"),
        ("cluster: {disk: {spare: 9}}", "f.yaml:1:25: unknown broker 9; the brokers are 0, 1, 2"),
        ("cluster: {disk: {head: {seek: 2}}}", "f.yaml:1:31: seek: 2 has no unit: write `2s` or `2ms`"),
        ("cluster: {disk: {waer: 2}}", "f.yaml:1:18: unknown key `waer`; did you mean `wear`?"),
        (
            "workload: {consumers: [{first: t-1}]}",
            "f.yaml:1:32: unknown partition `t-1`; topic t has only t-0",
        ),
    ],
)
@pytest.mark.usefixtures("wear")
def test_a_wrong_value_of_a_new_field_is_reported_at_its_position(text: str, problem: str) -> None:
    assert problem_of(text) == problem


@pytest.mark.usefixtures("wear")
def test_a_new_field_is_in_the_schema() -> None:
    definitions = json_schema()["$defs"]
    wear = definitions["FragileDiskSection"]["properties"]["wear"]
    assert wear == {"description": "How worn it is.", "type": "integer", "minimum": 1, "maximum": 9}
    assert definitions["SwarmSection"]["properties"]["wear"]["description"] == (
        "The values to draw `cluster.disk.wear` from."
    )


@pytest.mark.usefixtures("wear")
def test_a_swarm_draws_an_open_field_unless_an_option_sets_it() -> None:
    text = "swarm: {wear: [2, 5]}"
    swarm = plan_of(text)
    seeds = [draw_for_seed(swarm, seed) for seed in range(20)]
    assert {disk(made.plan).wear for made in seeds} == {2, 5}
    assert {made.values for made in seeds} == {(("wear", "2"),), (("wear", "5"),)}
    assert round_trip(swarm) == swarm
    closed = plan_of(text, "cluster.disk.wear=7")
    assert disk(draw_for_seed(closed, 0).plan).wear == 7
    assert "wear: 10 is too large" in problem_of("swarm: {wear: [2, 10]}")


@pytest.mark.usefixtures("wear")
def test_the_shrinker_simplifies_a_new_field() -> None:
    plan = plan_of("{cluster: {disk: {wear: 3, spare: 1}}, workload: {consumers: [{first: t-0}]}}")
    simpler = list(with_defaults(plan))
    assert any(disk(candidate) == FragileDisk(spare=1) for candidate in simpler)
    assert any(disk(candidate) == FragileDisk(wear=3) for candidate in simpler)
    assert any(candidate.consumers == (PrioritisingConsumer(name="consumer-0"),) for candidate in simpler)


@pytest.mark.usefixtures("wear")
def test_a_new_field_is_drawn_by_the_strategies() -> None:
    assert find(strategies.specs(DiskSpec), lambda spec: spec.wear > 3, settings=QUIET).wear == 4


def sections(declared: type[Any]) -> Iterator[type[Any]]:
    yield declared
    for item in fields_of(declared):
        if is_dataclass(item.kind):
            yield from sections(item.kind)


@pytest.mark.parametrize("declared", list(sections(Plan)))
def test_every_field_of_a_plan_has_its_documentation(declared: type[Any]) -> None:
    assert all(item.doc.endswith(".") for item in fields_of(declared))
