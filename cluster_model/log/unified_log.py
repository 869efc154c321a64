"""Implements a replica's log: batches, leader epochs, producer states, high watermark.

Modelled on ``UnifiedLog.scala`` (``Log.scala`` before 3.0). The LEO, the log end offset, is the
offset that the next record will get.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Final, final

from harrow.cluster_model import errors
from harrow.cluster_model.compiling import mypyc_attr
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.log.disk import (
    LOG_START_OFFSET_CHECKPOINT,
    REPLICATION_OFFSET_CHECKPOINT,
    Disk,
    LogSegment,
)
from harrow.cluster_model.log.leader_epoch_cache import LeaderEpochCache
from harrow.cluster_model.log.producer_state import ProducerStates
from harrow.cluster_model.log.record_batch import NO_PRODUCER_ID, RecordBatch
from harrow.cluster_model.release.profiles import Behaviours
from harrow.cluster_model.settings import TopicConfig

NO_OFFSET: Final = -1

NEVER_US: Final = 10**15
"""A time that is longer than any campaign."""
_NEVER_MESSAGES: Final = 10**15
"""More records than any campaign has."""

RETENTION_MS: Final = "retention.ms"
RETENTION_BYTES: Final = "retention.bytes"
LEADER_LOG_START: Final = "log start offset"
DELETE_RECORDS: Final = "DeleteRecords"
"""Why the log start rose: retention, the leader's log start, or an administrator's request."""

HIGH_WATERMARK_TRUNCATION: Final = "high watermark"
LEADER_EPOCH_TRUNCATION: Final = "leader epoch"
OUT_OF_RANGE_TRUNCATION: Final = "out of range"
"""Why a follower truncated: to its high watermark, the leader's epoch end, or the leader's LEO."""


class UnexpectedAppendOffset(Exception):
    """A fetched batch begins below the follower's LEO: the two logs have diverged."""

    def __init__(self, base_offset: int, log_end_offset: int) -> None:
        super().__init__(f"a batch begins at {base_offset}, the log ends at {log_end_offset}")
        self.base_offset = base_offset


@final
@mypyc_attr(free_list_len=1)
@dataclass(slots=True)
class AppendResult:
    """The result of an append: an error or a base offset, and whether the batch is a duplicate."""

    error: str
    batch: RecordBatch | None
    base_offset: int
    duplicate: bool = False


class UnifiedLog:
    """A log on a disk. Each start of the broker opens the log again, as a new object."""

    __slots__ = (
        "_behaviours",
        "_file",
        "_switches",
        "_tracks_producers",
        "_transaction_switches",
        "compacts",
        "epochs",
        "flush_messages",
        "flushes_by_time",
        "has_retention_bytes",
        "high_watermark",
        "is_cleaned",
        "log_end_offset",
        "log_start_offset",
        "name",
        "producers",
        "written_high_watermark",
    )

    def __init__(self, partition: str, disk: Disk, behaviours: Behaviours) -> None:
        """Open the log: load its epochs, rebuild its producer states, and read its checkpoints."""
        self.name = partition
        self._behaviours = behaviours
        switches = self._switches = behaviours.log
        self._transaction_switches = behaviours.transactions
        self._tracks_producers = switches.followers_track_producer_state
        self._file = disk.log_file(partition)
        # If compaction has removed the last batches, the files do not show that their offsets were
        # used (KAFKA-17076).
        self._file.log_end_offset = min(self._file.log_end_offset, self._file.read_end_offset())
        self.compacts = self.is_cleaned = self._file.compacts
        first = self._file.segments[0].base_offset
        self.log_start_offset = max(first, disk.checkpoint(LOG_START_OFFSET_CHECKPOINT, partition))
        if self.log_start_offset > self._file.log_end_offset:
            # The checkpoint counts more than the older records of the log (``Log.loadSegments``).
            self._file.truncate_fully_and_start_at(self.log_start_offset)
        is_reverted = self.log_start_offset < self._file.log_start_offset
        self._file.log_start_offset = self.log_start_offset
        self.log_end_offset = self._file.log_end_offset
        self.epochs = LeaderEpochCache(disk.epoch_checkpoint(partition))
        if switches.epoch_cache_truncated_with_log:
            self.epochs.truncate_from_end(self.log_end_offset)
        self.epochs.truncate_from_start(self.log_start_offset)
        if is_reverted and switches.recovery_restores_earlier_epochs:
            self._recover_reverted_epochs()
        self.producers = ProducerStates(behaviours, self._file.aborted_transactions)
        if self._file.batches or self._file.producer_snapshots:
            self.producers.rebuild(self._file.batches, self._file.producer_snapshots)
        # What this process last wrote into the checkpoint of high watermarks.
        self.written_high_watermark = NO_OFFSET
        self.high_watermark = disk.checkpoint(REPLICATION_OFFSET_CHECKPOINT, partition)
        if switches.hw_limited_to_log_end:
            self.update_high_watermark(self.high_watermark)

    def configure(self, config: TopicConfig) -> None:
        """Copy from the topic's configuration what each append needs."""
        self.is_cleaned = config.compacts
        if config.compacts:
            self._mark_compacted()
        self.flush_messages = min(config.flush_messages, _NEVER_MESSAGES)
        self.flushes_by_time = config.flush_us < NEVER_US
        self.has_retention_bytes = config.retention_bytes >= 0

    def mark_modified(self, now_us: int) -> None:
        """Note the time of an append in the segments that have got a part of it.

        The topic may be compacted only later, and releases before KIP-534 then keep or remove
        tombstones by these times.
        """
        file = self._file
        segments, end = file.segments, file.log_end_offset
        active = segments[-1]
        active.modified_us, active.modified_end = now_us, end
        # The append may have rolled several segments, and the segment that was active before may
        # have got a part of it.
        for number in range(len(segments) - 2, -1, -1):
            segment, end = segments[number], segments[number + 1].base_offset
            if segment.modified_end >= end:
                break
            segment.modified_us, segment.modified_end = now_us, end

    def _mark_compacted(self) -> None:
        """Note that the log may have holes. They stay if its topic is no longer compacted."""
        self.compacts = self._file.compacts = True

    def _recover_reverted_epochs(self) -> None:
        """Restore the epochs of batches below the first entry of the cache.

        DeleteRecords raises the log start within a segment. The new start is in
        ``leader-epoch-checkpoint`` at once, but in ``log-start-offset-checkpoint`` up to a minute
        later. If the broker is killed in between, its log starts at the earlier offset, with
        batches whose epochs have no entry.
        """
        end_offset = self.epochs.start_offset(self.log_end_offset)
        if self.log_start_offset >= end_offset:
            return
        file = self._file
        begin, end = file.place_at(self.log_start_offset), file.place_from(end_offset)
        below = LeaderEpochCache()
        for batch in file.batches[begin:end]:
            below.assign(batch.leader_epoch, max(batch.base_offset, self.log_start_offset))
        self.epochs.prepend(below)

    @property
    def flushed_offset(self) -> int:
        """The offset below which a power loss loses nothing."""
        return self._file.flushed_offset

    @property
    def batches(self) -> list[RecordBatch]:
        """The stored batches, in order. Callers must not change the list."""
        return self._file.batches

    @property
    def last_stable_offset(self) -> int:
        """The offset below which every transaction has ended, but at most the high watermark.

        Modelled on ``UnifiedLog.fetchLastStableOffsetMetadata``: min(HW, first unstable offset).
        """
        if not self._transaction_switches.lso_below_open_transactions:
            return self.high_watermark
        unstable = self.producers.first_unstable_offset(self.high_watermark)
        return self.high_watermark if unstable is None else min(unstable, self.high_watermark)

    def open_transaction(self, batch: RecordBatch) -> int:
        """Return where the open transaction of a batch's producer begins; `NO_OFFSET` for none."""
        return self.producers.ongoing_transactions.get(batch.producer_id, NO_OFFSET)

    def aborted_transactions(self, offset: int, end_offset: int) -> tuple[tuple[int, int], ...]:
        """Return the aborted transactions for a fetch answer, as (producer id, first offset).

        A broker looks up *end_offset* in the offset index, which has only one entry every few
        kilobytes. So the answer may also have transactions after the last batch of the answer
        (``Log.addAbortedTransactions``).
        """
        file = self._file
        if not file.aborted_transactions:
            return ()
        return file.aborted_between(offset, file.indexed_end(offset, end_offset))

    def append_as_leader(self, batch: RecordBatch, leader_epoch: int) -> AppendResult:
        """Validate a producer's batch, assign its offsets and leader epoch, and append it.

        As in ``Log.append``, the epoch cache gets the leader epoch before the producer is checked,
        so it gets it even for a rejected or duplicate batch. A compacted log rejects records
        without a key (``LogValidator``).
        """
        return self.outcome_without_append(batch, leader_epoch) or self.append_validated(batch, leader_epoch)

    def outcome_without_append(self, batch: RecordBatch, leader_epoch: int) -> AppendResult | None:
        """Return the result for a rejected or duplicate batch; None for a batch to be appended."""
        if self.is_cleaned and not batch.is_control and None in batch.known_keys().keys:
            return AppendResult(errors.INVALID_RECORD, None, -1)
        self.epochs.assign(leader_epoch, self.log_end_offset)
        if batch.producer_id == NO_PRODUCER_ID:
            return None
        duplicate_offset = self.producers.find_duplicate(batch)
        if duplicate_offset is not None:
            return AppendResult(errors.NONE, None, duplicate_offset, duplicate=True)
        error = self.producers.check(
            batch, is_first=self.log_end_offset == 0, has_all_records=self.log_start_offset == 0
        )
        return None if error == errors.NONE else AppendResult(error, None, -1)

    def append_validated(self, batch: RecordBatch, leader_epoch: int) -> AppendResult:
        """Assign offsets and a leader epoch to a producer's batch, and append it."""
        stored = batch.stored_at(self.log_end_offset, leader_epoch)
        self._append(stored)
        self.producers.append(stored)
        return AppendResult(errors.NONE, stored, stored.base_offset)

    def append_as_follower(self, batch: RecordBatch) -> None:
        """Append a batch as the leader stored it.

        Raises:
            UnexpectedAppendOffset: the batch begins below this log's LEO. It may begin above the
            LEO, because the leader may have compacted away the records in between.

        """
        if batch.base_offset < self.log_end_offset:
            raise UnexpectedAppendOffset(batch.base_offset, self.log_end_offset)
        if batch.base_offset > self.log_end_offset:
            self._mark_compacted()
        self._append(batch)
        if self._tracks_producers:
            self.producers.append(batch)

    def _append(self, batch: RecordBatch) -> None:
        self.epochs.assign(batch.leader_epoch, batch.base_offset)
        self._file.append(batch)
        self.log_end_offset = self._file.log_end_offset

    def update_high_watermark(self, offset: int) -> bool:
        """Set the high watermark, within the log start and the LEO.

        Return whether it changed. Modelled on ``UnifiedLog.updateHighWatermark``. Nothing else sets
        the high watermark of an open log. A truncation lowers it, a follower takes over its
        leader's, and a leader only raises it (see
        `harrow.cluster_model.broker.partition.Partition.maybe_increment_hw`).
        """
        high_watermark = min(max(offset, self.log_start_offset), self.log_end_offset)
        if high_watermark == self.high_watermark:
            return False
        self.high_watermark = high_watermark
        if self.producers.unreplicated_transactions:
            self.producers.on_high_watermark_update(high_watermark)
        return True

    def read(self, offset: int, end_offset: int, max_bytes: int) -> tuple[RecordBatch, ...]:
        """Return complete batches up to *end_offset*, from the batch with *offset* or the next one.

        If there is any batch, return at least one, but otherwise no more than *max_bytes*. A real
        broker sends its files without checking CRCs. Here reading stops before a damaged batch, and
        `corrupt_offset` reports the damaged batch.
        """
        if offset >= end_offset or offset >= self.log_end_offset:
            return ()
        file = self._file
        first = len(file.base_offsets) - 1
        if file.compacts:
            first = file.place_at(offset)
        elif file.base_offsets[first] > offset:  # Most reads are of the last batch.
            first = bisect_right(file.base_offsets, offset) - 1
        batches: list[RecordBatch] = []
        size = 0
        for position in range(first, len(file.batches)):
            batch = file.batches[position]
            size += batch.size_bytes
            if batch.next_offset > end_offset or (batches and size > max_bytes):
                break
            if file.damaged and batch.base_offset in file.damaged:
                break
            batches.append(batch)
        return tuple(batches)

    def is_hole(self, offset: int, end_offset: int) -> bool:
        """Return whether compaction has removed every batch between *offset* and *end_offset*."""
        file = self._file
        place = file.place_at(offset)
        return place == len(file.batches) or file.base_offsets[place] >= end_offset

    def corrupt_offset(self, offset: int, end_offset: int, max_bytes: int) -> int:
        """Return the base offset of the first damaged batch in a read; `NO_OFFSET` for none."""
        file = self._file
        if not file.damaged:
            return NO_OFFSET
        size = 0
        first = file.place_at(offset)
        for position in range(first, len(file.batches)):
            batch = file.batches[position]
            size += batch.size_bytes
            if batch.next_offset > end_offset or (position > first and size > max_bytes):
                break
            if batch.base_offset in file.damaged:
                return batch.base_offset
        return NO_OFFSET

    def truncate_to(self, offset: int) -> bool:
        """Drop all records from *offset* on. Return whether there were such records."""
        if offset >= self.log_end_offset:
            if self._switches.truncation_drops_empty_last_epoch:
                self.epochs.truncate_from_end(offset)
            return False
        self._file.truncate_to(offset)
        self.log_end_offset = self._file.log_end_offset
        self.log_start_offset = min(self.log_start_offset, self.log_end_offset)
        if self._switches.epoch_cache_truncated_with_log:
            self.epochs.truncate_from_end(self.log_end_offset)
        if self._switches.truncation_rebuilds_producer_state:
            self.producers.rebuild(self._file.batches, self._file.producer_snapshots)
        self.update_high_watermark(self.high_watermark)
        return True

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop all records, and continue at *offset*, the leader's log start."""
        self._file.truncate_fully_and_start_at(offset)
        self.log_start_offset = self.log_end_offset = offset
        self.epochs.entries.clear()
        self.producers.rebuild(self._file.batches, self._file.producer_snapshots)
        self.update_high_watermark(offset)

    # Retention

    def increment_log_start_offset(self, offset: int) -> bool:
        """Raise the log start to *offset*, unless that is above the high watermark.

        Return whether it rose. Modelled on ``Log.maybeIncrementLogStartOffset``. The segments stay
        until the next retention check.
        """
        if offset <= self.log_start_offset or offset > self.high_watermark:
            return False
        self._start_at(offset)
        return True

    def next_batch_offset(self, offset: int) -> int:
        """Return the end of the batch that *offset* is inside of, or *offset* if inside none."""
        place = self._file.place_of(offset)
        if place is None or self._file.base_offsets[place] == offset:
            return offset
        return self._file.batches[place].next_offset

    def _start_at(self, offset: int) -> None:
        self.log_start_offset = self._file.log_start_offset = offset
        self.epochs.truncate_from_start(offset)
        self.update_high_watermark(self.high_watermark)

    def delete_old_segments(self, now_us: int, config: TopicConfig) -> list[tuple[str, int, int]]:
        """Delete segments by retention.

        Return each new log start as (reason, log start, remaining bytes). Modelled on
        ``Log.deleteOldSegments``: segments that are too old are deleted first, then those that make
        the log too large, and then those below the log start.
        """
        deleted: list[tuple[str, int, int]] = []
        file = self._file

        def is_past(number: int) -> bool:
            """Return whether a segment's latest record is older than ``retention.ms``."""
            if not self._switches.retention_keeps_recent_segments:
                return number + 1 < len(file.segments)
            return now_us - file.largest_timestamp_us(number) > config.retention_us

        if config.retention_us >= 0 and self._delete(is_past):
            deleted.append((RETENTION_MS, self.log_start_offset, file.size_bytes))
        surplus = file.size_bytes - config.retention_bytes

        def is_beyond(number: int) -> bool:
            nonlocal surplus
            surplus -= file.segments[number].size_bytes
            return surplus >= 0

        if 0 <= config.retention_bytes <= file.size_bytes and self._delete(is_beyond):
            deleted.append((RETENTION_BYTES, self.log_start_offset, file.size_bytes))
        self._delete(self._is_below_start)
        return deleted

    def _is_below_start(self, number: int) -> bool:
        segments = self._file.segments
        return number + 1 < len(segments) and segments[number + 1].base_offset <= self.log_start_offset

    def _delete(self, is_old: Callable[[int], bool]) -> bool:
        """Delete the old segments at the start of the log.

        Return whether the log start rose. A segment that reaches above the high watermark stays
        (KAFKA-5634), and so does the active segment if it is empty (``Log.deletableSegments``).
        """
        file, segments = self._file, self._file.segments
        count = 0
        while count < len(segments):
            end = segments[count + 1].base_offset if count + 1 < len(segments) else self.log_end_offset
            is_committed = end <= self.high_watermark or not self._switches.retention_waits_for_hw
            if not is_committed or end == segments[count].base_offset or not is_old(count):
                break
            count += 1
        if not count:
            return False
        begin = segments[count].base_offset if count < len(segments) else self.log_end_offset
        at_begin = ProducerStates(self._behaviours).snapshot_at(begin, file.batches, file.producer_snapshots)
        newer = [snapshot for snapshot in file.producer_snapshots if snapshot.offset > begin]
        file.delete_segments(count)
        file.producer_snapshots[:] = [at_begin, *newer]
        if begin <= self.log_start_offset:
            return False
        self._start_at(begin)
        return True

    @property
    def oldest_segment(self) -> LogSegment:
        return self._file.segments[0]

    def retained_until_us(self, config: TopicConfig, *, by_latest: bool = False) -> int | None:
        """Return the earliest time at which a segment may exceed ``retention.ms``; None for never.

        With *by_latest* the time is exact: it comes from the latest record of the oldest segment,
        and finding that record means looking at each batch. Otherwise the time comes from the
        segment's first batch. Then it may be too early, but never too late.
        """
        file = self._file
        if config.retention_us < 0 or file.log_end_offset == file.segments[0].base_offset:
            return None
        if not self._switches.retention_keeps_recent_segments:
            return 0
        since_us = file.largest_timestamp_us(0) if by_latest else file.segments[0].first_timestamp_us
        return since_us + config.retention_us

    def is_beyond_retention_bytes(self, config: TopicConfig) -> bool:
        """Return whether the log has at least ``retention.bytes`` besides its oldest segment."""
        surplus = self._file.size_bytes - config.retention_bytes
        return config.retention_bytes >= 0 and 0 < self._file.segments[0].size_bytes <= surplus

    def has_segments_below_start(self) -> bool:
        """Return whether the log has segments completely below its start."""
        return self._is_below_start(0)

    @property
    def active_segment_base(self) -> int:
        return self._file.segments[-1].base_offset

    def is_flushed_with(self, batches: Sequence[RecordBatch]) -> bool:
        """Return whether an append of *batches* makes the broker flush (``flush.messages``)."""
        count = sum([batch.next_offset - batch.base_offset for batch in batches])
        return self.log_end_offset + count - self.flushed_offset >= self.flush_messages

    def flush(self, offset: int | None = None) -> bool:
        """Flush the log up to *offset*, or completely. Return whether anything was flushed."""
        end_offset = self.log_end_offset if offset is None else min(offset, self.log_end_offset)
        if self._file.flushed_offset >= end_offset:
            return False
        self._file.flushed_offset = end_offset
        return True
