"""Models the locks that appends hold while a broker's disk is slow, or while they flush.

An append of a producer's batch takes two locks: the ``leaderIsrUpdateLock`` of the partition, for
reading and so shared with other appends, and then the exclusive ``lock`` of the log. Once the
append has both, the broker validates the batch, so a rejected or duplicate batch does not wait for
the disk. A fetcher holds its ``partitionMapLock`` while it appends the records of a response.
An append that reaches ``flush.messages`` flushes the log before it releases the lock of the log
(``UnifiedLog.append``). Flushes by time and of complete segments need no lock.

LeaderAndIsr, StopReplica and the metadata log change partitions one after the other
(``replicaStateChangeLock``). Such a change removes partitions from the fetchers, so it first waits
for the current append of each fetcher, whatever the partition. Then it takes the
``leaderIsrUpdateLock`` of each partition that it changes, for writing: the change waits for the
partition's appends in progress, and new appends wait for the change
(``ReplicaManager.becomeLeaderOrFollower``, ``Partition.makeLeader``,
``AbstractFetcherManager.removeFetcherForPartitions``).
"""

from collections.abc import Iterable, Iterator, Sequence

from harrow.cluster_model.log.disk import Disk
from harrow.cluster_model.log.record_batch import RecordBatch
from harrow.cluster_model.log.unified_log import UnifiedLog
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND

Steps = Iterator[int]
"""The work of a thread, as a generator that yields for how many microseconds the thread waits.

A wait of 0 lets other events of the same moment happen first.
"""

Append = tuple[UnifiedLog, Sequence[RecordBatch]]
"""A log, and the batches that one thread appends to it at once."""


class AppendLocks:
    """The locks of one broker, and the times at which its disks and logs become free."""

    def __init__(self, host: Host, disk: Disk) -> None:
        self._clock = host.clock
        self._disk = disk
        # When each log directory will have finished its current writes.
        self._disk_free_us: dict[int, int] = {}
        # By partition: when its log will be unlocked, and how many appends are in progress or wait
        # for that lock.
        self._log_free_us: dict[str, int] = {}
        self._appends_in_progress: dict[str, int] = {}
        # When all fetchers will have finished their current appends.
        self._fetchers_free_us: int | None = None
        # The partitions that are being changed, and the earliest possible end of that change; None
        # if there is no change.
        self._changing_partitions: dict[str, None] = {}
        self._change_end_us: int | None = None
        self._is_closed = False

    @property
    def are_slow(self) -> bool:
        """Whether appends may have to wait for the disk."""
        return self._disk.is_slow

    @property
    def are_free(self) -> bool:
        """Whether a change of partitions can start at once."""
        now_us = self._clock.now_us
        return (
            not self._appends_in_progress
            and self._change_end_us is None
            and (self._fetchers_free_us or now_us) <= now_us
        )

    def close(self) -> None:
        """End every wait, so that a stopping broker finishes its work in progress."""
        self._is_closed = True

    def _remaining_us(self, until_us: int | None) -> int:
        return 0 if until_us is None else max(until_us - self._clock.now_us, 0)

    # Appends

    def begin_append(self, partition: str) -> Steps:
        """Wait for the locks of an append. The caller calls `write` or `end_append` next."""
        while partition in self._changing_partitions and not self._is_closed:
            yield self._remaining_us(self._change_end_us)
        self._appends_in_progress[partition] = self._appends_in_progress.get(partition, 0) + 1
        while partition in self._log_free_us and not self._is_closed:
            yield self._remaining_us(self._log_free_us[partition])

    def write(self, log: UnifiedLog, batch: RecordBatch) -> Steps:
        """Wait until a batch is written, and flushed if ``flush.messages`` says so."""
        if self.are_slow:
            until_us = self._write([(log, (batch,))])
            if until_us > self._clock.now_us:
                self._log_free_us[log.name] = until_us
                yield self._remaining_us(until_us)
                # The caller appends now, before any other thread continues.
                self._log_free_us.pop(log.name, None)

    def end_append(self, partition: str) -> None:
        """Release the locks of an append, so that other appends and changes can continue."""
        self._appends_in_progress[partition] -= 1
        if not self._appends_in_progress[partition]:
            del self._appends_in_progress[partition]

    def begin_fetched_appends(self, appends: Iterable[Append]) -> int:
        """Begin a fetcher's appends, one after the other; return how long they take."""
        if not self.are_slow:
            return 0
        until_us = self._write(appends)
        self._fetchers_free_us = (
            until_us if self._fetchers_free_us is None else max(self._fetchers_free_us, until_us)
        )
        return until_us - self._clock.now_us

    def _write(self, appends: Iterable[Append]) -> int:
        """Append from one thread to one log after the other, and return when the last append ends.

        A disk writes one batch after the other. An append ends when the disk has written and
        flushed its batches if it flushes the log, and when the page cache has taken them if not.
        Flushes by several threads at the same time take no longer than one, because the file system
        commits them together.
        """
        disk, now_us = self._disk, self._clock.now_us
        end_us = now_us
        for log, batches in appends:
            log_dir = disk.dir_of(log.name)
            written_us = max(end_us, self._disk_free_us.get(log_dir, now_us)) + disk.write_us
            if disk.bytes_per_second is not None:
                size_bytes = sum([batch.size_bytes for batch in batches])
                written_us += size_bytes * US_PER_SECOND // disk.bytes_per_second
            self._disk_free_us[log_dir] = written_us
            if disk.flush_us and log.is_flushed_with(batches):
                end_us = written_us + disk.flush_us
            elif disk.write_us:
                end_us = written_us
            else:
                end_us = max(end_us, written_us - disk.cached_us)
        return end_us

    # Changes of partitions

    def begin_change(self) -> Steps:
        """Wait until no other change is in progress, and then block other changes."""
        yield from self.wait_for_change()
        self._change_end_us = self._clock.now_us

    def wait_for_change(self) -> Steps:
        """Wait until no change of partitions is in progress."""
        while self._change_end_us is not None and not self._is_closed:
            yield self._remaining_us(self._change_end_us)

    def wait_for_fetchers(self) -> Steps:
        """Wait for the current append of every fetcher."""
        now_us = self._clock.now_us
        if self._fetchers_free_us is not None and self._fetchers_free_us > now_us:
            yield self._change_until(self._fetchers_free_us)

    def wait_for_appends(self, partition: str) -> Steps:
        """Wait for a partition's appends in progress, and block new ones until `end_change`."""
        self._changing_partitions[partition] = None
        while partition in self._appends_in_progress and not self._is_closed:
            yield self._change_until(self._log_free_us.get(partition, 0))

    def _change_until(self, until_us: int) -> int:
        remaining_us = self._remaining_us(until_us)
        self._change_end_us = self._clock.now_us + remaining_us
        return remaining_us

    def end_change(self) -> None:
        """End the change, and release everything that waits for it."""
        self._changing_partitions.clear()
        self._change_end_us = None
