"""Checks the invariants of a single replica: its log, high watermark and checkpoints."""

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
    """A leader's high watermark never falls.

    A new leader begins with the one it had as follower.
    """

    def __init__(self, checks: Checks) -> None:
        self._report_breach = checks.report_breach
        checks.on_high_watermark.append(self._check)
        checks.on_truncate.append(self._check)

    def _check(self, replica: WatchedReplica) -> None:
        log = replica.log
        if replica.leader is not None and log is not None and log.high_watermark < replica.hw:
            details = f"the leader's high watermark fell from {replica.hw} to {log.high_watermark}"
            self._report_breach(catalogue.HW_MONOTONIC, replica, log.high_watermark, details)


class HwWithinLog:
    """The high watermark is between 0 and the LEO."""

    def __init__(self, checks: Checks) -> None:
        self._report_breach = checks.report_breach
        checks.on_high_watermark.append(self._check)
        checks.on_truncate.append(self._check)
        checks.on_open.append(self._check)

    def _check(self, replica: WatchedReplica) -> None:
        log = replica.log
        if log is not None and not 0 <= log.high_watermark <= log.log_end_offset:
            details = f"the high watermark is {log.high_watermark}, but the LEO is {log.log_end_offset}"
            self._report_breach(catalogue.HW_WITHIN_LOG, replica, log.high_watermark, details)


class EpochCacheMonotonic:
    """Leader epochs rise along a log, in its epoch cache and in its batches.

    Batches below the log start offset stay until their segment is deleted, but nothing reads them,
    and the epoch cache has no entries for them (``truncateFromStart``). So a follower that
    truncates to its log start offset may continue there with an older epoch, from an unclean
    leader. That is no breach.
    """

    def __init__(self, checks: Checks) -> None:
        self._report_breach = checks.report_breach
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
        entries, checked = log.epochs.entries, replica.checked_entries
        # Entries are compared by value, because tuples of compiled code have no identity.
        is_checked = entries[-1] == checked[-1] if entries and checked else not entries and not checked
        if not is_checked:
            self._check_cache(replica)
            latest = entries[-1] if entries else None
            if latest is None or latest[0] != batch.leader_epoch:
                details = f"the latest entry of the epoch cache is {latest}, but the last batch has epoch {batch.leader_epoch}"
                self._report_breach(catalogue.EPOCH_CACHE_MONOTONIC, replica, batch.base_offset, details)
        if (
            len(batches) > 1
            and batches[-2].next_offset > log.log_start_offset
            and batches[-2].leader_epoch > batch.leader_epoch
        ):
            details = f"a batch of epoch {batch.leader_epoch} follows one of epoch {batches[-2].leader_epoch}"
            self._report_breach(catalogue.EPOCH_CACHE_MONOTONIC, replica, batch.base_offset, details)

    def _check_leader(self, replica: WatchedReplica, _: Leader) -> None:
        self._check_cache(replica)

    def _check_cache(self, replica: WatchedReplica) -> None:
        """Check that the new entries of the cache rise, starting from the last checked entry."""
        log = replica.log
        if log is None:
            return
        entries, checked = log.epochs.entries, replica.checked_entries
        # Entries never change and are removed only from the end. So if an old entry is still there,
        # all entries before it are unchanged.
        while checked and (len(checked) > len(entries) or checked[-1] != entries[len(checked) - 1]):
            checked.pop()
        for entry in entries[len(checked) :]:
            if checked and (checked[-1][0] >= entry[0] or checked[-1][1] >= entry[1]):
                details = f"epoch {entry[0]} at offset {entry[1]} follows epoch {checked[-1][0]} at offset {checked[-1][1]}"
                self._report_breach(catalogue.EPOCH_CACHE_MONOTONIC, replica, entry[1], details)
            checked.append(entry)
        if entries and entries[-1][1] > log.log_end_offset:
            details = (
                f"epoch {entries[-1][0]} begins at {entries[-1][1]}, but the LEO is {log.log_end_offset}"
            )
            self._report_breach(catalogue.EPOCH_CACHE_MONOTONIC, replica, entries[-1][1], details)


class ProducerStateMatchesLog:
    """The state of each producer matches the log."""

    def __init__(self, checks: Checks) -> None:
        self._report_breach = checks.report_breach
        checks.on_append.append(self._check_append)
        checks.on_truncate.append(self._check_all)
        checks.on_open.append(self._check_all)

    def _check_append(self, replica: WatchedReplica) -> None:
        log = replica.log
        batch = replica.file.batches[-1]
        if log is None or batch.producer_id == NO_PRODUCER_ID or batch.base_sequence == NO_SEQUENCE:
            return  # Markers and batches by coordinators have no sequence number.
        replica.last_batches[batch.producer_id] = batch.base_offset
        entry = log.producers.entries.get(batch.producer_id)
        if entry is None:
            if log.producers.batches_retained:
                details = f"the log has no state of producer id {batch.producer_id}"
                self._report_breach(catalogue.PRODUCER_STATE_MATCHES_LOG, replica, batch.base_offset, details)
            return
        retained = entry.batches
        first, last, base_offset = retained[-1]
        if (
            first != batch.base_sequence
            or base_offset != batch.base_offset
            or last - first + 1 != batch.next_offset - batch.base_offset
            or entry.producer_epoch != batch.producer_epoch
        ):
            details = _mismatch(batch.producer_id, entry)
            self._report_breach(catalogue.PRODUCER_STATE_MATCHES_LOG, replica, batch.base_offset, details)
        if replica.file.compacts:
            return  # A replica knows nothing about records that compaction removed before it fetched them.
        # A leader with a new log knows nothing of records that retention deleted (KAFKA-7190), and
        # accepts them again. A follower that has other records at those offsets may still continue
        # at its leader's log start.
        begin = max(log.log_start_offset, replica.partition.deleted_below)
        is_next = len(retained) < 2 or first == retained[-2][1] + 1 or retained[-2][2] < begin
        if not is_next:
            details = f"producer id {batch.producer_id} has sequence number {first} after {retained[-2][1]}"
            self._report_breach(catalogue.PRODUCER_STATE_MATCHES_LOG, replica, batch.base_offset, details)
        # If the log remembers fewer batches than may be in flight, the first of them must be the
        # producer's first batch: the one with sequence number 0, or since KIP-360 its first batch
        # in this log. A log that began at its leader's log start may never have had that batch.
        in_flight_max = log.producers.in_flight_max
        if (
            len(retained) < in_flight_max
            and retained[0][0] != 0
            and replica.file.segments[0].base_offset == 0
            and (not log.producers.accepts_any_first_sequence or _has_earlier(replica, batch, retained[0][2]))
        ):
            details = (
                f"the state of producer id {batch.producer_id}, which may have {in_flight_max} requests in flight, has "
                f"nothing below sequence number {retained[0][0]}"
            )
            self._report_breach(catalogue.PRODUCER_STATE_MATCHES_LOG, replica, batch.base_offset, details)

    def _check_all(self, replica: WatchedReplica) -> None:
        """Check the last batches of each producer, after its state was rebuilt from the log."""
        log = replica.log
        # Compaction keeps only the last batch of a producer, and a later truncation may remove even
        # that.
        if log is None or not log.producers.entries or replica.file.compacts:
            return
        _update_last_batches(replica)
        begin = max(replica.file.segments[0].base_offset, replica.partition.deleted_below)
        for producer_id, entry in log.producers.entries.items():
            # The producer state outlives batches that retention deleted (KAFKA-7190).
            retained = [batch for batch in entry.batches if batch[2] >= begin]
            if not retained:
                continue
            are_last = (
                retained[-1][2] == replica.last_batches.get(producer_id)
                and all(_has_batch(replica, producer_id, batch) for batch in retained)
                # The batches are in order, and there is no gap between them.
                and all(
                    first == last_before + 1 and offset > offset_before
                    for (_, last_before, offset_before), (first, _, offset) in pairwise(retained)
                )
            )
            if not are_last:
                offset = min(retained[-1][2], log.log_end_offset)
                details = _mismatch(producer_id, entry)
                self._report_breach(catalogue.PRODUCER_STATE_MATCHES_LOG, replica, offset, details)


def _has_earlier(replica: WatchedReplica, batch: RecordBatch, offset: int) -> bool:
    """Return whether a log has, below *offset*, a batch of the same producer id and epoch."""
    place = replica.file.place_from(offset)
    for earlier in reversed(replica.file.batches[:place]):
        if earlier.producer_id == batch.producer_id and earlier.base_sequence != NO_SEQUENCE:
            return earlier.producer_epoch == batch.producer_epoch
    return False


def _has_batch(replica: WatchedReplica, producer_id: int, batch: tuple[int, int, int]) -> bool:
    """Return whether a log has a batch with these sequence numbers at this base offset."""
    first, last, base_offset = batch
    batches = replica.file.batches
    place = replica.file.place_from(base_offset)
    if place == len(batches):
        return False
    stored = batches[place]
    return (stored.base_offset, stored.producer_id, stored.base_sequence, stored.last_sequence) == (
        *(base_offset, producer_id),
        *(first, last),
    )


def _update_last_batches(replica: WatchedReplica) -> None:
    """Update ``last_batches`` after a truncation."""
    file, last_batches = replica.file, replica.last_batches
    if last_batches:
        # Truncation removes whole batches, even if the log then ends in the middle of one.
        last = file.base_offsets[-1] if file.base_offsets else -1
        cut = {producer_id for producer_id, offset in last_batches.items() if offset > last}
    else:
        cut = {batch.producer_id for batch in file.batches} - {NO_PRODUCER_ID}
    for batch in reversed(file.batches):
        if not cut:
            return
        if batch.producer_id in cut and batch.base_sequence != NO_SEQUENCE:
            last_batches[batch.producer_id] = batch.base_offset
            cut.remove(batch.producer_id)
    for producer_id in cut:
        last_batches.pop(producer_id, None)


def _mismatch(producer_id: int, entry: ProducerStateEntry) -> str:
    batches = ", ".join(f"{first} to {last} at offset {offset}" for first, last, offset in entry.batches)
    return (
        f"the state of producer id {producer_id} has the sequence numbers {batches}, but the log has others"
    )


def _has_unrecorded_end(file: LogFile) -> bool:
    """Return whether a log ends above its last batch. Only the running process knows that end."""
    return file.read_end_offset() < file.log_end_offset


class CheckpointWithinLog:
    """A log contains the offsets in its checkpoints."""

    def __init__(self, checks: Checks) -> None:
        self._report_breach = checks.report_breach
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
            state = "flushed up to" if is_recovery_point else "written up to"
            self._report_breach(
                catalogue.CHECKPOINT_WITHIN_LOG,
                replica,
                offset,
                f"{kind} has {offset}, but the log is {state} {end}",
            )

    def _note_cut(self, replica: WatchedReplica) -> None:
        file = replica.file
        if _has_unrecorded_end(file):
            replica.unrecorded_end = file.log_end_offset
        if not replica.disk.is_writable(replica.partition.name):
            replica.has_old_recovery_point = True

    def _check_opened(self, replica: WatchedReplica) -> None:
        """Compare the recovery point with the log.

        Unlike a high watermark, a recovery point covers only flushed data, so the log must reach
        it. There are two exceptions. If a log is truncated in the middle of a batch, or where
        compaction removed the last batches, the log and its recovery point end above the last batch
        (``Log.truncateTo``), and the next process sees only the batches. If the directory is not
        writable when its log is truncated, the old checkpoint stays.
        """
        recovery_point = replica.disk.checkpoint(RECOVERY_POINT_OFFSET_CHECKPOINT, replica.partition.name)
        leo = replica.file.log_end_offset
        if recovery_point > max(leo, replica.unrecorded_end) and not replica.has_old_recovery_point:
            details = (
                f"{RECOVERY_POINT_OFFSET_CHECKPOINT} has {recovery_point}, but the opened log ends at {leo}"
            )
            self._report_breach(catalogue.CHECKPOINT_WITHIN_LOG, replica, recovery_point, details)


class ShutdownFlushesLogs:
    """A clean shutdown flushes every record."""

    def __init__(self, checks: Checks) -> None:
        self._report_breach = checks.report_breach
        checks.on_shutdown.append(self._check)

    def _check(self, replica: WatchedReplica) -> None:
        file, name = replica.file, replica.partition.name
        if replica.disk.dir_of(name) in replica.disk.unclean_dirs:
            return  # The directory was not writable. Its logs are recovered once it is.
        recovery_point = replica.disk.checkpoint(RECOVERY_POINT_OFFSET_CHECKPOINT, name)
        safe = min(file.flushed_offset, recovery_point)
        if safe < file.log_end_offset:
            details = (
                f"it stopped with a log that ends at {file.log_end_offset}, is flushed up to "
                f"{file.flushed_offset} and has recovery point {recovery_point}"
            )
            self._report_breach(catalogue.SHUTDOWN_FLUSHES_LOGS, replica, safe, details)


LOG_CHECKS: Final[Mapping[str, Callable[[Checks], object]]] = {
    catalogue.HW_MONOTONIC: HwMonotonic,
    catalogue.HW_WITHIN_LOG: HwWithinLog,
    catalogue.EPOCH_CACHE_MONOTONIC: EpochCacheMonotonic,
    catalogue.PRODUCER_STATE_MATCHES_LOG: ProducerStateMatchesLog,
    catalogue.CHECKPOINT_WITHIN_LOG: CheckpointWithinLog,
    catalogue.SHUTDOWN_FLUSHES_LOGS: ShutdownFlushesLogs,
}
"""The checks of single replicas, by invariant."""
