"""A broker's disk: logs with a flushed and an unflushed part, and checkpoint files.

A process crash keeps everything, for what is not flushed is in the page cache.
Power loss keeps what was flushed. Checkpoint files are written with fsync and
renamed into place (``CheckpointFile.scala``), so they survive both; they can be stale.
A batch may be damaged: its bytes are there and do not match its CRC.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final

from harrow.cluster_model.log.producer_state import AbortedTransaction, ProducerSnapshot
from harrow.cluster_model.log.record_batch import RecordBatch

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
"""The log directory of a log that there is not."""

TORN: Final = "torn"
"""A batch of which power loss has left a part: it was being written back, and had not been flushed."""
ROTTEN: Final = "rotten"
"""A batch that the disk has damaged after it was stored."""


_last_offset: Final = attrgetter("last_offset")
_base_offset: Final = attrgetter("base_offset")


@dataclass(slots=True, eq=False)
class LogSegment:
    """A file of a log (``LogSegment.scala``): where it begins, how large it is, and of when its first batch is.

    ``modified_us`` is when something was last appended to it, and ``modified_end`` up to where it went then, which is noted of
    logs that are compacted.
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
    """The stored batches of one replica, in order, and how many records are flushed.

    ``base_offsets`` has each batch's base offset, for binary search. ``log_end_offset``
    is the offset after the last record. ``producer_snapshots`` say what its beginnings tell of producers, oldest first.
    ``segments`` are the files that hold the batches, the active one last. ``damaged`` says of which batches, by base
    offset, the CRC is wrong, and why: `TORN` or `ROTTEN`. Batches are shared by replicas, so it cannot stand in them.
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
    """Where the log began for the last process that had it open, whatever the checkpoint says."""
    aborted_transactions: list[AbortedTransaction] = field(default_factory=list)
    """The transaction indexes of the segments (``TransactionIndex.java``), in the order of the markers."""

    @property
    def intact_end(self) -> int:
        """The offset up to which a reader gets records: the end of the log, or the first batch with a wrong CRC."""
        return min(self.damaged, default=self.log_end_offset)

    def append(self, batch: RecordBatch) -> None:
        """Write a batch (into the page cache), into a new segment if it is too large or too late for the active one.

        Too late by its timestamp and that of the segment's first batch (``LogSegment.shouldRoll``): a log that is not written to
        begins no segment.
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
        """Drop every batch that has a record at or after *offset*, and end there; all, and begin there, if that is below the first segment."""
        segments = self.segments
        if offset < segments[0].base_offset:
            self.start_anew_at(offset)
            return
        end = min(self.log_end_offset, offset)
        while self.batches and self.batches[-1].next_offset > offset:
            batch = self.batches.pop()
            self.base_offsets.pop()
            while segments[-1].base_offset > batch.base_offset:
                segments.pop()
            segments[-1].size_bytes -= batch.size_bytes
        # Also where that is in the midst of a batch: one below the log start is cut there (``Log.truncateTo``).
        self.log_end_offset = end
        # A segment goes that begins at the end, unless it tells where that is: compaction may have emptied what is before it.
        last = self.batches[-1].next_offset if self.batches else segments[0].base_offset
        while len(segments) > 1 and segments[-1].base_offset > (end if last < end else end - 1):
            segments.pop()
        if self.damaged:
            self.damaged = {place: how for place, how in self.damaged.items() if place < self.log_end_offset}
        while self.producer_snapshots and self.producer_snapshots[-1].offset > self.log_end_offset:
            self.producer_snapshots.pop()
        while self.aborted_transactions and self.aborted_transactions[-1].last_offset >= self.log_end_offset:
            self.aborted_transactions.pop()
        self.flushed_offset = min(self.flushed_offset, self.log_end_offset)
        self.log_start_offset = min(self.log_start_offset, self.log_end_offset)

    def start_anew_at(self, offset: int) -> None:
        """Have no record, and the next one at an offset (``Log.truncateFullyAndStartAt``)."""
        self.batches.clear()
        self.base_offsets.clear()
        self.producer_snapshots.clear()
        self.aborted_transactions.clear()
        self.damaged.clear()
        self.segments[:] = [LogSegment(offset)]
        self.log_start_offset = self.log_end_offset = self.flushed_offset = offset

    def delete_segments(self, count: int) -> None:
        """Delete the oldest segments; where that is all of them, a new one begins at the end (``Log.deleteSegments``)."""
        segments = self.segments
        if count == len(segments):
            segments.append(LogSegment(self.log_end_offset))
        del segments[:count]
        begin = segments[0].base_offset
        gone = bisect_left(self.base_offsets, begin)
        del self.batches[:gone]
        del self.base_offsets[:gone]
        if self.damaged:
            self.damaged = {place: how for place, how in self.damaged.items() if place >= begin}
        if self.aborted_transactions:
            known = bisect_left(self.aborted_transactions, begin, key=_last_offset)
            del self.aborted_transactions[:known]
        self.flushed_offset = max(self.flushed_offset, begin)

    def aborted_between(self, offset: int, end_offset: int) -> tuple[tuple[int, int], ...]:
        """Return the aborted transactions that reach into a range of offsets, as producer id and first offset.

        After ``TransactionIndex.collectAbortedTxns``: it looks no further than to one of which the log says that nothing before the
        end was open any more.
        """
        known = self.aborted_transactions
        found = []
        for place in range(bisect_left(known, offset, key=_last_offset), len(known)):
            if known[place].first_offset < end_offset:
                found.append((known[place].producer_id, known[place].first_offset))
            if known[place].last_stable_offset >= end_offset:
                break
        return tuple(found)

    def indexed_end(self, begin: int, end: int) -> int:
        """Return where a range of offsets of one segment ends as the offset index has it: with the segment where that has no entry.

        An entry is made once so many bytes have been appended since the last (``LogSegment.append``). Which batches have one is not
        kept here: the one counts that is so many bytes away.
        """
        behind = 0
        for place in range(bisect_left(self.base_offsets, end), len(self.batches)):
            behind += self.batches[place].size_bytes
            if behind > INDEX_INTERVAL_BYTES:
                return self.batches[place].next_offset
        number = bisect_right(self.segments, max(begin, end - 1), key=_base_offset)
        return self.segments[number].base_offset if number < len(self.segments) else self.log_end_offset

    def largest_timestamp_us(self, number: int) -> int:
        """Return of when the latest batch in a segment is (``LogSegment.largestTimestamp``)."""
        return max([batch.max_timestamp_us for batch in self.batches_of(number)], default=0)

    def batches_of(self, number: int, count: int = 1) -> list[RecordBatch]:
        """Return the batches in some segments, from one on."""
        segments = self.segments
        begin = bisect_left(self.base_offsets, segments[number].base_offset)
        end = len(self.batches)
        if number + count < len(segments):
            end = bisect_left(self.base_offsets, segments[number + count].base_offset)
        return self.batches[begin:end]

    def replace_segments(self, number: int, count: int, batches: list[RecordBatch]) -> None:
        """Put one segment with other batches in the place of some (``Log.replaceSegments``).

        It is flushed before that, and counts as modified when the last of them was.
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
            known = frozenset(self.base_offsets)
            self.damaged = {place: how for place, how in self.damaged.items() if place in known}

    def read_end_offset(self) -> int:
        """Return where the log ends by what it has: after its last batch, or where its last segment begins.

        After ``LogSegment.readNextOffset``. Of offsets that compaction has left empty behind the last batch nothing tells.
        """
        last = self.batches[-1].next_offset if self.batches else 0
        return max(last, self.segments[-1].base_offset)

    @property
    def size_bytes(self) -> int:
        """The size of all segments."""
        return sum([segment.size_bytes for segment in self.segments])

    def lose_power(self, torn_after: int | None = None) -> None:
        """Keep what was flushed.

        With *torn_after* the operating system has written back so many batches of the rest, and was in the middle of the
        next one, which is torn. It writes pages in any order, but recovery keeps nothing beyond the first gap, so that a
        beginning is all that can survive.
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
        """Return where in ``batches`` the one is that has an offset, None if none has."""
        place = bisect_right(self.base_offsets, offset) - 1
        return place if place >= 0 and offset < self.batches[place].next_offset else None

    def place_at(self, offset: int) -> int:
        """Return where in ``batches`` reading from an offset begins: with the one that has it, or the next one."""
        place = bisect_right(self.base_offsets, offset) - 1
        return place if place >= 0 and offset < self.batches[place].next_offset else place + 1

    def damage(self, offset: int) -> None:
        """Have the batch that has an offset no longer match its CRC."""
        place = self.place_of(offset)
        if place is not None:
            self.damaged.setdefault(self.base_offsets[place], ROTTEN)

    def recovery_base(self, recovery_point: int) -> int:
        """Return where recovery begins: with the segment that has the recovery point (``Log.recoverLog``)."""
        bases = (segment.base_offset for segment in reversed(self.segments))
        return next((base for base in bases if base <= recovery_point), self.segments[0].base_offset)

    def recover(self, recovery_point: int) -> str | None:
        """Check the batches that may not have been flushed, and cut the log at the first bad CRC; return why it was bad.

        After ``LogSegment.recover``: all that follows a bad batch is deleted, be it good or not. Damage in older segments
        stays, because it is not looked at.
        """
        if not self.damaged:
            return None
        begin = self.recovery_base(recovery_point)
        bad = min((offset for offset in self.damaged if offset >= begin), default=None)
        if bad is None:
            return None
        why = self.damaged[bad]
        self.truncate_to(bad)
        return why

    def lose(self) -> None:
        """Keep nothing: the disk is another one. Code that holds this log holds the new, empty one."""
        self.start_anew_at(0)


@dataclass(slots=True, eq=False)
class RoomLimit:
    """What keeps a log directory from taking more than so many bytes: it was to take ``room_bytes``, ``left`` of them are free.

    One that had no room for an append stays used up, whatever is deleted.
    """

    room_bytes: int
    left: int
    is_used_up: bool

    def take(self, size_bytes: int) -> None:
        self.is_used_up = self.is_used_up or size_bytes > self.left
        self.left = max(self.left - size_bytes, 0)


@dataclass(slots=True, eq=False)
class Disk:
    """What a broker finds again after a restart."""

    log_files: dict[str, LogFile] = field(default_factory=dict)
    epoch_checkpoints: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    checkpoints: dict[str, dict[str, int]] = field(default_factory=dict)
    log_dirs: int = 1
    """How many log directories there are (``log.dirs``), each on a disk of its own."""
    metadata_log_dir: int = NO_DIR
    """The log directory with the metadata log of KRaft (``metadata.log.dir``), `NO_DIR` where there is none."""
    dir_by_partition: dict[str, int] = field(default_factory=dict)
    failed_dirs: dict[int, None] = field(default_factory=dict)
    """The log directories to which nothing can be written, known to the broker or not."""
    room_limits: dict[int, list[RoomLimit]] = field(default_factory=dict)
    """What limits how much more can be written to log directories, or that anything can be."""
    stale_epochs: dict[str, None] = field(default_factory=dict)
    """The partitions whose epoch checkpoint is not what the epoch cache has written."""
    unclean_dirs: dict[int, None] = field(default_factory=dict)
    """The log directories without ``clean_shutdown_file``, for they could not be written to."""
    write_us: int = 0
    """How long an append has to wait for the disk, after those before it; 0 where the page cache takes it at once."""
    delays_us: list[int] = field(default_factory=list)
    """What makes it wait: all that slows the disk at once adds up."""
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

    def dir_of(self, partition: str) -> int:
        """Return the log directory that has a partition's log, `NO_DIR` where none has."""
        return self.dir_by_partition.get(partition, NO_DIR)

    def place(self, partition: str) -> int:
        """Return the log directory of a partition's log; a new one goes where there are the fewest (``nextLogDirs``)."""
        found = self.dir_of(partition)
        if found == NO_DIR:
            dirs = [number for number in range(self.log_dirs) if number not in self.failed_dirs] or [0]
            found = dirs[0]
            if len(dirs) > 1:
                logs = Counter(self.dir_by_partition.values())
                found = min(dirs, key=logs.__getitem__)
            self.dir_by_partition[partition] = found
        return found

    def is_writable(self, partition: str) -> bool:
        """Return whether a partition's log can be appended to, and flushed."""
        return not self.failed_dirs or self.dir_of(partition) not in self.failed_dirs

    def limit_room(self, log_dir: int, room_bytes: int) -> None:
        """Have a log directory take so much more; nothing at all once that is used up."""
        limit = RoomLimit(room_bytes, room_bytes, is_used_up=room_bytes <= 0)
        self.room_limits.setdefault(log_dir, []).append(limit)
        self._note_failure(log_dir)

    def lift_limit(self, log_dir: int, room_bytes: int) -> None:
        """Undo one `limit_room`; what else limits the directory stays in force."""
        limits = self.room_limits.get(log_dir, [])
        place = next((place for place, limit in enumerate(limits) if limit.room_bytes == room_bytes), None)
        if place is not None:
            del limits[place]
        if not limits:
            self.room_limits.pop(log_dir, None)
        self._note_failure(log_dir)

    def take_room(self, partition: str, size_bytes: int) -> None:
        """Use room of a log directory that fills up, or give it back; where there is not enough, it fails."""
        log_dir = self.dir_of(partition)
        limits = self.room_limits.get(log_dir, ())
        for limit in limits:
            limit.take(size_bytes)
        if limits:
            self._note_failure(log_dir)

    def _note_failure(self, log_dir: int) -> None:
        if any(limit.is_used_up for limit in self.room_limits.get(log_dir, ())):
            self.failed_dirs[log_dir] = None
        else:
            self.failed_dirs.pop(log_dir, None)

    def slow_down(self, write_us: int) -> None:
        """Have each append wait so much longer."""
        self.delays_us.append(write_us)
        self.write_us = sum(self.delays_us)

    def speed_up(self, write_us: int) -> None:
        """Undo one `slow_down`; what has been repaired meanwhile is as it is."""
        if write_us in self.delays_us:
            self.delays_us.remove(write_us)
        self.write_us = sum(self.delays_us)

    def repair(self) -> None:
        """Take whatever is written, at once, and have room enough."""
        self.failed_dirs.clear()
        self.room_limits.clear()
        self.delays_us.clear()
        self.write_us = 0

    def lose_power(self, torn_after: int | None = None) -> list[tuple[str, int, int]]:
        """Keep what was flushed (`LogFile.lose_power`); return of which logs that was less than before: from where, to where."""
        lost = []
        for partition, log_file in self.log_files.items():
            end_offset, size = log_file.log_end_offset, self.size_of(partition)
            log_file.lose_power(torn_after)
            if log_file.log_end_offset < end_offset:
                lost.append((partition, log_file.log_end_offset, end_offset))
                self.room_changed(partition, size)
        return lost

    def size_of(self, partition: str) -> int:
        """Return the size of a log where it matters, on a disk that fills up; else 0."""
        log_file = self.log_files.get(partition) if self.room_limits else None
        return 0 if log_file is None else log_file.size_bytes

    def room_changed(self, partition: str, size_before: int) -> None:
        """Give back the room of what a log has no more, whose `size_of` was another."""
        if self.room_limits:
            self.take_room(partition, self.size_of(partition) - size_before)

    def lose(self) -> None:
        """Be another disk, an empty one; who holds a log file or an epoch checkpoint of this one holds the new one's."""
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
        """Keep nothing of a partition's replica (``LogManager.asyncDelete``); return where its log ended.

        Who still holds its log file holds what was deleted.
        """
        size = self.size_of(partition)
        deleted = self.log_files.pop(partition, None)
        self.room_changed(partition, size)
        self.epoch_checkpoints.pop(partition, None)
        self.stale_epochs.pop(partition, None)
        self.dir_by_partition.pop(partition, None)
        for offsets in self.checkpoints.values():
            offsets.pop(partition, None)
        return 0 if deleted is None else deleted.log_end_offset

    def write_checkpoint(self, name: str, offsets: dict[str, int]) -> None:
        self.checkpoints[name] = offsets
