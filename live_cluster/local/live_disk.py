"""Observes a broker's log directories, and applies power losses and disk faults to them."""

import shutil
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import product
from pathlib import Path
from typing import Final

from harrow.cluster_model.events import (
    BatchAppended,
    BatchReplicated,
    CheckpointReverted,
    CheckpointWritten,
    LogDeleted,
    LogFlushed,
    LogLost,
    LogOpened,
    LogTruncated,
    TransactionBegun,
    TransactionMarkerWritten,
    UnflushedLost,
)
from harrow.cluster_model.log.record_batch import COMMIT, ControlBatch, RecordBatch
from harrow.cluster_model.trace import Emit
from harrow.live_cluster.local.storage.checkpoint_file import (
    HIGH_WATERMARKS,
    LEADER_EPOCHS,
    RECOVERY_POINTS,
    CheckpointError,
    checkpointed_epochs,
    checkpointed_offsets,
)
from harrow.live_cluster.local.storage.log_tail import LogTail, Truncation
from harrow.live_cluster.local.storage.segments import cut, segments_of
from harrow.live_cluster.target.real_cluster import ReplicaLogs

_NO_OFFSET: Final = -1
_OBSERVED_CHECKPOINTS: Final = (HIGH_WATERMARKS,)
_IDENTITY_FILES: Final = ("meta.properties", "bootstrap.checkpoint")
"""Files that an operator restores on new disks: the ids of broker, cluster and folder, and the
metadata that `kafka-storage format` wrote."""


class LiveDisk(ReplicaLogs):
    """The logs of a broker on disk.

    A killed process loses no data, so harrow itself truncates the logs on a power loss. It assumes
    that the operating system has written back data that is *writeback_us* old, a setting of the
    campaign (None: never). Records that Kafka has flushed stay: all records of the topics in
    *flushed_at_once* (``flush.messages=1``), and records below the recovery points. *partitions*
    returns the current replicas of the broker; harrow still follows earlier ones.
    *truncation_reason* returns why a broker has truncated a log to an offset.
    """

    def __init__(
        self,
        broker: int,
        log_dirs: tuple[Path, ...],
        partitions: Callable[[], Iterable[str]],
        *,
        writeback_us: int | None,
        flushed_at_once: frozenset[str],
        truncation_reason: Callable[[str, int], str],
        emit: Emit,
    ) -> None:
        self._broker = broker
        self._log_dirs = log_dirs
        self._writeback_us = writeback_us
        self._flushed_at_once = flushed_at_once
        self._truncation_reason = truncation_reason
        self._emit = emit
        self._partitions = partitions
        self._tails: dict[str, LogTail] = {}
        self._flushed: dict[str, int] = {}
        # Appends that are not written back: the time and the end offset of each, oldest first.
        self._unwritten: dict[str, deque[tuple[int, int]]] = {}
        self._checkpoints: dict[Path, tuple[int, dict[str, int]]] = {}
        # The first offsets of open transactions, by partition and producer id.
        self._transactions: dict[str, dict[int, int]] = {}
        self._follow_new()

    def observe(self, now_us: int, led: frozenset[str]) -> None:
        """Report changes since the last call. The broker leads the partitions in *led*."""
        self._follow_new()
        for partition, tail in self._tails.items():
            if tail.is_gone():
                # The replica was moved to another broker.
                self._emit(LogDeleted, self._broker, partition, tail.leo)
                self._follow_from_start(partition)
                continue
            for change in tail.poll():
                self._report(partition, change, now_us, is_leader=partition in led)
            self._write_back(partition, now_us)
        for log_dir, name in product(self._log_dirs, _OBSERVED_CHECKPOINTS):
            self._observe_checkpoint(log_dir, name)

    def reread(self, now_us: int) -> None:
        for partition, tail in self._tails.items():
            for change in tail.reread():
                self._report(partition, change, now_us, is_leader=False)

    def open(self) -> None:
        """Report that the broker starts with these logs and checkpointed high watermarks."""
        checkpointed = self._offsets(HIGH_WATERMARKS)
        for partition, tail in self._tails.items():
            if segments_of(self._log(partition)):
                self._emit(LogOpened, self._broker, partition, tail.leo, checkpointed.get(partition, 0))

    def has_log(self, partition: str) -> bool:
        return partition in self._tails

    def log_start(self, partition: str) -> int:
        return self._tails[partition].log_start

    def size_bytes(self, partition: str) -> int:
        return self._tails[partition].size_bytes

    def leo(self, partition: str) -> int:
        return self._tails[partition].leo if partition in self._tails else 0

    def batches(self, partition: str) -> tuple[RecordBatch, ...]:
        return tuple(self._tails[partition].batches)

    def epochs(self, partition: str) -> tuple[tuple[int, int], ...]:
        try:
            return checkpointed_epochs(self._log(partition))
        except CheckpointError:  # The broker is writing it.
            return ()

    def flushed(self, partition: str) -> int:
        if partition.rpartition("-")[0] in self._flushed_at_once:
            return self.leo(partition)
        return max(self._flushed[partition], self._offsets(RECOVERY_POINTS).get(partition, 0))

    def lose_power(self, now_us: int) -> None:
        """Truncate each log of a dead broker to its flushed part."""
        self.observe(now_us, frozenset())
        for partition, tail in self._tails.items():
            flushed, leo = self.flushed(partition), tail.leo
            if flushed < leo:
                cut(self._log(partition), flushed)
                tail.reread()
                self._emit(UnflushedLost, self._broker, partition, tail.leo, leo)
            self._unwritten[partition].clear()
        recovery_points = self._offsets(RECOVERY_POINTS)
        for folder in (log for log_dir in self._log_dirs for log in log_dir.glob("*-*")):
            if folder.name not in self._tails and segments_of(folder):
                cut(folder, recovery_points.get(folder.name, 0))

    def lose_disk(self) -> None:
        """Empty the log directories of a dead broker, as if it had new disks.

        The ids stay: an operator must give new disks the old ids, or the broker would not start.
        """
        for partition, tail in self._tails.items():
            if tail.leo:
                self._emit(LogLost, self._broker, partition, 0, tail.leo)
            self._follow_from_start(partition)
        self._checkpoints.clear()
        for path in (path for log_dir in self._log_dirs for path in log_dir.iterdir()):
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name not in _IDENTITY_FILES:
                path.unlink()

    def remove_checkpoint(self, name: str) -> None:
        """Remove a kind of checkpoint file of a dead broker."""
        if name == LEADER_EPOCHS:
            starts = {
                partition: epochs[0][1] for partition in self._tails if (epochs := self.epochs(partition))
            }
            files = [self._log(partition) / name for partition in starts]
        else:
            starts = {partition: 0 for partition, offset in self._offsets(name).items() if offset}
            files = [log_dir / name for log_dir in self._log_dirs]
        for file in files:
            file.unlink(missing_ok=True)
            self._checkpoints.pop(file, None)
        changed = tuple((partition, start) for partition, start in starts.items() if partition in self._tails)
        self._emit(CheckpointReverted, self._broker, name, changed)

    def _follow_new(self) -> None:
        for partition in self._partitions():
            if partition not in self._tails:
                self._follow_from_start(partition)

    def _follow_from_start(self, partition: str) -> None:
        """Follow a log from its start, and forget earlier observations."""
        self._tails[partition] = LogTail(partial(self._log, partition))
        self._flushed[partition] = 0
        self._unwritten[partition] = deque()

    def _report(
        self, partition: str, change: RecordBatch | Truncation, now_us: int, *, is_leader: bool
    ) -> None:
        if isinstance(change, Truncation):
            self._flushed[partition] = min(self._flushed[partition], change.to_offset)
            self._unwritten[partition] = deque(
                (at_us, min(offset, change.to_offset)) for at_us, offset in self._unwritten[partition]
            )
            reason = self._truncation_reason(partition, change.to_offset)
            self._emit(LogTruncated, self._broker, partition, change.from_offset, change.to_offset, reason)
            self._transactions[partition] = {}
            for batch in self._tails[partition].batches:
                if batch.base_offset < change.to_offset:
                    self._follow_transaction(partition, batch)
            return
        self._unwritten[partition].append((now_us, change.next_offset))
        fields = (self._broker, partition, change.base_offset, change.leader_epoch, change.producer_id)
        if is_leader:
            self._emit(BatchAppended, *fields, change.base_sequence, change.values)
        else:
            self._emit(BatchReplicated, *fields, change.base_sequence, change.values)
        if change.is_transactional:
            self._report_transaction(partition, change, self._follow_transaction(partition, change))

    def _follow_transaction(self, partition: str, batch: RecordBatch) -> int:
        """Return the first offset of the transaction of a batch, -1 if there is none."""
        first_offsets = self._transactions.setdefault(partition, {})
        if batch.is_control:
            return first_offsets.pop(batch.producer_id, _NO_OFFSET)
        opened_at = first_offsets.get(batch.producer_id, _NO_OFFSET)
        if batch.is_transactional:
            first_offsets.setdefault(batch.producer_id, batch.base_offset)
        return opened_at

    def _report_transaction(self, partition: str, batch: RecordBatch, opened_at: int) -> None:
        producer = (self._broker, partition, batch.producer_id, batch.producer_epoch)
        if isinstance(batch, ControlBatch):
            is_committed, epoch = batch.control_type == COMMIT, batch.coordinator_epoch
            self._emit(TransactionMarkerWritten, *producer, opened_at, batch.base_offset, is_committed, epoch)
        elif opened_at == _NO_OFFSET:
            self._emit(TransactionBegun, *producer, batch.base_offset)

    def _write_back(self, partition: str, now_us: int) -> None:
        if self._writeback_us is None:
            return
        unwritten, before = self._unwritten[partition], self._flushed[partition]
        while unwritten and unwritten[0][0] + self._writeback_us <= now_us:
            _, offset = unwritten.popleft()
            self._flushed[partition] = max(self._flushed[partition], min(offset, self.leo(partition)))
        if self._flushed[partition] > before:
            self._emit(LogFlushed, self._broker, partition, self._flushed[partition])

    def _log(self, partition: str) -> Path:
        """Return the folder of a partition's log, which is in one of the log directories."""
        folders = [log_dir / partition for log_dir in self._log_dirs]
        return next((folder for folder in folders if folder.exists()), folders[0])

    def _offsets(self, name: str) -> dict[str, int]:
        """Return the offsets in a kind of checkpoint, from all log directories."""
        offsets: dict[str, int] = {}
        for log_dir in self._log_dirs:
            # The broker may have died while it wrote the file.
            with suppress(CheckpointError):
                offsets |= checkpointed_offsets(log_dir, name)
        return offsets

    def _observe_checkpoint(self, log_dir: Path, name: str) -> None:
        file = log_dir / name
        try:
            written_ns = file.stat().st_mtime_ns
        except FileNotFoundError:
            return
        before_ns, before = self._checkpoints.get(file, (0, {}))
        if written_ns == before_ns:
            return
        try:
            offsets = checkpointed_offsets(log_dir, name)
        except CheckpointError:  # The broker is writing the file. The next call reads it.
            return
        self._checkpoints[file] = (written_ns, offsets)
        self._emit(CheckpointWritten, self._broker, name, tuple(self._changed(before, offsets)))

    def _changed(self, before: dict[str, int], now: dict[str, int]) -> Iterator[tuple[str, int]]:
        for partition in self._tails:
            if partition in now and now[partition] != before.get(partition):
                yield partition, now[partition]
