"""The messages of clients and brokers to coordinators (clients/src/main/resources/common/message)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final, NamedTuple

from harrow.cluster_model import errors
from harrow.cluster_model.log.record_batch import NO_PRODUCER_ID
from harrow.cluster_model.protocol import NO_EPOCH
from harrow.cluster_model.sim.message import Request

NO_MEMBER: Final = ""
"""The member id of who has none yet."""
NO_INSTANCE: Final = ""
"""The group instance id of a member that is not static (KIP-345)."""
NO_GENERATION: Final = -1
"""The generation of who is no member of a group: it commits for a group that is empty, or has no member that subscribes."""
NO_OFFSET_COMMITTED: Final = -1


@dataclass(slots=True)
class FindCoordinatorRequest(Request):
    """A client looks for the coordinator of a group or a transactional id, which is its *key*; ``topic`` says of which."""

    api: ClassVar[str] = "FindCoordinator"
    topic: str
    key: str


@dataclass(slots=True)
class FindCoordinatorResponse:
    """The broker that is the coordinator, `NO_LEADER` with an error."""

    api: ClassVar[str] = "FindCoordinator"
    error: str
    node: int


# Transactions (KIP-98). InitProducerId is in `harrow.cluster_model.protocol`, for idempotent producers send it too.


@dataclass(slots=True)
class AddPartitionsToTxnRequest(Request):
    """A producer is about to write to partitions in its transaction; a broker that verifies one only asks (KIP-890)."""

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
    """A producer is about to commit offsets of a group in its transaction."""

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
    """A producer commits its transaction, or aborts it."""

    api: ClassVar[str] = "EndTxn"
    transactional_id: str
    producer_id: int
    producer_epoch: int
    committed: bool


@dataclass(slots=True)
class EndTxnResponse:
    """An error; with transactions v2 the producer id and epoch that the producer goes on with (KIP-890)."""

    api: ClassVar[str] = "EndTxn"
    error: str
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_EPOCH


class TxnMarker(NamedTuple):
    """How a transaction has ended, for the partitions that one broker leads."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    committed: bool
    partitions: tuple[str, ...]


@dataclass(slots=True)
class WriteTxnMarkersRequest(Request):
    """A transaction coordinator has the leaders of partitions end transactions there."""

    api: ClassVar[str] = "WriteTxnMarkers"
    markers: tuple[TxnMarker, ...]


@dataclass(slots=True)
class WriteTxnMarkersResponse:
    """For each producer id an error for each partition."""

    api: ClassVar[str] = "WriteTxnMarkers"
    markers: dict[int, dict[str, str]]


@dataclass(slots=True)
class TxnOffsetCommitRequest(Request):
    """A producer commits offsets of a group in its transaction: they count once that is committed.

    With KIP-447 it says as which member of the group (``member``, ``generation``), so that one of the past is fenced.
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
    """A consumer wants to be a member, or has found out that it has to join again.

    ``protocols`` are the assignors that it can do, in its order, each with what it tells the one who assigns: the topics that it
    subscribes to, and the partitions that it owns.
    """

    api: ClassVar[str] = "JoinGroup"
    group: str
    session_timeout_us: int
    rebalance_timeout_us: int
    member: str
    instance: str
    protocols: tuple[tuple[str, "Subscription"], ...]


class Subscription(NamedTuple):
    """What a member tells the one who assigns (``ConsumerPartitionAssignor.Subscription``)."""

    topics: tuple[str, ...]
    owned: tuple[str, ...] = ()
    generation: int = NO_GENERATION
    rack: str = ""


@dataclass(slots=True)
class JoinGroupResponse:
    """The generation, who leads it, which assignor is used, and for the leader the members: id, instance, subscription."""

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
    """A member asks for its partitions; from the leader it brings those of all, by member."""

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
    """A member says that it is alive."""

    api: ClassVar[str] = "Heartbeat"
    group: str
    generation: int
    member: str
    instance: str


@dataclass(slots=True)
class HeartbeatResponse:
    """Only an error: that the group rebalances is one."""

    api: ClassVar[str] = "Heartbeat"
    error: str


@dataclass(slots=True)
class LeaveGroupRequest(Request):
    """A member leaves."""

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
    """A consumer commits up to which offsets it has read; one that subscribes says as which member of the group."""

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
    """A consumer asks where its group is; ``require_stable`` waits for transactions that are to commit there (KIP-447).

    With the protocol of KIP-848 it says as which member, in which epoch.
    """

    api: ClassVar[str] = "OffsetFetch"
    group: str
    partitions: tuple[str, ...]
    require_stable: bool = False
    member: str = NO_MEMBER
    epoch: int = NO_GENERATION


@dataclass(slots=True)
class OffsetFetchResponse:
    """For each partition the error and the committed offset, `NO_OFFSET_COMMITTED` where there is none."""

    api: ClassVar[str] = "OffsetFetch"
    partitions: dict[str, tuple[str, int]]
    error: str = errors.NONE


# Groups, consumer protocol (KIP-848)

JOIN_EPOCH: Final = 0
"""The member epoch of who joins, or joins again."""
LEAVE_EPOCH: Final = -1
"""The member epoch of who leaves its group."""
LEAVE_STATIC_EPOCH: Final = -2
"""The member epoch of a static member that leaves for a while: its place is kept for as long as its session lasts."""


@dataclass(slots=True)
class ConsumerGroupHeartbeatRequest(Request):
    """A member joins, says that it is alive and what it owns, or leaves: its ``epoch`` says which.

    What has not changed since the last one is None, and so is the assignor of who leaves that to the coordinator.
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
        """Return whether it says all that it could say, so that it is told all: who has missed an answer sends such a one."""
        return self.epoch == JOIN_EPOCH or (
            self.rebalance_timeout_us is not None and self.topics is not None and self.owned is not None
        )


@dataclass(slots=True)
class ConsumerGroupHeartbeatResponse:
    """A member's epoch, how often it is heard of, and what it is to own, None where that is as it was."""

    api: ClassVar[str] = "ConsumerGroupHeartbeat"
    error: str
    member: str = NO_MEMBER
    epoch: int = JOIN_EPOCH
    heartbeat_interval_us: int = 0
    assignment: tuple[str, ...] | None = None
