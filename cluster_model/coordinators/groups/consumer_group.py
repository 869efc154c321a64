"""A group whose coordinator assigns, as that has it (KIP-848; ``ConsumerGroup.java``, ``ConsumerGroupMember.java``).

It has three kinds of epochs. The group's is bumped when its members or their partitions change, the target's says for which of those
the target assignment was made, and a member's how far that member has come. No member waits for all: a member that has given up what it is
to give up goes on to the target's epoch, and gets of its new partitions those that have no owner any more.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, NamedTuple

from harrow.cluster_model.coordinators.internal_topics import java_hash_place
from harrow.cluster_model.coordinators.protocol import JOIN_EPOCH, NO_INSTANCE, NO_MEMBER

EMPTY: Final = "Empty"
ASSIGNING: Final = "Assigning"
RECONCILING: Final = "Reconciling"
STABLE: Final = "Stable"
"""The states of a group (``ConsumerGroup.ConsumerGroupState``)."""

MEMBER_STABLE: Final = "STABLE"
UNREVOKED_PARTITIONS: Final = "UNREVOKED_PARTITIONS"
UNRELEASED_PARTITIONS: Final = "UNRELEASED_PARTITIONS"
"""The states of a member: it has all that it is to have, it has still to give something up, or others have (``MemberState``)."""

Epochs = Mapping[str, int]
"""Partitions, each with the epoch in which its owner was given it (KIP-1251)."""

_NOTHING: Final[Epochs] = MappingProxyType({})


class CurrentAssignment(NamedTuple):
    """How far a member has come: what it owns, of that what it is to give up, and in which epoch it is.

    ``previous_epoch`` counts as well as ``epoch``, for the answer that said the latter may be lost.
    """

    epoch: int = JOIN_EPOCH
    previous_epoch: int = JOIN_EPOCH
    state: str = MEMBER_STABLE
    assigned: Epochs = _NOTHING
    revoking: Epochs = _NOTHING

    def in_epoch(self, epoch: int) -> "CurrentAssignment":
        """Return it in an epoch, which may be the one that it has (``ConsumerGroupMember.Builder.updateMemberEpoch``)."""
        return self._replace(epoch=epoch, previous_epoch=self.epoch)

    def owns(self) -> tuple[str, ...]:
        """Return what no other member may be given."""
        return (*self.assigned, *self.revoking)


_NOTHING_YET: Final = CurrentAssignment()


class Subscriber(NamedTuple):
    """What a member has said of itself."""

    instance: str = NO_INSTANCE
    client: str = ""
    rebalance_timeout_us: int = 0
    topics: tuple[str, ...] = ()
    assignor: str | None = None


@dataclass(slots=True, eq=False)
class ConsumerGroupMember:
    """A member. ``deadline_us`` is when its session ends; one timer watches that, and is set while ``is_watched``.

    ``revocations`` counts how often it was told to give something up, so that a timer knows whether its own is over.
    """

    id: str
    subscriber: Subscriber
    current: CurrentAssignment = _NOTHING_YET
    deadline_us: int = 0
    is_watched: bool = False
    revocations: int = 0

    def is_reconciled_to(self, target_epoch: int) -> bool:
        return self.current.state == MEMBER_STABLE and self.current.epoch == target_epoch


@dataclass(slots=True, eq=False)
class ConsumerGroup:
    """The members of a group, what they are to own and what they own.

    ``topics`` are those that somebody subscribes to, with how many partitions they have. ``target`` was made at ``target_made_us``
    for ``target_epoch``. ``seen_partitions`` is how many partitions the broker knew of when ``topics`` was looked up last.
    ``releases_former_instances`` is the switch `former_instance_released`.
    """

    releases_former_instances: bool
    epoch: int = 0
    topics: dict[str, int] = field(default_factory=dict)
    target_epoch: int = 0
    target_made_us: int | None = None
    target: dict[str, tuple[str, ...]] = field(default_factory=dict)
    members: dict[str, ConsumerGroupMember] = field(default_factory=dict)
    static_members: dict[str, str] = field(default_factory=dict)
    owners: dict[str, str] = field(default_factory=dict)
    seen_partitions: int = 0

    @property
    def state(self) -> str:
        """The group's state, which follows from the rest (``maybeUpdateGroupState``)."""
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
        """Return whether an instance still belongs to a member that is gone (before `former_instance_released`)."""
        return instance in self.static_members and self.static_member(instance) is None

    def put(self, member: ConsumerGroupMember) -> None:
        """Take a member, or what it says of itself now (``updateMember``, ``updateStaticMember``)."""
        self.members[member.id] = member
        if self.releases_former_instances:
            for instance in [name for name, owner in self.static_members.items() if owner == member.id]:
                del self.static_members[instance]
        if member.subscriber.instance != NO_INSTANCE:
            self.static_members[member.subscriber.instance] = member.id

    def remove(self, member_id: str) -> None:
        """Forget a member: what it owned is free, and what it was to own has no owner."""
        member = self.members.pop(member_id, None)
        self.target.pop(member_id, None)
        if member is None:
            return
        self._release(member)
        if self.static_members.get(member.subscriber.instance) == member_id:
            del self.static_members[member.subscriber.instance]

    def move(self, member: ConsumerGroupMember, current: CurrentAssignment) -> None:
        """Have a member own what it owns from now on."""
        self._release(member)
        member.current = current
        for partition in current.owns():
            self.owners[partition] = member.id

    def _release(self, member: ConsumerGroupMember) -> None:
        for partition in member.current.owns():
            if self.owners.get(partition) == member.id:
                del self.owners[partition]

    def hold(self, partitions: Iterable[str]) -> None:
        """Have no member get some partitions until they are released."""
        self.owners.update(dict.fromkeys(partitions, NO_MEMBER))

    def release(self, partitions: Iterable[str]) -> None:
        for partition in partitions:
            if self.owners.get(partition) == NO_MEMBER:
                del self.owners[partition]

    def is_owned_by_other(self, partition: str, member: ConsumerGroupMember) -> bool:
        """Return whether a partition is to be released before a member gets it."""
        return self.owners.get(partition, member.id) != member.id

    def subscribed_topics(self) -> dict[str, None]:
        """Return the topics that somebody subscribes to."""
        return {topic: None for member in self.members.values() for topic in member.subscriber.topics}

    def preferred_assignor(self) -> str | None:
        """Return the assignor that most members ask for, None where none does (``computePreferredServerAssignor``)."""
        votes = Counter(
            member.subscriber.assignor for member in self.members.values() if member.subscriber.assignor
        )
        # Of those with as many votes the first in a Java hash table wins: `Stream.max` keeps the first of equals.
        return min(votes, key=lambda name: (-votes[name], java_hash_place(name))) if votes else None
