"""Picks the few events from which a `HistoryOutline` learns the same as from all of them."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

import numpy as np

from harrow.campaigns.large_histories.byte_block import Flags, Ints
from harrow.campaigns.large_histories.events import Events
from harrow.campaigns.large_histories.numbering import bounds, in_groups
from harrow.campaigns.large_histories.record_slots import TooIrregularError
from harrow.campaigns.large_histories.tables import (
    ASSIGNED_PARTITION,
    ASSIGNMENT,
    POLL_ENDED,
    POLL_INVOKED,
    POLLED,
    POLLED_IN_VAIN,
    UNSURE,
)

_ASSIGNMENTS_MAX: Final = 5_000


def is_decisive(events: Events) -> Flags:
    """Return which events are decisive, between any two assignments.

    These are the first record of each partition and of each session, and some polls: the first and
    the last one of each process, the first and the last one with records of each partition that it
    reads, and the last one without. A poll remains with one record of each of its partitions.
    """
    is_kept: Flags = (events.kind == ASSIGNMENT) | (events.kind == ASSIGNED_PARTITION)
    assignments = np.flatnonzero(events.kind == ASSIGNMENT).tolist()
    if len(assignments) > _ASSIGNMENTS_MAX:
        raise TooIrregularError
    for begin, end in pairwise([0, *assignments, len(events)]):
        if begin < end:
            part = events.part(begin, end)
            for rows in _decisive_rows(part):
                is_kept[begin + rows] = True
    return is_kept


def _decisive_rows(events: Events) -> Iterator[Ints]:
    records = np.flatnonzero(events.kind <= POLLED_IN_VAIN)
    sends = np.flatnonzero(events.kind <= UNSURE)
    polled = np.flatnonzero(events.kind == POLLED)
    yield records[_firsts(events.partition[records])]
    yield sends[_firsts(events.process[sends], events.partition[sends])]
    calls = np.flatnonzero((events.kind == POLL_INVOKED) | (events.kind == POLL_ENDED))
    if not len(calls):
        return
    _, process = np.unique(events.process[calls], return_inverse=True)
    order, _, ends = in_groups(process)
    calls, process = calls[order], process[order]
    is_end = events.kind[calls] == POLL_ENDED
    # An invocation in progress may end later.
    last_invoked = np.maximum.accumulate(np.where(is_end, 0, np.arange(len(calls))))
    yield _invocations(events, calls[last_invoked[ends - 1]])
    invoked = calls[last_invoked[is_end]]
    polls, process = calls[is_end], process[is_end]
    if len(polls):
        kept, rows = _decisive_polls(events, polls, process, polled)
        yield polls[kept]
        yield _invocations(events, invoked[kept])
        yield rows


def _decisive_polls(events: Events, polls: Ints, process: Ints, polled: Ints) -> tuple[Ints, Ints]:
    """Return which polls are decisive, and one record of each partition of these polls.

    The polls of a process follow each other.
    """
    begins, ends = bounds(process)
    is_kept = np.zeros(len(polls), np.bool_)
    is_kept[begins] = is_kept[ends - 1] = True
    by_position = np.argsort(events.position[polls], kind="stable")
    found = by_position[np.searchsorted(events.position[polls[by_position]], events.position[polled])]
    pairs = _firsts(found, events.partition[polled])
    rows, poll = polled[pairs], found[pairs]
    partition = events.partition[rows]
    if len(rows):
        order = np.lexsort((poll, partition, process[poll]))
        at = poll[order]
        first, last = _bounds_of(process[at], partition[order])
        is_kept[at[first]] = is_kept[at[last]] = True
        # Before a poll with records of the partition there may be one without.
        earlier = np.concatenate(([-1], at[:-1]))
        begin_of = np.zeros(int(process.max()) + 1, np.int64)
        begin_of[process[begins]] = begins
        earlier[first] = begin_of[process[at[first]]] - 1
        has_gap = at - 1 > earlier
        marks = np.maximum.accumulate(np.where(has_gap, np.arange(len(at)), -1))[last]
        dry = marks[marks >= first]
        is_kept[at[dry] - 1] = True
    return np.flatnonzero(is_kept), rows[is_kept[poll]]


def _invocations(events: Events, rows: Ints) -> Ints:
    found: Ints = rows[events.kind[rows] == POLL_INVOKED]
    return found


def _bounds_of(one: Ints, other: Ints) -> tuple[Ints, Ints]:
    """Return the first and the last row of each run of equal pairs."""
    changes = np.flatnonzero((one[1:] != one[:-1]) | (other[1:] != other[:-1]))
    return np.concatenate(([0], changes + 1)), np.concatenate((changes, [len(one) - 1]))


def _firsts(*columns: Ints) -> Ints:
    """Return the first row with each combination of values."""
    if not len(columns[0]):
        return np.zeros(0, np.int64)
    order = np.lexsort(columns[::-1])
    is_new = np.zeros(len(order), np.bool_)
    is_new[0] = True
    for column in columns:
        in_order = column[order]
        is_new[1:] |= in_order[1:] != in_order[:-1]
    return np.sort(order[is_new])
