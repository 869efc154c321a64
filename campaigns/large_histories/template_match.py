"""Finds the lines of a block that match a template, and the columns of their slots."""

from collections.abc import Mapping
from typing import Final

import numpy as np

from harrow.campaigns.large_histories.byte_block import ByteBlock, Flags, Ints, Words
from harrow.campaigns.large_histories.line_template import (
    IGNORED,
    INDEX,
    OFFSET,
    PROCESS,
    VALUE,
    LineTemplate,
    Pieces,
    RecordGaps,
)
from harrow.cluster_model.lazy_dataclass import dataclass

_BAD: Final = np.uint64(1)
_FEWEST_QUOTES: Final = 4
_NUMBERS: Final = (PROCESS, OFFSET, INDEX)


@dataclass(frozen=True, slots=True)
class PolledRecords:
    """The records that some lines polled.

    ``lines`` are places in the array of the lines, ``places`` count the records of one partition.
    ``partitions`` are places in the arrays of hashes and spans of all partitions.
    """

    lines: Ints
    partitions: Ints
    offsets: Ints
    values: Ints
    places: Ints
    partition_hashes: Ints
    partition_spans: tuple[Ints, Ints]


@dataclass(frozen=True, slots=True)
class Match:
    """Lines that match a template. ``columns`` has numbers, and the hashes of texts.

    ``spans`` has the places of texts in the block. ``polled`` are the records of polls.
    """

    lines: Ints
    columns: Mapping[str, Ints]
    spans: Mapping[str, tuple[Ints, Ints]]
    polled: PolledRecords | None = None


class _Walk:
    """Follows the pieces of a template through some lines."""

    def __init__(self, block: ByteBlock, first_quotes: Ints, places: Ints) -> None:
        self._block = block
        self._first_quotes = first_quotes
        self.places = places
        self.bad: Words = np.zeros(len(places), np.uint64)
        self.columns: dict[str, Ints] = {}
        self.spans: dict[str, tuple[Ints, Ints]] = {}

    def follow(self, pieces: Pieces, quote_counts: Ints) -> None:
        for piece in pieces:
            if isinstance(piece, bytes):
                self.bad |= self._block.differs(self.places, piece)
                self.places = self.places + len(piece)
            elif piece.is_text:
                number = self._first_quotes + piece.quote + (quote_counts if piece.quote < 0 else 0)
                ends = self._block.quotes[number]
                # A value is hashed with the quote before it, because a number is another value.
                begins = self.places - (piece.meaning == VALUE)
                self.bad |= (ends < self.places) * _BAD
                self.spans[piece.meaning] = begins, np.maximum(ends, begins)
                self.places = ends
            else:
                values, digits = self._block.numbers(self.places)
                self.bad |= (digits == 0) * _BAD
                self.columns[piece.meaning] = values
                self.spans[piece.meaning] = self.places, self.places + digits
                self.places = self.places + digits


def match(template: LineTemplate, block: ByteBlock, lines: Ints) -> Match | None:
    """Return those of some lines that match a template, if any. The lines must be simple."""
    lines = lines[_may_match(template, block, lines)]
    for quote, word in template.words.items():
        if not len(lines):
            return None
        number = block.first_quotes[lines] + quote + (block.quote_counts[lines] if quote < 0 else 0)
        lines = lines[block.differs(block.quotes[number] + 1, word) == 0]
    if not len(lines):
        return None
    walk = _Walk(block, block.first_quotes[lines], block.starts[lines])
    counts = block.quote_counts[lines]
    walk.follow(template.pieces, counts)
    polled = None
    if template.gaps is not None:
        records = _RecordWalk(block, template, lines)
        walk.bad |= records.bad
        walk.places = records.ends
        walk.follow(template.tail, counts)
        polled = records
    walk.bad |= (walk.places != block.ends[lines]) * _BAD
    good = walk.bad == 0
    if not good.any():
        return None
    spans = {
        meaning: (begins[good], ends[good])
        for meaning, (begins, ends) in walk.spans.items()
        if meaning not in (IGNORED, *_NUMBERS)
    }
    columns = {meaning: column[good] for meaning, column in walk.columns.items() if meaning in _NUMBERS}
    columns |= {meaning: block.hashes(*ends) for meaning, ends in spans.items()}
    return Match(lines[good], columns, spans, None if polled is None else polled.records(good))


def _may_match(template: LineTemplate, block: ByteBlock, lines: Ints) -> Flags:
    counts = block.quote_counts[lines]
    more = counts - template.quotes
    may: Flags = more == 0 if template.gaps is None else (more >= _FEWEST_QUOTES) & (more & 1 == 0)
    return may


class _RecordWalk:
    """Follows the partitions and records of polls: texts with offsets between them.

    ``ends`` are the places of the last quotes, and ``bad`` is not 0 where a line does not match.
    """

    def __init__(self, block: ByteBlock, template: LineTemplate, lines: Ints) -> None:
        assert template.gaps is not None
        self._block = block
        tail_quotes = sum(piece.count(b'"') for piece in template.tail if isinstance(piece, bytes))
        # A piece begins with the quote that ends the last value.
        begins = block.first_quotes[lines] + template.quotes - tail_quotes + 1
        texts = (block.quote_counts[lines] - template.quotes) >> 1
        self._lines = np.repeat(np.arange(len(lines)), texts)
        ends = np.cumsum(texts)
        firsts = ends - texts
        within = np.arange(len(self._lines)) - firsts[self._lines]
        number = begins[self._lines] + 2 * within
        self._opened, self._closed = block.quotes[number], block.quotes[number + 1]
        self._is_first, is_last = within == 0, np.zeros(len(number), np.bool_)
        is_last[ends - 1] = True
        self.ends = self._closed[is_last]
        bad = self._classify(template.gaps, is_last)
        self.bad: Words = np.zeros(len(lines), np.uint64)
        self.bad[self._lines[bad]] = _BAD
        self._partitions = np.flatnonzero(self._is_partition)
        self._hashes = block.hashes(*self._partition_spans(self._partitions))
        self._find_repeated()

    def _partition_spans(self, texts: Ints) -> tuple[Ints, Ints]:
        return self._opened[texts] + 1, self._closed[texts]

    def _find_repeated(self) -> None:
        """Mark the lines that name a partition twice, of which JSON's parser takes the last."""
        lines = self._lines[self._partitions]
        order = np.lexsort((self._hashes, lines))
        lines, hashes = lines[order], self._hashes[order]
        is_repeated = (lines[1:] == lines[:-1]) & (hashes[1:] == hashes[:-1])
        self.bad[lines[1:][is_repeated]] = _BAD

    def _classify(self, gaps: RecordGaps, is_last: Flags) -> Flags:
        """Tell partitions from values by what follows them, and return which texts are wrong."""
        block, closed = self._block, self._closed
        opens_list = block.differs(closed, gaps.first) == 0
        continues = block.differs(closed, gaps.following) == 0
        closes_list = block.differs(closed, gaps.next_partition) == 0
        self._is_partition = opens_list
        follows_partition = np.roll(opens_list, 1)
        follows_partition[0] = False
        follows_list = np.roll(closes_list & ~is_last, 1)
        follows_list[0] = False
        # A poll begins with a partition, and a partition follows each list of records.
        bad: Flags = opens_list != (self._is_first | follows_list)
        bad |= opens_list & is_last
        bad |= ~(opens_list | continues | closes_list | is_last)
        following_open = np.roll(self._opened, -1)
        is_before_value = (opens_list | continues) & ~is_last
        at = np.flatnonzero(is_before_value)
        length = np.where(opens_list[at], len(gaps.first), len(gaps.following))
        begins = closed[at] + length
        offsets, digits = block.numbers(begins)
        bad[at] |= digits == 0
        bad[at] |= block.differs(begins + digits, gaps.comma) != 0
        bad[at] |= begins + digits + len(gaps.comma) != following_open[at] + 1
        between = closes_list & ~is_last
        bad |= between & (closed + len(gaps.next_partition) != following_open + 1)
        self._offsets = np.full(len(closed), -1, np.int64)
        self._offsets[at + 1] = offsets
        return bad

    def records(self, good: Flags) -> PolledRecords:
        """Return the records of the good lines."""
        is_good = good[self._lines]
        new_line = np.cumsum(good) - 1
        partition_at = np.maximum.accumulate(np.where(self._is_partition, np.arange(len(is_good)), 0))
        number = np.cumsum(self._is_partition) - 1
        values = np.flatnonzero(~self._is_partition & is_good)
        return PolledRecords(
            lines=new_line[self._lines[values]],
            partitions=number[values],
            offsets=self._offsets[values],
            values=self._block.hashes(self._opened[values], self._closed[values]),
            places=values - partition_at[values] - 1,
            partition_hashes=self._hashes,
            partition_spans=self._partition_spans(self._partitions),
        )
