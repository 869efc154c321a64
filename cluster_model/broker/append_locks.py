"""Models the locks that appends hold while a broker's disk is slow.

An append of a producer's batch takes two locks: the ``leaderIsrUpdateLock`` of the partition, for
reading and so shared with other appends, and then the exclusive ``lock`` of the log. Once the
append has both, the broker validates the batch, so a rejected or duplicate batch does not wait for
the disk. A fetcher holds its ``partitionMapLock`` while it appends the records of a response.

LeaderAndIsr, StopReplica and the metadata log change partitions one after the other
(``replicaStateChangeLock``). Such a change removes partitions from the fetchers, so it first waits
for the current append of each fetcher, whatever the partition. Then it takes the
``leaderIsrUpdateLock`` of each partition that it changes, for writing: the change waits for the
partition's appends in progress, and new appends wait for the change
(``ReplicaManager.becomeLeaderOrFollower``, ``Partition.makeLeader``,
``AbstractFetcherManager.removeFetcherForPartitions``).
"""

from collections.abc import Iterable, Iterator

from harrow.cluster_model.log.disk import Disk
from harrow.cluster_model.sim.host import Host

Steps = Iterator[int]
"""The work of a thread, as a generator that yields for how many microseconds the thread waits.

A wait of 0 lets other events of the same moment happen first.
"""


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
        """Whether appends wait for the disk."""
        return self._disk.write_us > 0

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

    def write(self, partition: str) -> Steps:
        """Wait until the disk has written a batch."""
        if self.are_slow:
            self._log_free_us[partition] = self._write([partition])
            yield self._remaining_us(self._log_free_us[partition])
            # The caller appends now, before any other thread continues.
            self._log_free_us.pop(partition, None)

    def end_append(self, partition: str) -> None:
        """Release the locks of an append, so that other appends and changes can continue."""
        self._appends_in_progress[partition] -= 1
        if not self._appends_in_progress[partition]:
            del self._appends_in_progress[partition]

    def begin_fetched_appends(self, partitions: Iterable[str]) -> int:
        """Begin a fetcher's appends to *partitions* in turn; return how long they take."""
        if not self.are_slow:
            return 0
        until_us = self._write(partitions)
        self._fetchers_free_us = (
            until_us if self._fetchers_free_us is None else max(self._fetchers_free_us, until_us)
        )
        return until_us - self._clock.now_us

    def _write(self, partitions: Iterable[str]) -> int:
        """Write to the logs of *partitions* from one thread, and return when the last write ends.

        A disk handles one write after the other.
        """
        now_us = self._clock.now_us
        until_us = now_us
        for partition in partitions:
            log_dir = self._disk.dir_of(partition)
            until_us = max(until_us, self._disk_free_us.get(log_dir, now_us)) + self._disk.write_us
            self._disk_free_us[log_dir] = until_us
        return until_us

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
