"""Stores millions of rows of a run, such as its trace. All but the newest rows are packed.

A row of a trace takes about 250 bytes of memory as a tuple, 35 bytes marshalled, and 11 bytes
compressed. So the trace of a simulated day fits into memory. A file would be left behind by a
crash, and writing it would fail on a full disk. To unpack a row takes longer than to judge it, so
the rows of each kind are packed apart, and a reader unpacks only the kinds that it needs.
"""

# Plain Python: its class derives from `Sequence`, and its expensive parts are already written in C.

import hashlib
import marshal
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import starmap
from typing import Any, ClassVar, Final, NamedTuple, TypeVar, cast, overload

from harrow.cluster_model.row_groups import Row, grouped

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
_COMPRESSED_MIN_BYTES: Final = 1_024
"""Smaller parts stay plain, because starting zlib costs more than it saves."""
_POSITION: Final = "H"
"""The type of positions in arrays."""
_POSITIONS_MAX: Final = 1 << 16
_UNPACKED_CHUNKS_MAX: Final = 2
"""How many chunks stay unpacked after look-ups."""


class PackedRows(NamedTuple):
    """A block of rows, packed kind by kind.

    ``positions`` has the ascending positions of each kind's rows in the block. ``parts`` has these
    rows, marshalled and perhaps compressed. ``first`` is the first row of the block.
    """

    positions: Mapping[Any, Sequence[int]]
    parts: Mapping[Any, bytes]
    first: Row

    @property
    def size(self) -> int:
        return sum(map(len, self.positions.values()))

    def rows_of(self, kind: Any) -> list[Row]:
        """Return the rows of one kind, in order."""
        part = self.parts[kind]
        # A marshalled list and zlib's data begin with different bytes, so the first byte tells them
        # apart.
        plain = zlib.decompress(part) if part.startswith(_ZLIB_START) else part
        rows: list[Row] = marshal.loads(plain)  # noqa: S302 - made by this process, or one of its workers
        return rows

    def rows(self) -> list[Row]:
        """Return all rows, in order."""
        if len(self.parts) == 1:
            return self.rows_of(*self.parts)
        rows: list[Row] = [()] * self.size
        for kind, positions in self.positions.items():
            for position, row in zip(positions, self.rows_of(kind), strict=True):
                rows[position] = row
        return rows


class PackedLog(Sequence[T]):
    """A sequence of rows that only grows.

    Its items are rows, or objects that *make* makes from the fields of a row. Callers append to the
    list ``newest``, which stays the same object, and regularly call `pack`. There is no method to
    append, because a run appends so often that it calls the list's own method. Nothing is packed
    before there are more than *unpacked_max* rows, so a short run packs nothing. A log that is
    packed once is a long one, and from then on has at most `UNPACKED_LATER_MAX` unpacked rows. Rows
    are packed in chunks of *chunk* rows. In a chunk, rows with different fields at the place
    *kind_at* are packed apart; None packs all of them together. A look-up unpacks the chunk of its
    row, and an iteration unpacks one chunk after another.
    """

    __slots__ = (
        *("_chunk_rows", "_chunks", "_kind_at", "_make", "_uncompressed", "_unpacked"),
        *("newest", "unpacked_max"),
    )

    CHUNK: ClassVar[int] = 4_096
    UNPACKED_MAX: ClassVar[int] = 262_144
    """More rows than 10 000 partitions need. In a trace they take about 65 MB."""
    UNPACKED_LATER_MAX: ClassVar[int] = 8_192
    UNCOMPRESSED_MAX: ClassVar[int] = 64 * 1024 * 1024
    """How many bytes of chunks stay uncompressed, because compression takes a tenth of a run."""

    def __init__(
        self,
        make: Callable[..., T] | None = None,
        newest: Iterable[Row] = (),
        chunks: Iterable[PackedRows] = (),
        chunk: int | None = None,
        unpacked_max: int | None = None,
        kind_at: int | None = None,
    ) -> None:
        self.newest = list(newest)
        self._make = make
        self._kind_at = kind_at
        self._chunk_rows = self.CHUNK if chunk is None else chunk
        assert self._chunk_rows <= _POSITIONS_MAX
        self.unpacked_max = self.UNPACKED_MAX if unpacked_max is None else unpacked_max
        self._chunks = list(chunks)
        self._uncompressed = sum(len(part) for packed in self._chunks for part in packed.parts.values())
        self._unpacked: dict[int, list[Row]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the packed chunks, but not the unpacked copies of some of them."""
        return type(self), self._state()

    def _state(self) -> tuple[Any, ...]:
        return self._make, self.newest, self._chunks, self._chunk_rows, self.unpacked_max, self._kind_at

    def pack(self) -> None:
        """If ``newest`` has more than ``unpacked_max`` rows, pack all of its complete chunks."""
        newest, size = self.newest, self._chunk_rows
        if len(newest) > self.unpacked_max:
            self.unpacked_max = min(self.unpacked_max, self.UNPACKED_LATER_MAX)
            end = len(newest) // size * size
            self._chunks += (self._packed(newest[begin : begin + size]) for begin in range(0, end, size))
            del newest[:end]

    def _packed(self, rows: list[Row]) -> PackedRows:
        if self._kind_at is None:
            return PackedRows({None: range(len(rows))}, {None: self._marshalled(rows)}, rows[0])
        groups = grouped(rows, self._kind_at)
        return PackedRows(
            {kind: array(_POSITION, positions) for kind, (positions, _) in groups.items()},
            {kind: self._marshalled(of_kind) for kind, (_, of_kind) in groups.items()},
            rows[0],
        )

    def _marshalled(self, rows: list[Row]) -> bytes:
        part = marshal.dumps(rows, _STORED_VERSION)
        self._uncompressed += len(part)
        is_plain = self._uncompressed <= self.UNCOMPRESSED_MAX or len(part) < _COMPRESSED_MIN_BYTES
        return part if is_plain else zlib.compress(part, _FASTEST_LEVEL)

    def moved(self) -> "PackedLog[T]":
        """Return a new log with all rows of this one, which is empty afterwards."""
        log: PackedLog[T] = PackedLog(*self._state())
        for rows in (self.newest, self._chunks, self._unpacked):
            rows.clear()
        return log

    def blocks(self) -> Iterator[list[Row]]:
        """Yield all rows in order, as blocks: each packed chunk, and then the newest rows."""
        yield from map(PackedRows.rows, self._chunks)
        yield self.newest

    def packed_blocks(self) -> Sequence[PackedRows]:
        """Return the packed chunks, which contain all rows except ``newest``."""
        return self._chunks

    def _rows_at(self, numbers: Iterable[int]) -> Iterator[Row]:
        """Yield the rows with the given ascending *numbers*. Each chunk is unpacked once."""
        begin = end = 0
        rows: Sequence[Row] = ()
        for number in numbers:
            if number >= end:
                begin, rows = self.block_of(number)
                end = begin + len(rows)
            yield rows[number - begin]

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
        if not self._chunks and self._make is None:
            return cast("T | list[T]", self.newest[index])
        if isinstance(index, slice):
            numbers = range(*index.indices(len(self)))
            rising = numbers if numbers.step > 0 else numbers[::-1]
            items = list(self._items(self._rows_at(rising)))
            return items if numbers.step > 0 else items[::-1]
        number = index if index >= 0 else index + len(self)
        if not 0 <= number < len(self):
            raise IndexError(index)
        packed = len(self._chunks) * self._chunk_rows
        if number >= packed:
            row = self.newest[number - packed]
        else:
            row = self._rows_of(number // self._chunk_rows)[number % self._chunk_rows]
        return cast("T", row) if self._make is None else self._make(*row)

    def _items(self, rows: Iterable[Row]) -> Iterable[T]:
        return cast("Iterable[T]", rows) if self._make is None else starmap(self._make, rows)

    def _rows_of(self, chunk: int) -> list[Row]:
        """Return the rows of a chunk. The chunks that were unpacked last stay unpacked."""
        rows = self._unpacked.get(chunk)
        if rows is None:
            if len(self._unpacked) == _UNPACKED_CHUNKS_MAX:
                del self._unpacked[next(iter(self._unpacked))]
            rows = self._unpacked[chunk] = self._chunks[chunk].rows()
        return rows


def blocks_of(rows: Sequence[Row]) -> Iterator[PackedRows | Sequence[Row]]:
    """Yield all *rows* in order, in blocks that are not empty. *rows* may be a `PackedLog`."""
    newest = rows
    if isinstance(rows, PackedLog):
        yield from rows.packed_blocks()
        newest = rows.newest
    for begin in range(0, len(newest), PackedLog.CHUNK):
        yield newest[begin : begin + PackedLog.CHUNK]


def block_of(rows: Sequence[Row], position: int) -> tuple[int, Sequence[Row]]:
    """Return the block of the row at *position*, after the position of its first row."""
    return rows.block_of(position) if isinstance(rows, PackedLog) else (0, rows)


def digest(values: Any) -> str:
    """Return a digest (SHA-256, 16 hex digits) of lists, tuples, ints, strings, booleans and None.

    Equal values have equal digests, because the bytes of `_HASHED_VERSION` do not depend on which
    objects are shared or interned. A `PackedLog` has the digest of a list with the same rows.
    """
    if isinstance(values, PackedLog):
        return values.digest()
    return hashlib.sha256(marshal.dumps(values, _HASHED_VERSION)).hexdigest()[:16]
