"""Chooses the partition of a record for which the application has chosen none.

Modelled on ``DefaultPartitioner.java`` (KIP-480) and ``BuiltInPartitioner.java`` (KIP-1123).
"""

from collections.abc import Callable
from typing import Final

from harrow.cluster_model.sim.choices import Stream, pick

# The constants of MurmurHash2 in Kafka, and the mask of an unsigned 32-bit integer.
_SEED: Final = 0x9747B28C
_M: Final = 0x5BD1E995
_R: Final = 24
_INT: Final = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """Return the unsigned hash by which all clients map keys to partitions (``Utils.murmur2``)."""
    length = len(data)
    digest = (_SEED ^ length) & _INT
    for begin in range(0, length - length % 4, 4):
        k = int.from_bytes(data[begin : begin + 4], "little") * _M & _INT
        digest = (digest * _M & _INT) ^ ((k ^ (k >> _R)) * _M & _INT)
    tail = data[length - length % 4 :]
    if tail:
        digest = (digest ^ int.from_bytes(tail, "little")) * _M & _INT
    digest = (digest ^ (digest >> 13)) * _M & _INT
    return digest ^ (digest >> 15)


def partition_number(key: str, partitions: int) -> int:
    """Return the number of the partition of a key, in a topic with *partitions* partitions."""
    return (murmur2(key.encode()) & 0x7FFFFFFF) % partitions


class Partitioner:
    """Chooses a partition by the key of a record. Without a key, the partitions take turns.

    Since KIP-480 a *sticky* partitioner sends all records without a key to one partition until a
    batch is complete. ``leads_nearby`` returns whether the leader of a partition is in the
    producer's rack. If there are such partitions, the sticky partition is one of them.
    """

    __slots__ = (
        "_counter",
        "_leads_nearby",
        "_numbers",
        "_partitions",
        "_sticky_partition",
        "_stream",
        "_uses_sticky",
    )

    def __init__(
        self,
        partitions: tuple[str, ...],
        stream: Stream,
        *,
        sticky: bool,
        leads_nearby: Callable[[str], bool] | None = None,
    ) -> None:
        self._leads_nearby = leads_nearby
        self._partitions = partitions
        self._numbers = {name: number for number, name in enumerate(partitions)}
        self._stream = stream
        self._uses_sticky = sticky
        self._sticky_partition: str | None = None
        self._counter = stream.below(len(partitions)) if not sticky and len(partitions) > 1 else 0

    def add(self, partition: str) -> None:
        """Choose this partition too from now on, because it was added to the topic."""
        if partition not in self._numbers:
            self._numbers[partition] = len(self._partitions)
            self._partitions = (*self._partitions, partition)

    def partition(self) -> str:
        """Return the partition of the next record without a key."""
        if self._uses_sticky:
            if self._sticky_partition is None:
                self._sticky_partition = pick(self._stream, self._nearby() or self._partitions)
            return self._sticky_partition
        self._counter += 1
        return self._partitions[(self._counter - 1) % len(self._partitions)]

    def partition_of(self, key: str) -> str:
        """Return the partition of all records with a key."""
        return self._partitions[partition_number(key, len(self._partitions))]

    def batch_completed(self, partition: str) -> None:
        """Let the sticky partitioner pick another partition for the next batch."""
        if self._sticky_partition != partition:
            return
        nearby = self._nearby()
        if nearby:
            others = [name for name in nearby if name != partition]
            self._sticky_partition = pick(self._stream, others or nearby)
        elif len(self._partitions) > 1:
            # Pick any other partition: draw from one number less, and skip the current number.
            number = self._stream.below(len(self._partitions) - 1)
            self._sticky_partition = self._partitions[number + (number >= self._numbers[partition])]

    def _nearby(self) -> list[str]:
        """Return partitions to prefer, because their leaders are in the producer's rack, if any."""
        leads_nearby = self._leads_nearby
        return [] if leads_nearby is None else [name for name in self._partitions if leads_nearby(name)]
