"""Metadata as one broker sees it: the live brokers, and the leader and ISR of each partition."""

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any, Final
from uuid import UUID

from kafka.protocol.admin import DescribeTopicPartitionsRequest
from kafka.protocol.metadata import MetadataRequest

from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.live_cluster.names import SAME_NAMES, Names
from harrow.live_cluster.wire.connection import BrokerConnection, ConnectionLostError

_WITH_EPOCHS: Final = 7
WITH_TOPIC_IDS: Final = 12
_NO_LEADER: Final = -1
_PARTITIONS_MAX: Final = 2_000
"""The most partitions that a broker describes in one answer."""


@dataclass(frozen=True, slots=True)
class BrokerMetadata:
    """The live brokers, (leader, leader epoch, ISR) by partition, and topics by their ids.

    ``under_replicated`` partitions have more replicas than their ISR. During a reassignment,
    ``replicas`` has both the old and the new ones. ``controller`` is the broker that the answering
    broker believes to be the controller; with KRaft it is an arbitrary broker.
    """

    brokers: frozenset[int]
    partitions: Mapping[str, tuple[int, int, tuple[int, ...]]]
    topics_by_id: Mapping[UUID, str]
    controller: int | None = None
    under_replicated: frozenset[str] = frozenset()
    replicas: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


def broker_metadata(
    connection: BrokerConnection, topics: Iterable[str], names: Names = SAME_NAMES
) -> BrokerMetadata:
    """Return a broker's metadata of some topics.

    The broker must run 2.1 or newer: older releases do not report leader epochs. Topics and brokers
    have the campaign's names; *names* translates them to those of the cluster.
    """
    version = connection.version_of(MetadataRequest, _WITH_EPOCHS, WITH_TOPIC_IDS)
    topic_type = MetadataRequest.MetadataRequestTopic
    request = MetadataRequest[version](
        topics=[topic_type(name=names.cluster_topic(name)) for name in topics],
        allow_auto_topic_creation=False,
    )
    answer = connection.ask(request)
    # A topic without an error has a name, though the schema of version 12 allows null.
    described = [topic for topic in answer.topics if not topic.error_code and topic.name is not None]
    partitions = {
        f"{names.campaign_topic(topic.name)}-{partition.partition_index}": partition
        for topic in described
        for partition in topic.partitions
    }
    return BrokerMetadata(
        frozenset(names.campaign_brokers(tuple(broker.node_id for broker in answer.brokers))),
        {
            name: (
                _leader(names, partition.leader_id),
                partition.leader_epoch,
                names.campaign_brokers(tuple(partition.isr_nodes)),
            )
            for name, partition in partitions.items()
        },
        {topic.topic_id: topic.name for topic in described} if version >= WITH_TOPIC_IDS else {},
        names.campaign_broker(answer.controller_id),
        frozenset(
            name
            for name, partition in partitions.items()
            if len(partition.isr_nodes) < len(partition.replica_nodes)
        ),
        {
            name: names.campaign_brokers(tuple(partition.replica_nodes))
            for name, partition in partitions.items()
        },
    )


def _leader(names: Names, broker: int) -> int:
    own = names.campaign_broker(broker)
    return _NO_LEADER if own is None else own


def eligible_leaders(
    connection: BrokerConnection, topics: Iterable[str], names: Names = SAME_NAMES
) -> dict[str, tuple[int, ...]]:
    """Return the eligible leader replicas of each partition that has any (KIP-966).

    Older brokers report none. Topics and brokers have the campaign's names; *names* translates them
    to those of the cluster.
    """
    if not connection.speaks(DescribeTopicPartitionsRequest, 0):
        return {}
    topic_type = DescribeTopicPartitionsRequest.TopicRequest
    eligible: dict[str, tuple[int, ...]] = {}
    cursor, is_first = None, True
    while is_first or cursor is not None:
        request = DescribeTopicPartitionsRequest[0](
            topics=[topic_type(name=names.cluster_topic(name)) for name in topics],
            response_partition_limit=_PARTITIONS_MAX,
            cursor=cursor,
        )
        answer = connection.ask(request)
        for topic in (topic for topic in answer.topics if topic.name is not None):
            for partition in topic.partitions:
                if replicas := names.campaign_brokers(tuple(partition.eligible_leader_replicas or ())):
                    eligible[f"{names.campaign_topic(topic.name)}-{partition.partition_index}"] = replicas
        before, cursor, is_first = cursor, _next_cursor(answer), False
        if cursor is not None and cursor == before:
            raise ConnectionLostError("a broker describes the same page of topics again and again")
    return eligible


def _next_cursor(answer: Any) -> Any:
    """Return the position of the next page for the next request, None after the last page."""
    cursor = answer.next_cursor
    return cursor and DescribeTopicPartitionsRequest.Cursor(
        topic_name=cursor.topic_name, partition_index=cursor.partition_index
    )
