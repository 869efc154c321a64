"""Defines the messages between Kafka's processes, with the fields that the model needs.

Names are those of Kafka's protocol (clients/src/main/resources/common/message). A partition is
written ``topic-number``, for example ``t-0``.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar, Final

from harrow.cluster_model import errors
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.log.record_batch import NO_PRODUCER_ID, RecordBatch
from harrow.cluster_model.sim.message import Request

NO_LEADER: Final = -1
NO_EPOCH: Final = -1
CONSUMER_REPLICA_ID: Final = -1

NO_SESSION: Final = 0
INITIAL_SESSION_EPOCH: Final = 0
FINAL_SESSION_EPOCH: Final = -1
"""Values in fetch sessions (``FetchMetadata.java``).

Without an id a full fetch is either the first of a session or, with the final epoch, opens none.
"""

LATEST_TIMESTAMP: Final = -1
EARLIEST_TIMESTAMP: Final = -2
"""The ends of a log in a ListOffsets request (``ListOffsetsRequest.java``)."""

READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1
LOG_END: Final = -1
"""How far a fetch reads: a consumer's isolation level, or the log end for a follower.

``FetchIsolation`` has the same levels.
"""


@dataclass(slots=True)
class ProduceRequest(Request):
    """Batches for partitions that the receiver leads; ``acks`` is 0, 1 or -1 (all).

    With a ``transactional_id`` the leader may ask its coordinator about the transaction (KIP-890).
    """

    api: ClassVar[str] = "Produce"
    acks: int
    timeout_us: int
    batches: dict[str, RecordBatch]
    transactional_id: str = ""

    @property
    def record_bytes(self) -> int:
        """The size of its batches."""
        return sum(batch.size_bytes for batch in self.batches.values())


@dataclass(slots=True)
class ProduceResponse:
    """Partitions as ``(error, base offset)``; offset -1 if unknown.

    ``current_leaders`` has leader and leader epoch of partitions that another broker leads, if this
    one knows them (KIP-951). For ``throttle_us`` the broker does not read from the client and the
    client waits, because it has exceeded its quota (KIP-219).
    """

    api: ClassVar[str] = "Produce"
    partitions: dict[str, tuple[str, int]]
    current_leaders: dict[str, tuple[int, int]] = field(default_factory=dict)
    throttle_us: int = 0


@dataclass(slots=True)
class FetchRequest(Request):
    """Partitions as ``(fetch offset, current leader epoch)``; -1 without KIP-320.

    ``last_epochs`` has the epoch of the record before the fetch offset, for followers whose leader
    detects a divergence of their logs (KIP-595).

    ``log_starts`` has the log starts of a follower's partitions, except for those at 0 (KIP-107).

    ``replica_id`` is the follower's broker, in KRaft with its broker epoch as ``replica_epoch``
    (KIP-903), or -1 for a consumer, which has an isolation level, and its ``rack``: "" for none,
    and None where it knows of no racks, or only a leader is to answer it (versions before 11,
    KIP-392). With a session epoch above 0 the partitions are what is new since the request before,
    and ``forgotten`` those not to be fetched any more (KIP-227).
    """

    api: ClassVar[str] = "Fetch"
    replica_id: int
    max_wait_us: int
    max_bytes: int
    partitions: dict[str, tuple[int, int]]
    isolation_level: int = READ_UNCOMMITTED
    session_id: int = NO_SESSION
    session_epoch: int = FINAL_SESSION_EPOCH
    forgotten: tuple[str, ...] = ()
    last_epochs: dict[str, int] = field(default_factory=dict)
    replica_epoch: int = NO_EPOCH
    log_starts: dict[str, int] = field(default_factory=dict)
    rack: str | None = None

    def repeated(self, cycles: int) -> "FetchRequest":
        """Return the request of the same session after *cycles* empty responses.

        Idle fetches need it often, and `dataclasses.replace` is slow.
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
            self.last_epochs,
            self.replica_epoch,
            self.log_starts,
            self.rack,
        )


DELETE_TO_HIGH_WATERMARK: Final = -1
"""The offset in a DeleteRecords request for all committed records.

``DeleteRecordsRequest.HIGH_WATERMARK``
"""


@dataclass(slots=True)
class FetchedPartition:
    """A partition in the answer to a fetch; ``hw`` is its high watermark.

    ``diverging`` has an epoch and its end, for a follower whose log diverges from the leader's.
    Then there are no data, and the high watermark has no meaning.

    ``corrupt_offset`` is the base offset of a batch with a wrong CRC after ``batches``, -1 if there
    is none. The leader does not know that it is wrong, only the receiver notices.
    ``current_leader`` is another broker that leads now, with its epoch (KIP-951).
    ``preferred_read_replica`` is the replica that a consumer should read from; then there are no
    data either (KIP-392).
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
    """For read_committed: aborted transactions in ``batches``, as producer id and first offset."""
    last_stable_offset: int = -1
    """For read_committed: the end of the readable records."""


@dataclass(slots=True)
class FetchResponse:
    """The answer to a Fetch; in a session only the partitions with news.

    ``error`` is about the session. Without a session (`NO_SESSION`) the next fetch is full again.
    ``throttle_us`` is as in `ProduceResponse`; such an answer has no partitions.
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
    """Partitions as ``(current leader epoch, requested epoch)`` (KIP-101, KIP-320)."""

    api: ClassVar[str] = "OffsetsForLeaderEpoch"
    replica_id: int
    partitions: dict[str, tuple[int, int]]


@dataclass(slots=True)
class OffsetsForLeaderEpochResponse:
    """Partitions as ``(error, answered epoch, end offset)``; epoch -1 before KIP-279."""

    api: ClassVar[str] = "OffsetsForLeaderEpoch"
    partitions: dict[str, tuple[str, int, int]]


@dataclass(slots=True)
class ListOffsetsRequest(Request):
    """A question for the beginning or the end of partitions.

    The end is the LEO for a follower, and the HW or LSO for a consumer. ``partitions`` has the
    current leader epochs that the sender knows, -1 without KIP-320.
    """

    api: ClassVar[str] = "ListOffsets"
    replica_id: int
    partitions: dict[str, int]
    isolation_level: int = READ_UNCOMMITTED
    timestamp: int = LATEST_TIMESTAMP


@dataclass(slots=True)
class ListOffsetsResponse:
    """Partitions as ``(error, offset)``."""

    api: ClassVar[str] = "ListOffsets"
    partitions: dict[str, tuple[str, int]]


@dataclass(slots=True)
class MetadataRequest(Request):
    """A client asks for brokers and leaders."""

    api: ClassVar[str] = "Metadata"


@dataclass(slots=True)
class MetadataResponse:
    """A broker's metadata: leader and leader epoch by partition, rack by broker.

    A partition without a leader has -1; ``racks`` has only brokers with a rack.
    """

    api: ClassVar[str] = "Metadata"
    brokers: tuple[int, ...]
    partitions: dict[str, tuple[int, int]]
    racks: Mapping[int, str] = field(default_factory=dict)


@dataclass(slots=True)
class InitProducerIdRequest(Request):
    """A producer asks for its producer id.

    One with a transactional id asks its coordinator, which ends an open transaction of that id and
    raises the epoch. A producer that continues after an error sends its id and epoch (KIP-360).
    """

    api: ClassVar[str] = "InitProducerId"
    transactional_id: str = ""
    transaction_timeout_us: int = 0
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_EPOCH


@dataclass(slots=True)
class InitProducerIdResponse:
    """A producer id that no other producer has."""

    api: ClassVar[str] = "InitProducerId"
    error: str
    producer_id: int
    producer_epoch: int


@dataclass(slots=True, frozen=True)
class LeaderAndIsr:
    """The state of a partition, as in its znode (``LeaderAndIsr.scala``)."""

    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    partition_epoch: int


@dataclass(slots=True, frozen=True)
class ReplicaAssignment:
    """The replicas of a partition; ``adding`` and ``removing`` while it is reassigned (KIP-455).

    ``replicas`` are all of them, preferred leader first: the target replicas, then those to remove
    (``ReplicaAssignment.scala``).
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
        """The replicas that remain after a cancellation; their order may have changed."""
        return tuple(replica for replica in self.replicas if replica not in self.adding)

    def reassigned_to(self, target: tuple[int, ...]) -> "ReplicaAssignment":
        """Return it with another target.

        Replicas that an earlier reassignment added are dropped, unless the new target has them.
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
    """The controller makes a broker lead or follow partitions."""

    api: ClassVar[str] = "LeaderAndIsr"
    controller_id: int
    controller_epoch: int
    broker_epoch: int
    partition_states: dict[str, LeaderAndIsrPartitionState]


@dataclass(slots=True)
class UpdateMetadataRequest(Request):
    """The controller sends every broker the live brokers, and the leaders of partitions."""

    api: ClassVar[str] = "UpdateMetadata"
    controller_id: int
    controller_epoch: int
    broker_epoch: int
    partition_states: dict[str, LeaderAndIsrPartitionState]
    live_brokers: tuple[int, ...]


@dataclass(slots=True)
class StopReplicaRequest(Request):
    """The controller makes a broker stop fetching for some replicas, or delete them."""

    api: ClassVar[str] = "StopReplica"
    controller_id: int
    controller_epoch: int
    broker_epoch: int
    partitions: tuple[str, ...]
    delete_partitions: bool = False


@dataclass(slots=True)
class ControlResponse:
    """The answer to a control request; ``api`` names the request.

    ``offline`` are the partitions of a LeaderAndIsr or StopReplica whose log directory has failed
    (KAFKA_STORAGE_ERROR, KIP-112).
    """

    api: str
    error: str
    offline: tuple[str, ...] = ()


@dataclass(slots=True, frozen=True)
class AlterPartition:
    """An ISR that a leader requests, with broker epochs, -1 if unknown (KIP-903)."""

    leader_epoch: int
    partition_epoch: int
    isr: tuple[tuple[int, int], ...]


@dataclass(slots=True, frozen=True)
class AlterPartitionRequest(Request):
    """A leader requests other ISRs (KIP-497)."""

    api: ClassVar[str] = "AlterPartition"
    broker: int
    broker_epoch: int
    partitions: dict[str, AlterPartition]


@dataclass(slots=True, frozen=True)
class AlterPartitionResponse:
    """Partitions as ``(error, new partition epoch)``."""

    api: ClassVar[str] = "AlterPartition"
    error: str
    partitions: dict[str, tuple[str, int]]


@dataclass(slots=True)
class ControlledShutdownRequest(Request):
    """A broker asks the controller to move its leaderships away.

    The broker epoch is `NO_EPOCH` before KIP-380.
    """

    api: ClassVar[str] = "ControlledShutdown"
    broker: int
    broker_epoch: int


@dataclass(slots=True)
class ControlledShutdownResponse:
    """The partitions with other replicas that the broker still leads."""

    api: ClassVar[str] = "ControlledShutdown"
    error: str
    remaining: tuple[str, ...] = ()


ControlRequest = LeaderAndIsrRequest | UpdateMetadataRequest | StopReplicaRequest
