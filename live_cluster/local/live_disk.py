"""A broker's log directories, watched: what is appended and cut off, what is checkpointed, and what a power loss would leave."""

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
from harrow.live_cluster.local.storage.log_tail import CutBack, LogTail
from harrow.live_cluster.local.storage.segments import cut, segments_of

_NO_OFFSET: Final = -1
_WATCHED: Final = (HIGH_WATERMARKS,)
_IDENTITY_FILES: Final = ("meta.properties", "bootstrap.checkpoint")
"""The ids of the broker, of its cluster and of its folder; and what `kafka-storage format` has written beside them."""


class LiveDisk:
    """What a broker has on disk of some partitions.

    The operating system writes back what is *writeback_us* old (None: never), as the campaign says of the disks: a process
    that is killed loses nothing, so what a power loss takes is cut off by harrow. What Kafka has flushed itself, by
    ``flush.messages=1`` or as its recovery points say, stays. *partitions* returns those that it is to have replicas of; what it has had is
    followed on. Of topics in *flushed_at_once* each message is flushed. *truncation_reason* returns why a broker has cut a log back to an offset.
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
        # What the system will have written back at a time, oldest first.
        self._unwritten: dict[str, deque[tuple[int, int]]] = {}
        self._checkpoints: dict[Path, tuple[int, dict[str, int]]] = {}
        # Where those that are open began, by partition and producer id.
        self._transactions: dict[str, dict[int, int]] = {}
        self._follow_new()

    def look(self, now_us: int, led: frozenset[str]) -> None:
        """Put into the trace what has happened since the last look; of the partitions in *led* the broker is the leader."""
        self._follow_new()
        for partition, tail in self._tails.items():
            if tail.is_gone():
                # The broker is to have no replica of it any more.
                self._emit(LogDeleted, self._broker, partition, tail.leo)
                self._forget(partition)
                continue
            for change in tail.look():
                self._note(partition, change, now_us, is_leader=partition in led)
            self._write_back(partition, now_us)
        for log_dir, name in product(self._log_dirs, _WATCHED):
            self._look_at_checkpoint(log_dir, name)

    def read_anew(self, now_us: int) -> None:
        """Read all logs from their beginnings, whatever is known of them."""
        for partition, tail in self._tails.items():
            for change in tail.read_anew():
                self._note(partition, change, now_us, is_leader=False)

    def open(self) -> None:
        """Take note that a broker starts with these logs, and with the high watermarks of its checkpoint."""
        checkpointed = self._offsets(HIGH_WATERMARKS)
        for partition, tail in self._tails.items():
            if segments_of(self._log(partition)):
                self._emit(LogOpened, self._broker, partition, tail.leo, checkpointed.get(partition, 0))

    def knows(self, partition: str) -> bool:
        """Return whether a log is one of those that are watched."""
        return partition in self._tails

    def begin(self, partition: str) -> int:
        """Return where a log's first segment begins, as it was seen last."""
        return self._tails[partition].begin

    def size_bytes(self, partition: str) -> int:
        """Return how large a log's segments were when they were seen last."""
        return self._tails[partition].size_bytes

    def leo(self, partition: str) -> int:
        """Return a log's end offset, as it was seen last; 0 where there is none."""
        return self._tails[partition].leo if partition in self._tails else 0

    def batches(self, partition: str) -> tuple[RecordBatch, ...]:
        """Return a log's batches, as they were seen last."""
        return tuple(self._tails[partition].batches)

    def epochs(self, partition: str) -> tuple[tuple[int, int], ...]:
        """Return the leader epoch cache of a log, as its checkpoint has it."""
        try:
            return checkpointed_epochs(self._log(partition))
        except CheckpointError:  # It is being written.
            return ()

    def flushed(self, partition: str) -> int:
        """Return the offset up to which a log survives a power loss."""
        if partition.rpartition("-")[0] in self._flushed_at_once:
            return self.leo(partition)
        return max(self._flushed[partition], self._offsets(RECOVERY_POINTS).get(partition, 0))

    def lose_power(self, now_us: int) -> None:
        """Cut each log back to what is flushed; its broker's process is gone."""
        self.look(now_us, frozenset())
        for partition, tail in self._tails.items():
            flushed, leo = self.flushed(partition), tail.leo
            if flushed < leo:
                cut(self._log(partition), flushed)
                tail.read_anew()
                self._emit(UnflushedLost, self._broker, partition, tail.leo, leo)
            self._unwritten[partition].clear()
        recovery_points = self._offsets(RECOVERY_POINTS)
        for folder in (log for log_dir in self._log_dirs for log in log_dir.glob("*-*")):
            if folder.name not in self._tails and segments_of(folder):
                cut(folder, recovery_points.get(folder.name, 0))

    def lose(self) -> None:
        """Empty the log directories of a broker whose process is gone, as if it had new disks.

        What tells the broker who it is stays: an operator gives new disks the old ids, or it would not start.
        """
        for partition, tail in self._tails.items():
            if tail.leo:
                self._emit(LogLost, self._broker, partition, 0, tail.leo)
            self._forget(partition)
        self._checkpoints.clear()
        for found in (each for log_dir in self._log_dirs for each in log_dir.iterdir()):
            if found.is_dir():
                shutil.rmtree(found)
            elif found.name not in _IDENTITY_FILES:
                found.unlink()

    def remove_checkpoint(self, name: str) -> None:
        """Remove a kind of checkpoint file of a broker whose process is gone."""
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
                self._forget(partition)

    def _forget(self, partition: str) -> None:
        """Follow a log from its beginning, whatever it was before."""
        self._tails[partition] = LogTail(partial(self._log, partition))
        self._flushed[partition] = 0
        self._unwritten[partition] = deque()

    def _note(self, partition: str, change: RecordBatch | CutBack, now_us: int, *, is_leader: bool) -> None:
        if isinstance(change, CutBack):
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
            self._tell_transaction(partition, change, self._follow_transaction(partition, change))

    def _follow_transaction(self, partition: str, batch: RecordBatch) -> int:
        """Return where the transaction began that goes on or ends with a batch, -1 where there is none."""
        known = self._transactions.setdefault(partition, {})
        if batch.is_control:
            return known.pop(batch.producer_id, _NO_OFFSET)
        opened_at = known.get(batch.producer_id, _NO_OFFSET)
        if batch.is_transactional:
            known.setdefault(batch.producer_id, batch.base_offset)
        return opened_at

    def _tell_transaction(self, partition: str, batch: RecordBatch, opened_at: int) -> None:
        about = (self._broker, partition, batch.producer_id, batch.producer_epoch)
        if isinstance(batch, ControlBatch):
            is_committed, epoch = batch.control_type == COMMIT, batch.coordinator_epoch
            self._emit(TransactionMarkerWritten, *about, opened_at, batch.base_offset, is_committed, epoch)
        elif opened_at == _NO_OFFSET:
            self._emit(TransactionBegun, *about, batch.base_offset)

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
        """Return the folder of a partition's log, which its broker has put into one of its log directories."""
        folders = [log_dir / partition for log_dir in self._log_dirs]
        return next((folder for folder in folders if folder.exists()), folders[0])

    def _offsets(self, name: str) -> dict[str, int]:
        """Return what a checkpoint says in all log directories."""
        found: dict[str, int] = {}
        for log_dir in self._log_dirs:
            # Its broker may have died while it was writing, to a temporary file.
            with suppress(CheckpointError):
                found |= checkpointed_offsets(log_dir, name)
        return found

    def _look_at_checkpoint(self, log_dir: Path, name: str) -> None:
        file = log_dir / name
        try:
            written_ns = file.stat().st_mtime_ns
        except FileNotFoundError:
            return
        known_ns, known = self._checkpoints.get(file, (0, {}))
        if written_ns == known_ns:
            return
        try:
            offsets = checkpointed_offsets(log_dir, name)
        except CheckpointError:  # It is being written: it will be looked at again.
            return
        self._checkpoints[file] = (written_ns, offsets)
        self._emit(CheckpointWritten, self._broker, name, tuple(self._changed(known, offsets)))

    def _changed(self, before: dict[str, int], now: dict[str, int]) -> Iterator[tuple[str, int]]:
        for partition in self._tails:
            if partition in now and now[partition] != before.get(partition):
                yield partition, now[partition]
