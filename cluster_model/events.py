"""Declares the events of a run, and the kind of each of their fields.

A trace stores an event as a tuple, ``(at_us, name, *fields)``. A run emits thousands of events, and
objects would cost several times as much time and memory. Code names events by their `Event`
classes: actors emit them with ``host.emit(HighWatermarkSet, broker, partition, hw)``, subscribers
and replays get the fields as arguments, and `harrow.cluster_model.trace.select` makes objects from
selected events. mypy checks all three uses against the declaration.

A new kind of event is a class with ``@event(NAME)``, in this module or another. Its declaration
also says which runs have such events in their traces (`Sight`), and names the subsystem of Kafka
without which they do not occur.
"""

# Plain Python: the decorator `event` changes its classes, and their fields have metadata.

from collections.abc import Callable, Mapping
from dataclasses import fields
from enum import Enum, IntEnum, unique
from itertools import count
from typing import Annotated, Any, ClassVar, Final, TypeVar, dataclass_transform, get_args, get_type_hints

from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.protocol import LeaderAndIsr
from harrow.cluster_model.registry import Registry, derived
from harrow.cluster_model.topology import CONSUMER_OFFSETS, KRAFT, TRANSACTION_STATE, ZOOKEEPER


@unique
class FieldKind(Enum):
    """The kind of a field of an event.

    Code that reads traces in general goes by the kinds of fields, never by their names.
    """

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
    """A property of a field in addition to its kind."""

    NAMES_CONTROLLER = "names a controller: a broker with ZooKeeper, a voter of the quorum in KRaft"
    MAY_BE_EMPTY = "is empty on real brokers if neither their logs nor their coordinators have it"


@unique
class Sight(IntEnum):
    """Which runs have events of a kind in their trace.

    Each member adds runs to those of the members before it.
    """

    MODEL = 0
    """Only runs of the model, because no watch of real brokers reports such events."""
    STARTED_BROKERS = 1
    """Also runs on brokers that harrow starts, with access to their disks and connections."""
    ANY_BROKERS = 2
    """Also runs on a user's cluster, from metadata, offsets, clients and harrow's own actions."""


STARTED_BROKERS: Final = Sight.STARTED_BROKERS
ANY_BROKERS: Final = Sight.ANY_BROKERS

NO_CONTROLLER: Final = -1

KILLED: Final = "process"
POWER_LOSS: Final = "power_loss"
SHUT_DOWN: Final = "shutdown"
"""The causes of a broker's stop: a kill, a power loss of its machine, or a clean shutdown."""

BrokerId = Annotated[int, FieldKind.BROKER]
"""A broker's id, -1 for none."""
ControllerId = Annotated[int, FieldKind.BROKER, FieldTrait.NAMES_CONTROLLER]
Brokers = Annotated[tuple[int, ...], FieldKind.BROKERS]
ClientName = Annotated[str, FieldKind.CLIENT]
ProcessName = Annotated[str, FieldKind.PROCESS]
"""``broker-1``, ``zookeeper``, or the name of a client."""
PartitionName = Annotated[str, FieldKind.PARTITION]
"""``t-0``; empty if the event is about no partition."""
Offset = Annotated[int, FieldKind.OFFSET]
Offsets = Annotated[tuple[int, ...], FieldKind.OBJECT]
Epoch = Annotated[int, FieldKind.EPOCH]
Number = Annotated[int, FieldKind.NUMBER]
Strike = Annotated[int | None, FieldKind.NUMBER]
"""The number of the strike of the fault that caused the event, None if no fault did."""
Flag = Annotated[bool, FieldKind.FLAG]
Values = Annotated[tuple[str, ...], FieldKind.VALUES]
"""The values of a batch's records, in order.

A control batch has no values, but takes one offset.
"""
Records = Annotated[tuple[tuple[int, str], ...], FieldKind.RECORDS]
"""Records as (offset, value)."""
Text = Annotated[str, FieldKind.TEXT]
UnsureText = Annotated[str, FieldKind.TEXT, FieldTrait.MAY_BE_EMPTY]
Texts = Annotated[tuple[str, ...], FieldKind.TEXTS]
Pairs = Annotated[tuple[tuple[str, Any], ...], FieldKind.PAIRS]
"""Names with their values."""


@dataclass(eq=False, repr=False)
class Event:  # noqa: PLW1641 - like any dataclass that can change it has no hash
    """An event at a virtual time, ``at_us``.

    The class of an event describes all events of its kind. ``seen_by`` says which runs have such
    events in their trace. ``subsystem`` names the control plane or the internal topic without which
    they do not occur; it is None if they occur in any cluster. ``is_milestone`` marks an event in
    which a broker, a controller or a client did something to a partition or a process. Other events
    only prepare this, as messages do. When two runs diverge, the first milestone that differs
    explains more than the first event.

    Equality and ``repr`` are defined here once. Otherwise, each import would compile them for each
    of the dozens of classes. Events have no slots, because `dataclass` would have to create each
    class a second time for them.
    """

    name: ClassVar[str]
    number: ClassVar[int]
    seen_by: ClassVar[Sight]
    subsystem: ClassVar[str | None]
    is_milestone: ClassVar[bool]
    at_us: int

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, item.name) == getattr(other, item.name) for item in fields(self))

    def __repr__(self) -> str:
        values = ", ".join(f"{item.name}={getattr(self, item.name)!r}" for item in fields(self))
        return f"{type(self).__qualname__}({values})"


E = TypeVar("E", bound=Event)

_numbers: Final = count()


EVENTS: Final[Registry[str, type[Event]]] = Registry()
"""The kinds of events of traces, by their names in campaigns and ``trace.jsonl``."""

HISTORY_EVENTS: Final[dict[str, type[Event]]] = {}
"""The kinds of events that are made from a history.

A replay merges these events with the events of the trace.
"""


@dataclass_transform()
def event(
    name: str, *, seen_by: Sight = Sight.MODEL, subsystem: str | None = None, is_milestone: bool = False
) -> Callable[[type[E]], type[E]]:
    """Declare a kind of event of traces."""
    return _declare(name, EVENTS, seen_by, subsystem, is_milestone=is_milestone)


@dataclass_transform()
def history_event(name: str) -> Callable[[type[E]], type[E]]:
    """Declare a kind of event that is made from a history and is not in traces."""
    return _declare(name, HISTORY_EVENTS, Sight.ANY_BROKERS)


@dataclass_transform()
def notice(name: str, *, subsystem: str | None = None) -> Callable[[type[E]], type[E]]:
    """Declare a kind of event that the model only publishes to subscribers. It is not in traces."""
    return _declare(name, {}, Sight.MODEL, subsystem)


def _declare(
    name: str,
    catalogue: dict[str, type[Event]],
    seen_by: Sight,
    subsystem: str | None = None,
    *,
    is_milestone: bool = False,
) -> Callable[[type[E]], type[E]]:
    def declare(kind: type[E]) -> type[E]:
        event_class = dataclass(eq=False, repr=False)(kind)
        event_class.name, event_class.seen_by, event_class.subsystem = name, seen_by, subsystem
        event_class.number, event_class.is_milestone = next(_numbers), is_milestone
        catalogue[name] = event_class
        return event_class

    return declare


# Processes and sessions


@event("broker_started", seen_by=ANY_BROKERS, is_milestone=True)
class BrokerStarted(Event):
    """A broker's process has started."""

    broker: BrokerId


@event("broker_stopped", seen_by=ANY_BROKERS, is_milestone=True)
class BrokerStopped(Event):
    """A broker's process has ended.

    ``cause`` is ``process``, ``power_loss``, or ``shutdown`` if it exited by itself.
    """

    broker: BrokerId
    cause: Text


@event("broker_stopping", seen_by=ANY_BROKERS, is_milestone=True)
class BrokerStopping(Event):
    """A broker's process has received SIGTERM, or shuts down by itself."""

    broker: BrokerId


@event("controlled_shutdown", is_milestone=True)
class ControlledShutdownBegun(Event):
    """A controller has begun to move a broker's leaderships, because the broker shuts down."""

    controller: ControllerId
    broker: BrokerId


@event("controlled_shutdown_answered", subsystem=ZOOKEEPER, is_milestone=True)
class ControlledShutdownAnswered(Event):
    """A broker that shuts down has learned the result of an attempt to move its leaderships.

    ``remaining`` are the partitions that it still leads. ``controller`` is -1 if there was none;
    ``error`` is ``NETWORK_EXCEPTION`` if the controller did not answer.
    """

    broker: BrokerId
    controller: BrokerId
    attempt: Number
    error: Text
    remaining: Texts


@event("controlled_shutdown_given_up", subsystem=ZOOKEEPER, is_milestone=True)
class ControlledShutdownGivenUp(Event):
    """A broker stops although no controller has moved all of its leaderships."""

    broker: BrokerId
    attempts: Number


@event("broker_paused", seen_by=ANY_BROKERS, is_milestone=True)
class BrokerPaused(Event):
    """A broker's process is paused."""

    broker: BrokerId


@event("broker_resumed", seen_by=ANY_BROKERS, is_milestone=True)
class BrokerResumed(Event):
    """A paused broker continues."""

    broker: BrokerId


@event("broker_registered", seen_by=ANY_BROKERS)
class BrokerRegistered(Event):
    """The control plane has a broker's registration; the broker may not know yet."""

    broker: BrokerId
    broker_epoch: Epoch


@event("client_stopped", seen_by=ANY_BROKERS)
class ClientStopped(Event):
    """A client's application has died."""

    client: ClientName


REGISTRATION: Final = "registration"
"""Stands for a KRaft broker's registration, where ZooKeeper has the znode ``/brokers/ids/N``."""


def ends_registration(broker: int, ephemerals: tuple[str, ...]) -> bool:
    """Return whether a broker is no longer registered after *ephemerals* were deleted."""
    return REGISTRATION in ephemerals or f"/brokers/ids/{broker}" in ephemerals


@event("session_expired", seen_by=ANY_BROKERS, is_milestone=True)
class SessionExpired(Event):
    """ZooKeeper has expired a session, or KRaft has fenced a broker without heartbeats.

    ``ephemerals`` are the paths of the znodes that were deleted with it. There may be none: after a
    quick restart a broker has an older session beside its own. In KRaft ``ephemerals`` is the word
    ``registration``.
    """

    broker: BrokerId
    ephemerals: Texts


@event("session_closed", seen_by=ANY_BROKERS, is_milestone=True)
class SessionClosed(Event):
    """A broker has closed its session, in KRaft by a controlled shutdown.

    ``ephemerals`` are the paths of the znodes that were deleted with it, in KRaft ``registration``.
    """

    broker: BrokerId
    ephemerals: Texts


@event("ensemble_leader_elected", subsystem=ZOOKEEPER)
class EnsembleLeaderElected(Event):
    """A server of a ZooKeeper ensemble leads a majority.

    From now on it processes all writes, and session timeouts start again.
    """

    server: ProcessName
    epoch: Epoch


@event("ensemble_server_suspended", subsystem=ZOOKEEPER)
class EnsembleServerSuspended(Event):
    """A server of a ZooKeeper ensemble has lost its leader or its followers.

    It disconnects its clients and serves none.
    """

    server: ProcessName


# Faults and single messages


@event("fault", seen_by=ANY_BROKERS, is_milestone=True)
class FaultStruck(Event):
    """A fault has struck.

    ``strike`` numbers the strikes of a run from 1. Later effects of the fault and its end have the
    same number.
    """

    fault: Text
    phase: Text
    details: Pairs
    strike: Number


@event("fault_ended", seen_by=ANY_BROKERS)
class FaultEnded(Event):
    """A lasting fault has ended."""

    fault: Text
    details: Pairs
    strike: Number


@event("healed", seen_by=ANY_BROKERS)
class Healed(Event):
    """All faults have ended, and every process that was down has been started."""


@event("message", seen_by=STARTED_BROKERS)
class MessageDelivered(Event):
    """A message is delivered. Only runs of campaigns that wait for messages have this event."""

    api: Text
    kind: Text
    sender: ProcessName
    receiver: ProcessName


@event("message_rule", seen_by=STARTED_BROKERS)
class MessageRuleApplied(Event):
    """A rule for single messages has acted on one."""

    rule: Text
    action: Text
    api: Text
    kind: Text
    sender: ProcessName
    receiver: ProcessName
    strike: Strike


@event("clock_stepped")
class ClockStepped(Event):
    """The clock of a machine has jumped.

    ``skew_us`` is its offset from true time, negative if it is behind.
    """

    process: ProcessName
    by_us: Number
    skew_us: Number


@event("core_healed", seen_by=ANY_BROKERS)
class CoreHealed(Event):
    """A core of brokers that can serve all partitions has been healed. The others have not."""

    brokers: Brokers


# Controller


@event("metadata_snapshot_taken", subsystem=KRAFT)
class MetadataSnapshotTaken(Event):
    """A node has written a snapshot of the metadata log below an offset.

    ``epoch`` is that of its last record.
    """

    broker: BrokerId
    end_offset: Offset
    epoch: Epoch


@event("metadata_snapshot_fetched", subsystem=KRAFT)
class MetadataSnapshotFetched(Event):
    """A node starts over from a snapshot of the metadata log.

    The node's log ended below the start of the leader's log, or diverged from it below that start.
    """

    broker: BrokerId
    leader: BrokerId
    log_end: Offset
    end_offset: Offset
    epoch: Epoch


@event("metadata_log_start", subsystem=KRAFT)
class MetadataLogStarted(Event):
    """A node has deleted old snapshots, and its metadata log below the oldest remaining one."""

    broker: BrokerId
    log_start: Offset
    leo: Offset


@event("controller_elected", seen_by=ANY_BROKERS, is_milestone=True)
class ControllerElected(Event):
    """A broker has learned that it is the controller."""

    broker: ControllerId
    controller_epoch: Epoch


@event("controller_resigned", seen_by=STARTED_BROKERS)
class ControllerResigned(Event):
    """A broker no longer considers itself the controller."""

    broker: ControllerId
    controller_epoch: Epoch


@event("controller_changed", seen_by=ANY_BROKERS)
class ControllerChanged(Event):
    """The control plane has a new controller, or none (-1); brokers may not know yet."""

    controller: ControllerId
    controller_epoch: Epoch


@event("controller_znode_deleted", seen_by=STARTED_BROKERS)
class ControllerZnodeDeleted(Event):
    """``/controller`` has been deleted; the controller does not know yet."""

    broker: BrokerId


@event("election", seen_by=ANY_BROKERS, is_milestone=True)
class LeaderElected(Event):
    """The control plane has a leader for a partition, or none (-1); brokers may not know yet."""

    controller: ControllerId
    partition: PartitionName
    leader: BrokerId
    leader_epoch: Epoch
    isr: Brokers
    unclean: Flag
    reason: UnsureText


@event("isr_reduced", seen_by=ANY_BROKERS, is_milestone=True)
class IsrReduced(Event):
    """A controller has removed a replica from an ISR."""

    controller: ControllerId
    partition: PartitionName
    leader: BrokerId
    leader_epoch: Epoch
    isr: Brokers


@event("assignment", seen_by=STARTED_BROKERS, is_milestone=True)
class ReplicasAssigned(Event):
    """The control plane has new replicas for a partition.

    ``adding`` and ``removing`` are those of a reassignment. If both are empty, the reassignment is
    complete or cancelled.
    """

    partition: PartitionName
    replicas: Brokers
    adding: Brokers
    removing: Brokers


# Replicas


@event("leader", seen_by=ANY_BROKERS, is_milestone=True)
class BecameLeader(Event):
    """A replica leads in this epoch from now on. ``start_offset`` is its LEO."""

    broker: BrokerId
    partition: PartitionName
    leader_epoch: Epoch
    start_offset: Offset
    isr: Brokers


@event("follower", seen_by=ANY_BROKERS, is_milestone=True)
class BecameFollower(Event):
    """A replica follows a leader."""

    broker: BrokerId
    partition: PartitionName
    leader_epoch: Epoch
    leader: BrokerId


@event("append", seen_by=STARTED_BROKERS, is_milestone=True)
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
    """A follower has appended a batch from a fetch."""

    broker: BrokerId
    partition: PartitionName
    base_offset: Offset
    leader_epoch: Epoch
    producer_id: Number
    base_sequence: Number
    values: Values


@event("transaction_begun", seen_by=STARTED_BROKERS, subsystem=TRANSACTION_STATE)
class TransactionBegun(Event):
    """A log has the first batch of a transaction.

    A leader has appended the batch, or a follower has replicated it. The producer's later batches
    belong to the same transaction, up to its marker.
    """

    broker: BrokerId
    partition: PartitionName
    producer_id: Number
    producer_epoch: Epoch
    first_offset: Offset


@event("transaction_marker", seen_by=STARTED_BROKERS, subsystem=TRANSACTION_STATE)
class TransactionMarkerWritten(Event):
    """A log has the marker that ends a transaction.

    A leader has appended the marker for a coordinator, or a follower has replicated it.
    ``first_offset`` is where the transaction began in this log, -1 if it has no record there.
    """

    broker: BrokerId
    partition: PartitionName
    producer_id: Number
    producer_epoch: Epoch
    first_offset: Offset
    offset: Offset
    committed: Flag
    coordinator_epoch: Epoch


@event("transaction_state", seen_by=STARTED_BROKERS, subsystem=TRANSACTION_STATE)
class TransactionStateChanged(Event):
    """A coordinator has written the state of a transactional id.

    The state includes the producer's id and epoch, and the transaction's state and partitions.
    """

    broker: BrokerId
    transactional_id: Text
    producer_id: Number
    producer_epoch: Epoch
    state: Text
    partitions: Texts


@event("duplicate_batch", seen_by=STARTED_BROKERS, is_milestone=True)
class BatchDeduplicated(Event):
    """A leader has recognised a batch that its log already contains."""

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


@event("isr", seen_by=ANY_BROKERS, is_milestone=True)
class IsrChanged(Event):
    """A leader has learned that its ISR change has been written.

    ``change`` is ``expand`` or ``shrink``.
    """

    broker: BrokerId
    partition: PartitionName
    leader_epoch: Epoch
    isr: Brokers
    change: Text


@event("isr_written", seen_by=ANY_BROKERS)
class IsrWritten(Event):
    """The control plane has a leader's ISR; the leader may not know yet."""

    broker: BrokerId
    partition: PartitionName
    leader_epoch: Epoch
    isr: Brokers


@event("isr_pending")
class IsrPending(Event):
    """A leader has asked to add a replica to the ISR.

    From now on the high watermark waits for that replica, although the change is not written yet
    (KIP-497, from 2.7 on).
    """

    broker: BrokerId
    partition: PartitionName
    leader_epoch: Epoch
    isr: Brokers


@event("isr_forgotten")
class IsrForgotten(Event):
    """A leader drops its pending ISR change.

    The metadata log has sent it the current ISR (``isr``) again.
    """

    broker: BrokerId
    partition: PartitionName
    leader_epoch: Epoch
    isr: Brokers


@event("isr_refused", is_milestone=True)
class IsrRefused(Event):
    """A leader has learned that its ISR change was not written."""

    broker: BrokerId
    partition: PartitionName
    leader_epoch: Epoch
    isr: Brokers
    change: Text


@event("truncate", seen_by=STARTED_BROKERS, is_milestone=True)
class LogTruncated(Event):
    """A replica has truncated its log.

    ``reason`` is high watermark, leader epoch or out of range.
    """

    broker: BrokerId
    partition: PartitionName
    from_offset: Offset
    to_offset: Offset
    reason: UnsureText


@event("truncation_refused", seen_by=STARTED_BROKERS)
class TruncationRefused(Event):
    """A follower ahead of its leader does not truncate, and stops its broker.

    This happens if unclean elections are off. ``end_offset`` is where the leader's log ends,
    ``leo`` where the follower's does.
    """

    broker: BrokerId
    partition: PartitionName
    leader: BrokerId
    end_offset: Offset
    leo: Offset


@event("fetch_outdated")
class OutdatedFetchAnswered(Event):
    """A follower gets the answer to a fetch of an older leader epoch.

    The follower's log still ends at the fetch offset. Whether the follower appends the answer
    (``taken``) depends on the release (KAFKA-18991).
    """

    broker: BrokerId
    partition: PartitionName
    leader: BrokerId
    fetch_epoch: Epoch
    leader_epoch: Epoch
    taken: Flag


@event("fetcher_failed")
class FetcherFailed(Event):
    """A follower has given up a partition: a fetched batch does not start at the follower's LEO."""

    broker: BrokerId
    partition: PartitionName
    base_offset: Offset
    leo: Offset


@event("recover", seen_by=STARTED_BROKERS, is_milestone=True)
class LogOpened(Event):
    """A starting broker has opened a log, with its checkpointed high watermark."""

    broker: BrokerId
    partition: PartitionName
    leo: Offset
    hw: Offset


@event("log_start", seen_by=STARTED_BROKERS, is_milestone=True)
class LogStartRaised(Event):
    """A replica has deleted the records below an offset, or stopped serving them.

    ``reason`` is ``retention.ms`` or ``retention.bytes``, or ``log start offset`` if a follower
    takes over its leader's log start. ``bytes_left`` is the remaining size of the log.
    """

    broker: BrokerId
    partition: PartitionName
    offset: Offset
    reason: Text
    bytes_left: Number


@event("log_cleaned", is_milestone=True)
class LogCleaned(Event):
    """A replica has compacted its log between two offsets.

    The dirty section began at ``from_offset``, and cleaning ended at ``to_offset``. ``removed`` are
    the offsets of the removed records, ``bytes_left`` is the remaining size of the log.
    """

    broker: BrokerId
    partition: PartitionName
    from_offset: Offset
    to_offset: Offset
    removed: Offsets
    bytes_left: Number


@event("hole_replicated")
class HoleReplicated(Event):
    """A follower has skipped offsets whose records compaction has removed from its leader's log.

    It continues at ``to_offset``.
    """

    broker: BrokerId
    partition: PartitionName
    to_offset: Offset


@event("keyed_send")
class KeyedRecordSent(Event):
    """An application has sent a record with a key.

    A tombstone has no value. Its ``value`` here is only a name for it.
    """

    client: ClientName
    partition: PartitionName
    value: Text
    key: Text
    tombstone: Flag


@event("keyed_record_found")
class KeyedRecordFound(Event):
    """A broker has read the key of a record that was sent before its topic was compacted."""

    broker: BrokerId
    partition: PartitionName
    value: Text
    key: Text
    tombstone: Flag


@event("producer_initialized", seen_by=STARTED_BROKERS, subsystem=TRANSACTION_STATE)
class ProducerInitialized(Event):
    """A coordinator has given a transactional producer an epoch, which fences earlier producers."""

    client: ClientName
    producer_id: Number
    producer_epoch: Number


@event("transaction_opened", subsystem=TRANSACTION_STATE)
class TransactionOpened(Event):
    """An application has begun a transaction, which no broker knows yet."""

    client: ClientName
    producer_id: Number
    producer_epoch: Number


@event("transaction_ending", subsystem=TRANSACTION_STATE)
class TransactionEnding(Event):
    """An application commits or aborts its transaction.

    To commit, the producer first sends its remaining records. Then it asks the coordinator.
    """

    client: ClientName
    committed: Flag


@event("transaction_reported", seen_by=STARTED_BROKERS, subsystem=TRANSACTION_STATE)
class TransactionReported(Event):
    """An application has learned that its transaction is committed or aborted."""

    client: ClientName
    committed: Flag


@event("transaction_error", seen_by=STARTED_BROKERS, subsystem=TRANSACTION_STATE)
class TransactionError(Event):
    """A producer can only abort its transaction, or do nothing at all after a ``fatal`` error."""

    client: ClientName
    error: Text
    fatal: Flag


@event("log_started_anew", is_milestone=True)
class LogStartedAnew(Event):
    """A follower that is too far behind has dropped its log, which ended at ``leo``.

    The new log begins at its leader's log start.
    """

    broker: BrokerId
    partition: PartitionName
    leo: Offset
    offset: Offset


@event("delete_records_obeyed", seen_by=STARTED_BROKERS)
class DeleteRecordsObeyed(Event):
    """A leader has raised its log start at an administrator's request (DeleteRecords, KIP-107).

    From now on no client can read below it.
    """

    broker: BrokerId
    partition: PartitionName
    offset: Offset


@event("delete_records_answered", seen_by=STARTED_BROKERS)
class DeleteRecordsAnswered(Event):
    """An administrator has the result of a DeleteRecords request.

    All live replicas have deleted the records below an offset, or there was an error.
    """

    broker: BrokerId
    partition: PartitionName
    offset: Offset
    error: Text


@event("log_start_reverted", seen_by=STARTED_BROKERS, is_milestone=True)
class LogStartReverted(Event):
    """A restarted broker opens a log at an earlier start: no checkpoint had the later one."""

    broker: BrokerId
    partition: PartitionName
    from_offset: Offset
    to_offset: Offset


@event("offset_reset", is_milestone=True)
class OffsetReset(Event):
    """A consumer resets its position by ``auto.offset.reset``.

    Its ``position`` was out of range, or it had none (-1).
    """

    client: ProcessName
    partition: PartitionName
    position: Offset
    offset: Offset
    policy: Text


@event("unflushed_lost", seen_by=STARTED_BROKERS, is_milestone=True)
class UnflushedLost(Event):
    """A power loss has lost the unflushed end of a log."""

    broker: BrokerId
    partition: PartitionName
    from_offset: Offset
    to_offset: Offset


@event("log_lost", seen_by=STARTED_BROKERS, is_milestone=True)
class LogLost(Event):
    """A disk is lost, and with it a replica's log between two offsets."""

    broker: BrokerId
    partition: PartitionName
    from_offset: Offset
    to_offset: Offset


@event("metadata_log_lost", subsystem=KRAFT, is_milestone=True)
class MetadataLogLost(Event):
    """A disk is lost, and with it a KRaft controller's metadata log up to an offset, and its vote.

    ``is_kept`` says that a majority of the voters still has all committed metadata, so that every
    new controller has it too.
    """

    node: BrokerId
    end_offset: Offset
    is_kept: Flag


@event("log_deleted", seen_by=STARTED_BROKERS, is_milestone=True)
class LogDeleted(Event):
    """A broker has deleted the log of a replica that is no longer assigned to it.

    ``leo`` is where that log ended.
    """

    broker: BrokerId
    partition: PartitionName
    leo: Offset


@event("corruption_cut", is_milestone=True)
class CorruptionCut(Event):
    """Recovery has truncated a log at the first batch with a bad CRC.

    ``torn`` says that the batch was being written when the power failed.
    """

    broker: BrokerId
    partition: PartitionName
    from_offset: Offset
    to_offset: Offset
    torn: Flag


@event("log_dir_failed", is_milestone=True)
class LogDirFailed(Event):
    """A broker has noticed that a log directory fails, and stops serving the partitions in it.

    A broker without another log directory exits.
    """

    broker: BrokerId
    log_dir: Number
    partitions: Texts


@event("checkpoint_reverted", seen_by=STARTED_BROKERS, is_milestone=True)
class CheckpointReverted(Event):
    """A fault has replaced a checkpoint file by an old version, or removed it.

    ``offsets`` has the partitions whose offset in the file is now different; a missing offset
    counts as 0. For ``leader-epoch-checkpoint`` the offset is the start of the first leader epoch
    that is no longer in the file.
    """

    broker: BrokerId
    kind: Text
    offsets: Pairs


@event("batch_damaged")
class BatchDamaged(Event):
    """A stored batch no longer matches its CRC. No broker notices until the batch is read."""

    broker: BrokerId
    partition: PartitionName
    offset: Offset


@event("corrupt_batch", is_milestone=True)
class CorruptBatchFetched(Event):
    """A follower or a consumer has rejected a batch with a wrong CRC (``CorruptRecordException``).

    The receiver fetches the batch again and again. The trace has only the first time.
    """

    receiver: ProcessName
    broker: BrokerId
    partition: PartitionName
    offset: Offset


@event("flush", seen_by=STARTED_BROKERS)
class LogFlushed(Event):
    """A log is flushed up to an offset, so the records below it survive a power loss."""

    broker: BrokerId
    partition: PartitionName
    offset: Offset


@event("checkpoint", seen_by=STARTED_BROKERS)
class CheckpointWritten(Event):
    """A broker has written a checkpoint file.

    ``offsets`` has the partitions whose offset has changed.
    """

    broker: BrokerId
    kind: Text
    offsets: Pairs


@event("invariant_broken")
class InvariantBroken(Event):
    """An invariant no longer holds (`harrow.cluster_model.invariants`)."""

    invariant: Text
    broker: BrokerId
    partition: PartitionName
    leader_epoch: Epoch
    offset: Offset
    details: Text


@event("epoch_asked", seen_by=STARTED_BROKERS, is_milestone=True)
class EpochEndAnswered(Event):
    """A leader has answered where a leader epoch ends.

    The request was OffsetsForLeaderEpoch, or a fetch by a replica whose log diverges (KIP-595).
    """

    broker: BrokerId
    partition: PartitionName
    replica: BrokerId
    leader_epoch: Epoch
    answer_epoch: Epoch
    end_offset: Offset


# Requests, and how their clients react to the answers


@event("batch_given_up")
class AppendedBatchGivenUp(Event):
    """An idempotent producer gives up a batch that may be in the log.

    It had an error for the batch and retries left, but other batches were in flight.
    """

    client: ClientName
    partition: PartitionName
    error: Text
    values: Values


@event("send_failed")
class SendFailed(Event):
    """A producer has received an error for a batch, or no answer."""

    client: ClientName
    partition: PartitionName
    leader: BrokerId
    attempt: Number
    error: Text
    values: Values


@event("sent_again")
class SentAgain(Event):
    """A producer retries a batch."""

    client: ClientName
    partition: PartitionName
    leader: BrokerId
    attempt: Number
    values: Values


@event("fetch", seen_by=STARTED_BROKERS)
class FollowerFetched(Event):
    """A leader has processed a fetch of a partition.

    The trace has no fetches in which a caught-up follower gets nothing new.
    """

    broker: BrokerId
    partition: PartitionName
    replica: BrokerId
    offset: Offset


@event("fetch_fenced")
class FetchFenced(Event):
    """A replica has refused a fetch whose leader epoch differs from its own (KIP-320)."""

    broker: BrokerId
    partition: PartitionName
    sender: ProcessName
    offset: Offset
    leader_epoch: Epoch
    fetch_epoch: Epoch


@event("request_queue_full")
class RequestQueueFull(Event):
    """A broker's request queue is full, and all its I/O threads wait for the disk.

    The limit is ``queued.max.requests``.
    """

    broker: BrokerId
    requests: Number


@event("client_throttled")
class ClientThrottled(Event):
    """A client has exceeded its quota.

    The broker mutes its connection for ``throttle_us``. Releases up to 1.1 delay the response
    instead (KIP-219).
    """

    broker: BrokerId
    client: ClientName
    api: Text
    throttle_us: Number


@event("replica_throttled")
class ReplicaThrottled(Event):
    """A leader sends nothing to a follower outside the ISR.

    The leader's rate exceeds ``leader.replication.throttled.rate`` (KIP-73).
    """

    broker: BrokerId
    partition: PartitionName
    replica: BrokerId
    offset: Offset


@event("follower_throttled")
class FollowerThrottled(Event):
    """A follower leaves a partition out of its fetches.

    The follower's rate exceeds ``follower.replication.throttled.rate`` (KIP-73).
    """

    broker: BrokerId
    partition: PartitionName
    leader: BrokerId
    offset: Offset


@event("replication_throttle")
class ReplicationThrottleSet(Event):
    """An administrator has changed the rate of throttled replicas.

    The rate is in bytes per second; -1 is no limit.
    """

    bytes_per_second: Number


@event("fetch_waits", seen_by=STARTED_BROKERS)
class FetchDelayed(Event):
    """A fetch without data waits in the purgatory. ``replica`` is -1 for a consumer.

    Without news, the follower or consumer sends the fetch again each time that it expires. Only the
    first of these fetches is in the trace, unless a campaign waits for events of this kind.
    """

    broker: BrokerId
    replica: BrokerId


@event("fetch_expired")
class FetchExpired(Event):
    """A fetch has waited in the purgatory until it expired.

    The trace has this event if anything has happened to the fetch session since the previous fetch,
    or if a campaign waits for events of this kind.
    """

    broker: BrokerId
    replica: BrokerId


@event("served")
class RecordsServed(Event):
    """A broker has sent records to a consumer.

    ``hw`` is the broker's high watermark at that time.
    """

    broker: BrokerId
    partition: PartitionName
    client: ClientName
    offset: Offset
    end_offset: Offset
    hw: Offset


@event("read_replica", is_milestone=True)
class ReadReplicaPreferred(Event):
    """A broker has referred a consumer to another replica, in the consumer's rack (KIP-392)."""

    broker: BrokerId
    partition: PartitionName
    client: ClientName
    replica: BrokerId


@event("read_replica_cleared", is_milestone=True)
class ReadReplicaCleared(Event):
    """A consumer stops reading from a partition's preferred read replica, and reads the leader.

    ``reason`` is the error of the consumer's fetch, ``expired``, ``new leader``, or ``offline`` if
    the consumer's metadata has no such broker.
    """

    client: ProcessName
    partition: PartitionName
    replica: BrokerId
    reason: Text


@event("acknowledged", seen_by=STARTED_BROKERS, is_milestone=True)
class BatchAcknowledged(Event):
    """A broker has acknowledged a batch to its producer. ``acks`` is -1 for all."""

    broker: BrokerId
    partition: PartitionName
    base_offset: Offset
    acks: Number
    values: Values


@event("rejected", seen_by=STARTED_BROKERS, is_milestone=True)
class RequestRejected(Event):
    """A broker has answered a request with an error."""

    broker: BrokerId
    api: Text
    partition: PartitionName
    sender: ProcessName
    error: Text


# Groups


@event("group_state", seen_by=STARTED_BROKERS, subsystem=CONSUMER_OFFSETS)
class GroupStateChanged(Event):
    """A group's state has changed on its coordinator, or a new coordinator has loaded the group.

    ``members`` are member ids. A group that prepares a rebalance still has the previous
    ``generation``. With KIP-848 ``generation`` is the group epoch.
    """

    broker: BrokerId
    group: Text
    state: Text
    generation: Number
    members: Texts
    reason: UnsureText


@event("group_assigned", subsystem=CONSUMER_OFFSETS)
class GroupAssigned(Event):
    """A group coordinator has stored the assignment of a generation."""

    broker: BrokerId
    group: Text
    generation: Number
    assignments: Pairs


@event("target_assigned", subsystem=CONSUMER_OFFSETS)
class TargetAssigned(Event):
    """A group coordinator's assignor has made a target assignment (KIP-848)."""

    broker: BrokerId
    group: Text
    epoch: Number
    assignor: Text
    assignments: Pairs


@event("member_reconciled", subsystem=CONSUMER_OFFSETS)
class MemberReconciled(Event):
    """The assignment or the epoch of a member has changed on its group coordinator (KIP-848).

    ``revoking`` are the partitions that the member must give up. A member that has left has epoch
    -1.
    """

    broker: BrokerId
    group: Text
    member: Text
    epoch: Number
    state: Text
    assigned: Texts
    revoking: Texts


@event("offsets_committed", seen_by=STARTED_BROKERS, subsystem=CONSUMER_OFFSETS)
class OffsetsCommitted(Event):
    """A group coordinator has accepted a commit.

    ``generation`` is the member's generation, and ``present`` is the group's when the coordinator
    compared the two. For a commit in a transaction, ``member`` is empty and ``generation`` is -1.
    """

    broker: BrokerId
    group: Text
    member: UnsureText
    generation: Number
    present: Number
    offsets: Pairs


@event("offsets_expired", subsystem=CONSUMER_OFFSETS)
class OffsetsExpired(Event):
    """A group coordinator has removed expired offsets."""

    broker: BrokerId
    group: Text
    offsets: Pairs


@event("offsets_deleted", subsystem=CONSUMER_OFFSETS)
class OffsetsDeleted(Event):
    """A group coordinator has written tombstones for offsets that an administrator deleted.

    They are also deleted with their group or topic.
    """

    broker: BrokerId
    group: Text
    partitions: Texts


@event("partitions_assigned", seen_by=STARTED_BROKERS, subsystem=CONSUMER_OFFSETS)
class PartitionsAssigned(Event):
    """A consumer reads these partitions from now on, in addition to those that it keeps."""

    client: ClientName
    group: Text
    generation: Number
    partitions: Texts


@event("partitions_revoked", seen_by=STARTED_BROKERS, subsystem=CONSUMER_OFFSETS)
class PartitionsRevoked(Event):
    """A consumer stops reading these partitions. With ``lost``, others may already read them."""

    client: ClientName
    group: Text
    generation: Number
    partitions: Texts
    lost: Flag


@event("offset_found", seen_by=STARTED_BROKERS)
class GroupOffsetFound(Event):
    """A consumer starts a partition at its group's committed ``offset``, -1 if there is none."""

    client: ClientName
    partition: PartitionName
    offset: Offset


@event("records_processed", seen_by=STARTED_BROKERS)
class RecordsProcessed(Event):
    """An application has processed the records of a partition from a poll, up to ``end_offset``."""

    client: ClientName
    group: Text
    partition: PartitionName
    end_offset: Offset
    values: Values


@event("application_step", seen_by=ANY_BROKERS)
class ApplicationStep(Event):
    """An application is about to take a step of its loop for the first time since its last poll.

    A step is a call or the processing of a record.
    """

    client: ClientName
    group: Text
    step: Text


@event("application_ended", seen_by=ANY_BROKERS)
class ApplicationEnded(Event):
    """An application has ended by itself, because its producer or consumer cannot continue."""

    client: ClientName
    group: Text
    error: Text


@event("commit_failed", seen_by=STARTED_BROKERS, subsystem=CONSUMER_OFFSETS)
class CommitFailed(Event):
    """A consumer's commit was refused."""

    client: ClientName
    group: Text
    error: Text
    offsets: Pairs


@event("membership_lost", subsystem=CONSUMER_OFFSETS)
class MembershipLost(Event):
    """A consumer has learned or decided that it is no longer, or cannot become, a group member."""

    client: ClientName
    group: Text
    reason: Text


# Operations of clients, made from the history


@history_event("client_sent")
class ClientSent(Event):
    """An application has sent a record."""

    client: ClientName
    partition: PartitionName
    value: Text


@history_event("client_ended")
class ClientEnded(Event):
    """A producer has reported the outcome of a record.

    ``status`` is ``acked``, ``failed`` (the record is in no log) or ``unknown``. ``offset`` is None
    if the producer does not know it.
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
    """Return the kind of events of traces or histories with this name.

    Raises:
        KeyError: no such kind is registered.

    """
    return EVENTS.get(name) or HISTORY_EVENTS[name]


@derived
def event_fields(name: str) -> Mapping[str, FieldKind]:
    """Return the fields that follow the time and the name in a kind of event, in order.

    Raises:
        KeyError: no such kind is registered. TypeError: the type of a field is not annotated with a
        `FieldKind`.

    """
    kind = kind_of(name)
    return {field_name: _kind_of(hint, kind, field_name) for field_name, hint in _hints_of(kind).items()}


@derived
def fields_with(name: str, trait: FieldTrait) -> frozenset[str]:
    """Return those fields of a kind of event that have a trait."""
    hints = _hints_of(kind_of(name))
    return frozenset(field_name for field_name, hint in hints.items() if trait in get_args(hint))


@derived
def events_seen_by(place: Sight) -> frozenset[str]:
    """Return the names of the events that may be in the trace of a run at *place*."""
    return frozenset(name for name, kind in EVENTS.items() if kind.seen_by >= place)


def _hints_of(kind: type[Event]) -> Mapping[str, Any]:
    hints: dict[str, Any] = {item.name: item.type for item in fields(kind)[1:]}
    # `get_type_hints` takes long, and annotations are rarely text.
    if str in map(type, hints.values()):
        evaluated = get_type_hints(kind, include_extras=True)
        hints = {field_name: evaluated[field_name] for field_name in hints}
    return hints


def _kind_of(hint: Any, kind: type[Event], field_name: str) -> FieldKind:
    for part in get_args(hint):
        if isinstance(part, FieldKind):
            return part
    raise TypeError(f"{kind.__name__}.{field_name}: an event has no field of type {hint}")


# Events that are only published to subscribers


@notice("election_decided")
class ElectionDecided(Event):
    """A controller is about to write a new leader.

    `LeaderElected` follows when it has written it.
    """

    controller: BrokerId
    partition: PartitionName
    leader_epoch: Epoch
    unclean: Flag
    reason: Text


@notice("last_known_leader_chosen")
class LastKnownLeaderChosen(Event):
    """A KRaft controller elects the last known leader: the ISR and the ELR are empty (KIP-966)."""

    controller: BrokerId
    partition: PartitionName
    leader_epoch: Epoch


@notice("last_known_leader_elected")
class LastKnownLeaderElected(Event):
    """The election of a `LastKnownLeaderChosen` has been committed to the metadata log."""

    controller: BrokerId
    partition: PartitionName
    leader_epoch: Epoch


@notice("znode_created")
class ZnodeCreated(Event):
    """A client of ZooKeeper has created a znode."""

    client: ProcessName
    path: Text
    czxid: Number


@notice("znode_deleted")
class ZnodeDeleted(Event):
    """A znode is gone."""

    path: Text


@notice("znode_written")
class ZnodeWritten(Event):
    """A client of ZooKeeper, or an administrator without a name, has set a znode's data."""

    client: ProcessName
    path: Text
    before: Annotated[object, FieldKind.OBJECT]
    data: Annotated[object, FieldKind.OBJECT]
    version: Number


@notice("partition_state_written")
class PartitionStateWritten(Event):
    """A broker, as leader or as controller, has written a partition's state.

    ``controller_epoch`` is the controller epoch that the writer knows, ``present_epoch`` the
    current one.
    """

    broker: BrokerId
    partition: PartitionName
    before: Annotated[LeaderAndIsr, FieldKind.OBJECT]
    state: Annotated[LeaderAndIsr, FieldKind.OBJECT]
    controller_epoch: Epoch
    present_epoch: Epoch


@notice("partition_deleted")
class PartitionDeleted(Event):
    """A partition no longer exists, because an administrator has deleted its topic."""

    partition: PartitionName


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
    """A broker obeys a request of the controller with this controller epoch."""

    broker: BrokerId
    api: Text
    controller_epoch: Epoch


@notice("committed_metadata_cut")
class CommittedMetadataCut(Event):
    """A node of the quorum has truncated committed metadata, or leads without it.

    The missing records are those from ``offset`` to the high watermark.
    """

    node: BrokerId
    offset: Offset
    high_watermark: Offset


@notice("metadata_log_truncated", subsystem=KRAFT)
class MetadataLogTruncated(Event):
    """A node has truncated metadata that the leader does not have.

    As far as the node knew, that metadata was not committed.
    """

    node: BrokerId
    from_offset: Offset
    to_offset: Offset


@notice("quorum_election_undecided", subsystem=KRAFT)
class QuorumElectionUndecided(Event):
    """A candidate, or a voter in a pre-vote, is neither elected nor rejected in time."""

    node: BrokerId
    epoch: Epoch


@notice("quorum_majority_lost", subsystem=KRAFT)
class QuorumMajorityLost(Event):
    """A quorum leader resigns, as no majority has fetched from it for too long (KAFKA-15489)."""

    node: BrokerId
    epoch: Epoch


@notice("controller_request_refused")
class ControllerRequestRefused(Event):
    """A controller has refused a broker's request.

    ``partition`` is empty if the request is about the broker itself.
    """

    controller: BrokerId
    api: Text
    broker: BrokerId
    partition: PartitionName
    error: Text


@notice("member_expired", subsystem=CONSUMER_OFFSETS)
class MemberExpired(Event):
    """A group coordinator removes a member that sent no heartbeat for ``session.timeout.ms``."""

    broker: BrokerId
    group: Text
    member: Text


@notice("static_member_replaced", subsystem=CONSUMER_OFFSETS)
class StaticMemberReplaced(Event):
    """A group coordinator gives a static member's place to a consumer with its instance id."""

    broker: BrokerId
    group: Text
    instance: Text
    member: Text


@notice("open_transaction_fenced", subsystem=TRANSACTION_STATE)
class OpenTransactionFenced(Event):
    """A coordinator has written that it aborts an open transaction.

    The transaction timed out, or a new producer has the same id.
    """

    broker: BrokerId
    transactional_id: Text
    is_timed_out: Flag


@notice("metadata_snapshot_written")
class MetadataSnapshotWritten(Event):
    """A node has written a snapshot of the metadata log, which has these ``records``."""

    node: BrokerId
    end_offset: Offset
    epoch: Epoch
    records: Annotated[tuple[Any, ...], FieldKind.OBJECT]


@notice("metadata_snapshot_differs")
class MetadataSnapshotDiffers(Event):
    """A snapshot differs from what the committed records below its end add up to.

    ``committed`` is the number of those records.
    """

    node: BrokerId
    end_offset: Offset
    committed: Offset


@notice("clean_shutdown_noted")
class CleanShutdownNoted(Event):
    """A broker has flushed its logs and written ``.kafka_cleanshutdown``.

    The next start counts as one after a clean shutdown, however the process ends now.
    """

    broker: BrokerId


@notice("broker_change_processed")
class BrokerChangeProcessed(Event):
    """A controller has processed a change of registrations.

    ``registered`` has the broker epochs in the control plane, ``known`` those in the controller's
    own state.
    """

    controller: BrokerId
    controller_epoch: Epoch
    registered: Annotated[Mapping[int, int], FieldKind.OBJECT]
    known: Annotated[Mapping[int, int], FieldKind.OBJECT]


@notice("failover_completed")
class FailoverCompleted(Event):
    """A new controller has taken over.

    ``dead`` and ``leadership`` are its view of brokers and ISRs.
    """

    controller: BrokerId
    controller_epoch: Epoch
    dead: Brokers
    leadership: Annotated[Mapping[str, Any], FieldKind.OBJECT]
