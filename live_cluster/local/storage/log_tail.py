"""Follows a replica's log while its broker writes to it: finds appends and truncations."""

from collections.abc import Callable
from pathlib import Path

from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.log.record_batch import RecordBatch
from harrow.live_cluster.local.storage.segments import base_offset, batches_from, segments_of

_SegmentState = tuple[Path, int, int]
"""A segment, its size, and the time of its last write in nanoseconds."""


@dataclass(frozen=True, slots=True)
class Truncation:
    """A truncation. The log ended at ``from_offset``, and now ends at ``to_offset``."""

    from_offset: int
    to_offset: int


class LogTail:
    """Follows the segments in a partition's folder. If nothing has changed, it reads no data.

    A broker may truncate its log and append to it between two calls of `poll`. So `poll` reads the
    last known batch again, and everything after it. If that batch has changed, it reads the whole
    log.
    """

    def __init__(self, folder: Callable[[], Path]) -> None:
        # A function, because the broker chooses the log directory when it creates the partition.
        self._folder = folder
        self._segments: list[_SegmentState] = []
        # The position of the last stored batch, and the number of the model's batches in it.
        self._last = 0
        self._last_count = 0
        self.log_start = 0
        """The first offset of the first segment."""
        self.batches: list[RecordBatch] = []

    @property
    def leo(self) -> int:
        newest_start = base_offset(self._segments[-1][0]) if self._segments else 0
        return max(newest_start, self.batches[-1].next_offset if self.batches else 0)

    @property
    def size_bytes(self) -> int:
        return sum(size for _, size, _ in self._segments)

    def is_gone(self) -> bool:
        """Return whether the log existed and its folder has been deleted."""
        return bool(self._segments) and not self._folder().exists()

    def poll(self) -> list[RecordBatch | Truncation]:
        """Return the changes of the log in their order."""
        try:
            segments = [_segment_state(segment) for segment in segments_of(self._folder())]
            if segments == self._segments:
                return []
            changes = self._appended(segments)
            if changes is None:
                changes = self._read(segments)
        except FileNotFoundError:
            # A segment was deleted meanwhile. The next call notices it.
            return []
        self._segments = segments
        return changes

    def reread(self) -> list[RecordBatch | Truncation]:
        """Read the whole log, and return the changes."""
        self._segments = []
        return self.poll()

    def _appended(self, segments: list[_SegmentState]) -> list[RecordBatch | Truncation] | None:
        """Return what was appended to the newest segment; None if anything else has changed."""
        if not segments or [path for path, _, _ in segments] != [path for path, _, _ in self._segments]:
            return None
        segment, _, _ = segments[-1]
        batches, last, _ = batches_from(segment, self._last)
        before = self.batches[len(self.batches) - self._last_count :]
        if list(map(_content, batches[: self._last_count])) != list(map(_content, before)):
            return None
        new = batches[self._last_count :]
        if new:
            self._remember_last(segment, last)
        self.batches += new
        return list(new)

    def _read(self, segments: list[_SegmentState]) -> list[RecordBatch | Truncation]:
        now: list[RecordBatch] = []
        self._last = self._last_count = 0
        for segment, _, _ in segments:
            batches, last, _ = batches_from(segment, 0)
            now += batches
            self._remember_last(segment, last)
        # Retention is not a truncation: it only raises the log start offset.
        self.log_start = base_offset(segments[0][0]) if segments else 0
        before = [batch for batch in self.batches if batch.next_offset > self.log_start]
        self.batches = now
        unchanged = 0
        for old, new in zip(before, now, strict=False):
            if _content(old) != _content(new):
                break
            unchanged += 1
        truncations: list[RecordBatch | Truncation] = []
        if unchanged < len(before):
            truncations.append(Truncation(before[-1].next_offset, before[unchanged].base_offset))
        return [*truncations, *now[unchanged:]]

    def _remember_last(self, segment: Path, position: int) -> None:
        batches, _, _ = batches_from(segment, position)
        self._last, self._last_count = position, len(batches)


def _segment_state(segment: Path) -> _SegmentState:
    stat = segment.stat()
    return segment, stat.st_size, stat.st_mtime_ns


def _content(batch: RecordBatch) -> tuple[object, ...]:
    return batch.base_offset, batch.leader_epoch, batch.producer_id, batch.base_sequence, batch.values
