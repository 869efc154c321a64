"""Logs of a broker whose disk cannot be seen: read at the end, over the network."""

import time
from collections.abc import Sequence
from typing import Final

from harrow.cluster_model import errors, protocol
from harrow.cluster_model.log.record_batch import RecordBatch
from harrow.live_cluster.names import Names
from harrow.live_cluster.wire.codec import fetched_batches
from harrow.live_cluster.wire.connection import BrokerConnection, ConnectionLostError, only
from harrow.live_cluster.wire.replicas import DEBUGGING, replica_offsets
from harrow.live_cluster.wire.stored_batches import as_batches, next_offset

_PATIENCE_S: Final = 3.0
"""How long a follower may take to hear of the last high watermark; it may never, where nothing is written any more."""
_LOOK_S: Final = 0.25
_VERSIONS: Final = (4, 11)
"""From 2.4 on a follower answers only what knows of racks (KIP-392), which the last one does; before, any."""
_BYTES: Final = 1 << 20


class FetchedLogs:
    """What a broker lets be read of its replicas (`harrow.live_cluster.target.real_cluster.ReplicaLogs`), up to their high watermarks."""

    def __init__(self, connection: BrokerConnection, partitions: Sequence[str], names: Names) -> None:
        self._connection = connection
        self._partitions = partitions
        self._names = names
        self._ends: dict[str, int] = {}
        self._batches: dict[str, tuple[RecordBatch, ...]] = {}

    def look(self, now_us: int, led: frozenset[str]) -> None:
        """Do nothing: what a log takes and loses is not seen."""

    def read_anew(self, now_us: int) -> None:
        until_s = time.monotonic() + _PATIENCE_S
        while not self._read() and time.monotonic() < until_s:
            time.sleep(_LOOK_S)

    def open(self) -> None:
        """Do nothing: see `look`."""

    def knows(self, partition: str) -> bool:
        return partition in self._batches

    def begin(self, partition: str) -> int:
        batches = self._batches[partition]
        return batches[0].base_offset if batches else self._ends[partition]

    def size_bytes(self, partition: str) -> int:
        return 0

    def leo(self, partition: str) -> int:
        return self._ends[partition]

    def batches(self, partition: str) -> tuple[RecordBatch, ...]:
        return self._batches[partition]

    def epochs(self, partition: str) -> tuple[tuple[int, int], ...]:
        return ()

    def flushed(self, partition: str) -> int | None:
        return None

    def _read(self) -> bool:
        """Read all logs, and return whether all of them are known to their ends."""
        try:
            found = replica_offsets(self._connection, self._partitions, names=self._names)
            self._ends = {partition: offsets.leo for partition, offsets in found.items()}
            self._batches = {
                partition: fetched_log(self._connection, self._names.partition(partition))
                for partition in found
            }
        except ConnectionLostError:
            self._batches.clear()
            return False
        return all(
            (batches and batches[-1].next_offset == self._ends[partition]) or not self._ends[partition]
            for partition, batches in self._batches.items()
        )


def fetched_log(connection: BrokerConnection, partition: str) -> tuple[RecordBatch, ...]:
    """Return the batches of a broker's replica of a partition, from offset 0.

    Raises:
        ConnectionLostError: it does not answer, or does not give them.

    """
    found: list[RecordBatch] = []
    offset = 0
    while True:
        places = {partition: (offset, protocol.NO_EPOCH)}
        fetch = protocol.FetchRequest(DEBUGGING, 0, _BYTES, places, rack="")
        error, batches = only(list(fetched_batches(connection, fetch, _VERSIONS).values()), "partitions")
        if error != errors.NONE:
            raise ConnectionLostError(f"{partition} cannot be read from {offset}: {error}")
        before = offset
        for batch in batches:
            # An answer begins with the whole batch that has the offset, which may begin earlier.
            if next_offset(batch) > offset:
                found += as_batches(batch)
                offset = next_offset(batch)
        if offset == before:
            return tuple(found)
