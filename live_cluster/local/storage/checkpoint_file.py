"""Kafka's checkpoint files: a version, a number of lines, and as many lines (``CheckpointFile.scala``)."""

from pathlib import Path
from typing import Final

LEADER_EPOCHS: Final = "leader-epoch-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
_VERSION: Final = "0"


class CheckpointError(Exception):
    """A checkpoint is not written as Kafka does."""


def checkpointed_offsets(log_dir: Path, name: str) -> dict[str, int]:
    """Return the offsets of a log directory's checkpoint, by partition; nothing before it was first written.

    Raises:
        CheckpointError: it is damaged.

    """
    found = {}
    try:
        for entry in _entries(log_dir / name):
            topic, number, offset = entry.rsplit(" ", 2)
            found[f"{topic}-{number}"] = int(offset)
    except ValueError as error:
        raise CheckpointError(f"{log_dir / name} has lines that are no partition and offset") from error
    return found


def checkpointed_epochs(partition: Path) -> tuple[tuple[int, int], ...]:
    """Return the leader epochs of a partition's log, each with its start offset; before 0.11 there are none.

    Raises:
        CheckpointError: it is damaged.

    """
    file = partition / LEADER_EPOCHS
    pairs = (map(int, entry.split()) for entry in _entries(file))
    try:
        return tuple((epoch, start) for epoch, start in pairs)
    except ValueError as error:
        raise CheckpointError(f"{file} has lines that are no epoch and offset") from error


def _entries(file: Path) -> list[str]:
    try:
        version, count, *entries = file.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    except ValueError as error:
        raise CheckpointError(f"{file} is cut short") from error
    if version != _VERSION or count != str(len(entries)):
        raise CheckpointError(f"{file} has version {version} and {len(entries)} lines, and says {count}")
    return entries
