"""What can happen in a run: each kind of event, declared once, with the kind of each of its fields.

A trace keeps an event as a tuple, ``(at_us, name, *fields)``: a run emits thousands, and making an object of
each costs several times as much. `Event` classes are how code speaks of them: actors emit them by
``host.emit(HighWatermarkSet, broker, partition, hw)``, subscribers and replays get the fields as arguments,
and `harrow.cluster_model.trace.select` makes objects of those that somebody looks at. mypy holds all three to
the declaration.

A new kind of event is a class here, or anywhere, below ``@event(NAME)``. Its declaration also says who sees such
events (`Sight`) and which part of Kafka they are ``of``: whatever needs to know reads it from there.
"""

# Plain Python: classes below a decorator of harrow, and metadata of fields.

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from enum import Enum, IntEnum, unique
from typing import Annotated, Any, ClassVar, Final, TypeVar, dataclass_transform, get_args, get_type_hints

from harrow.cluster_model.protocol import LeaderAndIsr
from harrow.cluster_model.registry import Registry, derived
from harrow.cluster_model.topology import CONSUMER_OFFSETS, KRAFT, TRANSACTION_STATE, ZOOKEEPER


@unique
class FieldKind(Enum):
    """What a field of an event holds; everything that reads traces goes by this, and by no field's name."""

    BROKER = "broker"
    BROKERS = "brokers"
    CLIENT = "client"
    PROCESS = "process"
    PARTITION = "partition"
    OFFSET = "offset"
    EPOCH = "epoch"
    NUMBER = "number"
    FLAG = "flag"
    VALUES = "values"
    RECORDS = "records"
    TEXT = "text"
    TEXTS = "texts"
    PAIRS = "pairs"
    OBJECT = "object"


@unique
class FieldTrait(Enum):
    """What else readers must know of a field, beside its kind."""

    NAMES_CONTROLLER = "names a controller: a broker with ZooKeeper, a voter of the quorum in KRaft"
    MAY_BE_EMPTY = "is empty on real brokers where neither their logs nor their coordinators tell"


@unique
class Sight(IntEnum):
    """In which runs the trace has events of a kind; each place sees whatever those after it see."""

    MODEL = 0
    """The model alone: nothing that watches real brokers reports such events."""
    STARTED_BROKERS = 1
    """Also brokers that harrow has started, with their disks, their logs and a proxy in front of each."""
    ANY_BROKERS = 2
    """Also a cluster of the user's: metadata, offsets, clients and what harrow itself does show them."""


STARTED_BROKERS: Final = Sight.STARTED_BROKERS
ANY_BROKERS: Final = Sight.ANY_BROKERS

NO_CONTROLLER: Final = -1

KILLED: Final = "process"
POWER_LOSS: Final = "power_loss"
SHUT_DOWN: Final = "shutdown"
"""How a broker stops: it is killed, its machine has no power any more, or it ends in good order."""

BrokerId = Annotated[int, FieldKind.BROKER]
"""A broker's id, -1 for none."""
ControllerId = Annotated[int, FieldKind.BROKER, FieldTrait.NAMES_CONTROLLER]
Brokers = Annotated[tuple[int, ...], FieldKind.BROKERS]
ClientName = Annotated[str, FieldKind.CLIENT]
ProcessName = Annotated[str, FieldKind.PROCESS]
"""``broker-1``, ``zookeeper``, or the name of a client."""
PartitionName = Annotated[str, FieldKind.PARTITION]
"""``t-0``; empty for what is about no partition."""
Offset = Annotated[int, FieldKind.OFFSET]
Offsets = Annotated[tuple[int, ...], FieldKind.OBJECT]
Epoch = Annotated[int, FieldKind.EPOCH]
Number = Annotated[int, FieldKind.NUMBER]
Strike = Annotated[int | None, FieldKind.NUMBER]
"""Which fault of a run it comes from, by the number of its strike; None where it comes from none."""
Flag = Annotated[bool, FieldKind.FLAG]
Values = Annotated[tuple[str, ...], FieldKind.VALUES]
"""The values of a batch's records, in order; none for a control batch, which takes one offset all the same."""
Records = Annotated[tuple[tuple[int, str], ...], FieldKind.RECORDS]
"""Records as (offset, value)."""
Text = Annotated[str, FieldKind.TEXT]
UnsureText = Annotated[str, FieldKind.TEXT, FieldTrait.MAY_BE_EMPTY]
Texts = Annotated[tuple[str, ...], FieldKind.TEXTS]
Pairs = Annotated[tuple[tuple[str, Any], ...], FieldKind.PAIRS]
"""Names with their values."""


@dataclass(slots=True, eq=False, repr=False)
class Event:  # noqa: PLW1641 - like any dataclass that can change it has no hash
    """Something that happened. ``at_us`` is virtual time.

    ``seen_by`` says in which runs a trace has such events. Some happen only with one control plane, or in a cluster whose
    clients use one internal topic: ``of`` names it, and is None for all others.

    What tests and debuggers ask of an event stands here once. A dataclass has its methods compiled for each class,
    whenever it is imported, and there are dozens of kinds.
    """

    name: ClassVar[str]
    seen_by: ClassVar[Sight]
    of: ClassVar[str | None]
    at_us: int

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, item.name) == getattr(other, item.name) for item in fields(self))

    def __repr__(self) -> str:
        values = ", ".join(f"{item.name}={getattr(self, item.name)!r}" for item in fields(self))
        return f"{type(self).__qualname__}({values})"


E = TypeVar("E", bound=Event)


EVENTS: Final[Registry[str, type[Event]]] = Registry()
"""Every kind of event that a trace may have, by the name that campaigns and ``trace.jsonl`` use."""

HISTORY_EVENTS: Final[dict[str, type[Event]]] = {}
"""The kinds of events that are made of a history; where a run is replayed, they stand among those of its trace."""


@dataclass_transform()
def event(name: str, *, seen_by: Sight = Sight.MODEL, of: str | None = None) -> Callable[[type[E]], type[E]]:
    """Declare a kind of event that a trace may have."""
    return _declare(name, EVENTS, seen_by, of)


@dataclass_transform()
def history_event(name: str) -> Callable[[type[E]], type[E]]:
    """Declare a kind of event that no trace has: it is made of a history."""
    return _declare(name, HISTORY_EVENTS, Sight.ANY_BROKERS)


@dataclass_transform()
def notice(name: str, *, of: str | None = None) -> Callable[[type[E]], type[E]]:
    """Declare what the model tells its subscribers, and no trace keeps."""
    return _declare(name, {}, Sight.MODEL, of)


def _declare(
    name: str, catalogue: dict[str, type[Event]], seen_by: Sight, of: str | None = None
) -> Callable[[type[E]], type[E]]:
    def declare(kind: type[E]) -> type[E]:
        declared = dataclass(slots=True, eq=False, repr=False)(kind)
        declared.name, declared.seen_by, declared.of = name, seen_by, of
        catalogue[name] = declared
        return declared

    return declare


# Processes and sessions


@event("broker_started", seen_by=ANY_BROKERS)
class BrokerStarted(Event):
    """A broker's process has begun."""

    broker: BrokerId


@event("broker_stopped", seen_by=ANY_BROKERS)
class BrokerStopped(Event):
    """A broker's process has ended; ``cause`` is ``process``, ``power_loss``, or ``shutdown`` where it ended by itself."""

    broker: BrokerId
    cause: Text


@event("broker_stopping", seen_by=ANY_BROKERS)
class BrokerStopping(Event):
    """A broker's process has been told to stop (SIGTERM), or stops by itself."""

    broker: BrokerId


@event("controlled_shutdown")
class ControlledShutdownBegun(Event):
    """A controller begins to take a broker out of service that is about to stop."""

    controller: ControllerId
    broker: BrokerId


@event("controlled_shutdown_answered", of=ZOOKEEPER)
class ControlledShutdownAnswered(Event):
    """A broker that stops has the outcome of an attempt to have its leaderships moved.

    ``remaining`` are the partitions that it still leads. ``controller`` is -1 where there was none to ask;
    ``error`` is ``NETWORK_EXCEPTION`` where the controller did not answer.
    """

    broker: BrokerId
    controller: BrokerId
    attempt: Number
    error: Text
    remaining: Texts


@event("controlled_shutdown_given_up", of=ZOOKEEPER)
class ControlledShutdownGivenUp(Event):
    """A broker stops without a controller that has moved all leaderships away."""

    broker: BrokerId
    attempts: Number


@event("broker_paused", seen_by=ANY_BROKERS)
class BrokerPaused(Event):
    """A broker's process stands still."""

    broker: BrokerId


@event("broker_resumed", seen_by=ANY_BROKERS)
class BrokerResumed(Event):
    """A paused broker goes on."""

    broker: BrokerId


@event("broker_registered", seen_by=ANY_BROKERS)
class BrokerRegistered(Event):
    """The control plane has a broker's registration, whether the broker knows yet or not."""

    broker: BrokerId
    broker_epoch: Epoch


@event("client_stopped", seen_by=ANY_BROKERS)
class ClientStopped(Event):
    """A client's application has died."""

    client: ClientName


REGISTRATION: Final = "registration"
"""What a broker of KRaft has in place of ``/brokers/ids/N``."""


def ends_registration(broker: int, ephemerals: tuple[str, ...]) -> bool:
    """Return whether a broker is registered no more without these."""
    return REGISTRATION in ephemerals or f"/brokers/ids/{broker}" in ephemerals


@event("session_expired", seen_by=ANY_BROKERS)
class SessionExpired(Event):
    """ZooKeeper has ended a session, or the controller of KRaft has fenced a broker that it has not heard of for too long.

    ``ephemerals`` are the paths of the znodes that went with it: a broker that restarts soon has an older
    session beside its own, which may hold nothing. In KRaft it is the word ``registration``.
    """

    broker: BrokerId
    ephemerals: Texts


@event("session_closed", seen_by=ANY_BROKERS)
class SessionClosed(Event):
    """A broker has closed its session, in KRaft by a controlled shutdown; ``ephemerals`` are the paths of the znodes that went with it, at once, in KRaft ``registration``."""

    broker: BrokerId
    ephemerals: Texts


@event("ensemble_leader_elected", of=ZOOKEEPER)
class EnsembleLeaderElected(Event):
    """A server of a ZooKeeper ensemble leads a majority of it: from now on it decides, and sessions have their timeouts anew."""

    server: ProcessName
    epoch: Epoch


@event("ensemble_server_suspended", of=ZOOKEEPER)
class EnsembleServerSuspended(Event):
    """A server of a ZooKeeper ensemble has lost its leader, or its followers: it closes its clients' connections and serves no client."""

    server: ProcessName


# Faults and single messages


@event("fault", seen_by=ANY_BROKERS)
class FaultStruck(Event):
    """A fault has struck.

    ``strike`` numbers the faults of a run that struck, from 1, so that what they do later, and their ends,
    name what struck.
    """

    fault: Text
    phase: Text
    details: Pairs
    strike: Number


@event("fault_ended", seen_by=ANY_BROKERS)
class FaultEnded(Event):
    """A fault that lasts is over."""

    fault: Text
    details: Pairs
    strike: Number


@event("healed", seen_by=ANY_BROKERS)
class Healed(Event):
    """Every fault has been ended, and what was down started."""


@event("message", seen_by=STARTED_BROKERS)
class MessageDelivered(Event):
    """A message has arrived; only where a campaign waits for messages."""

    api: Text
    kind: Text
    sender: ProcessName
    receiver: ProcessName


@event("message_rule", seen_by=STARTED_BROKERS)
class MessageRuleApplied(Event):
    """A rule for single messages has met one."""

    rule: Text
    action: Text
    api: Text
    kind: Text
    sender: ProcessName
    receiver: ProcessName
    strike: Strike


@event("clock_stepped")
class ClockStepped(Event):
    """The clock of a machine has jumped; ``skew_us`` is how far it is ahead of the true time now, behind it where that is negative."""

    process: ProcessName
    by_us: Number
    skew_us: Number


@event("core_healed", seen_by=ANY_BROKERS)
class CoreHealed(Event):
    """A sufficient core of the brokers has been healed, the others not."""

    brokers: Brokers


# Controller


@event("metadata_snapshot_taken", of=KRAFT)
class MetadataSnapshotTaken(Event):
    """A node has written a snapshot of what the metadata log says below an offset; ``epoch`` is that of the last record in it."""

    broker: BrokerId
    end_offset: Offset
    epoch: Epoch


@event("metadata_snapshot_fetched", of=KRAFT)
class MetadataSnapshotFetched(Event):
    """A node whose log ended at an offset where the leader's had not begun, or parted from it before that, begins anew with a snapshot."""

    broker: BrokerId
    leader: BrokerId
    log_end: Offset
    end_offset: Offset
    epoch: Epoch


@event("metadata_log_start", of=KRAFT)
class MetadataLogStarted(Event):
    """A node has deleted old snapshots, and what its metadata log had below the oldest that is left."""

    broker: BrokerId
    log_start: Offset
    leo: Offset


@event("controller_elected", seen_by=ANY_BROKERS)
class ControllerElected(Event):
    """A broker has learned that it is controller."""

    broker: ControllerId
    controller_epoch: Epoch


@event("controller_resigned", seen_by=STARTED_BROKERS)
class ControllerResigned(Event):
    """A broker no longer takes itself for the controller."""

    broker: ControllerId
    controller_epoch: Epoch


@event("controller_changed", seen_by=ANY_BROKERS)
class ControllerChanged(Event):
    """The control plane has another controller, or none (-1); brokers may not know it yet."""

    controller: ControllerId
    controller_epoch: Epoch


@event("controller_znode_deleted", seen_by=STARTED_BROKERS)
class ControllerZnodeDeleted(Event):
    """Somebody has deleted ``/controller``; the broker that stood there does not know it yet."""

    broker: BrokerId


@event("election", seen_by=ANY_BROKERS)
class LeaderElected(Event):
    """A partition has got a leader, or none (-1): the control plane has it, and brokers may not know it yet."""

    controller: ControllerId
    partition: PartitionName
    leader: BrokerId
    leader_epoch: Epoch
    isr: Brokers
    unclean: Flag
    reason: UnsureText


@event("isr_reduced", seen_by=ANY_BROKERS)
class IsrReduced(Event):
    """A controller has taken a replica out of an ISR."""

    controller: ControllerId
    partition: PartitionName
    leader: BrokerId
    leader_epoch: Epoch
    isr: Brokers


@event("assignment", seen_by=STARTED_BROKERS)
class ReplicasAssigned(Event):
    """The control plane has other replicas for a partition; ``adding`` are those that are to join, ``removing`` those that are to go.

    Without either a reassignment is complete, or cancelled.
    """

    partition: PartitionName
    replicas: Brokers
    adding: Brokers
    removing: Brokers


# Replicas


@event("leader", seen_by=ANY_BROKERS)
class BecameLeader(Event):
    """A replica leads in this epoch from now on; ``start_offset`` is its LEO."""

    broker: BrokerId
    partition: PartitionName
    leader_epoch: Epoch
    start_offset: Offset
    isr: Brokers


@event("follower", seen_by=ANY_BROKERS)
class BecameFollower(Event):
    """A replica follows a leader."""

    broker: BrokerId
    partition: PartitionName
    leader_epoch: Epoch
    leader: BrokerId


@event("append", seen_by=STARTED_BROKERS)
class BatchAppended(Event):
    """A leader has appended a producer's batch."""

    broker: BrokerId
    partition: PartitionName
    base_offset: Offset
    leader_epoch: Epoch
    producer_id: Number
    base_sequence: Number
    values: Values


@event("replicate", seen_by=STARTED_BROKERS)
class BatchReplicated(Event):
    """A follower has appended a batch that it fetched."""

    broker: BrokerId
    partition: PartitionName
    base_offset: Offset
    leader_epoch: Epoch
    producer_id: Number
    base_sequence: Number
    values: Values


@event("transaction_begun", seen_by=STARTED_BROKERS, of=TRANSACTION_STATE)
class TransactionBegun(Event):
    """A log has got the first batch of a transaction: those of the same producer that follow are parts of it, until its marker.

    A leader has appended that batch, or a follower has copied it.
    """

    broker: BrokerId
    partition: PartitionName
    producer_id: Number
    producer_epoch: Epoch
    first_offset: Offset


@event("transaction_marker", seen_by=STARTED_BROKERS, of=TRANSACTION_STATE)
class TransactionMarkerWritten(Event):
    """A log has got the marker that ends a producer's transaction: a coordinator has had it appended, or a follower has copied it.

    ``first_offset`` is where the transaction began in this log, -1 where it has nothing of it.
    """

    broker: BrokerId
    partition: PartitionName
    producer_id: Number
    producer_epoch: Epoch
    first_offset: Offset
    offset: Offset
    committed: Flag
    coordinator_epoch: Epoch


@event("transaction_state", seen_by=STARTED_BROKERS, of=TRANSACTION_STATE)
class TransactionStateChanged(Event):
    """A coordinator has written what becomes of a transactional id: its producer, the state and the partitions of its transaction."""

    broker: BrokerId
    transactional_id: Text
    producer_id: Number
    producer_epoch: Epoch
    state: Text
    partitions: Texts


@event("duplicate_batch", seen_by=STARTED_BROKERS)
class BatchDeduplicated(Event):
    """A leader has recognised a batch that it has already."""

    broker: BrokerId
    partition: PartitionName
    producer_id: Number
    base_sequence: Number
    base_offset: Offset


@event("hw", seen_by=ANY_BROKERS)
class HighWatermarkSet(Event):
    """A replica's high watermark has changed."""

    broker: BrokerId
    partition: PartitionName
    hw: Offset


@event("isr", seen_by=ANY_BROKERS)
class IsrChanged(Event):
    """A leader has learned that an ISR of its making is written; ``change`` is ``expand`` or ``shrink``."""

    broker: BrokerId
    partition: PartitionName
    leader_epoch: Epoch
    isr: Brokers
    change: Text


@event("isr_written", seen_by=ANY_BROKERS)
class IsrWritten(Event):
    """The control plane has a leader's ISR, whether the leader hears of it or not."""

    broker: BrokerId
    partition: PartitionName
    leader_epoch: Epoch
    isr: Brokers


@event("isr_pending")
class IsrPending(Event):
    """A leader has asked for an ISR with another member, which counts from now on, written or not (KIP-497, from 2.7 on)."""

    broker: BrokerId
    partition: PartitionName
    leader_epoch: Epoch
    isr: Brokers


@event("isr_forgotten")
class IsrForgotten(Event):
    """A leader no longer waits for the ISR that it has asked for: the metadata log told it again of the one that it had, ``isr``."""

    broker: BrokerId
    partition: PartitionName
    leader_epoch: Epoch
    isr: Brokers


@event("isr_refused")
class IsrRefused(Event):
    """A leader has learned that an ISR of its making was not written."""

    broker: BrokerId
    partition: PartitionName
    leader_epoch: Epoch
    isr: Brokers
    change: Text


@event("truncate", seen_by=STARTED_BROKERS)
class LogTruncated(Event):
    """A replica has cut its log; ``reason`` is what it went by (high watermark, leader epoch, out of range)."""

    broker: BrokerId
    partition: PartitionName
    from_offset: Offset
    to_offset: Offset
    reason: UnsureText


@event("truncation_refused", seen_by=STARTED_BROKERS)
class TruncationRefused(Event):
    """A follower that is ahead of its leader does not truncate, for unclean elections are off: its broker stops itself.

    ``end_offset`` is where the leader's log ends, ``leo`` where its own does.
    """

    broker: BrokerId
    partition: PartitionName
    leader: BrokerId
    end_offset: Offset
    leo: Offset


@event("fetch_outdated")
class OutdatedFetchAnswered(Event):
    """A follower has the answer to a fetch of an older leader epoch, and still stands at the offset of that fetch.

    Whether it was ``taken`` depends on the release (KAFKA-18991).
    """

    broker: BrokerId
    partition: PartitionName
    leader: BrokerId
    fetch_epoch: Epoch
    leader_epoch: Epoch
    taken: Flag


@event("fetcher_failed")
class FetcherFailed(Event):
    """A follower has given a partition up: a batch does not begin where its log ends."""

    broker: BrokerId
    partition: PartitionName
    base_offset: Offset
    leo: Offset


@event("recover", seen_by=STARTED_BROKERS)
class LogOpened(Event):
    """A broker that has started has opened a log, with the high watermark of its checkpoint."""

    broker: BrokerId
    partition: PartitionName
    leo: Offset
    hw: Offset


@event("log_start", seen_by=STARTED_BROKERS)
class LogStartRaised(Event):
    """A replica has deleted what is below an offset, or lets no one read it any more.

    ``reason`` is ``retention.ms`` or ``retention.bytes``, or ``log start offset`` for that of its leader; ``bytes_left`` is how
    large the log is now.
    """

    broker: BrokerId
    partition: PartitionName
    offset: Offset
    reason: Text
    bytes_left: Number


@event("log_cleaned")
class LogCleaned(Event):
    """A replica has compacted its log: what has not been cleaned yet begins at ``from_offset``, and was cleaned up to ``to_offset``.

    ``removed`` are the offsets of the records that are gone, ``bytes_left`` is how large the log is now.
    """

    broker: BrokerId
    partition: PartitionName
    from_offset: Offset
    to_offset: Offset
    removed: Offsets
    bytes_left: Number


@event("hole_replicated")
class HoleReplicated(Event):
    """A follower has taken offsets over that its leader's log has compacted: its next one is ``to_offset``."""

    broker: BrokerId
    partition: PartitionName
    to_offset: Offset


@event("keyed_send")
class KeyedRecordSent(Event):
    """An application has handed a record with a key to its producer; a tombstone has no value, and ``value`` is what it is called."""

    client: ClientName
    partition: PartitionName
    value: Text
    key: Text
    tombstone: Flag


@event("producer_initialized", seen_by=STARTED_BROKERS, of=TRANSACTION_STATE)
class ProducerInitialized(Event):
    """A coordinator has given a producer with a transactional id an epoch: no former session of that id can write any more."""

    client: ClientName
    producer_id: Number
    producer_epoch: Number


@event("transaction_opened", of=TRANSACTION_STATE)
class TransactionOpened(Event):
    """An application has begun a transaction, which no broker knows of yet."""

    client: ClientName
    producer_id: Number
    producer_epoch: Number


@event("transaction_ending", of=TRANSACTION_STATE)
class TransactionEnding(Event):
    """An application commits its transaction, or aborts it: its producer sends what is left, and then asks the coordinator to."""

    client: ClientName
    committed: Flag


@event("transaction_reported", seen_by=STARTED_BROKERS, of=TRANSACTION_STATE)
class TransactionReported(Event):
    """An application has been told that its transaction is committed, or aborted."""

    client: ClientName
    committed: Flag


@event("transaction_error", seen_by=STARTED_BROKERS, of=TRANSACTION_STATE)
class TransactionError(Event):
    """A producer can do no more than abort its transaction, or with a ``fatal`` error nothing any more."""

    client: ClientName
    error: Text
    fatal: Flag


@event("log_started_anew")
class LogStartedAnew(Event):
    """A follower has dropped its log, which ended at ``leo``, to go on where its leader's begins: it was too far behind."""

    broker: BrokerId
    partition: PartitionName
    leo: Offset
    offset: Offset


@event("delete_records_obeyed", seen_by=STARTED_BROKERS)
class DeleteRecordsObeyed(Event):
    """A leader deletes records at an administrator's request: no client gets records below an offset any more (DeleteRecords, KIP-107)."""

    broker: BrokerId
    partition: PartitionName
    offset: Offset


@event("delete_records_answered", seen_by=STARTED_BROKERS)
class DeleteRecordsAnswered(Event):
    """An administrator hears what became of a DeleteRecords: all live replicas have deleted what is below an offset, or an error."""

    broker: BrokerId
    partition: PartitionName
    offset: Offset
    error: Text


@event("log_start_reverted", seen_by=STARTED_BROKERS)
class LogStartReverted(Event):
    """A broker that has started begins a log earlier than before: nothing of the later start was in a checkpoint yet."""

    broker: BrokerId
    partition: PartitionName
    from_offset: Offset
    to_offset: Offset


@event("offset_reset")
class OffsetReset(Event):
    """A consumer whose ``position`` is out of range, or that has none (-1), goes where ``auto.offset.reset`` says."""

    client: ProcessName
    partition: PartitionName
    position: Offset
    offset: Offset
    policy: Text


@event("unflushed_lost", seen_by=STARTED_BROKERS)
class UnflushedLost(Event):
    """Power loss has taken the end of a log."""

    broker: BrokerId
    partition: PartitionName
    from_offset: Offset
    to_offset: Offset


@event("log_lost", seen_by=STARTED_BROKERS)
class LogLost(Event):
    """A disk is gone, and a replica's log with it, from the one offset to the other."""

    broker: BrokerId
    partition: PartitionName
    from_offset: Offset
    to_offset: Offset


@event("metadata_log_lost", of=KRAFT)
class MetadataLogLost(Event):
    """A disk is gone, and with it what a controller of KRaft had of the metadata log, up to an offset, and its vote.

    ``is_kept`` says that a majority of the voters still has all that is committed: no controller is elected without it.
    """

    node: BrokerId
    end_offset: Offset
    is_kept: Flag


@event("log_deleted", seen_by=STARTED_BROKERS)
class LogDeleted(Event):
    """A broker has deleted the log of a replica that is no longer assigned to it; ``leo`` is where it ended."""

    broker: BrokerId
    partition: PartitionName
    leo: Offset


@event("corruption_cut")
class CorruptionCut(Event):
    """Recovery has cut a log at the first batch with a bad CRC, and all that followed with it.

    ``torn`` says that the batch was never whole: it was being written when the power went.
    """

    broker: BrokerId
    partition: PartitionName
    from_offset: Offset
    to_offset: Offset
    torn: Flag


@event("log_dir_failed")
class LogDirFailed(Event):
    """A broker has found that it can no longer write to a log directory, and serves these partitions no more.

    A broker without another log directory ends.
    """

    broker: BrokerId
    log_dir: Number
    partitions: Texts


@event("checkpoint_reverted", seen_by=STARTED_BROKERS)
class CheckpointReverted(Event):
    """A checkpoint file is as it was some time ago, or missing; ``offsets`` by partition, of those that have another than before.

    0 is what a broker takes where it has none. Of ``leader-epoch-checkpoint`` it is where the first leader epoch begins that is
    no longer in the file.
    """

    broker: BrokerId
    kind: Text
    offsets: Pairs


@event("batch_damaged")
class BatchDamaged(Event):
    """A stored batch no longer matches its CRC; no broker knows until it is read."""

    broker: BrokerId
    partition: PartitionName
    offset: Offset


@event("corrupt_batch")
class CorruptBatchFetched(Event):
    """A follower or a consumer has got a batch whose CRC is wrong, and does not take it (``CorruptRecordException``).

    It asks again and again. Of that only the first time is in the trace.
    """

    receiver: ProcessName
    broker: BrokerId
    partition: PartitionName
    offset: Offset


@event("flush", seen_by=STARTED_BROKERS)
class LogFlushed(Event):
    """Below this offset a log is safe from power loss."""

    broker: BrokerId
    partition: PartitionName
    offset: Offset


@event("checkpoint", seen_by=STARTED_BROKERS)
class CheckpointWritten(Event):
    """A broker has written a checkpoint file; ``offsets`` by partition, of those that have another than before."""

    broker: BrokerId
    kind: Text
    offsets: Pairs


@event("invariant_broken")
class InvariantBroken(Event):
    """An invariant does not hold any more (`harrow.cluster_model.invariants`)."""

    invariant: Text
    broker: BrokerId
    partition: PartitionName
    leader_epoch: Epoch
    offset: Offset
    details: Text


@event("epoch_asked", seen_by=STARTED_BROKERS)
class EpochEndAnswered(Event):
    """A leader has said where a leader epoch ends: to OffsetsForLeaderEpoch, or to a fetch that has parted from its log (KIP-595)."""

    broker: BrokerId
    partition: PartitionName
    replica: BrokerId
    leader_epoch: Epoch
    answer_epoch: Epoch
    end_offset: Offset


# Requests, and what their clients make of the answers


@event("batch_given_up")
class AppendedBatchGivenUp(Event):
    """An idempotent producer gives a batch up that may be in the log, because of an error and with a retry left, and has others under way."""

    client: ClientName
    partition: PartitionName
    error: Text
    values: Values


@event("send_failed")
class SendFailed(Event):
    """A producer has got an error for a batch, or no answer."""

    client: ClientName
    partition: PartitionName
    leader: BrokerId
    attempt: Number
    error: Text
    values: Values


@event("sent_again")
class SentAgain(Event):
    """A producer sends a batch once more."""

    client: ClientName
    partition: PartitionName
    leader: BrokerId
    attempt: Number
    values: Values


@event("fetch", seen_by=STARTED_BROKERS)
class FollowerFetched(Event):
    """A leader has taken note of a fetch of a partition that has news; while its follower has everything, nothing is said."""

    broker: BrokerId
    partition: PartitionName
    replica: BrokerId
    offset: Offset


@event("fetch_fenced")
class FetchFenced(Event):
    """A replica has refused a fetch that carries another leader epoch than its own (KIP-320)."""

    broker: BrokerId
    partition: PartitionName
    sender: ProcessName
    offset: Offset
    leader_epoch: Epoch
    fetch_epoch: Epoch


@event("request_queue_full")
class RequestQueueFull(Event):
    """Every I/O thread of a broker waits for its disk, and no more requests fit into the queue (``queued.max.requests``)."""

    broker: BrokerId
    requests: Number


@event("client_throttled")
class ClientThrottled(Event):
    """A client has exceeded its quota: for so long its broker hears nothing of it, up to 1.1 for so long it gets no answer (KIP-219)."""

    broker: BrokerId
    client: ClientName
    api: Text
    throttle_us: Number


@event("replica_throttled")
class ReplicaThrottled(Event):
    """A leader has nothing for a follower outside the ISR, for ``leader.replication.throttled.rate`` is exceeded (KIP-73)."""

    broker: BrokerId
    partition: PartitionName
    replica: BrokerId
    offset: Offset


@event("follower_throttled")
class FollowerThrottled(Event):
    """A follower leaves a partition out of its fetches for now, for ``follower.replication.throttled.rate`` is exceeded (KIP-73)."""

    broker: BrokerId
    partition: PartitionName
    leader: BrokerId
    offset: Offset


@event("replication_throttle")
class ReplicationThrottleSet(Event):
    """An administrator has changed at which rate throttled replicas are replicated, in bytes a second; -1 without limit."""

    bytes_per_second: Number


@event("fetch_waits", seen_by=STARTED_BROKERS)
class FetchDelayed(Event):
    """A fetch with nothing to read waits in the purgatory; ``replica`` is -1 for a consumer.

    While nothing happens it is sent again each time that it expires. Of those fetches only the first is in the trace, unless a
    campaign waits for events of this kind.
    """

    broker: BrokerId
    replica: BrokerId


@event("fetch_expired")
class FetchExpired(Event):
    """A fetch has waited until its time was over.

    It is in the trace if something has happened to the session since the fetch before, or a campaign waits for events of this kind.
    """

    broker: BrokerId
    replica: BrokerId


@event("served")
class RecordsServed(Event):
    """A broker has sent records to a consumer; ``hw`` is its high watermark then."""

    broker: BrokerId
    partition: PartitionName
    client: ClientName
    offset: Offset
    end_offset: Offset
    hw: Offset


@event("read_replica")
class ReadReplicaPreferred(Event):
    """A broker has told a consumer to read a partition from another replica, which stands in its rack (KIP-392)."""

    broker: BrokerId
    partition: PartitionName
    client: ClientName
    replica: BrokerId


@event("read_replica_cleared")
class ReadReplicaCleared(Event):
    """A consumer no longer reads a partition from the replica that it was told to, and asks its leader again.

    ``reason`` is the error that it got there, ``expired``, ``new leader``, or ``offline`` where its metadata has no such broker.
    """

    client: ProcessName
    partition: PartitionName
    replica: BrokerId
    reason: Text


@event("acknowledged", seen_by=STARTED_BROKERS)
class BatchAcknowledged(Event):
    """A broker has answered a producer that a batch is stored; ``acks`` is -1 for all."""

    broker: BrokerId
    partition: PartitionName
    base_offset: Offset
    acks: Number
    values: Values


@event("rejected", seen_by=STARTED_BROKERS)
class RequestRejected(Event):
    """A broker has answered a request with an error."""

    broker: BrokerId
    api: Text
    partition: PartitionName
    sender: ProcessName
    error: Text


# Groups


@event("group_state", seen_by=STARTED_BROKERS, of=CONSUMER_OFFSETS)
class GroupStateChanged(Event):
    """A group is in another state, as its coordinator has it, or has been loaded by a new one.

    ``members`` are member ids, ``generation`` is that of the state. A group that prepares a rebalance still has the one before. With
    KIP-848 it is the group's epoch.
    """

    broker: BrokerId
    group: Text
    state: Text
    generation: Number
    members: Texts
    reason: UnsureText


@event("group_assigned", of=CONSUMER_OFFSETS)
class GroupAssigned(Event):
    """A group's coordinator has stored what each member reads in a generation."""

    broker: BrokerId
    group: Text
    generation: Number
    assignments: Pairs


@event("target_assigned", of=CONSUMER_OFFSETS)
class TargetAssigned(Event):
    """A group's coordinator has had its assignor say what each member is to own (KIP-848)."""

    broker: BrokerId
    group: Text
    epoch: Number
    assignor: Text
    assignments: Pairs


@event("member_reconciled", of=CONSUMER_OFFSETS)
class MemberReconciled(Event):
    """A member owns something else than before, or is in another epoch, as its group's coordinator has it (KIP-848).

    ``revoking`` is what it is to give up of what it owns. In epoch -1 it is gone.
    """

    broker: BrokerId
    group: Text
    member: Text
    epoch: Number
    state: Text
    assigned: Texts
    revoking: Texts


@event("offsets_committed", seen_by=STARTED_BROKERS, of=CONSUMER_OFFSETS)
class OffsetsCommitted(Event):
    """A group's coordinator has taken a commit; of a transaction ``member`` is empty, and ``generation`` -1.

    ``generation`` is the one that the member said, ``present`` the one that the group had when that was looked at.
    """

    broker: BrokerId
    group: Text
    member: UnsureText
    generation: Number
    present: Number
    offsets: Pairs


@event("offsets_expired", of=CONSUMER_OFFSETS)
class OffsetsExpired(Event):
    """A group's coordinator has forgotten offsets that have not been committed for long."""

    broker: BrokerId
    group: Text
    offsets: Pairs


@event("partitions_assigned", seen_by=STARTED_BROKERS, of=CONSUMER_OFFSETS)
class PartitionsAssigned(Event):
    """A consumer reads these partitions from now on, beside those that it keeps."""

    client: ClientName
    group: Text
    generation: Number
    partitions: Texts


@event("partitions_revoked", seen_by=STARTED_BROKERS, of=CONSUMER_OFFSETS)
class PartitionsRevoked(Event):
    """A consumer reads these partitions no more; ``lost`` where others may read them already."""

    client: ClientName
    group: Text
    generation: Number
    partitions: Texts
    lost: Flag


@event("offset_found", seen_by=STARTED_BROKERS)
class GroupOffsetFound(Event):
    """A consumer begins to read a partition where its group has committed; ``offset`` is -1 where it has not."""

    client: ClientName
    partition: PartitionName
    offset: Offset


@event("records_processed", seen_by=STARTED_BROKERS)
class RecordsProcessed(Event):
    """An application that is a member of a group has processed what a poll returned of a partition, up to ``end_offset``."""

    client: ClientName
    group: Text
    partition: PartitionName
    end_offset: Offset
    values: Values


@event("application_step", seen_by=ANY_BROKERS)
class ApplicationStep(Event):
    """An application is about to take a step of its loop, the first time since it has polled last: to make a call, or to process a record."""

    client: ClientName
    group: Text
    step: Text


@event("application_ended", seen_by=ANY_BROKERS)
class ApplicationEnded(Event):
    """An application has ended by itself: its producer or its consumer can do no more."""

    client: ClientName
    group: Text
    error: Text


@event("commit_failed", seen_by=STARTED_BROKERS, of=CONSUMER_OFFSETS)
class CommitFailed(Event):
    """A consumer was told that its commit does not count."""

    client: ClientName
    group: Text
    error: Text
    offsets: Pairs


@event("membership_lost", of=CONSUMER_OFFSETS)
class MembershipLost(Event):
    """A consumer has learnt, or decided, that it is no member of its group any more, or can be none."""

    client: ClientName
    group: Text
    reason: Text


# What clients did: no trace has these, they are made of the history


@history_event("client_sent")
class ClientSent(Event):
    """An application has handed a record to its producer."""

    client: ClientName
    partition: PartitionName
    value: Text


@history_event("client_ended")
class ClientEnded(Event):
    """A producer has told its application what became of a record.

    ``status`` is ``acked``, ``failed`` (it is in no log) or ``unknown``; ``offset`` is None where it is not told.
    """

    client: ClientName
    partition: PartitionName
    value: Text
    status: Text
    offset: Annotated[int | None, FieldKind.OFFSET]
    error: Annotated[str | None, FieldKind.TEXT]


@history_event("client_polled")
class ClientPolled(Event):
    """A consumer's poll has returned records of a partition."""

    client: ClientName
    partition: PartitionName
    records: Records


def kind_of(name: str) -> type[Event]:
    """Return a kind of event by its name, one of a history too.

    Raises:
        KeyError: no such kind is registered.

    """
    return EVENTS.get(name) or HISTORY_EVENTS[name]


@derived
def event_fields(name: str) -> Mapping[str, FieldKind]:
    """Return the fields of a kind of event, in order, after the time and the name.

    Raises:
        KeyError: no such kind is registered.
        TypeError: a field has a type without a kind.

    """
    kind = kind_of(name)
    hints = get_type_hints(kind, include_extras=True)
    return {item.name: _kind_of(hints[item.name], kind, item.name) for item in fields(kind)[1:]}


@derived
def fields_with(name: str, trait: FieldTrait) -> frozenset[str]:
    """Return the fields of a kind of event that have a trait."""
    hints = get_type_hints(kind_of(name), include_extras=True)
    return frozenset(item for item, hint in hints.items() if trait in get_args(hint))


@derived
def events_seen_by(place: Sight) -> frozenset[str]:
    """Return the names of the events that a trace of runs there may have."""
    return frozenset(name for name, kind in EVENTS.items() if kind.seen_by >= place)


def _kind_of(hint: Any, kind: type[Event], field_name: str) -> FieldKind:
    for part in get_args(hint):
        if isinstance(part, FieldKind):
            return part
    raise TypeError(f"{kind.__name__}.{field_name}: an event has no field of type {hint}")


# What subscribers are told, and no trace keeps


@notice("election_decided")
class ElectionDecided(Event):
    """A controller is about to write a leader; that it `LeaderElected` is known when it is written."""

    controller: BrokerId
    partition: PartitionName
    leader_epoch: Epoch
    unclean: Flag
    reason: Text


@notice("last_known_leader_chosen")
class LastKnownLeaderChosen(Event):
    """A controller of KRaft is about to write the last known leader, for neither the ISR nor the ELR has a member (KIP-966)."""

    controller: BrokerId
    partition: PartitionName
    leader_epoch: Epoch


@notice("last_known_leader_elected")
class LastKnownLeaderElected(Event):
    """What was `LastKnownLeaderChosen` has been committed."""

    controller: BrokerId
    partition: PartitionName
    leader_epoch: Epoch


@notice("partition_state_written")
class PartitionStateWritten(Event):
    """A broker, as leader or as controller, has written a partition's state.

    ``controller_epoch`` is the one that it goes by, ``present_epoch`` that of the moment.
    """

    broker: BrokerId
    partition: PartitionName
    before: Annotated[LeaderAndIsr, FieldKind.OBJECT]
    state: Annotated[LeaderAndIsr, FieldKind.OBJECT]
    controller_epoch: Epoch
    present_epoch: Epoch


@notice("leader_epoch_taken")
class LeaderEpochTaken(Event):
    """A replica leads or follows in this leader epoch from now on."""

    broker: BrokerId
    partition: PartitionName
    leader_epoch: Epoch


@notice("registration_learned")
class RegistrationLearned(Event):
    """A broker has learned of its registration."""

    broker: BrokerId
    broker_epoch: Epoch


@notice("control_request_obeyed")
class ControlRequestObeyed(Event):
    """A broker does what a controller of this epoch says."""

    broker: BrokerId
    api: Text
    controller_epoch: Epoch


@notice("committed_metadata_cut")
class CommittedMetadataCut(Event):
    """A node of the quorum has cut off what was committed, or leads without it: what is below the high watermark, from an offset on."""

    node: BrokerId
    offset: Offset
    high_watermark: Offset


@notice("metadata_log_truncated", of=KRAFT)
class MetadataLogTruncated(Event):
    """A node of the quorum, or a broker, has cut off what the leader's metadata log does not have; none of it was known to be committed."""

    node: BrokerId
    from_offset: Offset
    to_offset: Offset


@notice("quorum_election_undecided", of=KRAFT)
class QuorumElectionUndecided(Event):
    """A voter has asked the others for their votes, or whether it would have them, and is neither elected nor rejected in time."""

    node: BrokerId
    epoch: Epoch


@notice("quorum_majority_lost", of=KRAFT)
class QuorumMajorityLost(Event):
    """The leader of the quorum resigns, for no majority has fetched from it for too long (KAFKA-15489)."""

    node: BrokerId
    epoch: Epoch


@notice("controller_request_refused")
class ControllerRequestRefused(Event):
    """A controller has refused what a broker asked of it; ``partition`` is empty where it is about the broker itself."""

    controller: BrokerId
    api: Text
    broker: BrokerId
    partition: PartitionName
    error: Text


@notice("member_expired", of=CONSUMER_OFFSETS)
class MemberExpired(Event):
    """A group's coordinator removes a member that it has not heard of for ``session.timeout.ms``."""

    broker: BrokerId
    group: Text
    member: Text


@notice("static_member_replaced", of=CONSUMER_OFFSETS)
class StaticMemberReplaced(Event):
    """A group's coordinator gives the place of a static member to who has come with the same ``group.instance.id``."""

    broker: BrokerId
    group: Text
    instance: Text
    member: Text


@notice("open_transaction_fenced", of=TRANSACTION_STATE)
class OpenTransactionFenced(Event):
    """A coordinator has written that it aborts what a producer has left open: for its timeout, or for a producer that begins with the same id."""

    broker: BrokerId
    transactional_id: Text
    is_timed_out: Flag


@notice("metadata_snapshot_written")
class MetadataSnapshotWritten(Event):
    """The records of a snapshot that a node has taken."""

    node: BrokerId
    end_offset: Offset
    epoch: Epoch
    records: Annotated[tuple[Any, ...], FieldKind.OBJECT]


@notice("metadata_snapshot_differs")
class MetadataSnapshotDiffers(Event):
    """A snapshot says otherwise than the committed records below its end, all of ``committed`` being so."""

    node: BrokerId
    end_offset: Offset
    committed: Offset


@notice("clean_shutdown_noted")
class CleanShutdownNoted(Event):
    """A broker has flushed its logs and noted that; whatever ends its process now, it has stopped cleanly (``.kafka_cleanshutdown``)."""

    broker: BrokerId


@notice("broker_change_processed")
class BrokerChangeProcessed(Event):
    """A controller has dealt with registrations: the broker epochs there, and those that it goes by."""

    controller: BrokerId
    controller_epoch: Epoch
    registered: Annotated[Mapping[int, int], FieldKind.OBJECT]
    known: Annotated[Mapping[int, int], FieldKind.OBJECT]


@notice("failover_completed")
class FailoverCompleted(Event):
    """A new controller has taken over; these brokers were dead, these are the ISRs that it goes by."""

    controller: BrokerId
    controller_epoch: Epoch
    dead: Brokers
    leadership: Annotated[Mapping[str, Any], FieldKind.OBJECT]
