"""Defines the sections of a campaign file, and its JSON Schema.

This module defines the shape of each section. `harrow.campaigns.language.readers` checks that the
sections fit together: for example, that a broker exists, or that the release has a setting.
"""

from itertools import takewhile
from typing import Any, Final

from harrow.campaigns.clients.clients import application_kinds
from harrow.campaigns.language import catalogue_shapes, declared_shapes, literals, plan
from harrow.campaigns.language.declared_shapes import Keys, key_of, keys_of, section_of, shape_of
from harrow.campaigns.language.open_choices import open_fields
from harrow.campaigns.language.plan import Aim, Plan, Step, Swarm
from harrow.campaigns.language.shapes import (
    NAME,
    TEXT,
    Key,
    LazyShape,
    ListShape,
    MapShape,
    SectionShape,
    ValueShape,
    one_of,
    schema_of,
    whole_range,
)
from harrow.campaigns.probes.probes import PROBES
from harrow.checks.finding import STATUSES
from harrow.cluster_model.fields import SettingsMarker, fields_of
from harrow.cluster_model.invariants.catalogue import INVARIANTS
from harrow.cluster_model.lazy_dataclass import replace
from harrow.cluster_model.registry import derived
from harrow.cluster_model.topology import CLIENTS_MAX, ClusterSpec
from harrow.faults.injection import TIMINGS, Injection

SCHEMA_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

ALL_INVARIANTS: Final = "all"
NO_INVARIANTS: Final = "none"
ALL_RULES: Final = "all"

FILE_KEY: Final = "file"
WORKLOAD: Final = "workload"


# Script and faults


@derived
def step_section() -> SectionShape:
    return _list_item_section(Step, keys_of(Step))


@derived
def injection_section() -> SectionShape:
    """Return the section of an entry of `faults`, with the keys of all timings.

    An entry uses only one timing.
    """
    timings = {
        item.key: key_of(item, optional=True) for timing in TIMINGS.values() for item in fields_of(timing)
    }
    faults = ListShape(LazyShape(catalogue_shapes.one_fault_section), accepts_single=True)
    keys = {
        "do": Key(faults, "The fault, or with `at` and `every` the faults that strike together."),
        "any_of": Key(faults, "Faults; one of them is chosen at random each time."),
        "serial": Key(faults, "Faults that strike in sequence, each when the previous one is over."),
    }
    return _list_item_section(Injection, {**timings, **keys, **keys_of(Injection)})


def _list_item_section(declared: type[Any], keys: Keys) -> SectionShape:
    """Return the section of a list item: its *keys*, and the keys `note` and `only`."""
    noun = "step" if declared is Step else "entry"
    only = f"The variants that have this {noun}; `base` is the campaign itself."
    common = {
        "note": Key(TEXT, "A comment for readers."),
        "only": Key(ListShape(TEXT, accepts_single=True), only),
    }
    return SectionShape(
        title=f"{declared.__name__}Section", doc=declared.__doc__ or "", keys={**common, **keys}
    )


# The cluster


@derived
def cluster_section() -> SectionShape:
    """Return the section `cluster`. Its short form is the name of a cluster file."""
    file = Key(TEXT, "A cluster file, relative to this one; keys beside it replace those of the file.")
    return SectionShape(
        title="ClusterSection",
        doc=ClusterSpec.__doc__ or "",
        keys={**keys_of(ClusterSpec), FILE_KEY: file},
        short=FILE_KEY,
    )


@derived
def cluster_file_section() -> SectionShape:
    """Return the section of a cluster file: the keys of `cluster`, the release and the settings."""
    body = body_section().keys
    return SectionShape(
        title="ClusterFile",
        doc="A cluster for harrow, on which campaigns run (`cluster: FILE`, `--cluster FILE`).",
        keys={"kafka": body["kafka"], "settings": body["settings"], **keys_of(ClusterSpec)},
    )


# The whole file


@derived
def body_section() -> SectionShape:
    """Return the section with the keys that campaigns and variants share."""
    applications = {
        key: Key(ListShape(section_of(kind.spec)), catalogue_shapes.summary(kind.spec))
        for key, kind in application_kinds()
    }
    file = Key(
        TEXT, "A file with these keys, relative to this one; keys beside it replace those of the file."
    )
    declared = keys_of(Plan, workload={**applications, FILE_KEY: file})
    workload = declared[WORKLOAD].shape
    assert isinstance(workload, SectionShape), "the workload is a section"
    declared[WORKLOAD] = replace(declared[WORKLOAD], shape=replace(workload, short=FILE_KEY))
    before = dict(takewhile(lambda row: row[0] != "cluster", declared.items()))
    doc = (
        "Settings under Kafka's names; each applies where Kafka has it: brokers, topics, clients. "
        "`producer.` or `consumer.` before a name that both have means one of them."
    )
    settings = Key(LazyShape(catalogue_shapes.shared_settings_section), doc)
    return SectionShape(
        title="Body", doc=Plan.__doc__ or "", keys={**before, "settings": settings, **declared}
    )


def workload_section() -> SectionShape:
    shape = body_section().keys[WORKLOAD].shape
    assert isinstance(shape, SectionShape), "the workload is a section"
    return shape


@derived
def file_section() -> SectionShape:
    body = body_section()
    variant = SectionShape(
        title="Variant",
        doc="Keys that are merged over those of the campaign; `expect` replaces its whole `expect`.",
        keys=body.keys,
    )
    name = ValueShape(literals.campaign_name, TEXT.json_schema)
    variants = MapShape(ValueShape(literals.variant_name, NAME.json_schema), variant)
    return SectionShape(
        title="CampaignFile",
        doc="A campaign for harrow: a cluster, a workload, faults, and the expected outcome.",
        keys={
            **body.keys,
            "name": Key(name, "The campaign's name; by default the file's name."),
            "variants": Key(variants, "The same campaign with these keys merged over it."),
        },
    )


@derived
def swarm_section() -> SectionShape:
    """Return the section of a swarm: its declared keys, and one for every field that is open."""
    return SectionShape(title="SwarmSection", doc=Swarm.__doc__ or "", keys=_open_keys())


@derived
def aim_section() -> SectionShape:
    """Return the section of an aim: its probe, and those keys of a swarm that it can change."""
    instead = {key: shape for key, shape in _open_keys().items() if key not in _FIXED_IN_AIMS}
    return SectionShape(title="AimSection", doc=Aim.__doc__ or "", keys={**keys_of(Aim), **instead})


_FIXED_IN_AIMS: Final = ("kafka", "aims", "core")
"""The choices that an aim cannot change."""


def _open_keys() -> Keys:
    keys = keys_of(Swarm)
    for choice in open_fields():
        values = ListShape(shape_of(choice.field), accepts_single=True)
        keys[choice.key] = Key(values, f"The values to draw `{choice.path}` from.")
    for key, kind in application_kinds():
        doc = f"The number of {key}, each like the first of `workload.{key}`. {catalogue_shapes.summary(kind.spec)}"
        keys[key] = Key(whole_range(0, CLIENTS_MAX), doc)
    return keys


_STATUS: Final = one_of(*STATUSES)
_VERSION: Final = {
    "type": ["string", "number"],
    "pattern": f"^{literals.VERSION_PATTERN}$",
    "examples": ["0.1.0"],
}
declared_shapes.SHAPES.update(
    {
        plan.StatusMarker: _STATUS,
        plan.StatusesMarker: MapShape(NAME, _STATUS),
        plan.RuleMarker: TEXT,
        plan.InvariantMarker: one_of(ALL_INVARIANTS, NO_INVARIANTS, *INVARIANTS),
        plan.VersionMarker: ValueShape(literals.version, _VERSION),
    }
)
declared_shapes.NAMES[plan.ProbeMarker] = lambda: one_of(*PROBES)
declared_shapes.SECTIONS.update(
    {
        plan.ActionMarker: lambda _: catalogue_shapes.action_section(),
        plan.BehavioursMarker: lambda _: catalogue_shapes.behaviours_section(),
        plan.OpenSettingsMarker: lambda _: catalogue_shapes.open_settings_section(),
        SettingsMarker: lambda item: catalogue_shapes.settings_section((item.options.scope,)),
        ClusterSpec: lambda _: cluster_section(),
        Injection: lambda _: injection_section(),
        Step: lambda _: step_section(),
        Swarm: lambda _: swarm_section(),
        Aim: lambda _: aim_section(),
    }
)


@derived
def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of campaign files."""
    from harrow.campaigns.version import SCHEMA_URL  # noqa: PLC0415 - runs read this module, but not the version

    return _document(file_section(), SCHEMA_URL, "harrow campaign")


@derived
def cluster_json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of cluster files."""
    from harrow.campaigns.version import CLUSTER_SCHEMA_URL  # noqa: PLC0415 - as above

    return _document(cluster_file_section(), CLUSTER_SCHEMA_URL, "harrow cluster")


def _document(section: SectionShape, url: str, title: str) -> dict[str, Any]:
    return {"$schema": SCHEMA_DIALECT, "$id": url, **schema_of(section), "title": title}
