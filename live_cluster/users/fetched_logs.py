"""The logs of a broker whose disk harrow cannot read: it fetches them at the end of the run."""

from collections.abc import Sequence
from typing import Final

from harrow.cluster_model import errors, protocol
from harrow.cluster_model.log.record_batch import RecordBatch
from harrow.live_cluster.names import Names
from harrow.live_cluster.target.real_cluster import ReplicaLogs
from harrow.live_cluster.waiting import wait_until
from harrow.live_cluster.wire.codec import fetched_batches
from harrow.live_cluster.wire.connection import BrokerConnection, ConnectionLostError, only
from harrow.live_cluster.wire.replicas import DEBUGGING, replica_offsets
from harrow.live_cluster.wire.stored_batches import as_batches, next_offset

_WAIT_MAX_S: Final = 3.0
"""How long harrow waits until a follower has learned the last high watermark.

Without further writes, a follower may never learn it.
"""
_POLL_INTERVAL_S: Final = 0.25
_VERSIONS: Final = (4, 11)
"""The versions of Fetch to use. Since 2.4 a follower answers clients only in version 11, which has
a rack (KIP-392); older followers answer any version."""
_BYTES: Final = 1 << 20


class FetchedLogs(ReplicaLogs):
    """A broker's logs up to the high watermarks. Clients cannot read beyond them."""

    def __init__(self, connection: BrokerConnection, partitions: Sequence[str], names: Names) -> None:
        self._connection = connection
        self._partitions = partitions
        self._names = names
        self._ends: dict[str, int] = {}
        self._batches: dict[str, tuple[RecordBatch, ...]] = {}

    def reread(self, now_us: int) -> None:
        wait_until(self._read, _WAIT_MAX_S, _POLL_INTERVAL_S)

    def has_log(self, partition: str) -> bool:
        return partition in self._batches

    def log_start(self, partition: str) -> int:
        batches = self._batches[partition]
        return batches[0].base_offset if batches else self._ends[partition]

    def leo(self, partition: str) -> int:
        return self._ends[partition]

    def batches(self, partition: str) -> tuple[RecordBatch, ...]:
        return self._batches[partition]

    def _read(self) -> bool:
        """Read all logs; return whether each was readable up to its log end offset."""
        try:
            replicas = replica_offsets(self._connection, self._partitions, names=self._names)
            self._ends = {partition: offsets.leo for partition, offsets in replicas.items()}
            self._batches = {
                partition: fetched_log(self._connection, self._names.cluster_partition(partition))
                for partition in replicas
            }
        except ConnectionLostError:
            self._batches.clear()
            return False
        return all(
            (batches and batches[-1].next_offset == self._ends[partition]) or not self._ends[partition]
            for partition, batches in self._batches.items()
        )


def fetched_log(connection: BrokerConnection, partition: str) -> tuple[RecordBatch, ...]:
    """Return the batches of a broker's replica from offset 0.

    Raise `ConnectionLostError` on an error.
    """
    log: list[RecordBatch] = []
    offset = 0
    while True:
        positions = {partition: protocol.PartitionData(offset, protocol.NO_EPOCH)}
        fetch = protocol.FetchRequest(DEBUGGING, 0, _BYTES, positions, rack="")
        error, batches = only(list(fetched_batches(connection, fetch, _VERSIONS).values()), "partitions")
        if error != errors.NONE:
            raise ConnectionLostError(f"{partition} cannot be read from {offset}: {error}")
        before = offset
        for batch in batches:
            # The first batch may begin before the requested offset, because brokers return whole
            # batches.
            if next_offset(batch) > offset:
                log += as_batches(batch)
                offset = next_offset(batch)
        if offset == before:
            return tuple(log)
