"""Reads the segments of a replica's log batch by batch, and truncates them like a power loss."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.log.record_batch import RecordBatch
from harrow.live_cluster.local.storage.checkpoint_file import checkpointed_epochs
from harrow.live_cluster.wire.stored_batches import as_batches, next_offset, whole_batches

_SEGMENT: Final = ".log"
_SEGMENT_FILES: Final = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")


@dataclass(frozen=True, slots=True)
class StoredLog:
    """A log on disk: its complete batches, LEO, and leader epochs with their start offsets."""

    batches: tuple[RecordBatch, ...]
    leo: int
    epochs: tuple[tuple[int, int], ...]


def stored_log(partition: Path) -> StoredLog:
    """Read the log in a partition's folder; nothing may write to it meanwhile."""
    batches: list[RecordBatch] = []
    leo = 0
    for segment in segments_of(partition):
        segment_batches, _, _ = batches_from(segment, 0)
        batches += segment_batches
        leo = segment_batches[-1].next_offset if segment_batches else max(leo, base_offset(segment))
    return StoredLog(tuple(batches), leo, checkpointed_epochs(partition))


def batches_from(segment: Path, position: int) -> tuple[list[RecordBatch], int, int]:
    """Return complete batches, the position of the last stored batch, and the position after it."""
    batches: list[RecordBatch] = []
    last = position
    for stored, end in _batches(segment, position):
        batches += as_batches(stored)
        last, position = position, end
    return batches, last, position


def segments_of(partition: Path) -> list[Path]:
    """Return the segments of a log, oldest first."""
    return sorted(partition.glob(f"*{_SEGMENT}"))


def cut(partition: Path, offset: int) -> None:
    """Keep the batches below *offset*, as a power loss does if it is the recovery point.

    Indexes stay unchanged: after an unclean shutdown, a broker rebuilds them from its recovery
    point on.
    """
    first, *_ = segments = segments_of(partition)
    for segment in segments:
        if base_offset(segment) >= offset and segment != first:
            for suffix in _SEGMENT_FILES:
                segment.with_suffix(suffix).unlink(missing_ok=True)
            continue
        end = 0
        for stored, next_position in _batches(segment):
            if next_offset(stored) > offset:
                break
            end = next_position
        with segment.open("r+b") as file:
            file.truncate(end)


def base_offset(segment: Path) -> int:
    return int(segment.stem)


def _batches(segment: Path, position: int = 0) -> Iterator[tuple[Any, int]]:
    """Yield the whole batches of a segment, each with the position after it."""
    with segment.open("rb") as file:
        file.seek(position)
        yield from whole_batches(file.read(), position)
