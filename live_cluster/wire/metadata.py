"""Metadata, as a broker has it: which brokers there are, and who leads what."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from kafka.protocol.admin import ElectLeadersRequest
from kafka.protocol.metadata import MetadataRequest

from harrow.live_cluster.wire.connection import BrokerConnection

_WITH_EPOCHS: Final = 7
WITH_TOPIC_IDS: Final = 12
_PREFERRED: Final = 0
_TIMEOUT_MS: Final = 30_000


@dataclass(frozen=True, slots=True)
class BrokerMetadata:
    """What a broker knows: the brokers that live, (leader, leader epoch, ISR) by partition, and topics by their ids."""

    brokers: frozenset[int]
    partitions: Mapping[str, tuple[int, int, tuple[int, ...]]]
    topics_by_id: Mapping[UUID, str]


def broker_metadata(connection: BrokerConnection, topics: Iterable[str]) -> BrokerMetadata:
    """Return what a broker knows of some topics; from 2.1 on, which is when brokers tell leader epochs.

    Raises:
        ConnectionLostError: it does not answer, or not that.

    """
    version = connection.version_of(MetadataRequest, _WITH_EPOCHS, WITH_TOPIC_IDS)
    topic_type = MetadataRequest.MetadataRequestTopic
    request = MetadataRequest[version](
        topics=[topic_type(name=name) for name in topics], allow_auto_topic_creation=False
    )
    answer = connection.ask(request)
    known = [topic for topic in answer.topics if not topic.error_code]
    return BrokerMetadata(
        frozenset(broker.node_id for broker in answer.brokers),
        {
            f"{topic.name}-{told.partition_index}": (told.leader_id, told.leader_epoch, tuple(told.isr_nodes))
            for topic in known
            for told in topic.partitions
        },
        {topic.topic_id: topic.name for topic in known} if version >= WITH_TOPIC_IDS else {},
    )


def elect_preferred_leaders(connection: BrokerConnection, partitions: Iterable[str]) -> None:
    """Ask that the first replica of each partition lead (KIP-460, from 2.4 on).

    Raises:
        ConnectionLostError: it does not answer, or not that.

    """
    numbers: dict[str, list[int]] = {}
    for partition in partitions:
        topic, _, number = partition.rpartition("-")
        numbers.setdefault(topic, []).append(int(number))
    version = connection.version_of(ElectLeadersRequest, 1, 2)
    asked = ElectLeadersRequest.TopicPartitions
    connection.ask(
        ElectLeadersRequest[version](
            election_type=_PREFERRED,
            topic_partitions=[asked(topic=topic, partitions=of_topic) for topic, of_topic in numbers.items()],
            timeout_ms=_TIMEOUT_MS,
        )
    )
