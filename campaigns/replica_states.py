"""What one partition is at a moment of a run: its replicas' logs, and what its clients know of them.

A trace is replayed event by event; `campaigns.cluster_states` has the cluster around it. A run from
memory and one from disk are told by the same events (`campaigns.run_events`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

from cluster_model.record_batch import NO_SEQUENCE
from cluster_model.trace import TraceEvent

NO_LEADER: Final = -1
NO_EPOCH: Final = -1

LEADER: Final = "leader"
FOLLOWER: Final = "follower"
NO_ROLE: Final = ""

TRUNCATED: Final = "truncated"
POWER_LOSS: Final = "power loss"

SENDING: Final = "sending"
ACKED: Final = "acked"
FAILED: Final = "failed"
UNKNOWN: Final = "unknown"
"""A send that ended with an error although its record may be in a log."""


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A record in a log. ``producer_id`` and ``sequence`` are -1 without idempotence.

    Two are equal when they are the same record, however they came there: ``is_copy`` says that it was
    fetched from a leader, ``number`` and ``at_us`` when it was stored, which is no part of it.
    """

    offset: int
    value: str
    leader_epoch: int
    producer_id: int
    sequence: int
    number: int = field(default=0, compare=False)
    at_us: int = field(default=0, compare=False)
    is_copy: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovedEntry:
    """A record that a replica no longer has.

    ``cause`` is `TRUNCATED` or `POWER_LOSS`; ``reason`` is what a truncation went by ("high watermark",
    "leader epoch", "out of range"). ``committed`` says whether the replica's own high watermark had
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
    """A broker answered a producer that a record is stored. ``acks`` is -1 for all, else 1.

    ``isr`` is the ISR as the broker knew it then.
    """

    number: int
    at_us: int
    broker: int
    acks: int
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A consumer's poll returned a record: when it first did, and how often so far."""

    number: int
    at_us: int
    client: str
    times: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Election:
    """The controller chose a leader, and ZooKeeper has it. ``reason`` is why there had to be one."""

    number: int
    at_us: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    unclean: bool
    reason: str


@dataclass(slots=True)
class SendState:
    """What a producer's application knows of a record that it sent.

    ``status`` is `SENDING`, `ACKED`, `FAILED` (it is in no log) or `UNKNOWN`. ``offset`` is what
    the producer was told, None where it was told none (acks=0, or no answer).
    """

    client: str
    value: str
    invoked_us: int
    status: str = SENDING
    ended_us: int | None = None
    offset: int | None = None
    error: str | None = None


class ReplicaState:
    """A replica of a partition on one broker.

    ``log`` has the records by offset. While the log is not ``is_open`` (its broker is down, or has
    not been told of the partition since it started) ``high_watermark`` and ``role`` mean nothing; the
    records are on the disk all the same, and ``checkpointed_high_watermark`` is what it will begin with.
    ``flushed`` is the offset below which power loss takes nothing. ``leader`` is whom the replica takes for the leader, ``isr`` the ISR as it knows it while
    it leads. ``removed`` are the records that it has lost, in the order in which it lost them.
    """

    __slots__ = (
        "broker",
        "checkpointed_high_watermark",
        "flushed",
        "high_watermark",
        "is_open",
        "isr",
        "leader",
        "leader_epoch",
        "log",
        "removed",
        "role",
    )

    def __init__(self, broker: int) -> None:
        self.broker = broker
        self.log: list[LogEntry] = []
        self.high_watermark = 0
        self.checkpointed_high_watermark = 0
        self.flushed = 0
        self.is_open = False
        self.role = NO_ROLE
        self.leader = NO_LEADER
        self.leader_epoch = NO_EPOCH
        self.isr: tuple[int, ...] = ()
        self.removed: list[RemovedEntry] = []

    @property
    def leo(self) -> int:
        """The log end offset: the next record's."""
        return len(self.log)

    @property
    def known_high_watermark(self) -> int:
        """The high watermark, of a log that is not open the one that it will begin with."""
        return self.high_watermark if self.is_open else self.checkpointed_high_watermark

    @property
    def lso(self) -> int:
        """The last stable offset. Transactions are not modelled yet, so it is the high watermark."""
        return self.high_watermark

    def entry(self, offset: int) -> LogEntry | None:
        """Return the record at an offset, None past the end."""
        return self.log[offset] if 0 <= offset < len(self.log) else None

    def removed_at(self, offset: int) -> list[RemovedEntry]:
        """Return the records that stood at an offset once, in the order in which they went."""
        return [gone for gone in self.removed if gone.entry.offset == offset]

    def close(self) -> None:
        """The broker has stopped: what only its process knew is gone."""
        self.is_open = False
        self.role = NO_ROLE
        self.leader = NO_LEADER
        self.isr = ()


class PartitionState:
    """A partition: what ZooKeeper has of it, its replicas, and what became of what was sent to it.

    ``leader``, ``leader_epoch`` and ``isr`` are as in the state znode. ``assigned`` are the brokers
    that shall have a replica, in the order of the assignment. ``acks`` and ``reads`` are by (offset, value),
    ``reads`` then by the consumer's name; ``sends`` are by value, in the order of sending.
    """

    __slots__ = (
        *("acks", "assigned", "elections", "isr", "leader", "leader_epoch"),
        *("name", "reads", "replicas", "sends"),
    )

    def __init__(self, name: str, assigned: Sequence[int] = ()) -> None:
        self.name = name
        self.assigned = tuple(assigned)
        self.leader = NO_LEADER
        self.leader_epoch = NO_EPOCH
        self.isr: tuple[int, ...] = ()
        self.elections: list[Election] = []
        self.replicas = {broker: ReplicaState(broker) for broker in assigned}
        self.acks: dict[tuple[int, str], list[Ack]] = {}
        self.reads: dict[tuple[int, str], dict[str, Read]] = {}
        self.sends: dict[str, list[SendState]] = {}

    def replica(self, broker: int) -> ReplicaState:
        """Return a broker's replica; one that nobody knew of begins empty."""
        found = self.replicas.get(broker)
        if found is None:
            found = self.replicas[broker] = ReplicaState(broker)
        return found

    def replay(self, number: int, event: TraceEvent) -> None:
        """Take an event of this partition into account; one that changes nothing here is passed over."""
        apply = self._REPLAY.get(event[1])
        if apply is not None:
            apply(self, number, event)

    # Logs

    def _store(self, number: int, event: TraceEvent) -> None:
        at_us, name, broker, _, base_offset, leader_epoch, producer_id, base_sequence, values = event
        replica = self.replica(broker)
        _cut(replica, base_offset, number, event, TRUNCATED, "overwritten")
        for index, value in enumerate(values):
            sequence = NO_SEQUENCE if base_sequence == NO_SEQUENCE else base_sequence + index
            replica.log.append(
                LogEntry(
                    base_offset + index,
                    value,
                    leader_epoch,
                    producer_id,
                    sequence,
                    number,
                    at_us,
                    name == "replicate",
                )
            )

    def _truncate(self, number: int, event: TraceEvent) -> None:
        _, _, broker, _, _, to_offset, reason = event
        _cut(self.replica(broker), to_offset, number, event, TRUNCATED, reason)

    def _lose_unflushed(self, number: int, event: TraceEvent) -> None:
        _, _, broker, _, from_offset, _ = event
        _cut(self.replica(broker), from_offset, number, event, POWER_LOSS, "unflushed")

    def _recover(self, _: int, event: TraceEvent) -> None:
        _, _, broker, _, _, high_watermark = event
        replica = self.replica(broker)
        replica.is_open = True
        replica.high_watermark = high_watermark

    def _flush(self, _: int, event: TraceEvent) -> None:
        self.replica(event[2]).flushed = event[4]

    def _set_high_watermark(self, _: int, event: TraceEvent) -> None:
        self.replica(event[2]).high_watermark = event[4]

    # Leadership

    def _lead(self, _: int, event: TraceEvent) -> None:
        _, _, broker, _, leader_epoch, _, isr = event
        replica = self.replica(broker)
        replica.role, replica.leader, replica.leader_epoch, replica.isr = LEADER, broker, leader_epoch, isr

    def _follow(self, _: int, event: TraceEvent) -> None:
        _, _, broker, _, leader_epoch, leader = event
        replica = self.replica(broker)
        replica.role, replica.leader, replica.leader_epoch, replica.isr = FOLLOWER, leader, leader_epoch, ()

    def _learn_isr(self, _: int, event: TraceEvent) -> None:
        self.replica(event[2]).isr = event[5]

    def _elect(self, number: int, event: TraceEvent) -> None:
        at_us, _, _, _, self.leader, self.leader_epoch, self.isr, unclean, reason = event
        self.elections.append(
            Election(
                number=number,
                at_us=at_us,
                leader=self.leader,
                leader_epoch=self.leader_epoch,
                isr=self.isr,
                unclean=unclean,
                reason=reason,
            )
        )

    def _reduce_isr(self, _: int, event: TraceEvent) -> None:
        _, _, _, _, self.leader, self.leader_epoch, self.isr = event

    def _write_isr(self, _: int, event: TraceEvent) -> None:
        _, _, self.leader, _, self.leader_epoch, self.isr = event

    # Clients

    def _acknowledge(self, number: int, event: TraceEvent) -> None:
        at_us, _, broker, _, base_offset, acks, values = event
        isr = self.replica(broker).isr
        for offset, value in enumerate(values, base_offset):
            ack = Ack(number=number, at_us=at_us, broker=broker, acks=acks, isr=isr)
            self.acks.setdefault((offset, value), []).append(ack)

    def _send(self, _: int, event: TraceEvent) -> None:
        at_us, _, client, _, value = event
        self.sends.setdefault(value, []).append(SendState(client, value, at_us))

    def _end_send(self, _: int, event: TraceEvent) -> None:
        at_us, _, client, _, value, status, offset, error = event
        pending = [
            send for send in self.sends.get(value, ()) if send.status == SENDING and send.client == client
        ]
        for send in pending[:1]:
            send.status, send.ended_us, send.offset, send.error = status, at_us, offset, error

    def _read(self, number: int, event: TraceEvent) -> None:
        at_us, _, client, _, records = event
        for record in records:
            by_client = self.reads.setdefault(record, {})
            earlier = by_client.get(client)
            if earlier is None:
                by_client[client] = Read(number=number, at_us=at_us, client=client)
            else:
                by_client[client] = Read(
                    number=earlier.number, at_us=earlier.at_us, client=client, times=earlier.times + 1
                )

    _REPLAY: ClassVar[Mapping[str, Callable[["PartitionState", int, TraceEvent], None]]] = {
        "append": _store,
        "replicate": _store,
        "truncate": _truncate,
        "unflushed_lost": _lose_unflushed,
        "recover": _recover,
        "flush": _flush,
        "hw": _set_high_watermark,
        "leader": _lead,
        "follower": _follow,
        "isr": _learn_isr,
        "isr_written": _write_isr,
        "election": _elect,
        "isr_reduced": _reduce_isr,
        "acknowledged": _acknowledge,
        "client_sent": _send,
        "client_ended": _end_send,
        "client_polled": _read,
    }


def _cut(replica: ReplicaState, leo: int, number: int, event: TraceEvent, cause: str, reason: str) -> None:
    """Remove what a replica has from *leo* on, and keep it as lost."""
    before = replica.leo
    for entry in replica.log[leo:]:
        replica.removed.append(
            RemovedEntry(
                entry=entry,
                leo=before,
                to_offset=leo,
                high_watermark=replica.high_watermark,
                leader=replica.leader,
                number=number,
                at_us=event[0],
                cause=cause,
                reason=reason,
                committed=entry.offset < replica.high_watermark,
            )
        )
    del replica.log[leo:]
    replica.high_watermark = min(replica.high_watermark, replica.leo)
    replica.flushed = min(replica.flushed, replica.leo)
