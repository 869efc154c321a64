"""Finds events of a trace by kind, partition and time, without searching the whole trace."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import chain
from operator import itemgetter
from typing import Any, Final, Protocol, TypeVar

from harrow.cluster_model import events
from harrow.cluster_model.events import Event
from harrow.cluster_model.packed_log import PackedRows, block_of, blocks_of
from harrow.cluster_model.row_groups import grouped
from harrow.cluster_model.trace import KIND_AT, TraceEvent

E = TypeVar("E", bound=Event)

_line_of: Final = itemgetter(0)
_PARTS_MAX: Final = 8
"""How many parts of a trace stay unpacked after look-ups of time spans.

A part has the rows of one kind of event in one block.
"""


class BlockReader(Protocol):
    """Reads a trace while it is indexed, because a long trace takes time to unpack."""

    @property
    def kinds(self) -> Collection[str]:
        """The names of the kinds of events that the reader needs."""

    def take(self, rows: Sequence[TraceEvent], /) -> None:
        """Read the next rows, which may lack other kinds of events."""


Rows = tuple[Sequence[int], Sequence[TraceEvent]]
"""The lines of rows, ascending, and the rows."""


class _Block(Protocol):
    """A block of a trace: the rows of each kind of event.

    A dict is such a block. For a packed block, each look-up of a kind unpacks its rows.
    """

    def __iter__(self) -> Iterator[str]: ...

    def __contains__(self, kind: object, /) -> bool: ...

    def __getitem__(self, kind: str, /) -> Rows: ...


class _PackedBlock:
    """A packed block. ``begin`` is the line of its first row."""

    def __init__(self, packed: PackedRows, begin: int) -> None:
        self._packed = packed
        self._begin = begin

    def __iter__(self) -> Iterator[str]:
        return iter(self._packed.parts)

    def __contains__(self, kind: object) -> bool:
        return kind in self._packed.parts

    def __getitem__(self, kind: str) -> Rows:
        begin = self._begin
        return [begin + position for position in self._packed.positions[kind]], self._packed.rows_of(kind)


def _plain_block(rows: Sequence[TraceEvent], begin: int) -> dict[str, Rows]:
    # Arrays take an eighth of the memory of lists of lines.
    return {
        kind: (array("I", lines), of_kind) for kind, (lines, of_kind) in grouped(rows, KIND_AT, begin).items()
    }


def _rows_of(kinds: Sequence[str], block: _Block) -> Iterable[tuple[int, TraceEvent]]:
    """Return the rows of some kinds in a block, in order, each after its line."""
    parts = [zip(*block[kind], strict=True) for kind in kinds if kind in block]
    return parts[0] if len(parts) == 1 else sorted(chain.from_iterable(parts), key=_line_of)


class TraceIndex:
    """The rows of each kind of event in a trace.

    A trace may have millions of rows, so most blocks of a long one are packed. Of these, a look-up
    unpacks only the kinds that it needs.
    """

    def __init__(self, trace: Sequence[TraceEvent], reader: BlockReader | None = None) -> None:
        """Index a trace, and give each block to a *reader*."""
        self._trace = trace
        blocks: list[_Block] = []
        self._blocks = blocks
        # Outages follow each other closely, and each looks up the same few kinds of events.
        self._part = lru_cache(_PARTS_MAX)(lambda block, kind: blocks[block][kind])
        self._last_blocks: dict[str, _Block] = {}
        self._lines_by_partition: dict[str, dict[str, array[int]]] = {}
        # The first line of each block and of a block after the last; the first time of each block.
        self._begins, self._times_us = array("I", (1,)), array("q")
        kinds = () if reader is None else tuple(reader.kinds)
        for rows in blocks_of(trace):
            begin = self._begins[-1]
            block: _Block
            if isinstance(rows, PackedRows):
                block, size, first = _PackedBlock(rows, begin), rows.size, rows.first
                read: Sequence[TraceEvent] = [row for _, row in _rows_of(kinds, block)]
            else:
                block, size, first, read = _plain_block(rows, begin), len(rows), rows[0], rows
            self._blocks.append(block)
            self._begins.append(begin + size)
            self._times_us.append(first[0])
            self._last_blocks |= dict.fromkeys(block, block)
            if reader is not None:
                reader.take(read)

    def has(self, *kinds: type[Event]) -> bool:
        """Return whether an event of one of these kinds happened, which is cheap to ask."""
        return any(kind.name in self._last_blocks for kind in kinds)

    def raw_events(self, *kinds: type[Event]) -> Iterator[tuple[int, TraceEvent]]:
        """Yield the events of some kinds as the tuples that the trace stores, each with its line.

        For kinds with very many events this is much cheaper than objects.
        """
        names = [kind.name for kind in kinds if kind.name in self._last_blocks]
        return chain.from_iterable(map(partial(_rows_of, names), self._blocks if names else ()))

    def last_us(self, *kinds: type[Event]) -> int | None:
        """Return when the last event of some kinds happened, None if none did."""
        names = [kind.name for kind in kinds if kind.name in self._last_blocks]
        return max((self._last_blocks[name][name][1][-1][0] for name in names), default=None)

    def during(self, start_us: int, end_us: int, kind: type[E], partition: str) -> Sequence[E]:
        """Return the events of one kind and partition within a time span, including its ends.

        This unpacks only events of this kind, so it suits kinds with very many events.
        """
        by_partition = self._lines_by_partition.get(kind.name)
        if by_partition is None:
            place = [*events.event_fields(kind.name)].index("partition") + 2
            by_partition = self._lines_by_partition[kind.name] = {}
            for number, event in self.raw_events(kind):
                by_partition.setdefault(event[place], array("I")).append(number)
        numbers = by_partition.get(partition, array("I"))
        found: list[TraceEvent] = []
        first = max(0, bisect_left(self._times_us, start_us) - 1)
        for block in range(first, bisect_right(self._times_us, end_us)):
            begin, end = self._begins[block], self._begins[block + 1]
            within = numbers[bisect_left(numbers, begin) : bisect_left(numbers, end)]
            if within:
                lines, rows = self._part(block, kind.name)
                found += [rows[bisect_left(lines, number)] for number in within]
        make: Any = kind
        return [make(event[0], *event[2:]) for event in found if start_us <= event[0] <= end_us]

    def position_at(self, at_us: int) -> int:
        """Return how many events precede an instant."""
        block = max(0, bisect_left(self._times_us, at_us) - 1)
        low, high = self._begins[block] - 1, self._begins[min(block + 1, len(self._times_us))] - 1
        begin, rows = block_of(self._trace, low)
        return begin + bisect_left(rows, at_us, low - begin, high - begin, key=itemgetter(0))
