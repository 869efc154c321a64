"""What one partition is at a moment of a run: its replicas' logs, and what its clients know of them.

`harrow.checks.replay.cluster_state` has the cluster around it and hands it its events, one after the other.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import ClassVar, Final

from harrow.cluster_model import events
from harrow.cluster_model.log.record_batch import NO_SEQUENCE, record_count
from harrow.cluster_model.log.unified_log import LEADER_LOG_START
from harrow.cluster_model.protocol import NO_LEADER
from harrow.cluster_model.trace import TraceLine

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
"""What takes a record from a replica's log."""

SENDING: Final = "sending"
ACKED: Final = "acked"
FAILED: Final = "failed"
UNKNOWN: Final = "unknown"
"""A send that ended with an error although its record may be in a log."""


@dataclass(slots=True, unsafe_hash=True)
class LogEntry:
    """A record in a replica's log. ``producer_id`` and ``sequence`` are -1 without idempotence.

    Two are equal when they are the same record, wherever and however they came there: ``broker`` has this copy,
    ``is_copy`` says that it was fetched from a leader, ``number`` and ``at_us`` when it was stored.
    ``committed`` says with which event this replica's high watermark passed it first, 0 for never; ``removed`` how it went, None
    while it stands there, ``damaged`` when its batch lost its CRC, None while it is undamaged. Records of one ``batch`` have the
    number of the event with which that came.
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
        """Whether this replica's high watermark has ever passed it."""
        return self.committed > 0

    @property
    def lost_with_power(self) -> bool:
        """Whether the copy was not flushed and went with its broker's power."""
        return self.removed is not None and self.removed.cause == POWER_LOSS

    @property
    def lost_with_disk(self) -> bool:
        """Whether the copy went with its broker's disk, or stood behind a batch that the disk had damaged."""
        return self.removed is not None and self.removed.cause in (DISK_LOSS, CORRUPTION)

    @property
    def lost_with_machine(self) -> bool:
        """Whether the copy went with its broker's power or with its disk."""
        return self.lost_with_power or self.lost_with_disk

    def is_there(self, number: int) -> bool:
        """Return whether the copy stands in its log between the events *number* and the next."""
        return self.number <= number and (self.removed is None or self.removed.number > number)


def has_copy(copies: Iterable[LogEntry], broker: int, number: int) -> bool:
    """Return whether one of some copies stood in a broker's log at an event."""
    return any(copy.broker == broker and copy.is_there(number) for copy in copies)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedEntry:
    """A record that a replica no longer has.

    ``cause`` is one of `REMOVAL_CAUSES`; ``reason`` is what a truncation went by ("high watermark", "leader epoch",
    "out of range"), or why a log start was raised. ``committed`` says whether the replica's own high watermark had
    passed the record. ``leo`` and ``high_watermark`` are the replica's from before, ``to_offset`` is its LEO
    after, ``leader`` whom it followed. ``number`` is the event's in ``trace.jsonl``, from 1.
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
    """A broker answered a producer that a record is stored at ``offset``. ``acks`` is -1 for all, else 1.

    ``isr`` is the ISR as the broker knew it then.
    """

    number: int
    at_us: int
    broker: int
    offset: int
    acks: int
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RecordKey:
    """The key of a record, and whether the record is a tombstone, which deletes what was there of that key."""

    key: str
    is_tombstone: bool


@dataclass(slots=True)
class Read:
    """A consumer's poll returned a record: when it first did, and how often so far."""

    number: int
    at_us: int
    client: str
    times: int = 0


@dataclass(slots=True)
class SendState:
    """What a producer's application knows of a record that it sent.

    ``status`` is `SENDING`, `ACKED`, `FAILED` (it is in no log) or `UNKNOWN`. ``offset`` is that of the
    answer, None where there was none (acks=0, or a lost answer).
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
    """A transaction in a log: its producer, its first offset, and that of its marker, once it has one."""

    producer_id: int
    producer_epoch: int
    first_offset: int
    marker_offset: int | None = None
    is_committed: bool = False


@dataclass(slots=True, eq=False)
class ReplicaState:
    """A replica of a partition on one broker.

    ``log`` has the records by offset; ``leo``, the log end offset, is the next record's. While the log is not
    ``is_open`` (its broker is down, or has not heard of the partition since it started) ``high_watermark`` and
    ``role`` mean nothing; the records are on the disk all the same, and ``checkpointed_high_watermark`` is what
    the replica will begin with. Power loss takes nothing below ``flushed``. ``leader`` is the broker that the
    replica follows, ``isr`` the ISR as it knows it while it leads. ``removed`` are the records that it has lost,
    in the order in which it lost them. ``transactions`` are those that have begun in it, in order.
    ``stable_offset`` is how far the high watermark has got since the log was opened or cut: a marker below it is committed,
    also where the high watermark went back, as a follower's does that hears of its leader's.
    ``remote`` has the remote LEOs while the replica leads: where each follower's log ends, as its last fetch told.
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
    # What it has given up, by offset: until its segment is deleted it is on the disk still.
    _given_up: list[LogEntry] = field(default_factory=list)
    # When its high watermark was checkpointed last.
    _checkpointed: int = 0
    # Records that a high watermark has passed without vouching for them: stored after its checkpoint was written,
    # or below the log start of the leader that reported it. They are left so when the log is opened again.
    _unvouched: list[LogEntry] = field(default_factory=list)

    @property
    def known_high_watermark(self) -> int:
        """The high watermark, of a log that is not open the one that it will begin with."""
        return self.high_watermark if self.is_open else self.checkpointed_high_watermark

    @property
    def lso(self) -> int:
        """The last stable offset: below it all transactions have ended, and their markers are committed.

        A broker forgets a transaction once its high watermark has passed the marker (``ProducerStateManager.removeUnreplicatedTransactions``).
        """
        return min(
            [
                self.high_watermark,
                *(
                    known.first_offset
                    for known in self.transactions
                    if known.marker_offset is None or known.marker_offset >= self.stable_offset
                ),
            ]
        )

    def entry(self, offset: int) -> LogEntry | None:
        """Return the record at an offset, None past the end."""
        position = bisect_left(self.log, offset, key=_offset_of)
        return (
            self.log[position] if position < len(self.log) and self.log[position].offset == offset else None
        )

    def is_aborted(self, entry: LogEntry) -> bool:
        """Return whether a record was aborted with its transaction."""
        return any(
            known.producer_id == entry.producer_id
            and known.marker_offset is not None
            and known.first_offset <= entry.offset < known.marker_offset
            and not known.is_committed
            for known in self.transactions
        )

    def checkpoint(self, high_watermark: int, number: int) -> None:
        """Note what the replica will begin with, and when that was written; 0 for an old file that a disk gave back."""
        self.checkpointed_high_watermark = high_watermark
        self._checkpointed = number

    def open(self, high_watermark: int, number: int) -> None:
        """Begin with the high watermark of the checkpoint, which has passed nothing that was stored after it was written.

        A log that loses its end with its power, or is truncated, and is appended to again has other records below it. Which transactions
        have ended is read again, and no marker above it is taken for committed.
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
        """Set the high watermark, and note which records it has passed.

        The high watermark that a leader reports is about the leader's log, so it vouches for nothing below
        *leader_log_start*. A follower that was deposed can still have records of its own there: the leader cannot tell
        where the logs parted once it has deleted its records, and the follower truncates no further than its log start.
        """
        self.high_watermark = high_watermark
        self.stable_offset = max(high_watermark, self.stable_offset)
        self.commit_unvouched(number, leader_log_start)
        if self.log:
            self.commit(number, leader_log_start)

    def commit_unvouched(self, number: int, leader_log_start: int = 0) -> None:
        """Commit what the high watermark had passed without vouching for it: the replica leads, or its leader vouches."""
        left: list[LogEntry] = []
        for entry in self._unvouched:
            if entry.removed is not None:
                continue
            if entry.offset < leader_log_start or entry.offset >= self.high_watermark:
                left.append(entry)
            else:
                entry.committed = number
        self._unvouched = left

    def commit(self, number: int, leader_log_start: int = 0) -> None:
        """Note which records the high watermark has passed: it can be above a log whose append follows in the trace."""
        log, count = self.log, self._committed
        while count < len(log) and log[count].offset < self.high_watermark:
            if log[count].offset < leader_log_start:
                self._unvouched.append(log[count])
            else:
                log[count].committed = number
            count += 1
        self._committed = count

    def cut(self, leo: int, number: int, at_us: int, cause: str, reason: str) -> None:
        """Remove what there is from *leo* on, and keep it as lost."""
        kept = bisect_left(self.log, leo, key=_offset_of)
        for entry in self.log[kept:]:
            entry.removed = RemovedEntry(
                entry=entry,
                leo=self.leo,
                to_offset=leo,
                high_watermark=self.high_watermark,
                leader=self.leader,
                number=number,
                at_us=at_us,
                cause=cause,
                reason=reason,
                committed=entry.offset < self.high_watermark,
            )
            self.removed.append(entry.removed)
        del self.log[kept:]
        self.leo = leo
        self.log_start = min(self.log_start, leo)
        del self._given_up[bisect_left(self._given_up, leo, key=_offset_of) :]
        if self.transactions:
            self._cut_transactions(leo)
        if cause == TRUNCATED:
            # What goes with power or disk goes from a log without a process: the watermark stays what it had.
            self.high_watermark = min(self.high_watermark, leo)
        # What is left of the log is read again (``ProducerStateManager.truncateAndReload``).
        self.stable_offset = min(self.high_watermark, leo)
        self.flushed = min(self.flushed, leo)
        self._committed = min(self._committed, kept)

    def _cut_transactions(self, leo: int) -> None:
        self.transactions = [known for known in self.transactions if known.first_offset < leo]
        for known in self.transactions:
            if known.marker_offset is not None and known.marker_offset >= leo:
                known.marker_offset, known.is_committed = None, False

    def begin_at(self, log_start: int, number: int, at_us: int, reason: str) -> None:
        """Remove what there is below *log_start*, and keep it as deleted."""
        self.log_start = log_start
        kept = bisect_left(self.log, log_start, key=_offset_of)
        for entry in self.log[:kept]:
            entry.removed = RemovedEntry(
                entry=entry,
                leo=self.leo,
                to_offset=log_start,
                high_watermark=self.high_watermark,
                leader=self.leader,
                number=number,
                at_us=at_us,
                cause=RETENTION,
                reason=reason,
                committed=entry.offset < self.high_watermark,
            )
            self.removed.append(entry.removed)
        self._given_up += self.log[:kept]
        del self.log[:kept]
        self._committed = max(0, self._committed - kept)

    def compact(self, offsets: Iterable[int], to_offset: int, number: int, at_us: int) -> None:
        """Remove the records at some offsets; the others stay where they are."""
        gone = set(offsets)
        kept: list[LogEntry] = []
        committed = 0
        for place, entry in enumerate(self.log):
            if entry.offset not in gone:
                kept.append(entry)
                continue
            committed += place < self._committed
            entry.removed = RemovedEntry(
                entry=entry,
                leo=self.leo,
                to_offset=to_offset,
                high_watermark=self.high_watermark,
                leader=self.leader,
                number=number,
                at_us=at_us,
                cause=COMPACTION,
                reason="compacted",
                committed=entry.offset < self.high_watermark,
            )
            self.removed.append(entry.removed)
        self.log[:] = kept
        self._committed -= committed

    def forget_given_up(self) -> None:
        """The log has been dropped, with what it had given up before."""
        self._given_up.clear()

    def begin_again_at(self, log_start: int, number: int, at_us: int) -> list[LogEntry]:
        """Have again what was given up from *log_start* on and is on the disk still; return these copies."""
        again = [
            replace(entry, number=number, at_us=at_us, is_copy=True, removed=None)
            for entry in self._given_up
            if entry.offset >= log_start
        ]
        self.log[:0] = again
        self.log_start = log_start
        self._given_up.clear()
        self._committed += len(again)
        self._unvouched += [entry for entry in again if not entry.is_committed]
        return again

    def close(self) -> None:
        """The broker has stopped: what only its process knew is gone."""
        self.is_open = False
        self.role = NO_ROLE
        self.leader = NO_LEADER
        self.leader_epoch = NO_EPOCH
        self.isr = ()
        self.remote = {}


_offset_of: Final = attrgetter("offset")


@dataclass(slots=True, eq=False)
class PartitionState:
    """A partition: what the control plane has of it, its replicas, and what became of what was sent to it.

    ``leader``, ``leader_epoch`` and ``isr`` are as in the state znode. ``assigned`` are the brokers that shall have
    a replica, in the order of the assignment. By value there are ``acks`` and ``sends``, in the order of sending,
    and in ``by_value`` every copy that ever was in a log, in the order of storing. ``reads`` are by
    (offset, value), then by the consumer's name. ``keys`` are those of the records that have one, and ``by_key`` the other
    way round. ``reelection_forgets_remote`` says whether a leader that is elected again without having followed forgets how far its
    followers are: no release does.
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
        """Return a broker's replica; one that is not known yet begins empty."""
        found = self.replicas.get(broker)
        if found is None:
            found = self.replicas[broker] = ReplicaState(broker)
        return found

    def leading(self) -> ReplicaState | None:
        """Return the replica that leads: the elected one once it knows, until then the last one that takes itself for the leader."""
        elected = self.replicas.get(self.leader)
        if elected is not None and elected.role == LEADER:
            return elected
        leaders = [replica for replica in self.replicas.values() if replica.role == LEADER]
        return max(leaders, key=attrgetter("leader_epoch"), default=None)

    def remote_leo(self, broker: int) -> int | None:
        """Return where the leader believes a follower's log to end; None where it knows nothing of it."""
        leading = self.leading()
        return None if leading is None else leading.remote.get(broker)

    # Logs

    def _append(self, number: int, batch: events.BatchAppended | events.BatchReplicated) -> None:
        replica = self.replica(batch.broker)
        if batch.base_offset < replica.leo:
            replica.cut(batch.base_offset, number, batch.at_us, TRUNCATED, "overwritten")
        for place, value in enumerate(batch.values):
            entry = LogEntry(
                offset=batch.base_offset + place,
                value=value,
                leader_epoch=batch.leader_epoch,
                producer_id=batch.producer_id,
                sequence=NO_SEQUENCE if batch.base_sequence == NO_SEQUENCE else batch.base_sequence + place,
                broker=batch.broker,
                number=number,
                at_us=batch.at_us,
                is_copy=isinstance(batch, events.BatchReplicated),
                batch=number,
            )
            replica.log.append(entry)
            self.by_value.setdefault(value, []).append(entry)
        replica.leo = batch.base_offset + record_count(batch.values)
        replica.commit(number)

    def _begin_transaction(self, _: int, event: events.TransactionBegun) -> None:
        begun = LogTransaction(event.producer_id, event.producer_epoch, event.first_offset)
        self.replica(event.broker).transactions.append(begun)

    def _end_transaction(self, _: int, event: events.TransactionMarkerWritten) -> None:
        for known in reversed(self.replica(event.broker).transactions):
            if known.producer_id == event.producer_id and known.marker_offset is None:
                known.marker_offset, known.is_committed = event.offset, event.committed
                return

    def _truncate(self, number: int, event: events.LogTruncated) -> None:
        self.replica(event.broker).cut(event.to_offset, number, event.at_us, TRUNCATED, event.reason)

    def _lose_unflushed(self, number: int, event: events.UnflushedLost) -> None:
        self.replica(event.broker).cut(event.from_offset, number, event.at_us, POWER_LOSS, "unflushed")

    def _lose_log(self, number: int, event: events.LogLost) -> None:
        replica = self.replica(event.broker)
        replica.cut(event.from_offset, number, event.at_us, DISK_LOSS, "disk lost")
        replica.checkpointed_high_watermark = 0

    def _delete(self, number: int, event: events.LogDeleted) -> None:
        replica = self.replica(event.broker)
        replica.cut(0, number, event.at_us, DELETED, "no replica any more")
        replica.high_watermark = replica.checkpointed_high_watermark = 0
        replica.close()

    def _assign(self, _: int, event: events.ReplicasAssigned) -> None:
        added = [broker for broker in event.replicas if broker not in self.assigned]
        self.assigned = event.replicas
        for replica in self.replicas.values():
            # A leader knows nothing of a new replica, even if it had known that broker's former one.
            replica.remote = {broker: leo for broker, leo in replica.remote.items() if broker not in added}

    def _damage(self, number: int, event: events.BatchDamaged) -> None:
        """Have all records of a batch be damaged: they came with one event."""
        replica = self.replica(event.broker)
        entry = replica.entry(event.offset)
        for other in replica.log if entry is not None else ():
            if entry is not None and other.batch == entry.batch and other.damaged is None:
                other.damaged = number

    def _raise_log_start(self, number: int, event: events.LogStartRaised) -> None:
        replica = self.replica(event.broker)
        replica.begin_at(event.offset, number, event.at_us, event.reason)
        if (
            event.offset > replica.leo
        ):  # Only its checkpoint says so: the log was opened without what was there.
            replica.forget_given_up()
            replica.leo = replica.flushed = event.offset

    def _revert_log_start(self, number: int, event: events.LogStartReverted) -> None:
        for entry in self.replica(event.broker).begin_again_at(event.to_offset, number, event.at_us):
            self.by_value.setdefault(entry.value, []).append(entry)

    def _compact(self, number: int, event: events.LogCleaned) -> None:
        self.replica(event.broker).compact(event.removed, event.to_offset, number, event.at_us)

    def _take_hole(self, _: int, event: events.HoleReplicated) -> None:
        replica = self.replica(event.broker)
        replica.leo = max(replica.leo, event.to_offset)

    def _learn_key(self, _: int, event: events.KeyedRecordSent) -> None:
        self.keys[event.value] = RecordKey(event.key, event.tombstone)
        self.by_key.setdefault(event.key, {})[event.value] = None

    def _start_anew(self, number: int, event: events.LogStartedAnew) -> None:
        replica = self.replica(event.broker)
        replica.begin_at(event.offset, number, event.at_us, LEADER_LOG_START)
        replica.forget_given_up()
        replica.transactions.clear()
        replica.leo = replica.flushed = replica.high_watermark = replica.stable_offset = event.offset

    def _cut_corruption(self, number: int, event: events.CorruptionCut) -> None:
        cause, reason = (POWER_LOSS, "torn") if event.torn else (CORRUPTION, "bad CRC")
        self.replica(event.broker).cut(event.from_offset, number, event.at_us, cause, reason)

    def _open(self, number: int, event: events.LogOpened) -> None:
        replica = self.replica(event.broker)
        if event.leo < replica.leo:
            replica.cut(event.leo, number, event.at_us, TRUNCATED, "not found again")
        replica.leo = event.leo
        replica.open(event.hw, number)

    def _flush(self, _: int, event: events.LogFlushed) -> None:
        self.replica(event.broker).flushed = event.offset

    def _set_high_watermark(self, number: int, event: events.HighWatermarkSet) -> None:
        replica = self.replica(event.broker)
        leading = self.replicas.get(replica.leader) if replica.role == FOLLOWER else None
        replica.raise_high_watermark(event.hw, number, 0 if leading is None else leading.log_start)

    # Leadership

    def _lead(self, number: int, event: events.BecameLeader) -> None:
        replica = self.replica(event.broker)
        replica.commit_unvouched(number)
        if replica.role != LEADER or self.reelection_forgets_remote:
            replica.remote = {}
        replica.role, replica.leader, replica.leader_epoch = LEADER, event.broker, event.leader_epoch
        replica.isr = event.isr

    def _follow(self, _: int, event: events.BecameFollower) -> None:
        replica = self.replica(event.broker)
        replica.role, replica.leader, replica.leader_epoch = FOLLOWER, event.leader, event.leader_epoch
        replica.isr = ()

    def _note_fetch(self, _: int, event: events.FollowerFetched) -> None:
        self.replica(event.broker).remote[event.replica] = event.offset

    def _learn_isr(self, _: int, event: events.IsrChanged) -> None:
        self.replica(event.broker).isr = event.isr

    def _elect(self, number: int, event: events.LeaderElected) -> None:
        self.leader, self.leader_epoch, self.isr = event.leader, event.leader_epoch, event.isr
        self.elections.append(TraceLine(number, event))

    def _reduce_isr(self, _: int, event: events.IsrReduced) -> None:
        self.leader, self.leader_epoch, self.isr = event.leader, event.leader_epoch, event.isr

    def _write_isr(self, _: int, event: events.IsrWritten) -> None:
        self.leader, self.leader_epoch, self.isr = event.broker, event.leader_epoch, event.isr

    # Clients

    def _acknowledge(self, number: int, event: events.BatchAcknowledged) -> None:
        isr = self.replica(event.broker).isr
        for offset, value in enumerate(event.values, event.base_offset):
            ack = Ack(
                number=number, at_us=event.at_us, broker=event.broker, offset=offset, acks=event.acks, isr=isr
            )
            self.acks.setdefault(value, []).append(ack)

    def _send(self, _: int, event: events.ClientSent) -> None:
        self.sends.setdefault(event.value, []).append(SendState(event.client, event.value, event.at_us))

    def _end_send(self, _: int, event: events.ClientEnded) -> None:
        for send in self.sends.get(event.value, ()):
            if send.status == SENDING and send.client == event.client:
                send.status, send.ended_us = event.status, event.at_us
                send.offset, send.error = event.offset, event.error
                return

    def _read(self, number: int, event: events.ClientPolled) -> None:
        for record in event.records:
            by_client = self.reads.setdefault(record, {})
            by_client.setdefault(event.client, Read(number, event.at_us, event.client)).times += 1

    HANDLERS: ClassVar[Mapping[type[events.Event], Callable[..., None]]] = {
        events.BatchAppended: _append,
        events.BatchReplicated: _append,
        events.TransactionBegun: _begin_transaction,
        events.TransactionMarkerWritten: _end_transaction,
        events.LogTruncated: _truncate,
        events.UnflushedLost: _lose_unflushed,
        events.LogLost: _lose_log,
        events.LogDeleted: _delete,
        events.ReplicasAssigned: _assign,
        events.CorruptionCut: _cut_corruption,
        events.BatchDamaged: _damage,
        events.LogStartRaised: _raise_log_start,
        events.LogStartReverted: _revert_log_start,
        events.LogStartedAnew: _start_anew,
        events.LogCleaned: _compact,
        events.HoleReplicated: _take_hole,
        events.KeyedRecordSent: _learn_key,
        events.LogOpened: _open,
        events.LogFlushed: _flush,
        events.HighWatermarkSet: _set_high_watermark,
        events.BecameLeader: _lead,
        events.BecameFollower: _follow,
        events.FollowerFetched: _note_fetch,
        events.IsrChanged: _learn_isr,
        events.IsrWritten: _write_isr,
        events.LeaderElected: _elect,
        events.IsrReduced: _reduce_isr,
        events.BatchAcknowledged: _acknowledge,
        events.ClientSent: _send,
        events.ClientEnded: _end_send,
        events.ClientPolled: _read,
    }
    """What each kind of event changes: called with its number and the event."""
