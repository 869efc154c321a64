"""Follows the plain records of a history, block by block, in a few bytes for each record.

A record is plain if it was sent once and polled at one offset, in order. Every other record becomes
a suspect. This is the coarse but fast relative of `harrow.campaigns.large_histories.suspects`: it
takes all records of a partition with transactions for suspects.
"""

from typing import Final

import numpy as np

from harrow.campaigns.large_histories.byte_block import Flags, Ints
from harrow.campaigns.large_histories.events import NONE, Events, concatenated, events_of
from harrow.campaigns.large_histories.history_outline import PARTITION_BITS
from harrow.campaigns.large_histories.numbering import Numbering, bounds, grown, in_groups, sorted_set
from harrow.campaigns.large_histories.record_slots import (
    ACKED_AT,
    POLLED_AT,
    RecordSlots,
    TooIrregularError,
)
from harrow.campaigns.large_histories.tables import (
    ACKED,
    INVOKED,
    POLLED,
    POLLED_IN_VAIN,
    UNSURE,
)

POSITION_BITS: Final = 40
"""The bits of a position in a number that orders the sends of each session."""

_OPEN_MAX: Final = 200_000
"""So many sends may be without a completion."""

_SUSPICIONS_MAX: Final = 4
_FACTORS: Final = 0x1E3779B97F4A7C15, 0x3F58476D1CE4E5B9


class PlainRecords:
    """Collects what is needed to tell plain records from suspects.

    ``suspects`` are pairs of partitions and values, ``whole`` the partitions all of whose records
    are suspects. ``jumps`` are partitions with the offsets before and after a jump of a consumer.
    ``loose_sends`` have no offset of their own, and ``irregular_sends`` are events of suspects. The
    ``place`` of a send is the number of its session. ``contested`` are partitions with offsets that
    have several values.
    """

    def __init__(self, events_max: int, *, whole_max: int | None = None) -> None:
        self._events_max = events_max
        self._whole_max = events_max if whole_max is None else whole_max
        self._suspected = 0
        self.slots = RecordSlots()
        self.suspects: list[tuple[Ints, Ints]] = []
        self.whole: set[int] = set()
        self.jumps: list[tuple[Ints, Ints, Ints]] = []
        self.loose_sends: list[Events] = []
        self.irregular_sends: list[Events] = []
        self.contested: list[tuple[Ints, Ints]] = []
        self._open = events_of(INVOKED, np.zeros(0, np.int64), np.zeros(0, np.int64))
        self._processes = Numbering()
        self._sizes: Ints = np.zeros(0, np.int64)
        self._sessions = Numbering()
        self._readers = Numbering()
        self._first_read: Ints = np.zeros(0, np.int64)
        self._last_read: Ints = np.zeros(0, np.int64)

    def add(self, events: Events) -> None:
        """Add the next events.

        Raises `TooIrregularError` if too little is plain.
        """
        process, _ = self._processes.add(events.process)
        self._add(events, process)
        # An event may be suspected several times: as the first one, and because of its offset.
        is_unruly = self._suspected > _SUSPICIONS_MAX * self._events_max
        if is_unruly or self._sizes[sorted(self.whole)].sum() > self._whole_max:
            raise TooIrregularError

    def finish(self) -> None:
        """End the history: open sends have unknown outcomes."""
        self.loose_sends.append(self._open)

    def _add(self, events: Events, process: Ints) -> None:
        is_record = events.kind <= POLLED_IN_VAIN
        self._count(events.partition[is_record])
        is_hard = (events.together != 0) | (events.kind == POLLED_IN_VAIN)
        is_hard |= (events.kind == UNSURE) & (events.offset != NONE)
        self.whole.update(sorted_set(events.partition[is_record & is_hard]).tolist())
        polled = events.kind == POLLED
        self._add_polled(events.take(polled), process[polled])
        sends = events.kind <= UNSURE
        self._add_sends(events.take(sends), process[sends])

    def _suspect(self, partition: Ints, value: Ints) -> None:
        if len(partition):
            self.suspects.append((partition, value))
            self._suspected += len(partition)

    def _count(self, partition: Ints) -> None:
        if not len(partition):
            return
        self._sizes = grown(self._sizes, int(partition.max()) + 1, 0)
        if len(self._sizes) >> PARTITION_BITS:
            raise TooIrregularError
        self._sizes += np.bincount(partition, minlength=len(self._sizes))

    def sizes(self, partitions: int) -> Ints:
        """Return how many events each partition has."""
        return grown(self._sizes, partitions, 0)[:partitions]

    def sessions(self) -> tuple[Ints, Ints]:
        """Return the process and the partition of each session, in the order of their numbers."""
        return self._of_processes(self._sessions)

    def readers(self) -> tuple[Ints, Ints, Ints, Ints]:
        """Return processes, the partitions that they polled, and their first and last offsets."""
        count = len(self._readers)
        return *self._of_processes(self._readers), self._first_read[:count], self._last_read[:count]

    def _of_processes(self, numbering: Numbering) -> tuple[Ints, Ints]:
        keys = numbering.keys()
        return self._processes.keys()[keys >> PARTITION_BITS], keys & ((1 << PARTITION_BITS) - 1)

    def _add_polled(self, events: Events, process: Ints) -> None:
        if not len(events):
            return
        self._note(events, POLLED_AT)
        reader, firsts = self._readers.add(process << PARTITION_BITS | events.partition)
        self._first_read = grown(self._first_read, len(self._readers), NONE)
        self._first_read[reader[firsts]] = events.offset[firsts]
        self._last_read = grown(self._last_read, len(self._readers), NONE)
        order, begins, ends = in_groups(reader)
        reader, offset, partition = reader[order], events.offset[order], events.partition[order]
        earlier = np.concatenate(([NONE], offset[:-1]))
        earlier[begins] = self._last_read[reader[begins]]
        is_jump = (earlier != NONE) & (offset - 1 != earlier)
        self._last_read[reader[ends - 1]] = offset[ends - 1]
        if is_jump.any():
            self.jumps.append((partition[is_jump], earlier[is_jump], offset[is_jump]))

    def _note(self, events: Events, flag: int) -> tuple[Ints, Flags]:
        """Note values at offsets, and suspect all values where an offset has several.

        Return the slots, and which events have another value.
        """
        slots, is_other = self.slots.note(events.partition, events.offset, events.value, flag)
        if is_other.any():
            self.contested.append((events.partition[is_other], events.offset[is_other]))
        self._suspect(events.partition[is_other], events.value[is_other])
        self._suspect(events.partition[is_other], self.slots.value[slots[is_other]])
        return slots, is_other

    def _add_sends(self, events: Events, process: Ints) -> None:
        """Match completions with invocations, and note the sends."""
        if not len(events):
            return
        events = self._with_sessions(events, process)
        events = concatenated([self._open, events], in_order=True)
        begun, ended, still_open, others = _pairs(events)
        self._open = events.take(still_open)
        if len(self._open) > _OPEN_MAX:
            raise TooIrregularError
        sends = events.take(ended).at(events.position[begun])
        has_offset = _name_offsets(sends)
        if not has_offset.all():
            self.loose_sends.append(sends.take(~has_offset))
        self._place(sends.take(has_offset))
        irregular = events.take(others)
        self._note(irregular.take(_name_offsets(irregular)), ACKED_AT)
        self._add_irregular(irregular)

    def _place(self, sends: Events) -> None:
        """Note the senders of records. A record with two senders is a suspect."""
        slots, is_other = self._note(sends, ACKED_AT)
        taken = self.slots.session[slots] != 0
        order = np.argsort(slots)
        in_order = slots[order]
        is_repeated = np.zeros(len(slots), np.bool_)
        same = in_order[1:] == in_order[:-1]
        is_repeated[order[1:][same]] = True
        is_repeated[order[:-1][same]] = True
        bad = is_other | taken | is_repeated
        self._add_irregular(sends.take(bad))
        self.slots.session[slots[~bad]] = sends.place[~bad] + 1
        self.slots.invoked[slots[~bad]] = sends.position[~bad]

    def _add_irregular(self, events: Events) -> None:
        if len(events):
            self._suspect(events.partition, events.value)
            self.irregular_sends.append(events)

    def _with_sessions(self, events: Events, process: Ints) -> Events:
        sessions, _ = self._sessions.add(process << PARTITION_BITS | events.partition)
        return events.with_places(sessions)


def _name_offsets(sends: Events) -> Flags:
    named: Flags = (sends.kind == ACKED) & (sends.offset != NONE)
    return named


def _pairs(sends: Events) -> tuple[Ints, Ints, Ints, Ints]:
    """Match invocations and completions of the same process, partition and value.

    Return places of invocations, their completions, invocations without a completion, and others.
    """
    key = sends.value + sends.partition * _FACTORS[0] + sends.process * _FACTORS[1]
    order = np.argsort(key)
    begins, ends = bounds(key[order])
    sizes = ends - begins
    two = begins[sizes == 2]
    one, other = order[two], order[two + 1]
    # Events are in the order of their positions.
    first, second = np.minimum(one, other), np.maximum(one, other)
    is_pair = (sends.kind[first] == INVOKED) & (sends.kind[second] != INVOKED)
    for column in (sends.value, sends.partition, sends.process):
        is_pair &= column[first] == column[second]
    single = order[begins[sizes == 1]]
    still_open = np.sort(single[sends.kind[single] == INVOKED])
    is_other = np.ones(len(sends), np.bool_)
    for places in (first[is_pair], second[is_pair], still_open):
        is_other[places] = False
    return first[is_pair], second[is_pair], still_open, np.flatnonzero(is_other)
