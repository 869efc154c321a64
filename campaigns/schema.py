"""The models of a campaign file, and its JSON Schema.

They know the shape of each section. What has to fit together (brokers that exist,
settings that a release knows) is checked in `campaigns.sections`.
"""

from functools import cache
from typing import Annotated, Any, Final

from pydantic import ConfigDict, Field

from campaigns import generated_sections as generated
from campaigns.cluster_sections import ClusterSection, settings_of
from campaigns.condition_sections import ConditionSection, PartitionKey
from campaigns.core_section import CoreSection
from campaigns.found_section import FoundSection
from campaigns.generated_sections import OneFault
from campaigns.literals import variant_name
from campaigns.probes import PROBES
from campaigns.section import (
    CampaignName,
    ClientName,
    Count,
    Duration,
    Flag,
    Generated,
    Leaf,
    OneOrMany,
    PartitionName,
    PositiveDuration,
    Rate,
    ReleaseName,
    Section,
    Text,
    Values,
    one_of,
    whole,
)
from campaigns.swarm_sections import SwarmSection
from checks.finding import STATUSES
from cluster_model.invariants import INVARIANTS
from cluster_model.settings import CONSUMER, PRODUCER

SCHEMA_DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

ALL_INVARIANTS: Final = "all"
NO_INVARIANTS: Final = "none"

InvariantNames = Annotated[
    list[Annotated[str, one_of(ALL_INVARIANTS, NO_INVARIANTS, *INVARIANTS)]], OneOrMany()
]
ALL_RULES: Final = "all"

RuleNames = Annotated[list[Text], OneOrMany()]
ProbeNames = Annotated[list[Annotated[str, one_of(*PROBES)]], OneOrMany()]
Status = Annotated[str, one_of(*STATUSES)]
Partitions = Annotated[list[PartitionName], OneOrMany()]
VariantNames = Annotated[list[Text], OneOrMany()]
VariantKey = Annotated[str, Leaf(variant_name, {"type": "string"})]


# Workload


class ProducerSection(Section):
    """A producer."""

    name: ClientName | None = Field(default=None, description="By default producer-0, producer-1 and so on.")
    rate: Rate | None = Field(
        default=None, description="Records generated; without it the producer sends what the script says."
    )
    partitions: Partitions | None = Field(
        default=None, description="Where generated records go; by default everywhere."
    )
    start: Duration | None = Field(default=None, description="When it begins; by default 0s.")
    stop: Duration | None = Field(default=None, description="When it ends; by default with the workload.")
    record_bytes: Annotated[int, whole(1, 1_000_000)] | None = Field(
        default=None, description="The size of a record."
    )
    settings: Annotated[Section | None, settings_of(PRODUCER)] = Field(
        default=None, description="Settings of this producer."
    )


class ConsumerSection(Section):
    """A consumer that reads its partitions from the beginning."""

    name: ClientName | None = Field(default=None, description="By default consumer-0, consumer-1 and so on.")
    partitions: Partitions | None = Field(default=None, description="What it reads; by default everything.")
    start: Duration | None = Field(default=None, description="When it begins; by default 0s.")
    poll_interval: PositiveDuration | None = Field(
        default=None, description="How often it polls; by default 100ms."
    )
    settings: Annotated[Section | None, settings_of(CONSUMER)] = Field(
        default=None, description="Settings of this consumer."
    )


class WorkloadSection(Section):
    """The clients."""

    duration: Duration | None = Field(
        default=None, description="How long records are generated and faults are drawn; by default 0s."
    )
    producers: list[ProducerSection] | None = Field(default=None, description="The producers.")
    consumers: list[ConsumerSection] | None = Field(
        default=None, description="The consumers; by default none."
    )


# Script and faults


class SendSection(Section):
    """A record that a producer is handed."""

    short = "value"

    value: Text = Field(description="What is sent; each value should be sent once only.")
    count: Count | None = Field(
        default=None,
        description="How many records, `value-0`, `value-1` and so on; by default `value` alone.",
    )
    partition: PartitionName | None = Field(
        default=None, description="Where to; by default as the partitioner says."
    )
    producer: Text | None = Field(
        default=None, description="By whom; may be left out when there is one producer."
    )


class NothingSection(Section):
    """Nothing more to say."""

    emptiable = True


class ActionSection(Section):
    """One action: a record to send, something to assert, a fault ..."""

    noun = "action or fault"
    named_alone = True
    model_config = ConfigDict(json_schema_extra={"minProperties": 1, "maxProperties": 1})


@cache
def action_section() -> type[Section]:
    """Return the model of one action or fault."""
    definitions = {
        **generated.field("send", SendSection, "Hand a record to a producer."),
        **generated.field("restart_producer", Text, "The producer's application dies and is started again."),
        **generated.field(
            "elect_preferred_leaders", NothingSection, "An administrator asks for preferred leader election."
        ),
        **generated.field("expect", ConditionSection, "The condition has to hold now."),
        **generated.field("wait", NothingSection, "Nothing: the step only waits, as one without `do`."),
        **generated.fault_definitions(),
    }
    return generated.model("Action", ActionSection.__doc__ or "", definitions, ActionSection)


Action = Annotated[Section, Generated(action_section)]


class StepSection(Section):
    """A step of the script: it waits for all that is given, then acts."""

    note: Text | None = Field(default=None, description="What happens, for the reader.")
    only: VariantNames | None = Field(
        default=None, description="The variants that have this step; `base` is none."
    )
    at: Duration | None = Field(default=None, description="Wait until this virtual time.")
    after: Duration | None = Field(default=None, description="Wait this long after the step before.")
    when: ConditionSection | None = Field(default=None, description="Wait until this holds.")
    do: Annotated[list[Action], OneOrMany()] | None = Field(default=None, description="What is done then.")


class InjectionSection(Section):
    """An entry of `faults`: when, and which fault."""

    note: Text | None = Field(default=None, description="What it is for, for the reader.")
    only: VariantNames | None = Field(
        default=None, description="The variants that have this entry; `base` is none."
    )
    at: Duration | None = Field(default=None, description="Once, at this virtual time.")
    when: ConditionSection | None = Field(default=None, description="Each time this comes to hold.")
    times: Count | None = Field(
        default=None, description="With `when`: how many times at the most; by default 1."
    )
    every: PositiveDuration | None = Field(default=None, description="Periodically.")
    rate: Rate | None = Field(default=None, description="At random, this often on average.")
    from_: Duration | None = Field(
        default=None, alias="from", description="With `every` and `rate`: from when on; by default 0s."
    )
    until: Duration | None = Field(
        default=None, description="With `every` and `rate`: until when; by default the workload's end."
    )
    do: Annotated[list[OneFault], OneOrMany()] | None = Field(default=None, description="The fault.")
    any_of: Annotated[list[OneFault], OneOrMany()] | None = Field(
        default=None, description="Faults of which one is drawn each time."
    )
    together: Count | None = Field(
        default=None, description="How many strike at once, each drawn anew; by default 1."
    )


class LimitsSection(Section):
    """When a run is given up."""

    script: PositiveDuration | None = Field(default=None, description="For the script; by default 10m.")
    recovery: PositiveDuration | None = Field(
        default=None, description="For the healed cluster; by default 10m."
    )
    events: Count | None = Field(
        default=None, description="How many events of the simulator a run may take; by default 20000000."
    )


class ExpectSection(Section):
    """What the campaign expects at the end."""

    verdict: Status | None = Field(default=None, description="The verdict.")
    rules: dict[PartitionKey, Status] | None = Field(
        default=None, description="Statuses by rule (`harrow list rules`)."
    )
    lost: Values | None = Field(default=None, description="Exactly the values that are lost.")
    duplicated: Values | None = Field(default=None, description="Exactly the values that are there twice.")
    final: ConditionSection | None = Field(default=None, description="What holds on the healed cluster.")
    probes: ProbeNames | None = Field(
        default=None,
        description=(
            "Rare states that have to be reached (`harrow list probes`), by one seed of several at least; "
            "otherwise the verdict is inconclusive."
        ),
    )


class Body(Section):
    """What a campaign and its variants can say."""

    description: Text | None = Field(default=None, description="What happens and why.")
    kafka: ReleaseName | None = Field(default=None, description="The release.")
    behaviours: Annotated[Section | None, Generated(generated.behaviours_section)] = Field(
        default=None, description="Single switches of the release (`harrow list releases`)."
    )
    settings: Annotated[Section | None, Generated(generated.settings_section)] = Field(
        default=None, description="Settings under Kafka's names; each goes to whoever knows it."
    )
    cluster: ClusterSection | None = Field(default=None, description="The servers.")
    workload: WorkloadSection | None = Field(default=None, description="The clients, and how long they work.")
    script: list[StepSection] | None = Field(default=None, description="Steps, taken in order.")
    faults: list[InjectionSection] | None = Field(default=None, description="Faults, each on its own.")
    swarm: SwarmSection | None = Field(
        default=None,
        description="What is left open, for each seed to draw (overrides what is given elsewhere).",
    )
    survivable: Flag | None = Field(
        default=None,
        description=(
            "Whether power losses leave at least `min.insync.replicas` copies of each committed record; by default false."
        ),
    )
    core: CoreSection | None = Field(
        default=None,
        description="Heal a sufficient core of the brokers first, and see whether it serves (the rule `unavailable`).",
    )
    limits: LimitsSection | None = Field(default=None, description="When a run is given up.")
    invariants: InvariantNames | None = Field(
        default=None,
        description="The invariants that are watched: a list of them, `all` (the default) or `none`.",
    )
    demand: RuleNames | None = Field(
        default=None,
        description=(
            "Rules whose anomalies are violations whatever Kafka promises with these settings: a list of them, or `all`."
        ),
    )
    found: FoundSection | None = Field(
        default=None, description="The failure that this is a regression of (`harrow regress`)."
    )
    expect: ExpectSection | None = Field(default=None, description="What is expected at the end.")


class Variant(Body):
    """Keys that are merged over those of the campaign; `expect` replaces all of its `expect`."""


class CampaignFile(Body):
    """A campaign for harrow: a cluster, a workload, faults, and what is expected."""

    name: CampaignName | None = Field(default=None, description="The campaign's name; by default the file's.")
    variants: dict[VariantKey, Variant] | None = Field(
        default=None, description="The same campaign with these keys merged over it."
    )


@cache
def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of campaign files."""
    schema = _without_null_defaults(CampaignFile.model_json_schema(by_alias=True))
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
