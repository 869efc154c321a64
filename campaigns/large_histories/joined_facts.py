"""Compares the facts of all parts of a history: those of a range of offsets, then those of values.

A task of the first stage has some ranges of offsets, a task of the second stage some values.
"""

from collections.abc import Iterable, Iterator

import numpy as np

from harrow.campaigns.large_histories.byte_block import Flags, Ints
from harrow.campaigns.large_histories.events import NONE
from harrow.campaigns.large_histories.facts import (
    LOOSE,
    LOOSE_BIT,
    NO_INTS,
    RANGE,
    SENT,
    SUSPECTS_OF_TASK_MAX,
    UNUSUAL,
    VALUE_RANGE,
    VALUES,
    FactRow,
    concatenation,
    fact_row,
    key_of,
)
from harrow.campaigns.large_histories.numbering import bounds, is_among, sorted_set
from harrow.campaigns.large_histories.record_slots import ACKED_AT, POLLED_AT
from harrow.checks.history.witness import SKIPPED_SHOWN
from harrow.cluster_model.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Jumps:
    """Jumps of consumers: partitions, and the offsets before and after each."""

    partition: Ints
    here: Ints
    there: Ints


@dataclass(frozen=True, slots=True)
class RangeFacts:
    """What a range of offsets of a partition shows.

    ``count`` is how many offsets are known. ``suspects`` and ``pivots`` are keys; sends next to a
    pivot are suspects too. ``last_polled`` is the key of the last polled record, or `NONE`.
    ``ends`` are the offsets before and after jumps, with how many known offsets of the range are
    lower, in order. ``first`` are offsets and keys at the beginning, and ``near`` those of the ends
    and of some records after each.
    """

    partition: int
    number: int
    count: int
    suspects: Ints
    pivots: Ints
    last_polled: int
    ends: tuple[Ints, Ints]
    first: tuple[Ints, Ints]
    near: tuple[Ints, Ints]


@dataclass(frozen=True, slots=True)
class ValueFacts:
    """What some values show: suspects, and how many values were sent, acked and polled.

    ``misrouted`` are suspects that may have been sent to another partition than that of a poll.
    ``sent_twice`` is a value that was sent to several partitions, and its keys.
    """

    pivots: Ints
    suspects: Ints
    misrouted: Ints
    sent_twice: tuple[int, Ints] | None
    sent: int
    acked: int
    polled: int


def compare_offsets(rows: Iterable[FactRow], jumps: Jumps, whole: Ints, parts: int) -> Iterator[FactRow]:
    """Yield the facts of ranges of offsets, and values for *parts* tasks.

    A row says that the history is unusual if there are too many suspects.
    """
    ranges: dict[tuple[int, int], list[tuple[Ints, Ints, Ints]]] = {}
    suspects = 0
    for row in rows:
        if row.kind == LOOSE:
            values, flags = row.load()
            yield from _value_rows(row.partition, values, flags, parts)
        else:
            ranges.setdefault((row.partition, row.range), []).append(row.load())
    while ranges:
        (partition, number), chunks = ranges.popitem()
        compared = _Range(partition, chunks)
        facts = compared.facts(number, jumps, is_whole=bool(np.any(whole == partition)))
        suspects += len(facts.suspects) + len(facts.pivots)
        if suspects > SUSPECTS_OF_TASK_MAX:
            yield fact_row(UNUSUAL, None)
            return
        yield fact_row(RANGE, facts)
        yield from _value_rows(partition, compared.values, compared.flags, parts)


def _value_rows(partition: int, values: Ints, flags: Ints, parts: int) -> Iterator[FactRow]:
    part = (values % parts).astype(np.int32)
    order = np.argsort(part.astype(np.uint16) if parts < 1 << 16 else part, kind="stable")
    part, values, flags = part[order], values[order], flags[order]
    for begin, end in zip(*bounds(part), strict=True):
        content = values[begin:end], flags[begin:end]
        yield fact_row(VALUES, content, partition=partition, range_=int(part[begin]))


class _Range:
    """The records of a range of offsets, without repetitions."""

    def __init__(self, partition: int, chunks: list[tuple[Ints, Ints, Ints]]) -> None:
        self._partition = partition
        offsets, values, flags = (np.concatenate(column) for column in zip(*chunks, strict=True))
        order = np.argsort(offsets, kind="stable")
        same = offsets[order[1:]] == offsets[order[:-1]]
        if np.any(same & (values[order[1:]] != values[order[:-1]])):
            order = np.lexsort((values, offsets))
        offsets, values, flags = offsets[order], values[order], flags[order]
        is_new = np.ones(len(offsets), np.bool_)
        is_new[1:] = (offsets[1:] != offsets[:-1]) | (values[1:] != values[:-1])
        begins = np.flatnonzero(is_new)
        self.values: Ints = values[begins]
        self.flags: Ints = np.bitwise_or.reduceat(flags, begins)
        self._all_offsets = offsets[begins]
        firsts, _ = bounds(self._all_offsets)
        self._offsets: Ints = self._all_offsets[firsts]
        self._firsts = firsts

    def _key(self, rows: Ints | Flags) -> Ints:
        return key_of(self._partition, self.values[rows])

    def facts(self, number: int, jumps: Jumps, *, is_whole: bool) -> RangeFacts:
        same = self._all_offsets[1:] == self._all_offsets[:-1]
        is_crowded = np.zeros(len(self.values), np.bool_)
        is_crowded[1:] |= same
        is_crowded[:-1] |= same
        is_unread = self.flags & POLLED_AT == 0
        polled = np.flatnonzero(~is_unread)
        ends, near = self._ends(jumps)
        begin = np.arange(min(SKIPPED_SHOWN, len(self._offsets)))
        return RangeFacts(
            partition=self._partition,
            number=number,
            count=len(self._offsets),
            suspects=NO_INTS if is_whole else self._key(is_unread),
            pivots=self._key(is_crowded),
            last_polled=int(self._key(polled[-1:])[0]) if len(polled) else NONE,
            ends=ends,
            first=self._records(begin),
            near=self._records(near),
        )

    def _records(self, ranks: Ints) -> tuple[Ints, Ints]:
        return self._offsets[ranks], self._key(self._firsts[ranks])

    def _ends(self, jumps: Jumps) -> tuple[tuple[Ints, Ints], Ints]:
        """Return the ends of jumps in this range, and the ranks of the records there and after."""
        is_mine = jumps.partition == self._partition
        ends = sorted_set(concatenation([jumps.here[is_mine], jumps.there[is_mine]]))
        ends = ends[is_among(ends, self._offsets)]
        ranks = np.searchsorted(self._offsets, ends)
        near = sorted_set((ranks[:, None] + np.arange(SKIPPED_SHOWN + 1)).ravel())
        return (ends, ranks), near[near < len(self._offsets)]


def compare_values(rows: Iterable[FactRow], with_sends: Ints) -> Iterator[FactRow]:
    """Yield the facts of values, and pass on those of ranges of offsets.

    *with_sends* are the partitions that have sends. If there are too many suspects, the last row
    says that the history is unusual.
    """
    partitions: list[int] = []
    chunks: list[tuple[Ints, Ints]] = []
    for row in rows:
        if row.kind in (RANGE, UNUSUAL):
            yield row
        else:
            partitions.append(row.partition)
            chunks.append(row.load())
    if chunks:
        values, flags = (np.concatenate(column) for column in zip(*chunks, strict=True))
        sizes = [len(chunk[0]) for chunk in chunks]
        facts = _value_facts(np.array(partitions, np.int64), np.array(sizes), values, flags, with_sends)
        if len(facts.suspects) + len(facts.pivots) + len(facts.misrouted) > SUSPECTS_OF_TASK_MAX:
            yield fact_row(UNUSUAL, None)
        else:
            yield fact_row(VALUE_RANGE, facts)


def _value_facts(partitions: Ints, sizes: Ints, values: Ints, flags: Ints, with_sends: Ints) -> ValueFacts:
    number = np.repeat(np.arange(len(partitions), dtype=np.int32), sizes)
    order = np.argsort(values)
    values = values[order]
    same = values[1:] == values[:-1]
    is_shared = np.zeros(len(values), np.bool_)
    is_shared[1:] |= same
    is_shared[:-1] |= same
    flags, number = flags[order], number[order]
    alone, counted = flags[~is_shared], [flags[~is_shared]]
    lost = (alone & (LOOSE_BIT | ACKED_AT)) == (LOOSE_BIT | ACKED_AT)
    suspects = [key_of(partitions[number[~is_shared][lost]], values[~is_shared][lost])]
    pivots = misrouted = NO_INTS
    sent_twice = None
    if is_shared.any():
        values, partition, flags = values[is_shared], partitions[number[is_shared]], flags[is_shared]
        order = np.lexsort((partition, values))
        values, partition, flags = values[order], partition[order], flags[order]
        is_new = np.ones(len(values), np.bool_)
        is_new[1:] = (values[1:] != values[:-1]) | (partition[1:] != partition[:-1])
        begins = np.flatnonzero(is_new)
        counts = np.diff(begins, append=len(values))
        values, partition = values[begins], partition[begins]
        flags = np.bitwise_or.reduceat(flags, begins)
        counted.append(flags)
        keys = key_of(partition, values)
        pivots = keys[counts > 1]
        lost = (flags & (LOOSE_BIT | ACKED_AT)) == (LOOSE_BIT | ACKED_AT)
        suspects.append(keys[lost])
        misrouted, sent_twice = _elsewhere(values, partition, flags, keys, with_sends)
    totals = np.concatenate(counted)
    return ValueFacts(
        pivots=pivots,
        suspects=concatenation(suspects),
        misrouted=misrouted,
        sent_twice=sent_twice,
        sent=int(np.count_nonzero(totals & SENT)),
        acked=int(np.count_nonzero(totals & ACKED_AT)),
        polled=int(np.count_nonzero(totals & POLLED_AT)),
    )


def _elsewhere(
    values: Ints, partition: Ints, flags: Ints, keys: Ints, with_sends: Ints
) -> tuple[Ints, tuple[int, Ints] | None]:
    """Return the keys of values that may be misrouted, and a value with several senders."""
    is_sent = flags & SENT != 0
    is_unsent = ~is_sent & is_among(partition, with_sends)
    begins, ends = bounds(values)
    sent = np.add.reduceat(is_sent.astype(np.int64), begins)
    unsent = np.add.reduceat(is_unsent.astype(np.int64), begins)
    sizes = ends - begins
    misrouted = keys[np.repeat((sent > 0) & (unsent > 0), sizes)]
    twice = np.flatnonzero(sent > 1)[:1].tolist()
    if not twice:
        return misrouted, None
    here = slice(int(begins[twice[0]]), int(ends[twice[0]]))
    return misrouted, (int(values[begins[twice[0]]]), keys[here][is_sent[here]])
