"""Reads Kafka's checkpoint files: version, number of lines, lines (``CheckpointFile.scala``)."""

from pathlib import Path
from typing import Final

LEADER_EPOCHS: Final = "leader-epoch-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
_VERSION: Final = "0"


class CheckpointError(Exception):
    """A checkpoint file is damaged or incomplete."""


def checkpointed_offsets(log_dir: Path, name: str) -> dict[str, int]:
    """Return the offsets in a checkpoint of a log directory, by partition.

    Return no offsets if there is no file.
    """
    offsets = {}
    try:
        for entry in _entries(log_dir / name):
            topic, number, offset = entry.rsplit(" ", 2)
            offsets[f"{topic}-{number}"] = int(offset)
    except ValueError as error:
        raise CheckpointError(f"{log_dir / name} has a line that is not a partition and an offset") from error
    return offsets


def checkpointed_epochs(partition: Path) -> tuple[tuple[int, int], ...]:
    """Return the leader epochs of a partition's log with their start offsets; 0.10 has none."""
    file = partition / LEADER_EPOCHS
    pairs = (map(int, entry.split()) for entry in _entries(file))
    try:
        return tuple((epoch, start) for epoch, start in pairs)
    except ValueError as error:
        raise CheckpointError(f"{file} has a line that is not an epoch and an offset") from error


def _entries(file: Path) -> list[str]:
    try:
        version, count, *entries = file.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    except ValueError as error:
        raise CheckpointError(f"{file} is incomplete") from error
    if version != _VERSION or count != str(len(entries)):
        raise CheckpointError(f"{file} has version {version} and {len(entries)} lines instead of {count}")
    return entries
