"""Metadata, as a broker has it: which brokers there are, and who leads what."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from kafka.protocol.admin import DescribeTopicPartitionsRequest, ElectLeadersRequest
from kafka.protocol.metadata import MetadataRequest

from harrow.live_cluster.names import SAME, Names
from harrow.live_cluster.wire.connection import BrokerConnection, ConnectionLostError

_WITH_EPOCHS: Final = 7
WITH_TOPIC_IDS: Final = 12
_NOBODY: Final = -1
_PREFERRED: Final = 0
_TIMEOUT_MS: Final = 30_000
_PARTITIONS_MAX: Final = 2_000
"""The most that a broker describes at once."""


@dataclass(frozen=True, slots=True)
class BrokerMetadata:
    """What a broker knows: the brokers that live, (leader, leader epoch, ISR) by partition, and topics by their ids.

    Partitions are under-replicated that have more replicas than their ISR. ``replicas`` of a partition that is reassigned are both those
    that come and those that go.

    ``controller`` is the broker that it takes for the controller; in a cluster with KRaft it is any broker.
    """

    brokers: frozenset[int]
    partitions: Mapping[str, tuple[int, int, tuple[int, ...]]]
    topics_by_id: Mapping[UUID, str]
    controller: int | None = None
    under_replicated: frozenset[str] = frozenset()
    replicas: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


def broker_metadata(
    connection: BrokerConnection, topics: Iterable[str], called: Names = SAME
) -> BrokerMetadata:
    """Return what a broker knows of some topics; from 2.1 on, which is when brokers tell leader epochs.

    *called* is what topics and brokers are called there; what is returned has the campaign's names.

    Raises:
        ConnectionLostError: it does not answer, or not that.

    """
    version = connection.version_of(MetadataRequest, _WITH_EPOCHS, WITH_TOPIC_IDS)
    topic_type = MetadataRequest.MetadataRequestTopic
    request = MetadataRequest[version](
        topics=[topic_type(name=called.topic(name)) for name in topics], allow_auto_topic_creation=False
    )
    answer = connection.ask(request)
    # A topic without an error has a name, though version 12 would let it have none.
    known = [topic for topic in answer.topics if not topic.error_code and topic.name is not None]
    return BrokerMetadata(
        frozenset(called.own_brokers(tuple(broker.node_id for broker in answer.brokers))),
        {
            f"{called.own_topic(topic.name)}-{told.partition_index}": (
                _leader(called, told.leader_id),
                told.leader_epoch,
                called.own_brokers(tuple(told.isr_nodes)),
            )
            for topic in known
            for told in topic.partitions
        },
        {topic.topic_id: topic.name for topic in known} if version >= WITH_TOPIC_IDS else {},
        called.own_broker(answer.controller_id),
        frozenset(
            f"{called.own_topic(topic.name)}-{told.partition_index}"
            for topic in known
            for told in topic.partitions
            if len(told.isr_nodes) < len(told.replica_nodes)
        ),
        {
            f"{called.own_topic(topic.name)}-{told.partition_index}": called.own_brokers(
                tuple(told.replica_nodes)
            )
            for topic in known
            for told in topic.partitions
        },
    )


def _leader(called: Names, broker: int) -> int:
    own = called.own_broker(broker)
    return _NOBODY if own is None else own


def eligible_leaders(
    connection: BrokerConnection, topics: Iterable[str], called: Names = SAME
) -> dict[str, tuple[int, ...]]:
    """Return the eligible leader replicas of partitions that have any (KIP-966); none from brokers that know of none.

    *called* is what topics and brokers are called there; what is returned has the campaign's names.

    Raises:
        ConnectionLostError: it does not answer, or not that.

    """
    if not connection.speaks(DescribeTopicPartitionsRequest, 0):
        return {}
    topic_type = DescribeTopicPartitionsRequest.TopicRequest
    found: dict[str, tuple[int, ...]] = {}
    cursor, is_first = None, True
    while is_first or cursor is not None:
        request = DescribeTopicPartitionsRequest[0](
            topics=[topic_type(name=called.topic(name)) for name in topics],
            response_partition_limit=_PARTITIONS_MAX,
            cursor=cursor,
        )
        answer = connection.ask(request)
        for topic in (each for each in answer.topics if each.name is not None):
            for told in topic.partitions:
                if eligible := called.own_brokers(tuple(told.eligible_leader_replicas or ())):
                    found[f"{called.own_topic(topic.name)}-{told.partition_index}"] = eligible
        before, cursor, is_first = cursor, _after(answer), False
        if cursor is not None and cursor == before:
            raise ConnectionLostError("a broker describes the same page of topics again and again")
    return found


def _after(answer: Any) -> Any:
    """Return where the next page begins, None behind the last."""
    following = answer.next_cursor
    return following and DescribeTopicPartitionsRequest.Cursor(
        topic_name=following.topic_name, partition_index=following.partition_index
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
