"""The version order of a partition: which values stand at which offsets, by everything that is known."""

from bisect import bisect_left, bisect_right
from functools import cached_property
from typing import Any

from harrow.checks.history.index import HistoryIndex
from harrow.checks.history.records import Jump, Pair, PartitionHistory, SendRecord, Value
from harrow.cluster_model.history import INFO, OK


class VersionOrder:
    """Offset -> values, from all polls and from the sends that are known to have committed.

    Polls of failed operations count as well: what a consumer is given is committed whatever
    becomes of its own transaction. Offsets may have gaps of any size (transaction markers,
    compaction); an index is the place among the offsets that are known.
    """

    def __init__(self, partition: PartitionHistory, committed: list[SendRecord]) -> None:
        self.partition = partition
        self.committed = committed
        # A set that begins as a copy of another needs no hashing; most of what was sent was polled.
        self.pairs: set[Pair] = set(partition.polled)
        self.pairs.update(partition.polled_in_vain)
        self.pairs.update([(send.offset, send.value) for send in committed if send.offset is not None])

    def has_conflicts(self) -> bool:
        """Return whether several values stand at one offset."""
        return len(dict(self.pairs)) != len(self.pairs)

    @cached_property
    def offsets(self) -> list[int]:
        """The known offsets, sorted; their places are the indices."""
        return sorted({offset for offset, _ in self.pairs})

    @cached_property
    def jumps(self) -> list[Jump]:
        """Where processes really left out a known offset or fell back."""
        following = dict(zip(self.offsets, self.offsets[1:], strict=False))
        return [Jump(*jump) for jump in self.partition.jumps if following.get(jump[1][0]) != jump[2][0]]

    @cached_property
    def offsets_of(self) -> dict[Value, list[int]]:
        found: dict[Value, list[int]] = {}
        for offset, value in sorted(self.pairs, key=_by_offset):
            found.setdefault(value, []).append(offset)
        return found

    @cached_property
    def values_at(self) -> dict[int, list[Value]]:
        """The values at each offset, numbers first."""
        found: dict[int, list[Value]] = {}
        for offset, value in sorted(self.pairs, key=_by_offset):
            found.setdefault(offset, []).append(value)
        return found

    def between(self, one: int, other: int) -> tuple[int, int]:
        """Return the indices of the known offsets above *one* and below *other*, the second one excluded."""
        return bisect_right(self.offsets, one), bisect_left(self.offsets, other)

    def distance(self, one: int, other: int) -> int:
        """Return how many indices *other* is ahead of *one*; both are known offsets."""
        return bisect_left(self.offsets, other) - bisect_left(self.offsets, one)

    def first_offset(self, value: Value) -> int | None:
        """Return the lowest offset at which a value stands, None if it is not known to stand anywhere."""
        offsets = self.offsets_of.get(value)
        return offsets[0] if offsets else None


class VersionOrders:
    """The version orders of a history, each made when it is first asked for.

    ``shared`` is what two rules both need and one of them has worked out.
    """

    def __init__(self, history: HistoryIndex) -> None:
        self.history = history
        self.shared: dict[str, Any] = {}
        self._orders: dict[str, VersionOrder] = {}
        self._read: dict[str, frozenset[Value]] = {}

    def of(self, partition: str) -> VersionOrder:
        order = self._orders.get(partition)
        if order is None:
            known = self.history.partitions[partition]
            unsure = [send for send in known.unsure if self.has_committed(send)]
            order = self._orders[partition] = VersionOrder(known, known.acked + unsure)
        return order

    def read(self, partition: str) -> frozenset[Value]:
        """Return every value that an ok poll returned."""
        values = self._read.get(partition)
        if values is None:
            known = self.history.partitions.get(partition)
            values = frozenset([value for _, value in known.polled] if known is not None else ())
            self._read[partition] = values
        return values

    def has_committed(self, send: SendRecord) -> bool:
        """Return whether a send is known to have committed.

        It is if it was acked, or if its outcome is unknown and an ok poll read one of the
        writes of its operation: an operation commits as a whole.
        """
        if send.outcome == OK:
            return True
        if send.outcome != INFO:
            return False
        transaction = send.transaction
        if transaction is None:
            return send.value in self.read(send.partition)
        if transaction.committed is None:
            transaction.committed = any(
                other.value in self.read(other.partition) for other in transaction.sends
            )
        return transaction.committed


def _by_offset(pair: Pair) -> tuple[int, bool, Value]:
    return pair[0], isinstance(pair[1], str), pair[1]
