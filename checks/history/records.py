"""Stores what rules need of a history: sends, polled records, jumps of consumers, transactions.

A history can have millions of records, so a record is not an object but a row: `Records` has a
column for each property. A `SendRecord` is created only for a send that is accessed.
"""

from array import array
from collections import deque
from collections.abc import Iterator, MutableSequence, Sequence
from dataclasses import field
from struct import pack
from typing import Final, NamedTuple

from harrow.cluster_model.history import FAIL, INFO, OK
from harrow.cluster_model.lazy_dataclass import dataclass

Value = str | int
"""The value of a record, which is unique in its partition."""

Pair = tuple[int, Value]
"""An offset and the value at it."""

UNKNOWN: Final = -1
"""Stands for a position or an offset that does not exist."""

NEVER_SENT: Final = 0
PENDING: Final = 1
ACKED: Final = 2
FAILED: Final = 3
UNSURE: Final = 4
"""The outcomes of sends, in the column ``outcomes``."""

OUTCOMES: Final = {OK: ACKED, FAIL: FAILED, INFO: UNSURE}

_ROWS_AT_ONCE: Final = 1024
_NEWEST_MAX: Final = 16 * _ROWS_AT_ONCE


def append_ints(column: "array[int]", values: Sequence[int]) -> None:
    """Append integers to an array. For many of them, `array.extend` takes several times as long."""
    column.frombytes(pack(f"{len(values)}{column.typecode}", *values))


class Records:
    """All records of a history, by row. A row is one value of a partition: its send and its poll.

    Usually a value is sent once and is at one offset. Each further send and each further offset of
    the value gets another row.

    ``invoked`` and ``completed`` are positions in the history, ``acked_at`` is the offset in the
    ack. ``named_at`` has the offsets that other completions named. ``polled_at`` is the offset at
    which polls returned the value, ``polled_by`` the position of the last ok operation that polled
    it.

    Arrays are compact, but slow to write. So the columns of the newest rows are lists, until `pack`
    appends them to the arrays. An operation usually concerns newest rows.
    """

    __slots__ = (
        *("_acked_at", "_completed", "_invoked", "_outcomes", "_packed", "_polled_at", "_polled_by"),
        *("acked_at", "completed", "invoked", "named_at"),
        *("outcomes", "polled_at", "polled_by", "values"),
    )

    def __init__(self) -> None:
        self.values: list[Value] = []
        self.invoked = array("q")
        self.completed = array("q")
        self.polled_by = array("q")
        self.acked_at: MutableSequence[int] = array("q")
        self.polled_at: MutableSequence[int] = array("q")
        self.named_at: dict[int, int] = {}
        self.outcomes = bytearray()
        self._packed = 0
        self._invoked: list[int] = []
        self._completed: list[int] = []
        self._polled_by: list[int] = []
        self._acked_at: list[int] = []
        self._polled_at: list[int] = []
        self._outcomes: list[int] = []

    def add(self, value: Value) -> int:
        """Add a record without a send or a poll, and return its row."""
        row = len(self.values)
        if row - self._packed == len(self._outcomes):
            if len(self._outcomes) >= _NEWEST_MAX:
                self.pack()
            unknown = [UNKNOWN] * _ROWS_AT_ONCE
            for column in (self._invoked, self._completed, self._polled_by, self._acked_at, self._polled_at):
                column.extend(unknown)
            self._outcomes += [NEVER_SENT] * _ROWS_AT_ONCE
        self.values.append(value)
        return row

    def pack(self) -> None:
        """Complete the columns that can be read."""
        count = len(self.values) - self._packed
        append_ints(self.invoked, self._invoked[:count])
        append_ints(self.completed, self._completed[:count])
        append_ints(self.polled_by, self._polled_by[:count])
        for column, newest in ((self.acked_at, self._acked_at), (self.polled_at, self._polled_at)):
            if isinstance(column, array):
                append_ints(column, newest[:count])
            else:
                column.extend(newest[:count])
        self.outcomes.extend(self._outcomes[:count])
        self._packed = len(self.outcomes)
        for newest in (self._invoked, self._completed, self._polled_by, self._acked_at, self._polled_at):
            newest.clear()
        self._outcomes.clear()

    def invoke(self, row: int, position: int) -> None:
        """Note the invocation of a record's send."""
        place = row - self._packed
        if place >= 0:
            self._invoked[place] = position
            self._outcomes[place] = PENDING
        else:
            self.invoked[row] = position
            self.outcomes[row] = PENDING

    def complete(self, row: int, position: int, outcome: int, offset: int | None) -> None:
        """Note the completion of a record's send, and the offset that it named."""
        place = row - self._packed
        if place >= 0:
            self._completed[place] = position
            self._outcomes[place] = outcome
        else:
            self.completed[row] = position
            self.outcomes[row] = outcome
        if offset is None:
            return
        if outcome != ACKED:
            self.named_at[row] = offset
        elif place >= 0:
            self._acked_at[place] = offset
        else:
            self.acked_at[row] = offset

    def outcome(self, row: int) -> int:
        """Return the outcome of a record's send so far."""
        place = row - self._packed
        return self._outcomes[place] if place >= 0 else self.outcomes[row]

    def invocation(self, row: int) -> int:
        """Return the position at which the send of a record was invoked."""
        place = row - self._packed
        return self._invoked[place] if place >= 0 else self.invoked[row]

    def offset_polled(self, row: int) -> int:
        """Return the offset at which polls returned a record so far."""
        place = row - self._packed
        return self._polled_at[place] if place >= 0 else self.polled_at[row]

    def find_at(self, row: int, offset: int) -> None:
        """Note the offset at which polls return a record."""
        place = row - self._packed
        if place >= 0:
            self._polled_at[place] = offset
        else:
            self.polled_at[row] = offset

    def poll(self, row: int, position: int) -> bool:
        """Note an ok operation that polled a record, and return whether it is the first one."""
        place = row - self._packed
        if place >= 0:
            is_first = self._polled_by[place] == UNKNOWN
            self._polled_by[place] = position
        else:
            is_first = self.polled_by[row] == UNKNOWN
            self.polled_by[row] = position
        return is_first

    def offset(self, row: int) -> int | None:
        """Return the offset that the completion of a send named, None if it named none."""
        acked_at = self.acked_at[row]
        return acked_at if acked_at != UNKNOWN else self.named_at.get(row)

    def pair(self, row: int) -> Pair:
        """Return the offset at which polls saw a record, and its value."""
        return self.polled_at[row], self.values[row]

    def take_any_offset(self) -> None:
        """Make room for offsets of more than 64 bits: Kafka has none, but a history may."""
        if not isinstance(self.acked_at, list):
            self.acked_at = list(self.acked_at)
            self.polled_at = list(self.polled_at)


@dataclass(slots=True)
class SendRecord:
    """One send: its invocation and its outcome.

    ``outcome`` is ``ok``, ``fail`` or ``info``. ``offset`` is the offset in the completion, None if
    the completion has none. ``invoked`` and ``completed`` are positions in the history, -1 if they
    are missing.
    """

    process: int
    partition: str
    value: Value
    invoked: int
    invoked_us: int
    outcome: str | None = None
    offset: int | None = None
    completed: int = UNKNOWN
    completed_us: int | None = None


@dataclass(slots=True, eq=False)
class Transaction:
    """A completed operation with sends that is a transaction, by its name or its several parts.

    ``sends`` are (partition, row) pairs. ``reads`` has the (offset, value) pairs that it polled, by
    partition, in the order of reading. ``committed`` is None until a rule has computed it.
    """

    process: int
    position: int
    outcome: str
    committed: bool | None = None
    sends: list[tuple[str, int]] = field(default_factory=list)
    reads: dict[str, list[Pair]] = field(default_factory=dict)


class Jump(NamedTuple):
    """A process did not continue at the next offset, but jumped from one pair to another.

    ``last_operation`` and ``next_operation`` are the positions of the operations that polled the
    pairs, equal for a jump within one operation. ``subscribed`` distinguishes a consumer of a group
    from one with assigned partitions.
    """

    process: int
    last: Pair
    next: Pair
    last_operation: int
    next_operation: int
    subscribed: bool

    @property
    def internal(self) -> bool:
        return self.last_operation == self.next_operation


@dataclass(slots=True, eq=False)
class ProducerSession:
    """The sends of a process to a partition, as rows in the order of their invocations."""

    process: int
    partition: str
    rows: "array[int]" = field(default_factory=lambda: array("I"))


@dataclass(slots=True, eq=False)
class PartitionHistory:
    """The history of one partition, in rows of `Records`.

    ``rows`` has the first row of each value. If a value was sent several times, ``sent_again`` has
    the rows of all its sends, and ``open_sends`` the rows of each process whose sends may still be
    open. ``moved`` has the rows of further offsets at which a value was polled.

    ``acked``, ``failed`` and ``unsure`` are sends in the order of their completions. ``polled`` are
    the records of ok polls, in the order in which they were first polled. ``polled_in_vain`` has,
    for a row, the position of the last poll in an operation that failed or has an unknown outcome.

    ``is_polled_again`` says whether polls returned a record more than once.

    ``jumps`` has four numbers for each jump: the rows of two records that a process polled one
    after the other, and the positions of their operations; for a subscribed consumer, the second
    position is inverted (``~``). When a jump is stored, it is unknown whether there are records
    between the two.

    The partition was read dry if an ok poll of a process that reads it returned nothing of it. For
    the last such poll, ``read_dry`` is the position at which the poll was invoked, and
    ``read_dry_by`` the position at which it completed (-1: there is no such poll). ``aborted`` are
    the rows of the sends of failed transactions.
    """

    name: str
    rows: dict[Value, int] = field(default_factory=dict)
    sent_again: dict[Value, list[int]] = field(default_factory=dict)
    open_sends: dict[tuple[Value, int], deque[int]] = field(default_factory=dict)
    moved: dict[Value, dict[int, int]] = field(default_factory=dict)
    acked: "array[int]" = field(default_factory=lambda: array("I"))
    failed: "array[int]" = field(default_factory=lambda: array("I"))
    unsure: "array[int]" = field(default_factory=lambda: array("I"))
    polled: "array[int]" = field(default_factory=lambda: array("I"))
    polled_in_vain: dict[int, int] = field(default_factory=dict)
    jumps: "array[int]" = field(default_factory=lambda: array("q"))
    aborted: dict[int, None] = field(default_factory=dict)
    is_polled_again: bool = False
    read_dry: int = UNKNOWN
    read_dry_by: int = UNKNOWN

    def rows_polled_of(self, value: Value) -> Iterator[int]:
        """Yield the rows that polls may have returned for a value, with further offsets last."""
        if value in self.rows:
            yield self.rows[value]
            yield from self.moved.get(value, {}).values()

    def row_polled_at(self, offset: int, value: Value, polled_at: Sequence[int]) -> int | None:
        """Return the row of a value that was polled at an offset, given the column *polled_at*."""
        row = self.rows.get(value)
        if row is None or polled_at[row] == offset:
            return row
        return self.moved.get(value, {}).get(offset)

    def all_rows(self) -> Iterator[int]:
        yield from self.rows.values()
        for rows in self.sent_again.values():
            yield from rows[1:]
        for moved in self.moved.values():
            yield from moved.values()
