"""The invariants that one replica can break by itself: in its log, its high watermark, its checkpoints."""

from bisect import bisect_left
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Final

from harrow.cluster_model.invariants import catalogue
from harrow.cluster_model.invariants.checks import Checks
from harrow.cluster_model.invariants.watched_replica import Leader, WatchedReplica
from harrow.cluster_model.log.disk import RECOVERY_POINT_OFFSET_CHECKPOINT, LogFile
from harrow.cluster_model.log.producer_state import ProducerStateEntry
from harrow.cluster_model.log.record_batch import NO_PRODUCER_ID, NO_SEQUENCE, RecordBatch


class HwMonotonic:
    """A leader's high watermark never falls; what a new leader begins with is its own as a follower."""

    def __init__(self, checks: Checks) -> None:
        self._broken = checks.broken
        checks.on_high_watermark.append(self._check)
        checks.on_truncate.append(self._check)

    def _check(self, replica: WatchedReplica) -> None:
        log = replica.log
        if replica.leader is not None and log is not None and log.high_watermark < replica.hw:
            details = f"the leader's high watermark went from {replica.hw} to {log.high_watermark}"
            self._broken(catalogue.HW_MONOTONIC, replica, log.high_watermark, details)


class HwWithinLog:
    """0 <= high watermark <= LEO."""

    def __init__(self, checks: Checks) -> None:
        self._broken = checks.broken
        checks.on_high_watermark.append(self._check)
        checks.on_truncate.append(self._check)
        checks.on_open.append(self._check)

    def _check(self, replica: WatchedReplica) -> None:
        log = replica.log
        if log is not None and not 0 <= log.high_watermark <= log.log_end_offset:
            details = f"the high watermark is {log.high_watermark}, the LEO {log.log_end_offset}"
            self._broken(catalogue.HW_WITHIN_LOG, replica, log.high_watermark, details)


class EpochCacheMonotonic:
    """Epochs rise along a log, in its cache and in its batches.

    A log begins at its log start offset. Batches below it stay in their segment until that is deleted, but nobody reads
    them, and the epoch cache forgets them (``truncateFromStart``). A follower that is truncated to its log start offset
    may therefore go on there with an older epoch, which an unclean leader has.
    """

    def __init__(self, checks: Checks) -> None:
        self._broken = checks.broken
        checks.on_append.append(self._check_append)
        checks.on_leader.append(self._check_leader)
        checks.on_truncate.append(self._check_cache)
        checks.on_open.append(self._check_cache)

    def _check_append(self, replica: WatchedReplica) -> None:
        log = replica.log
        if log is None:
            return
        batches = replica.file.batches
        batch = batches[-1]
        latest = log.epochs.entries[-1] if log.epochs.entries else None
        checked = replica.checked_entries
        if latest is not (checked[-1] if checked else None):
            self._check_cache(replica)
            if latest is None or latest[0] != batch.leader_epoch:
                details = f"the latest entry of the epoch cache is {latest}, the last batch has epoch {batch.leader_epoch}"
                self._broken(catalogue.EPOCH_CACHE_MONOTONIC, replica, batch.base_offset, details)
        if (
            len(batches) > 1
            and batches[-2].next_offset > log.log_start_offset
            and batches[-2].leader_epoch > batch.leader_epoch
        ):
            details = (
                f"a batch of epoch {batch.leader_epoch} stands after one of epoch {batches[-2].leader_epoch}"
            )
            self._broken(catalogue.EPOCH_CACHE_MONOTONIC, replica, batch.base_offset, details)

    def _check_leader(self, replica: WatchedReplica, _: Leader) -> None:
        self._check_cache(replica)

    def _check_cache(self, replica: WatchedReplica) -> None:
        """Look at what the cache has got since it was last looked at, and at the entry before."""
        log = replica.log
        if log is None:
            return
        entries, checked = log.epochs.entries, replica.checked_entries
        # Entries are made once and only ever taken from the end, so what is below one that is still there is as it was.
        while checked and (len(checked) > len(entries) or checked[-1] is not entries[len(checked) - 1]):
            checked.pop()
        for entry in entries[len(checked) :]:
            if checked and (checked[-1][0] >= entry[0] or checked[-1][1] >= entry[1]):
                details = f"epoch {entry[0]} from {entry[1]} on follows epoch {checked[-1][0]} from {checked[-1][1]} on"
                self._broken(catalogue.EPOCH_CACHE_MONOTONIC, replica, entry[1], details)
            checked.append(entry)
        if entries and entries[-1][1] > log.log_end_offset:
            details = f"epoch {entries[-1][0]} begins at {entries[-1][1]}, the LEO is {log.log_end_offset}"
            self._broken(catalogue.EPOCH_CACHE_MONOTONIC, replica, entries[-1][1], details)


class ProducerStateMatchesLog:
    """What is remembered of a producer is what stands in the log."""

    def __init__(self, checks: Checks) -> None:
        self._broken = checks.broken
        checks.on_append.append(self._check_append)
        checks.on_truncate.append(self._check_all)
        checks.on_open.append(self._check_all)

    def _check_append(self, replica: WatchedReplica) -> None:
        log = replica.log
        batch = replica.file.batches[-1]
        if log is None or batch.producer_id == NO_PRODUCER_ID or batch.base_sequence == NO_SEQUENCE:
            return  # Transactions end without one, and coordinators append without one.
        replica.last_batches[batch.producer_id] = batch.base_offset
        entry = log.producers.entries.get(batch.producer_id)
        if entry is None:
            if log.producers.batches_retained:
                details = f"nothing is remembered of producer id {batch.producer_id}"
                self._broken(catalogue.PRODUCER_STATE_MATCHES_LOG, replica, batch.base_offset, details)
            return
        known = entry.batches
        first, last, base_offset = known[-1]
        if (
            first != batch.base_sequence
            or base_offset != batch.base_offset
            or last - first + 1 != batch.next_offset - batch.base_offset
            or entry.producer_epoch != batch.producer_epoch
        ):
            details = _unlike(batch.producer_id, entry)
            self._broken(catalogue.PRODUCER_STATE_MATCHES_LOG, replica, batch.base_offset, details)
        if replica.file.compacts:
            return  # Of what compaction has removed before a replica read it that one knows nothing.
        # Of what retention has deleted a leader that began anew knows nothing (KAFKA-7190), and takes it once more. A follower that has
        # something else there still goes on where its leader's log begins.
        begin = max(log.log_start_offset, replica.partition.deleted_below)
        is_next = len(known) < 2 or first == known[-2][1] + 1 or known[-2][2] < begin
        if not is_next:
            details = f"producer id {batch.producer_id} has sequence number {first} after {known[-2][1]}"
            self._broken(catalogue.PRODUCER_STATE_MATCHES_LOG, replica, batch.base_offset, details)
        # Of fewer batches than may be in flight the first one has to be the producer's first: the one with sequence number
        # 0, or since KIP-360 the first that this log has of it. One that began where its leader's did never had the first.
        in_flight_max = log.producers.in_flight_max
        if (
            len(known) < in_flight_max
            and known[0][0] != 0
            and replica.file.segments[0].base_offset == 0
            and (not log.producers.begin_anywhere or _has_earlier(replica, batch, known[0][2]))
        ):
            details = (
                f"of producer id {batch.producer_id}, which may have {in_flight_max} requests in flight, nothing below "
                f"sequence number {known[0][0]} is remembered"
            )
            self._broken(catalogue.PRODUCER_STATE_MATCHES_LOG, replica, batch.base_offset, details)

    def _check_all(self, replica: WatchedReplica) -> None:
        """Look at all that is remembered, after it was made anew from the log: the last batches of each producer."""
        log = replica.log
        # Of a producer compaction leaves the last batch alone, and none where that was cut off later.
        if log is None or not log.producers.entries or replica.file.compacts:
            return
        _forget_what_is_cut(replica)
        begin = max(replica.file.segments[0].base_offset, replica.partition.deleted_below)
        for producer_id, entry in log.producers.entries.items():
            # Of what retention has deleted the memory is all that there is (KAFKA-7190).
            known = [batch for batch in entry.batches if batch[2] >= begin]
            if not known:
                continue
            are_last = (
                known[-1][2] == replica.last_batches.get(producer_id)
                and all(_is_there(replica, producer_id, batch) for batch in known)
                # In their order, and none between two of them is missing.
                and all(
                    first == last_before + 1 and offset > offset_before
                    for (_, last_before, offset_before), (first, _, offset) in pairwise(known)
                )
            )
            if not are_last:
                offset = min(known[-1][2], log.log_end_offset)
                details = _unlike(producer_id, entry)
                self._broken(catalogue.PRODUCER_STATE_MATCHES_LOG, replica, offset, details)


def _has_earlier(replica: WatchedReplica, batch: RecordBatch, offset: int) -> bool:
    """Return whether a log has a batch of the same producer id and epoch below an offset."""
    place = bisect_left(replica.file.base_offsets, offset)
    for earlier in reversed(replica.file.batches[:place]):
        if earlier.producer_id == batch.producer_id and earlier.base_sequence != NO_SEQUENCE:
            return earlier.producer_epoch == batch.producer_epoch
    return False


def _is_there(replica: WatchedReplica, producer_id: int, batch: tuple[int, int, int]) -> bool:
    """Return whether a log has a batch of these first and last sequence numbers at this base offset."""
    first, last, base_offset = batch
    batches = replica.file.batches
    place = bisect_left(replica.file.base_offsets, base_offset)
    if place == len(batches):
        return False
    found = batches[place]
    return (found.base_offset, found.producer_id, found.base_sequence, found.last_sequence) == (
        *(base_offset, producer_id),
        *(first, last),
    )


def _forget_what_is_cut(replica: WatchedReplica) -> None:
    """Have ``last_batches`` say where the last batches are now that the log may be shorter."""
    file, known = replica.file, replica.last_batches
    if known:
        # A batch goes as a whole, also where the log ends in its midst.
        last = file.base_offsets[-1] if file.base_offsets else -1
        cut = {producer_id for producer_id, offset in known.items() if offset > last}
    else:
        cut = {batch.producer_id for batch in file.batches} - {NO_PRODUCER_ID}
    for batch in reversed(file.batches):
        if not cut:
            return
        if batch.producer_id in cut and batch.base_sequence != NO_SEQUENCE:
            known[batch.producer_id] = batch.base_offset
            cut.remove(batch.producer_id)
    for producer_id in cut:
        known.pop(producer_id, None)


def _unlike(producer_id: int, entry: ProducerStateEntry) -> str:
    known = ", ".join(f"{first} to {last} at offset {offset}" for first, last, offset in entry.batches)
    return f"of producer id {producer_id} the sequence numbers {known} are remembered, the log has others"


def _has_unrecorded_end(file: LogFile) -> bool:
    """Return whether a log ends above its last batch, where only the running process knows."""
    return file.read_end_offset() < file.log_end_offset


class CheckpointWithinLog:
    """What a checkpoint says of a log is in it."""

    def __init__(self, checks: Checks) -> None:
        self._broken = checks.broken
        checks.on_checkpoint.append(self._check_written)
        checks.on_open.append(self._check_opened)
        checks.on_truncate.append(self._note_cut)

    def _check_written(self, replica: WatchedReplica, kind: str, offset: int) -> None:
        file = replica.file
        is_recovery_point = kind == RECOVERY_POINT_OFFSET_CHECKPOINT
        if is_recovery_point:
            replica.has_old_recovery_point = False
            if not _has_unrecorded_end(file):
                replica.unrecorded_end = -1
        end = file.flushed_offset if is_recovery_point else file.log_end_offset
        if offset > end:
            what = "flushed up to" if is_recovery_point else "written up to"
            self._broken(
                catalogue.CHECKPOINT_WITHIN_LOG,
                replica,
                offset,
                f"{kind} says {offset}, the log is {what} {end}",
            )

    def _note_cut(self, replica: WatchedReplica) -> None:
        file = replica.file
        if _has_unrecorded_end(file):
            replica.unrecorded_end = file.log_end_offset
        if not replica.disk.is_writable(replica.partition.name):
            replica.has_old_recovery_point = True

    def _check_opened(self, replica: WatchedReplica) -> None:
        """Compare the recovery point with the log. Unlike the high watermark it speaks of what survives power loss.

        A log that is cut in the middle of a batch, or where compaction has removed the last batches, ends above its
        last batch, and so does its recovery point (``Log.truncateTo``). The next process sees only the batches.
        A directory that cannot be written to when its log is cut keeps its old checkpoint.
        """
        recovery_point = replica.disk.checkpoint(RECOVERY_POINT_OFFSET_CHECKPOINT, replica.partition.name)
        leo = replica.file.log_end_offset
        if recovery_point > max(leo, replica.unrecorded_end) and not replica.has_old_recovery_point:
            details = f"{RECOVERY_POINT_OFFSET_CHECKPOINT} says {recovery_point}, the log that is opened ends at {leo}"
            self._broken(catalogue.CHECKPOINT_WITHIN_LOG, replica, recovery_point, details)


class ShutdownFlushesLogs:
    """With the process that ends in good order no record goes that stands in its logs."""

    def __init__(self, checks: Checks) -> None:
        self._broken = checks.broken
        checks.on_shutdown.append(self._check)

    def _check(self, replica: WatchedReplica) -> None:
        file, name = replica.file, replica.partition.name
        if replica.disk.dir_of(name) in replica.disk.unclean_dirs:
            return  # It could not be written to, and is recovered when it can.
        recovery_point = replica.disk.checkpoint(RECOVERY_POINT_OFFSET_CHECKPOINT, name)
        safe = min(file.flushed_offset, recovery_point)
        if safe < file.log_end_offset:
            details = (
                f"it has stopped with a log that ends at {file.log_end_offset}, is flushed up to "
                f"{file.flushed_offset} and has recovery point {recovery_point}"
            )
            self._broken(catalogue.SHUTDOWN_FLUSHES_LOGS, replica, safe, details)


LOG_CHECKS: Final[Mapping[str, Callable[[Checks], object]]] = {
    catalogue.HW_MONOTONIC: HwMonotonic,
    catalogue.HW_WITHIN_LOG: HwWithinLog,
    catalogue.EPOCH_CACHE_MONOTONIC: EpochCacheMonotonic,
    catalogue.PRODUCER_STATE_MATCHES_LOG: ProducerStateMatchesLog,
    catalogue.CHECKPOINT_WITHIN_LOG: CheckpointWithinLog,
    catalogue.SHUTDOWN_FLUSHES_LOGS: ShutdownFlushesLogs,
}
"""The checks of single replicas, by invariant."""
