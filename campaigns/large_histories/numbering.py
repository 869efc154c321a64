"""Numbers things in the order of their first appearance."""

import numpy as np

from harrow.campaigns.large_histories.byte_block import Flags, Ints


class Numbering:
    """Gives the numbers 0, 1, 2 ... to different keys."""

    def __init__(self) -> None:
        self._sorted: Ints = np.zeros(0, np.int64)
        self._numbers: Ints = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return len(self._sorted)

    def keys(self) -> Ints:
        """Return the keys in the order of their numbers."""
        keys = np.empty_like(self._sorted)
        keys[self._numbers] = self._sorted
        return keys

    def add(self, keys: Ints) -> tuple[Ints, Ints]:
        """Return the number of each key, and where the new keys appear first, in order."""
        if not len(keys):
            return keys, keys
        missing = np.arange(len(keys))
        if len(self._sorted):
            at = self._places(keys)
            missing = np.flatnonzero(self._sorted[at] != keys)
            if not len(missing):
                return self._numbers[at], missing
        new, firsts = np.unique(keys[missing], return_index=True)
        firsts = missing[firsts]
        numbers = np.empty(len(new), np.int64)
        numbers[np.argsort(firsts)] = np.arange(len(self._sorted), len(self._sorted) + len(new))
        together = np.concatenate((self._sorted, new))
        order = np.argsort(together)
        self._sorted = together[order]
        self._numbers = np.concatenate((self._numbers, numbers))[order]
        return self._numbers[self._places(keys)], np.sort(firsts)

    def _places(self, keys: Ints) -> Ints:
        at: Ints = np.searchsorted(self._sorted, keys)
        at[at == len(self._sorted)] = 0
        return at


def grown(column: Ints, size: int, fill: int) -> Ints:
    """Return a column with at least *size* entries, of which the new ones are *fill*."""
    if len(column) >= size:
        return column
    larger = np.full(max(size, len(column) * 5 // 4), fill, column.dtype)
    larger[: len(column)] = column
    return larger


def in_groups(groups: Ints) -> tuple[Ints, Ints, Ints]:
    """Return the order that sorts rows by groups, and where groups begin and end in it.

    Rows of a group keep their order.
    """
    # Numbers of 16 bits are sorted in linear time.
    narrow = groups.astype(np.uint16) if len(groups) and groups.max() < 1 << 16 else groups
    order: Ints = np.argsort(narrow, kind="stable")
    begins, ends = bounds(groups[order])
    return order, begins, ends


def bounds(in_order: Ints) -> tuple[Ints, Ints]:
    """Return where groups of equal numbers begin and end."""
    if not len(in_order):
        return in_order, in_order
    changes = np.flatnonzero(in_order[1:] != in_order[:-1]) + 1
    return np.concatenate(([0], changes)), np.concatenate((changes, [len(in_order)]))


def sorted_set(numbers: Ints) -> Ints:
    """Return different numbers in order. `numpy.unique` hashes them, which takes longer."""
    in_order = np.sort(numbers)
    is_first = np.ones(len(in_order), np.bool_)
    np.not_equal(in_order[1:], in_order[:-1], out=is_first[1:])
    return in_order[is_first]


def is_among(values: Ints, in_order: Ints) -> Flags:
    """Return which values are among others, which are sorted."""
    if not len(in_order):
        return np.zeros(len(values), np.bool_)
    at = np.searchsorted(in_order, values)
    at[at == len(in_order)] = 0
    found: Flags = in_order[at] == values
    return found
