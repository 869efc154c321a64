"""Defines requests to coordinators and their responses, with the names of Kafka's protocol."""

from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar, Final, NamedTuple

from harrow.cluster_model import errors
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.log.record_batch import NO_PRODUCER_ID
from harrow.cluster_model.protocol import NO_EPOCH
from harrow.cluster_model.sim.message import Request

NO_MEMBER: Final = ""
"""The member id of a consumer that has none yet."""
NO_INSTANCE: Final = ""
"""The group instance id of a member that is not static (KIP-345)."""
NO_GENERATION: Final = -1
"""The generation of a consumer that is not a member: it may commit for a group without members."""
NO_OFFSET_COMMITTED: Final = -1


@dataclass(slots=True)
class FindCoordinatorRequest(Request):
    """Find the coordinator of *key*: a group or a transactional id, depending on *topic*."""

    api: ClassVar[str] = "FindCoordinator"
    topic: str
    key: str


@dataclass(slots=True)
class FindCoordinatorResponse:
    """The broker with the coordinator; `NO_LEADER` if there is an error."""

    api: ClassVar[str] = "FindCoordinator"
    error: str
    node: int


# Transactions (KIP-98). InitProducerId is in `harrow.cluster_model.protocol`, because idempotent
# producers send it, too.


@dataclass(slots=True)
class AddPartitionsToTxnRequest(Request):
    """Add partitions to a producer's transaction before it writes to them.

    With ``verify_only`` a broker checks whether they are in it (KIP-890).
    """

    api: ClassVar[str] = "AddPartitionsToTxn"
    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: tuple[str, ...]
    verify_only: bool = False


@dataclass(slots=True)
class AddPartitionsToTxnResponse:
    """An error for each partition."""

    api: ClassVar[str] = "AddPartitionsToTxn"
    partitions: dict[str, str]


@dataclass(slots=True)
class AddOffsetsToTxnRequest(Request):
    """Add the offsets of a group to a producer's transaction, before it commits them."""

    api: ClassVar[str] = "AddOffsetsToTxn"
    transactional_id: str
    producer_id: int
    producer_epoch: int
    group: str


@dataclass(slots=True)
class AddOffsetsToTxnResponse:
    """Only an error."""

    api: ClassVar[str] = "AddOffsetsToTxn"
    error: str


@dataclass(slots=True)
class EndTxnRequest(Request):
    """Commit or abort a producer's transaction."""

    api: ClassVar[str] = "EndTxn"
    transactional_id: str
    producer_id: int
    producer_epoch: int
    committed: bool


@dataclass(slots=True)
class EndTxnResponse:
    """An error; with transactions v2 also the next producer id and epoch (KIP-890)."""

    api: ClassVar[str] = "EndTxn"
    error: str
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_EPOCH


class TxnMarker(NamedTuple):
    """The outcome of a transaction, for partitions that one broker leads."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    committed: bool
    partitions: tuple[str, ...]


@dataclass(slots=True)
class WriteTxnMarkersRequest(Request):
    """Append transaction markers; a coordinator sends this to leaders of partitions."""

    api: ClassVar[str] = "WriteTxnMarkers"
    markers: tuple[TxnMarker, ...]


@dataclass(slots=True)
class WriteTxnMarkersResponse:
    """An error for each producer id and partition."""

    api: ClassVar[str] = "WriteTxnMarkers"
    markers: dict[int, dict[str, str]]


@dataclass(slots=True)
class TxnOffsetCommitRequest(Request):
    """Commit offsets of a group in a transaction; they take effect once that is committed.

    Since KIP-447 it names the ``member`` and its ``generation``, so that a former member is fenced.
    """

    api: ClassVar[str] = "TxnOffsetCommit"
    transactional_id: str
    group: str
    producer_id: int
    producer_epoch: int
    offsets: Mapping[str, int]
    generation: int = NO_GENERATION
    member: str = NO_MEMBER
    instance: str = NO_INSTANCE


@dataclass(slots=True)
class TxnOffsetCommitResponse:
    """An error for each partition."""

    api: ClassVar[str] = "TxnOffsetCommit"
    partitions: dict[str, str]


# Groups, classic protocol


@dataclass(slots=True)
class JoinGroupRequest(Request):
    """Join a group, or join it again.

    ``protocols`` are the assignors that the consumer supports, in its order of preference, each
    with its subscription for the member that assigns: its topics, and the partitions that it owns.
    """

    api: ClassVar[str] = "JoinGroup"
    group: str
    session_timeout_us: int
    rebalance_timeout_us: int
    member: str
    instance: str
    protocols: tuple[tuple[str, "Subscription"], ...]


class Subscription(NamedTuple):
    """A member's input to the assignor (``ConsumerPartitionAssignor.Subscription``)."""

    topics: tuple[str, ...]
    owned: tuple[str, ...] = ()
    generation: int = NO_GENERATION
    rack: str = ""


@dataclass(slots=True)
class JoinGroupResponse:
    """The generation, its leader and assignor; for the leader also members' subscriptions."""

    api: ClassVar[str] = "JoinGroup"
    error: str
    generation: int = NO_GENERATION
    protocol: str = ""
    leader: str = NO_MEMBER
    member: str = NO_MEMBER
    members: tuple[tuple[str, str, Subscription], ...] = ()
    skip_assignment: bool = False


@dataclass(slots=True)
class SyncGroupRequest(Request):
    """Request a member's partitions. The leader includes the assignments of all members."""

    api: ClassVar[str] = "SyncGroup"
    group: str
    generation: int
    member: str
    instance: str
    assignments: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(slots=True)
class SyncGroupResponse:
    """The partitions of a member in its generation."""

    api: ClassVar[str] = "SyncGroup"
    error: str
    partitions: tuple[str, ...] = ()


@dataclass(slots=True)
class HeartbeatRequest(Request):
    """Report that a member is alive."""

    api: ClassVar[str] = "Heartbeat"
    group: str
    generation: int
    member: str
    instance: str


@dataclass(slots=True)
class HeartbeatResponse:
    """Only an error, which may say that the group rebalances."""

    api: ClassVar[str] = "Heartbeat"
    error: str


@dataclass(slots=True)
class LeaveGroupRequest(Request):
    """Leave a group."""

    api: ClassVar[str] = "LeaveGroup"
    group: str
    member: str
    instance: str = NO_INSTANCE


@dataclass(slots=True)
class LeaveGroupResponse:
    """Only an error."""

    api: ClassVar[str] = "LeaveGroup"
    error: str


@dataclass(slots=True)
class OffsetCommitRequest(Request):
    """Commit offsets of a group. A consumer that subscribes names its member id and generation."""

    api: ClassVar[str] = "OffsetCommit"
    group: str
    generation: int
    member: str
    instance: str
    offsets: Mapping[str, int]


@dataclass(slots=True)
class OffsetCommitResponse:
    """An error for each partition."""

    api: ClassVar[str] = "OffsetCommit"
    partitions: dict[str, str]


@dataclass(slots=True)
class OffsetFetchRequest(Request):
    """Fetch the committed offsets of a group.

    ``require_stable`` refuses offsets that an open transaction may change (KIP-447). With KIP-848
    the consumer names its member id and epoch.
    """

    api: ClassVar[str] = "OffsetFetch"
    group: str
    partitions: tuple[str, ...]
    require_stable: bool = False
    member: str = NO_MEMBER
    epoch: int = NO_GENERATION


@dataclass(slots=True)
class OffsetFetchResponse:
    """The error and committed offset of each partition; `NO_OFFSET_COMMITTED` if there is none."""

    api: ClassVar[str] = "OffsetFetch"
    partitions: dict[str, tuple[str, int]]
    error: str = errors.NONE


# Groups, consumer protocol (KIP-848)

JOIN_EPOCH: Final = 0
"""The member epoch in a heartbeat that joins."""
LEAVE_EPOCH: Final = -1
"""The member epoch in a heartbeat that leaves."""
LEAVE_STATIC_EPOCH: Final = -2
"""The member epoch of a static member that leaves for a while.

Its place is kept until its session expires.
"""


@dataclass(slots=True)
class ConsumerGroupHeartbeatRequest(Request):
    """Join, report that a member is alive and what it owns, or leave, depending on ``epoch``.

    A field is None if it has not changed since the last heartbeat. ``assignor`` is also None if the
    member leaves the choice to the coordinator.
    """

    api: ClassVar[str] = "ConsumerGroupHeartbeat"
    group: str
    member: str
    epoch: int
    instance: str = NO_INSTANCE
    rebalance_timeout_us: int | None = None
    topics: tuple[str, ...] | None = None
    assignor: str | None = None
    owned: tuple[str, ...] | None = None

    def is_full(self) -> bool:
        """Return whether all fields are set, so that the response must include the assignment.

        A member that has missed a response sends such a heartbeat.
        """
        return self.epoch == JOIN_EPOCH or (
            self.rebalance_timeout_us is not None and self.topics is not None and self.owned is not None
        )


@dataclass(slots=True)
class ConsumerGroupHeartbeatResponse:
    """A member's epoch and heartbeat interval, and its assignment, which is None if unchanged."""

    api: ClassVar[str] = "ConsumerGroupHeartbeat"
    error: str
    member: str = NO_MEMBER
    epoch: int = JOIN_EPOCH
    heartbeat_interval_us: int = 0
    assignment: tuple[str, ...] | None = None
