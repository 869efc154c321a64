"""Compacts logs: removes all records of a key but the latest.

Modelled on ``LogCleaner.scala`` and ``LogCleanerManager.scala``. A broker has one cleaner. Every
``log.cleaner.backoff.ms`` the cleaner looks at the logs with ``cleanup.policy=compact`` and cleans
the log with the largest share of dirty bytes. It repeats this until no log is dirty enough. Dirty
records are those that were appended after the last cleaning. Brokers do not coordinate: a leader
and its followers clean at different times, so their stored records differ. Offsets never change, so
readers find holes.
"""

from collections.abc import Callable, Mapping
from typing import Final

from harrow.cluster_model.compiling import mypyc_attr
from harrow.cluster_model.events import CheckpointWritten, KeyedRecordFound, LogCleaned, LogFlushed
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.log.disk import CLEANER_OFFSET_CHECKPOINT, Disk, LogFile
from harrow.cluster_model.log.producer_state import SNAPSHOTS_RETAINED, AbortedTransaction, ProducerStates
from harrow.cluster_model.log.record_batch import NO_TIME, RecordBatch
from harrow.cluster_model.log.unified_log import UnifiedLog
from harrow.cluster_model.release.profiles import Behaviours
from harrow.cluster_model.settings import TopicConfig
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.sim.periodic_task import PeriodicTask

_ALWAYS_US: Final = -(10**18)
"""Earlier than any time.

As a delete horizon, it makes a log that was never cleaned keep its tombstones.
"""
_NEVER_US: Final = 10**15
"""A time that is longer than any campaign."""


@dataclass(frozen=True, slots=True)
class LogToClean:
    """The dirty range of a log that can be cleaned, and its size.

    The range ends at the base offset of a segment. ``is_bounded`` says that it ends before the
    active segment. Then it can grow without an append, as time passes or as the high watermark
    rises.
    """

    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    cleanable_bytes: int
    must_be_compacted: bool
    is_bounded: bool

    @property
    def cleanable_ratio(self) -> float:
        """The share of dirty bytes among the bytes that cleaning would read."""
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0


def cleanable(
    log: UnifiedLog,
    file: LogFile,
    checkpoint: int | None,
    config: TopicConfig,
    now_us: int,
    behaviours: Behaviours,
) -> LogToClean:
    """Return the cleanable range of a log.

    Modelled on ``LogCleanerManager.cleanableOffsets`` and ``calculateCleanableBytes``. The active
    segment is not cleaned, nor is anything above the last stable offset, nor are records younger
    than ``min.compaction.lag.ms``. The cleaner cleans whole segments, so the segment with the first
    uncleanable offset is not cleaned either.
    """
    first_dirty = log.log_start_offset if checkpoint is None else checkpoint
    if not log.log_start_offset <= first_dirty <= log.log_end_offset:
        first_dirty = log.log_start_offset
    segments = file.segments
    active = segments[-1].base_offset
    bound = active
    if behaviours.log.cleaner_waits_for_hw:
        bound = min(bound, log.last_stable_offset)
    else:
        unstable = log.producers.first_unstable_offset(log.high_watermark)
        bound = bound if unstable is None else min(bound, unstable)
    first = _segment_of(file, first_dirty)
    dirty = range(first, len(segments) - 1) if first_dirty < active else range(0)
    if config.min_compaction_lag_us > 0:
        young = now_us - config.min_compaction_lag_us
        recent = [
            segments[number].base_offset for number in dirty if file.largest_timestamp_us(number) > young
        ]
        bound = min([bound, *recent[:1]])
    end = max(first_dirty, segments[_segment_of(file, bound)].base_offset if bound < active else active)
    # If the first dirty offset is within a segment, the whole segment counts as dirty, even if none
    # of its records is (KAFKA-8764, KAFKA-9826).
    to_clean = [number for number in dirty if segments[number].base_offset < end] if first_dirty < end else []
    oldest = min([segments[number].first_timestamp_us for number in dirty], default=now_us)
    return LogToClean(
        first_dirty,
        end,
        sum([segment.size_bytes for segment in segments if segment.base_offset < first_dirty]),
        sum([segments[number].size_bytes for number in to_clean]),
        must_be_compacted=oldest < now_us - config.max_compaction_lag_us,
        is_bounded=end < active,
    )


def _segment_of(file: LogFile, offset: int) -> int:
    """Return the index of the segment with *offset*, or of the one that would have it."""
    bases = range(len(file.segments) - 1, -1, -1)
    return next((number for number in bases if file.segments[number].base_offset <= offset), 0)


class Cleaner:
    """One cleaning of a log (``Cleaner.doClean``)."""

    __slots__ = (
        "_aborted",
        "_behaviours",
        "_config",
        "_file",
        "_last_offsets",
        "_latest",
        "_log",
        "_now_us",
        "_range",
        "_switches",
        "removed",
    )

    def __init__(
        self,
        log: UnifiedLog,
        file: LogFile,
        dirty: LogToClean,
        config: TopicConfig,
        now_us: int,
        behaviours: Behaviours,
    ) -> None:
        self._log = log
        self._file = file
        self._range = dirty
        self._config = config
        self._now_us = now_us
        self._behaviours = behaviours
        self._switches = behaviours.log
        self._aborted: dict[int, list[AbortedTransaction]] = {}
        for transaction in file.aborted_transactions:
            self._aborted.setdefault(transaction.producer_id, []).append(transaction)
        self._latest = self._offset_map()
        # The batch with a producer's last record stays even if it becomes empty, because it has the
        # producer's last sequence number (KAFKA-5490).
        self._last_offsets = {
            producer_id: entry.batches[-1][2] + entry.batches[-1][1] - entry.batches[-1][0]
            for producer_id, entry in log.producers.entries.items()
            if entry.batches
        }
        self.removed: list[int] = []

    def _offset_map(self) -> dict[str, int]:
        """Return the latest offset of each key in the dirty range.

        Only that record of the key stays.
        """
        begin, end = self._range.first_dirty_offset, self._range.first_uncleanable_offset
        offsets: dict[str, int] = {}
        for batch in self._file.batches[self._file.place_at(begin) :]:
            if batch.base_offset >= end:
                break
            if batch.keyed is None or self._is_aborted(batch):
                continue
            for key, delta in zip(batch.keyed.keys, batch.keyed.offset_deltas, strict=True):
                offset = batch.base_offset + delta
                if (
                    key is not None
                    and offset >= begin
                    and (self._switches.cleaner_retains_latest_record or key not in offsets)
                ):
                    offsets[key] = offset
        return offsets

    def _is_aborted(self, batch: RecordBatch) -> bool:
        """Return whether a batch belongs to an aborted transaction.

        Cleaning removes the records of such a batch, and they do not replace earlier records of
        their keys (``CleanedTransactionMetadata``).
        """
        return bool(self._aborted) and any(
            transaction.first_offset <= batch.base_offset < transaction.last_offset
            for transaction in self._aborted.get(batch.producer_id, ())
        )

    def clean(self) -> None:
        """Clean the segments below the end of the range, even clean ones, and merge small ones."""
        file, end = self._file, self._range.first_uncleanable_offset
        self._snapshot_producers(end)
        horizon_us = self._legacy_delete_horizon_us()
        number = 0
        while number < len(file.segments) - 1 and file.segments[number].base_offset < end:
            count, size = 1, file.segments[number].size_bytes
            while (
                number + count < len(file.segments) - 1
                and file.segments[number + count].base_offset < end
                and size + file.segments[number + count].size_bytes <= file.segment_bytes
            ):
                size += file.segments[number + count].size_bytes
                count += 1
            cleaned: list[RecordBatch] = []
            for old in range(number, number + count):
                retains_deletes = file.segments[old].modified_us > horizon_us
                for batch in file.batches_of(old):
                    self._clean_into(cleaned, batch, retains_deletes=retains_deletes)
            file.replace_segments(number, count, cleaned)
            number += 1

    def _snapshot_producers(self, end: int) -> None:
        """Save the producer states at *end*, before cleaning removes the records behind them.

        Kafka has a snapshot for each segment instead.
        """
        file, snapshots = self._file, self._file.producer_snapshots
        at_end = ProducerStates(self._behaviours).snapshot_at(end, file.batches, snapshots)
        older = [snapshot for snapshot in snapshots if snapshot.offset < end]
        newer = [snapshot for snapshot in snapshots if snapshot.offset > end]
        snapshots[:] = [*older, at_end, *newer][-SNAPSHOTS_RETAINED:]

    def _legacy_delete_horizon_us(self) -> int:
        """Return the time after which a segment must have been modified to keep its tombstones.

        Before KIP-534 this was the only delete horizon.
        """
        clean = [s.modified_us for s in self._file.segments if s.base_offset < self._range.first_dirty_offset]
        return clean[-1] - self._config.delete_retention_us if clean else _ALWAYS_US

    def _clean_into(self, cleaned: list[RecordBatch], batch: RecordBatch, *, retains_deletes: bool) -> None:
        keyed = batch.keyed
        if keyed is None:
            cleaned.append(batch)
            return
        if not self._switches.cleaner_retains_tombstones:
            retains_deletes = False
        elif self._switches.tombstones_have_delete_horizon:
            retains_deletes = keyed.delete_horizon_us == NO_TIME or self._now_us < keyed.delete_horizon_us
        places = [
            place
            for place, key in enumerate(keyed.keys)
            if self._is_retained(key, batch.base_offset + keyed.offset_deltas[place])
            and (retains_deletes or not keyed.tombstones[place])
        ]
        if self._is_aborted(batch):
            places = []
        horizon_us = keyed.delete_horizon_us
        if horizon_us == NO_TIME and any(keyed.tombstones[place] for place in places):
            horizon_us = self._now_us + self._config.delete_retention_us
        if len(places) == len(keyed.keys) and (places or self._is_retained_empty(batch)):
            if horizon_us != keyed.delete_horizon_us:
                batch = batch.with_records(places, horizon_us)
            cleaned.append(batch)
            return
        remaining = frozenset(places)
        self.removed += [
            batch.base_offset + delta
            for place, delta in enumerate(keyed.offset_deltas)
            if place not in remaining
        ]
        if places or self._is_retained_empty(batch):
            cleaned.append(batch.with_records(places, horizon_us))

    def _is_retained(self, key: str | None, offset: int) -> bool:
        """Return whether a record stays: the dirty range has no later record with its key."""
        if key is None:
            return False
        latest = self._latest.get(key)
        if latest is None:
            return True
        return offset >= latest if self._switches.cleaner_retains_latest_record else offset <= latest

    def _is_retained_empty(self, batch: RecordBatch) -> bool:
        """Return whether a batch stays although it has no records left."""
        last = batch.next_offset - 1
        if self._last_offsets.get(batch.producer_id) == last:
            return True
        at_hw = self._switches.cleaner_retains_empty_batch_only_at_hw
        end = self._log.high_watermark if at_hw else self._range.first_uncleanable_offset
        return batch.next_offset == end and self._switches.cleaner_retains_empty_last_batch


@mypyc_attr(allow_interpreted_subclasses=True)
class LogCleaner:
    """The cleaner of a broker: its checkpoint, and the logs that wait for cleaning.

    A log waits as long as it has dirty segments that are complete and that may become due for
    cleaning without another append.
    """

    def __init__(
        self,
        broker: int,
        host: Host,
        disk: Disk,
        period_us: int,
        logs: Mapping[str, UnifiedLog],
        topics: Mapping[str, TopicConfig],
        behaviours: Behaviours,
        can_write: Callable[[str], bool],
        on_cleaned: Callable[[str, int], None],
    ) -> None:
        """Call *on_cleaned* for each log that was cleaned, with its partition and its old size."""
        self._broker = broker
        self._host = host
        self._disk = disk
        self._logs = logs
        self._topics = topics
        self._behaviours = behaviours
        self._switches = behaviours.log
        self._can_write = can_write
        self._on_cleaned = on_cleaned
        self._waiting: dict[str, None] = {}
        self._is_stopped = False
        self._task = PeriodicTask(host, period_us, self._clean_filthiest)

    def start(self) -> None:
        self._task.start()

    def stop(self) -> None:
        self._is_stopped = True

    @property
    def _wall_us(self) -> int:
        """The machine's wall clock (``time.milliseconds``)."""
        return self._host.clock.now_us + self._host.skew_us

    def consider(self, partition: str) -> None:
        """Let a log wait for its cleaning if it has a complete segment."""
        if len(self._disk.log_file(partition).segments) > 1 and partition not in self._waiting:
            self._waiting[partition] = None
            self._task.request()

    def on_truncation(self, partition: str) -> None:
        """Lower the checkpoint to the start of the active segment (``maybeTruncateCheckpoint``)."""
        before = self._disk.checkpoints.get(CLEANER_OFFSET_CHECKPOINT, {})
        active = self._disk.log_file(partition).segments[-1].base_offset
        if before.get(partition, 0) > active:
            self._write_checkpoint(partition, active)

    def _write_checkpoint(self, partition: str, offset: int) -> None:
        before = self._disk.checkpoints.get(CLEANER_OFFSET_CHECKPOINT, {})
        self._disk.write_checkpoint(CLEANER_OFFSET_CHECKPOINT, {**before, partition: offset})
        self._host.emit(CheckpointWritten, self._broker, CLEANER_OFFSET_CHECKPOINT, ((partition, offset),))

    def _clean_filthiest(self) -> bool:
        """Clean the logs that are due, the dirtiest first (``grabFilthiestCompactedLog``)."""
        while not self._is_stopped:
            filthiest: tuple[str, LogToClean] | None = None
            for partition in tuple(self._waiting):
                dirty = self._cleanable(partition)
                if dirty is not None and (
                    filthiest is None or dirty.cleanable_ratio > filthiest[1].cleanable_ratio
                ):
                    filthiest = partition, dirty
            if filthiest is None:
                return bool(self._waiting)
            self._clean(*filthiest)
        return False

    def _cleanable(self, partition: str) -> LogToClean | None:
        """Return the range of a log that is due for cleaning, or None.

        A log that cannot become due before another append stops waiting.
        """
        log = self._logs.get(partition)
        file = self._disk.log_file(partition)
        if log is None or file.damaged or not log.is_cleaned:
            del self._waiting[partition]
            return None
        config = self._topics[partition]
        checkpoint = self._disk.checkpoints.get(CLEANER_OFFSET_CHECKPOINT, {}).get(partition)
        dirty = cleanable(log, file, checkpoint, config, self._wall_us, self._behaviours)
        is_due = dirty.must_be_compacted and dirty.cleanable_bytes > 0
        if is_due or dirty.cleanable_ratio > config.min_cleanable_ratio:
            return dirty
        may_be_due = dirty.cleanable_bytes > 0 and config.max_compaction_lag_us < _NEVER_US
        if not dirty.is_bounded and not may_be_due:
            del self._waiting[partition]
        return None

    def _find_keys(self, partition: str, file: LogFile, end: int) -> None:
        """Read the keys of records that were sent before their topic was compacted."""
        for place in range(file.place_from(end)):
            batch = file.batches[place]
            if batch.keyed is not None or batch.is_control:
                continue
            keyed_batch = file.batches[place] = batch.with_known_keys()
            keyed = keyed_batch.known_keys()
            for value, key, is_tombstone in zip(
                keyed_batch.values, keyed.keys, keyed.tombstones, strict=True
            ):
                if key is not None:
                    self._host.emit(KeyedRecordFound, self._broker, partition, value, key, is_tombstone)

    def _clean(self, partition: str, dirty: LogToClean) -> None:
        if not self._can_write(partition):
            del self._waiting[partition]
            return
        log, file = self._logs[partition], self._disk.log_file(partition)
        size_before = file.size_bytes
        self._find_keys(partition, file, dirty.first_uncleanable_offset)
        cleaner = Cleaner(log, file, dirty, self._topics[partition], self._wall_us, self._behaviours)
        cleaner.clean()
        self._on_cleaned(partition, size_before)
        begin, end = dirty.first_dirty_offset, dirty.first_uncleanable_offset
        self._host.emit(
            LogCleaned, self._broker, partition, begin, end, tuple(cleaner.removed), file.size_bytes
        )
        if log.flush(end):
            self._host.emit(LogFlushed, self._broker, partition, log.flushed_offset)
        self._write_checkpoint(partition, end)
