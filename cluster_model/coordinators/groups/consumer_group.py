"""Defines the state of a consumer group on its coordinator (KIP-848).

Modelled on ``ConsumerGroup.java`` and ``ConsumerGroupMember.java``. A group has three kinds of
epochs. The group epoch rises when members or partitions change. The target epoch is the group epoch
for which the target assignment was computed. The member epoch shows how far a member has
reconciled. A member does not wait for all others: once it has revoked its partitions, it enters the
target epoch and gets those of its new partitions that are free.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Final, NamedTuple

from harrow.cluster_model.coordinators.internal_topics import java_hash_place
from harrow.cluster_model.coordinators.protocol import JOIN_EPOCH, NO_INSTANCE, NO_MEMBER
from harrow.cluster_model.lazy_dataclass import dataclass

EMPTY: Final = "Empty"
ASSIGNING: Final = "Assigning"
RECONCILING: Final = "Reconciling"
STABLE: Final = "Stable"
"""The states of a group with the protocol of KIP-848 (``ConsumerGroup.ConsumerGroupState``)."""

MEMBER_STABLE: Final = "STABLE"
UNREVOKED_PARTITIONS: Final = "UNREVOKED_PARTITIONS"
UNRELEASED_PARTITIONS: Final = "UNRELEASED_PARTITIONS"
"""The states of a member (``MemberState``).

In the first state a member has its target assignment, in the second it must revoke partitions, and
in the third it waits until other members have revoked partitions.
"""

AssignmentEpochs = Mapping[str, int]
"""Partitions, each with the epoch in which it was assigned to its owner (KIP-1251)."""

_NO_PARTITIONS: Final[AssignmentEpochs] = MappingProxyType({})


class CurrentAssignment(NamedTuple):
    """A member's epoch, the partitions that it owns, and the partitions that it must revoke.

    The coordinator accepts ``previous_epoch`` as well, because the member may not have received the
    response with ``epoch``.
    """

    epoch: int = JOIN_EPOCH
    previous_epoch: int = JOIN_EPOCH
    state: str = MEMBER_STABLE
    assigned: AssignmentEpochs = _NO_PARTITIONS
    revoking: AssignmentEpochs = _NO_PARTITIONS

    def in_epoch(self, epoch: int) -> "CurrentAssignment":
        """Return this assignment at an epoch, which may be the current epoch.

        See ``ConsumerGroupMember.Builder.updateMemberEpoch``.
        """
        return self._replace(epoch=epoch, previous_epoch=self.epoch)

    def owns(self) -> tuple[str, ...]:
        """Return all partitions that the member owns, including those that it must revoke."""
        return (*self.assigned, *self.revoking)


_NO_ASSIGNMENT: Final = CurrentAssignment()


class Subscriber(NamedTuple):
    """The properties of a member that it sends in its heartbeats."""

    instance: str = NO_INSTANCE
    client: str = ""
    rebalance_timeout_us: int = 0
    topics: tuple[str, ...] = ()
    assignor: str | None = None


@dataclass(slots=True, eq=False)
class ConsumerGroupMember:
    """A member of a group with the protocol of KIP-848.

    ``deadline_us`` is the end of its session. If ``is_watched``, a timer checks the deadline.
    ``reconciliations`` counts changes of the current assignment, so that a timer that was set after
    an earlier change is ignored.
    """

    id: str
    subscriber: Subscriber
    current: CurrentAssignment = _NO_ASSIGNMENT
    deadline_us: int = 0
    is_watched: bool = False
    reconciliations: int = 0

    def is_reconciled_to(self, target_epoch: int) -> bool:
        return self.current.state == MEMBER_STABLE and self.current.epoch == target_epoch


@dataclass(slots=True, eq=False)
class ConsumerGroup:
    """The members of a group, with their target assignments and current assignments.

    ``topics`` maps subscribed topics to their numbers of partitions. ``target`` was computed at
    ``target_computed_us`` for ``target_epoch``. ``partition_count`` is the number of partitions in
    the broker's metadata at the last update of ``topics``. ``static_members`` maps instance ids to
    member ids, and ``owners`` maps partitions to the ids of the members that own them.
    ``releases_former_instances`` is the switch `previous_instance_id_released`.
    """

    releases_former_instances: bool
    epoch: int = 0
    topics: dict[str, int] = field(default_factory=dict)
    target_epoch: int = 0
    target_computed_us: int | None = None
    target: dict[str, tuple[str, ...]] = field(default_factory=dict)
    members: dict[str, ConsumerGroupMember] = field(default_factory=dict)
    static_members: dict[str, str] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)
    partition_count: int = 0

    @property
    def state(self) -> str:
        """The group's state, derived from the other fields (``maybeUpdateGroupState``)."""
        if not self.members:
            return EMPTY
        if self.epoch > self.target_epoch:
            return ASSIGNING
        if all(member.is_reconciled_to(self.target_epoch) for member in self.members.values()):
            return STABLE
        return RECONCILING

    def static_member(self, instance: str) -> ConsumerGroupMember | None:
        return self.members.get(self.static_members.get(instance, NO_MEMBER))

    def is_orphaned(self, instance: str) -> bool:
        """Return whether an instance id still belongs to a removed member.

        This is possible only without the switch `previous_instance_id_released`.
        """
        return instance in self.static_members and self.static_member(instance) is None

    def put(self, member: ConsumerGroupMember) -> None:
        """Add or update a member (``updateMember``, ``updateStaticMember``)."""
        self.members[member.id] = member
        if self.releases_former_instances:
            for instance in [name for name, owner in self.static_members.items() if owner == member.id]:
                del self.static_members[instance]
        if member.subscriber.instance != NO_INSTANCE:
            self.static_members[member.subscriber.instance] = member.id

    def remove(self, member_id: str) -> None:
        """Remove a member. Its partitions are free then, and its target is dropped."""
        member = self.members.pop(member_id, None)
        self.target.pop(member_id, None)
        if member is None:
            return
        self._release(member)
        if self.static_members.get(member.subscriber.instance) == member_id:
            del self.static_members[member.subscriber.instance]

    def set_current(self, member: ConsumerGroupMember, current: CurrentAssignment) -> None:
        """Change the current assignment of a member."""
        self._release(member)
        member.current = current
        for partition in current.owns():
            self.owners[partition] = member.id

    def _release(self, member: ConsumerGroupMember) -> None:
        for partition in member.current.owns():
            if self.owners.get(partition) == member.id:
                del self.owners[partition]

    def hold(self, partitions: Iterable[str]) -> None:
        """Reserve partitions, so that no member gets them until they are released."""
        self.owners.update(dict.fromkeys(partitions, NO_MEMBER))

    def release(self, partitions: Iterable[str]) -> None:
        for partition in partitions:
            if self.owners.get(partition) == NO_MEMBER:
                del self.owners[partition]

    def is_owned_by_other(self, partition: str, member: ConsumerGroupMember) -> bool:
        """Return whether another member owns a partition, or the partition is held."""
        return self.owners.get(partition, member.id) != member.id

    def subscribed_topics(self) -> dict[str, None]:
        """Return the topics to which at least one member subscribes."""
        return {topic: None for member in self.members.values() for topic in member.subscriber.topics}

    def preferred_assignor(self) -> str | None:
        """Return the assignor that most members prefer (``computePreferredServerAssignor``)."""
        votes = Counter(
            member.subscriber.assignor for member in self.members.values() if member.subscriber.assignor
        )
        # A tie goes to the first name in a Java hash table: `Stream.max` returns the first maximum.
        return min(votes, key=lambda name: (-votes[name], java_hash_place(name))) if votes else None
