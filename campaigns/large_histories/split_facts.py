"""Reads a part of a history by columns, and decides what this part alone can decide.

Most sends and polls are complete within a part. Of a record that is, only its offset, its value and
some flags go on, to be compared with those of other parts. A send that another part completes is a
suspect.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import field
from typing import Final

import numpy as np

from harrow.campaigns.large_histories.byte_block import ByteBlock, Flags, Ints, LongLineError
from harrow.campaigns.large_histories.column_reader import ColumnReader, UnusualLinesError
from harrow.campaigns.large_histories.decisive_events import is_decisive
from harrow.campaigns.large_histories.events import NONE, Events, concatenated
from harrow.campaigns.large_histories.facts import (
    EVENTS,
    FOUND,
    LOOSE,
    LOOSE_BIT,
    NO_INTS,
    PLACED,
    RANGE_BITS,
    SENT,
    SUMMARY,
    UNUSUAL,
    WHOLE,
    FactRow,
    concatenation,
    fact_row,
    key_of,
)
from harrow.campaigns.large_histories.loose_sends import place_loose_sends
from harrow.campaigns.large_histories.numbering import bounds, in_groups, is_among, sorted_set
from harrow.campaigns.large_histories.operation_order import first_position
from harrow.campaigns.large_histories.plain_records import POSITION_BITS, PlainRecords
from harrow.campaigns.large_histories.record_slots import ACKED_AT, POLLED_AT, TooIrregularError
from harrow.campaigns.large_histories.splits import HistoryPart, Split
from harrow.campaigns.large_histories.tables import (
    ACKED,
    CALLED_SEND,
    FAILED,
    INVOKED,
    KNOWN_SUSPECT,
    POLLED,
    POLLED_IN_VAIN,
    UNSURE,
)
from harrow.campaigns.record.history_file import HistoryError, UnreadableLine
from harrow.cluster_model.lazy_dataclass import dataclass

SUSPICIONS_MAX: Final = 250_000

EVENTS_OF_PART_MAX: Final = 20_000_000
"""Limit of events per part, so that a row of all of them stays below the 2 GiB of Arrow and Java.

Only a compressed file can have more, because it is always a single part.
"""

_ALL: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class SessionEdges:
    """The first and the last record that each session sent in a part, with their offsets."""

    process: Ints
    partition: Ints
    first: Ints
    first_offset: Ints
    last: Ints
    last_offset: Ints


@dataclass(frozen=True, slots=True)
class SplitSummary:
    """What the driver needs of part number ``split``. All partitions are hashes of their names.

    Its operations have positions from ``first_position`` to ``last_position``.
    ``partitions`` has the names, and ``sizes`` how many events each has. ``whole`` and
    ``with_sends`` are partitions. ``outline`` has the events for a `HistoryOutline`. ``readers``
    are processes, partitions, and the first and the last offset that they read. ``jumps`` are
    partitions, and the offsets before and after each. ``suspects`` are keys. ``sends_in_turn`` and
    ``polls_together`` are those of `RemovedRecords`.
    """

    split: int
    first_position: int
    last_position: int
    lines: int
    passed_over: int
    names_transactions_sends: bool
    processes: Ints
    partitions: dict[int, str]
    sizes: dict[int, int]
    whole: Ints
    with_sends: Ints
    outline: Events
    readers: tuple[Ints, Ints, Ints, Ints]
    jumps: tuple[Ints, Ints, Ints]
    edges: SessionEdges
    suspects: Ints
    sends_in_turn: bool
    polls_together: bool


@dataclass(frozen=True, slots=True)
class SplitEvents:
    """The events of records of a part, and its sends in the order of each session.

    ``partition`` and ``session`` are numbers. ``hashes`` are those of the partitions.
    """

    split: int
    first_position: int
    hashes: Ints
    key: Ints
    partition: Ints
    position: Ints
    place: Ints
    kind: Ints
    session_process: Ints
    session_partition: Ints
    sent_session: Ints
    sent_key: Ints
    sent_is_loose: Flags


@dataclass(frozen=True, slots=True)
class FoundEvents:
    """The events of suspects of a part, and the neighbours of some suspects in their sessions.

    ``at_first`` and ``at_last`` are the sessions, as processes and partitions, in which such a
    suspect is the first or the last one of the part.
    """

    split: int
    hashes: Ints
    key: Ints
    partition: Ints
    position: Ints
    place: Ints
    kind: Ints
    neighbours: Ints
    at_first: tuple[Ints, Ints]
    at_last: tuple[Ints, Ints]


def read_split(split: HistoryPart, limits: dict[str, int], *, numbered: bool = False) -> Iterator[FactRow]:
    """Yield the rows of a part, or one that says that it must be read in another way."""
    reader, records = ColumnReader(numbered=numbered), PlainRecords(SUSPICIONS_MAX, whole_max=_ALL)
    parts: list[Events] = []
    try:
        with split.blocks(**limits) as blocks:
            first, last = _read(blocks, reader, records, parts)
        records.finish()
        base = 0 if numbered else first_position(split.number)
        yield from _SplitFacts(split, reader, records, parts, base + first, base + last).rows()
    except (HistoryError, LongLineError, TooIrregularError, UnreadableLine, UnusualLinesError):
        yield fact_row(UNUSUAL, split.number)


def _read(
    blocks: Iterable[ByteBlock], reader: ColumnReader, records: PlainRecords, parts: list[Events]
) -> tuple[int, int]:
    """Read blocks, and return the first and the last position. Those of *parts* count from it."""
    first: int | None = None
    last, size = -1, 0
    for block in blocks:
        events = reader.read(block)
        if not len(reader.positions):
            continue
        if first is None:
            first = int(reader.positions[0])
        last = int(reader.positions[-1])
        if last - first >> POSITION_BITS:
            raise TooIrregularError
        size += len(events)
        if size > EVENTS_OF_PART_MAX:
            raise TooIrregularError
        parts.append(events.at(events.position - first))
        records.add(parts[-1])
    return first or 0, last


class _SplitFacts:
    def __init__(
        self,
        split: HistoryPart,
        reader: ColumnReader,
        records: PlainRecords,
        parts: list[Events],
        first_position: int,
        last_position: int,
    ) -> None:
        self._split = split
        self._first_position = first_position
        self._last_position = last_position
        self._reader = reader
        self._records = records
        self._hashes = reader.partition_hashes
        self._events = concatenated(parts, in_order=True)
        parts.clear()
        self._slots = [
            (number, slots, offsets) for number, slots, offsets in records.slots.partitions() if len(slots)
        ]
        self._irregular = concatenated(records.irregular_sends, in_order=True)
        self._loose = concatenated(records.loose_sends, in_order=True)
        self._sends_in_turn = False
        self._suspects = self._first_suspects()
        self._suspects = sorted_set(concatenation([self._suspects, *self._place_loose_sends()]))

    def _key(self, partition: Ints | int, value: Ints) -> Ints:
        return key_of(self._hashes[partition], value)

    def _first_suspects(self) -> Ints:
        """Return the suspects of the records, and the sends that have not ended."""
        is_open = self._loose.kind == INVOKED
        failed = self._loose.take(self._loose.kind == FAILED)
        _, firsts = np.unique(failed.partition, return_index=True)
        open_sends = self._loose.take(is_open)
        return sorted_set(
            concatenation(
                [
                    *(self._key(partition, value) for partition, value in self._records.suspects),
                    self._key(open_sends.partition, open_sends.value),
                    self._key(failed.partition[firsts], failed.value[firsts]),
                ]
            )
        )

    def _place_loose_sends(self) -> Iterator[Ints]:
        """Find the offsets of sends whose records were polled in this part, and yield suspects.

        Suspects stay without an offset. They include open sends, which another part may complete.
        """
        is_suspect = is_among(self._key(self._loose.partition, self._loose.value), self._suspects)
        ended = self._loose.take(~is_suspect)
        remaining, repeated = [self._loose.take(is_suspect)], [self._irregular]
        known = {number: slots for number, slots, _ in self._slots}
        order, begins, ends = in_groups(ended.partition)
        ended = ended.take(order)
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
            sends, number = ended.part(begin, end), int(ended.partition[begin])
            found = place_loose_sends(sends, self._records.slots, known.get(number, NO_INTS))
            yield self._key(number, found.suspects)
            remaining.append(found.remaining)
            repeated.append(found.repeated)
        self._loose, self._irregular = concatenated(remaining), concatenated(repeated)

    def rows(self) -> Iterator[FactRow]:
        session, key, is_loose, edges = self._sends_in_order()
        yield from self._placed()
        yield from self._loose_rows()
        yield fact_row(SUMMARY, self._summary(edges))
        events = self._events.take(self._events.kind <= POLLED_IN_VAIN)
        yield from self._whole_rows(events)
        process, partition = self._records.sessions()
        yield fact_row(
            EVENTS,
            SplitEvents(
                split=self._split.number,
                first_position=self._first_position,
                hashes=self._hashes,
                key=self._key(events.partition, events.value),
                partition=events.partition.astype(np.int32),
                position=events.position,
                place=events.place,
                kind=events.kind,
                session_process=process,
                session_partition=self._hashes[partition],
                sent_session=session.astype(np.int32),
                sent_key=key,
                sent_is_loose=is_loose,
            ),
        )

    def _whole_rows(self, events: Events) -> Iterator[FactRow]:
        """Yield the events of the partitions that are whole in this part, for tables."""
        if self._records.whole:
            is_whole = np.isin(events.partition, np.array(sorted(self._records.whole), np.int64))
            part = events.take(is_whole)
            content = part.at(part.position + self._first_position), self._hashes, self._reader.partitions
            yield fact_row(WHOLE, content, range_=self._split.number)

    def _sends_in_order(self) -> tuple[Ints, Ints, Flags, SessionEdges]:
        """Return the sessions and keys of all sends in order, which are loose, and the edges.

        Consecutive sends of a session whose offsets do not rise become suspects. A suspect has no
        offset here, so its neighbours are suspects too.
        """
        slots = self._records.slots
        sent = [(number, at[slots.session[at] != 0]) for number, at, _ in self._slots]
        offsets = [of[slots.session[at] != 0] for _, at, of in self._slots]
        every = concatenation(at for _, at in sent)
        others = concatenated([self._irregular, self._loose], in_order=True)
        session = concatenation([slots.session[every].astype(np.int64) - 1, others.place])
        position = concatenation([slots.invoked[every], others.position])
        key = concatenation(
            [
                *(self._key(number, slots.value[at]) for number, at in sent),
                self._key(others.partition, others.value),
            ]
        )
        offset = concatenation([*offsets, np.full(len(others), NONE, np.int64)])
        offset[is_among(key, self._suspects)] = NONE
        is_loose = np.arange(len(key)) >= len(key) - len(self._loose)
        order = np.argsort(session << POSITION_BITS | position, kind="stable")
        session, key, offset, is_loose = session[order], key[order], offset[order], is_loose[order]
        has_place = ~is_loose | is_among(key, self._suspects)
        edges = self._note_unordered(session[has_place], key[has_place], offset[has_place])
        return session, key, is_loose, edges

    def _note_unordered(self, session: Ints, key: Ints, offset: Ints) -> SessionEdges:
        is_unordered = (offset[1:] == NONE) | (offset[:-1] == NONE) | (offset[1:] <= offset[:-1])
        is_same = session[1:] == session[:-1]
        process, partition = self._records.sessions()
        # Tables, or all of its events, show whether operations of a whole partition send in turn.
        is_whole = np.isin(partition, np.array(sorted(self._records.whole), np.int64))
        self._sends_in_turn |= bool(np.any(is_same & ~is_unordered & ~is_whole[session[1:]]))
        is_unordered &= is_same
        self._suspects = sorted_set(
            concatenation([self._suspects, key[1:][is_unordered], key[:-1][is_unordered]])
        )
        begins, ends = bounds(session)
        which = session[begins]
        return SessionEdges(
            process=process[which],
            partition=self._hashes[partition[which]],
            first=key[begins],
            first_offset=offset[begins],
            last=key[ends - 1],
            last_offset=offset[ends - 1],
        )

    def _summary(self, edges: SessionEdges) -> SplitSummary:
        outline = self._events.take(is_decisive(self._events))
        process, partition, first, last = self._records.readers()
        jumps = [concatenation(column) for column in zip(*self._records.jumps, strict=True)] or [
            concatenation([])
        ] * 3
        # The tables of whole partitions show their jumps.
        is_whole = np.isin(jumps[0], np.array(sorted(self._records.whole), np.int64))
        jumps = [column[~is_whole] for column in jumps]
        sends = self._events.partition[self._events.kind <= UNSURE]
        calls_send = bool(np.any(self._events.together == CALLED_SEND))
        hashes = self._hashes.tolist()
        return SplitSummary(
            split=self._split.number,
            first_position=self._first_position,
            last_position=self._last_position,
            lines=self._reader.lines,
            passed_over=self._reader.passed_over,
            names_transactions_sends=self._reader.sends_nothing or calls_send,
            processes=np.array(sorted(self._reader.processes), np.int64),
            partitions=dict(zip(hashes, self._reader.partitions, strict=True)),
            sizes=dict(zip(hashes, self._records.sizes(len(hashes)).tolist(), strict=True)),
            whole=self._hashes[sorted(self._records.whole)],
            with_sends=self._hashes[sorted_set(sends)],
            outline=outline.at(outline.position + self._first_position).in_partitions(
                np.append(self._hashes, NONE)[outline.partition]
            ),
            readers=(process, self._hashes[partition], first, last),
            jumps=(self._hashes[jumps[0]], jumps[1], jumps[2]),
            edges=edges,
            suspects=self._suspects,
            sends_in_turn=self._sends_in_turn,
            polls_together=self._reader.polls_together,
        )

    def _placed(self) -> Iterator[FactRow]:
        """Yield the records at offsets, by ranges of offsets."""
        slots = self._records.slots
        contested: dict[int, list[Ints]] = {}
        for partition, offset in self._records.contested:
            for number in sorted_set(partition).tolist():
                contested.setdefault(number, []).append(offset[partition == number])
        for number, at, known in self._slots:
            flags = slots.flags[at] & (ACKED_AT | POLLED_AT)
            flags = np.where(slots.session[at] != 0, flags | SENT, flags).astype(np.int8)
            columns = known, slots.value[at], flags
            if number in contested:
                columns = self._with_contested(number, *columns, sorted_set(concatenation(contested[number])))
            ranges = columns[0] >> RANGE_BITS
            for begin, end in zip(*bounds(ranges), strict=True):
                yield fact_row(
                    PLACED,
                    tuple(column[begin:end] for column in columns),
                    partition=int(self._hashes[number]),
                    range_=int(ranges[begin]),
                )

    def _with_contested(
        self, partition: int, offsets: Ints, values: Ints, flags: Ints, contested: Ints
    ) -> tuple[Ints, Ints, Ints]:
        """Return the records of a partition, with all of those at offsets with several values."""
        is_free = ~is_among(offsets, contested)
        more = self._events_at(partition, contested)
        more_flags = np.where(more.kind == POLLED, POLLED_AT, SENT | ACKED_AT).astype(np.int8)
        offsets = concatenation([offsets[is_free], more.offset])
        order = np.argsort(offsets, kind="stable")
        values = concatenation([values[is_free], more.value])
        flags = np.concatenate((flags[is_free], more_flags))
        return offsets[order], values[order], flags[order]

    def _events_at(self, partition: int, offsets: Ints) -> Events:
        events = self._events
        is_here = (events.partition == partition) & ((events.kind == POLLED) | (events.kind == ACKED))
        events = events.take(is_here)
        return events.take(is_among(events.offset, offsets))

    def _loose_rows(self) -> Iterator[FactRow]:
        sends = concatenated([self._irregular, self._loose], in_order=True)
        flags = np.where(sends.kind == ACKED, SENT | ACKED_AT | LOOSE_BIT, SENT | LOOSE_BIT).astype(np.int8)
        order = np.argsort(sends.partition, kind="stable")
        sends, flags = sends.take(order), flags[order]
        for begin, end in zip(*bounds(sends.partition), strict=True):
            partition = int(self._hashes[sends.partition[begin]])
            yield fact_row(LOOSE, (sends.value[begin:end], flags[begin:end]), partition=partition)


def events_for_tables(
    split: HistoryPart,
    limits: dict[str, int],
    partitions: Ints,
    known_suspects: Ints,
    *,
    numbered: bool = False,
) -> Iterator[tuple[Events, list[str]]]:
    """Yield the events of the *partitions* for a table, and the names of partitions.

    A record whose key is among *known_suspects*, which are in order, has an event that says so.
    """
    reader = ColumnReader(numbered=numbered)
    base = 0 if numbered else first_position(split.number)
    with split.blocks(**limits) as blocks:
        for block in blocks:
            events = reader.read(block)
            events = events.take(events.kind <= POLLED_IN_VAIN)
            events = events.at(events.position + base)
            for part in _for_tables(events, reader.partition_hashes, partitions, known_suspects):
                yield part, reader.partitions


def stored_events_for_tables(
    rows: Iterable[FactRow], partitions: Ints, known_suspects: Ints, without: Collection[int]
) -> Iterator[tuple[Events, list[str]]]:
    """Yield the same from the events of whole partitions, except for some parts of the history."""
    for row in rows:
        if row.range not in without:
            events, hashes, names = row.load()
            for part in _for_tables(events, hashes, partitions, known_suspects):
                yield part, names


def _for_tables(events: Events, hashes: Ints, partitions: Ints, known_suspects: Ints) -> Iterator[Events]:
    events = events.take(np.isin(hashes, partitions)[events.partition])
    is_known = is_among(key_of(hashes[events.partition], events.value), known_suspects)
    yield events
    yield events.take(is_known).of_kind(KNOWN_SUSPECT)


def partly_stored(summaries: Iterable[SplitSummary], partitions: Ints) -> set[int]:
    """Return the parts with events of some *partitions* that are not whole there."""
    found: set[int] = set()
    for summary in summaries:
        other = set(partitions.tolist()).difference(summary.whole.tolist())
        if any(summary.sizes.get(partition) for partition in other):
            found.add(summary.split)
    return found


def _no_ints() -> Ints:
    return NO_INTS


@dataclass(frozen=True, slots=True)
class EventQuery:
    """The events to find: those of records with some *keys*, and of *whole* partitions.

    ``pivots`` are the keys that need the sends beside them, except in ``table_partitions``, which
    tables judge. Keys are in order.
    """

    keys: Ints
    pivots: Ints = field(default_factory=_no_ints)
    whole: Ints = field(default_factory=_no_ints)
    table_partitions: Ints = field(default_factory=_no_ints)


def find_events(events: SplitEvents, query: EventQuery) -> FoundEvents:
    """Return the events of some records."""
    found = is_among(events.key, query.keys)
    if len(query.whole):
        found |= np.isin(events.hashes, query.whole)[events.partition]
    session, key, is_pivot = _with_place(events, query)
    before, after = np.roll(is_pivot, 1), np.roll(is_pivot, -1)
    is_first = np.ones(len(session), np.bool_)
    np.not_equal(session[1:], session[:-1], out=is_first[1:])
    is_last = np.roll(is_first, -1)
    at_first, at_last = session[is_pivot & is_first], session[is_pivot & is_last]
    return FoundEvents(
        split=events.split,
        hashes=events.hashes,
        key=events.key[found],
        partition=events.partition[found],
        position=events.position[found] + events.first_position,
        place=events.place[found],
        kind=events.kind[found],
        neighbours=sorted_set(key[(before & ~is_first) | (after & ~is_last)]),
        at_first=(events.session_process[at_first], events.session_partition[at_first]),
        at_last=(events.session_process[at_last], events.session_partition[at_last]),
    )


def _with_place(events: SplitEvents, query: EventQuery) -> tuple[Ints, Ints, Flags]:
    """Return the sends that have a place in their session: a loose one only if it is a suspect."""
    has_place = ~events.sent_is_loose | is_among(events.sent_key, query.keys)
    key, session = events.sent_key[has_place], events.sent_session[has_place]
    is_pivot = is_among(key, query.pivots)
    is_pivot &= ~np.isin(events.session_partition, query.table_partitions)[session]
    return session, key, is_pivot


def found_rows(rows: Iterable[FactRow], query: EventQuery) -> Iterator[FactRow]:
    for row in rows:
        yield fact_row(FOUND, find_events(row.load(), query))


def kept_lines(split: Split, limits: dict[str, int], positions: Ints, *, numbered: bool) -> Iterator[bytes]:
    """Yield the lines of the operations at some positions, which are in order."""
    if not numbered:
        numbers = positions - first_position(split.number)
        yield from split.listed_lines(numbers.tolist(), **limits)
        return
    reader = ColumnReader(numbered=True)
    with split.blocks(**limits) as blocks:
        for block in blocks:
            reader.read(block)
            for row in reader.rows[is_among(reader.positions, positions)].tolist():
                yield block.line(row)
