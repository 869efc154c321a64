"""Who waits for whom while the disk of a broker is slow: the locks that an append holds while it is being written.

An append by a producer's request holds its partition's ``leaderIsrUpdateLock`` for reading, beside others, and its log's
``lock``, which one has at a time. What comes of it is decided when it has both: a batch that is refused, or was there
already, waits for no disk. A fetcher holds its ``partitionMapLock`` while it appends what an answer has brought.

LeaderAndIsr, StopReplica and the metadata log change partitions one after the other (``replicaStateChangeLock``). Such a
change removes partitions from the fetchers, so it waits for what each of these appends at that moment, whatever
partition that is of. Then it takes ``leaderIsrUpdateLock`` of each partition that it changes, and of no others, for
writing: it waits for the appends to that one which have begun, and those that come meanwhile wait for it
(``ReplicaManager.becomeLeaderOrFollower``, ``Partition.makeLeader``, ``AbstractFetcherManager.removeFetcherForPartitions``).
"""

from collections.abc import Iterable, Iterator

from harrow.cluster_model.log.disk import Disk
from harrow.cluster_model.sim.host import Host

Steps = Iterator[int]
"""What a thread does: each value is how long it waits, in microseconds, before it goes on; 0 is until others have at this moment."""


class AppendLocks:
    """The locks of one broker, and until when its disks are busy."""

    def __init__(self, host: Host, disk: Disk) -> None:
        self._clock = host.clock
        self._disk = disk
        # Until when each log directory writes what has been begun.
        self._written_us: dict[int, int] = {}
        # By partition: until when its log is locked, and how many appends have begun, those that wait for that included.
        self._locked_us: dict[str, int] = {}
        self._readers: dict[str, int] = {}
        # Until when some fetcher appends.
        self._fetched_us: int | None = None
        # The partitions that are being changed, and until when that takes at least; None while nothing is being changed.
        self._changing: dict[str, None] = {}
        self._changed_us: int | None = None
        self._is_closed = False

    @property
    def are_slow(self) -> bool:
        """Whether an append waits for its disk."""
        return self._disk.write_us > 0

    @property
    def are_free(self) -> bool:
        """Whether a change of partitions has nothing to wait for."""
        now_us = self._clock.now_us
        return not self._readers and self._changed_us is None and (self._fetched_us or now_us) <= now_us

    def close(self) -> None:
        """Let everything go on at once: the broker ends, and does what it has begun before."""
        self._is_closed = True

    def _left_us(self, until_us: int | None) -> int:
        return 0 if until_us is None else max(until_us - self._clock.now_us, 0)

    # Appends

    def begin_append(self, partition: str) -> Steps:
        """Wait until a producer's batch may be looked at; what follows is `write`, or `end_append` at once."""
        while partition in self._changing and not self._is_closed:
            yield self._left_us(self._changed_us)
        self._readers[partition] = self._readers.get(partition, 0) + 1
        while partition in self._locked_us and not self._is_closed:
            yield self._left_us(self._locked_us[partition])

    def write(self, partition: str) -> Steps:
        """Wait until the disk has written a batch."""
        if self.are_slow:
            self._locked_us[partition] = self._write([partition])
            yield self._left_us(self._locked_us[partition])
            # It is appended now, before anybody else goes on.
            self._locked_us.pop(partition, None)

    def end_append(self, partition: str) -> None:
        """Let others append to a partition, and change it."""
        self._readers[partition] -= 1
        if not self._readers[partition]:
            del self._readers[partition]

    def fetched(self, partitions: Iterable[str]) -> int:
        """Have a fetcher begin to append to some partitions, one after the other; return how long it takes."""
        if not self.are_slow:
            return 0
        until_us = self._write(partitions)
        self._fetched_us = until_us if self._fetched_us is None else max(self._fetched_us, until_us)
        return until_us - self._clock.now_us

    def _write(self, partitions: Iterable[str]) -> int:
        """Have a thread write to some logs; return when it has. A disk does one thing after the other, and so does a thread."""
        now_us = self._clock.now_us
        until_us = now_us
        for partition in partitions:
            log_dir = self._disk.dir_of(partition)
            until_us = max(until_us, self._written_us.get(log_dir, now_us)) + self._disk.write_us
            self._written_us[log_dir] = until_us
        return until_us

    # Changes of partitions

    def begin_change(self) -> Steps:
        """Wait until partitions may be changed, and keep others from it."""
        yield from self.wait_for_change()
        self._changed_us = self._clock.now_us

    def wait_for_change(self) -> Steps:
        """Wait until no partition is being changed."""
        while self._changed_us is not None and not self._is_closed:
            yield self._left_us(self._changed_us)

    def wait_for_fetchers(self) -> Steps:
        """Wait for what each fetcher appends now."""
        now_us = self._clock.now_us
        if self._fetched_us is not None and self._fetched_us > now_us:
            yield self._change_until(self._fetched_us)

    def wait_for_appends(self, partition: str) -> Steps:
        """Wait for the appends to a partition that have begun, and let none begin before the change has ended."""
        self._changing[partition] = None
        while partition in self._readers and not self._is_closed:
            yield self._change_until(self._locked_us.get(partition, 0))

    def _change_until(self, until_us: int) -> int:
        left_us = self._left_us(until_us)
        self._changed_us = self._clock.now_us + left_us
        return left_us

    def end_change(self) -> None:
        """Let everything go on that has waited for the change."""
        self._changing.clear()
        self._changed_us = None
