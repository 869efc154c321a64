"""Reads fields from many lines of a file at once, as arrays of numbers."""

from collections.abc import Iterator
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.signedinteger[Any]]
Words = NDArray[np.uint64]
Flags = NDArray[np.bool_]

BLOCK_BYTES: Final = 4 << 20
PADDING_BYTES: Final = 4_096
"""So many bytes may be read after the end of a line."""

DIGITS_MAX: Final = 18
"""The longest number that is read. It fits into 63 bits."""

_WORD: Final = 8
_WORDS_MAX: Final = 4
_ZEROS: Final = np.uint64(0x3030303030303030)
_TO_HIGH_BIT: Final = np.uint64(0x7676767676767676)
"""A byte of more than 9 has its high bit set after this addition."""
_HIGH_BITS: Final = np.uint64(0x8080808080808080)
_MASKS: Final = np.array([(1 << 8 * size) - 1 for size in range(_WORD + 1)], np.uint64)
_POWERS: Final = np.array([10**digits for digits in range(DIGITS_MAX + 1)], np.int64)
_FIRST_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
_FACTORS: Final = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_QUOTE, _NEWLINE, _RETURN, _BACKSLASH, _SPACE = b'"\n\r\\ '


class ByteBlock:
    """Whole lines of a file. The last one ends with a line break, too.

    ``starts`` and ``ends`` are the places of the lines, without their line breaks. ``quotes`` are
    the places of all quotes; those of a line begin at its number in ``first_quotes``, and
    ``quote_counts`` counts them. ``is_simple`` is true for a line without escapes and control
    characters.
    """

    def __init__(self, content: bytes) -> None:
        self.size = len(content)
        self._padded = content + bytes(PADDING_BYTES)
        characters = np.frombuffer(self._padded, np.uint8, self.size)
        self.ends: Ints = np.flatnonzero(characters == _NEWLINE)
        self.starts: Ints = np.concatenate((np.zeros(1, np.int64), self.ends[:-1] + 1))
        self.quotes: Ints = np.flatnonzero(characters == _QUOTE)
        self.first_quotes: Ints = np.searchsorted(self.quotes, self.starts)
        self.quote_counts: Ints = np.diff(self.first_quotes, append=len(self.quotes))
        self.is_simple = np.ones(len(self.starts), np.bool_)
        self._find_escapes(characters)

    def line(self, number: int) -> bytes:
        """Return a line with its line break."""
        return self._padded[self.starts[number] : self.ends[number] + 1]

    def text(self, start: int, end: int) -> str:
        return self._padded[start:end].decode()

    def _find_escapes(self, characters: NDArray[np.uint8]) -> None:
        if not self._padded.isascii():
            try:
                self._padded.decode()
            except UnicodeDecodeError:
                self.is_simple[:] = False
                return
        is_special = characters < _SPACE
        if np.count_nonzero(is_special) != len(self.ends):
            special = np.flatnonzero(is_special)
            follows = np.frombuffer(self._padded, np.uint8)[special + 1]
            at = characters[special]
            is_line_break = (at == _NEWLINE) | ((at == _RETURN) & (follows == _NEWLINE))
            self._mark(special[~is_line_break])
        if b"\\" in self._padded:
            self._mark(np.flatnonzero(characters == _BACKSLASH))

    def _mark(self, places: Ints) -> None:
        self.is_simple[np.searchsorted(self.ends, places)] = False

    def words(self, places: Ints, count: int = 1) -> Words:
        """Return the 8 bytes at each place as a number, or *count* such words in columns."""
        width = count * _WORD
        # Raw bytes may begin at any place; numbers in an array must be aligned.
        kind = np.dtype(f"V{width}")
        every: NDArray[Any] = np.ndarray((len(self._padded) - width + 1,), kind, self._padded, 0, (1,))
        found: Words = every[places].view(np.uint64)
        return found if count == 1 else found.reshape(-1, count)

    def differs(self, places: Ints, literal: bytes) -> Words:
        """Return a number other than 0 for each place where something else than *literal* is."""
        bad = np.zeros(len(places), np.uint64)
        for begin in range(0, len(literal), _WORDS_MAX * _WORD):
            part = literal[begin : begin + _WORDS_MAX * _WORD]
            count = -(-len(part) // _WORD)
            wanted = np.frombuffer(part.ljust(count * _WORD, b"\0"), np.uint64)
            found = self.words(places + begin, count).reshape(-1, count)
            for column in range(count):
                here = found[:, column] ^ wanted[column]
                if column == count - 1:
                    here &= _MASKS[len(part) - column * _WORD]
                bad |= here
        return bad

    def numbers(self, places: Ints) -> tuple[Ints, Ints]:
        """Return the whole number at each place, and the count of its digits.

        The count is 0 where JSON has no whole number of up to `DIGITS_MAX` digits.
        """
        values, digits = _leading_digits(self.words(places) ^ _ZEROS)
        is_malformed = (digits > 1) & (
            self.words(places) & np.uint64(0xFF) == np.uint64(_ZEROS & np.uint64(0xFF))
        )
        full = np.flatnonzero(digits == _WORD)
        while len(full):
            more, more_digits = _leading_digits(self.words(places[full] + digits[full]) ^ _ZEROS)
            is_too_long = digits[full] + more_digits > DIGITS_MAX
            is_malformed[full] |= is_too_long
            more_digits[is_too_long] = 0
            values[full] = values[full] * _POWERS[more_digits] + np.where(is_too_long, 0, more)
            digits[full] += more_digits
            full = full[more_digits == _WORD]
        digits[is_malformed] = 0
        return values, digits

    def hashes(self, starts: Ints, ends: Ints) -> Ints:
        """Return a number from 0 on for each text; equal texts have equal numbers."""
        lengths = ends - starts
        mixed = lengths.astype(np.uint64) * _FIRST_FACTOR
        rest = np.arange(len(starts))
        place = 0
        while len(rest):
            left = lengths[rest] - place
            word = self.words(starts[rest] + place) & _MASKS[np.minimum(left, _WORD)]
            mixed[rest] = _mix(mixed[rest] ^ word)
            place += _WORD
            rest = rest[left > _WORD]
        return (mixed >> np.uint64(1)).astype(np.int64)


def _mix(word: Words) -> Words:
    for factor in _FACTORS:
        word = (word ^ (word >> np.uint64(30))) * factor
    return word ^ (word >> np.uint64(31))


def _leading_digits(bits: Words) -> tuple[Ints, Ints]:
    """Return the number with which each word begins, and its digits.

    A byte from 0 to 9 of *bits* is a digit.
    """
    others = ((bits + _TO_HIGH_BIT) | bits) & _HIGH_BITS
    first = others & (~others + np.uint64(1))
    digits = (np.bitwise_count(first - np.uint64(1)) >> 3).astype(np.int64)
    # The bytes after the number are shifted out, and zeros are put before it.
    aligned = np.where(digits == 0, np.uint64(0), bits << ((8 - digits) << 3).astype(np.uint64))
    pairs = aligned * np.uint64(10) + (aligned >> np.uint64(8))
    low, high = (
        pairs & np.uint64(0x000000FF000000FF),
        (pairs >> np.uint64(16)) & np.uint64(0x000000FF000000FF),
    )
    value = (low * np.uint64(0x000F424000000064) + high * np.uint64(0x0000271000000001)) >> np.uint64(32)
    return value.astype(np.int64), digits


class LongLineError(Exception):
    """A line is longer than the limit."""


class Readable(Protocol):
    """A stream, or something like it."""

    def read(self, size: int, /) -> bytes: ...


def blocks_of(stream: Readable, line_max: int) -> Iterator[ByteBlock]:
    """Yield the blocks of a file.

    Raises `LongLineError` at a line of more than *line_max* bytes.
    """
    rest = b""
    while content := stream.read(BLOCK_BYTES):
        rest += content
        end = rest.rfind(b"\n") + 1
        if end:
            yield _block(rest[:end], line_max)
            rest = rest[end:]
        if len(rest) > line_max:
            raise LongLineError
    if rest:
        yield _block(rest + b"\n", line_max)


def _block(content: bytes, line_max: int) -> ByteBlock:
    block = ByteBlock(content)
    if (block.ends + 1 - block.starts).max() > line_max:
        raise LongLineError
    return block
