"""A file outside harrow declares a switch with its mutant and repair, which work everywhere."""

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from harrow.campaigns.language.loader import CampaignError, load_text
from harrow.campaigns.language.plan_file import campaign_text
from harrow.campaigns.language.schema import json_schema
from harrow.campaigns.run.runner import run_plan
from harrow.checks.prevention import BEHAVIOUR, REPAIR, by_switches
from harrow.cli.completion import names
from harrow.cli.render.catalogue import explain, release_changes
from harrow.cluster_model.cluster import Cluster
from harrow.cluster_model.fields import EXTENSIONS
from harrow.cluster_model.release.profiles import MUTANTS, RELEASES, REPAIRS, SWITCHES
from harrow.cluster_model.release.replication import ReplicationSwitches
from harrow.cluster_model.sim.choices import Choices

NAME, MUTANT, REPAIR_NAME = "hw_survives_failover", "hw-lost-in-failover", "KAFKA-99999"
CAMPAIGN = """
kafka: "2.8"
cluster: {brokers: 1, topics: [{name: t, replication_factor: 1}]}
workload: {duration: 1s, producers: [{rate: 1/s}]}
"""


@pytest.fixture(autouse=True)
def declared(example: Callable[[str], ModuleType]) -> Iterator[None]:
    example("cluster_model/release/own_replication.py")
    yield
    del EXTENSIONS[ReplicationSwitches]


def plan(text: str) -> Any:
    (result,) = load_text(text, "own.yaml").plans
    return result


def test_each_release_has_the_declared_value() -> None:
    assert [name for name, release in RELEASES.items() if release.behaviours.value(NAME)] == [
        *("2.8", "3.6", "3.9", "4.0", "4.3", "4.4")
    ]


def test_the_switch_is_in_the_schema_in_explain_in_completion_and_in_release_changes() -> None:
    assert [entry.kind for entry in explain(NAME)] == ["behaviour"]
    assert [entry.kind for entry in explain(MUTANT)] == ["mutant"]
    assert names("hw_surv") == [NAME]
    assert NAME in str(json_schema())
    assert NAME in release_changes(RELEASES["2.4"], RELEASES["2.8"])[0]


def test_a_campaign_sets_the_switch_and_survives_a_round_trip() -> None:
    flawed = plan(CAMPAIGN + f"behaviours: {{{NAME}: false}}")
    assert flawed.behaviour_switches().value(NAME) is False
    assert plan(campaign_text(flawed)).digest() == flawed.digest()
    with pytest.raises(CampaignError, match=r"own\.yaml:5"):
        plan(CAMPAIGN + f"behaviours: {{{NAME}: wet}}")


def test_the_brokers_of_the_model_have_the_switch() -> None:
    sound = plan(CAMPAIGN)
    cluster = Cluster(sound.cluster, "2.8", sound.behaviour_switches(), Choices.from_seed(0))
    assert cluster.behaviours.replication.hw_survives_failover is True  # type: ignore[attr-defined]  # declared at run time


def test_the_switch_brings_its_mutant_and_its_repair() -> None:
    assert (MUTANTS[MUTANT].switch, MUTANTS[MUTANT].value) == (NAME, False)
    assert plan(CAMPAIGN).flawed(MUTANTS[MUTANT]).behaviour_switches().value(NAME) is False
    repair = REPAIRS[REPAIR_NAME]
    assert (repair.switch, repair.value, repair.is_missing(False)) == (NAME, True, True)


def test_findings_propose_the_switch() -> None:
    def ways(text: str) -> list[tuple[str, str]]:
        evidence = run_plan(plan(text), 0).evidence
        return [(way.kind, way.name) for way in by_switches(evidence, "hw-monotonic", ())]

    assert (BEHAVIOUR, NAME) in ways(CAMPAIGN + f"behaviours: {{{NAME}: false}}")
    assert (REPAIR, REPAIR_NAME) in ways(CAMPAIGN.replace("2.8", "2.4"))


def test_removing_the_switch_removes_its_mutant_and_repair() -> None:
    extension = EXTENSIONS[ReplicationSwitches]
    EXTENSIONS[ReplicationSwitches] = ReplicationSwitches
    assert NAME not in SWITCHES
    assert MUTANT not in MUTANTS
    assert REPAIR_NAME not in REPAIRS
    EXTENSIONS[ReplicationSwitches] = extension
