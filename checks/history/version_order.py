"""Computes the version order of a partition: the values that a history shows at each offset."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import compress, count, groupby, islice, repeat
from operator import eq, ne
from typing import Any, Final

from harrow.checks.history.index import HistoryIndex
from harrow.checks.history.records import (
    ACKED,
    NEVER_SENT,
    UNKNOWN,
    UNSURE,
    Jump,
    PartitionHistory,
    Transaction,
    Value,
)

_ROW_BITS: Final = 32
_ROW_MASK: Final = (1 << _ROW_BITS) - 1


class Reads:
    """What the ok polls of a history returned, and which sends certainly committed."""

    def __init__(self, history: HistoryIndex) -> None:
        self.history = history
        self._read: dict[str, frozenset[Value]] = {}

    def read(self, partition: str) -> frozenset[Value]:
        """Return every value of a partition that an ok poll returned."""
        values = self._read.get(partition)
        if values is None:
            partition_history = self.history.partitions.get(partition)
            rows = () if partition_history is None else partition_history.polled
            values = self._read[partition] = frozenset(map(self.history.records.values.__getitem__, rows))
        return values

    def is_read(self, partition: str, value: Value) -> bool:
        """Return whether an ok poll returned a value."""
        history = self.history.partitions[partition]
        if value in history.moved:
            return value in self.read(partition)
        row = history.rows.get(value)
        return row is not None and self.history.records.polled_by[row] != UNKNOWN

    def has_committed(self, partition: str, row: int) -> bool:
        """Return whether a send has certainly committed.

        An acked send has committed. A send with an unknown outcome has committed if an ok poll
        returned a record of its operation, because an operation commits as a whole.
        """
        records = self.history.records
        if records.outcomes[row] != UNSURE:
            return records.outcomes[row] == ACKED
        transaction = self.history.transaction_of.get(row)
        return (
            self.is_read(partition, records.values[row])
            if transaction is None
            else self._has_read_record(transaction)
        )

    def _has_read_record(self, transaction: Transaction) -> bool:
        if transaction.committed is None:
            values = self.history.records.values
            transaction.committed = any(self.is_read(name, values[row]) for name, row in transaction.sends)
        return transaction.committed


class VersionOrders:
    """The version orders of a history, each computed on first use.

    ``shared`` is a cache for results that several rules need.
    """

    def __init__(self, history: HistoryIndex) -> None:
        self.history = history
        self.shared: dict[str, Any] = {}
        self._orders: dict[str, VersionOrder] = {}
        self._reads = Reads(history)
        self.read = self._reads.read
        self.is_read = self._reads.is_read
        self.has_committed = self._reads.has_committed
        self._highest: dict[str, int | None] = {}

    def of(self, partition: str) -> "VersionOrder":
        """Return the version order of a partition."""
        order = self._orders.get(partition)
        if order is None:
            order = self._orders[partition] = VersionOrder(self._reads, self.history.partitions[partition])
        return order

    def highest(self, partition: str) -> int | None:
        """Return the row of the polled record with the highest offset."""
        if partition not in self._highest:
            rows = self.history.partitions[partition].polled
            polled_at = self.history.records.polled_at
            self._highest[partition] = max(rows, key=polled_at.__getitem__) if rows else None
        return self._highest[partition]


class VersionOrder:
    """The values at each offset, from all polls and from the sends that have certainly committed.

    Polls of failed operations count as well: a polled record is committed, whatever the outcome of
    the reader's own transaction. Offsets may have gaps of any size (transaction markers,
    compaction). An index is a position in the sorted list of known offsets. ``committed`` has the
    rows of committed sends.
    """

    def __init__(self, reads: Reads, partition: PartitionHistory) -> None:
        self.partition = partition
        unsure = [row for row in partition.unsure if reads.has_committed(partition.name, row)]
        self.committed = partition.acked + array("I", unsure)
        self._reads = reads
        self._offsets_of: dict[Value, list[int]] = {}
        self._history = reads.history
        self._records = reads.history.records
        # Computed on first use. mypyc would compute a `cached_property` at each access.
        self._is_plain: bool | None = None
        self._required: Sequence[int] | None = None
        self._known_places: tuple[Sequence[int], array[int], array[int]] | None = None
        self._real_jumps: array[int] | None = None

    @property
    def is_plain(self) -> bool:
        """Whether every value is at one offset, and every offset has one value."""
        if self._is_plain is None:
            self._is_plain = self._find_plain()
        return self._is_plain

    def _find_plain(self) -> bool:
        # This compares rows, because comparing values would cost several times as much.
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
                if sent_to != UNKNOWN:
                    offsets.append(sent_to)
            elif sent_to not in (polled, UNKNOWN):
                return False
        offsets.sort()
        return not any(map(eq, offsets, islice(offsets, 1, None)))

    @property
    def offsets(self) -> Sequence[int]:
        """The known offsets in ascending order."""
        return self._places[0]

    def jumps(self, *, internal: bool) -> Iterator[Jump]:
        """Yield the jumps that skipped or went back, either *internal* or between operations."""
        jumps = self.partition.jumps
        if self._real_jumps is None:
            self._real_jumps = self._find_real_jumps()
        for number in self._real_jumps:
            last, following, last_operation, next_operation = jumps[4 * number : 4 * number + 4]
            if (last_operation in (next_operation, ~next_operation)) == internal:
                yield self._jump(last, following, last_operation, next_operation)

    def values_at(self, offset: int) -> list[Value]:
        """Return the values at an offset, numbers first."""
        index = bisect_left(self.offsets, offset)
        is_known = index < len(self.offsets) and self.offsets[index] == offset
        return self._values(index) if is_known else []

    def first_values(self, first: int, end: int) -> list[Value]:
        """Return the first value at each of some indices, excluding *end*."""
        return [self._values(index)[0] for index in range(first, end)]

    def values_by_offset(self) -> Iterator[tuple[int, list[Value]]]:
        """Yield every known offset with its values, numbers first."""
        return zip(self.offsets, map(self._values, count()))  # noqa: B905 - numbers have no end

    @property
    def required(self) -> Sequence[int]:
        """The indices of offsets that consumers have to read, because the value was not aborted.

        If the history calls a transaction without polls `send`, every failed send was aborted.
        """
        if self._required is None:
            self._required = self._find_required()
        return self._required

    def _find_required(self) -> Sequence[int]:
        partition = self.partition
        aborted = partition.failed if self._history.names_transactions_sends else partition.aborted
        rows = frozenset(aborted)
        if not rows:
            return range(len(self.offsets))
        return array(
            "Q",
            [
                index
                for index, (_, values) in enumerate(self.values_by_offset())
                if any(partition.rows.get(value) not in rows for value in values)
            ],
        )

    @property
    def _places(self) -> tuple[Sequence[int], "array[int]", "array[int]"]:
        """The known offsets, the rows of their values, and where the rows of each offset end.

        A value has only one row for each offset.
        """
        if self._known_places is None:
            self._known_places = self._find_places()
        return self._known_places

    def _find_places(self) -> tuple[Sequence[int], "array[int]", "array[int]"]:
        records, values = self._records, self._records.values
        polled_at, acked_at = records.polled_at, records.acked_at
        # One number for offset and row takes a third of the memory of a pair.
        places = [
            polled_at[row] << _ROW_BITS | row
            for row in self.partition.all_rows()
            if polled_at[row] != UNKNOWN
        ]
        places += [
            acked_at[row] << _ROW_BITS | row
            for row in self.committed
            if acked_at[row] not in (polled_at[row], UNKNOWN)
        ]
        places += [offset << _ROW_BITS | row for offset, row in self._named()]
        places.sort()
        offsets: list[int] | array[int] = [] if isinstance(polled_at, list) else array("q")
        rows, ends = array("I"), array("I")
        for offset, group in groupby(places, _offset_of):
            offsets.append(offset)
            here = [place & _ROW_MASK for place in group]
            if len(here) > 1:
                once = {values[row]: row for row in here}
                here = [once[value] for value in sorted(once, key=_numbers_first)]
            rows.extend(here)
            ends.append(len(rows))
        return offsets, rows, ends

    def _find_real_jumps(self) -> "array[int]":
        """Return the numbers of the partition's jumps that skipped a known offset or went back."""
        jumps, polled_at = self.partition.jumps, self._records.polled_at
        if not jumps:
            return array("I")
        following = [*self.offsets, UNKNOWN]
        here, there = (map(polled_at.__getitem__, jumps[column::4]) for column in range(2))
        after = map(following.__getitem__, map(bisect_right, repeat(self.offsets), here))
        return array("I", compress(count(), map(ne, after, there)))

    def offsets_of(self, value: Value) -> list[int]:
        """Return the offsets of a value; they are kept for a value with several rows."""
        if value in self._offsets_of:
            return self._offsets_of[value]
        if value in self.partition.moved or value in self.partition.sent_again:
            offsets = self._offsets_of[value] = self._find_offsets(value)
            return offsets
        row = self.partition.rows.get(value)
        return [] if row is None else self._offsets_of_row(row)

    def _offsets_of_row(self, row: int) -> list[int]:
        """Return the offsets at which a value with one row (as usual) was polled and acked."""
        records = self._records
        polled = records.polled_at[row]
        offset = None if records.outcomes[row] == NEVER_SENT else records.offset(row)
        if offset in (None, polled) or not self._reads.has_committed(self.partition.name, row):
            return [] if polled == UNKNOWN else [polled]
        return [offset] if polled == UNKNOWN else sorted((polled, offset))

    def _find_offsets(self, value: Value) -> list[int]:
        records = self._records
        offsets = {records.polled_at[row] for row in self.partition.rows_polled_of(value)}
        for row in self._history.sends_of(self.partition, value):
            offset = records.offset(row)
            if offset is not None and self._reads.has_committed(self.partition.name, row):
                offsets.add(offset)
        return sorted(offsets - {UNKNOWN})

    def acked_offsets(self) -> Iterator[tuple[Value, int]]:
        """Yield the values of committed sends and the offsets that their completions named."""
        for row in self.committed:
            offset = self._records.offset(row)
            if offset is not None:
                yield self._records.values[row], offset

    def between(self, one: int, other: int) -> tuple[int, int]:
        """Return the indices of the known offsets between two offsets, as a half-open range."""
        return bisect_right(self.offsets, one), bisect_left(self.offsets, other)

    def distance(self, one: int, other: int) -> int:
        """Return by how many known offsets *other* is ahead of *one*; both are known."""
        removed = self._history.removed
        ranks = None if removed is None else removed.ranks.get(self.partition.name)
        if ranks is not None:
            return ranks[other] - ranks[one]
        return bisect_left(self.offsets, other) - bisect_left(self.offsets, one)

    def first_offset(self, value: Value) -> int | None:
        """Return the lowest offset of a value, None if it is unknown."""
        offsets = self.offsets_of(value)
        return offsets[0] if offsets else None

    def _values(self, index: int) -> list[Value]:
        _, rows, ends = self._places
        begin = ends[index - 1] if index else 0
        return [self._records.values[row] for row in rows[begin : ends[index]]]

    def _named(self) -> Iterator[tuple[int, int]]:
        """Yield the offsets that unacked completions of committed sends named, with rows."""
        named_at = self._records.named_at
        if named_at:
            for row in self.committed:
                if row in named_at:
                    yield named_at[row], row

    def _jump(self, last: int, following: int, last_operation: int, next_operation: int) -> Jump:
        subscribed = next_operation < 0
        return Jump(
            process=self._history.processes[~next_operation if subscribed else next_operation],
            last=self._records.pair(last),
            next=self._records.pair(following),
            last_operation=last_operation,
            next_operation=~next_operation if subscribed else next_operation,
            subscribed=subscribed,
        )


def _offset_of(place: int) -> int:
    return place >> _ROW_BITS


def _numbers_first(value: Value) -> tuple[bool, Value]:
    return isinstance(value, str), value
