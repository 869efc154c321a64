"""A replica's log as its segments have it: read batch by batch, and cut as a power loss does."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harrow.cluster_model.log.record_batch import RecordBatch
from harrow.live_cluster.local.storage.checkpoint_file import checkpointed_epochs
from harrow.live_cluster.wire.stored_batches import as_batches, next_offset, whole_batches

_SEGMENT: Final = ".log"
_OF_SEGMENTS: Final = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")


@dataclass(frozen=True, slots=True)
class StoredLog:
    """What a replica has on disk: its batches up to the first that is torn, LEO, and leader epochs with their starts."""

    batches: tuple[RecordBatch, ...]
    leo: int
    epochs: tuple[tuple[int, int], ...]


def stored_log(partition: Path) -> StoredLog:
    """Read the log in a partition's folder. Nothing may write to it meanwhile.

    Raises:
        CheckpointError: the checkpoint of its leader epochs is damaged.

    """
    batches: list[RecordBatch] = []
    leo = 0
    for segment in segments_of(partition):
        found, _, _ = batches_from(segment, 0)
        batches += found
        leo = found[-1].next_offset if found else max(leo, base_offset(segment))
    return StoredLog(tuple(batches), leo, checkpointed_epochs(partition))


def batches_from(segment: Path, position: int) -> tuple[list[RecordBatch], int, int]:
    """Return the whole batches of a segment from a place on, the place of the last one as it is stored, and that behind it."""
    found: list[RecordBatch] = []
    last = position
    for stored, end in _batches(segment, position):
        found += as_batches(stored)
        last, position = position, end
    return found, last, position


def segments_of(partition: Path) -> list[Path]:
    """Return the segments of a log, oldest first."""
    return sorted(partition.glob(f"*{_SEGMENT}"))


def cut(partition: Path, offset: int) -> None:
    """Leave of a log what a power loss leaves when *offset* is the recovery point: all batches below it.

    Indexes are left as they are: a broker that has not stopped in good order makes them anew from its recovery point on.
    """
    first, *_ = segments = segments_of(partition)
    for segment in segments:
        if base_offset(segment) >= offset and segment != first:
            for suffix in _OF_SEGMENTS:
                segment.with_suffix(suffix).unlink(missing_ok=True)
            continue
        end = 0
        for stored, behind in _batches(segment):
            if next_offset(stored) > offset:
                break
            end = behind
        with segment.open("r+b") as file:
            file.truncate(end)


def base_offset(segment: Path) -> int:
    """Return the offset at which a segment begins."""
    return int(segment.stem)


def _batches(segment: Path, position: int = 0) -> Iterator[tuple[Any, int]]:
    """Yield the whole batches of a segment from a place on, each with the place behind it."""
    with segment.open("rb") as file:
        file.seek(position)
        yield from whole_batches(file.read(), position)
