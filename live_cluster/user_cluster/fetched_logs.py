"""Logs of a broker whose disk cannot be seen: read at the end, over the network."""

import time
from collections.abc import Sequence
from typing import Final

from harrow.cluster_model.log.record_batch import RecordBatch
from harrow.live_cluster.control_plane import CannotBeDoneError
from harrow.live_cluster.names import Names
from harrow.live_cluster.wire.connection import BrokerConnection, ConnectionLostError
from harrow.live_cluster.wire.fetched_log import fetched_log
from harrow.live_cluster.wire.replicas import replica_offsets

_PATIENCE_S: Final = 3.0
"""How long a follower may take to hear of the last high watermark; it may never, where nothing is written any more."""
_LOOK_S: Final = 0.25


class FetchedLogs:
    """What a broker lets be read of its replicas (`harrow.live_cluster.real_cluster.ReplicaLogs`), up to their high watermarks."""

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

    def lose_power(self, now_us: int) -> None:
        raise CannotBeDoneError("the disks of a cluster that harrow has not started are not at hand")

    def lose(self) -> None:
        raise CannotBeDoneError("the disks of a cluster that harrow has not started are not at hand")

    def remove_checkpoint(self, name: str) -> None:
        raise CannotBeDoneError("the disks of a cluster that harrow has not started are not at hand")

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
            found = replica_offsets(self._connection, self._partitions, called=self._names)
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
