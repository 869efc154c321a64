"""Defines the messages between Kafka's processes, with the fields that the model needs.

Names are those of Kafka's protocol (clients/src/main/resources/common/message). A partition is
written ``topic-number``, for example ``t-0``.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar, Final, final

from harrow.cluster_model import errors
from harrow.cluster_model.compiling import mypyc_attr
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.log.record_batch import NO_PRODUCER_ID, RecordBatch
from harrow.cluster_model.sim.message import Request

NO_LEADER: Final = -1
LEADER_DURING_DELETE: Final = -2
"""The leader of a deleted partition in an UpdateMetadata request (``LeaderAndIsr.scala``)."""
NO_EPOCH: Final = -1
CONSUMER_REPLICA_ID: Final = -1
NO_LOG_START: Final = -1

NO_SESSION: Final = 0
INITIAL_SESSION_EPOCH: Final = 0
FINAL_SESSION_EPOCH: Final = -1
"""Session ids and epochs with a special meaning in fetches (``FetchMetadata.java``).

A fetch with `NO_SESSION` has all partitions. With `INITIAL_SESSION_EPOCH` it asks for a new
session, with `FINAL_SESSION_EPOCH` for none.
"""

LATEST_TIMESTAMP: Final = -1
EARLIEST_TIMESTAMP: Final = -2
"""The ends of a log in a ListOffsets request (``ListOffsetsRequest.java``)."""
MAX_TIMESTAMP: Final = -3
"""The record with the largest timestamp (KIP-734)."""

READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1
LOG_END: Final = -1
"""How far a fetch reads: for a consumer as its isolation level says, for a follower to the log end.

These are the levels of ``FetchIsolation``.
"""


@final
@mypyc_attr(free_list_len=1)
@dataclass(slots=True)
class ProduceRequest(Request):
    """Batches for partitions that the receiver leads; ``acks`` is 0, 1 or -1 (all).

    If there is a ``transactional_id``, the leader may ask the coordinator of that id whether its
    partitions are in the transaction (KIP-890). With ``adds_partitions`` the leader adds them to
    the transaction, for a client that uses transactions v2 (version 12 of the request).
    """

    api: ClassVar[str] = "Produce"
    acks: int
    timeout_us: int
    batches: dict[str, RecordBatch]
    transactional_id: str = ""
    adds_partitions: bool = False

    @property
    def record_bytes(self) -> int:
        """The size of its batches."""
        return sum(batch.size_bytes for batch in self.batches.values())


@final
@mypyc_attr(free_list_len=1)
@dataclass(slots=True)
class ProduceResponse:
    """The answer to a Produce.

    ``partitions`` has ``(error, base offset)``, with offset -1 if it is unknown.
    ``current_leaders`` has the leader and the leader epoch of partitions that another broker leads,
    if this broker knows them (KIP-951). If the client has exceeded its quota, it must wait for
    ``throttle_us``, and the broker reads no request from it until then (KIP-219).
    """

    api: ClassVar[str] = "Produce"
    partitions: dict[str, tuple[str, int]]
    current_leaders: dict[str, tuple[int, int]] = field(default_factory=dict)
    throttle_us: int = 0


@final
@mypyc_attr(free_list_len=1)
@dataclass(slots=True)
class PartitionData:
    """What a fetch states about a partition (``FetchRequest.PartitionData``).

    ``leader_epoch`` is the current leader epoch, -1 before KIP-320. A follower whose leader checks
    for divergence sends in ``last_epoch`` the epoch of its record before ``offset`` (KIP-595). Only
    followers send the start of their log (KIP-107).
    """

    offset: int
    leader_epoch: int
    last_epoch: int = NO_EPOCH
    log_start: int = NO_LOG_START

    def differs_from(self, other: "PartitionData") -> bool:
        """Return whether the broker must learn about this after *other*."""
        return (
            self.offset != other.offset
            or self.leader_epoch != other.leader_epoch
            or self.last_epoch != other.last_epoch
            or self.log_start != other.log_start
        )


@final
@mypyc_attr(free_list_len=1)
@dataclass(slots=True)
class FetchRequest(Request):
    """A fetch of records by a follower or a consumer.

    In a request that continues a session, ``partitions`` has only the partitions that have changed
    since the previous request, and ``forgotten`` are those that are no longer fetched (KIP-227).

    ``replica_id`` is the follower's broker id, to which KRaft adds its broker epoch,
    ``replica_epoch`` (KIP-903). It is -1 for a consumer, which sends its isolation level and its
    ``rack`` instead. A rack of "" means that the consumer has none. A rack of None means that only
    a leader may answer, as in versions of the request before 11 (KIP-392).
    """

    api: ClassVar[str] = "Fetch"
    replica_id: int
    max_wait_us: int
    max_bytes: int
    partitions: dict[str, PartitionData]
    isolation_level: int = READ_UNCOMMITTED
    session_id: int = NO_SESSION
    session_epoch: int = FINAL_SESSION_EPOCH
    forgotten: tuple[str, ...] = ()
    replica_epoch: int = NO_EPOCH
    rack: str | None = None

    def repeated(self, cycles: int) -> "FetchRequest":
        """Return the request of the same session after *cycles* empty responses.

        Idle fetches call this often, and `dataclasses.replace` is slow.
        """
        return FetchRequest(
            self.replica_id,
            self.max_wait_us,
            self.max_bytes,
            self.partitions,
            self.isolation_level,
            self.session_id,
            self.session_epoch + cycles,
            self.forgotten,
            self.replica_epoch,
            self.rack,
        )


DELETE_TO_HIGH_WATERMARK: Final = -1
"""The offset of a DeleteRecords request that deletes all committed records.

Kafka's name is ``DeleteRecordsRequest.HIGH_WATERMARK``.
"""


@dataclass(slots=True)
class DeleteRecordsRequest(Request):
    """Asks leaders to delete all records below an offset of each partition (KIP-107)."""

    api: ClassVar[str] = "DeleteRecords"
    partitions: dict[str, int]
    timeout_us: int


@dataclass(slots=True)
class DeleteRecordsResponse:
    """Partitions as ``(error, low watermark)``: the lowest log start of the live replicas."""

    api: ClassVar[str] = "DeleteRecords"
    partitions: dict[str, tuple[str, int]]


@dataclass(slots=True)
class DescribeProducersRequest(Request):
    """Asks leaders for the producers that they know (KIP-664)."""

    api: ClassVar[str] = "DescribeProducers"
    partitions: tuple[str, ...]


@dataclass(slots=True, frozen=True)
class DescribedProducer:
    """A producer of a partition.

    ``transaction_start`` is the first offset of its open transaction, -1 if it has none.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int
    coordinator_epoch: int
    transaction_start: int


@dataclass(slots=True)
class DescribeProducersResponse:
    """Partitions as ``(error, producers)``."""

    api: ClassVar[str] = "DescribeProducers"
    partitions: dict[str, tuple[str, tuple[DescribedProducer, ...]]]


@final
@mypyc_attr(free_list_len=1)
@dataclass(slots=True)
class FetchedPartition:
    """A partition in the answer to a fetch; ``hw`` is its high watermark.

    If a follower's log diverges from the leader's, ``diverging`` is an epoch and its end offset in
    the leader's log. Such an answer has no batches, and its high watermark means nothing.

    ``corrupt_offset`` is the base offset of a batch with a wrong CRC that follows ``batches``, -1
    if there is none. The leader does not check the CRC; only the receiver notices. If another
    broker leads now, ``current_leader`` is that broker and its leader epoch (KIP-951).
    ``preferred_read_replica`` is the replica from which a consumer should read instead; such an
    answer has no batches either (KIP-392).
    """

    error: str
    hw: int
    batches: tuple[RecordBatch, ...] = ()
    diverging: tuple[int, int] | None = None
    corrupt_offset: int = -1
    current_leader: tuple[int, int] | None = None
    log_start_offset: int = 0
    preferred_read_replica: int | None = None
    aborted: tuple[tuple[int, int], ...] = ()
    """For read_committed: (producer id, first offset) of aborted transactions in ``batches``."""
    last_stable_offset: int = -1
    """For read_committed: the offset below which all transactions have ended."""


@final
@mypyc_attr(free_list_len=1)
@dataclass(slots=True)
class FetchResponse:
    """The answer to a Fetch.

    In a session it has only the partitions with news. ``error`` is about the session. If
    ``session_id`` is `NO_SESSION`, the next fetch has all partitions again. ``throttle_us`` is as
    in `ProduceResponse`; the answer to a throttled fetch has no partitions.
    """

    api: ClassVar[str] = "Fetch"
    partitions: dict[str, FetchedPartition]
    error: str = errors.NONE
    session_id: int = NO_SESSION
    throttle_us: int = 0

    @property
    def record_bytes(self) -> int:
        """The size of its batches."""
        return sum(batch.size_bytes for fetched in self.partitions.values() for batch in fetched.batches)


@dataclass(slots=True)
class OffsetsForLeaderEpochRequest(Request):
    """Asks a leader where an epoch ends in its log (KIP-101, KIP-320).

    ``partitions`` has ``(current leader epoch, requested epoch)``.
    """

    api: ClassVar[str] = "OffsetsForLeaderEpoch"
    replica_id: int
    partitions: dict[str, tuple[int, int]]


@dataclass(slots=True)
class OffsetsForLeaderEpochResponse:
    """Says where epochs end.

    ``partitions`` has ``(error, epoch, end offset)``. The epoch is the largest in the leader's log
    up to the requested one; before KIP-279 it is -1.
    """

    api: ClassVar[str] = "OffsetsForLeaderEpoch"
    partitions: dict[str, tuple[str, int, int]]


@dataclass(slots=True)
class ListOffsetsRequest(Request):
    """Asks for the offset at which partitions begin or end, depending on ``timestamp``.

    Real clients ask for an offset by time, in which case ``timestamps`` has a number for each
    partition.

    The end is the LEO for a follower. For a consumer it is the high watermark or the last stable
    offset, depending on the isolation level. ``partitions`` has the leader epochs that the sender
    knows, -1 before KIP-320.
    """

    api: ClassVar[str] = "ListOffsets"
    replica_id: int
    partitions: dict[str, int]
    isolation_level: int = READ_UNCOMMITTED
    timestamp: int = LATEST_TIMESTAMP
    timestamps: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class ListOffsetsResponse:
    """Partitions as ``(error, offset)``."""

    api: ClassVar[str] = "ListOffsets"
    partitions: dict[str, tuple[str, int]]


@dataclass(slots=True)
class TimedOffsetsResponse:
    """The answer to a ListOffsets that asks for offsets by time.

    ``readable`` has the batches of the partitions for which the request has a time. The model does
    not know the timestamps of single records. So the server of real clients finds the offset.
    """

    api: ClassVar[str] = "ListOffsets"
    partitions: dict[str, tuple[str, int]]
    readable: dict[str, tuple[RecordBatch, ...]]


@dataclass(slots=True)
class MetadataRequest(Request):
    """A client asks for the live brokers, and for the leaders of partitions.

    The answer has all partitions. A real client may also name topics that do not exist, which the
    broker then creates if the request permits it.
    """

    api: ClassVar[str] = "Metadata"
    topics: tuple[str, ...] = ()
    allow_auto_topic_creation: bool = False


@dataclass(slots=True)
class MetadataResponse:
    """A broker's metadata.

    ``partitions`` has the leader and the leader epoch of each partition, with leader -1 for none.
    ``racks`` has only the brokers that have a rack. ``topic_errors`` has the topics that the
    request names and that did not exist.
    """

    api: ClassVar[str] = "Metadata"
    brokers: tuple[int, ...]
    partitions: dict[str, tuple[int, int]]
    racks: Mapping[int, str] = field(default_factory=dict)
    topic_errors: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class InitProducerIdRequest(Request):
    """A producer asks for its producer id.

    If it has a transactional id, it asks the coordinator of that id, which ends an open transaction
    and raises the producer epoch. A producer that continues after an error sends its producer id
    and epoch (KIP-360).
    """

    api: ClassVar[str] = "InitProducerId"
    transactional_id: str = ""
    transaction_timeout_us: int = 0
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_EPOCH


@dataclass(slots=True)
class InitProducerIdResponse:
    """A producer id that belongs to this producer alone, and its epoch."""

    api: ClassVar[str] = "InitProducerId"
    error: str
    producer_id: int
    producer_epoch: int


@dataclass(slots=True, frozen=True)
class LeaderAndIsr:
    """The state of a partition, as in its znode or the metadata log (``LeaderAndIsr.scala``)."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int

    def in_partition_epoch(self, partition_epoch: int) -> "LeaderAndIsr":
        """Return the same state in another partition epoch. `dataclasses.replace` is slow."""
        return LeaderAndIsr(self.leader, self.leader_epoch, self.isr, partition_epoch)


@dataclass(slots=True, frozen=True)
class ReplicaAssignment:
    """The replicas of a partition, and its reassignment, if any (``ReplicaAssignment.scala``).

    ``replicas`` has the preferred leader first. During a reassignment (KIP-455) it has first the
    target replicas, of which ``adding`` are new, and then those that the reassignment is
    ``removing``.
    """

    replicas: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def is_being_reassigned(self) -> bool:
        return bool(self.adding or self.removing)

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas that remain after the reassignment."""
        return tuple(replica for replica in self.replicas if replica not in self.removing)

    @property
    def origin(self) -> tuple[int, ...]:
        """The replicas that remain if the reassignment is cancelled.

        Their order may have changed.
        """
        return tuple(replica for replica in self.replicas if replica not in self.adding)

    def reassigned_to(self, target: tuple[int, ...]) -> "ReplicaAssignment":
        """Return the assignment at the start of a reassignment to *target*.

        Replicas that an earlier reassignment was adding are dropped, unless *target* has them.
        """
        origin = self.origin
        return ReplicaAssignment(
            tuple(dict.fromkeys((*target, *origin))),
            tuple(replica for replica in target if replica not in origin),
            tuple(replica for replica in origin if replica not in target),
        )


@dataclass(slots=True)
class LeaderAndIsrPartitionState:
    """A partition in a LeaderAndIsr or UpdateMetadata request."""

    controller_epoch: int
    leader_and_isr: LeaderAndIsr
    replicas: tuple[int, ...]


@dataclass(slots=True)
class LeaderAndIsrRequest(Request):
    """The controller tells a broker which partitions it leads, and which leaders it follows."""

    api: ClassVar[str] = "LeaderAndIsr"
    controller_id: int
    controller_epoch: int
    broker_epoch: int
    partition_states: dict[str, LeaderAndIsrPartitionState]


@dataclass(slots=True)
class UpdateMetadataRequest(Request):
    """The controller tells each broker which brokers are live, and who leads partitions."""

    api: ClassVar[str] = "UpdateMetadata"
    controller_id: int
    controller_epoch: int
    broker_epoch: int
    partition_states: dict[str, LeaderAndIsrPartitionState]
    live_brokers: tuple[int, ...]


@dataclass(slots=True)
class StopReplicaRequest(Request):
    """The controller tells a broker to stop fetching for some replicas, or to delete them."""

    api: ClassVar[str] = "StopReplica"
    controller_id: int
    controller_epoch: int
    broker_epoch: int
    partitions: tuple[str, ...]
    delete_partitions: bool = False


@dataclass(slots=True)
class ControlResponse:
    """The answer to a request of the controller; ``api`` names the request.

    ``offline`` are the partitions in a LeaderAndIsr or StopReplica request whose log directory has
    failed (KAFKA_STORAGE_ERROR, KIP-112).
    """

    api: str
    error: str
    offline: tuple[str, ...] = ()


@dataclass(slots=True, frozen=True)
class AlterPartition:
    """A change that a leader requests for a partition.

    ``isr`` is the new ISR, as pairs of broker and broker epoch. The broker epoch is -1 if the
    leader does not know it (KIP-903).
    """

    leader_epoch: int
    partition_epoch: int
    isr: tuple[tuple[int, int], ...]


@dataclass(slots=True, frozen=True)
class AlterPartitionRequest(Request):
    """A broker asks the controller to change the ISRs of partitions that it leads (KIP-497)."""

    api: ClassVar[str] = "AlterPartition"
    broker: int
    broker_epoch: int
    partitions: dict[str, AlterPartition]


@dataclass(slots=True, frozen=True)
class AlterPartitionResponse:
    """The answer to an AlterPartition: ``(error, new partition epoch)`` for each partition."""

    api: ClassVar[str] = "AlterPartition"
    error: str
    partitions: dict[str, tuple[str, int]]


@dataclass(slots=True)
class ControlledShutdownRequest(Request):
    """A broker that shuts down asks the controller to move its leaderships to other brokers.

    The broker epoch is `NO_EPOCH` before KIP-380.
    """

    api: ClassVar[str] = "ControlledShutdown"
    broker: int
    broker_epoch: int


@dataclass(slots=True)
class ControlledShutdownResponse:
    """The answer to a ControlledShutdown.

    ``remaining`` are the partitions that the broker still leads, although they have other replicas.
    """

    api: ClassVar[str] = "ControlledShutdown"
    error: str
    remaining: tuple[str, ...] = ()


ControlRequest = LeaderAndIsrRequest | UpdateMetadataRequest | StopReplicaRequest
