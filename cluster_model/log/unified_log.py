"""The log of one replica: batches by offset, leader epochs, producer states, high watermark.

After ``UnifiedLog.scala``, ``Log.scala`` before 3.0. LEO, the log end offset, is the offset of the next record.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from harrow.cluster_model import errors
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

RETENTION_MS: Final = "retention.ms"
RETENTION_BYTES: Final = "retention.bytes"
LEADER_LOG_START: Final = "log start offset"
DELETE_RECORDS: Final = "DeleteRecords"
"""Why a log begins later than before: its retention, that its leader's does, or that an administrator wanted that."""

HIGH_WATERMARK_TRUNCATION: Final = "high watermark"
LEADER_EPOCH_TRUNCATION: Final = "leader epoch"
OUT_OF_RANGE_TRUNCATION: Final = "out of range"
"""What a follower goes by that truncates its log: its high watermark, where its leader says that an epoch ends, where its leader's log ends."""


class UnexpectedAppendOffset(Exception):
    """A follower's batch does not begin at its LEO: this log and the leader's have parted."""

    def __init__(self, base_offset: int, log_end_offset: int) -> None:
        super().__init__(f"a batch begins at {base_offset}, the log ends at {log_end_offset}")
        self.base_offset = base_offset


@dataclass(slots=True)
class AppendResult:
    """What became of a batch: an error, or its base offset; ``duplicate`` if it was there already."""

    error: str
    batch: RecordBatch | None
    base_offset: int
    duplicate: bool = False


class UnifiedLog:
    """A log on a disk. It is opened anew at each start of its broker."""

    __slots__ = (
        "_behaviours",
        "_file",
        "_switches",
        "_transaction_switches",
        "compacts",
        "epochs",
        "high_watermark",
        "log_end_offset",
        "log_start_offset",
        "producers",
    )

    def __init__(self, partition: str, disk: Disk, behaviours: Behaviours) -> None:
        """Open the log: load the epochs, rebuild the producer states, read the HW checkpoint."""
        self._behaviours = behaviours
        self._switches = behaviours.log
        self._transaction_switches = behaviours.transactions
        self._file = disk.log_file(partition)
        # Behind what compaction has left, offsets were given away that nothing tells of any more (KAFKA-17076).
        self._file.log_end_offset = min(self._file.log_end_offset, self._file.read_end_offset())
        self.compacts = self._file.compacts
        first = self._file.segments[0].base_offset
        self.log_start_offset = max(first, disk.checkpoint(LOG_START_OFFSET_CHECKPOINT, partition))
        if self.log_start_offset > self._file.log_end_offset:
            # The checkpoint knows better (``Log.loadSegments``): what is there is from before.
            self._file.start_anew_at(self.log_start_offset)
        is_reverted = self.log_start_offset < self._file.log_start_offset
        self._file.log_start_offset = self.log_start_offset
        self.log_end_offset = self._file.log_end_offset
        self.epochs = LeaderEpochCache()
        self.epochs.entries = disk.epoch_checkpoint(partition)
        if behaviours.log.epoch_cache_follows_log:
            self.epochs.truncate_from_end(self.log_end_offset)
        self.epochs.truncate_from_start(self.log_start_offset)
        if is_reverted and behaviours.log.reverted_epochs_recovered:
            self._recover_reverted_epochs()
        self.producers = ProducerStates(behaviours, self._file.aborted_transactions)
        self.producers.rebuild(self._file.batches, self._file.producer_snapshots)
        self.high_watermark = disk.checkpoint(REPLICATION_OFFSET_CHECKPOINT, partition)
        if behaviours.log.hw_limited_to_log_end:
            self.update_high_watermark(self.high_watermark)

    def _recover_reverted_epochs(self) -> None:
        """Note again where the epochs begin of what is below the first entry.

        DeleteRecords raises the log start within a segment. ``leader-epoch-checkpoint`` has that at once, ``log-start-offset-checkpoint`` a
        minute later: a broker that is killed in between begins its log where it did, with batches whose epochs have no entry.
        """
        end_offset = self.epochs.start_offset(self.log_end_offset)
        if self.log_start_offset >= end_offset:
            return
        file = self._file
        begin, end = file.place_at(self.log_start_offset), bisect_left(file.base_offsets, end_offset)
        below = LeaderEpochCache()
        for batch in file.batches[begin:end]:
            below.assign(batch.leader_epoch, max(batch.base_offset, self.log_start_offset))
        self.epochs.prepend(below)

    @property
    def flushed_offset(self) -> int:
        """The offset below which power loss takes nothing."""
        return self._file.flushed_offset

    @property
    def batches(self) -> list[RecordBatch]:
        """The stored batches, in order; not to be changed."""
        return self._file.batches

    @property
    def last_stable_offset(self) -> int:
        """The offset below which every transaction has ended: the high watermark while none is open.

        After ``UnifiedLog.fetchLastStableOffsetMetadata``: min(HW, first unstable offset).
        """
        if not self._transaction_switches.lso_below_open_transactions:
            return self.high_watermark
        unstable = self.producers.first_unstable_offset(self.high_watermark)
        return self.high_watermark if unstable is None else min(unstable, self.high_watermark)

    def open_transaction(self, batch: RecordBatch) -> int:
        """Return since which offset the producer of a batch has a transaction open, `NO_OFFSET` if it has none."""
        return self.producers.ongoing_transactions.get(batch.producer_id, NO_OFFSET)

    def aborted_transactions(self, offset: int, end_offset: int) -> tuple[tuple[int, int], ...]:
        """Return the aborted transactions that a fetch of a range of offsets is told of, as producer id and first offset.

        A broker asks the offset index where the range ends, and that knows one offset in some kilobytes: the fetch is told of those
        behind what it has read, too (``Log.addAbortedTransactions``).
        """
        file = self._file
        if not file.aborted_transactions:
            return ()
        return file.aborted_between(offset, file.indexed_end(offset, end_offset))

    def append_as_leader(self, batch: RecordBatch, leader_epoch: int) -> AppendResult:
        """Validate a producer's batch, give it offsets and the leader epoch, and append it.

        The leader epoch is noted first, so also by a batch that is refused or was there already (``Log.append``). A log that is
        compacted takes no record without a key (``LogValidator``).
        """
        return self.outcome_without_append(batch, leader_epoch) or self.append_validated(batch, leader_epoch)

    def outcome_without_append(self, batch: RecordBatch, leader_epoch: int) -> AppendResult | None:
        """Return what becomes of a producer's batch that is refused, or was there already; None of one that is to be appended."""
        if self.compacts and not batch.is_control and (batch.keyed is None or None in batch.keyed.keys):
            return AppendResult(errors.INVALID_RECORD, None, -1)
        self.epochs.assign(leader_epoch, self.log_end_offset)
        if batch.producer_id == NO_PRODUCER_ID:
            return None
        duplicate_offset = self.producers.find_duplicate(batch)
        if duplicate_offset is not None:
            return AppendResult(errors.NONE, None, duplicate_offset, duplicate=True)
        error = self.producers.check(
            batch, is_first=self.log_end_offset == 0, is_whole=self.log_start_offset == 0
        )
        return None if error == errors.NONE else AppendResult(error, None, -1)

    def append_validated(self, batch: RecordBatch, leader_epoch: int) -> AppendResult:
        """Give a producer's batch offsets and the leader epoch, and append it."""
        stored = batch.stored_at(self.log_end_offset, leader_epoch)
        self._append(stored)
        self.producers.append(stored)
        return AppendResult(errors.NONE, stored, stored.base_offset)

    def append_as_follower(self, batch: RecordBatch) -> None:
        """Append a batch as the leader stored it.

        Raises:
            UnexpectedAppendOffset: it begins below this log's LEO. Above it may: its leader has compacted what was between.

        """
        if batch.base_offset < self.log_end_offset:
            raise UnexpectedAppendOffset(batch.base_offset, self.log_end_offset)
        self._append(batch)
        if self._switches.followers_learn_producers:
            self.producers.append(batch)

    def _append(self, batch: RecordBatch) -> None:
        self.epochs.assign(batch.leader_epoch, batch.base_offset)
        self._file.append(batch)
        self.log_end_offset = self._file.log_end_offset

    def update_high_watermark(self, offset: int) -> bool:
        """Set the high watermark, to the LEO at most and the log start at least; return whether it changed.

        After ``UnifiedLog.updateHighWatermark``. Nothing else sets it: an opened log limits what its checkpoint
        says, a truncation what is left, a follower what its leader says, and a leader asks only for more
        (see `harrow.cluster_model.broker.partition.Partition.maybe_increment_hw`).
        """
        high_watermark = min(max(offset, self.log_start_offset), self.log_end_offset)
        if high_watermark == self.high_watermark:
            return False
        self.high_watermark = high_watermark
        if self.producers.unreplicated_transactions:
            self.producers.high_watermark_updated(high_watermark)
        return True

    def read(self, offset: int, end_offset: int, max_bytes: int) -> tuple[RecordBatch, ...]:
        """Return whole batches from the one that has *offset*, or the next one, as far as they end below *end_offset*.

        At least one batch if there is any, then no more than *max_bytes*. A broker sends its files as they are, and does
        not look at CRCs; here the batches end before a damaged one, and `corrupt_offset` says that it follows.
        """
        if offset >= end_offset or offset >= self.log_end_offset:
            return ()
        file = self._file
        first = bisect_right(file.base_offsets, offset) - 1
        if file.compacts:
            first = file.place_at(offset)
        found: list[RecordBatch] = []
        size = 0
        for position in range(first, len(file.batches)):
            batch = file.batches[position]
            size += batch.size_bytes
            if batch.next_offset > end_offset or (found and size > max_bytes):
                break
            if file.damaged and batch.base_offset in file.damaged:
                break
            found.append(batch)
        return tuple(found)

    def is_hole(self, offset: int, end_offset: int) -> bool:
        """Return whether compaction has left nothing from *offset* to below *end_offset*."""
        file = self._file
        place = file.place_at(offset)
        return place == len(file.batches) or file.base_offsets[place] >= end_offset

    def corrupt_offset(self, offset: int, end_offset: int, max_bytes: int) -> int:
        """Return the base offset of the first damaged batch that a read meets, `NO_OFFSET` if it meets none."""
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
        """Drop everything from *offset* on; return whether anything was dropped."""
        if offset >= self.log_end_offset:
            if self._switches.epoch_cache_cut_at_log_end:
                self.epochs.truncate_from_end(offset)
            return False
        self._file.truncate_to(offset)
        self.log_end_offset = self._file.log_end_offset
        self.log_start_offset = min(self.log_start_offset, self.log_end_offset)
        if self._switches.epoch_cache_follows_log:
            self.epochs.truncate_from_end(self.log_end_offset)
        if self._switches.producer_state_follows_log:
            self.producers.rebuild(self._file.batches, self._file.producer_snapshots)
        self.update_high_watermark(self.high_watermark)
        return True

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything, and go on at an offset: that of the leader's log start."""
        self._file.start_anew_at(offset)
        self.log_start_offset = self.log_end_offset = offset
        self.epochs.entries.clear()
        self.producers.rebuild(self._file.batches, self._file.producer_snapshots)
        self.update_high_watermark(offset)

    # Retention

    def increment_log_start_offset(self, offset: int) -> bool:
        """Have no reader get what is below an offset, up to the high watermark at most; return whether that is new.

        After ``Log.maybeIncrementLogStartOffset``. The segments stay until somebody looks for old ones.
        """
        if offset <= self.log_start_offset or offset > self.high_watermark:
            return False
        self._start_at(offset)
        return True

    def next_batch_offset(self, offset: int) -> int:
        """Return where the batch ends that has an offset, or the offset itself where a batch begins."""
        place = self._file.place_of(offset)
        if place is None or self._file.base_offsets[place] == offset:
            return offset
        return self._file.batches[place].next_offset

    def _start_at(self, offset: int) -> None:
        self.log_start_offset = self._file.log_start_offset = offset
        self.epochs.truncate_from_start(offset)
        self.update_high_watermark(self.high_watermark)

    def delete_old_segments(self, now_us: int, config: TopicConfig) -> list[tuple[str, int, int]]:
        """Delete the segments that retention asks for; return why the log starts where: reason, log start, bytes left.

        After ``Log.deleteOldSegments``: by time, then by size, then what is below the log start.
        """
        deleted: list[tuple[str, int, int]] = []
        file = self._file

        def is_past(number: int) -> bool:
            """A segment is past retention when its latest record is."""
            if not self._switches.retention_spares_recent:
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
        """Delete the first segments that are old; return whether the log starts later now.

        None that reaches above the high watermark (KAFKA-5634), and not an empty active one (``Log.deletableSegments``).
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
        known = ProducerStates(self._behaviours).snapshot_at(begin, file.batches, file.producer_snapshots)
        newer = [snapshot for snapshot in file.producer_snapshots if snapshot.offset > begin]
        file.delete_segments(count)
        file.producer_snapshots[:] = [known, *newer]
        if begin <= self.log_start_offset:
            return False
        self._start_at(begin)
        return True

    @property
    def oldest_segment(self) -> LogSegment:
        """The segment that retention looks at first."""
        return self._file.segments[0]

    def retained_until_us(self, config: TopicConfig, *, by_latest: bool = False) -> int | None:
        """Return when something of the log may be past ``retention.ms`` at the earliest, None for never.

        *by_latest* goes by the latest record of the oldest segment, for which each of its batches is looked at. Its first
        batch is enough for not coming too late.
        """
        file = self._file
        if config.retention_us < 0 or file.log_end_offset == file.segments[0].base_offset:
            return None
        if not self._switches.retention_spares_recent:
            return 0
        since_us = file.largest_timestamp_us(0) if by_latest else file.segments[0].first_timestamp_us
        return since_us + config.retention_us

    def is_beyond_retention_bytes(self, config: TopicConfig) -> bool:
        """Return whether the log is so large that its oldest segment may go."""
        surplus = self._file.size_bytes - config.retention_bytes
        return config.retention_bytes >= 0 and 0 < self._file.segments[0].size_bytes <= surplus

    def has_segments_below_start(self) -> bool:
        """Return whether segments are left of which nothing can be read."""
        return self._is_below_start(0)

    @property
    def active_segment_base(self) -> int:
        """Where the segment begins that is appended to."""
        return self._file.segments[-1].base_offset

    def flush(self, offset: int | None = None) -> bool:
        """Flush to disk, up to an offset or all; return whether there was anything to flush."""
        end_offset = self.log_end_offset if offset is None else min(offset, self.log_end_offset)
        if self._file.flushed_offset >= end_offset:
            return False
        self._file.flushed_offset = end_offset
        return True
