"""What is known of the record at each offset of each partition."""

from collections.abc import Iterator
from typing import Final

import numpy as np

from harrow.campaigns.large_histories.byte_block import Flags, Ints
from harrow.campaigns.large_histories.numbering import Numbering, bounds, grown

KNOWN: Final = 1
ACKED_AT: Final = 2
POLLED_AT: Final = 4
"""Flags of an offset: something is there, a send to it was acknowledged, a poll returned it."""

_PAGE_BITS: Final = 12
_PAGE_SIZE: Final = 1 << _PAGE_BITS
_OFFSET_BITS: Final = 40
_PARTITION_SHIFT: Final = _OFFSET_BITS - _PAGE_BITS


class TooIrregularError(Exception):
    """A history has too few plain records, so that to look for them gains nothing."""


class RecordSlots:
    """A slot for each offset, in pages of consecutive offsets of a partition.

    ``value`` is the value that was found first at the offset, and ``flags`` say what is known about
    it. ``session`` is the sender and ``invoked`` the position of the send; without a send,
    ``session`` is 0.
    """

    def __init__(self) -> None:
        self._pages = Numbering()
        self.value: Ints = np.zeros(0, np.int64)
        self.flags: Ints = np.zeros(0, np.int8)
        self.session: Ints = np.zeros(0, np.int32)
        self.invoked: Ints = np.zeros(0, np.int64)

    def note(self, partition: Ints, offset: Ints, value: Ints, flag: int) -> tuple[Ints, Flags]:
        """Note values at offsets. Return their slots, and where another value is there already."""
        slots = self._find(partition, offset)
        flags = self.flags[slots]
        is_new = flags == 0
        self.value[slots[is_new]] = value[is_new]
        self.flags[slots] = flags | (KNOWN | flag)
        return slots, self.value[slots] != value

    def partitions(self) -> Iterator[tuple[int, Ints, Ints]]:
        """Yield each partition with the slots of its known offsets, in order, and the offsets."""
        keys = self._pages.keys()
        order = np.argsort(keys)
        within = np.arange(_PAGE_SIZE)
        for begin, end in zip(*bounds(keys[order] >> _PARTITION_SHIFT), strict=True):
            pages = order[begin:end]
            slots = (pages[:, None] * _PAGE_SIZE + within).ravel()
            numbers = keys[pages] & ((1 << _PARTITION_SHIFT) - 1)
            offsets = (numbers[:, None] * _PAGE_SIZE + within).ravel()
            is_known = self.flags[slots] != 0
            yield int(keys[pages[0]] >> _PARTITION_SHIFT), slots[is_known], offsets[is_known]

    def _find(self, partition: Ints, offset: Ints) -> Ints:
        if len(offset) and offset.max() >> _OFFSET_BITS:
            raise TooIrregularError
        pages, _ = self._pages.add(partition << _PARTITION_SHIFT | offset >> _PAGE_BITS)
        size = len(self._pages) << _PAGE_BITS
        self.value = grown(self.value, size, 0)
        self.flags = grown(self.flags, size, 0)
        self.session = grown(self.session, size, 0)
        self.invoked = grown(self.invoked, size, 0)
        slots: Ints = pages << _PAGE_BITS | offset & (_PAGE_SIZE - 1)
        return slots
