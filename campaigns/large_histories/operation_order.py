"""The order of the operations of a history, in one file or in several."""

from collections.abc import Iterable, Sequence
from typing import Final

from harrow.campaigns.record.history_line import MalformedOperation

_SPLIT_BITS: Final = 40
"""A part of a file has fewer operations than 2 to the power of this."""


def first_position(split: int) -> int:
    """Return the position of the first operation of a part of a file."""
    return split << _SPLIT_BITS


class OperationOrder:
    """Gives a position to each operation.

    In a history of one file, the position counts the operations: of the whole file, or of its part
    number *split*, which begins with operation *first_number*. If the history is *numbered*,
    because it has several files, the position is the number (``index``) of the operation, which
    must rise within a file. If only some lines are read, *listed* has their positions.
    """

    def __init__(
        self,
        *,
        numbered: bool = False,
        split: int = 0,
        first_number: int = 0,
        listed: Sequence[int] | None = None,
    ) -> None:
        self.split = split
        self._numbered = numbered
        self._listed = listed
        self._first = 0 if numbered else first_position(split)
        self._number_of_first = first_number
        self._next = 0 if listed is not None else self._first

    def begin_file(self) -> None:
        """Begin the next file of a numbered history."""
        if self._numbered:
            self._next = 0

    def next_number(self) -> int:
        """Return the number of the next operation, if the history does not number it.

        Raises `MalformedOperation` if it must be numbered.
        """
        if self._numbered:
            message = "in a history of several files, an operation needs a field `index`"
            raise MalformedOperation("", message)
        following = self._next if self._listed is None else self._listed[self._next]
        return self._number_of_first + following - self._first

    def positions(self, numbers: Iterable[int]) -> Sequence[int]:
        """Return the positions of the next operations, given their numbers.

        Raises `MalformedOperation` if the numbers of a numbered history do not rise.
        """
        if not self._numbered:
            begin = self._next
            self._next += sum(1 for _ in numbers)
            return range(begin, self._next) if self._listed is None else self._listed[begin : self._next]
        positions = list(numbers)
        following = self._next
        for position in positions:
            if position < following:
                message = f"`index` rises within a file, but {position} follows {following - 1}"
                raise MalformedOperation("index", message)
            following = position + 1
        self._next = following
        return positions


def split_of(position: int) -> int:
    """Return the part of the file to which a position belongs."""
    return position >> _SPLIT_BITS


def place_in_split(position: int) -> int:
    """Return how many operations of the same part precede a position."""
    return position & ((1 << _SPLIT_BITS) - 1)
