"""Opens, flushes and checkpoints the logs of a broker (``LogManager.scala``)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from heapq import heappop, heappush
from operator import attrgetter
from typing import Final

from harrow.cluster_model.compiling import mypyc_attr
from harrow.cluster_model.events import (
    CheckpointWritten,
    CorruptionCut,
    HighWatermarkSet,
    LogDeleted,
    LogFlushed,
    LogOpened,
    LogStartedAnew,
    LogStartRaised,
    LogStartReverted,
    LogTruncated,
)
from harrow.cluster_model.log.disk import (
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_OFFSET_CHECKPOINT,
    REPLICATION_OFFSET_CHECKPOINT,
    TORN,
    Disk,
    LogFile,
)
from harrow.cluster_model.log.leader_epoch_cache import LeaderEpochCache
from harrow.cluster_model.log.log_cleaner import LogCleaner
from harrow.cluster_model.log.record_batch import RecordBatch
from harrow.cluster_model.log.unified_log import LEADER_LOG_START, NEVER_US, UnifiedLog
from harrow.cluster_model.release.profiles import Behaviours
from harrow.cluster_model.settings import BrokerConfig, TopicConfig
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.sim.periodic_task import PeriodicTask
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND

_INITIAL_TASK_DELAY_US: Final = 30 * US_PER_SECOND
"""How long after its start a broker begins periodic tasks (``LogManager.InitialTaskDelayMs``)."""
_LOOK_AHEAD_US: Final = 60 * US_PER_SECOND
"""How far ahead a retention check may be planned: a timer keeps a dead broker in memory."""

_high_watermark: Final = attrgetter("high_watermark")
_flushed_offset: Final = attrgetter("flushed_offset")
_log_end_offset: Final = attrgetter("log_end_offset")


@mypyc_attr(allow_interpreted_subclasses=True)
class LogManager:
    """The open logs of one broker, and the tasks that maintain its disk."""

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
        self._topics: dict[str, TopicConfig] = {}
        # The logs that have unflushed records and a ``flush.ms``.
        self._dirty: dict[str, None] = {}
        self._flushed_us: dict[str, int] = {}
        self._flusher = PeriodicTask(host, config.flush_scheduler_interval_us, self._flush_dirty)
        # The checkpoint of high watermarks that this process last wrote. Each log knows its own
        # entry. If a fault has replaced the checkpoint, all logs are compared with the new one.
        self._written_high_watermarks: dict[str, int] | None = None
        self._rolled_logs: dict[str, None] = {}
        # For each log, the earliest time at which one of its segments may exceed ``retention.ms``.
        # The queue has the same times, earliest first.
        self._retained_until_us: dict[str, int] = {}
        self._retention_queue: list[tuple[int, str]] = []
        self._retention_at_us: int | None = None
        self._retention_began_us: int | None = None
        self._start_offset_checkpoint = PeriodicTask(
            host, config.log_start_checkpoint_interval_us, self._checkpoint_log_starts
        )
        self._cleaner = LogCleaner(
            *(broker, host, disk, config.cleaner_backoff_us, self._logs, self._topics, behaviours),
            *(self.can_write, disk.update_room),
        )
        # When the broker started. If it flushes by time only once, this is None once that flush is
        # planned.
        self._started_us: int | None = None
        self._is_stopped = False
        self._was_shut_down = False
        self._unclean_dirs: Mapping[int, None] = {}
        # The log directories whose failure this process has noticed. It never writes to them again.
        self.offline_dirs: dict[int, None] = {}
        self.is_halting = False
        """Whether the broker is about to halt, and so answers no request."""
        self.on_dir_failure: Callable[[int], None] = lambda _: None
        self.on_log_start: Callable[[str], None] = lambda _: None

    def start(self) -> None:
        """Start the periodic tasks.

        Remove the clean shutdown file, because it counts only for this start.
        """
        self._was_shut_down = self._disk.clean_shutdown_file
        self._unclean_dirs = self._disk.unclean_dirs
        self._disk.clean_shutdown_file = False
        for log_dir in self._disk.failed_dirs:
            self._take_dir_offline(log_dir)
        self._every(self._config.hw_checkpoint_interval_us, self._checkpoint_high_watermarks)
        self._every(self._config.recovery_point_checkpoint_interval_us, self._checkpoint_recovery_points)
        self._started_us = self._host.clock.now_us
        self._retention_began_us = self._started_us + _INITIAL_TASK_DELAY_US
        self._start_offset_checkpoint.start()
        self._cleaner.start()
        self._plan_retention_check()
        if self._flushes_periodically():
            self._host.set_timer(_INITIAL_TASK_DELAY_US, self._begin_flushing)

    def _flushes_periodically(self) -> bool:
        return self._config.flush_scheduler_interval_us < NEVER_US

    def _begin_flushing(self, _: None) -> None:
        """Flush for the first time.

        With the default of log.flush.scheduler.interval.ms it is the only time.
        """
        if self._flush_dirty() and self._flushes_periodically():
            self._flusher.request()
        if self._flushes_periodically():
            self._flusher.start()

    def _request_flush(self) -> None:
        if self._flushes_periodically():
            self._flusher.request()
        elif self._started_us is not None:
            remaining_us = self._started_us + _INITIAL_TASK_DELAY_US - self._host.clock.now_us
            self._started_us = None
            if remaining_us > 0:
                self._host.set_timer(remaining_us, self._begin_flushing)

    def dismantle(self) -> None:
        """Drop all logs (`Cluster.dismantle`)."""
        self._logs.clear()
        self._retention_queue.clear()

    def open(self, partition: str) -> UnifiedLog:
        """Open the log of a replica on disk.

        Recover the log unless its broker had shut down cleanly.
        """
        log_dir = self._disk.place(partition)  # This also assigns a new log its directory.
        was_closed = self._was_shut_down and log_dir not in self._unclean_dirs
        size = self._disk.size_of(partition)
        file = self._disk.log_file(partition)
        was_cut = not was_closed and self._recover(partition, file)
        began_at = file.log_start_offset
        log = UnifiedLog(partition, self._disk, self._behaviours)
        self._disk.update_room(partition, size)
        self._report_log_start(log, file, began_at)
        self._logs[partition] = log
        topic = self._topic_config(partition.rsplit("-", 1)[0])
        self._flushed_us[partition] = self._host.clock.now_us
        self._configure(log, file, topic)
        if topic.compacts:
            log.mark_modified(self._wall_us)
            self._cleaner.consider(partition)
        self._plan_retention(partition, log, log.retained_until_us(topic))
        if was_cut:
            self._checkpoint_recovery_points()
        self._host.emit(LogOpened, self._broker, partition, log.log_end_offset, log.high_watermark)
        return log

    def configure(self, partition: str, topic: TopicConfig) -> None:
        """Follow the settings of an open log's topic."""
        log = self._logs[partition]
        self._configure(log, self._disk.log_file(partition), topic)
        if topic.compacts:
            self._cleaner.consider(partition)
        self._plan_retention(partition, log, log.retained_until_us(topic))

    def _configure(self, log: UnifiedLog, file: LogFile, topic: TopicConfig) -> None:
        self._topics[log.name] = topic
        file.segment_bytes, file.segment_us = topic.segment_bytes, topic.segment_us
        log.configure(topic)

    def _report_log_start(self, log: UnifiedLog, file: LogFile, before: int) -> None:
        """Report if the log start differs from what it was when the log was last open.

        An opened log starts with its first segment or at the checkpointed log start, whichever is
        higher. The checkpoint is written only from time to time. So it may not have the last log
        start of the previous process, or it may still have one that a truncation has undone.
        """
        start = log.log_start_offset
        if start > before:
            reason, size = LOG_START_OFFSET_CHECKPOINT, file.size_bytes
            self._host.emit(LogStartRaised, self._broker, log.name, start, reason, size)
        elif start < before:
            self._host.emit(LogStartReverted, self._broker, log.name, before, start)

    def _recover(self, partition: str, file: LogFile) -> bool:
        """Recover a log and its epochs from the recovery point on.

        Return whether it was truncated.
        """
        recovery_point = self._disk.checkpoint(RECOVERY_POINT_OFFSET_CHECKPOINT, partition)
        before = file.log_end_offset
        damage = file.recover(recovery_point)
        if damage is not None:
            self._host.emit(
                CorruptionCut, self._broker, partition, file.log_end_offset, before, damage == TORN
            )
        if partition in self._disk.stale_epochs:
            del self._disk.stale_epochs[partition]
            self._recover_epochs(partition, file.recovery_base(recovery_point))
        return damage is not None

    def _recover_epochs(self, partition: str, begin: int) -> None:
        """Add the epochs of recovered batches that are later than those in the checkpoint.

        Modelled on ``LogSegment.recover``, which adds no entry for epoch 0.
        """
        cache = LeaderEpochCache(self._disk.epoch_checkpoint(partition))
        for batch in self._disk.log_file(partition).batches:
            if batch.base_offset >= begin and batch.leader_epoch > max(0, cache.latest_epoch()):
                cache.assign(batch.leader_epoch, batch.base_offset)

    # Log directories

    def has_failed_dirs(self) -> bool:
        """Return whether any log directory has failed, noticed by the broker or not."""
        return bool(self.offline_dirs or self._disk.failed_dirs)

    def is_offline(self, partition: str) -> bool:
        """Return whether a partition's log is in a directory that the broker has taken offline."""
        return bool(self.offline_dirs) and self._disk.dir_of(partition) in self.offline_dirs

    def has_live_dirs(self) -> bool:
        """Return whether any log directory is still online."""
        return len(self.offline_dirs) < self._disk.log_dirs

    def can_write(self, partition: str) -> bool:
        """Return whether a log can be written to. If not, take its directory offline."""
        if self._disk.is_writable(partition):
            return True
        self._take_dir_offline(self._disk.dir_of(partition))
        return False

    def can_append(self, partition: str, batches: Sequence[RecordBatch]) -> bool:
        """Return whether a log has room for *batches*. If not, take its directory offline."""
        if self._disk.room_limits:
            self._disk.take_room(partition, sum([batch.size_bytes for batch in batches]))
        return self.can_write(partition)

    def close_dir(self, log_dir: int) -> tuple[str, ...]:
        """Close the logs in a directory. Return their partitions."""
        names = tuple(name for name in self._logs if self._disk.dir_of(name) == log_dir)
        for name in names:
            del self._logs[name]
            self._dirty.pop(name, None)
        return names

    def stored_in(self, log_dir: int) -> tuple[str, ...]:
        """Return the partitions with logs in a directory, open or not."""
        return tuple(name for name, place in self._disk.dir_by_partition.items() if place == log_dir)

    def _take_dir_offline(self, log_dir: int) -> None:
        """Take a directory offline.

        As in Kafka (``LogDirFailureChannel``), another thread then handles the failure:
        `on_dir_failure` is called after the current event.
        """
        if log_dir not in self.offline_dirs:
            self.offline_dirs[log_dir] = None
            self.is_halting = (
                self.is_halting
                or log_dir == self._disk.metadata_log_dir
                or not (self._behaviours.log.log_dir_failure_survived and self.has_live_dirs())
            )
            self._host.set_timer(0, self.on_dir_failure, log_dir)

    def has(self, partition: str) -> bool:
        """Return whether the disk has a partition's log, open or not."""
        return partition in self._disk.log_files

    def delete(self, partition: str) -> None:
        """Delete a log, open or not.

        Call `can_write` first, because a deletion writes to the directory:
        ``LogManager.asyncDelete`` renames the log.
        """
        self._logs.pop(partition, None)
        self._dirty.pop(partition, None)
        self._retained_until_us.pop(partition, None)
        leo = self._disk.delete(partition)
        self._host.emit(LogDeleted, self._broker, partition, leo)

    def log(self, partition: str) -> UnifiedLog:
        return self._logs[partition]

    def on_append(self, log: UnifiedLog) -> None:
        """Handle an append: flush the log after ``flush.messages``, and plan later tasks."""
        name = log.name
        log.mark_modified(self._wall_us)
        if log.is_cleaned:
            self._cleaner.consider(name)
        if log.log_end_offset - log.flushed_offset >= log.flush_messages:
            self._flush(name, log)
        elif log.flushes_by_time and name not in self._dirty:
            self._dirty[name] = None
            self._request_flush()
        if log.active_segment_base > log.flushed_offset and name not in self._rolled_logs:
            self._rolled_logs[name] = None
            self._host.set_timer(0, self._flush_older_segments, name)
        if log.has_retention_bytes and log.is_beyond_retention_bytes(self._topics[name]):
            self._plan_retention(name, log, self._wall_us)
        elif name not in self._retained_until_us:
            self._plan_retention(name, log, log.retained_until_us(self._topics[name]))

    def _flush_older_segments(self, partition: str) -> None:
        """Flush complete segments, as a thread of Kafka does after each roll (``Log.roll``)."""
        del self._rolled_logs[partition]
        log = self._logs.get(partition)
        if log is not None and self.can_write(partition) and log.flush(log.active_segment_base):
            self._host.emit(LogFlushed, self._broker, partition, log.flushed_offset)

    def _flush_dirty(self) -> bool:
        """Flush dirty logs whose last flush is ``flush.ms`` ago (``LogManager.flushDirtyLogs``)."""
        if self._is_stopped:
            return False
        now_us = self._host.clock.now_us
        for partition in tuple(self._dirty):
            if now_us - self._flushed_us[partition] >= self._topics[partition].flush_us:
                self._flush(partition, self._logs[partition])
        return bool(self._dirty)

    def truncate(self, partition: str, offset: int, reason: str) -> None:
        log = self._logs[partition]
        before, size, start = log.log_end_offset, self._disk.size_of(partition), log.log_start_offset
        if log.truncate_to(offset):
            if self._topics[partition].compacts:
                self._cleaner.on_truncation(partition)
            self._disk.update_room(partition, size)
            if log.log_start_offset != start:
                self._start_offset_checkpoint.request()
            self._host.emit(LogTruncated, self._broker, partition, before, log.log_end_offset, reason)
            # Otherwise the recovery point could be beyond the end of the log after a crash.
            self._checkpoint_recovery_points()

    def truncate_fully_and_start_at(self, partition: str, offset: int) -> None:
        """Drop all records of a log, and continue at *offset*, the leader's log start."""
        log = self._logs[partition]
        leo, size = log.log_end_offset, self._disk.size_of(partition)
        log.truncate_fully_and_start_at(offset)
        if self._topics[partition].compacts:
            self._cleaner.on_truncation(partition)
        self._disk.update_room(partition, size)
        self._start_offset_checkpoint.request()
        self._host.emit(LogStartedAnew, self._broker, partition, leo, offset)
        self._checkpoint_recovery_points()

    # Retention

    @property
    def _wall_us(self) -> int:
        """The machine's wall clock, which decides the age of records (``time.milliseconds``)."""
        return self._host.clock.now_us + self._host.skew_us

    def on_clock_step(self) -> None:
        """Handle a step of the wall clock, after which segments may suddenly be old."""
        self._plan_retention_check()

    def increment_log_start(self, partition: str, offset: int, reason: str = LEADER_LOG_START) -> None:
        """Raise a log start to *offset*.

        A follower takes over its leader's log start. A leader does this when an administrator
        deletes records (DeleteRecords, KIP-107).
        """
        log = self._logs[partition]
        if log.increment_log_start_offset(offset):
            self._start_offset_checkpoint.request()
            size = self._disk.log_file(partition).size_bytes
            self._host.emit(LogStartRaised, self._broker, partition, log.log_start_offset, reason, size)
            if log.has_segments_below_start():
                self._plan_retention(partition, log, self._wall_us)

    def _plan_retention(self, partition: str, log: UnifiedLog, at_us: int | None) -> None:
        """Plan a retention check of a log for *at_us* of the wall clock, unless one is due earlier.

        With None, plan no check until the log changes.
        """
        if at_us is None:
            if log.log_end_offset > log.log_start_offset:
                self._retained_until_us.setdefault(partition, NEVER_US)
            return
        if at_us < self._retained_until_us.get(partition, NEVER_US):
            self._retained_until_us[partition] = at_us
            heappush(self._retention_queue, (at_us, partition))
            self._plan_retention_check()

    def _plan_retention_check(self) -> None:
        """Set a timer for the next run of ``kafka-log-retention`` that may find old segments."""
        began_us, queue = self._retention_began_us, self._retention_queue
        if began_us is None or not queue:
            return
        now_us = self._host.clock.now_us
        waited_us = max(queue[0][0] - self._host.skew_us, now_us) + 1 - began_us
        at_us = began_us + max(0, -(-waited_us // self._config.retention_check_interval_us)) * (
            self._config.retention_check_interval_us
        )
        at_us = min(at_us, now_us + _LOOK_AHEAD_US)
        if self._retention_at_us is None or at_us < self._retention_at_us:
            self._retention_at_us = at_us
            self._host.set_timer(at_us - now_us, self._delete_old_segments, at_us)

    def _delete_old_segments(self, at_us: int) -> None:
        """Delete old segments of the logs that may have some (``LogManager.cleanupLogs``)."""
        if self._retention_at_us != at_us or self._is_stopped:
            return
        self._retention_at_us = None
        began_us = self._retention_began_us or 0
        if at_us >= began_us and (at_us - began_us) % self._config.retention_check_interval_us == 0:
            for partition in self._due_for_retention(at_us + self._host.skew_us):
                log = self._logs.get(partition)
                if log is not None and self.can_write(partition):
                    self._delete_segments_of(partition, log)
        self._plan_retention_check()

    def _due_for_retention(self, at_us: int) -> list[str]:
        """Remove from the queue, and return, the logs that may have old segments at *at_us*."""
        queue, planned = self._retention_queue, self._retained_until_us
        due: list[str] = []
        while queue and queue[0][0] < at_us:
            since_us, partition = heappop(queue)
            if planned.get(partition) == since_us:
                del planned[partition]
                due.append(partition)
        return due

    def _delete_segments_of(self, partition: str, log: UnifiedLog) -> None:
        topic, now_us, high_watermark = self._topics[partition], self._wall_us, log.high_watermark
        size_before, flushed_before = self._disk.size_of(partition), log.flushed_offset
        deleted = log.delete_old_segments(now_us, topic)
        self._disk.update_room(partition, size_before)
        for reason, offset, size in deleted:
            self._host.emit(LogStartRaised, self._broker, partition, offset, reason, size)
        if log.flushed_offset != flushed_before:
            # Retention deleted unflushed segments, so a power loss can no longer affect them.
            self._host.emit(LogFlushed, self._broker, partition, log.flushed_offset)
        if deleted:
            self._report_high_watermark(partition, log, high_watermark)
            self._start_offset_checkpoint.request()
            self.on_log_start(partition)
        if log.is_beyond_retention_bytes(topic) or log.has_segments_below_start():
            # Old segments stay until they are committed.
            self._plan_retention(partition, log, now_us)
        else:
            self._plan_retention(partition, log, log.retained_until_us(topic, by_latest=True))

    def _report_high_watermark(self, partition: str, log: UnifiedLog, before: int) -> None:
        if log.high_watermark != before:
            self._host.emit(HighWatermarkSet, self._broker, partition, log.high_watermark)

    def _checkpoint_log_starts(self) -> bool:
        """Checkpoint log starts that are within a segment (``checkpointLogStartOffsets``)."""
        before = self._disk.checkpoints.get(LOG_START_OFFSET_CHECKPOINT, {})
        changed = []
        for partition, log in self._logs.items():
            offset = log.log_start_offset if log.log_start_offset > log.oldest_segment.base_offset else 0
            if before.get(partition, 0) != offset and self._disk.is_writable(partition):
                changed.append((partition, offset))
        if changed and not self._is_stopped:
            self._disk.write_checkpoint(LOG_START_OFFSET_CHECKPOINT, {**before, **dict(changed)})
            self._host.emit(CheckpointWritten, self._broker, LOG_START_OFFSET_CHECKPOINT, tuple(changed))
        return False

    def flush_all(self) -> None:
        """Flush every log, as the operating system and a clean shutdown do."""
        for partition, log in self._logs.items():
            self._flush(partition, log)

    def stop(self) -> None:
        """Stop the periodic tasks (``KafkaScheduler.shutdown``)."""
        self._is_stopped = True
        self._cleaner.stop()

    def shutdown(self) -> None:
        """Flush every log and write the clean shutdown file (``LogManager.shutdown``).

        As in ``ReplicaManager.shutdown``, the high watermarks are checkpointed first.
        """
        self._checkpoint_high_watermarks()
        if self._behaviours.log.shutdown_flushes_logs:
            self.flush_all()
        self._checkpoint_recovery_points()
        self._checkpoint_log_starts()
        self._disk.clean_shutdown_file = True
        self._disk.unclean_dirs = {**self.offline_dirs, **self._disk.failed_dirs}

    def _flush(self, partition: str, log: UnifiedLog) -> None:
        if self._dirty:
            self._dirty.pop(partition, None)
        if self.can_write(partition) and log.flush():
            self._flushed_us[partition] = self._host.clock.now_us
            self._host.emit(LogFlushed, self._broker, partition, log.flushed_offset)

    def _checkpoint_high_watermarks(self) -> None:
        # Each directory has a file of its own, which a broker writes even without changes. So the
        # broker notices that a directory has failed.
        for log_dir in self._disk.failed_dirs:
            self._take_dir_offline(log_dir)
        file = self._disk.checkpoints.get(REPLICATION_OFFSET_CHECKPOINT)
        is_own = file is self._written_high_watermarks
        # Most logs have not moved, and a broker with many logs checks them every 5 s. Compiled code
        # goes through a list several times as fast as through a dict.
        moved = [
            log
            for log in list(self._logs.values())
            if not is_own or log.high_watermark != log.written_high_watermark
        ]
        self._checkpoint(REPLICATION_OFFSET_CHECKPOINT, _high_watermark, moved)
        self._written_high_watermarks = self._disk.checkpoints.get(REPLICATION_OFFSET_CHECKPOINT)
        for log in moved:
            if self._disk.is_writable(log.name):
                log.written_high_watermark = log.high_watermark

    def _checkpoint_recovery_points(self) -> None:
        follows_flush = self._behaviours.log.recovery_point_follows_flush
        offset_of = _flushed_offset if follows_flush else _log_end_offset
        self._checkpoint(RECOVERY_POINT_OFFSET_CHECKPOINT, offset_of, self._logs.values())

    def _checkpoint(
        self, name: str, offset_of: Callable[[UnifiedLog], int], logs: Iterable[UnifiedLog]
    ) -> None:
        # The file keeps the entries of partitions whose logs this process has not opened yet.
        before = self._disk.checkpoints.get(name, {})
        changed = [
            (log.name, offset)
            for log in logs
            if before.get(log.name) != (offset := offset_of(log)) and self._disk.is_writable(log.name)
        ]
        if changed:
            before.update(changed)
            self._disk.write_checkpoint(name, before)
            self._host.emit(CheckpointWritten, self._broker, name, tuple(changed))

    def _every(self, period_us: int, task: Callable[[], None]) -> None:
        def run(_: None) -> None:
            if not self._is_stopped:
                task()
                self._host.set_timer(period_us, run)

        self._host.set_timer(period_us, run)
