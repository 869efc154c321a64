"""Reduces a history to its suspects, given its plain records."""

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from harrow.campaigns.large_histories.byte_block import Flags, Ints
from harrow.campaigns.large_histories.column_reader import ColumnReader
from harrow.campaigns.large_histories.events import NONE, Events, concatenated
from harrow.campaigns.large_histories.facts import NO_INTS, key_of
from harrow.campaigns.large_histories.history_outline import HistoryOutline
from harrow.campaigns.large_histories.loose_sends import place_loose_sends
from harrow.campaigns.large_histories.numbering import is_among, sorted_set
from harrow.campaigns.large_histories.plain_records import POSITION_BITS, PlainRecords
from harrow.campaigns.large_histories.record_slots import ACKED_AT, POLLED_AT
from harrow.campaigns.large_histories.reduction import Reduction, TooManySuspectsError
from harrow.campaigns.large_histories.tables import ACKED, FAILED, POLLED_IN_VAIN
from harrow.checks.history.removed_records import RemovedRecords
from harrow.checks.history.witness import SKIPPED_SHOWN
from harrow.cluster_model.lazy_dataclass import dataclass

_FILTER_BITS: Final = 20


@dataclass(slots=True)
class _Partition:
    """The records of a partition: those at known offsets, in order, and sends without an offset."""

    number: int
    slots: Ints
    offsets: Ints
    loose: Events
    irregular: Events
    jumps: tuple[Ints, Ints]
    suspects: Ints

    def suspect(self, values: Ints) -> None:
        self.suspects = np.concatenate((self.suspects, values))


class PlainReduction:
    """Finds the suspects of a history whose records *records* has."""

    def __init__(self, records: PlainRecords, outline: HistoryOutline, reader: ColumnReader) -> None:
        self._records = records
        self._outline = outline
        self._reader = reader
        self._slots = records.slots
        self._parts = self._split()
        self._ranks: dict[str, dict[int, int]] = {}
        self._sent = self._acked = self._polled = 0
        self._sends_in_turn = False

    def reduce(self, events: Iterable[Events], events_max: int) -> Reduction:
        """Return the reduction of the history with these *events*.

        Raises `TooManySuspectsError` if more than *events_max* events remain.
        """
        for part in self._parts:
            self._place_loose_sends(part)
            self._find_repeated(part)
        self._find_unsent()
        for part in self._parts:
            if part.number not in self._records.whole:
                self._find_unordered(part)
                self._find_jumps(part)
                self._count(part)
        reader = self._reader
        places: dict[int, set[tuple[str, int]]] = {
            position: set() for position in self._outline.kept_positions()
        }
        for count, (position, partition, place) in enumerate(self._events_of_suspects(events), 1):
            places.setdefault(position, set()).add((reader.partitions[partition], place))
            if count > events_max:
                raise TooManySuspectsError(count, events_max)
        read_dry = self._outline.dry_polls.finish()
        removed = RemovedRecords(
            lines=reader.lines,
            processes=len(reader.processes),
            sent=self._sent,
            acked=self._acked,
            polled=self._polled,
            ranks=self._ranks,
            read_dry={reader.partitions[number]: polled for number, polled in read_dry.items()},
            sends_in_turn=self._sends_in_turn,
            polls_in_turn=self._outline.dry_polls.are_in_turn,
            polls_together=reader.polls_together,
        )
        return Reduction(places, reader.passed_over, reader.sends_nothing, removed)

    def _split(self) -> list[_Partition]:
        """Return the records of each partition."""
        records = self._records
        count = len(self._reader.partitions)
        loose = _by_partition(records.loose_sends, count)
        irregular = _by_partition(records.irregular_sends, count)
        columns = [np.concatenate(column) for column in zip(*records.jumps, strict=True)] or [NO_INTS] * 3
        jumps = _split_columns(columns, count)
        columns = [
            np.concatenate(column) for column in zip(*records.suspects, *self._outline.firsts, strict=True)
        ] or [NO_INTS] * 2
        suspects = _split_columns(columns, count)
        known = {number: (slots, offsets) for number, slots, offsets in records.slots.partitions()}
        return [
            _Partition(
                number,
                *known.get(number, (NO_INTS, NO_INTS)),
                loose=loose[number],
                irregular=irregular[number],
                jumps=(jumps[number][1], jumps[number][2]),
                suspects=sorted_set(suspects[number][1]),
            )
            for number in range(count)
        ]

    def _place_loose_sends(self, part: _Partition) -> None:
        """Find the offsets of sends that did not name one, if their records were polled."""
        if len(part.loose):
            found = place_loose_sends(part.loose, self._slots, part.slots)
            part.suspect(found.suspects)
            part.suspect(part.loose.value[part.loose.kind == FAILED][:1])
            part.suspect(found.remaining.value[found.remaining.kind == ACKED])
            part.irregular = concatenated([part.irregular, found.repeated])
            part.loose = found.remaining

    def _find_repeated(self, part: _Partition) -> None:
        """Suspect values at several offsets, the last polled record, and records without polls."""
        values, flags = self._slots.value[part.slots], self._slots.flags[part.slots]
        in_order = np.sort(values)
        part.suspect(in_order[1:][in_order[1:] == in_order[:-1]])
        part.suspect(values[flags & POLLED_AT == 0])
        polled = np.flatnonzero(flags & POLLED_AT)
        part.suspect(values[polled[-1:]])

    def _sent_values(self, part: _Partition) -> Ints:
        session = self._slots.session[part.slots]
        sent = self._slots.value[part.slots[session != 0]]
        return sorted_set(np.concatenate((sent, part.loose.value, part.irregular.value)))

    def _maybe_unsent_values(self, part: _Partition) -> Ints:
        """Return values that may have been polled without a send.

        They include suspects, because a slot has only one of the values at its offset.
        """
        is_unsent = self._slots.session[part.slots] == 0
        return np.concatenate((self._slots.value[part.slots[is_unsent]], part.suspects))

    def _find_unsent(self) -> None:
        """Suspect records that may have been sent to another partition than that of the poll.

        A value that was sent to several partitions is a suspect, too.
        """
        sent = [self._sent_values(part) for part in self._parts]
        every = np.sort(np.concatenate([NO_INTS, *sent]))
        repeated = every[1:][every[1:] == every[:-1]][:1]
        for part, here in zip(self._parts, sent, strict=True):
            part.suspect(here[is_among(here, repeated)])
        unsent = [
            values[~is_among(values, here)]
            for part, here in zip(self._parts, sent, strict=True)
            if len(here) and len(values := self._maybe_unsent_values(part))
        ]
        if not any(map(len, unsent)):
            return
        misrouted = sorted_set(np.concatenate(unsent))
        misrouted = misrouted[is_among(misrouted, every)]
        for part, here in zip(self._parts, sent, strict=True):
            values = np.concatenate((self._slots.value[part.slots], here))
            part.suspect(values[is_among(values, misrouted)])

    def _find_unordered(self, part: _Partition) -> None:
        """Suspect consecutive sends of a session whose offsets do not rise.

        An irregular send may have several offsets, so its neighbours are suspects, too.
        """
        slots = part.slots[self._slots.session[part.slots] != 0]
        offsets = part.offsets[self._slots.session[part.slots] != 0]
        part.suspects = sorted_set(part.suspects)
        values = self._slots.value[slots]
        offsets = np.where(is_among(values, part.suspects), NONE, offsets)
        others = concatenated([part.irregular, part.loose.take(is_among(part.loose.value, part.suspects))])
        session = np.concatenate((self._slots.session[slots].astype(np.int64) - 1, others.place))
        invoked = np.concatenate((self._slots.invoked[slots], others.position))
        values = np.concatenate((values, others.value))
        offsets = np.concatenate((offsets, np.full(len(others), NONE, np.int64)))
        order = np.argsort(session << POSITION_BITS | invoked, kind="stable")
        session, offsets, values = session[order], offsets[order], values[order]
        is_unordered = (offsets[1:] == NONE) | (offsets[:-1] == NONE) | (offsets[1:] <= offsets[:-1])
        is_same = session[1:] == session[:-1]
        self._sends_in_turn |= bool(np.any(is_same & ~is_unordered))
        is_unordered &= is_same
        part.suspect(values[1:][is_unordered])
        part.suspect(values[:-1][is_unordered])

    def _find_jumps(self, part: _Partition) -> None:
        """Suspect records before and after a jump, and some that it skipped; note their ranks."""
        here, there = part.jumps
        if not len(here):
            return
        from_rank, to_rank = np.searchsorted(part.offsets, here), np.searchsorted(part.offsets, there)
        is_real: Flags = (there <= here) | (to_rank - from_rank > 1)
        here, there, from_rank, to_rank = here[is_real], there[is_real], from_rank[is_real], to_rank[is_real]
        values = self._slots.value[part.slots]
        part.suspect(values[from_rank])
        part.suspect(values[to_rank])
        for ahead in range(1, SKIPPED_SHOWN + 1):
            skipped = from_rank + ahead
            part.suspect(values[skipped[skipped < to_rank]])
        if len(here):
            ranks = self._ranks.setdefault(self._reader.partitions[part.number], {})
            ranks.update(zip(here.tolist(), from_rank.tolist(), strict=True))
            ranks.update(zip(there.tolist(), to_rank.tolist(), strict=True))

    def _count(self, part: _Partition) -> None:
        """Count the records that are removed."""
        part.suspects = sorted_set(part.suspects)
        slots = part.slots[~is_among(self._slots.value[part.slots], part.suspects)]
        flags = self._slots.flags[slots]
        lost = part.loose.take(~is_among(part.loose.value, part.suspects))
        self._sent += int(np.count_nonzero(self._slots.session[slots])) + len(lost)
        self._acked += int(np.count_nonzero(flags & ACKED_AT))
        self._polled += int(np.count_nonzero(flags & POLLED_AT))

    def _events_of_suspects(self, events: Iterable[Events]) -> Iterable[tuple[int, int, int]]:
        """Yield the position, the partition and the place of each event of a suspect."""
        whole = np.zeros(len(self._parts), np.bool_)
        whole[sorted(self._records.whole)] = True
        keys = np.sort(
            np.concatenate([NO_INTS, *(key_of(part.number, part.suspects) for part in self._parts)])
        )
        may_be = np.zeros(1 << _FILTER_BITS, np.bool_)
        may_be[keys & ((1 << _FILTER_BITS) - 1)] = True
        for block in events:
            records = block.take(block.kind <= POLLED_IN_VAIN)
            key = key_of(records.partition, records.value)
            found = whole[records.partition] | may_be[key & ((1 << _FILTER_BITS) - 1)]
            records, key = records.take(found), key[found]
            records = records.take(whole[records.partition] | is_among(key, keys))
            yield from zip(
                records.position.tolist(), records.partition.tolist(), records.place.tolist(), strict=True
            )


def _by_partition(parts: Sequence[Events], count: int) -> list[Events]:
    events = concatenated(parts, in_order=True)
    order = np.argsort(events.partition, kind="stable")
    events = events.take(order)
    edges = np.searchsorted(events.partition, np.arange(count + 1))
    return [
        events.part(begin, end) for begin, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    ]


def _split_columns(columns: Sequence[Ints], count: int) -> list[list[Ints]]:
    """Split columns by the partition, which is the first one."""
    order = np.argsort(columns[0], kind="stable")
    sorted_columns = [column[order] for column in columns]
    edges = np.searchsorted(sorted_columns[0], np.arange(count + 1))
    return [
        [column[begin:end] for column in sorted_columns]
        for begin, end in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
    ]
