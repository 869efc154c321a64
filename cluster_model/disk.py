"""A broker's disk: logs with a flushed and an unflushed part, and checkpoint files.

A process crash keeps everything, for what is not flushed is in the page cache.
Power loss keeps what was flushed. Checkpoint files are written with fsync and
renamed into place (``CheckpointFile.scala``), so they survive both; they can be stale.
"""

from typing import Final

from cluster_model.record_batch import RecordBatch

REPLICATION_OFFSET_CHECKPOINT: Final = "replication-offset-checkpoint"
RECOVERY_POINT_OFFSET_CHECKPOINT: Final = "recovery-point-offset-checkpoint"


class LogFile:
    """The stored batches of one replica, in order, and how many records are flushed.

    ``base_offsets`` has each batch's base offset, for binary search. ``log_end_offset``
    is the offset after the last record.
    """

    __slots__ = ("base_offsets", "batches", "flushed_offset", "log_end_offset")

    def __init__(self) -> None:
        self.batches: list[RecordBatch] = []
        self.base_offsets: list[int] = []
        self.log_end_offset = 0
        self.flushed_offset = 0

    def append(self, batch: RecordBatch) -> None:
        """Write a batch (into the page cache)."""
        self.batches.append(batch)
        self.base_offsets.append(batch.base_offset)
        self.log_end_offset = batch.base_offset + len(batch.values)

    def truncate_to(self, offset: int) -> None:
        """Drop every batch that has a record at or after *offset*."""
        while self.batches and self.log_end_offset > offset:
            self.log_end_offset = self.batches.pop().base_offset
            self.base_offsets.pop()
        self.flushed_offset = min(self.flushed_offset, self.log_end_offset)

    def lose_power(self) -> None:
        """Keep what was flushed."""
        self.truncate_to(self.flushed_offset)


class Disk:
    """What a broker finds again after a restart."""

    __slots__ = ("checkpoints", "epoch_checkpoints", "log_files")

    def __init__(self) -> None:
        self.log_files: dict[str, LogFile] = {}
        self.epoch_checkpoints: dict[str, list[tuple[int, int]]] = {}
        self.checkpoints: dict[str, dict[str, int]] = {}

    def log_file(self, partition: str) -> LogFile:
        """Return the log file of a partition's replica, a new one if there is none."""
        return self.log_files.setdefault(partition, LogFile())

    def epoch_checkpoint(self, partition: str) -> list[tuple[int, int]]:
        """Return ``leader-epoch-checkpoint``, which the epoch cache writes through to."""
        return self.epoch_checkpoints.setdefault(partition, [])

    def checkpoint(self, name: str, partition: str) -> int:
        """Return a checkpointed offset, 0 when there is none (Kafka's default)."""
        return self.checkpoints.get(name, {}).get(partition, 0)

    def write_checkpoint(self, name: str, offsets: dict[str, int]) -> None:
        """Replace a checkpoint file."""
        self.checkpoints[name] = offsets
