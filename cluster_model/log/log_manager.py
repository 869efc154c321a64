"""The logs of a broker: opening, flushing, checkpoints (``LogManager.scala``)."""

from collections.abc import Callable
from operator import attrgetter
from typing import Final

from harrow.cluster_model.compiling import mypyc_attr
from harrow.cluster_model.events import CheckpointWritten, LogFlushed, LogOpened, LogTruncated
from harrow.cluster_model.log.disk import (
    RECOVERY_POINT_OFFSET_CHECKPOINT,
    REPLICATION_OFFSET_CHECKPOINT,
    Disk,
)
from harrow.cluster_model.log.unified_log import UnifiedLog
from harrow.cluster_model.release import Behaviours
from harrow.cluster_model.settings import BrokerConfig, TopicConfig
from harrow.cluster_model.sim.host import Host

_high_watermark: Final = attrgetter("high_watermark")
_flushed_offset: Final = attrgetter("flushed_offset")
_log_end_offset: Final = attrgetter("log_end_offset")


@mypyc_attr(allow_interpreted_subclasses=True)
class LogManager:
    """The open logs of one broker, and the tasks that look after its disk."""

    def __init__(
        self,
        broker: int,
        host: Host,
        disk: Disk,
        config: BrokerConfig,
        topic_config: Callable[[str], TopicConfig],
        behaviours: Behaviours,
    ) -> None:
        self._broker = broker
        self._host = host
        self._disk = disk
        self._config = config
        self._topic_config = topic_config
        self._behaviours = behaviours
        self._logs: dict[str, UnifiedLog] = {}
        self._flush_messages: dict[str, int] = {}
        self._is_stopped = False

    def start(self) -> None:
        """Begin the periodic checkpoints. Of a clean shutdown nothing may be left for the next one that is none."""
        self._disk.clean_shutdown_file = False
        self._every(self._config.hw_checkpoint_interval_us, self._checkpoint_high_watermarks)
        self._every(self._config.recovery_point_checkpoint_interval_us, self._checkpoint_recovery_points)

    def open(self, partition: str) -> UnifiedLog:
        """Open the log of a replica with what the disk has of it."""
        log = UnifiedLog(partition, self._disk, self._behaviours)
        self._logs[partition] = log
        self._flush_messages[partition] = self._topic_config(partition.rsplit("-", 1)[0]).flush_messages
        self._host.emit(LogOpened, self._broker, partition, log.log_end_offset, log.high_watermark)
        return log

    def log(self, partition: str) -> UnifiedLog:
        return self._logs[partition]

    def appended(self, partition: str) -> None:
        """A log has grown: flush it if ``flush.messages`` are unflushed."""
        log = self._logs[partition]
        if log.log_end_offset - log.flushed_offset >= self._flush_messages[partition]:
            self._flush(partition, log)

    def truncate(self, partition: str, offset: int, reason: str) -> None:
        log = self._logs[partition]
        before = log.log_end_offset
        if log.truncate_to(offset):
            self._host.emit(LogTruncated, self._broker, partition, before, log.log_end_offset, reason)
            # At once, or after a crash a recovery point could be ahead of its log.
            self._checkpoint_recovery_points()

    def flush_all(self) -> None:
        """Flush what is dirty, as the operating system does by and by."""
        for partition, log in self._logs.items():
            self._flush(partition, log)

    def stop(self) -> None:
        """Do nothing periodically any more (``KafkaScheduler.shutdown``)."""
        self._is_stopped = True

    def shutdown(self) -> None:
        """Flush every log, and note that nothing is left to be recovered (``LogManager.shutdown``).

        The high watermarks come first: ``ReplicaManager.shutdown`` writes them.
        """
        self._checkpoint_high_watermarks()
        self.flush_all()
        self._checkpoint_recovery_points()
        self._disk.clean_shutdown_file = True

    def _flush(self, partition: str, log: UnifiedLog) -> None:
        if log.flush():
            self._host.emit(LogFlushed, self._broker, partition, log.flushed_offset)

    def _checkpoint_high_watermarks(self) -> None:
        self._checkpoint(REPLICATION_OFFSET_CHECKPOINT, _high_watermark)

    def _checkpoint_recovery_points(self) -> None:
        follows_flush = self._behaviours.recovery_point_follows_flush
        self._checkpoint(
            RECOVERY_POINT_OFFSET_CHECKPOINT, _flushed_offset if follows_flush else _log_end_offset
        )

    def _checkpoint(self, name: str, offset_of: Callable[[UnifiedLog], int]) -> None:
        # What the file has of partitions that this process has not been told of yet stays.
        before = self._disk.checkpoints.get(name, {})
        changed = [
            (partition, offset)
            for partition, log in self._logs.items()
            if before.get(partition) != (offset := offset_of(log))
        ]
        if changed:
            self._disk.write_checkpoint(name, {**before, **dict(changed)})
            self._host.emit(CheckpointWritten, self._broker, name, tuple(changed))

    def _every(self, period_us: int, task: Callable[[], None]) -> None:
        def run(_: None) -> None:
            if not self._is_stopped:
                task()
                self._host.set_timer(period_us, run)

        self._host.set_timer(period_us, run)
