"""The models of the section `cluster`: the servers, and what is between them."""

from typing import Annotated, Any

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import core_schema

from campaigns import generated_sections as generated
from campaigns.bounds import BROKERS_MAX, PARTITIONS_MAX
from campaigns.literals import LiteralError, whole_number
from campaigns.section import (
    BrokerId,
    Count,
    DurationOrNever,
    DurationRange,
    Generated,
    PositiveDuration,
    Section,
    Text,
    TopicName,
    number_schema,
    whole,
    wrong,
)
from campaigns.yaml_positions import Scalar
from cluster_model.settings import BROKER, TOPIC


def settings_of(scope: str) -> Generated:
    """Return the marker of a section of settings, those that brokers, topics or clients of one kind know."""
    return Generated(lambda: generated.settings_section((scope,)))


class BrokerSection(Section):
    """A broker."""

    id: BrokerId = Field(description="The broker's id.")
    rack: Text | None = Field(default=None, description="The rack that it stands in.")
    settings: Annotated[Section | None, settings_of(BROKER)] = Field(
        default=None, description="Settings of this broker."
    )


class TopicSection(Section):
    """A topic."""

    name: TopicName = Field(description="The topic's name; its partitions are name-0, name-1 and so on.")
    partitions: Annotated[int, whole(1, PARTITIONS_MAX)] | None = Field(
        default=None, description="How many partitions; by default 1, or as many as `assignment` has."
    )
    replication_factor: Count | None = Field(
        default=None, description="How many replicas; by default 3, or as many brokers as there are."
    )
    assignment: list[list[BrokerId]] | None = Field(
        default=None,
        description="The replicas of each partition, preferred leader first; by default as Kafka assigns.",
    )
    settings: Annotated[Section | None, settings_of(TOPIC)] = Field(
        default=None, description="Settings of this topic."
    )


class NetworkSection(Section):
    """The network between all processes."""

    latency: DurationRange | None = Field(default=None, description="One way, drawn for each message.")


class DiskSection(Section):
    """The brokers' disks."""

    writeback: DurationOrNever = Field(
        default=None, description="When the operating system flushes by itself; `never` for not at all."
    )


class ZooKeeperSection(Section):
    """The ZooKeeper ensemble."""

    tick: PositiveDuration | None = Field(default=None, description="Sessions expire at ticks.")


def _brokers_of_number(value: Any) -> Any:
    """Return the brokers that a bare number stands for."""
    if not isinstance(value, Scalar):
        return value
    try:
        count = whole_number(1, BROKERS_MAX)(value.text)
    except LiteralError as error:
        raise wrong(f"the number of brokers, or a list of them: {error}") from None
    return [{"id": Scalar(str(number), value.mark)} for number in range(count)]


class NumberOrList:
    """Marks the list of brokers, which may be written as their number."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> Any:
        """Return the list's validator, after a number was turned into a list."""
        return core_schema.no_info_before_validator_function(_brokers_of_number, handler(source))

    def __get_pydantic_json_schema__(self, core: Any, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Return either form."""
        return {"anyOf": [number_schema(1, BROKERS_MAX), handler(core)]}


class ClusterSection(Section):
    """The servers."""

    brokers: Annotated[list[BrokerSection], NumberOrList()] | None = Field(
        default=None, description="How many brokers (ids from 0; by default 3), or a list of them."
    )
    controller: BrokerId | None = Field(
        default=None, description="The broker that starts first, and so becomes the controller."
    )
    topics: list[TopicSection] | None = Field(
        default=None, description="By default one topic t with one partition."
    )
    network: NetworkSection | None = Field(default=None, description="The network.")
    disk: DiskSection | None = Field(default=None, description="The disks.")
    zookeeper: ZooKeeperSection | None = Field(default=None, description="ZooKeeper.")
