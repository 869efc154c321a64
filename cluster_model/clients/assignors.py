"""Assigns partitions to the members of a group, as the group's leader does.

See ``ConsumerPartitionAssignor``. Each assignor receives the partitions of each topic, and the
members in order: by member id, or for a static member by instance id. A static member thus keeps
its place when it returns with another member id (KIP-345).
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Final

from harrow.cluster_model.coordinators.protocol import Subscription

Members = Sequence[tuple[str, str, Subscription]]
"""Member id, instance id and subscription of each member."""
Assignment = dict[str, list[str]]
Assignor = Callable[[Members, Mapping[str, Sequence[str]]], Assignment]

RANGE: Final = "range"
ROUND_ROBIN: Final = "roundrobin"
STICKY: Final = "sticky"
COOPERATIVE_STICKY: Final = "cooperative-sticky"


def assign(
    protocol: str, members: Members, topics: Mapping[str, Sequence[str]]
) -> dict[str, tuple[str, ...]]:
    """Return the partitions that *protocol* assigns to each member."""
    in_order = sorted(members, key=lambda member: (member[1] or member[0], member[0]))
    assigned = ASSIGNORS[protocol](in_order, topics)
    return {member: tuple(partitions) for member, partitions in assigned.items()}


def is_cooperative(assignors: Sequence[str]) -> bool:
    """Return whether members keep partitions during a rebalance (KIP-429).

    They do if every assignor in *assignors* is cooperative. Any other assignor requires members to
    give up all partitions before a rebalance.
    """
    return all(name == COOPERATIVE_STICKY for name in assignors)


def _no_partitions(members: Members) -> Assignment:
    return {member: [] for member, _, _ in members}


def _by_range(members: Members, topics: Mapping[str, Sequence[str]]) -> Assignment:
    """Assign a range of adjacent partitions of each topic to each member (``RangeAssignor``).

    If the partitions cannot be divided evenly, the first members get one more.
    """
    assigned = _no_partitions(members)
    for topic in sorted(topics):
        readers = [member for member, _, subscription in members if topic in subscription.topics]
        if not readers:
            continue
        share, remainder = divmod(len(topics[topic]), len(readers))
        begin = 0
        for index, member in enumerate(readers):
            end = begin + share + (index < remainder)
            assigned[member] += topics[topic][begin:end]
            begin = end
    return assigned


def _by_round_robin(members: Members, topics: Mapping[str, Sequence[str]]) -> Assignment:
    """Assign partitions to the members in turn, skipping those that do not subscribe to the topic.

    Modelled on ``RoundRobinAssignor``.
    """
    assigned = _no_partitions(members)
    turn = 0
    for topic in sorted(topics):
        if not any(topic in subscription.topics for _, _, subscription in members):
            continue
        for partition in topics[topic]:
            while topic not in members[turn % len(members)][2].topics:
                turn += 1
            assigned[members[turn % len(members)][0]].append(partition)
            turn += 1
    return assigned


def _owners(members: Members) -> dict[str, str]:
    """Return the owner of each partition.

    If two members claim a partition, the member of the later generation owns it. If both are of the
    same generation, neither owns it.
    """
    owners: dict[str, tuple[int, str | None]] = {}
    for member, _, subscription in members:
        for partition in subscription.owned:
            generation, _ = owners.get(partition, (None, None))
            if generation is None or subscription.generation > generation:
                owners[partition] = subscription.generation, member
            elif subscription.generation == generation:
                owners[partition] = generation, None
    return {partition: owner for partition, (_, owner) in owners.items() if owner is not None}


def _sticky(members: Members, topics: Mapping[str, Sequence[str]]) -> Assignment:
    """Balance the assignment, and let members keep as many of their partitions as possible.

    Modelled on ``AbstractStickyAssignor.constrainedAssign``.
    """
    assigned, owners = _no_partitions(members), _owners(members)
    topics_of = {member: subscription.topics for member, _, subscription in members}
    partitions = [
        partition
        for topic in sorted(topics)
        for partition in topics[topic]
        if any(topic in subscription.topics for _, _, subscription in members)
    ]
    min_quota, remainder = divmod(len(partitions), len(members))
    unassigned = []
    for partition in partitions:
        owner = owners.get(partition)
        keeps = owner is not None and partition.rpartition("-")[0] in topics_of[owner]
        if keeps and owner is not None and len(assigned[owner]) < min_quota:
            assigned[owner].append(partition)
        elif keeps and owner is not None and len(assigned[owner]) == min_quota and remainder:
            assigned[owner].append(partition)
            remainder -= 1
        else:
            unassigned.append(partition)
    for partition in unassigned:
        topic = partition.rpartition("-")[0]
        readers = [member for member, _, subscription in members if topic in subscription.topics]
        reader = min(readers, key=lambda member: len(assigned[member]))
        assigned[reader].append(partition)
    return assigned


def _cooperative_sticky(members: Members, topics: Mapping[str, Sequence[str]]) -> Assignment:
    """Assign like `_sticky`, but leave out partitions that another member must give up first.

    The new owner of such a partition gets it in the next rebalance
    (``CooperativeStickyAssignor``).
    """
    owners = dict(
        chain.from_iterable(
            ((name, member) for name in subscription.owned) for member, _, subscription in members
        )
    )
    return {
        member: [name for name in partitions if owners.get(name, member) == member]
        for member, partitions in _sticky(members, topics).items()
    }


ASSIGNORS: Final[dict[str, Assignor]] = {
    RANGE: _by_range,
    ROUND_ROBIN: _by_round_robin,
    STICKY: _sticky,
    COOPERATIVE_STICKY: _cooperative_sticky,
}
