"""A replica's log while its broker writes to it: what has been appended since somebody last looked, and what was cut off."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from harrow.cluster_model.log.record_batch import RecordBatch
from harrow.live_cluster.local.storage.segments import base_offset, batches_from, segments_of

_Seen = tuple[Path, int, int]
"""A segment, its size, and when it was written last, in nanoseconds."""


@dataclass(frozen=True, slots=True)
class CutBack:
    """The log has lost its end: it ended at ``from_offset``, and then at ``to_offset``."""

    from_offset: int
    to_offset: int


class LogTail:
    """Follows the segments of a partition's folder. A look that finds nothing new reads nothing.

    A broker may have cut its log and gone on appending between two looks. So the last batch that is known is read again with
    what stands behind it; where it is another one by now, the whole log is.
    """

    def __init__(self, folder: Callable[[], Path]) -> None:
        # Of several log directories the broker chooses one when it makes the partition.
        self._folder = folder
        self._seen: list[_Seen] = []
        # Where the last batch stands, as it is stored, and how many batches of the model it is.
        self._last = 0
        self._of_last = 0
        self.begin = 0
        """Where its first segment begins, as it was seen last."""
        self.batches: list[RecordBatch] = []

    @property
    def leo(self) -> int:
        """Return the log end offset, as far as it has been seen."""
        begins = base_offset(self._seen[-1][0]) if self._seen else 0
        return max(begins, self.batches[-1].next_offset if self.batches else 0)

    @property
    def size_bytes(self) -> int:
        """Return how large its segments were when they were seen last."""
        return sum(size for _, size, _ in self._seen)

    def is_gone(self) -> bool:
        """Return whether the log was there, and its folder is not there any more."""
        return bool(self._seen) and not self._folder().exists()

    def look(self) -> list[RecordBatch | CutBack]:
        """Return what has happened to the log, in order."""
        try:
            seen = [_seen(segment) for segment in segments_of(self._folder())]
            if seen == self._seen:
                return []
            changes = self._grown(seen)
            found = self._read(seen) if changes is None else changes
        except FileNotFoundError:
            # A segment went between one look and the other: the next will tell.
            return []
        self._seen = seen
        return found

    def read_anew(self) -> list[RecordBatch | CutBack]:
        """Read the whole log, whatever is known of it, and return what was not known."""
        self._seen = []
        return self.look()

    def _grown(self, seen: list[_Seen]) -> list[RecordBatch | CutBack] | None:
        """Return what was appended to the newest segment; None where that is not all that has happened."""
        if not seen or [path for path, _, _ in seen] != [path for path, _, _ in self._seen]:
            return None
        segment, _, _ = seen[-1]
        found, last, _ = batches_from(segment, self._last)
        known = self.batches[len(self.batches) - self._of_last :]
        if list(map(_content, found[: self._of_last])) != list(map(_content, known)):
            return None
        new = found[self._of_last :]
        if new:
            self._take_last(segment, last)
        self.batches += new
        return list(new)

    def _read(self, seen: list[_Seen]) -> list[RecordBatch | CutBack]:
        now: list[RecordBatch] = []
        self._last = self._of_last = 0
        for segment, _, _ in seen:
            found, last, _ = batches_from(segment, 0)
            now += found
            self._take_last(segment, last)
        # What retention has deleted is no cut: the log begins later.
        self.begin = base_offset(seen[0][0]) if seen else 0
        before = [batch for batch in self.batches if batch.next_offset > self.begin]
        self.batches = now
        same = 0
        for old, new in zip(before, now, strict=False):
            if _content(old) != _content(new):
                break
            same += 1
        cut: list[RecordBatch | CutBack] = []
        if same < len(before):
            cut.append(CutBack(before[-1].next_offset, before[same].base_offset))
        return [*cut, *now[same:]]

    def _take_last(self, segment: Path, position: int) -> None:
        of_last, _, _ = batches_from(segment, position)
        self._last, self._of_last = position, len(of_last)


def _seen(segment: Path) -> _Seen:
    stat = segment.stat()
    return segment, stat.st_size, stat.st_mtime_ns


def _content(batch: RecordBatch) -> tuple[object, ...]:
    return batch.base_offset, batch.leader_epoch, batch.producer_id, batch.base_sequence, batch.values
