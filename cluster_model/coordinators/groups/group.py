"""A group as its coordinator has it: its state, its members, its offsets (``GroupMetadata.scala``, ``MemberMetadata.scala``)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from harrow.cluster_model.coordinators.groups.consumer_group import ConsumerGroup
from harrow.cluster_model.coordinators.protocol import (
    NO_INSTANCE,
    NO_MEMBER,
    JoinGroupResponse,
    Subscription,
    SyncGroupResponse,
)

EMPTY: Final = "Empty"
PREPARING_REBALANCE: Final = "PreparingRebalance"
COMPLETING_REBALANCE: Final = "CompletingRebalance"
STABLE: Final = "Stable"
DEAD: Final = "Dead"
"""The states of a group; up to 1.0 CompletingRebalance was called AwaitingSync."""

Protocols = tuple[tuple[str, Subscription], ...]


_NOTHING: Final = Subscription(())


@dataclass(slots=True, eq=False)
class Member:
    """A member of a group. It awaits a generation while it has ``on_join``, its partitions while it has ``on_sync``.

    ``deadline_us`` is when its session ends; one timer watches that, and is set while ``is_watched``.
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
        """Return what the member tells who assigns by a protocol.

        That is nothing for a static member that has come back without it while the generation goes on, as up to 2.6 it does.
        """
        return next((told for name, told in self.protocols if name == protocol), _NOTHING)

    def awaits(self) -> bool:
        """Return whether the coordinator owes it an answer, so that its session does not run."""
        return self.on_join is not None or self.on_sync is not None


class CommittedOffset(NamedTuple):
    """Up to where a group has read a partition. Of two commits the later one in the log counts: that with the larger ``place``."""

    offset: int
    committed_us: int
    place: int


@dataclass(slots=True, eq=False)
class Group:
    """A group. ``leader`` is the member that assigns, ``protocol`` the assignor.

    ``pending_members`` have been given an id and have not joined with it yet (KIP-394). ``rebalances`` counts
    those that were begun, so that a timer knows whether its own is over. ``initial_wait_us`` is for how much longer the first
    rebalance of an empty group may wait, None where none waits. ``in_flight`` counts the commits of each partition that are
    not replicated yet, ``pending_offsets`` are what transactions have committed that have not ended, by producer id.
    ``appended`` is the place in the log of what is appended next.

    A group whose members have the protocol of KIP-848 has ``consumers``, whose state ``state`` is, and no member here.
    """

    id: str
    partition: int
    state: str = EMPTY
    generation: int = 0
    protocol: str = ""
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
    appended: int = 0
    consumers: ConsumerGroup | None = None

    # Members

    def add(self, member: Member) -> None:
        """Take a member; the first one leads."""
        if not self.members:
            self.leader = member.id
        self.members[member.id] = member
        if member.instance != NO_INSTANCE:
            self.static_members[member.instance] = member.id
        self.pending_members.pop(member.id, None)

    def remove(self, member: Member) -> None:
        """Forget a member; if it led, the next one does that has joined, else the first."""
        del self.members[member.id]
        self.pending_sync.pop(member.id, None)
        if self.static_members.get(member.instance) == member.id:
            del self.static_members[member.instance]
        if self.leader == member.id:
            self.leader = next(iter(self.members), NO_MEMBER)

    def elect_joined_leader(self) -> None:
        """Have one of those lead that have joined, where the leader has not (``maybeElectNewJoinedLeader``)."""
        leader = self.members.get(self.leader)
        if leader is None or leader.on_join is None:
            self.leader = next((each.id for each in self.members.values() if each.on_join), self.leader)

    def replace_static(self, member: Member, member_id: str) -> None:
        """Give the place of a static member to who has come back with the same instance id (KIP-345)."""
        self.members = {(member_id if each is member else name): each for name, each in self.members.items()}
        if self.leader == member.id:
            self.leader = member_id
        self.pending_sync.pop(member.id, None)
        member.id = member_id
        self.static_members[member.instance] = member_id

    def have_all_joined(self) -> bool:
        return not self.pending_members and all(member.on_join for member in self.members.values())

    def rebalance_timeout_us(self) -> int:
        return max((member.rebalance_timeout_us for member in self.members.values()), default=0)

    def supports(self, protocols: Protocols) -> bool:
        """Return whether all members can do one of these assignors."""
        named = {name for name, _ in protocols}
        return not self.members or any(
            all(any(name == own for own, _ in member.protocols) for member in self.members.values())
            for name in named
        )

    def selected_protocol(self, order: Callable[[str], tuple[int, ...]]) -> str:
        """Return the assignor for which most members vote: each for its first one that all can do (``selectProtocol``).

        Of those with as many votes that comes first which does so in the coordinator's hash table, by *order*.
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

    def subscribed(self) -> Iterator[tuple[str, str, Subscription]]:
        """Yield the members as their leader is told of them."""
        for member in self.members.values():
            yield member.id, member.instance, member.subscription(self.protocol)

    def subscribed_topics(self) -> dict[str, None]:
        """Return the topics that somebody subscribes to (``computeSubscribedTopics``)."""
        return {topic: None for _, _, subscription in self.subscribed() for topic in subscription.topics}

    # Offsets

    def is_unstable(self, partition: str) -> bool:
        """Return whether what is committed of a partition may be about to change (``hasPendingOffsetCommitsForTopicPartition``)."""
        return bool(self.in_flight.get(partition)) or self.is_pending(partition)

    def is_pending(self, partition: str) -> bool:
        """Return whether a transaction is to commit there (``hasPendingTransactionalOffsets``)."""
        return any(partition in offsets for offsets in self.pending_offsets.values())

    def take_offset(self, partition: str, committed: CommittedOffset) -> None:
        """Take a commit, unless a later one was quicker."""
        known = self.offsets.get(partition)
        if known is None or known.place <= committed.place:
            self.offsets[partition] = committed

    def end_transaction(self, producer_id: int, *, committed: bool) -> dict[str, CommittedOffset]:
        """Take what a transaction has committed, or forget it; return what was taken."""
        pending = self.pending_offsets.pop(producer_id, {})
        if not committed:
            return {}
        for partition, offset in pending.items():
            self.take_offset(partition, offset)
        return pending

    def is_idle(self) -> bool:
        """Return whether nothing keeps the group (``GroupMetadata.hasOffsets``)."""
        return (
            self.state == EMPTY and not (self.offsets or self.in_flight or self.pending_offsets)
        ) and not self.pending_members
