"""Splits the files of a history into parts that tasks can read independently."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import pairwise
from typing import IO, Final, Protocol

from harrow.campaigns.large_histories.byte_block import ByteBlock, blocks_of
from harrow.campaigns.record.edn import begins_vector_of_maps
from harrow.campaigns.record.history_file import GZIP_MAGIC, bounded_lines, lines_of
from harrow.campaigns.storage.location import Location
from harrow.cluster_model.lazy_dataclass import dataclass

SPLIT_BYTES: Final = 64 << 20
"""The size of a part. A compressed file, or an EDN file that is one vector, is one part."""

_TASKS_MIN: Final = 32
"""How many tasks small files share at least, so that the cores of a small cluster are busy."""

_FIRST_BYTES: Final = 1 << 16
_UNPACKED_PER_BYTE: Final = 10
"""About how much longer a history is than its compressed file."""


class HistoryPart(Protocol):
    """A part of a history that a task can read independently."""

    @property
    def number(self) -> int: ...

    def blocks(self, *, line_max: int, unpacked_max: int) -> AbstractContextManager[Iterator[ByteBlock]]: ...


@dataclass(frozen=True, slots=True)
class Split:
    """The lines of a file that begin at or after byte ``begin`` and before byte ``end``.

    ``end`` is None for a file that is read as a whole. The lines have about ``size_bytes``.
    """

    number: int
    name: str
    place: Location
    size_bytes: int
    begin: int = 0
    end: int | None = None

    @contextmanager
    def blocks(self, *, line_max: int, unpacked_max: int) -> Iterator[Iterator[ByteBlock]]:
        """Yield the lines in blocks.

        Raises `LongLineError` and `UnreadableLine` like `blocks_of` and `lines`.
        """
        if self.end is None:
            lines = self.lines(line_max=line_max, unpacked_max=unpacked_max)
            yield blocks_of(_LineStream(lines), line_max)
            return
        with self.place.open() as stream:
            position = self.begin
            if position:
                stream.seek(position - 1)
                position += len(stream.readline()) - 1
            yield blocks_of(_PartOfStream(stream, max(self.end - position, 0)), line_max)

    def listed_lines(self, numbers: Sequence[int], *, line_max: int, unpacked_max: int) -> Iterator[bytes]:
        """Yield some lines, by their numbers among those that are not blank."""
        remaining = iter(numbers)
        following = next(remaining, None)
        lines = (
            line for line in self.lines(line_max=line_max, unpacked_max=unpacked_max) if not line.isspace()
        )
        for number, line in enumerate(lines):
            if following is None:
                return
            if number == following:
                yield line
                following = next(remaining, None)

    def lines(self, *, line_max: int, unpacked_max: int) -> Iterator[bytes]:
        """Yield the lines. The limits are those of `harrow.campaigns.record.history_file`."""
        with self.place.open() as stream:
            if self.end is None:
                yield from lines_of(stream, line_max=line_max, unpacked_max=unpacked_max)
                return
            position = self.begin
            if position:
                # A line that begins in the part before belongs to that part.
                stream.seek(position - 1)
                position += len(stream.readline()) - 1
            yield from _until(bounded_lines(stream, line_max), position, self.end)


class _PartOfStream:
    """A stream up to the end of the line at a limit of bytes."""

    def __init__(self, stream: IO[bytes], size: int) -> None:
        self._stream = stream
        self._left = size

    def read(self, size: int) -> bytes:
        if self._left <= 0:
            return b""
        content = self._stream.read(min(size, self._left))
        self._left = self._left - len(content) if content else 0
        if self._left <= 0 and not content.endswith(b"\n"):
            content += self._stream.readline()
        return content


class _LineStream:
    """A stream of lines."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        self._lines = lines

    def read(self, size: int) -> bytes:
        found: list[bytes] = []
        for line in self._lines:
            found.append(line)
            size -= len(line)
            if size <= 0:
                break
        return b"".join(found)


def split_files(files: Sequence[tuple[str, Location]], *, split_bytes: int = SPLIT_BYTES) -> list[Split]:
    """Return the parts of all files, in order.

    Raises:
        OSError: A file cannot be read.

    """
    splits: list[Split] = []
    for name, place in files:
        with place.open() as stream:
            first = stream.read(_FIRST_BYTES)
        size = place.size()
        if first.startswith(GZIP_MAGIC) or begins_vector_of_maps(first.splitlines(keepends=True)):
            unpacked = size * _UNPACKED_PER_BYTE if first.startswith(GZIP_MAGIC) else size
            splits.append(Split(len(splits), name, place, unpacked))
            continue
        for begin in range(0, max(size, 1), split_bytes):
            end = min(begin + split_bytes, size)
            splits.append(Split(len(splits), name, place, end - begin, begin, end))
    return splits


def in_tasks(splits: Sequence[Split]) -> list[range]:
    """Return which parts each task reads: consecutive ones of together `SPLIT_BYTES` at most.

    A part for each task would take minutes if there were a thousand small files.
    """
    limit = min(SPLIT_BYTES, sum(split.size_bytes for split in splits) // _TASKS_MIN)
    begins, taken = [0], 0
    for number, split in enumerate(splits):
        if number and taken + split.size_bytes > limit:
            begins.append(number)
            taken = 0
        taken += split.size_bytes
    return [range(*ends) for ends in pairwise((*begins, len(splits)))]


def lines_before(split: Split) -> int:
    """Count the lines of a file that begin before a part."""
    with split.place.open() as stream:
        return sum(1 for _ in _until(stream, 0, split.begin))


def _until(lines: Iterable[bytes], position: int, end: int) -> Iterator[bytes]:
    """Yield the lines that begin before byte *end*; the first one begins at *position*."""
    for line in lines:
        if position >= end:
            return
        yield line
        position += len(line)
