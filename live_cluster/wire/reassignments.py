"""Giving partitions other replicas (KIP-455)."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from kafka.protocol.admin import AlterPartitionReassignmentsRequest, ListPartitionReassignmentsRequest

from harrow.live_cluster.wire.connection import BrokerConnection
from harrow.live_cluster.wire.errors import error_name

_TIMEOUT_MS: Final = 30_000
_VERSION: Final = 0


class Assignment(NamedTuple):
    """The replicas of a partition, preferred leader first; while a reassignment is under way, whom it adds and whom it removes."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()


def alter_reassignment(connection: BrokerConnection, partition: str, replicas: Iterable[int] | None) -> str:
    """Ask for other replicas of a partition, with None that its reassignment be cancelled; return the error.

    Raises:
        ConnectionLostError: the broker does not answer, or knows no such request.

    """
    topic, _, number = partition.rpartition("-")
    version = connection.version_of(AlterPartitionReassignmentsRequest, _VERSION)
    of_topic = AlterPartitionReassignmentsRequest.ReassignableTopic
    asked = of_topic.ReassignablePartition(
        partition_index=int(number), replicas=None if replicas is None else list(replicas)
    )
    answer = connection.ask(
        AlterPartitionReassignmentsRequest[version](
            timeout_ms=_TIMEOUT_MS, topics=[of_topic(name=topic, partitions=[asked])]
        )
    )
    of_partitions = (told.error_code for each in answer.responses for told in each.partitions)
    return error_name(answer.error_code or next(of_partitions, 0))


def reassignments(connection: BrokerConnection) -> dict[str, Assignment] | None:
    """Return the reassignments that are under way, None where the broker does not know them.

    Raises:
        ConnectionLostError: the broker does not answer, or knows no such request.

    """
    version = connection.version_of(ListPartitionReassignmentsRequest, _VERSION)
    answer = connection.ask(ListPartitionReassignmentsRequest[version](timeout_ms=_TIMEOUT_MS, topics=None))
    if answer.error_code:
        return None
    return {
        f"{topic.name}-{told.partition_index}": Assignment(
            tuple(told.replicas), tuple(told.adding_replicas), tuple(told.removing_replicas)
        )
        for topic in answer.topics
        for told in topic.partitions
    }
