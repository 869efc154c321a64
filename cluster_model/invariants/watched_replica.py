"""Tracks the replicas of partitions from outside, for the checks of invariants."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Protocol

from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.log.disk import Disk, LogFile
from harrow.cluster_model.log.record_batch import RecordBatch
from harrow.cluster_model.log.unified_log import UnifiedLog


class Leader(Protocol):
    """What checks need to know about a partition on its leader."""

    name: str
    broker: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    min_insync_replicas: int


@dataclass(slots=True, eq=False)
class WatchedReplica:
    """A replica, as checks see it.

    ``log`` is None while the broker is down, and ``leader`` is None while the replica does not
    lead. ``hw`` is the high watermark before the change that is checked. ``checked_entries`` are
    the entries that the epoch cache had at the last check. ``last_batches`` has the base offset of
    each producer's last batch.
    """

    partition: "WatchedPartition"
    broker: int
    disk: Disk
    file: LogFile
    log: UnifiedLog | None = None
    leader: Leader | None = None
    hw: int = 0
    checked_entries: list[tuple[int, int]] = field(default_factory=list)
    last_batches: dict[int, int] = field(default_factory=dict)
    compared_end: int = 0
    """The offset below which the log is known to equal the log with the committed records."""
    unrecorded_end: int = -1
    """The end of a log that was truncated to an offset above its last batch; otherwise -1.

    It is reset when a recovery point within the batches is written.
    """
    has_old_recovery_point: bool = False
    """Whether the log was truncated while its directory was not writable."""


@dataclass(slots=True, eq=False)
class WatchedPartition:
    """The replicas of a partition, and the latest leader epoch and ISR that were written for it."""

    name: str
    disks: Mapping[int, Disk]
    replicas: dict[int, WatchedReplica] = field(default_factory=dict)
    leader_epoch: int = -1
    isr: tuple[int, ...] = ()
    assigned: tuple[int, ...] | None = None
    """The assigned replicas; None until the partition is first reassigned."""
    deleted_below: int = 0
    """The offset below which some replica has deleted records.

    Records below it are not checked, even if they come back because a restarted replica has lost
    its log start.
    """

    def is_replica(self, broker: int, leader: Leader) -> bool:
        """Return whether the leader and the control plane agree that a broker is a replica.

        When a reassignment ends, it removes replicas from the assignment before it removes them
        from the ISR, and before the leader learns of it.
        """
        return broker in leader.replicas and (self.assigned is None or broker in self.assigned)

    def replica(self, broker: int) -> WatchedReplica:
        replica = self.replicas.get(broker)
        if replica is None:
            disk = self.disks[broker]
            replica = self.replicas[broker] = WatchedReplica(self, broker, disk, disk.log_file(self.name))
        return replica


def are_equal(one: LogFile, other: LogFile, start: int, end: int) -> bool:
    """Return whether two logs have the same batches from *start* to below *end*, and reach *end*.

    The result may be False for equal logs that are compacted or begin after *start*.
    """
    if one.compacts or other.compacts:
        return False
    if max(one.segments[0].base_offset, other.segments[0].base_offset) > start:
        return False
    if min(one.log_end_offset, other.log_end_offset) < end:
        return False
    batches = one.batches[one.place_from(start) : one.place_from(end)]
    return batches == other.batches[other.place_from(start) : other.place_from(end)]


def first_difference(one: LogFile, other: LogFile, start: int, end: int) -> int | None:
    """Return the first offset from *start* to below *end* at which *other* lacks a batch of *one*.

    Replicas share batch objects, so parts with the same objects are equal. What either log has
    deleted is not compared.
    """
    batches = one.batches
    if (
        one.log_end_offset == end == other.log_end_offset
        and batches
        and other.batches
        and batches[-1] is other.batches[-1]
        and batches[-1].base_offset <= start
    ):
        return None  # This is the common case: both logs end with the same batch.
    # `max` of three numbers would cost as much as the rest of this comparison.
    start = max(start, one.segments[0].base_offset)
    start = max(start, other.segments[0].base_offset)
    if end <= start:
        return None
    first, last = one.place_from(start), one.place_from(end)
    if one.compacts or other.compacts:
        return _first_conflict(batches[first:last], other)
    begin = first
    if not batches or not other.batches or one.base_offsets[0] != other.base_offsets[0]:
        begin = other.place_from(start)
    if first + 1 == last and begin < len(other.batches) and batches[first] is other.batches[begin]:
        return None  # This is another common case: one more batch is below the high watermark.
    if batches[first:last] == other.batches[begin : begin + last - first]:
        return None
    for batch in batches[first:last]:
        position = other.place_from(batch.base_offset)
        if position == len(other.batches) or not _is_same(batch, other.batches[position]):
            return batch.base_offset
    return None


def _first_conflict(batches: Sequence[RecordBatch], other: LogFile) -> int | None:
    """Return the first offset at which *other* ends or has another batch.

    Either log may be compacted, so a hole is not a conflict.
    """
    place = 0
    for batch in batches:
        if place == len(other.batches) or other.batches[place] is not batch:
            place = other.place_at(batch.base_offset)
            if place == len(other.batches) or other.base_offsets[place] >= batch.next_offset:
                if other.log_end_offset < batch.next_offset:
                    return batch.base_offset
                continue
            stored = other.batches[place]
            if (stored.base_offset, stored.next_offset, stored.leader_epoch) != (
                *(batch.base_offset, batch.next_offset),
                batch.leader_epoch,
            ):
                return batch.base_offset
        place += 1  # The next batch is usually the next one there, too.
    return None


def _is_same(one: RecordBatch, other: RecordBatch) -> bool:
    """Return whether two batches are equal.

    Equal batches may be two objects, if a leader has appended the same batch again.
    """
    return one is other or (
        one.base_offset == other.base_offset
        and one.leader_epoch == other.leader_epoch
        and one.values == other.values
        and one.control_type == other.control_type
        and (one.producer_id, one.producer_epoch, one.base_sequence)
        == (other.producer_id, other.producer_epoch, other.base_sequence)
    )
