"""The models of a campaign file, and its JSON Schema.

They know the shape of each section. What has to fit together (brokers that exist,
settings that a release knows) is checked in `harrow.campaigns.language.readers`.
"""

from itertools import takewhile
from typing import Annotated, Any, Final

from harrow.campaigns.clients.clients import application_kinds
from harrow.campaigns.language import catalogue_sections, literals, plan, section_models
from harrow.campaigns.language.open_choices import open_fields
from harrow.campaigns.language.plan import Aim, Plan, Step, Swarm
from harrow.campaigns.language.section import (
    NAME,
    TEXT,
    Leaf,
    OneOrMany,
    Section,
    generated,
    one_of,
    whole_range,
)
from harrow.campaigns.probes.probes import PROBES
from harrow.checks.finding import STATUSES
from harrow.cluster_model.fields import SettingsMarker, fields_of
from harrow.cluster_model.invariants.catalogue import INVARIANTS
from harrow.cluster_model.registry import derived
from harrow.cluster_model.topology import CLIENTS_MAX
from harrow.faults.injection import TIMINGS, Injection

SCHEMA_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

ALL_INVARIANTS: Final = "all"
NO_INVARIANTS: Final = "none"
ALL_RULES: Final = "all"


# Script and faults


@derived
def step_section() -> type[Section]:
    return _for_variants(Step, section_models.definitions_of(Step))


@derived
def injection_section() -> type[Section]:
    """Return the model of an entry of `faults`: the keys of every timing, of which it has those of one."""
    timings = [
        section_models.definition_of(item, optional=True)
        for timing in TIMINGS.values()
        for item in fields_of(timing)
    ]
    faults = Annotated[list[generated(catalogue_sections.one_fault_section)], OneOrMany()]  # type: ignore[misc, valid-type]  # made at run time
    return _for_variants(
        Injection,
        *timings,
        section_models.field(
            "do", faults, "The fault, or with `at` and `every` the faults that strike together."
        ),
        section_models.field("any_of", faults, "Faults of which one is drawn each time."),
        section_models.field(
            "serial", faults, "Faults that strike one after the other, each when the one before is over."
        ),
        section_models.definitions_of(Injection),
    )


def _for_variants(declared: type[Any], *fields: section_models.Definitions) -> type[Section]:
    """Return the model of an item of a list that may have a note, and may be for some variants alone."""
    variants = Annotated[list[Annotated[str, TEXT]], OneOrMany()]
    noun = "step" if declared is Step else "entry"
    notes = section_models.field("note", TEXT, "What it is for, for the reader.")
    only = section_models.field("only", variants, f"The variants that have this {noun}; `base` is none.")
    return section_models.model(f"{declared.__name__}Section", [notes, only, *fields], declared.__doc__ or "")


# The whole


@derived
def body_section() -> type[Section]:
    """Return the model of what a campaign and its variants can say."""
    applications = []
    for key, kind in application_kinds():
        clients: Any = list[section_models.section_of(kind.spec)]  # type: ignore[misc]  # made at run time
        applications.append(section_models.field(key, clients, catalogue_sections.summary(kind.spec)))
    settings = section_models.field(
        "settings",
        generated(catalogue_sections.settings_section),
        "Settings under Kafka's names; each goes where Kafka has it: brokers, topics, clients.",
    )
    declared = section_models.definitions_of(Plan, workload=applications)
    before = dict(takewhile(lambda row: row[0] != "cluster", declared.items()))
    return section_models.model("Body", [before, settings, declared], Plan.__doc__ or "")


@derived
def file_section() -> type[Section]:
    doc = "Keys that are merged over those of the campaign; `expect` replaces all of its `expect`."
    variant = section_models.model("Variant", [], doc, body_section())
    variants = dict[Annotated[str, Leaf(literals.variant_name, NAME.schema)], variant]  # type: ignore[valid-type]  # made at run time
    name = Leaf(literals.campaign_name, TEXT.schema)
    fields = [
        section_models.field("name", name, "The campaign's name; by default the file's."),
        section_models.field("variants", variants, "The same campaign with these keys merged over it."),
    ]
    doc = "A campaign for harrow: a cluster, a workload, faults, and what is expected."
    return section_models.model("CampaignFile", fields, doc, body_section())


@derived
def swarm_section() -> type[Section]:
    """Return the model of what a campaign leaves open: beside what a swarm declares, every field that is open."""
    return section_models.model("SwarmSection", _open_definitions(), Swarm.__doc__ or "")


@derived
def aim_section() -> type[Section]:
    """Return the model of an aim: the state, and beside it what a swarm has."""
    instead = {
        key: definition
        for definitions in _open_definitions()
        for key, definition in definitions.items()
        if key not in _NOT_AIMED
    }
    return section_models.model(
        "AimSection", [section_models.definitions_of(Aim), instead], Aim.__doc__ or ""
    )


_NOT_AIMED: Final = ("kafka", "aims", "core")
"""What is drawn whatever a seed aims at."""


def _open_definitions() -> list[section_models.Definitions]:
    fields = [section_models.definitions_of(Swarm)]
    for choice in open_fields():
        values = Annotated[list[section_models.annotation_of(choice.field)], OneOrMany()]  # type: ignore[misc, valid-type]  # made at run time
        fields.append(section_models.field(choice.key, values, f"What `{choice.path}` is drawn from."))
    for key, kind in application_kinds():
        doc = f"How many there are, each like the first of `workload.{key}`. {catalogue_sections.summary(kind.spec)}"
        fields.append(section_models.field(key, whole_range(0, CLIENTS_MAX), doc))
    return fields


_STATUS: Final = one_of(*STATUSES)
_VERSION: Final = {
    "type": ["string", "number"],
    "pattern": f"^{literals.VERSION_PATTERN}$",
    "examples": ["0.1.0"],
}
section_models.LEAVES.update(
    {
        plan.StatusMarker: _STATUS,
        plan.StatusesMarker: dict[catalogue_sections.NameKey, Annotated[str, _STATUS]],
        plan.RuleMarker: TEXT,
        plan.InvariantMarker: one_of(ALL_INVARIANTS, NO_INVARIANTS, *INVARIANTS),
        plan.ProbeMarker: one_of(*PROBES),
        plan.VersionMarker: Leaf(literals.version, _VERSION),
    }
)
section_models.MODELS.update(
    {
        plan.ActionMarker: lambda _: catalogue_sections.action_section(),
        plan.BehavioursMarker: lambda _: catalogue_sections.behaviours_section(),
        plan.OpenSettingsMarker: lambda _: catalogue_sections.open_settings_section(),
        SettingsMarker: lambda item: catalogue_sections.settings_section((item.options.scope,)),
        Injection: lambda _: injection_section(),
        Step: lambda _: step_section(),
        Swarm: lambda _: swarm_section(),
        Aim: lambda _: aim_section(),
    }
)


@derived
def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of campaign files."""
    schema = _without_null_defaults(file_section().model_json_schema(by_alias=True))
    return {"$schema": SCHEMA_DIALECT, **schema, "title": "harrow campaign"}


def _without_null_defaults(schema: Any) -> Any:
    """Return a schema in which a key is there or is not, and is never null."""
    if isinstance(schema, list):
        return [_without_null_defaults(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    result = {key: _without_null_defaults(value) for key, value in schema.items()}
    if result.get("description") == "":
        del result["description"]
    if "default" in result and result["default"] is None:
        del result["default"]
        options = [option for option in result.get("anyOf", ()) if option != {"type": "null"}]
        if len(options) == 1:
            del result["anyOf"]
            result = {**options[0], **result}
        elif options:
            result["anyOf"] = options
    if isinstance(result.get("title"), str) and "properties" not in result:
        del result["title"]
    return result
