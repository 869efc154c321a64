"""Finds events of a trace by kind, partition and time, without searching the whole trace."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, pairwise
from operator import itemgetter
from typing import Any, Final, TypeVar

from harrow.checks.history.records import append_ints
from harrow.cluster_model import events
from harrow.cluster_model.events import Event
from harrow.cluster_model.packed_log import block_of, blocks_of, is_packed, rows_at
from harrow.cluster_model.trace import TraceEvent

E = TypeVar("E", bound=Event)

_Lines = dict[str, "array[int]"]
"""Ascending line numbers of the trace, grouped by a name."""

_line_of: Final = itemgetter(0)


class TraceIndex:
    """The lines of each kind of event in a trace.

    A trace may have millions of events, so only their line numbers are stored, and times are
    indexed by block only. Events are kept as well if the trace is in memory as a whole, or if their
    kind is rare: blocks have at most *rare_max* of them on average. Otherwise, nearly every block
    would be unpacked for each rule that reads a few of them.
    """

    def __init__(
        self,
        trace: Sequence[TraceEvent],
        rare_max: int = 64,
        on_block: Callable[[Sequence[TraceEvent]], None] = lambda _: None,
    ) -> None:
        self._trace = trace
        self._rare_max = rare_max if is_packed(trace) else len(trace)
        self._lines: _Lines = {}
        self._kept: dict[str, list[TraceEvent]] = {}
        self._lines_by_partition: dict[str, _Lines] = {}
        # The first line of each block and of a block after the last; the first time of each block.
        self._begins, self._times_us = array("I", (1,)), array("q")
        for rows in blocks_of(trace):
            self._add(rows)
            on_block(rows)

    def _add(self, rows: Sequence[TraceEvent]) -> None:
        # Lists of the block's lines are several times as fast as appending each line to an array.
        lines: dict[str, tuple[list[int], list[TraceEvent]]] = {}
        number = self._begins[-1]
        kept_max = self._rare_max * len(self._begins)
        for row in rows:
            of_kind = lines.get(row[1])
            if of_kind is None:
                of_kind = lines[row[1]] = [], []
            of_kind[0].append(number)
            of_kind[1].append(row)
            number += 1
        for name, (numbers, events_of_kind) in lines.items():
            all_lines = self._lines.get(name)
            if all_lines is None:
                all_lines = self._lines[name] = array("I")
                self._kept[name] = []
            append_ints(all_lines, numbers)
            kept = self._kept.get(name)
            if kept is not None and len(kept) + len(numbers) <= kept_max:
                kept += events_of_kind
            elif kept is not None:
                del self._kept[name]
        self._times_us.append(rows[0][0])
        self._begins.append(number)

    def has(self, *kinds: type[Event]) -> bool:
        """Return whether an event of one of these kinds happened, which is cheap to ask."""
        return any(kind.name in self._lines for kind in kinds)

    def raw_events(self, *kinds: type[Event]) -> Iterator[tuple[int, TraceEvent]]:
        """Yield the events of some kinds as the tuples that the trace stores, each with its line.

        For kinds with very many events this is much cheaper than objects.
        """
        names = [kind.name for kind in kinds if kind.name in self._lines]
        if self._kept.keys() >= {*names}:
            kept = [zip(self._lines[name], self._kept[name], strict=True) for name in names]
            return kept[0] if len(kept) == 1 else iter(sorted(chain.from_iterable(kept), key=_line_of))
        return chain.from_iterable(self._merged([self._lines[name] for name in names]))

    def _merged(self, lines: Sequence["array[int]"]) -> Iterator[Iterable[tuple[int, TraceEvent]]]:
        """Yield the events at the lines of several kinds, block by block: there may be millions."""
        for begin, end in pairwise(self._begins):
            parts = [each[bisect_left(each, begin) : bisect_left(each, end)] for each in lines]
            numbers = parts[0].tolist() if len(parts) == 1 else sorted(chain.from_iterable(parts))
            if numbers:
                position, rows = block_of(self._trace, begin - 1)
                first = position + 1
                yield zip(numbers, map(rows.__getitem__, [number - first for number in numbers]), strict=True)

    def last_us(self, *kinds: type[Event]) -> int | None:
        """Return when the last event of some kinds happened, None if none did."""
        lines = [self._lines[kind.name][-1] for kind in kinds if kind.name in self._lines]
        at_us: int | None = self._trace[max(lines) - 1][0] if lines else None
        return at_us

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

    def blocks(self) -> Iterator[tuple[int, Sequence[TraceEvent]]]:
        """Yield the blocks of the trace, each after the line of its first event."""
        return zip(self._begins, blocks_of(self._trace), strict=False)
