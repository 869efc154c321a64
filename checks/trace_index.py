"""Finds events of a trace by kind, partition and time, without searching the whole trace."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from operator import itemgetter, methodcaller
from typing import Any, Final, Protocol, TypeVar

from harrow.cluster_model import events
from harrow.cluster_model.events import Event
from harrow.cluster_model.packed_log import PackedRows, block_of, blocks_of, rows_at
from harrow.cluster_model.row_groups import grouped
from harrow.cluster_model.trace import KIND_AT, TraceEvent

E = TypeVar("E", bound=Event)

_line_of: Final = itemgetter(0)


class BlockReader(Protocol):
    """Reads a trace while it is indexed, because a long trace takes time to unpack."""

    @property
    def kinds(self) -> Collection[str]:
        """The names of the kinds of events that the reader needs."""

    def take(self, rows: Sequence[TraceEvent], /) -> None:
        """Read the next rows, which may lack other kinds of events."""


class _PlainBlock:
    """A block of a trace that is not packed. ``begin`` is the line of its first row."""

    def __init__(self, rows: Sequence[TraceEvent], begin: int) -> None:
        self.begin = begin
        self.end = begin + len(rows)
        self.at_us: int = rows[0][0]
        self._rows = rows
        # Arrays take an eighth of the memory of lists of lines.
        self._groups = {
            kind: (array("I", lines), of_kind)
            for kind, (lines, of_kind) in grouped(rows, KIND_AT, begin).items()
        }

    def kinds(self) -> Iterable[str]:
        return self._groups

    def last_of(self, kind: str) -> tuple[int, TraceEvent]:
        """Return the last row of a kind, after its line."""
        lines, rows = self._groups[kind]
        return lines[-1], rows[-1]

    def rows_of(self, kinds: Sequence[str]) -> Iterable[tuple[int, TraceEvent]]:
        """Return the rows of some kinds, in order, each after its line."""
        parts = [zip(*self._groups[kind], strict=True) for kind in kinds if kind in self._groups]
        return parts[0] if len(parts) == 1 else sorted(chain.from_iterable(parts), key=_line_of)

    def rows_including(self, kinds: Sequence[str]) -> Iterable[tuple[int, TraceEvent]]:
        """Return at least the rows of some kinds, like `rows_of`: a plain block returns all."""
        return enumerate(self._rows, self.begin)

    def events_including(self, kinds: Sequence[str]) -> Sequence[TraceEvent]:
        """Return at least the rows of some kinds, in order."""
        return self._rows


class _PackedBlock:
    """A packed block of a trace, with the methods of `_PlainBlock`. Each call unpacks its rows."""

    def __init__(self, packed: PackedRows, begin: int) -> None:
        self.begin = begin
        self.end = begin + sum(map(len, packed.positions.values()))
        self.at_us: int = packed.first[0]
        self._packed = packed

    def kinds(self) -> Iterable[str]:
        return self._packed.parts

    def last_of(self, kind: str) -> tuple[int, TraceEvent]:
        return self.begin + self._packed.positions[kind][-1], self._packed.rows_of(kind)[-1]

    def rows_of(self, kinds: Sequence[str]) -> Iterable[tuple[int, TraceEvent]]:
        positions, rows = self._packed.positions_and_rows(kinds)
        begin = self.begin
        return zip([begin + position for position in positions], rows, strict=True)

    def rows_including(self, kinds: Sequence[str]) -> Iterable[tuple[int, TraceEvent]]:
        return self.rows_of(kinds)

    def events_including(self, kinds: Sequence[str]) -> Sequence[TraceEvent]:
        return self._packed.positions_and_rows(kinds)[1]


class TraceIndex:
    """The rows of each kind of event in a trace.

    A trace may have millions of rows, so most blocks of a long one are packed. Of these, a look-up
    unpacks only the kinds that it needs.
    """

    def __init__(self, trace: Sequence[TraceEvent], reader: BlockReader | None = None) -> None:
        """Index a trace, and give each block to a *reader*."""
        self._trace = trace
        self._blocks: list[_PlainBlock | _PackedBlock] = []
        self._last_blocks: dict[str, _PlainBlock | _PackedBlock] = {}
        self._lines_by_partition: dict[str, dict[str, array[int]]] = {}
        # The first line of each block and of a block after the last; the first time of each block.
        self._begins, self._times_us = array("I", (1,)), array("q")
        kinds = () if reader is None else tuple(reader.kinds)
        for rows in blocks_of(trace):
            begin = self._begins[-1]
            block = _PackedBlock(rows, begin) if isinstance(rows, PackedRows) else _PlainBlock(rows, begin)
            self._blocks.append(block)
            self._begins.append(block.end)
            self._times_us.append(block.at_us)
            for kind in block.kinds():
                self._last_blocks[kind] = block
            if reader is not None:
                reader.take(block.events_including(kinds))

    def has(self, *kinds: type[Event]) -> bool:
        """Return whether an event of one of these kinds happened, which is cheap to ask."""
        return any(kind.name in self._last_blocks for kind in kinds)

    def raw_events(self, *kinds: type[Event]) -> Iterator[tuple[int, TraceEvent]]:
        """Yield the events of some kinds as the tuples that the trace stores, each with its line.

        For kinds with very many events this is much cheaper than objects.
        """
        names = [kind.name for kind in kinds if kind.name in self._last_blocks]
        return chain.from_iterable(map(methodcaller("rows_of", names), self._blocks if names else ()))

    def raw_events_including(self, kinds: Sequence[str]) -> Iterator[tuple[int, TraceEvent]]:
        """Yield at least the events of the *kinds* with these names, like `raw_events`.

        This suits readers who ignore other events: plain blocks are neither sorted nor filtered.
        """
        return chain.from_iterable(map(methodcaller("rows_including", kinds), self._blocks))

    def last_us(self, *kinds: type[Event]) -> int | None:
        """Return when the last event of some kinds happened, None if none did."""
        names = [kind.name for kind in kinds]
        last = [self._last_blocks[name].last_of(name) for name in names if name in self._last_blocks]
        return max(last, key=_line_of)[1][0] if last else None

    def during(self, start_us: int, end_us: int, kind: type[E], partition: str) -> Sequence[E]:
        """Return the events of one kind and partition within a time span, including its ends.

        This reads only these events, so it suits kinds with very many events.
        """
        by_partition = self._lines_by_partition.get(kind.name)
        if by_partition is None:
            place = [*events.event_fields(kind.name)].index("partition") + 2
            by_partition = self._lines_by_partition[kind.name] = {}
            for number, event in self.raw_events(kind):
                by_partition.setdefault(event[place], array("I")).append(number)
        numbers = by_partition.get(partition, array("I"))
        first = max(0, bisect_left(self._times_us, start_us) - 1)
        end = bisect_right(self._times_us, end_us)
        within = numbers[bisect_left(numbers, self._begins[first]) : bisect_left(numbers, self._begins[end])]
        make: Any = kind
        return [
            make(event[0], *event[2:])
            for _, event in rows_at(self._trace, within, first=1)
            if start_us <= event[0] <= end_us
        ]

    def position_at(self, at_us: int) -> int:
        """Return how many events precede an instant."""
        block = max(0, bisect_left(self._times_us, at_us) - 1)
        low, high = self._begins[block] - 1, self._begins[min(block + 1, len(self._times_us))] - 1
        begin, rows = block_of(self._trace, low)
        return begin + bisect_left(rows, at_us, low - begin, high - begin, key=itemgetter(0))
