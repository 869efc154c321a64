"""Deleting records by request (KIP-107)."""

from typing import Any, Final

from kafka.protocol.admin import DeleteRecordsRequest

from harrow.live_cluster.wire.connection import BrokerConnection, only
from harrow.live_cluster.wire.errors import error_name

_VERSIONS: Final = (0, 1)


def deletion(connection: BrokerConnection, partition: str, offset: int, timeout_ms: int) -> Any:
    """Return the request that asks a leader to delete what is below an offset, and to answer within a time.

    Raises:
        ConnectionLostError: the leader does not answer, or knows no such request.

    """
    topic, _, number = partition.rpartition("-")
    version = connection.version_of(DeleteRecordsRequest, *_VERSIONS)
    of_topic = DeleteRecordsRequest.DeleteRecordsTopic
    asked = of_topic.DeleteRecordsPartition(partition_index=int(number), offset=offset)
    return DeleteRecordsRequest[version](
        topics=[of_topic(name=topic, partitions=[asked])], timeout_ms=timeout_ms
    )


def deleted(answer: Any) -> tuple[str, int]:
    """Return the error in an answer, and where the logs of all live replicas begin.

    Raises:
        ConnectionLostError: the answer is about something else.

    """
    told = only(only(answer.topics, "topics").partitions, "partitions")
    return error_name(told.error_code), told.low_watermark
