"""Replays one partition: the logs of its replicas, and what its clients sent and read.

`harrow.checks.replay.cluster_state` has the rest of the cluster, and passes the events of each
partition to its `PartitionState` one by one.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from operator import attrgetter
from typing import Final

from harrow.cluster_model import events
from harrow.cluster_model.lazy_dataclass import dataclass, replace
from harrow.cluster_model.log.record_batch import NO_SEQUENCE, record_count
from harrow.cluster_model.log.unified_log import LEADER_LOG_START
from harrow.cluster_model.protocol import NO_LEADER
from harrow.cluster_model.trace import TraceEvent, TraceLine

NO_BROKER: Final = -1
NO_EPOCH: Final = -1

LEADER: Final = "leader"
FOLLOWER: Final = "follower"
NO_ROLE: Final = ""

TRUNCATED: Final = "truncated"
POWER_LOSS: Final = "power loss"
DISK_LOSS: Final = "disk loss"
CORRUPTION: Final = "corruption"
DELETED: Final = "deleted"
RETENTION: Final = "retention"
COMPACTION: Final = "compaction"
REMOVAL_CAUSES: Final = (TRUNCATED, POWER_LOSS, DISK_LOSS, CORRUPTION, DELETED, RETENTION, COMPACTION)
"""Why a replica's log no longer has a record."""

SENDING: Final = "sending"
ACKED: Final = "acked"
FAILED: Final = "failed"
UNKNOWN: Final = "unknown"
"""The status of a send that ended with an error although its record may be in a log."""


@dataclass(slots=True, unsafe_hash=True)
class LogEntry:
    """A copy of a record in a replica's log.

    ``producer_id`` and ``sequence`` are -1 without idempotence. Two entries are equal if they are
    copies of the same record. ``broker`` is the broker whose log has this copy. ``is_copy`` is true
    if the broker fetched the record from a leader, and false if it appended the record as leader.
    ``number`` and ``at_us`` are the line and the time at which the copy was stored. ``committed``
    is the line at which this replica's high watermark first passed the copy, 0 if it never did.
    ``removed`` says how the copy was removed, None while it is in the log. ``damaged`` is the line
    at which the copy's batch was damaged, None while it is intact, and ``batch`` the line at which
    the batch was stored.
    """

    offset: int
    value: str
    leader_epoch: int
    producer_id: int
    sequence: int
    broker: int = field(default=NO_BROKER, compare=False)
    number: int = field(default=0, compare=False)
    at_us: int = field(default=0, compare=False)
    is_copy: bool = field(default=False, compare=False)
    committed: int = field(default=0, compare=False)
    removed: "RemovedEntry | None" = field(default=None, compare=False, repr=False)
    damaged: int | None = field(default=None, compare=False, repr=False)
    batch: int = field(default=0, compare=False, repr=False)

    @property
    def is_committed(self) -> bool:
        """Whether this replica's high watermark has ever passed the record."""
        return self.committed > 0

    @property
    def lost_with_power(self) -> bool:
        """Whether the copy had not been flushed, and was lost when its broker lost power."""
        return self.removed is not None and self.removed.cause == POWER_LOSS

    @property
    def lost_with_disk(self) -> bool:
        """Whether the copy was lost with its broker's disk, or because of a damaged batch."""
        return self.removed is not None and self.removed.cause in (DISK_LOSS, CORRUPTION)

    @property
    def lost_with_machine(self) -> bool:
        """Whether the copy was lost in a power loss or a disk failure of its broker."""
        return self.lost_with_power or self.lost_with_disk

    def is_there(self, number: int) -> bool:
        """Return whether the copy is in its log just after the event at line *number*."""
        return self.number <= number and (self.removed is None or self.removed.number > number)


def has_copy(copies: Iterable[LogEntry], broker: int, number: int) -> bool:
    """Return whether a broker's log had one of *copies* at a line of the trace."""
    return any(copy.broker == broker and copy.is_there(number) for copy in copies)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedEntry:
    """A record that a replica no longer has.

    ``cause`` is one of `REMOVAL_CAUSES`. ``reason`` is the rule of a truncation ("high watermark",
    "leader epoch", "out of range"), or why the log start was raised. ``committed`` says whether the
    replica's own high watermark had passed the record. ``leo`` and ``high_watermark`` are those of
    the replica before the removal, ``to_offset`` is the replica's LEO afterwards, and ``leader`` is
    the broker that it followed. ``number`` is the line of the event in ``trace.jsonl``, counted
    from 1.
    """

    entry: LogEntry
    leo: int
    to_offset: int
    high_watermark: int
    leader: int
    number: int
    at_us: int
    cause: str
    reason: str
    committed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Ack:
    """An answer to a producer that a record is stored at ``offset``.

    ``acks`` is -1 for ``acks=all``, else 1. ``isr`` is the ISR that the broker knew at this moment.
    """

    number: int
    at_us: int
    broker: int
    offset: int
    acks: int
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RecordKey:
    """The key of a record, and whether the record is a tombstone, which deletes that key."""

    key: str
    is_tombstone: bool


@dataclass(slots=True)
class Read:
    """A consumer's polls of a record: the first one, and how many."""

    number: int
    at_us: int
    client: str
    times: int = 0


@dataclass(slots=True)
class SendState:
    """The state of a record that was sent, according to its producer's application.

    ``status`` is `SENDING`, `ACKED`, `FAILED` (no log has the record) or `UNKNOWN`. ``offset``
    comes from the answer, None without one (acks=0, or a lost answer).
    """

    client: str
    value: str
    invoked_us: int
    status: str = SENDING
    ended_us: int | None = None
    offset: int | None = None
    error: str | None = None


@dataclass(slots=True)
class LogTransaction:
    """A transaction in a log: its producer, its first offset, and the offset of its marker."""

    producer_id: int
    producer_epoch: int
    first_offset: int
    marker_offset: int | None = None
    is_committed: bool = False


@dataclass(slots=True, eq=False)
class ReplicaState:
    """A replica of a partition on one broker.

    ``log`` has the records by offset. ``leo``, the log end offset, is the offset of the next
    record. If a log is not ``is_open``, its broker is down, or has not learned of the partition
    since it started. In that case, ``high_watermark`` and ``role`` mean nothing; the records are
    still on the disk, and the replica will start with ``checkpointed_high_watermark``. A power loss
    removes no record below ``flushed``.

    ``leader`` is the broker that the replica follows. While the replica leads, ``isr`` is the ISR
    that it knows, and ``remote`` has the log end of each follower, from the follower's last fetch.
    ``removed`` are the records that the replica no longer has, in the order of their removal.
    ``transactions`` are the transactions in its log, in order. ``stable_offset`` is the highest
    high watermark since the log was opened or truncated. A marker below ``stable_offset`` is
    committed, even if the high watermark has fallen since, as it does when a follower adopts the
    lower high watermark of its leader.
    """

    broker: int
    log: list[LogEntry] = field(default_factory=list)
    leo: int = 0
    log_start: int = 0
    high_watermark: int = 0
    stable_offset: int = 0
    checkpointed_high_watermark: int = 0
    flushed: int = 0
    is_open: bool = False
    role: str = NO_ROLE
    leader: int = NO_LEADER
    leader_epoch: int = NO_EPOCH
    isr: tuple[int, ...] = ()
    remote: dict[int, int] = field(default_factory=dict)
    removed: list[RemovedEntry] = field(default_factory=list)
    transactions: list[LogTransaction] = field(default_factory=list)
    _committed: int = 0
    # Deleted records by offset. They are still on the disk until their segment is deleted.
    _deleted: list[LogEntry] = field(default_factory=list)
    # The line at which the high watermark was last checkpointed.
    _checkpointed: int = 0
    # Records below a high watermark that does not prove that they are committed: they were stored
    # after the checkpoint was written, or are below the log start of the leader that reported the
    # high watermark. They stay unvouched when the log is opened again.
    _unvouched: list[LogEntry] = field(default_factory=list)

    @property
    def known_high_watermark(self) -> int:
        """The high watermark, or, if the log is not open, the one that it will start with."""
        return self.high_watermark if self.is_open else self.checkpointed_high_watermark

    @property
    def lso(self) -> int:
        """The last stable offset: below it all transactions have ended with committed markers.

        A broker forgets a transaction once its high watermark has passed the marker
        (``ProducerStateManager.removeUnreplicatedTransactions``).
        """
        return min(
            [
                self.high_watermark,
                *(
                    transaction.first_offset
                    for transaction in self.transactions
                    if transaction.marker_offset is None or transaction.marker_offset >= self.stable_offset
                ),
            ]
        )

    def entry(self, offset: int) -> LogEntry | None:
        """Return the record at an offset, None if there is none."""
        position = bisect_left(self.log, offset, key=_offset_of)
        return (
            self.log[position] if position < len(self.log) and self.log[position].offset == offset else None
        )

    def is_aborted(self, entry: LogEntry) -> bool:
        """Return whether a record was aborted with its transaction."""
        return any(
            transaction.producer_id == entry.producer_id
            and transaction.marker_offset is not None
            and transaction.first_offset <= entry.offset < transaction.marker_offset
            and not transaction.is_committed
            for transaction in self.transactions
        )

    def checkpoint(self, high_watermark: int, number: int) -> None:
        """Note the checkpoint with which the replica will start; *number* is 0 for an old file."""
        self.checkpointed_high_watermark = high_watermark
        self._checkpointed = number

    def open(self, high_watermark: int, number: int) -> None:
        """Start with the checkpointed high watermark, which vouches only for earlier records.

        If the log lost its end in a power loss, or was truncated, it may now have other records
        below the checkpointed high watermark. Ended transactions are read again, and no marker
        above the checkpointed high watermark counts as committed.
        """
        self.is_open = True
        self.high_watermark = self.stable_offset = high_watermark
        passed = max(self._committed, bisect_left(self.log, high_watermark, key=_offset_of))
        self._unvouched = [entry for entry in self._unvouched if entry.removed is None]
        for entry in self.log[self._committed : passed]:
            if entry.number < self._checkpointed:
                entry.committed = number
            elif not entry.is_committed:
                self._unvouched.append(entry)
        self._committed = passed

    def raise_high_watermark(self, high_watermark: int, number: int, leader_log_start: int = 0) -> None:
        """Set the high watermark, and mark the records that it has passed.

        A leader's high watermark vouches only for records in the leader's log, so for no record
        below *leader_log_start*. A former leader that now follows may still have other records
        there: the leader has deleted its own records and cannot tell where the logs diverged, so
        the follower truncates only down to the leader's log start.
        """
        self.pass_to(high_watermark)
        if self._unvouched:
            self.commit_unvouched(number, leader_log_start)
        if self.log:
            self.commit(number, leader_log_start)

    def pass_to(self, high_watermark: int) -> None:
        """Set the high watermark, but mark no records as committed."""
        self.high_watermark = high_watermark
        if high_watermark > self.stable_offset:  # noqa: PLR1730 - `max` is a slow call when compiled
            self.stable_offset = high_watermark

    def commit_unvouched(self, number: int, leader_log_start: int = 0) -> None:
        """Mark unvouched records below the high watermark as committed: the leader has them."""
        remaining: list[LogEntry] = []
        for entry in self._unvouched:
            if entry.removed is not None:
                continue
            if entry.offset < leader_log_start or entry.offset >= self.high_watermark:
                remaining.append(entry)
            else:
                entry.committed = number
        self._unvouched = remaining

    def commit(self, number: int, leader_log_start: int = 0) -> None:
        """Mark the records below the high watermark as committed.

        The high watermark may be above the log end. Records that are stored below it later are
        marked by the next call.
        """
        log, count = self.log, self._committed
        while count < len(log) and log[count].offset < self.high_watermark:
            if log[count].offset < leader_log_start:
                self._unvouched.append(log[count])
            else:
                log[count].committed = number
            count += 1
        self._committed = count

    def cut(self, leo: int, number: int, at_us: int, cause: str, reason: str) -> None:
        """Remove the records from *leo* on, the new log end, and add them to ``removed``."""
        kept = bisect_left(self.log, leo, key=_offset_of)
        self._remove(self.log[kept:], leo, number, at_us, cause, reason)
        del self.log[kept:]
        self.leo = leo
        self.log_start = min(self.log_start, leo)
        del self._deleted[bisect_left(self._deleted, leo, key=_offset_of) :]
        if self.transactions:
            self._cut_transactions(leo)
        if cause == TRUNCATED:
            # After a power loss or a disk loss, the broker is down, so the watermark keeps its
            # value.
            self.high_watermark = min(self.high_watermark, leo)
        # The rest of the log is read again (``ProducerStateManager.truncateAndReload``).
        self.stable_offset = min(self.high_watermark, leo)
        self.flushed = min(self.flushed, leo)
        self._committed = min(self._committed, kept)

    def _remove(
        self, entries: Iterable[LogEntry], to_offset: int, number: int, at_us: int, cause: str, reason: str
    ) -> None:
        for entry in entries:
            entry.removed = RemovedEntry(
                entry=entry,
                leo=self.leo,
                to_offset=to_offset,
                high_watermark=self.high_watermark,
                leader=self.leader,
                number=number,
                at_us=at_us,
                cause=cause,
                reason=reason,
                committed=entry.offset < self.high_watermark,
            )
            self.removed.append(entry.removed)

    def _cut_transactions(self, leo: int) -> None:
        self.transactions = [
            transaction for transaction in self.transactions if transaction.first_offset < leo
        ]
        for transaction in self.transactions:
            if transaction.marker_offset is not None and transaction.marker_offset >= leo:
                transaction.marker_offset, transaction.is_committed = None, False

    def delete_below(self, log_start: int, number: int, at_us: int, reason: str) -> None:
        """Remove the records below *log_start*, and add them to ``removed``."""
        self.log_start = log_start
        kept = bisect_left(self.log, log_start, key=_offset_of)
        self._remove(self.log[:kept], log_start, number, at_us, RETENTION, reason)
        self._deleted += self.log[:kept]
        del self.log[:kept]
        self._committed = max(0, self._committed - kept)

    def compact(self, offsets: Iterable[int], to_offset: int, number: int, at_us: int) -> None:
        """Remove the records at some offsets; the others keep their offsets."""
        compacted = set(offsets)
        removed = [entry for entry in self.log if entry.offset in compacted]
        committed = sum(entry.offset in compacted for entry in self.log[: self._committed])
        self._remove(removed, to_offset, number, at_us, COMPACTION, "compacted")
        self.log[:] = [entry for entry in self.log if entry.offset not in compacted]
        self._committed -= committed

    def forget_deleted(self) -> None:
        """Forget the deleted records, because the disk no longer has them either."""
        self._deleted.clear()

    def restore_from(self, log_start: int, number: int, at_us: int) -> list[LogEntry]:
        """Restore the deleted records from *log_start* on that are still on the disk.

        Return the restored copies.
        """
        again = [
            replace(entry, number=number, at_us=at_us, is_copy=True, removed=None)
            for entry in self._deleted
            if entry.offset >= log_start
        ]
        self.log[:0] = again
        self.log_start = log_start
        self._deleted.clear()
        self._committed += len(again)
        self._unvouched += [entry for entry in again if not entry.is_committed]
        return again

    def close(self) -> None:
        """Forget what only the process of the broker knew, because it has stopped."""
        self.is_open = False
        self.role = NO_ROLE
        self.leader = NO_LEADER
        self.leader_epoch = NO_EPOCH
        self.isr = ()
        self.remote = {}


_offset_of: Final = attrgetter("offset")


@dataclass(slots=True, eq=False)
class PartitionState:
    """A partition: its state in the control plane, its replicas, and its sends, acks and reads.

    ``leader``, ``leader_epoch`` and ``isr`` are those of the control plane. ``assigned`` are the
    brokers that should have a replica, in the order of the assignment. ``acks`` and ``sends`` are
    by value, in the order of the trace. ``by_value`` has every copy that was ever in a log, in the
    order of storing. ``reads`` are by (offset, value), then by the name of the consumer. ``keys``
    has the keys of records, and ``by_key`` the records of each key. With
    ``reelection_forgets_remote``, which no release does, a leader that is elected again without
    having followed forgets the log ends of its followers.
    """

    name: str
    assigned: tuple[int, ...] = ()
    leader: int = NO_LEADER
    leader_epoch: int = NO_EPOCH
    isr: tuple[int, ...] = ()
    elections: list[TraceLine[events.LeaderElected]] = field(default_factory=list)
    replicas: dict[int, ReplicaState] = field(default_factory=dict)
    acks: dict[str, list[Ack]] = field(default_factory=dict)
    reads: dict[tuple[int, str], dict[str, Read]] = field(default_factory=dict)
    sends: dict[str, list[SendState]] = field(default_factory=dict)
    by_value: dict[str, list[LogEntry]] = field(default_factory=dict)
    keys: dict[str, RecordKey] = field(default_factory=dict)
    by_key: dict[str, dict[str, None]] = field(default_factory=dict)
    reelection_forgets_remote: bool = False

    def __post_init__(self) -> None:
        self.replicas = {broker: ReplicaState(broker) for broker in self.assigned}

    def replica(self, broker: int) -> ReplicaState:
        """Return a broker's replica, which is empty if it is new."""
        replica = self.replicas.get(broker)
        if replica is None:
            replica = self.replicas[broker] = ReplicaState(broker)
        return replica

    def leading(self) -> ReplicaState | None:
        """Return the elected leader; until it knows its election, the last broker that led."""
        elected = self.replicas.get(self.leader)
        if elected is not None and elected.role == LEADER:
            return elected
        leaders = [replica for replica in self.replicas.values() if replica.role == LEADER]
        return max(leaders, key=attrgetter("leader_epoch"), default=None)

    def remote_leo(self, broker: int) -> int | None:
        """Return a follower's log end according to the leader, None if the leader knows none."""
        leading = self.leading()
        return None if leading is None else leading.remote.get(broker)

    # Logs

    def begin_transaction(self, _: int, event: events.TransactionBegun) -> None:
        transaction = LogTransaction(event.producer_id, event.producer_epoch, event.first_offset)
        self.replica(event.broker).transactions.append(transaction)

    def end_transaction(self, _: int, event: events.TransactionMarkerWritten) -> None:
        for transaction in reversed(self.replica(event.broker).transactions):
            if transaction.producer_id == event.producer_id and transaction.marker_offset is None:
                transaction.marker_offset, transaction.is_committed = event.offset, event.committed
                return

    def truncate(self, number: int, event: events.LogTruncated) -> None:
        self.replica(event.broker).cut(event.to_offset, number, event.at_us, TRUNCATED, event.reason)

    def lose_unflushed(self, number: int, event: events.UnflushedLost) -> None:
        self.replica(event.broker).cut(event.from_offset, number, event.at_us, POWER_LOSS, "unflushed")

    def lose_log(self, number: int, event: events.LogLost) -> None:
        replica = self.replica(event.broker)
        replica.cut(event.from_offset, number, event.at_us, DISK_LOSS, "disk lost")
        replica.checkpointed_high_watermark = 0

    def delete(self, number: int, event: events.LogDeleted) -> None:
        replica = self.replica(event.broker)
        replica.cut(0, number, event.at_us, DELETED, "no replica any more")
        replica.high_watermark = replica.checkpointed_high_watermark = 0
        replica.close()

    def assign(self, _: int, event: events.ReplicasAssigned) -> None:
        added = [broker for broker in event.replicas if broker not in self.assigned]
        self.assigned = event.replicas
        for replica in self.replicas.values():
            # A leader forgets the log end of a broker's former replica when the broker is added
            # again.
            replica.remote = {broker: leo for broker, leo in replica.remote.items() if broker not in added}

    def damage(self, number: int, event: events.BatchDamaged) -> None:
        """Mark all records of a batch as damaged. One event stored them all."""
        replica = self.replica(event.broker)
        entry = replica.entry(event.offset)
        for other in replica.log if entry is not None else ():
            if entry is not None and other.batch == entry.batch and other.damaged is None:
                other.damaged = number

    def raise_log_start(self, number: int, event: events.LogStartRaised) -> None:
        replica = self.replica(event.broker)
        replica.delete_below(event.offset, number, event.at_us, event.reason)
        if event.offset > replica.leo:
            # Only the checkpoint has this start: the log was opened without the records before it.
            replica.forget_deleted()
            replica.leo = replica.flushed = event.offset

    def revert_log_start(self, number: int, event: events.LogStartReverted) -> None:
        for entry in self.replica(event.broker).restore_from(event.to_offset, number, event.at_us):
            self.by_value.setdefault(entry.value, []).append(entry)

    def compact(self, number: int, event: events.LogCleaned) -> None:
        self.replica(event.broker).compact(event.removed, event.to_offset, number, event.at_us)

    def replicate_hole(self, _: int, event: events.HoleReplicated) -> None:
        replica = self.replica(event.broker)
        replica.leo = max(replica.leo, event.to_offset)

    def restart_log(self, number: int, event: events.LogStartedAnew) -> None:
        replica = self.replica(event.broker)
        replica.delete_below(event.offset, number, event.at_us, LEADER_LOG_START)
        replica.forget_deleted()
        replica.transactions.clear()
        replica.leo = replica.flushed = replica.high_watermark = replica.stable_offset = event.offset

    def cut_corruption(self, number: int, event: events.CorruptionCut) -> None:
        cause, reason = (POWER_LOSS, "torn") if event.torn else (CORRUPTION, "bad CRC")
        self.replica(event.broker).cut(event.from_offset, number, event.at_us, cause, reason)

    def open(self, number: int, event: events.LogOpened) -> None:
        self.open_log(event.broker, event.leo, event.hw, number, event.at_us)

    def open_log(self, broker: int, leo: int, hw: int, number: int, at_us: int) -> None:
        replica = self.replica(broker)
        if leo < replica.leo:
            replica.cut(leo, number, at_us, TRUNCATED, "not found again")
        replica.leo = leo
        replica.open(hw, number)

    # Leadership

    def lead(self, number: int, event: events.BecameLeader) -> None:
        self.lead_in(event.broker, event.leader_epoch, event.isr, number)

    def lead_in(self, broker: int, leader_epoch: int, isr: tuple[int, ...], number: int) -> None:
        replica = self.replica(broker)
        replica.commit_unvouched(number)
        if replica.role != LEADER or self.reelection_forgets_remote:
            replica.remote = {}
        replica.role, replica.leader, replica.leader_epoch = LEADER, broker, leader_epoch
        replica.isr = isr

    def follow(self, _: int, event: events.BecameFollower) -> None:
        self.follow_leader(event.broker, event.leader_epoch, event.leader)

    def follow_leader(self, broker: int, leader_epoch: int, leader: int) -> None:
        replica = self.replica(broker)
        replica.role, replica.leader, replica.leader_epoch = FOLLOWER, leader, leader_epoch
        replica.isr = ()

    def learn_isr(self, _: int, event: events.IsrChanged) -> None:
        self.replica(event.broker).isr = event.isr

    def elect(self, number: int, event: events.LeaderElected) -> None:
        self.leader, self.leader_epoch, self.isr = event.leader, event.leader_epoch, event.isr
        self.elections.append(TraceLine(number, event))

    def reduce_isr(self, _: int, event: events.IsrReduced) -> None:
        self.leader, self.leader_epoch, self.isr = event.leader, event.leader_epoch, event.isr

    def write_isr(self, _: int, event: events.IsrWritten) -> None:
        self.leader, self.leader_epoch, self.isr = event.broker, event.leader_epoch, event.isr

    # Clients

    def send(self, _: int, event: events.ClientSent) -> None:
        self.sends.setdefault(event.value, []).append(SendState(event.client, event.value, event.at_us))

    def end_send(self, _: int, event: events.ClientEnded) -> None:
        for send in self.sends.get(event.value, ()):
            if send.status == SENDING and send.client == event.client:
                send.status, send.ended_us = event.status, event.at_us
                send.offset, send.error = event.offset, event.error
                return

    def read(self, number: int, event: events.ClientPolled) -> None:
        for record in event.records:
            by_client = self.reads.setdefault(record, {})
            by_client.setdefault(event.client, Read(number, event.at_us, event.client)).times += 1

    # These handlers take the rows of the trace. Their events are frequent, and to make an object of
    # each would take a third of the replay.

    def append(self, number: int, row: TraceEvent) -> None:
        at_us, kind, broker, _, begin, leader_epoch, producer_id, base_sequence, values = row
        replica = self.replica(broker)
        offset: int = begin
        sequence: int = base_sequence
        if offset < replica.leo:
            replica.cut(offset, number, at_us, TRUNCATED, "overwritten")
        is_copy = kind == events.BatchReplicated.name
        for value in values:
            entry = LogEntry(
                offset=offset,
                value=value,
                leader_epoch=leader_epoch,
                producer_id=producer_id,
                sequence=sequence,
                broker=broker,
                number=number,
                at_us=at_us,
                is_copy=is_copy,
                batch=number,
            )
            replica.log.append(entry)
            self.by_value.setdefault(value, []).append(entry)
            offset += 1
            if sequence != NO_SEQUENCE:
                sequence += 1
        replica.leo = begin + record_count(values)
        replica.commit(number)

    def acknowledge(self, number: int, row: TraceEvent) -> None:
        at_us, _, broker, _, base_offset, acks, values = row
        isr = self.replica(broker).isr
        for offset, value in enumerate(values, base_offset):
            ack = Ack(number=number, at_us=at_us, broker=broker, offset=offset, acks=acks, isr=isr)
            self.acks.setdefault(value, []).append(ack)

    def set_high_watermark(self, number: int, row: TraceEvent) -> None:
        _, _, broker, _, hw = row
        replica = self.replica(broker)
        leading = self.replicas.get(replica.leader) if replica.role == FOLLOWER else None
        replica.raise_high_watermark(hw, number, 0 if leading is None else leading.log_start)

    def note_fetch(self, _number: int, row: TraceEvent) -> None:
        _, _, broker, _, replica, offset = row
        self.replica(broker).remote[replica] = offset

    def flush(self, _number: int, row: TraceEvent) -> None:
        _, _, broker, _, offset = row
        self.replica(broker).flushed = offset

    def note_key(self, _number: int, row: TraceEvent) -> None:
        _, _, _, _, value, key, is_tombstone = row
        self.keys[value] = RecordKey(key, is_tombstone)
        self.by_key.setdefault(key, {})[value] = None


PARTITION_HANDLERS: Final[Mapping[type[events.Event], Callable[..., None]]] = {
    events.TransactionBegun: PartitionState.begin_transaction,
    events.TransactionMarkerWritten: PartitionState.end_transaction,
    events.LogTruncated: PartitionState.truncate,
    events.UnflushedLost: PartitionState.lose_unflushed,
    events.LogLost: PartitionState.lose_log,
    events.LogDeleted: PartitionState.delete,
    events.ReplicasAssigned: PartitionState.assign,
    events.CorruptionCut: PartitionState.cut_corruption,
    events.BatchDamaged: PartitionState.damage,
    events.LogStartRaised: PartitionState.raise_log_start,
    events.LogStartReverted: PartitionState.revert_log_start,
    events.LogStartedAnew: PartitionState.restart_log,
    events.LogCleaned: PartitionState.compact,
    events.HoleReplicated: PartitionState.replicate_hole,
    events.LogOpened: PartitionState.open,
    events.BecameLeader: PartitionState.lead,
    events.BecameFollower: PartitionState.follow,
    events.IsrChanged: PartitionState.learn_isr,
    events.IsrWritten: PartitionState.write_isr,
    events.LeaderElected: PartitionState.elect,
    events.IsrReduced: PartitionState.reduce_isr,
    events.ClientSent: PartitionState.send,
    events.ClientEnded: PartitionState.end_send,
    events.ClientPolled: PartitionState.read,
}
"""For each other kind of event, the method that applies it, given the line and the event."""

FREQUENT_HANDLERS: Final[Mapping[type[events.Event], Callable[[PartitionState, int, TraceEvent], None]]] = {
    events.BatchAppended: PartitionState.append,
    events.BatchReplicated: PartitionState.append,
    events.BatchAcknowledged: PartitionState.acknowledge,
    events.HighWatermarkSet: PartitionState.set_high_watermark,
    events.FollowerFetched: PartitionState.note_fetch,
    events.LogFlushed: PartitionState.flush,
    events.KeyedRecordSent: PartitionState.note_key,
    events.KeyedRecordFound: PartitionState.note_key,
}
"""For each frequent kind of event, the method that applies it, given the line and the row."""
