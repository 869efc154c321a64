"""Tracks at which offset of a log each leader epoch started (KIP-101).

Modelled on ``LeaderEpochFileCache.scala``. As in Kafka, every change is written to
``leader-epoch-checkpoint`` at once.
"""

from typing import Final

UNDEFINED_EPOCH: Final = -1
UNDEFINED_EPOCH_OFFSET: Final = -1


class LeaderEpochCache:
    """Entries (leader epoch, start offset) in ascending order of both.

    If the cache gets a list of *entries*, it changes this list.
    """

    __slots__ = ("entries",)

    def __init__(self, entries: list[tuple[int, int]] | None = None) -> None:
        self.entries = [] if entries is None else entries

    def latest_epoch(self) -> int:
        """Return the highest epoch; `UNDEFINED_EPOCH` if there is none."""
        return self.entries[-1][0] if self.entries else UNDEFINED_EPOCH

    def start_offset(self, log_end_offset: int) -> int:
        """Return the offset where the first epoch starts; the log end offset if there is none."""
        return self.entries[0][1] if self.entries else log_end_offset

    def assign(self, epoch: int, start_offset: int) -> None:
        """Enter that *epoch* starts at *start_offset*, and drop entries that contradict this.

        An epoch without records loses its entry to the next epoch that starts at the same offset
        (``truncateAndAppend``).
        """
        entries = self.entries
        if entries:
            latest_epoch, latest_start = entries[-1]
            if latest_epoch == epoch and start_offset >= latest_start:
                return
            while entries and (entries[-1][0] >= epoch or entries[-1][1] >= start_offset):
                entries.pop()
        entries.append((epoch, start_offset))

    def end_offset_for(
        self, requested_epoch: int, log_end_offset: int, *, answers_below_first: bool = True
    ) -> tuple[int, int]:
        """Return (epoch, end offset) of the largest epoch that is not above the requested one.

        The latest epoch ends at the log end offset, and any other epoch ends where the next one
        starts. If the requested epoch is below the first entry, the result is (requested epoch,
        first start offset), or without *answers_below_first* undefined. If the requested epoch is
        above the last entry, or there are no entries, the result is undefined: both values are -1.
        """
        entries = self.entries
        if requested_epoch == UNDEFINED_EPOCH or not entries:
            return UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET
        if requested_epoch == entries[-1][0]:
            return requested_epoch, log_end_offset
        if requested_epoch > entries[-1][0]:
            return UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET
        if requested_epoch < entries[0][0]:
            if answers_below_first:
                return requested_epoch, entries[0][1]
            return UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET
        position = len(entries) - 1
        while entries[position][0] > requested_epoch:
            position -= 1
        return entries[position][0], entries[position + 1][1]

    def truncate_from_start(self, start_offset: int) -> None:
        """Let the epoch that contains *start_offset* start there, and drop earlier epochs."""
        entries = self.entries
        count = 0
        while count < len(entries) and entries[count][1] <= start_offset:
            count += 1
        if count and entries[count - 1][1] != start_offset:
            entries[count - 1] = (entries[count - 1][0], start_offset)
        del entries[: max(count - 1, 0)]

    def prepend(self, earlier: "LeaderEpochCache") -> None:
        """Insert the entries of *earlier* before the first entry.

        If both caches have an entry for an epoch, the entry of *earlier* stays.
        """
        entries = self.entries
        while entries and entries[0][0] <= earlier.latest_epoch():
            del entries[0]
        entries[:0] = earlier.entries

    def truncate_from_end(self, end_offset: int) -> None:
        """Drop the entries that start at or after *end_offset*."""
        entries = self.entries
        while entries and entries[-1][1] >= end_offset:
            entries.pop()
