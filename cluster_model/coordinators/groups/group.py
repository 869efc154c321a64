"""Defines the state of a group on its coordinator.

Modelled on ``GroupMetadata.scala`` and ``MemberMetadata.scala``.
"""

from collections.abc import Callable, Iterator
from dataclasses import field
from typing import Final, NamedTuple

from harrow.cluster_model.coordinators.groups.consumer_group import ConsumerGroup
from harrow.cluster_model.coordinators.protocol import (
    CONSUMER_TYPE,
    NO_INSTANCE,
    NO_MEMBER,
    JoinGroupResponse,
    Subscription,
    SyncGroupResponse,
)
from harrow.cluster_model.lazy_dataclass import dataclass

EMPTY: Final = "Empty"
PREPARING_REBALANCE: Final = "PreparingRebalance"
COMPLETING_REBALANCE: Final = "CompletingRebalance"
STABLE: Final = "Stable"
DEAD: Final = "Dead"
"""The states of a classic group. Up to 1.0, CompletingRebalance was called AwaitingSync."""

Protocols = tuple[tuple[str, Subscription], ...]


_NO_TOPICS: Final = Subscription(())


@dataclass(slots=True, eq=False)
class Member:
    """A member of a classic group.

    The member waits for a generation while ``on_join`` is set, and for its partitions while
    ``on_sync`` is set. ``deadline_us`` is the end of its session. If ``is_watched``, a timer checks
    the deadline.
    """

    id: str
    instance: str
    client: str
    session_timeout_us: int
    rebalance_timeout_us: int
    protocols: Protocols
    partitions: tuple[str, ...] = ()
    on_join: Callable[[JoinGroupResponse], None] | None = None
    on_sync: Callable[[SyncGroupResponse], None] | None = None
    deadline_us: int = 0
    is_watched: bool = False

    def subscription(self, protocol: str) -> Subscription:
        """Return the member's subscription for an assignor.

        Up to 2.6 a static member can come back without this assignor although the generation
        continues. Its subscription is then empty.
        """
        return next((subscription for name, subscription in self.protocols if name == protocol), _NO_TOPICS)

    def awaits_answer(self) -> bool:
        """Return whether the member waits for an answer, which suspends its session."""
        return self.on_join is not None or self.on_sync is not None


class CommittedOffset(NamedTuple):
    """A committed offset.

    ``position`` is the position of the commit in the log. The last commit of a partition counts.
    """

    offset: int
    committed_us: int
    position: int


@dataclass(slots=True, eq=False)
class Group:
    """A group. ``leader`` is the id of the member that assigns, ``protocol`` is the assignor.

    ``pending_members`` have received an id but have not joined with it yet (KIP-394).
    ``pending_sync`` are the members that have not sent SyncGroup in this generation. ``rebalances``
    counts rebalances, so that a timer of an earlier rebalance is ignored. ``initial_wait_us`` is
    how much longer the first rebalance of an empty group may wait, or None. ``in_flight`` counts
    the unreplicated commits of each partition. ``pending_offsets`` are the commits of open
    transactions, by producer id. ``next_position`` is the position of the next commit in the log.

    If the group has the protocol of KIP-848, its members are in ``consumers``, ``members`` is
    empty, and ``state`` is the state of ``consumers``. In a classic group ``consumers`` is None.
    """

    id: str
    partition: int
    state: str = EMPTY
    generation: int = 0
    protocol: str = ""
    protocol_type: str = CONSUMER_TYPE
    leader: str = NO_MEMBER
    members: dict[str, Member] = field(default_factory=dict)
    static_members: dict[str, str] = field(default_factory=dict)
    pending_members: dict[str, None] = field(default_factory=dict)
    pending_sync: dict[str, None] = field(default_factory=dict)
    rebalances: int = 0
    initial_wait_us: int | None = None
    has_new_members: bool = False
    offsets: dict[str, CommittedOffset] = field(default_factory=dict)
    in_flight: dict[str, int] = field(default_factory=dict)
    pending_offsets: dict[int, dict[str, CommittedOffset]] = field(default_factory=dict)
    empty_since_us: int = 0
    next_position: int = 0
    consumers: ConsumerGroup | None = None

    # Members

    def add(self, member: Member, protocol_type: str) -> None:
        """Add a member. The first member of a group becomes its leader, and sets its type."""
        if not self.members:
            self.leader, self.protocol_type = member.id, protocol_type
        self.members[member.id] = member
        if member.instance != NO_INSTANCE:
            self.static_members[member.instance] = member.id
        self.pending_members.pop(member.id, None)

    def remove(self, member: Member) -> None:
        """Remove a member. If it was the leader, the first remaining member becomes leader."""
        del self.members[member.id]
        self.pending_sync.pop(member.id, None)
        if self.static_members.get(member.instance) == member.id:
            del self.static_members[member.instance]
        if self.leader == member.id:
            self.leader = next(iter(self.members), NO_MEMBER)

    def elect_joined_leader(self) -> None:
        """Make a member that has joined the leader, unless the current leader has joined.

        Modelled on ``maybeElectNewJoinedLeader``.
        """
        leader = self.members.get(self.leader)
        if leader is None or leader.on_join is None:
            self.leader = next((member.id for member in self.members.values() if member.on_join), self.leader)

    def replace_static(self, member: Member, member_id: str) -> None:
        """Give a static member that has come back its new member id (KIP-345)."""
        self.members = {
            (member_id if other is member else name): other for name, other in self.members.items()
        }
        if self.leader == member.id:
            self.leader = member_id
        self.pending_sync.pop(member.id, None)
        member.id = member_id
        self.static_members[member.instance] = member_id

    def have_all_joined(self) -> bool:
        return not self.pending_members and all(member.on_join for member in self.members.values())

    def rebalance_timeout_us(self) -> int:
        return max((member.rebalance_timeout_us for member in self.members.values()), default=0)

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Return whether all members have this type, and support one of these assignors.

        An empty group takes any type and any assignors, but not none (``supportsProtocols``).
        """
        if self.state == EMPTY:
            return bool(protocol_type and protocols)
        return protocol_type == self.protocol_type and any(
            all(any(name == own for own, _ in member.protocols) for member in self.members.values())
            for name, _ in protocols
        )

    def selected_protocol(self, order: Callable[[str], tuple[int, ...]]) -> str:
        """Return the assignor with the most votes (``selectProtocol``).

        Each member votes for the first of its assignors that all members support. In a tie, the
        assignor that comes first in the coordinator's hash table wins; *order* returns its place.
        """
        members = list(self.members.values())
        common = [
            name
            for name, _ in members[0].protocols
            if all(any(name == own for own, _ in member.protocols) for member in members)
        ]
        votes = dict.fromkeys(common, 0)
        for member in members:
            votes[next(name for name, _ in member.protocols if name in votes)] += 1
        return min(common, key=lambda name: (-votes[name], order(name)))

    def member_subscriptions(self) -> Iterator[tuple[str, str, Subscription]]:
        """Yield the id, instance id and subscription of each member, which the leader needs."""
        for member in self.members.values():
            yield member.id, member.instance, member.subscription(self.protocol)

    def subscribed_topics(self) -> dict[str, None]:
        """Return the topics to which members subscribe (``computeSubscribedTopics``)."""
        return {
            topic: None for _, _, subscription in self.member_subscriptions() for topic in subscription.topics
        }

    # Offsets

    def is_unstable(self, partition: str) -> bool:
        """Return whether the committed offset of a partition may be about to change.

        See ``hasPendingOffsetCommitsForTopicPartition``.
        """
        return bool(self.in_flight.get(partition)) or self.is_pending(partition)

    def is_pending(self, partition: str) -> bool:
        """Return whether an open transaction has an offset of a partition.

        See ``hasPendingTransactionalOffsets``.
        """
        return any(partition in offsets for offsets in self.pending_offsets.values())

    def apply_offset(self, partition: str, committed: CommittedOffset) -> None:
        """Apply a commit, unless a commit at a later position in the log was applied before."""
        current = self.offsets.get(partition)
        if current is None or current.position <= committed.position:
            self.offsets[partition] = committed

    def end_transaction(self, producer_id: int, *, committed: bool) -> dict[str, CommittedOffset]:
        """Apply or drop the commits of a transaction. Return the applied commits."""
        pending = self.pending_offsets.pop(producer_id, {})
        if not committed:
            return {}
        for partition, offset in pending.items():
            self.apply_offset(partition, offset)
        return pending

    def is_idle(self) -> bool:
        """Return whether the group can be removed (``GroupMetadata.hasOffsets``)."""
        return (
            self.state == EMPTY and not (self.offsets or self.in_flight or self.pending_offsets)
        ) and not self.pending_members
