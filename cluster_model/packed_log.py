"""Stores millions of rows of a run, such as its trace. All but the newest rows are packed.

A row of a trace takes about 250 bytes of memory as a tuple, 35 bytes marshalled, and 11 bytes
compressed. So the trace of a simulated day fits into memory. A file would be left behind by a
crash, and writing it would fail on a full disk.
"""

# Plain Python: its class derives from `Sequence`, and its expensive parts are already written in C.

import hashlib
import marshal
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import starmap
from typing import Any, ClassVar, Final, TypeVar, cast, overload

Row = tuple[Any, ...]
"""Plain data: ints, strings, booleans, None, and tuples, lists and dicts of these."""

T = TypeVar("T")

_STORED_VERSION: Final = 4
"""The version of marshal's format with back references.

Rows take half the space, and equal event names become one object.
"""
_HASHED_VERSION: Final = 2
"""The version of marshal's format without back references and interned strings.

So the bytes depend only on the values.
"""
_LIST_HEADER_BYTES: Final = 5
"""The size of a list's header in marshal's format: a type code and the length."""
_ZLIB_START: Final = b"x"
_FASTEST_LEVEL: Final = 1
"""zlib's fastest level.

Its best level saves another third of the space, but takes ten times as long.
"""
_UNPACKED_CHUNKS_MAX: Final = 2
"""How many chunks stay unpacked after look-ups."""


class PackedLog(Sequence[T]):
    """A sequence of rows that only grows.

    Its items are rows, or objects that *kind* makes from the fields of a row. Callers append to the
    list ``newest``, which stays the same object, and regularly call `pack`. There is no method to
    append, because a run appends so often that it calls the list's own method. Nothing is packed
    before there are more than *unpacked_max* rows, so a short run packs nothing. A log that is
    packed once is a long one, and from then on has at most `UNPACKED_LATER_MAX` unpacked rows. Rows
    are packed in chunks of *chunk* rows. A look-up unpacks the chunk of its row, and an iteration
    unpacks one chunk after another.
    """

    __slots__ = ("_chunk_rows", "_chunks", "_kind", "_uncompressed", "_unpacked", "newest", "unpacked_max")

    CHUNK: ClassVar[int] = 4_096
    UNPACKED_MAX: ClassVar[int] = 262_144
    """More rows than 10 000 partitions need. In a trace they take about 65 MB."""
    UNPACKED_LATER_MAX: ClassVar[int] = 65_536
    UNCOMPRESSED_MAX: ClassVar[int] = 64 * 1024 * 1024
    """How many bytes of chunks stay uncompressed, because compression takes a tenth of a run."""

    def __init__(
        self,
        kind: Callable[..., T] | None = None,
        newest: Iterable[Row] = (),
        chunks: Iterable[bytes] = (),
        chunk: int | None = None,
        unpacked_max: int | None = None,
    ) -> None:
        self.newest = list(newest)
        self._kind = kind
        self._chunk_rows = self.CHUNK if chunk is None else chunk
        self.unpacked_max = self.UNPACKED_MAX if unpacked_max is None else unpacked_max
        self._chunks = list(chunks)
        self._uncompressed = sum(map(len, self._chunks))
        self._unpacked: dict[int, list[Row]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the packed chunks, but not the unpacked copies of some of them."""
        return type(self), (self._kind, self.newest, self._chunks, self._chunk_rows, self.unpacked_max)

    def pack(self) -> None:
        """If ``newest`` has more than ``unpacked_max`` rows, pack all of its complete chunks."""
        newest, size = self.newest, self._chunk_rows
        if len(newest) > self.unpacked_max:
            self.unpacked_max = min(self.unpacked_max, self.UNPACKED_LATER_MAX)
            end = len(newest) // size * size
            for begin in range(0, end, size):
                rows = marshal.dumps(newest[begin : begin + size], _STORED_VERSION)
                self._uncompressed += len(rows)
                is_plain = self._uncompressed <= self.UNCOMPRESSED_MAX
                self._chunks.append(rows if is_plain else zlib.compress(rows, _FASTEST_LEVEL))
            del newest[:end]

    @property
    def is_packed(self) -> bool:
        """Whether rows have been packed."""
        return bool(self._chunks)

    def moved(self) -> "PackedLog[T]":
        """Return a new log with all rows of this one, which is empty afterwards."""
        log = PackedLog(self._kind, self.newest, self._chunks, self._chunk_rows, self.unpacked_max)
        for rows in (self.newest, self._chunks, self._unpacked):
            rows.clear()
        return log

    def blocks(self) -> Iterator[list[Row]]:
        """Yield all rows in order, as blocks: each packed chunk, and then the newest rows."""
        yield from map(_unpack, self._chunks)
        yield self.newest

    def rows_at(self, numbers: Iterable[int], first: int = 0) -> Iterator[tuple[int, Row]]:
        """Yield the rows with the given ascending *numbers*, each with its number.

        The number of the first row of the log is *first*. A chunk is unpacked once for all of its
        rows.
        """
        size, packed = self._chunk_rows, len(self._chunks) * self._chunk_rows
        begin = end = first
        rows: Sequence[Row] = ()
        for number in numbers:
            if number >= end:
                if number - first < packed:
                    chunk = (number - first) // size
                    begin, rows = chunk * size + first, self._rows_of(chunk)
                    end = begin + size
                else:
                    begin, end, rows = packed + first, len(self) + first, self.newest
            yield number, rows[number - begin]

    def block_of(self, position: int) -> tuple[int, Sequence[Row]]:
        """Return the block of the row at *position*, after the position of its first row."""
        packed = len(self._chunks) * self._chunk_rows
        if position >= packed:
            return packed, self.newest
        chunk = position // self._chunk_rows
        return chunk * self._chunk_rows, self._rows_of(chunk)

    def digest(self) -> str:
        """Return the digest of the rows.

        It equals the `digest` of a list that has the same rows.
        """
        hashed = hashlib.sha256(marshal.dumps([], _HASHED_VERSION)[:-4] + len(self).to_bytes(4, "little"))
        for rows in self.blocks():
            hashed.update(memoryview(marshal.dumps(rows, _HASHED_VERSION))[_LIST_HEADER_BYTES:])
        return hashed.hexdigest()[:16]

    def __len__(self) -> int:
        return len(self._chunks) * self._chunk_rows + len(self.newest)

    def __iter__(self) -> Iterator[T]:
        for rows in self.blocks():
            yield from self._items(rows)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(
            item == another for item, another in zip(self, other, strict=True)
        )

    __hash__ = None  # type: ignore[assignment] # like a list

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> list[T]: ...

    def __getitem__(self, index: int | slice) -> T | list[T]:
        if not self._chunks and self._kind is None:
            return cast("T | list[T]", self.newest[index])
        if isinstance(index, slice):
            numbers = range(*index.indices(len(self)))
            rising = numbers if numbers.step > 0 else numbers[::-1]
            items = list(self._items(row for _, row in self.rows_at(rising)))
            return items if numbers.step > 0 else items[::-1]
        number = index if index >= 0 else index + len(self)
        if not 0 <= number < len(self):
            raise IndexError(index)
        packed = len(self._chunks) * self._chunk_rows
        if number >= packed:
            row = self.newest[number - packed]
        else:
            row = self._rows_of(number // self._chunk_rows)[number % self._chunk_rows]
        return cast("T", row) if self._kind is None else self._kind(*row)

    def _items(self, rows: Iterable[Row]) -> Iterable[T]:
        return cast("Iterable[T]", rows) if self._kind is None else starmap(self._kind, rows)

    def _rows_of(self, chunk: int) -> list[Row]:
        """Return the rows of a chunk. The chunks that were unpacked last stay unpacked."""
        rows = self._unpacked.get(chunk)
        if rows is None:
            if len(self._unpacked) == _UNPACKED_CHUNKS_MAX:
                del self._unpacked[next(iter(self._unpacked))]
            rows = self._unpacked[chunk] = _unpack(self._chunks[chunk])
        return rows


def blocks_of(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """Yield all *rows* in order, in blocks that are not empty. *rows* may be a `PackedLog`."""
    blocks: Iterable[Sequence[Row]] = rows.blocks() if isinstance(rows, PackedLog) else (rows,)
    for block in blocks:
        for begin in range(0, len(block), PackedLog.CHUNK):
            yield block[begin : begin + PackedLog.CHUNK]


def is_packed(rows: Sequence[Row]) -> bool:
    """Return whether some of the *rows* have to be unpacked before they can be read."""
    return isinstance(rows, PackedLog) and rows.is_packed


def block_of(rows: Sequence[Row], position: int) -> tuple[int, Sequence[Row]]:
    """Return the block of the row at *position*, after the position of its first row."""
    return rows.block_of(position) if isinstance(rows, PackedLog) else (0, rows)


def rows_at(rows: Sequence[Row], numbers: Iterable[int], *, first: int = 0) -> Iterator[tuple[int, Row]]:
    """Yield the rows with the given ascending *numbers*, each with its number.

    The number of the first row is *first*. *rows* may be a `PackedLog`.
    """
    if isinstance(rows, PackedLog):
        return rows.rows_at(numbers, first)
    return ((number, rows[number - first]) for number in numbers)


def _unpack(chunk: bytes) -> list[Row]:
    # A marshalled list and zlib's data begin with different bytes, so the first byte tells them
    # apart.
    plain = zlib.decompress(chunk) if chunk.startswith(_ZLIB_START) else chunk
    rows: list[Row] = marshal.loads(plain)  # noqa: S302 - made by this process, or one of its workers
    return rows


def digest(values: Any) -> str:
    """Return a digest (SHA-256, 16 hex digits) of lists, tuples, ints, strings, booleans and None.

    Equal values have equal digests, because the bytes of `_HASHED_VERSION` do not depend on which
    objects are shared or interned. A `PackedLog` has the digest of a list with the same rows.
    """
    if isinstance(values, PackedLog):
        return values.digest()
    return hashlib.sha256(marshal.dumps(values, _HASHED_VERSION)).hexdigest()[:16]
