"""Administrative requests: topics, partitions, reassignments, record deletion, preferred leaders.

harrow sends them over its own connections instead of through the AdminClient of confluent-kafka.
The AdminClient connects to the advertised addresses. If harrow started the brokers, those addresses
belong to harrow's proxies: faults would strike the AdminClient, and its requests would count as
those of a client under test. It also lacks reassignments, the quorum of controllers and eligible
leader replicas.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kafka.protocol.admin import (
    AlterPartitionReassignmentsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteRecordsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
)

from harrow.live_cluster.errors import LiveError
from harrow.live_cluster.wire.connection import BrokerConnection, only
from harrow.live_cluster.wire.errors import error_name

_CREATE_TOPICS_VERSIONS: Final = (1, 2)
"""These have error messages, and no fields that only some releases support. Kafka 4.0 dropped
version 1."""
_TIMEOUT_MS: Final = 30_000
_UNKNOWN_TOPIC: Final = 3
_PREFERRED: Final = 0


class TopicError(LiveError):
    """A topic could not be created or deleted; the message has the broker's reason."""


def create_topic(
    connection: BrokerConnection,
    name: str,
    assignment: Sequence[Iterable[int]],
    settings: Mapping[str, object],
) -> None:
    """Create a topic with these replicas of each partition.

    The request must go to the controller, or with KRaft to any broker. Raise `TopicError` if the
    broker refuses the request.
    """
    topic = CreateTopicsRequest.CreatableTopic
    request = CreateTopicsRequest[connection.version_of(CreateTopicsRequest, *_CREATE_TOPICS_VERSIONS)](
        topics=[
            topic(
                name=name,
                num_partitions=-1,
                replication_factor=-1,
                assignments=[
                    topic.CreatableReplicaAssignment(partition_index=number, broker_ids=list(replicas))
                    for number, replicas in enumerate(assignment)
                ],
                configs=[
                    topic.CreatableTopicConfig(name=key, value=_setting_text(value))
                    for key, value in settings.items()
                ],
            )
        ],
        timeout_ms=_TIMEOUT_MS,
        validate_only=False,
    )
    result = only(connection.ask(request).topics, "topics")
    if result.error_code:
        raise TopicError(f"topic {name} was not created: {result.error_message or result.error_code}")


def _setting_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def delete_topics(connection: BrokerConnection, names: Iterable[str]) -> None:
    """Delete topics through the controller, or with KRaft through any broker.

    A topic that does not exist is not an error. Raise `TopicError` if the broker refuses.
    """
    version = connection.version_of(DeleteTopicsRequest, 1, 3)
    request = DeleteTopicsRequest[version](topic_names=list(names), timeout_ms=_TIMEOUT_MS)
    for result in connection.ask(request).responses:
        if result.error_code not in (0, _UNKNOWN_TOPIC):
            raise TopicError(f"topic {result.name} was not deleted: error {result.error_code}")


def create_partitions(
    connection: BrokerConnection, topic: str, total: int, added: Sequence[Iterable[int]] | None
) -> str:
    """Raise the number of a topic's partitions to a *total*, and return the error (KIP-195).

    *added* lists the replicas of each new partition; with None the controller chooses them.
    """
    version = connection.version_of(CreatePartitionsRequest, 0, 1)
    topic_type = CreatePartitionsRequest.CreatePartitionsTopic
    replicas = topic_type.CreatePartitionsAssignment
    assignments = None if added is None else [replicas(broker_ids=list(brokers)) for brokers in added]
    request = CreatePartitionsRequest[version](
        topics=[topic_type(name=topic, count=total, assignments=assignments)],
        timeout_ms=_TIMEOUT_MS,
        validate_only=False,
    )
    return error_name(only(connection.ask(request).results, "topics").error_code)


class Assignment(NamedTuple):
    """The replicas of a partition, preferred leader first, and those being added and removed."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()


def alter_reassignment(connection: BrokerConnection, partition: str, replicas: Iterable[int] | None) -> str:
    """Reassign a partition, or with None cancel its reassignment; return the error (KIP-455)."""
    topic, _, number = partition.rpartition("-")
    version = connection.version_of(AlterPartitionReassignmentsRequest, 0)
    topic_type = AlterPartitionReassignmentsRequest.ReassignableTopic
    partition_entry = topic_type.ReassignablePartition(
        partition_index=int(number), replicas=None if replicas is None else list(replicas)
    )
    request = AlterPartitionReassignmentsRequest[version](
        timeout_ms=_TIMEOUT_MS, topics=[topic_type(name=topic, partitions=[partition_entry])]
    )
    answer = connection.ask(request)
    codes = (result.error_code for topic in answer.responses for result in topic.partitions)
    return error_name(answer.error_code or next(codes, 0))


def reassignments(connection: BrokerConnection) -> dict[str, Assignment] | None:
    """Return the ongoing reassignments by partition, None if the broker answers with an error."""
    version = connection.version_of(ListPartitionReassignmentsRequest, 0)
    answer = connection.ask(ListPartitionReassignmentsRequest[version](timeout_ms=_TIMEOUT_MS, topics=None))
    if answer.error_code:
        return None
    return {
        f"{topic.name}-{partition.partition_index}": Assignment(
            tuple(partition.replicas), tuple(partition.adding_replicas), tuple(partition.removing_replicas)
        )
        for topic in answer.topics
        for partition in topic.partitions
    }


def elect_preferred_leaders(connection: BrokerConnection, partitions: Iterable[str]) -> None:
    """Ask for the first replica of each partition to be elected (KIP-460, since 2.4)."""
    numbers: dict[str, list[int]] = {}
    for partition in partitions:
        topic, _, number = partition.rpartition("-")
        numbers.setdefault(topic, []).append(int(number))
    version = connection.version_of(ElectLeadersRequest, 1, 2)
    topic_type = ElectLeadersRequest.TopicPartitions
    request = ElectLeadersRequest[version](
        election_type=_PREFERRED,
        topic_partitions=[topic_type(topic=topic, partitions=indexes) for topic, indexes in numbers.items()],
        timeout_ms=_TIMEOUT_MS,
    )
    connection.ask(request)


def delete_records_request(connection: BrokerConnection, partition: str, offset: int, timeout_ms: int) -> Any:
    """Return a request to a leader to delete all records below an offset (KIP-107)."""
    topic, _, number = partition.rpartition("-")
    version = connection.version_of(DeleteRecordsRequest, 0, 1)
    topic_type = DeleteRecordsRequest.DeleteRecordsTopic
    partition_entry = topic_type.DeleteRecordsPartition(partition_index=int(number), offset=offset)
    return DeleteRecordsRequest[version](
        topics=[topic_type(name=topic, partitions=[partition_entry])], timeout_ms=timeout_ms
    )


def delete_records_result(answer: Any) -> tuple[str, int]:
    """Return the error and the low watermark: the lowest log start offset of the live replicas."""
    result = only(only(answer.topics, "topics").partitions, "partitions")
    return error_name(result.error_code), result.low_watermark
