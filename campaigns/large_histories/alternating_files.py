"""Orders the lines of files whose operations alternate in time, by the numbers of operations.

A history may be distributed over files at random or in turn. Then no part of a file has all that
happened in some time, and tasks that each read a part could decide little. So tasks first
distribute the lines over ranges of numbers, and other tasks read the ranges like parts of one file.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from itertools import groupby, pairwise
from operator import attrgetter
from typing import Final

import numpy as np

from harrow.campaigns.large_histories.byte_block import ByteBlock, Ints, LongLineError, blocks_of
from harrow.campaigns.large_histories.column_reader import ColumnReader, UnusualLinesError
from harrow.campaigns.large_histories.facts import LINES_OF_RANGE, OUTLINE, UNUSUAL, FactRow, fact_row
from harrow.campaigns.large_histories.numbering import bounds
from harrow.campaigns.large_histories.splits import SPLIT_BYTES, Split
from harrow.campaigns.record.history_file import HistoryError, UnreadableLine
from harrow.cluster_model.lazy_dataclass import dataclass

RANGE_BYTES: Final = SPLIT_BYTES

_CANNOT_BE_READ: Final = (HistoryError, LongLineError, UnreadableLine, UnusualLinesError)


@dataclass(frozen=True, slots=True)
class SplitOutline:
    """The numbers of the first and the last operation of each block of part number ``split``."""

    split: int
    first: Ints
    last: Ints
    sizes: Ints


@dataclass(frozen=True, slots=True)
class MergedPart:
    """The lines of all files in a range of numbers, in the order of their numbers."""

    number: int
    content: bytes

    @contextmanager
    def blocks(self, *, line_max: int, unpacked_max: int) -> Iterator[Iterator[ByteBlock]]:
        """Yield the lines in blocks. They have been unpacked."""
        del unpacked_max
        yield blocks_of(BytesIO(self.content), line_max)


def outline_rows(split: Split, limits: dict[str, int]) -> Iterator[FactRow]:
    """Yield the outline of a part, or a row that says that it must be read in another way.

    Only the first and the last line of each block are parsed.
    """
    found: list[tuple[int, int, int]] = []
    try:
        with split.blocks(**limits) as blocks:
            for block in blocks:
                ends = dict.fromkeys((0, len(block.starts) - 1))
                reader = ColumnReader(numbered=True)
                reader.read(ByteBlock(b"".join(map(block.line, ends))))
                if len(reader.positions):
                    found.append((int(reader.positions[0]), int(reader.positions[-1]), block.size))
    except _CANNOT_BE_READ:
        yield fact_row(UNUSUAL, split.number)
        return
    columns = np.array(found, np.int64).reshape(-1, 3)
    if np.any(np.diff(columns[:, :2].ravel()) < 0):
        yield fact_row(UNUSUAL, split.number)
    else:
        yield fact_row(OUTLINE, SplitOutline(split.number, *columns.T))


def alternate(outlines: Iterable[SplitOutline]) -> bool:
    """Return whether parts have operations between those of another part."""
    ends = sorted((int(part.first[0]), int(part.last[-1])) for part in outlines if len(part.first))
    return any(first <= last for (_, last), (first, _) in pairwise(ends))


def range_edges(outlines: Sequence[SplitOutline]) -> Ints:
    """Return the numbers at which ranges end that have about `RANGE_BYTES` each.

    The lines of a block are assumed to be evenly distributed over the numbers of the block.
    """
    first, last, sizes = (
        np.concatenate([getattr(part, name) for part in outlines]) for name in ("first", "last", "sizes")
    )
    density = sizes / (last + 1 - first)
    knots = np.concatenate((first, last + 1))
    order = np.argsort(knots, kind="stable")
    knots = knots[order]
    densities = np.cumsum(np.concatenate((density, -density))[order])
    total = np.concatenate(([0.0], np.cumsum(densities[:-1] * np.diff(knots))))
    wanted = np.arange(RANGE_BYTES, sizes.sum(), RANGE_BYTES)
    edges: Ints = np.unique(np.interp(wanted, total, knots).astype(np.int64))
    return edges


def range_rows(split: Split, limits: dict[str, int], edges: Ints) -> Iterator[FactRow]:
    """Yield the lines of a part by ranges, with the numbers of their operations."""
    reader = ColumnReader(numbered=True)
    try:
        with split.blocks(**limits) as blocks:
            for block in blocks:
                reader.read(block)
                ranges = np.searchsorted(edges, reader.positions, side="right")
                for begin, end in zip(*bounds(ranges), strict=True):
                    lines = [block.line(row) for row in reader.rows[begin:end].tolist()]
                    content = reader.positions[begin:end], b"".join(lines)
                    yield fact_row(LINES_OF_RANGE, content, range_=int(ranges[begin]))
    except _CANNOT_BE_READ:
        yield fact_row(UNUSUAL, split.number)


def merged_parts(rows: Iterable[FactRow]) -> Iterator[MergedPart | FactRow]:
    """Yield the parts of rows in the order of their ranges, and pass on rows of unusual parts."""
    for number, of_range in groupby(rows, attrgetter("range")):
        positions: list[Ints] = []
        lines: list[bytes] = []
        for row in of_range:
            if row.kind == UNUSUAL:
                yield row
            else:
                numbers, content = row.load()
                positions.append(numbers)
                lines += content[:-1].split(b"\n")
        if lines:
            order = np.argsort(np.concatenate(positions), kind="stable")
            in_order = map(lines.__getitem__, order.tolist())
            yield MergedPart(number, b"\n".join((*in_order, b"")))
