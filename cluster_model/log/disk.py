"""A broker's disk: logs with a flushed and an unflushed part, and checkpoint files.

A process crash keeps everything, for what is not flushed is in the page cache.
Power loss keeps what was flushed. Checkpoint files are written with fsync and
renamed into place (``CheckpointFile.scala``), so they survive both; they can be stale.
"""

from dataclasses import dataclass, field
from typing import Final

from harrow.cluster_model.log.producer_state import ProducerSnapshot
from harrow.cluster_model.log.record_batch import RecordBatch

REPLICATION_OFFSET_CHECKPOINT: Final = "replication-offset-checkpoint"
RECOVERY_POINT_OFFSET_CHECKPOINT: Final = "recovery-point-offset-checkpoint"


@dataclass(slots=True, eq=False)
class LogFile:
    """The stored batches of one replica, in order, and how many records are flushed.

    ``base_offsets`` has each batch's base offset, for binary search. ``log_end_offset``
    is the offset after the last record. ``producer_snapshots`` say what its beginnings tell of producers, oldest first.
    """

    batches: list[RecordBatch] = field(default_factory=list)
    base_offsets: list[int] = field(default_factory=list)
    log_end_offset: int = 0
    flushed_offset: int = 0
    producer_snapshots: list[ProducerSnapshot] = field(default_factory=list)

    def append(self, batch: RecordBatch) -> None:
        """Write a batch (into the page cache)."""
        self.batches.append(batch)
        self.base_offsets.append(batch.base_offset)
        self.log_end_offset = batch.base_offset + (len(batch.values) or 1)

    def truncate_to(self, offset: int) -> None:
        """Drop every batch that has a record at or after *offset*."""
        while self.batches and self.log_end_offset > offset:
            self.log_end_offset = self.batches.pop().base_offset
            self.base_offsets.pop()
        while self.producer_snapshots and self.producer_snapshots[-1].batch_count > len(self.batches):
            self.producer_snapshots.pop()
        self.flushed_offset = min(self.flushed_offset, self.log_end_offset)

    def lose_power(self) -> None:
        """Keep what was flushed."""
        self.truncate_to(self.flushed_offset)


@dataclass(slots=True, eq=False)
class Disk:
    """What a broker finds again after a restart."""

    log_files: dict[str, LogFile] = field(default_factory=dict)
    epoch_checkpoints: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    checkpoints: dict[str, dict[str, int]] = field(default_factory=dict)
    clean_shutdown_file: bool = False
    """``.kafka_cleanshutdown``, with which the logs need no recovery (``Log.CleanShutdownFile``)."""

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
        self.checkpoints[name] = offsets
