"""Where a record goes that names no partition (``DefaultPartitioner.java``, KIP-480; ``BuiltInPartitioner.java``, KIP-1123)."""

from collections.abc import Callable
from typing import Final

from harrow.cluster_model.sim.choices import Stream, pick

_SEED: Final = 0x9747B28C
_M: Final = 0x5BD1E995
_R: Final = 24
_INT: Final = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """Return the hash by which all of Kafka's clients find a key's partition (``Utils.murmur2``), without its sign."""
    length = len(data)
    hashed = (_SEED ^ length) & _INT
    for begin in range(0, length - length % 4, 4):
        k = int.from_bytes(data[begin : begin + 4], "little") * _M & _INT
        hashed = (hashed * _M & _INT) ^ ((k ^ (k >> _R)) * _M & _INT)
    rest = data[length - length % 4 :]
    if rest:
        hashed = (hashed ^ int.from_bytes(rest, "little")) * _M & _INT
    hashed = (hashed ^ (hashed >> 13)) * _M & _INT
    return hashed ^ (hashed >> 15)


def partition_number(key: str, partitions: int) -> int:
    """Return which of so many partitions all records with a key go to."""
    return (murmur2(key.encode()) & 0x7FFFFFFF) % partitions


class Partitioner:
    """Choose by the key; without one round robin, or since KIP-480 one partition until its batch has been sent.

    ``leads_nearby`` returns whether the leader of a partition is in the producer's rack. The sticky partition is
    then one of those, if there is one.
    """

    __slots__ = ("_counter", "_leads_nearby", "_numbers", "_partitions", "_sticky", "_stream", "_uses_sticky")

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
        self._sticky: str | None = None
        self._counter = stream.below(len(partitions)) if not sticky and len(partitions) > 1 else 0

    def add(self, partition: str) -> None:
        """Take a partition into account that the topic has now, too."""
        if partition not in self._numbers:
            self._numbers[partition] = len(self._partitions)
            self._partitions = (*self._partitions, partition)

    def partition(self) -> str:
        """Return the partition of the next record."""
        if self._uses_sticky:
            if self._sticky is None:
                self._sticky = pick(self._stream, self._nearby() or self._partitions)
            return self._sticky
        self._counter += 1
        return self._partitions[(self._counter - 1) % len(self._partitions)]

    def partition_of(self, key: str) -> str:
        """Return the partition of all records with a key."""
        return self._partitions[partition_number(key, len(self._partitions))]

    def batch_completed(self, partition: str) -> None:
        """A new batch begins: the sticky partitioner picks another partition."""
        if self._sticky != partition:
            return
        nearby = self._nearby()
        if nearby:
            others = [name for name in nearby if name != partition]
            self._sticky = pick(self._stream, others or nearby)
        elif len(self._partitions) > 1:
            # One of the others, without a list of them: those behind it move up by one.
            number = self._stream.below(len(self._partitions) - 1)
            self._sticky = self._partitions[number + (number >= self._numbers[partition])]

    def _nearby(self) -> list[str]:
        """Return the partitions with a leader in the producer's rack; none unless the producer prefers them."""
        leads_nearby = self._leads_nearby
        return [] if leads_nearby is None else [name for name in self._partitions if leads_nearby(name)]
