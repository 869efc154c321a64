"""Replicas as invariants look at them: from outside, all replicas of a partition at once."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from harrow.cluster_model.log.disk import Disk, LogFile
from harrow.cluster_model.log.record_batch import RecordBatch
from harrow.cluster_model.log.unified_log import UnifiedLog


class Leader(Protocol):
    """What invariants look at in a partition that leads."""

    name: str
    broker: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    min_insync_replicas: int


@dataclass(slots=True, eq=False)
class WatchedReplica:
    """A replica. ``log`` is None while its broker is down, ``leader`` while it does not lead.

    ``hw`` is its high watermark before the change that is being looked at, ``checked_entries``
    the entries of its epoch cache that have been looked at, ``last_batches`` the base offset of each producer's last batch.
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
    unrecorded_end: int = -1
    """The end of the log when it was cut above its last batch, until a recovery point within the batches is written; else -1."""
    has_old_recovery_point: bool = False
    """Whether the log was cut while no checkpoint could be written."""


@dataclass(slots=True, eq=False)
class WatchedPartition:
    """The replicas of a partition, and the latest leader epoch and ISR that were written for it."""

    name: str
    disks: Mapping[int, Disk]
    replicas: dict[int, WatchedReplica] = field(default_factory=dict)
    leader_epoch: int = -1
    isr: tuple[int, ...] = ()
    assigned: tuple[int, ...] | None = None
    """The replicas since the partition was first reassigned."""
    deleted_below: int = 0
    """Up to where some replica has deleted. What stands there again, after one that died has forgotten where its log began, does not count."""

    def is_replica(self, broker: int, leader: Leader) -> bool:
        """Return whether a member of a leader's ISR is a replica, as far as the leader and the control plane know.

        A reassignment that ends takes replicas away before it takes them out of the ISR, or before their leader hears of it.
        """
        return broker in leader.replicas and (self.assigned is None or broker in self.assigned)

    def replica(self, broker: int) -> WatchedReplica:
        replica = self.replicas.get(broker)
        if replica is None:
            disk = self.disks[broker]
            replica = self.replicas[broker] = WatchedReplica(self, broker, disk, disk.log_file(self.name))
        return replica


def first_difference(one: LogFile, other: LogFile, start: int, end: int) -> int | None:
    """Return the first offset from *start* to below *end* at which the other log has not what the one has.

    Replicas share their batches, so that equal parts are told by identity. What one of them has deleted is not compared.
    """
    batches = one.batches
    if (
        one.log_end_offset == end == other.log_end_offset
        and batches
        and other.batches
        and batches[-1] is other.batches[-1]
        and batches[-1].base_offset <= start
    ):
        return None  # One batch at the end of both, as nearly always.
    start = max(start, one.segments[0].base_offset, other.segments[0].base_offset)
    if end <= start:
        return None
    if one.compacts:
        first, last = bisect_left(one.base_offsets, start), bisect_left(one.base_offsets, end)
        return _first_conflict(batches[first:last], other)
    first = bisect_left(one.base_offsets, start)
    last = bisect_left(one.base_offsets, end)
    begin = (
        first if one.base_offsets[:1] == other.base_offsets[:1] else bisect_left(other.base_offsets, start)
    )
    if batches[first:last] == other.batches[begin : begin + last - first]:
        return None
    for batch in batches[first:last]:
        position = bisect_left(other.base_offsets, batch.base_offset)
        if position == len(other.batches) or not _is_same(batch, other.batches[position]):
            return batch.base_offset
    return None


def _first_conflict(batches: Sequence[RecordBatch], other: LogFile) -> int | None:
    """Return the first offset at which a log that is compacted lacks a batch, or has another one: holes are no conflict."""
    for batch in batches:
        place = other.place_at(batch.base_offset)
        if place == len(other.batches) or other.base_offsets[place] >= batch.next_offset:
            if other.log_end_offset < batch.next_offset:
                return batch.base_offset
            continue
        found = other.batches[place]
        if (found.base_offset, found.next_offset, found.leader_epoch) != (
            *(batch.base_offset, batch.next_offset),
            batch.leader_epoch,
        ):
            return batch.base_offset
    return None


def _is_same(one: RecordBatch, other: RecordBatch) -> bool:
    """Return whether two batches cannot be told apart: a leader may have appended one anew."""
    return one is other or (
        one.base_offset == other.base_offset
        and one.leader_epoch == other.leader_epoch
        and one.values == other.values
        and one.control_type == other.control_type
        and (one.producer_id, one.producer_epoch, one.base_sequence)
        == (other.producer_id, other.producer_epoch, other.base_sequence)
    )
