"""The models of the section `swarm`: what a campaign leaves open."""

from typing import Annotated

from pydantic import Field

from campaigns import generated_sections as generated
from campaigns.bounds import BROKERS_MAX, CLIENTS_MAX, PARTITIONS_MAX
from campaigns.generated_sections import OneFault
from campaigns.section import (
    CountRange,
    DurationOrNever,
    DurationRange,
    Flag,
    Generated,
    NaturalRange,
    OneOrMany,
    Rate,
    RateRange,
    ReleaseName,
    Section,
    whole_range,
)


class SwarmFaultsSection(Section):
    """Faults of a swarm: which may be in play, how many of them, how often they strike."""

    any_of: Annotated[list[OneFault], OneOrMany()] | None = Field(
        default=None, description="The faults that may be in play."
    )
    in_play: NaturalRange | None = Field(
        default=None, description="How many of them are, as `1..4`; by default any number."
    )
    rate: RateRange | None = Field(
        default=None, description="How often one of those in play strikes, as `1/m..30/m`."
    )
    together: CountRange | None = Field(
        default=None, description="How many strike at once, as `1..3`; by default 1."
    )


class SwarmSection(Section):
    """What each seed draws. Ranges include both ends; of lists one value is drawn."""

    kafka: Annotated[list[ReleaseName], OneOrMany()] | None = Field(default=None, description="The releases.")
    brokers: Annotated[tuple[int, int], whole_range(1, BROKERS_MAX)] | None = Field(
        default=None, description="How many brokers, as `3..5`."
    )
    racks: NaturalRange | None = Field(
        default=None, description="How many racks they stand in, one after the other; 0 for none."
    )
    partitions: Annotated[tuple[int, int], whole_range(1, PARTITIONS_MAX)] | None = Field(
        default=None, description="How many partitions each topic has."
    )
    replication_factor: CountRange | None = Field(
        default=None, description="How many replicas, at most as many as there are brokers."
    )
    settings: Annotated[Section | None, Generated(generated.open_settings_section)] = Field(
        default=None, description="Settings under Kafka's names, each with a list of values."
    )
    latency: Annotated[list[DurationRange], OneOrMany()] | None = Field(
        default=None, description="Latencies of the network, each a range for messages."
    )
    writeback: Annotated[list[DurationOrNever], OneOrMany()] | None = Field(
        default=None, description="When the operating system flushes."
    )
    duration: DurationRange | None = Field(default=None, description="How long the workload lasts.")
    producers: Annotated[tuple[int, int], whole_range(1, CLIENTS_MAX)] | None = Field(
        default=None, description="How many producers."
    )
    rate: Annotated[list[Rate], OneOrMany()] | None = Field(
        default=None, description="How many records each producer generates."
    )
    consumers: Annotated[tuple[int, int], whole_range(0, CLIENTS_MAX)] | None = Field(
        default=None, description="How many consumers."
    )
    faults: SwarmFaultsSection | None = Field(default=None, description="The faults.")
    core: Flag | None = Field(
        default=None,
        description="Whether a core is healed first (`core`), in an order that is drawn; by default false.",
    )
