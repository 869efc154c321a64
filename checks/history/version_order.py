"""The version order of a partition: which values stand at which offsets, by everything that is known."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import compress, pairwise
from operator import ne
from typing import Any

from harrow.checks.history.index import HistoryIndex
from harrow.checks.history.records import (
    ACKED,
    UNKNOWN,
    UNSURE,
    Jump,
    Pair,
    PartitionHistory,
    Transaction,
    Value,
)


class VersionOrders:
    """The version orders of a history, each made when it is first asked for.

    ``shared`` is what two rules both need and one of them has worked out.
    """

    def __init__(self, history: HistoryIndex) -> None:
        self.history = history
        self.shared: dict[str, Any] = {}
        self._orders: dict[str, VersionOrder] = {}
        self._read: dict[str, frozenset[Value]] = {}
        self._highest: dict[str, int | None] = {}

    def of(self, partition: str) -> "VersionOrder":
        order = self._orders.get(partition)
        if order is None:
            order = self._orders[partition] = VersionOrder(self, self.history.partitions[partition])
        return order

    def read(self, partition: str) -> frozenset[Value]:
        """Return every value that an ok poll returned."""
        values = self._read.get(partition)
        if values is None:
            known = self.history.partitions.get(partition)
            rows = () if known is None else known.polled
            values = self._read[partition] = frozenset(map(self.history.records.values.__getitem__, rows))
        return values

    def is_read(self, partition: str, value: Value) -> bool:
        """Return whether an ok poll returned a value."""
        known = self.history.partitions[partition]
        if value in known.moved:
            return value in self.read(partition)
        row = known.rows.get(value)
        return row is not None and self.history.records.polled_by[row] != UNKNOWN

    def highest(self, partition: str) -> int | None:
        """Return the row of the record with the highest offset that an ok poll returned, None if none returned any."""
        if partition not in self._highest:
            rows = self.history.partitions[partition].polled
            polled_at = self.history.records.polled_at
            self._highest[partition] = max(rows, key=polled_at.__getitem__) if rows else None
        return self._highest[partition]

    def has_committed(self, partition: str, row: int) -> bool:
        """Return whether a send is known to have committed.

        It is if it was acked, or if its outcome is unknown and an ok poll read one of the
        writes of its operation: an operation commits as a whole.
        """
        records = self.history.records
        if records.outcomes[row] != UNSURE:
            return records.outcomes[row] == ACKED
        transaction = self.history.transaction_of.get(row)
        return self.is_read(partition, records.values[row]) if transaction is None else self._any(transaction)

    def _any(self, transaction: Transaction) -> bool:
        if transaction.committed is None:
            values = self.history.records.values
            transaction.committed = any(self.is_read(name, values[row]) for name, row in transaction.sends)
        return transaction.committed


class VersionOrder:
    """Offset -> values, from all polls and from the sends that are known to have committed.

    Polls of failed operations count as well: what a consumer is given is committed whatever
    becomes of its own transaction. Offsets may have gaps of any size (transaction markers,
    compaction); an index is the place among the offsets that are known. ``committed`` are rows.
    """

    def __init__(self, orders: VersionOrders, partition: PartitionHistory) -> None:
        self.partition = partition
        unsure = [row for row in partition.unsure if orders.has_committed(partition.name, row)]
        self.committed = partition.acked + array("I", unsure)
        self._orders = orders
        self._offsets_of: dict[Value, list[int]] = {}
        self._history = orders.history
        self._records = orders.history.records

    @cached_property
    def is_plain(self) -> bool:
        """Whether every value stands at one offset, and every offset has one value: as it should be.

        It takes no look at values, which would cost several times as much.
        """
        if self.partition.moved or self.partition.sent_again:
            return False
        acked_at, polled_at, named_at = (
            self._records.acked_at,
            self._records.polled_at,
            self._records.named_at,
        )
        offsets = [
            offset for offset in map(polled_at.__getitem__, self.partition.rows.values()) if offset >= 0
        ]
        for row in self.committed:
            sent_to, polled = acked_at[row], polled_at[row]
            if sent_to == UNKNOWN:
                sent_to = named_at.get(row, UNKNOWN)
            if polled == UNKNOWN:
                offsets.append(sent_to)
            elif sent_to not in (polled, UNKNOWN):
                return False
        known = [offset for offset in offsets if offset != UNKNOWN] if UNKNOWN in offsets else offsets
        return len(set(known)) == len(known)

    @cached_property
    def offsets(self) -> Sequence[int]:
        """The known offsets, sorted; their places are the indices."""
        polled_at = self._records.polled_at
        known = set(map(polled_at.__getitem__, self.partition.all_rows()))
        known.update(map(self._records.acked_at.__getitem__, self.committed))
        known.update(offset for offset, _ in self._named())
        known.discard(UNKNOWN)
        return sorted(known) if isinstance(polled_at, list) else array("q", sorted(known))

    @cached_property
    def jumps(self) -> list[Jump]:
        """Where processes really left out a known offset or fell back."""
        jumps, offsets, polled_at = self.partition.jumps, self.offsets, self._records.polled_at
        following = dict(pairwise(offsets))
        columns = [jumps[column::4] for column in range(4)]
        here, there = (map(polled_at.__getitem__, column) for column in columns[:2])
        return [
            self._jump(*jump)
            for jump in compress(zip(*columns, strict=True), map(ne, map(following.get, here), there))
        ]

    @cached_property
    def values_at(self) -> dict[int, list[Value]]:
        """The values at each offset, numbers first."""
        found: dict[int, list[Value]] = {}
        for offset, value in self.pairs():
            found.setdefault(offset, []).append(value)
        return found

    @cached_property
    def kept(self) -> Sequence[int]:
        """The indices of the offsets at which something stands that was not aborted, which consumers have to read.

        Where transactions that only send are called sends, any send that failed was aborted.
        """
        partition = self.partition
        aborted = partition.failed if self._history.names_transactions_sends else partition.aborted
        rows = frozenset(aborted)
        return array(
            "Q",
            [
                index
                for index, values in enumerate(self.values_at.values())
                if not rows or any(partition.rows.get(value) not in rows for value in values)
            ],
        )

    def pairs(self) -> list[Pair]:
        """Return what stands where, by offset, numbers first."""
        values, polled_at, acked_at = self._records.values, self._records.polled_at, self._records.acked_at
        pairs = {
            (polled_at[row], values[row]) for row in self.partition.all_rows() if polled_at[row] != UNKNOWN
        }
        pairs.update((acked_at[row], values[row]) for row in self.committed if acked_at[row] != UNKNOWN)
        pairs.update(self._named())
        return sorted(pairs, key=_by_offset)

    def offsets_of(self, value: Value) -> list[int]:
        """Return the offsets at which a value stands; of a value that stands at several they are worked out once."""
        if value in self._offsets_of:
            return self._offsets_of[value]
        found = self._find_offsets(value)
        if value in self.partition.moved or value in self.partition.sent_again:
            self._offsets_of[value] = found
        return found

    def _find_offsets(self, value: Value) -> list[int]:
        records = self._records
        found = {records.polled_at[row] for row in self.partition.rows_polled_of(value)}
        for row in self._history.sends_of(self.partition, value):
            offset = records.offset(row)
            if offset is not None and self._orders.has_committed(self.partition.name, row):
                found.add(offset)
        return sorted(found - {UNKNOWN})

    def between(self, one: int, other: int) -> tuple[int, int]:
        """Return the indices of the known offsets above *one* and below *other*, the second one excluded."""
        return bisect_right(self.offsets, one), bisect_left(self.offsets, other)

    def distance(self, one: int, other: int) -> int:
        """Return how many indices *other* is ahead of *one*; both are known offsets."""
        return bisect_left(self.offsets, other) - bisect_left(self.offsets, one)

    def first_offset(self, value: Value) -> int | None:
        """Return the lowest offset at which a value stands, None if it is not known to stand anywhere."""
        offsets = self.offsets_of(value)
        return offsets[0] if offsets else None

    def _named(self) -> Iterator[Pair]:
        """Yield what sends of an unknown outcome named and are known to have done."""
        records = self._records
        if records.named_at:
            for row in self.committed:
                if row in records.named_at:
                    yield records.named_at[row], records.values[row]

    def _jump(self, last: int, following: int, came: int, went: int) -> Jump:
        subscribed = went < 0
        return Jump(
            process=self._history.processes[~went if subscribed else went],
            last=self._records.pair(last),
            next=self._records.pair(following),
            came=came,
            went=~went if subscribed else went,
            subscribed=subscribed,
        )


def _by_offset(pair: Pair) -> tuple[int, bool, Value]:
    return pair[0], isinstance(pair[1], str), pair[1]
