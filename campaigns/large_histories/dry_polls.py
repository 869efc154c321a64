"""Finds the last poll that returned nothing of a partition, from the polls of all processes."""

from collections.abc import Iterable
from typing import Final

import numpy as np

from harrow.campaigns.large_histories.byte_block import Flags, Ints
from harrow.campaigns.large_histories.events import NONE, Events
from harrow.campaigns.large_histories.numbering import Numbering, grown, in_groups
from harrow.campaigns.large_histories.tables import POLL_ENDED, POLL_INVOKED, POLLED

_NEVER: Final = -2
_PARTITION_BITS: Final = 22


class DryPolls:
    """Counts the ok polls of each process. A poll after the last one with records was dry.

    A process reads the partitions of its assignment, or without one, all that it has read. An
    assignment begins an epoch of its process. ``are_in_turn`` says whether a process read on where
    an earlier poll had ended (`HistoryIndex.polls_in_turn`).
    """

    def __init__(self) -> None:
        self.epochs: Ints = np.zeros(0, np.int64)
        self.first_polls: list[int] = []
        self.are_in_turn = False
        self._epoch_count = 0
        self._named: set[int] = set()
        self._unread: set[int] = set()
        self._count: Ints = np.zeros(0, np.int64)
        self._invoked: Ints = np.zeros(0, np.int64)
        self._ended: Ints = np.zeros(0, np.int64)
        self._ended_invoked: Ints = np.zeros(0, np.int64)
        self._readers = Numbering()
        self._reads: Ints = np.zeros(0, np.int64)
        self._is_dry_possible: Ints = np.zeros(0, np.int8)
        self._has_position: Ints = np.zeros(0, np.int8)
        self._reader_process: Ints = np.zeros(0, np.int64)
        self._dry: Ints = np.zeros(0, np.int64)
        self._dry_invoked: Ints = np.zeros(0, np.int64)

    def grow(self, processes: int) -> None:
        """Make room for processes."""
        new = processes - len(self.epochs)
        if new > 0:
            self.epochs = np.concatenate((self.epochs, np.arange(self._epoch_count, self._epoch_count + new)))
            self._epoch_count += new
            zeros, none = np.zeros(new, np.int64), np.full(new, NONE, np.int64)
            self._count = np.concatenate((self._count, zeros))
            self._invoked = np.concatenate((self._invoked, none))
            self._ended = np.concatenate((self._ended, none))
            self._ended_invoked = np.concatenate((self._ended_invoked, none))

    def assign(self, process: int, partitions: Iterable[int]) -> None:
        """Begin another epoch of a process."""
        mine = np.flatnonzero(self._reader_process == process)
        self._end(mine)
        self._reader_process[mine] = NONE
        epoch = self._epoch_count
        self._epoch_count += 1
        self.epochs[process] = epoch
        self._unread.add(process)
        names = np.array(list(partitions), np.int64)
        if len(names):
            self._named.add(epoch)
            positioned = self._partitions_of(mine[self._has_position[mine] != 0])
            readers = self._numbers(np.full(len(names), process), names)
            self._is_dry_possible[readers] = 1
            self._reads[readers] = self._count[process]
            self._has_position[readers] = np.isin(names, positioned)

    def add(self, events: Events, process: Ints) -> None:
        """Add events between assignments, given the numbers of their processes."""
        is_poll = (events.kind == POLL_INVOKED) | (events.kind == POLL_ENDED)
        at = np.flatnonzero(is_poll)
        if not len(at):
            return
        order, begins, ends = in_groups(process[at])
        at = at[order]
        of, position = process[at], events.position[at]
        is_end = events.kind[at] == POLL_ENDED
        numbers = np.arange(len(at))
        first = np.repeat(begins, ends - begins)
        last_invoked = np.maximum.accumulate(np.where(is_end, -1, numbers))
        invoked = np.where(last_invoked >= first, position[last_invoked], self._invoked[of])
        ended_before = np.cumsum(is_end) - is_end
        ordinal = self._count[of] + ended_before - ended_before[first]
        last_ended = np.concatenate(([-1], np.maximum.accumulate(np.where(is_end, numbers, -1))[:-1]))
        is_here = last_ended >= first
        before = np.where(is_here, position[last_ended], self._ended[of])
        before_invoked = np.where(is_here, invoked[last_ended], self._ended_invoked[of])
        self._note_reads(events, process, at, ordinal, before, before_invoked)
        for group in sorted(self._unread & set(of[begins].tolist())):
            found = np.flatnonzero(is_end & (of == group))
            if len(found):
                self.first_polls.append(int(position[found[0]]))
                self._unread.discard(group)
        final = ends - 1
        who = of[final]
        self._invoked[who] = np.where(is_end[final], invoked[final], position[final])
        self._count[who] = ordinal[final] + is_end[final]
        ended_at_last = is_end[final]
        self._ended[who] = np.where(ended_at_last, position[final], before[final])
        self._ended_invoked[who] = np.where(ended_at_last, invoked[final], before_invoked[final])

    def _note_reads(
        self, events: Events, process: Ints, polls: Ints, ordinal: Ints, before: Ints, before_invoked: Ints
    ) -> None:
        """Note the polls before those that returned records, if these returned none."""
        read = np.flatnonzero(events.kind == POLLED)
        if not len(read):
            return
        ended = np.flatnonzero(events.kind[polls] == POLL_ENDED)
        ended = ended[np.argsort(events.position[polls[ended]])]
        poll = ended[np.searchsorted(events.position[polls[ended]], events.position[read])]
        partition = events.partition[read]
        reader = self._numbers(process[read], partition)
        order, begins, ends = in_groups(reader)
        reader, poll, partition = reader[order], poll[order], partition[order]
        has_position, is_repeated = self._has_position[reader[begins]] != 0, poll[begins] != poll[ends - 1]
        self.are_in_turn |= bool(np.any(has_position | is_repeated))
        self._has_position[reader[begins]] = 1
        count = ordinal[poll]
        read_until = np.concatenate(([0], count[:-1] + 1))
        read_until[begins] = self._reads[reader[begins]]
        is_dry = (count > read_until) & (read_until != _NEVER) & (self._is_dry_possible[reader] != 0)
        self._note(partition[is_dry], before[poll[is_dry]], before_invoked[poll[is_dry]])
        self._reads[reader[ends - 1]] = count[ends - 1] + 1

    def _numbers(self, process: Ints, partition: Ints) -> Ints:
        keys = self.epochs[process] << _PARTITION_BITS | partition
        readers, firsts = self._readers.add(keys)
        if len(firsts):
            size = len(self._readers)
            self._reads = grown(self._reads, size, _NEVER)
            self._reader_process = grown(self._reader_process, size, NONE)
            self._is_dry_possible = grown(self._is_dry_possible, size, 0)
            self._has_position = grown(self._has_position, size, 0)
            new = readers[firsts]
            self._reader_process[new] = process[firsts]
            is_named = np.isin(self.epochs[process[firsts]], np.array(sorted(self._named), np.int64))
            self._is_dry_possible[new] = ~is_named
        return readers

    def _note(self, partition: Ints, ended: Ints, invoked: Ints) -> None:
        if not len(partition):
            return
        self._dry = grown(self._dry, int(partition.max()) + 1, NONE)
        self._dry_invoked = grown(self._dry_invoked, int(partition.max()) + 1, NONE)
        np.maximum.at(self._dry, partition, ended)
        is_last = self._dry[partition] == ended
        self._dry_invoked[partition[is_last]] = invoked[is_last]

    def _end(self, readers: Ints) -> None:
        """Note the last polls of processes that read partitions."""
        who = self._reader_process[readers]
        reads = self._reads[readers]
        is_dry: Flags = (self._is_dry_possible[readers] != 0) & (reads != _NEVER) & (self._count[who] > reads)
        partition = self._partitions_of(readers[is_dry])
        self._note(partition, self._ended[who[is_dry]], self._ended_invoked[who[is_dry]])

    def _partitions_of(self, readers: Ints) -> Ints:
        partitions: Ints = self._readers.keys()[readers] & ((1 << _PARTITION_BITS) - 1)
        return partitions

    def finish(self) -> dict[int, tuple[int, int]]:
        """Return where the last dry poll of each partition began and ended."""
        self._end(np.flatnonzero(self._reader_process != NONE))
        return {
            partition: (int(self._dry_invoked[partition]), int(self._dry[partition]))
            for partition in np.flatnonzero(self._dry != NONE).tolist()
        }
