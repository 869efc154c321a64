"""Reduces a history on the driver, from the facts that tasks collected.

Every part of the history reports its own findings (`split_facts`), then its records are compared by
offset and by value (`joined_facts`). Last, the events of the suspects are collected.
"""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from itertools import pairwise
from typing import Final, Protocol

import numpy as np

from harrow.campaigns.large_histories.byte_block import Ints
from harrow.campaigns.large_histories.events import NONE
from harrow.campaigns.large_histories.facts import NO_INTS, concatenation, key_of
from harrow.campaigns.large_histories.history_outline import HistoryOutline
from harrow.campaigns.large_histories.joined_facts import Jumps, RangeFacts, ValueFacts
from harrow.campaigns.large_histories.numbering import Numbering, is_among, sorted_set
from harrow.campaigns.large_histories.reduction import (
    EVENTS_MAX,
    SENDS_IN_TURN,
    Reduction,
    TooManySuspectsError,
    ranks_of,
)
from harrow.campaigns.large_histories.split_facts import EventQuery, FoundEvents, SplitSummary
from harrow.campaigns.large_histories.suspects import find_suspects
from harrow.campaigns.large_histories.tables import ACKED, POLLED, SUSPECTS, UNSURE, TableEngine, exists
from harrow.checks.history.removed_records import RemovedRecords
from harrow.checks.history.witness import SKIPPED_SHOWN

JUMPS_MAX: Final = 200_000

WHOLE_MAX: Final = 100_000
"""If the partitions with transactions have more events, tables show which of them are suspects."""


class TooManyJumpsError(Exception):
    """Consumers jump so often that tasks cannot compare all jumps."""


class Stages(Protocol):
    """Runs the stages of a reduction, each as many tasks."""

    def read(self) -> Sequence[SplitSummary] | None:
        """Read the parts of the history; return None if it is unusual."""

    def compare(self, jumps: Jumps, whole: Ints, with_sends: Ints) -> Iterable[RangeFacts | ValueFacts]:
        """Compare records by offset and by value."""

    def tables(
        self, partitions: Ints, known_suspects: Ints, events: int
    ) -> AbstractContextManager[TableEngine]:
        """Put the *events* of some *partitions* into tables."""

    def find(self, query: EventQuery) -> Sequence[FoundEvents]:
        """Find the events of suspects."""


def reduce_by_ranges(stages: Stages, *, events_max: int = EVENTS_MAX) -> Reduction | None:
    """Return the reduction of a history, or None if it has to be reduced in another way.

    Raises:
        TooIrregularError: Too little of the history is plain.
        TooManySuspectsError: More than *events_max* events would remain.
        TooManyJumpsError: Consumers jump too often.

    """
    summaries = stages.read()
    if summaries is None:
        return None
    in_order = sorted(summaries, key=lambda summary: (summary.first_position, summary.split))
    with_lines = [summary for summary in in_order if summary.lines]
    for summary, following in pairwise(with_lines):
        if following.first_position <= summary.last_position:
            return None  # files whose operations alternate
    return _RangeReduction(stages, with_lines or in_order, events_max).reduce()


class _RangeReduction:
    def __init__(self, stages: Stages, summaries: Sequence[SplitSummary], events_max: int) -> None:
        self._stages = stages
        self._summaries = summaries
        self._events_max = events_max
        self._names: dict[int, str] = {}
        for summary in summaries:
            self._names.update(summary.partitions)
        whole = sorted_set(concatenation(summary.whole for summary in summaries))
        self._whole_size = sum(
            summary.sizes.get(partition, 0) for partition in whole.tolist() for summary in summaries
        )
        is_large = self._whole_size > WHOLE_MAX
        self._table_partitions: Ints = whole if is_large else NO_INTS
        self._whole: Ints = NO_INTS if is_large else whole
        self._suspects: list[Ints] = [summary.suspects for summary in summaries]
        self._pivots: list[Ints] = []
        self._ranks: dict[str, dict[int, int]] = {}
        self._neighbours = _SessionNeighbours(summaries)
        self._sends_in_turn = self._neighbours.are_in_turn
        self._outline = HistoryOutline()
        self._numbering = Numbering()

    def reduce(self) -> Reduction:
        self._follow_outline()
        self._suspects.append(self._neighbours.unordered())
        jumps = self._jumps()
        with_sends = sorted_set(concatenation(summary.with_sends for summary in self._summaries))
        ranges: dict[int, list[RangeFacts]] = {}
        values: list[ValueFacts] = []
        whole = concatenation([self._whole, self._table_partitions])
        for facts in self._stages.compare(jumps, whole, with_sends):
            if isinstance(facts, RangeFacts):
                ranges.setdefault(facts.partition, []).append(facts)
            else:
                values.append(facts)
        for partition, facts_of in ranges.items():
            facts_of.sort(key=lambda facts: facts.number)
            self._note_ranges(facts_of)
            if not np.any(whole == partition):
                self._note_jumps(partition, facts_of, jumps)
        self._note_values(values)
        self._search_tables()
        return self._reduction(self._events(), values)

    def _follow_outline(self) -> None:
        for summary in self._summaries:
            events = summary.outline
            has_one = events.partition != NONE
            numbers = events.partition.copy()
            numbers[has_one], _ = self._numbering.add(events.partition[has_one])
            self._outline.add(events.in_partitions(numbers))
        hashes = self._numbering.keys()
        self._suspects += [key_of(hashes[partition], value) for partition, value in self._outline.firsts]

    def _jumps(self) -> Jumps:
        """Return the jumps of consumers within parts of the history, and between them."""
        process, partition, first, last = (
            concatenation(column)
            for column in zip(*(summary.readers for summary in self._summaries), strict=True)
        )
        order = np.lexsort((np.arange(len(process)), partition, process))
        process, partition, first, last = process[order], partition[order], first[order], last[order]
        follows = (process[1:] == process[:-1]) & (partition[1:] == partition[:-1])
        follows &= first[1:] != last[:-1] + 1
        within = [summary.jumps for summary in self._summaries]
        columns = [
            concatenation([*(part[at] for part in within), between[follows]])
            for at, between in enumerate((partition[1:], last[:-1], first[1:]))
        ]
        if len(columns[0]) > JUMPS_MAX:
            raise TooManyJumpsError
        found = np.unique(np.stack(columns, axis=1), axis=0)
        return Jumps(found[:, 0], found[:, 1], found[:, 2])

    def _note_ranges(self, ranges: Sequence[RangeFacts]) -> None:
        self._suspects += [facts.suspects for facts in ranges]
        self._pivots += [facts.pivots for facts in ranges]
        polled = [facts.last_polled for facts in ranges if facts.last_polled != NONE]
        self._suspects.append(np.array(polled[-1:], np.int64))

    def _note_jumps(self, partition: int, ranges: Sequence[RangeFacts], jumps: Jumps) -> None:
        """Suspect records before and after a real jump, and some that it skipped."""
        is_mine = jumps.partition == partition
        if not is_mine.any():
            return
        bases = np.cumsum([0, *(facts.count for facts in ranges)])
        offsets = concatenation(facts.ends[0] for facts in ranges)
        ranks = concatenation(facts.ends[1] + base for facts, base in zip(ranges, bases, strict=False))
        here, there = jumps.here[is_mine], jumps.there[is_mine]
        before, after = np.searchsorted(offsets, here), np.searchsorted(offsets, there)
        is_real = (there <= here) | (ranks[after] - ranks[before] > 1)
        here, there, before, after = here[is_real], there[is_real], before[is_real], after[is_real]
        noted = self._ranks.setdefault(self._names[partition], {})
        for offset, end in ((here, before), (there, after)):
            noted.update(zip(offset.tolist(), ranks[end].tolist(), strict=True))
        self._suspects.append(_beside_jumps(ranges, here, there))

    def _note_values(self, values: Sequence[ValueFacts]) -> None:
        self._suspects += [facts.suspects for facts in values]
        self._pivots += [facts.pivots for facts in values]
        misrouted = concatenation(facts.misrouted for facts in values)
        self._suspects.append(misrouted)
        twice = [facts.sent_twice for facts in values if facts.sent_twice is not None]
        if twice:
            self._suspects.append(min(twice, key=lambda pair: pair[0])[1])

    def _search_tables(self) -> None:
        """Find suspects in partitions with transactions, if they are too large to remain whole."""
        if not len(self._table_partitions):
            return
        known_suspects = sorted_set(concatenation([*self._suspects, *self._pivots]))
        hashes = {name: partition for partition, name in self._names.items()}
        with self._stages.tables(self._table_partitions, known_suspects, self._whole_size) as tables:
            find_suspects(tables)
            [(count,)] = tables.rows(f"select count(*) from {SUSPECTS}")
            self._check(count)
            for partition, value in tables.stream(f"select partition, value from {SUSPECTS}"):
                self._suspects.append(key_of(hashes[partition], np.array([value], np.int64)))
            self._ranks.update(ranks_of(tables))
            self._sends_in_turn |= exists(tables, SENDS_IN_TURN)

    def _events(self) -> list[FoundEvents]:
        """Return the events of all suspects, and of the sends beside those that have no order."""
        pivots = sorted_set(concatenation(self._pivots))
        keys = sorted_set(concatenation([*self._suspects, pivots]))
        self._check(len(keys))
        found = list(self._stages.find(EventQuery(keys, pivots, self._whole, self._table_partitions)))
        beside = sorted_set(
            concatenation([*(part.neighbours for part in found), self._neighbours.beside_edges(found)])
        )
        beside = beside[~is_among(beside, keys)]
        if len(beside):
            found += self._stages.find(EventQuery(beside))
        self._check(sum(len(part.key) for part in found))
        return found

    def _check(self, events: int) -> None:
        if events > self._events_max:
            raise TooManySuspectsError(events, self._events_max)

    def _reduction(self, found: Sequence[FoundEvents], values: Sequence[ValueFacts]) -> Reduction:
        places: dict[int, set[tuple[str, int]]] = {
            position: set() for position in self._outline.kept_positions()
        }
        for part in found:
            names = [self._names[number] for number in part.hashes.tolist()]
            for position, partition, place in zip(
                part.position.tolist(), part.partition.tolist(), part.place.tolist(), strict=True
            ):
                places.setdefault(position, set()).add((names[partition], place))
        keys, kinds = concatenation(part.key for part in found), concatenation(part.kind for part in found)
        hashes = self._numbering.keys().tolist()
        read_dry = self._outline.dry_polls.finish()
        summaries = self._summaries
        removed = RemovedRecords(
            lines=sum(summary.lines for summary in summaries),
            processes=len(sorted_set(concatenation(summary.processes for summary in summaries))),
            sent=sum(facts.sent for facts in values) - len(sorted_set(keys[kinds <= UNSURE])),
            acked=sum(facts.acked for facts in values) - len(sorted_set(keys[kinds == ACKED])),
            polled=sum(facts.polled for facts in values) - len(sorted_set(keys[kinds == POLLED])),
            ranks=self._ranks,
            read_dry={self._names[hashes[number]]: polled for number, polled in read_dry.items()},
            sends_in_turn=self._sends_in_turn or any(summary.sends_in_turn for summary in summaries),
            polls_in_turn=self._outline.dry_polls.are_in_turn,
            polls_together=any(summary.polls_together for summary in summaries),
        )
        return Reduction(
            places,
            sum(summary.passed_over for summary in summaries),
            any(summary.names_transactions_sends for summary in summaries),
            removed,
        )


def _beside_jumps(ranges: Sequence[RangeFacts], here: Ints, there: Ints) -> Ints:
    """Return the keys of the ends of jumps, and of the first records that each jump skipped."""
    near = [records for facts in ranges for records in (facts.near, facts.first)]
    offsets, keys = (concatenation(column) for column in zip(*near, strict=True))
    offsets, firsts = np.unique(offsets, return_index=True)
    keys = keys[firsts]
    at = np.searchsorted(offsets, here)
    skipped = at[:, None] + np.arange(1, SKIPPED_SHOWN + 1)
    limit = np.searchsorted(offsets, there)
    skipped = skipped[skipped < limit[:, None]]
    return concatenation([keys[at], keys[limit], keys[skipped]])


class _SessionNeighbours:
    """Which sends precede and follow each other in different parts of the history."""

    def __init__(self, summaries: Sequence[SplitSummary]) -> None:
        edges = [summary.edges for summary in summaries]
        self._first = concatenation(part.first for part in edges)
        self._last = concatenation(part.last for part in edges)
        first_offset = concatenation(part.first_offset for part in edges)
        last_offset = concatenation(part.last_offset for part in edges)
        self._order = {summary.split: number for number, summary in enumerate(summaries)}
        self._rows: dict[tuple[int, int], list[tuple[int, int]]] = {}
        row = 0
        for summary in summaries:
            for process, partition in zip(
                summary.edges.process.tolist(), summary.edges.partition.tolist(), strict=True
            ):
                self._rows.setdefault((process, partition), []).append((self._order[summary.split], row))
                row += 1
        pairs = [(one[1], other[1]) for rows in self._rows.values() for one, other in pairwise(rows)]
        before = np.array([one for one, _ in pairs], np.int64)
        after = np.array([other for _, other in pairs], np.int64)
        here, there = last_offset[before], first_offset[after]
        is_unordered = (here == NONE) | (there == NONE) | (there <= here)
        self.are_in_turn = not is_unordered.all()
        self._unordered = concatenation([self._last[before[is_unordered]], self._first[after[is_unordered]]])

    def unordered(self) -> Ints:
        """Return the keys of neighbours whose offsets do not rise, or are not known."""
        return self._unordered

    def beside_edges(self, found: Sequence[FoundEvents]) -> Ints:
        """Return the keys of the sends before and after the parts that begin or end with pivots."""
        keys: list[int] = []
        for part in found:
            for process, partition in zip(*(column.tolist() for column in part.at_first), strict=True):
                rows = self._rows.get((process, partition), ())
                earlier = [row for order, row in rows if order < self._order[part.split]]
                keys += self._last[earlier[-1:]].tolist()
            for process, partition in zip(*(column.tolist() for column in part.at_last), strict=True):
                rows = self._rows.get((process, partition), ())
                later = [row for order, row in rows if order > self._order[part.split]]
                keys += self._first[later[:1]].tolist()
        return np.array(keys, np.int64)
