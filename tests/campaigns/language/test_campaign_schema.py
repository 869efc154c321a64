"""The JSON Schema of campaign files and the sections made from catalogues."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
import yaml
from jsonschema import Draft202012Validator

from harrow.campaigns.language.catalogue_shapes import (
    events_section,
    fault_section,
    settings_section,
)
from harrow.campaigns.language.library_index import library_names, resolve
from harrow.campaigns.language.loader import load_text
from harrow.campaigns.language.schema import cluster_json_schema, json_schema
from harrow.campaigns.language.shapes import SectionShape
from harrow.campaigns.language.template import new_campaign
from harrow.campaigns.version import SCHEMA_URL
from harrow.cluster_model.events import EVENTS, event_fields
from harrow.cluster_model.fields import FOR, Broker, LastsMarker, described, fields_of
from harrow.cluster_model.release.profiles import MUTANTS, Behaviours
from harrow.cluster_model.settings import SETTINGS, qualified_names, setting_names
from harrow.faults.catalogue import FAULTS
from harrow.faults.effects import FaultEffect, Kill
from harrow.faults.fault import Environment, Fault
from tests.campaigns.language.campaign_texts import reference_example


def as_json(text: str) -> Any:
    """Read YAML like an editor, with strings as keys."""
    return with_string_keys(yaml.safe_load(text))


def with_string_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): with_string_keys(item) for key, item in value.items()}
    return [with_string_keys(item) for item in value] if isinstance(value, list) else value


def errors(text: str) -> list[str]:
    return [error.message for error in Draft202012Validator(json_schema()).iter_errors(as_json(text))]


def test_the_schema_is_a_valid_json_schema() -> None:
    schema = json_schema()
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$id"] == SCHEMA_URL


def test_the_schema_accepts_the_reference_and_the_template() -> None:
    assert errors(reference_example()) == []
    assert errors(new_campaign("first")) == []


def test_the_schema_of_cluster_files_accepts_what_the_loader_accepts_and_no_key_of_a_campaign() -> None:
    validator = Draft202012Validator(cluster_json_schema())
    assert not list(validator.iter_errors({"kafka": "3.9", "settings": {"acks": "all"}, "brokers": 3}))
    assert list(validator.iter_errors({"brokers": 3, "workload": {}}))


@pytest.mark.parametrize("name", library_names())
def test_the_schema_accepts_the_library(name: str) -> None:
    (path,) = resolve(name)
    assert errors(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "text",
    [
        "kafkka: '2.4'",
        "settings: {acs: all}",
        "settings: {acks: 2}",
        "settings: {min.insync.replicas: 0}",
        "cluster: {topics: [{name: t, settings: {acks: all}}]}",
        "workload: {duration: 10}",
        "workload: {producers: [{rate: 10}]}",
        "script: [{do: {broker_crash: {}}}]",
        "script: [{do: {broker_crash: {broker: 1}, broker_pause: {broker: 1}}}]",
        "script: [{do: brker_crash}]",
        "faults: [{at: 1s, do: {send: m}}]",
        "behaviours: {follower_truncation: hw}",
        "expect: {verdict: broken}",
        "variants: {v: {name: x}}",
    ],
)
def test_the_schema_refuses_wrong_keys_and_values(text: str) -> None:
    assert errors(text)


def test_the_schema_describes_every_key() -> None:
    schema = json_schema()
    assert "description" in schema["properties"]["cluster"]
    settings = schema["$defs"]["Settings"]["properties"]
    assert sorted(settings) == sorted([*setting_names(), *qualified_names()])
    assert all(settings[name]["description"] for name in settings)
    crash = schema["$defs"]["BrokerCrash"]
    assert crash["description"].startswith("The broker's process dies, or its machine loses power.")
    assert crash["properties"]["kind"]["description"]
    assert crash["required"] == ["broker"]


def test_the_schema_has_no_null_as_a_default() -> None:
    def walk(value: Any) -> None:
        if isinstance(value, dict):
            assert value.get("default", "") is not None
            assert value.get("description") != ""
        for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            walk(item)

    walk(json_schema())


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_has_a_syntax(name: str) -> None:
    keys = set(fault_section(name).keys)
    lasts = any(item.kind is LastsMarker for item in fields_of(FAULTS[name]))
    assert keys - {FOR} == {item.key for item in fields_of(FAULTS[name])}
    assert (FOR in keys) == lasts
    assert all(item.doc for item in fields_of(FAULTS[name]))


def test_a_new_faults_syntax_follows_from_its_fields() -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class DiskFull(Fault):
        """No room is left."""

        name: ClassVar[str] = "disk_full"
        broker: Broker = described("Which broker.")
        from_: str = described("A word of Python's.", default="a")

        def effects(self, environment: Environment) -> Iterable[FaultEffect]:
            return [Kill(0)]

    assert [(item.key, item.attribute, item.required) for item in fields_of(DiskFull)] == [
        ("broker", "broker", True),
        ("from", "from_", False),
    ]


def test_a_field_without_a_syntax_is_refused() -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Odd(Fault):
        name: ClassVar[str] = "odd"
        weight: complex = 0j

        def effects(self, environment: Environment) -> Iterable[FaultEffect]:
            return [Kill(0)]

    with pytest.raises(TypeError, match=r"Odd\.weight: a campaign has no syntax"):
        fields_of(Odd)


def test_every_setting_has_a_key_in_its_scope() -> None:
    for scope, name in SETTINGS:
        assert name in settings_section((scope,)).keys
        assert name in settings_section().keys


def test_every_event_has_its_fields() -> None:
    section = events_section()
    for event in EVENTS:
        inner = section.keys[event].shape.resolved()
        assert isinstance(inner, SectionShape)
        assert list(inner.keys) == list(event_fields(event))


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_every_mutant_can_be_written(mutant: Any) -> None:
    value = str(mutant.value).lower()
    plan = load_text(f"behaviours: {{{mutant.switch}: {value}}}", "f.yaml").plans[0]
    assert plan.behaviours == {mutant.switch: mutant.value}
    assert plan.behaviour_switches().value(mutant.switch) == mutant.value
    assert isinstance(plan.behaviour_switches(), Behaviours)
