"""Creating topics and partitions, with the replicas that a campaign says.

harrow administers brokers over connections of its own, not with the AdminClient of confluent-kafka. The AdminClient
goes to the addresses that brokers advertise, which are those of the proxies where harrow has started them: faults
would strike it, and its requests would be seen among those of clients. It has no reassignments either, no quorum of
controllers and no eligible leader replicas.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from kafka.protocol.admin import CreatePartitionsRequest, CreateTopicsRequest

from harrow.live_cluster.errors import LiveError
from harrow.live_cluster.wire.connection import BrokerConnection, only
from harrow.live_cluster.wire.errors import error_name

_VERSIONS: Final = (1, 2)
"""With errors in words, and without what only some releases have; 4.0 begins with the second one."""
_PARTITIONS_VERSIONS: Final = (0, 1)
_TIMEOUT_MS: Final = 30_000


class TopicError(LiveError):
    """A topic could not be created; the message has the broker's reason."""


def create_topic(
    connection: BrokerConnection,
    name: str,
    assignment: Sequence[Iterable[int]],
    settings: Mapping[str, object],
) -> None:
    """Have the controller, or any broker of a KRaft cluster, create a topic; partition by partition its replicas.

    Raises:
        ConnectionLostError: it does not answer.
        TopicError: it does not do it.

    """
    version = connection.version_of(CreateTopicsRequest, *_VERSIONS)
    request = CreateTopicsRequest[version](
        topics=[_topic(name, assignment, settings)], timeout_ms=_TIMEOUT_MS, validate_only=False
    )
    told = only(connection.ask(request).topics, "topics")
    if told.error_code:
        raise TopicError(f"topic {name} was not created: {told.error_message or told.error_code}")


def create_partitions(
    connection: BrokerConnection, topic: str, total: int, added: Sequence[Iterable[int]] | None
) -> str:
    """Ask that a topic have so many partitions, and return the error; *added* are the replicas of the new ones, None for any.

    Raises:
        ConnectionLostError: the broker does not answer, or knows no such request (KIP-195).

    """
    version = connection.version_of(CreatePartitionsRequest, *_PARTITIONS_VERSIONS)
    asked = CreatePartitionsRequest.CreatePartitionsTopic
    replicas = asked.CreatePartitionsAssignment
    assignments = None if added is None else [replicas(broker_ids=list(brokers)) for brokers in added]
    answer = connection.ask(
        CreatePartitionsRequest[version](
            topics=[asked(name=topic, count=total, assignments=assignments)],
            timeout_ms=_TIMEOUT_MS,
            validate_only=False,
        )
    )
    return error_name(only(answer.results, "topics").error_code)


def _topic(name: str, assignment: Sequence[Iterable[int]], settings: Mapping[str, object]) -> Any:
    topic = CreateTopicsRequest.CreatableTopic
    return topic(
        name=name,
        num_partitions=-1,
        replication_factor=-1,
        assignments=[
            topic.CreatableReplicaAssignment(partition_index=number, broker_ids=list(replicas))
            for number, replicas in enumerate(assignment)
        ],
        configs=[
            topic.CreatableTopicConfig(name=key, value=_written(value)) for key, value in settings.items()
        ],
    )


def _written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
