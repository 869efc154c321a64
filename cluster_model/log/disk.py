"""Models a broker's disk: logs with a flushed and an unflushed part, and checkpoint files.

If only the process crashes, nothing is lost, because unflushed data is in the page cache. After a
power loss only flushed data is left. Checkpoint files are written with fsync and renamed into place
(``CheckpointFile.scala``), so they survive both kinds of crash, but they can be stale. A batch may
be damaged: its bytes are stored, but no longer match its CRC.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import field
from operator import attrgetter
from typing import Final

from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.log.producer_state import AbortedTransaction, ProducerSnapshot
from harrow.cluster_model.log.record_batch import RecordBatch
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND

REPLICATION_OFFSET_CHECKPOINT: Final = "replication-offset-checkpoint"
RECOVERY_POINT_OFFSET_CHECKPOINT: Final = "recovery-point-offset-checkpoint"
LOG_START_OFFSET_CHECKPOINT: Final = "log-start-offset-checkpoint"
CLEANER_OFFSET_CHECKPOINT: Final = "cleaner-offset-checkpoint"

SEGMENT_BYTES: Final = 1 << 30
"""Kafka's default of ``segment.bytes``."""
INDEX_INTERVAL_BYTES: Final = 4096
"""Kafka's default of ``index.interval.bytes``."""
SEGMENT_US: Final = 7 * 24 * 3_600 * 10**6
"""Kafka's default of ``segment.ms``."""

NO_DIR: Final = -1
"""Stands for the log directory of a log that does not exist."""

TORN: Final = "torn"
"""Why a batch is damaged: it was only partly written back when the power failed."""
ROTTEN: Final = "rotten"
"""Why a batch is damaged: the disk changed it after it had been stored."""

_last_offset: Final = attrgetter("last_offset")
_base_offset: Final = attrgetter("base_offset")


@dataclass(slots=True, eq=False)
class LogSegment:
    """A file of a log (``LogSegment.scala``).

    ``modified_us`` is the time of the last append, and ``modified_end`` is the end offset after
    that append.
    """

    base_offset: int
    size_bytes: int = 0
    first_timestamp_us: int = 0
    modified_us: int = 0
    modified_end: int = -1


def _first_segment() -> list[LogSegment]:
    return [LogSegment(0)]


@dataclass(slots=True, eq=False)
class LogFile:
    """The stored batches of one replica, in order, and the offset up to which they are flushed.

    ``base_offsets`` has each batch's base offset, for binary search. ``log_end_offset`` is the
    offset after the last record. ``producer_snapshots`` are ordered by offset. ``segments`` are the
    files that have the batches, the active segment last. ``damaged`` maps the base offset of each
    batch with a wrong CRC to the reason, `TORN` or `ROTTEN`. A batch cannot have the reason itself,
    because replicas share batches.
    """

    batches: list[RecordBatch] = field(default_factory=list)
    base_offsets: list[int] = field(default_factory=list)
    log_end_offset: int = 0
    flushed_offset: int = 0
    producer_snapshots: list[ProducerSnapshot] = field(default_factory=list)
    segments: list[LogSegment] = field(default_factory=_first_segment)
    segment_bytes: int = SEGMENT_BYTES
    segment_us: int = SEGMENT_US
    compacts: bool = False
    """Whether the log is compacted (``cleanup.policy``), so that it may have holes."""
    damaged: dict[int, str] = field(default_factory=dict)
    log_start_offset: int = 0
    """The log start offset that the last process with this log had.

    The checkpoint may lag behind.
    """
    aborted_transactions: list[AbortedTransaction] = field(default_factory=list)
    """The transaction indexes of the segments (``TransactionIndex.java``), in marker order."""

    @property
    def intact_end(self) -> int:
        """The offset where reading ends: the log end, or the first batch with a wrong CRC."""
        return min(self.damaged, default=self.log_end_offset)

    def append(self, batch: RecordBatch) -> None:
        """Write a batch into the page cache.

        First roll a new segment if the active one is full or old. The age of a segment is the
        timestamp of the new batch minus that of the segment's first batch
        (``LogSegment.shouldRoll``). So a log without appends rolls no segment.
        """
        segment = self.segments[-1]
        timestamp_us = batch.max_timestamp_us
        if not segment.size_bytes:
            segment.first_timestamp_us = timestamp_us
        elif (
            segment.size_bytes + batch.size_bytes > self.segment_bytes
            or timestamp_us - segment.first_timestamp_us > self.segment_us
        ):
            segment = LogSegment(batch.base_offset, first_timestamp_us=timestamp_us)
            self.segments.append(segment)
        segment.size_bytes += batch.size_bytes
        self.batches.append(batch)
        self.base_offsets.append(batch.base_offset)
        self.log_end_offset = batch.next_offset

    def truncate_to(self, offset: int) -> None:
        """Drop every batch that has a record at or after *offset*, and let the log end at *offset*.

        If *offset* is below the first segment, drop the whole log, and let it start at *offset*.
        """
        segments = self.segments
        if offset < segments[0].base_offset:
            self.truncate_fully_and_start_at(offset)
            return
        end = min(self.log_end_offset, offset)
        while self.batches and self.batches[-1].next_offset > offset:
            batch = self.batches.pop()
            self.base_offsets.pop()
            while segments[-1].base_offset > batch.base_offset:
                segments.pop()
            segments[-1].size_bytes -= batch.size_bytes
        # The new end may be in the middle of a dropped batch. As in ``Log.truncateTo``, the log
        # ends at the requested offset nevertheless.
        self.log_end_offset = end
        # Drop a segment that begins at the new end. If compaction has removed the batches just
        # before it, the segment stays, because only its base offset shows where the log ends.
        last = self.batches[-1].next_offset if self.batches else segments[0].base_offset
        while len(segments) > 1 and segments[-1].base_offset > (end if last < end else end - 1):
            segments.pop()
        if self.damaged:
            self.damaged = {
                place: reason for place, reason in self.damaged.items() if place < self.log_end_offset
            }
        while self.producer_snapshots and self.producer_snapshots[-1].offset > self.log_end_offset:
            self.producer_snapshots.pop()
        while self.aborted_transactions and self.aborted_transactions[-1].last_offset >= self.log_end_offset:
            self.aborted_transactions.pop()
        self.flushed_offset = min(self.flushed_offset, self.log_end_offset)
        self.log_start_offset = min(self.log_start_offset, self.log_end_offset)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop every record. The next record gets *offset* (``Log.truncateFullyAndStartAt``)."""
        self.batches.clear()
        self.base_offsets.clear()
        self.producer_snapshots.clear()
        self.aborted_transactions.clear()
        self.damaged.clear()
        self.segments[:] = [LogSegment(offset)]
        self.log_start_offset = self.log_end_offset = self.flushed_offset = offset

    def delete_segments(self, count: int) -> None:
        """Delete the *count* oldest segments.

        If no segment remains, start a new one at the log end (``Log.deleteSegments``).
        """
        segments = self.segments
        if count == len(segments):
            segments.append(LogSegment(self.log_end_offset))
        del segments[:count]
        begin = segments[0].base_offset
        batch_count = bisect_left(self.base_offsets, begin)
        del self.batches[:batch_count]
        del self.base_offsets[:batch_count]
        if self.damaged:
            self.damaged = {place: reason for place, reason in self.damaged.items() if place >= begin}
        if self.aborted_transactions:
            del self.aborted_transactions[: bisect_left(self.aborted_transactions, begin, key=_last_offset)]
        self.flushed_offset = max(self.flushed_offset, begin)

    def aborted_between(self, offset: int, end_offset: int) -> tuple[tuple[int, int], ...]:
        """Return the aborted transactions that overlap a range, as (producer id, first offset).

        Modelled on ``TransactionIndex.collectAbortedTxns``: the search ends at the first entry
        whose last stable offset reaches the end of the range.
        """
        index = self.aborted_transactions
        aborted = []
        for place in range(bisect_left(index, offset, key=_last_offset), len(index)):
            if index[place].first_offset < end_offset:
                aborted.append((index[place].producer_id, index[place].first_offset))
            if index[place].last_stable_offset >= end_offset:
                break
        return tuple(aborted)

    def indexed_end(self, begin: int, end: int) -> int:
        """Round the end of a range within one segment up to the next entry of the offset index.

        If there is no such entry, return the end of the segment. Kafka adds an entry every
        ``index.interval.bytes`` (``LogSegment.append``). The model does not store index entries. It
        assumes an entry that many bytes after the end of the range.
        """
        behind = 0
        for place in range(bisect_left(self.base_offsets, end), len(self.batches)):
            behind += self.batches[place].size_bytes
            if behind > INDEX_INTERVAL_BYTES:
                return self.batches[place].next_offset
        number = bisect_right(self.segments, max(begin, end - 1), key=_base_offset)
        return self.segments[number].base_offset if number < len(self.segments) else self.log_end_offset

    def largest_timestamp_us(self, number: int) -> int:
        """Return the timestamp of a segment's latest batch (``LogSegment.largestTimestamp``)."""
        return max([batch.max_timestamp_us for batch in self.batches_of(number)], default=0)

    def batches_of(self, number: int, count: int = 1) -> list[RecordBatch]:
        """Return the batches of *count* segments, the first of which has the index *number*."""
        segments = self.segments
        begin = bisect_left(self.base_offsets, segments[number].base_offset)
        end = len(self.batches)
        if number + count < len(segments):
            end = bisect_left(self.base_offsets, segments[number + count].base_offset)
        return self.batches[begin:end]

    def replace_segments(self, number: int, count: int, batches: list[RecordBatch]) -> None:
        """Replace *count* segments by one segment with *batches* (``Log.replaceSegments``).

        The new segment inherits the modification time of the last segment that it replaces. Kafka
        flushes the new segment first.
        """
        old = self.segments[number : number + count]
        begin = bisect_left(self.base_offsets, old[0].base_offset)
        end = begin + len(self.batches_of(number, count))
        self.batches[begin:end] = batches
        self.base_offsets[begin:end] = [batch.base_offset for batch in batches]
        cleaned = LogSegment(
            old[0].base_offset,
            sum([batch.size_bytes for batch in batches]),
            batches[0].max_timestamp_us if batches else 0,
            old[-1].modified_us,
            old[-1].modified_end,
        )
        self.segments[number : number + count] = [cleaned]
        if self.damaged:
            remaining = frozenset(self.base_offsets)
            self.damaged = {place: reason for place, reason in self.damaged.items() if place in remaining}

    def read_end_offset(self) -> int:
        """Return the log end as a restart reads it from the files.

        That is the end of the last batch or the base offset of the last segment, whichever is
        higher (``LogSegment.readNextOffset``). If compaction has removed the batches at the end of
        the log, the files do not show that their offsets were used.
        """
        last = self.batches[-1].next_offset if self.batches else 0
        return max(last, self.segments[-1].base_offset)

    @property
    def size_bytes(self) -> int:
        """The size of all segments."""
        return sum([segment.size_bytes for segment in self.segments])

    def lose_power(self, torn_after: int | None = None) -> None:
        """Drop everything that was not flushed.

        With *torn_after*, the operating system had written back *torn_after* unflushed batches and
        a part of the next batch, which is torn. A real system writes pages back in any order, but
        recovery keeps nothing after the first gap. So only a prefix can survive.
        """
        if torn_after is None:
            self.truncate_to(self.flushed_offset)
            return
        torn = bisect_left(self.base_offsets, self.flushed_offset) + torn_after
        if torn < len(self.batches):
            batch = self.batches[torn]
            self.truncate_to(batch.next_offset)
            self.damaged[batch.base_offset] = TORN

    def place_of(self, offset: int) -> int | None:
        """Return the index in ``batches`` of the batch with *offset*; None if there is none."""
        place = _last_place(self.base_offsets, offset)
        return place if place >= 0 and offset < self.batches[place].next_offset else None

    def place_at(self, offset: int) -> int:
        """Return the index in ``batches`` of the batch with *offset*, or else of the next batch."""
        place = _last_place(self.base_offsets, offset)
        return place if place >= 0 and offset < self.batches[place].next_offset else place + 1

    def place_from(self, offset: int) -> int:
        """Return the index in ``batches`` of the first batch that begins at *offset* or above."""
        return _last_place(self.base_offsets, offset - 1) + 1

    def damage(self, offset: int) -> None:
        """Damage the batch with *offset*, so that it no longer matches its CRC."""
        place = self.place_of(offset)
        if place is not None:
            self.damaged.setdefault(self.base_offsets[place], ROTTEN)

    def recovery_base(self, recovery_point: int) -> int:
        """Return the start of the segment that contains the recovery point (``Log.recoverLog``)."""
        bases = (segment.base_offset for segment in reversed(self.segments))
        return next((base for base in bases if base <= recovery_point), self.segments[0].base_offset)

    def recover(self, recovery_point: int) -> str | None:
        """Truncate the log at the first bad CRC from the recovery point's segment on.

        Return the reason. Modelled on ``LogSegment.recover``: everything after a bad batch is
        deleted, whether it is good or not. Damage in older segments stays, because recovery does
        not read those. Without damage, return None.
        """
        if not self.damaged:
            return None
        begin = self.recovery_base(recovery_point)
        bad = min((offset for offset in self.damaged if offset >= begin), default=None)
        if bad is None:
            return None
        reason = self.damaged[bad]
        self.truncate_to(bad)
        return reason

    def lose(self) -> None:
        """Drop everything, because the disk was replaced.

        The object stays, so code that refers to it sees an empty log.
        """
        self.truncate_fully_and_start_at(0)


@dataclass(slots=True, eq=False)
class RoomLimit:
    """A limit on the room in a log directory: ``room_bytes`` at first, and ``free_bytes`` now.

    Once an append did not fit, the limit counts as used up, even after segments are deleted.
    """

    room_bytes: int
    free_bytes: int
    is_used_up: bool

    def take(self, size_bytes: int) -> None:
        self.is_used_up = self.is_used_up or size_bytes > self.free_bytes
        self.free_bytes = max(self.free_bytes - size_bytes, 0)


@dataclass(slots=True, eq=False)
class Disk:
    """All state of a broker that survives a restart."""

    log_files: dict[str, LogFile] = field(default_factory=dict)
    epoch_checkpoints: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    checkpoints: dict[str, dict[str, int]] = field(default_factory=dict)
    log_dirs: int = 1
    """The number of log directories (``log.dirs``), each on a disk of its own."""
    metadata_log_dir: int = NO_DIR
    """The log directory of KRaft's metadata log (``metadata.log.dir``); `NO_DIR` with ZooKeeper."""
    dir_by_partition: dict[str, int] = field(default_factory=dict)
    failed_dirs: dict[int, None] = field(default_factory=dict)
    """The log directories that cannot be written, whether the broker has noticed or not."""
    room_limits: dict[int, list[RoomLimit]] = field(default_factory=dict)
    """The limits on the room in each log directory. A limit that is used up makes it fail."""
    stale_epochs: dict[str, None] = field(default_factory=dict)
    """The partitions whose epoch checkpoint a fault has reverted and recovery has not completed."""
    unclean_dirs: dict[int, None] = field(default_factory=dict)
    """The log directories without a clean shutdown file, because they were not writable."""
    is_slow: bool = field(default=False, init=False)
    """Whether appends may have to wait. Otherwise the page cache takes them at once."""
    write_us: int = field(default=0, init=False)
    """How long each append occupies the disk."""
    delays_us: list[int] = field(default_factory=list)
    """The delays that faults have added. ``write_us`` is their sum."""
    flush_us: int = 0
    """How long a flush takes, once the data is written. 0 if no append flushes."""
    bytes_per_second: int | None = None
    """How much a log directory writes; None without limit."""
    cached_us: int = 0
    """How far a log directory may be behind with its writes before appends wait."""
    clean_shutdown_file: bool = False
    """Whether ``.kafka_cleanshutdown`` exists. If so, logs need no recovery."""

    def log_file(self, partition: str) -> LogFile:
        """Return the log file of a partition's replica; add an empty one if there is none."""
        log_file = self.log_files.get(partition)
        if log_file is None:
            log_file = self.log_files[partition] = LogFile()
        return log_file

    def epoch_checkpoint(self, partition: str) -> list[tuple[int, int]]:
        """Return the entries of ``leader-epoch-checkpoint``.

        The epoch cache changes the same list.
        """
        return self.epoch_checkpoints.setdefault(partition, [])

    def checkpoint(self, name: str, partition: str) -> int:
        """Return the offset of a partition in a checkpoint; 0 if it has none, as in Kafka."""
        return self.checkpoints.get(name, {}).get(partition, 0)

    def dir_of(self, partition: str) -> int:
        """Return the log directory of a partition's log; `NO_DIR` if there is no log."""
        return self.dir_by_partition.get(partition, NO_DIR)

    def place(self, partition: str) -> int:
        """Return the log directory of a partition's log, and choose one for a new log.

        A new log goes to the directory with the fewest logs (``nextLogDirs``).
        """
        log_dir = self.dir_of(partition)
        if log_dir == NO_DIR:
            dirs = [number for number in range(self.log_dirs) if number not in self.failed_dirs] or [0]
            log_dir = dirs[0]
            if len(dirs) > 1:
                logs = Counter(self.dir_by_partition.values())
                log_dir = min(dirs, key=logs.__getitem__)
            self.dir_by_partition[partition] = log_dir
        return log_dir

    def move(self, partition: str, log_dir: int) -> None:
        """Move a log to another directory.

        A directory that lacks the room fails, and the log stays where it is.
        """
        source, size_bytes = self.dir_of(partition), self.log_file(partition).size_bytes
        if source == log_dir:
            return
        self._take_room(log_dir, size_bytes)
        if log_dir not in self.failed_dirs:
            self.dir_by_partition[partition] = log_dir
            self._take_room(source, -size_bytes)

    def is_writable(self, partition: str) -> bool:
        """Return whether a partition's log can be appended to and flushed."""
        return not self.failed_dirs or self.dir_of(partition) not in self.failed_dirs

    def limit_room(self, log_dir: int, room_bytes: int) -> None:
        """Let a log directory take *room_bytes* more bytes.

        Once an append does not fit, the directory fails.
        """
        limit = RoomLimit(room_bytes, room_bytes, is_used_up=room_bytes <= 0)
        self.room_limits.setdefault(log_dir, []).append(limit)
        self._update_failure(log_dir)

    def lift_limit(self, log_dir: int, room_bytes: int) -> None:
        """Undo one `limit_room`. Other limits on the same directory stay in force."""
        limits = self.room_limits.get(log_dir, [])
        place = next((place for place, limit in enumerate(limits) if limit.room_bytes == room_bytes), None)
        if place is not None:
            del limits[place]
        if not limits:
            self.room_limits.pop(log_dir, None)
        self._update_failure(log_dir)

    def take_room(self, partition: str, size_bytes: int) -> None:
        """Take room in a log directory, or give it back if *size_bytes* is negative.

        If there is not enough room, the directory fails.
        """
        self._take_room(self.dir_of(partition), size_bytes)

    def _take_room(self, log_dir: int, size_bytes: int) -> None:
        limits = self.room_limits.get(log_dir, ())
        for limit in limits:
            limit.take(size_bytes)
        if limits:
            self._update_failure(log_dir)

    def _update_failure(self, log_dir: int) -> None:
        if any(limit.is_used_up for limit in self.room_limits.get(log_dir, ())):
            self.failed_dirs[log_dir] = None
        else:
            self.failed_dirs.pop(log_dir, None)

    def set_costs(self, flush_us: int, bytes_per_second: int | None, page_cache_bytes: int) -> None:
        """Set how long flushes and writes take on this disk without faults."""
        self.flush_us = flush_us
        self.bytes_per_second = bytes_per_second
        if bytes_per_second is not None:
            self.cached_us = page_cache_bytes * US_PER_SECOND // bytes_per_second
        self._update_pace()

    def slow_down(self, write_us: int) -> None:
        """Make each append wait *write_us* longer."""
        self.delays_us.append(write_us)
        self._update_pace()

    def speed_up(self, write_us: int) -> None:
        """Undo one `slow_down`, unless `repair` has already undone it."""
        if write_us in self.delays_us:
            self.delays_us.remove(write_us)
        self._update_pace()

    def repair(self) -> None:
        """End every failure, limit and delay."""
        self.failed_dirs.clear()
        self.room_limits.clear()
        self.delays_us.clear()
        self._update_pace()

    def _update_pace(self) -> None:
        self.write_us = sum(self.delays_us)
        self.is_slow = self.write_us > 0 or self.flush_us > 0 or self.bytes_per_second is not None

    def lose_power(self, torn_after: int | None = None) -> list[tuple[str, int, int]]:
        """Drop the unflushed data of all logs (`LogFile.lose_power`).

        Return the partitions that lost data, each with its new and its old log end offset.
        """
        lost = []
        for partition, log_file in self.log_files.items():
            end_offset, size = log_file.log_end_offset, self.size_of(partition)
            log_file.lose_power(torn_after)
            if log_file.log_end_offset < end_offset:
                lost.append((partition, log_file.log_end_offset, end_offset))
                self.update_room(partition, size)
        return lost

    def size_of(self, partition: str) -> int:
        """Return the size of a log; 0 if no room is limited, because nothing else needs it."""
        log_file = self.log_files.get(partition) if self.room_limits else None
        return 0 if log_file is None else log_file.size_bytes

    def update_room(self, partition: str, size_before: int) -> None:
        """Take room or give it back after a log changed. *size_before* is its earlier `size_of`."""
        if self.room_limits:
            self.take_room(partition, self.size_of(partition) - size_before)

    def lose(self) -> None:
        """Become an empty disk.

        Log files and epoch checkpoints become empty but stay the same objects, because other code
        refers to them.
        """
        for log_file in self.log_files.values():
            log_file.lose()
        for entries in self.epoch_checkpoints.values():
            entries.clear()
        self.checkpoints.clear()
        self.stale_epochs.clear()
        self.dir_by_partition.clear()
        self.failed_dirs.clear()
        self.room_limits.clear()
        self.unclean_dirs.clear()
        self.clean_shutdown_file = False

    def delete(self, partition: str) -> int:
        """Delete a partition's replica (``LogManager.asyncDelete``).

        Return its log end offset. Code that still refers to the deleted log file does not affect
        the disk any more.
        """
        size = self.size_of(partition)
        deleted = self.log_files.pop(partition, None)
        self.update_room(partition, size)
        self.epoch_checkpoints.pop(partition, None)
        self.stale_epochs.pop(partition, None)
        self.dir_by_partition.pop(partition, None)
        for offsets in self.checkpoints.values():
            offsets.pop(partition, None)
        return 0 if deleted is None else deleted.log_end_offset

    def write_checkpoint(self, name: str, offsets: dict[str, int]) -> None:
        self.checkpoints[name] = offsets


def _last_place(base_offsets: list[int], offset: int) -> int:
    """Return the index of the last batch that begins at *offset* or below; -1 if there is none.

    Most look-ups are near the end of the log. There a few comparisons cost less than a bisection.
    """
    place = len(base_offsets) - 1
    near = max(place - _NEAR, -1)
    while place > near and base_offsets[place] > offset:
        place -= 1
    return place if place > near else bisect_right(base_offsets, offset, 0, near + 1) - 1


_NEAR: Final = 8
"""How many batches are compared one by one before the rest is searched by bisection."""
