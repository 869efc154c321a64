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
"""The generation in requests of a consumer that is not a member.

Such a consumer may commit offsets of a group that has no members.
"""
NO_OFFSET_COMMITTED: Final = -1
"""The offset in a response for a partition without a committed offset."""


CONSUMER_TYPE: Final = "consumer"
"""The type of the protocol of consumers. Other members, such as Connect's workers, have others."""


@dataclass(slots=True)
class FindCoordinatorRequest(Request):
    """Find the coordinator of ``key``.

    ``topic`` is an internal topic, which shows whether ``key`` is a group or a transactional id.
    """

    api: ClassVar[str] = "FindCoordinator"
    topic: str
    key: str


@dataclass(slots=True)
class FindCoordinatorResponse:
    """The broker id of the coordinator; ``node`` is `NO_LEADER` if there is an error."""

    api: ClassVar[str] = "FindCoordinator"
    error: str
    node: int


# Transactions (KIP-98). InitProducerId is in `harrow.cluster_model.protocol`, because idempotent
# producers send it, too.


@dataclass(slots=True)
class AddPartitionsToTxnRequest(Request):
    """Add partitions to a producer's transaction before it writes to them.

    With ``verify_only`` the sender is the leader of the partitions. It only asks whether they are
    already in the transaction (KIP-890). All requests of leaders have ``is_v2``, and a transaction
    that they begin uses transactions v2 (``transactionVersionForAddPartitionsToTxn``).
    """

    api: ClassVar[str] = "AddPartitionsToTxn"
    transactional_id: str
    producer_id: int
    producer_epoch: int
    partitions: tuple[str, ...]
    verify_only: bool = False
    is_v2: bool = False


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
    """Commit or abort a producer's transaction.

    With ``is_v2`` the producer takes its next epoch from the answer (transactions v2, KIP-890).
    The version of the request shows this (``TransactionVersion.transactionVersionForEndTxn``), so
    an older producer keeps its epoch on a new broker.
    """

    api: ClassVar[str] = "EndTxn"
    transactional_id: str
    producer_id: int
    producer_epoch: int
    committed: bool
    is_v2: bool = False


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
    """Append transaction markers. A coordinator sends this request to partition leaders."""

    api: ClassVar[str] = "WriteTxnMarkers"
    markers: tuple[TxnMarker, ...]


@dataclass(slots=True)
class WriteTxnMarkersResponse:
    """An error for each partition of each marker, by the producer id of the marker."""

    api: ClassVar[str] = "WriteTxnMarkers"
    markers: dict[int, dict[str, str]]


@dataclass(slots=True)
class TxnOffsetCommitRequest(Request):
    """Commit offsets of a group in a transaction. They take effect if the transaction commits.

    Since KIP-447 the request has the ``member`` and its ``generation``, so that a former member is
    fenced. With ``adds_partitions`` the group coordinator adds the group's partition to the
    transaction (transactions v2, KIP-890). With ``knows_group_errors`` the producer understands
    GROUP_ID_NOT_FOUND and STALE_MEMBER_EPOCH (version 6, KIP-1319).
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
    adds_partitions: bool = False
    knows_group_errors: bool = False


@dataclass(slots=True)
class TxnOffsetCommitResponse:
    """An error for each partition."""

    api: ClassVar[str] = "TxnOffsetCommit"
    partitions: dict[str, str]


# Groups, classic protocol


@dataclass(slots=True)
class JoinGroupRequest(Request):
    """Join a group, or join it again.

    ``protocols`` lists the assignors that the consumer supports, in its order of preference. With
    each assignor comes the consumer's subscription, which the leader of the group passes to the
    assignor. A consumer that ``repeats_with_id`` joins again after MEMBER_ID_REQUIRED; requests
    before version 4 do not (KIP-394).
    """

    api: ClassVar[str] = "JoinGroup"
    group: str
    session_timeout_us: int
    rebalance_timeout_us: int
    member: str
    instance: str
    protocols: tuple[tuple[str, "Subscription"], ...]
    repeats_with_id: bool = True
    protocol_type: str = CONSUMER_TYPE


class Subscription(NamedTuple):
    """A member's input to the assignor (``ConsumerPartitionAssignor.Subscription``).

    ``owned`` are the partitions that the member owned in ``generation``.
    """

    topics: tuple[str, ...]
    owned: tuple[str, ...] = ()
    generation: int = NO_GENERATION
    rack: str = ""


@dataclass(slots=True)
class JoinGroupResponse:
    """The new generation, its leader, and its assignor, ``protocol``.

    Only the leader gets ``members``: each with id, instance id and subscription. With
    ``skip_assignment`` the generation continues, and the leader must not assign (KIP-814).
    """

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
    """Request a member's partitions. The leader sends the ``assignments`` of all members.

    A member may name the type and the name of its protocol, which must be the group's (KIP-559).
    """

    api: ClassVar[str] = "SyncGroup"
    group: str
    generation: int
    member: str
    instance: str
    assignments: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    protocol_type: str | None = None
    protocol: str | None = None


@dataclass(slots=True)
class SyncGroupResponse:
    """The partitions that a member is assigned in this generation."""

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
    """Only an error. After REBALANCE_IN_PROGRESS the member joins again."""

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
    """Commit offsets of a group. A member of the group sends its member id and generation."""

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
    """Fetch the committed offsets of a group, of all its partitions if ``partitions`` is None.

    With ``require_stable`` the coordinator refuses to return an offset that an open transaction may
    change (KIP-447). With KIP-848 the consumer sends its member id and epoch.
    """

    api: ClassVar[str] = "OffsetFetch"
    group: str
    partitions: tuple[str, ...] | None
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
"""The member epoch in a heartbeat with which a member joins."""
LEAVE_EPOCH: Final = -1
"""The member epoch in a heartbeat with which a member leaves."""
LEAVE_STATIC_EPOCH: Final = -2
"""The member epoch in a heartbeat with which a static member leaves temporarily.

The group keeps its assignment until its session expires.
"""


@dataclass(slots=True)
class ConsumerGroupHeartbeatRequest(Request):
    """Join, leave, or report that a member is alive and which partitions it owns.

    ``epoch`` is `JOIN_EPOCH`, `LEAVE_EPOCH`, `LEAVE_STATIC_EPOCH` or the member's epoch. A field is
    None if it has not changed since the last heartbeat. ``assignor`` is also None if the member
    leaves the choice to the coordinator.
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

        A member that has missed a response sends all fields again.
        """
        return self.epoch == JOIN_EPOCH or (
            self.rebalance_timeout_us is not None and self.topics is not None and self.owned is not None
        )


@dataclass(slots=True)
class ConsumerGroupHeartbeatResponse:
    """A member's epoch, heartbeat interval and assignment. An unchanged assignment is None."""

    api: ClassVar[str] = "ConsumerGroupHeartbeat"
    error: str
    member: str = NO_MEMBER
    epoch: int = JOIN_EPOCH
    heartbeat_interval_us: int = 0
    assignment: tuple[str, ...] | None = None


# Administration of groups


class DescribedMember(NamedTuple):
    """A member of a classic group, its subscription and its assignment."""

    id: str
    instance: str
    client: str
    subscription: Subscription
    partitions: tuple[str, ...]


class DescribedGroup(NamedTuple):
    """A classic group. ``assignor`` is empty unless the group is stable."""

    group: str
    error: str
    state: str = ""
    protocol_type: str = ""
    assignor: str = ""
    members: tuple[DescribedMember, ...] = ()


@dataclass(slots=True)
class DescribeGroupsRequest(Request):
    """Describe classic groups."""

    api: ClassVar[str] = "DescribeGroups"
    groups: tuple[str, ...]


@dataclass(slots=True)
class DescribeGroupsResponse:
    """The descriptions of groups. An unknown group has the state Dead."""

    api: ClassVar[str] = "DescribeGroups"
    groups: tuple[DescribedGroup, ...]


class DescribedConsumer(NamedTuple):
    """A member of a group with the protocol of KIP-848."""

    id: str
    instance: str
    epoch: int
    client: str
    topics: tuple[str, ...]
    assigned: tuple[str, ...]
    target: tuple[str, ...]


class DescribedConsumerGroup(NamedTuple):
    """A group with the protocol of KIP-848."""

    group: str
    error: str
    state: str = ""
    epoch: int = 0
    target_epoch: int = 0
    assignor: str = ""
    members: tuple[DescribedConsumer, ...] = ()


@dataclass(slots=True)
class ConsumerGroupDescribeRequest(Request):
    """Describe groups with the protocol of KIP-848."""

    api: ClassVar[str] = "ConsumerGroupDescribe"
    groups: tuple[str, ...]


@dataclass(slots=True)
class ConsumerGroupDescribeResponse:
    """The descriptions of groups."""

    api: ClassVar[str] = "ConsumerGroupDescribe"
    groups: tuple[DescribedConsumerGroup, ...]


class ListedGroup(NamedTuple):
    """A group in a list of groups."""

    group: str
    protocol_type: str
    state: str
    type: str


@dataclass(slots=True)
class ListGroupsRequest(Request):
    """List the groups that a broker coordinates, in these states and of these types, if any."""

    api: ClassVar[str] = "ListGroups"
    states: tuple[str, ...] = ()
    types: tuple[str, ...] = ()


@dataclass(slots=True)
class ListGroupsResponse:
    """The groups that a broker coordinates."""

    api: ClassVar[str] = "ListGroups"
    error: str
    groups: tuple[ListedGroup, ...]


@dataclass(slots=True)
class DeleteGroupsRequest(Request):
    """Delete groups without members, with their offsets."""

    api: ClassVar[str] = "DeleteGroups"
    groups: tuple[str, ...]


@dataclass(slots=True)
class DeleteGroupsResponse:
    """The error of each group."""

    api: ClassVar[str] = "DeleteGroups"
    groups: Mapping[str, str]


@dataclass(slots=True)
class OffsetDeleteRequest(Request):
    """Delete the committed offsets of partitions."""

    api: ClassVar[str] = "OffsetDelete"
    group: str
    partitions: Mapping[str, None]


@dataclass(slots=True)
class OffsetDeleteResponse:
    """The error of the group, or that of each partition."""

    api: ClassVar[str] = "OffsetDelete"
    error: str
    partitions: Mapping[str, str]


# Administration of transactions


class DescribedTransaction(NamedTuple):
    """The state of a transactional id, and the partitions of its open transaction."""

    transactional_id: str
    error: str
    state: str = ""
    timeout_us: int = 0
    producer_id: int = -1
    producer_epoch: int = -1
    partitions: tuple[str, ...] = ()


@dataclass(slots=True)
class DescribeTransactionsRequest(Request):
    """Describe transactional ids (KIP-664)."""

    api: ClassVar[str] = "DescribeTransactions"
    transactional_ids: tuple[str, ...]


@dataclass(slots=True)
class DescribeTransactionsResponse:
    """The descriptions of transactional ids."""

    api: ClassVar[str] = "DescribeTransactions"
    transactions: tuple[DescribedTransaction, ...]


class ListedTransaction(NamedTuple):
    """A transactional id in a list."""

    transactional_id: str
    producer_id: int
    state: str


@dataclass(slots=True)
class ListTransactionsRequest(Request):
    """List the transactional ids that a broker coordinates, in these states, of these producers.

    Without states or producer ids, any count. A transaction must have been open for
    ``duration_us`` (KIP-994).
    """

    api: ClassVar[str] = "ListTransactions"
    states: tuple[str, ...] = ()
    producer_ids: tuple[int, ...] = ()
    duration_us: int | None = None


@dataclass(slots=True)
class ListTransactionsResponse:
    """The transactional ids that a broker coordinates, and the states that it does not know."""

    api: ClassVar[str] = "ListTransactions"
    error: str
    unknown_states: tuple[str, ...] = ()
    transactions: tuple[ListedTransaction, ...] = ()
