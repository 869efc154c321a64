"""Writes the keys of a campaign file as Markdown, from its JSON Schema (``harrow schema``)."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from harrow.campaigns.language.schema import json_schema
from harrow.faults.catalogue import FAULTS

_ROOT: Final = "CampaignFile"
_REF: Final = "#/$defs/"
_ELSEWHERE: Final = {
    "Fault": "a [fault](faults.md#the-faults)",
    "Behaviours": "switches of the release, as `harrow list behaviours` shows them",
    "Settings": "Kafka's settings, as `harrow list settings` shows them",
    "BrokerSettings": "settings of brokers",
    "TopicSettings": "settings of topics",
    "ProducerSettings": "settings of producers",
    "ConsumerSettings": "settings of consumers",
    "OpenSettings": "settings, each with a list of values",
    "Events": "events of trace.jsonl with their fields",
    "NothingSection": "`{}`",
    "Variant": "the keys of a campaign but `name` and `variants`",
}
"""Definitions without a table here, with the text that stands for them."""

_CHOICES_SHOWN: Final = 6
_TITLES: Final = {
    _ROOT: "a campaign",
    "BrokerSection": "a broker",
    "ConditionSection": "a condition",
    "ConsumerSection": "a consumer",
    "ExpectationSection": "expect",
    "ServiceExpectationSection": "bounds of the service",
    "InjectionSection": "an entry of faults",
    "BlastRadiusSection": "blast_radius",
    "ProducerSection": "a producer",
    "ReplicaSection": "a replica",
    "StepSection": "a step of script",
    "SwarmFaultsSection": "faults of a swarm",
    "TopicSection": "a topic",
    "Action": "an action",
}


def key_tables() -> str:
    """Return a table for each section of a campaign, in the order in which they are mentioned."""
    schema = json_schema()
    definitions = {**schema["$defs"], _ROOT: schema}
    sections, index = [_ROOT], 0
    while index < len(sections):
        names = dict.fromkeys(_references(_section(definitions[sections[index]])))
        sections += [name for name in names if name not in _ELSEWHERE and name not in sections]
        index += 1
    return "\n\n".join(f"### {_title(name)}\n\n{_table(_section(definitions[name]))}" for name in sections)


def _title(name: str) -> str:
    """Return the heading of a section: its key, or a description."""
    return _TITLES.get(name) or re.sub(r"\B(?=[A-Z])", " ", name.removesuffix("Section")).lower()


def _section(definition: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the part of a definition that has keys; a definition may also be null."""
    return next((part for part in definition.get("anyOf", ()) if "properties" in part), definition)


def _references(section: Mapping[str, Any]) -> Iterator[str]:
    for key, value in section["properties"].items():
        if not _is_fault(key, value):
            yield from _references_in(value)


def _references_in(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if "$ref" in schema:
            yield schema["$ref"].removeprefix(_REF)
        for value in schema.values():
            yield from _references_in(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _references_in(value)


def _is_fault(key: str, value: Mapping[str, Any]) -> bool:
    """Return whether an action is a fault; faults have a page of their own."""
    return key in FAULTS and "$ref" in value


def _table(section: Mapping[str, Any]) -> str:
    rows = ["| key | value | meaning |", "|---|---|---|"]
    required = section.get("required", ())
    for key, value in section["properties"].items():
        if _is_fault(key, value):
            continue
        doc = value.get("description", "").replace("|", "\\|")
        rows.append(f"| `{key}` | {_kind(value)} | {doc}{' Required.' if key in required else ''} |")
    if any(_is_fault(key, value) for key, value in section["properties"].items()):
        rows.append(f"| *a fault's name* | {_ELSEWHERE['Fault']} | A fault strikes. |")
    return "\n".join(rows)


def _kind(schema: Mapping[str, Any]) -> str:
    """Describe the values that a schema accepts."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(_REF)
        title = _title(name)
        return _ELSEWHERE.get(name) or f"[{title}](#{title.replace(' ', '-')})"
    if "anyOf" in schema:
        kinds = list(dict.fromkeys(_kind(option) for option in schema["anyOf"]))
        if kinds[-1] == f"a list, each {' or '.join(kinds[:-1])}":
            kinds[-1] = "a list of these"
        return " or ".join(kinds)
    if "enum" in schema:
        return _choice(schema["enum"])
    if "examples" in schema:
        return f"a value like {', '.join(f'`{example}`' for example in schema['examples'])}"
    kind = schema.get("type")
    if kind == "array":
        return f"a list, each {_kind(schema['items'])}" if "items" in schema else "a list"
    if kind == "object":
        inner = schema.get("additionalProperties")
        return f"by name: {_kind(inner)}" if isinstance(inner, dict) else "a table"
    if kind in ("integer", "number"):
        return _number(schema)
    return {"boolean": "`true`, `false`", "null": "nothing"}.get(str(kind), "text")


def _choice(values: list[Any]) -> str:
    shown = [f"`{value}`" for value in values]
    return (
        ", ".join(shown)
        if len(shown) <= _CHOICES_SHOWN
        else f"{', '.join(shown[:3])} ... ({len(shown)} in all)"
    )


def _number(schema: Mapping[str, Any]) -> str:
    noun = "whole number" if schema["type"] == "integer" else "number"
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is None:
        return noun
    return f"{noun} from {low}" if high is None else f"{noun} from {low} to {high}"
