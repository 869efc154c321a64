"""Follows the consumers of a history, and finds the records that decide the order of findings."""

from typing import Final

import numpy as np

from harrow.campaigns.large_histories.byte_block import Ints
from harrow.campaigns.large_histories.dry_polls import DryPolls
from harrow.campaigns.large_histories.events import Events
from harrow.campaigns.large_histories.numbering import Numbering
from harrow.campaigns.large_histories.tables import (
    ASSIGNED_PARTITION,
    ASSIGNMENT,
    POLLED_IN_VAIN,
    UNSURE,
)

PARTITION_BITS: Final = 22
"""A history with more partitions is not read by columns."""


class HistoryOutline:
    """Notes assignments, polls that returned nothing, and first records.

    ``firsts`` are the first record of each partition, and the first one that a process sent to it
    since its last assignment, as pairs of partitions and values: rules list findings in this order.
    """

    def __init__(self) -> None:
        self.dry_polls = DryPolls()
        self.assignments: list[int] = []
        self.firsts: list[tuple[Ints, Ints]] = []
        self._processes = Numbering()
        self._partitions = Numbering()
        self._sessions = Numbering()

    def add(self, events: Events) -> None:
        """Add the next events."""
        process, _ = self._processes.add(events.process)
        self.dry_polls.grow(len(self._processes))
        begin = 0
        for at in np.flatnonzero(events.kind == ASSIGNMENT).tolist():
            self._add(events.part(begin, at), process[begin:at])
            begin = at
            is_here = events.position == events.position[at]
            named = events.partition[is_here & (events.kind == ASSIGNED_PARTITION)]
            self.assignments.append(int(events.position[at]))
            self.dry_polls.assign(int(process[at]), named.tolist())
        self._add(events.part(begin, len(events)), process[begin:])

    def kept_positions(self) -> list[int]:
        """Return the positions of assignments, and of the first polls after them."""
        return self.dry_polls.first_polls + self.assignments

    def _add(self, events: Events, process: Ints) -> None:
        records = np.flatnonzero(events.kind <= POLLED_IN_VAIN)
        self._note(events, records, self._partitions, events.partition[records])
        sends = np.flatnonzero(events.kind <= UNSURE)
        sessions = self.dry_polls.epochs[process[sends]] << PARTITION_BITS | events.partition[sends]
        self._note(events, sends, self._sessions, sessions)
        self.dry_polls.add(events, process)

    def _note(self, events: Events, rows: Ints, numbering: Numbering, keys: Ints) -> None:
        _, firsts = numbering.add(keys)
        if len(firsts):
            self.firsts.append((events.partition[rows[firsts]], events.value[rows[firsts]]))
