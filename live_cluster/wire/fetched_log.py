"""A replica's log as its broker lets it be read, leader or follower: up to its high watermark."""

from typing import Final

from kafka.protocol.consumer import FetchRequest

from harrow.cluster_model.log.record_batch import RecordBatch
from harrow.live_cluster.stored_batches import as_batches, next_offset, whole_batches
from harrow.live_cluster.wire.connection import BrokerConnection, ConnectionLostError, only

_DEBUGGING: Final = -2
_VERSIONS: Final = (4, 11)
"""From 2.4 on a follower answers only what knows of racks (KIP-392), which the last one does; before, any."""
_BYTES: Final = 1 << 20


def fetched_log(connection: BrokerConnection, partition: str) -> tuple[RecordBatch, ...]:
    """Return the batches of a broker's replica of a partition, from offset 0.

    Raises:
        ConnectionLostError: it does not answer, or does not give them.

    """
    topic, _, number = partition.rpartition("-")
    version = connection.version_of(FetchRequest, *_VERSIONS)
    topic_type = FetchRequest.FetchTopic
    found: list[RecordBatch] = []
    offset = 0
    while True:
        asked = topic_type.FetchPartition(
            partition=int(number), fetch_offset=offset, partition_max_bytes=_BYTES
        )
        request = FetchRequest[version](
            replica_id=_DEBUGGING,
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=_BYTES,
            isolation_level=0,
            topics=[topic_type(topic=topic, partitions=[asked])],
        )
        told = only(only(connection.ask(request).responses, "topics").partitions, "partitions")
        if told.error_code:
            raise ConnectionLostError(f"{partition} cannot be read from {offset}: error {told.error_code}")
        before = offset
        for batch, _ in whole_batches(bytes(told.records or b"")):
            end = next_offset(batch)
            # An answer begins with the whole batch that has the offset, which may begin earlier.
            if end > offset:
                found += as_batches(batch)
                offset = end
        if offset == before:
            return tuple(found)
