"""The sections that conditions are written in."""

from typing import Annotated

from pydantic import Field

from campaigns import literals
from campaigns.generated_sections import events_section
from campaigns.section import (
    BrokerId,
    BrokerOrNone,
    Flag,
    Generated,
    Leaf,
    Natural,
    OneOrMany,
    OrUnknown,
    Section,
    Values,
    one_of,
)

# JSON knows no keys but strings.
PartitionKey = Annotated[str, Leaf(str, {"type": "string"})]
BrokerKey = Annotated[int, Leaf(literals.broker_id, {"type": "string"})]
Events = Annotated[list[Annotated[Section, Generated(events_section)]], OneOrMany()]


class ReplicaSection(Section):
    """A replica; what is left out does not matter."""

    role: Annotated[str, one_of("leader", "follower")] | None = Field(default=None, description="What it is.")
    leo: Natural | None = Field(default=None, description="Its log end offset.")
    hw: Natural | None = Field(default=None, description="Its high watermark.")
    leader_epoch: OrUnknown | None = Field(default=None, description="The leader epoch that it knows.")
    flushed: Natural | None = Field(default=None, description="The offset up to which its log is on disk.")
    remote: dict[BrokerKey, OrUnknown] | None = Field(
        default=None, description="As a leader: the LEO that it knows of each follower."
    )
    epochs: list[list[OrUnknown]] | None = Field(
        default=None, description="Its leader epoch cache, as pairs of epoch and start offset."
    )
    log: Values | None = Field(default=None, description="The values in its log.")


class ConditionSection(Section):
    """A condition: all of what is given has to hold."""

    replicas: Annotated[list[dict[PartitionKey, dict[BrokerKey, ReplicaSection]]], OneOrMany()] | None = (
        Field(
            default=None, description="Replicas by partition and broker; a list of these tells more of one."
        )
    )
    leader: dict[PartitionKey, BrokerOrNone] | None = Field(
        default=None, description="Leaders as in the partitions' znodes; -1 is no leader."
    )
    leader_epoch: dict[PartitionKey, OrUnknown] | None = Field(
        default=None, description="Leader epochs as in the partitions' znodes."
    )
    isr: dict[PartitionKey, Annotated[list[BrokerId], OneOrMany()]] | None = Field(
        default=None, description="ISRs as in the partitions' znodes, in any order."
    )
    controller: BrokerId | None = Field(default=None, description="The broker in /controller.")
    brokers: dict[BrokerKey, Annotated[str, one_of("up", "down", "paused")]] | None = Field(
        default=None, description="The brokers' processes."
    )
    registered: dict[BrokerKey, Flag] | None = Field(
        default=None, description="Whether /brokers/ids has the broker."
    )
    acked: Values | None = Field(default=None, description="Values whose send was reported as a success.")
    not_acked: Values | None = Field(
        default=None, description="Values whose send was not reported as a success."
    )
    failed: Values | None = Field(default=None, description="Values whose send was reported as a failure.")
    consumed: Values | None = Field(default=None, description="Values that a consumer got.")
    not_consumed: Values | None = Field(default=None, description="Values that no consumer got.")
    event: Events | None = Field(default=None, description="What has happened since the step before.")
    no_event: Events | None = Field(default=None, description="What has not happened since the step before.")
