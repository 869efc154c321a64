"""Divides partitions among the members of a group, as its leader (``ConsumerPartitionAssignor``).

Each assignor receives the members in the order of their names, and the partitions of each topic.
The name of a static member is its instance id, so that it keeps its place when it returns
(KIP-345).
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
    """Return the partitions of each member."""
    in_order = sorted(members, key=lambda member: (member[1] or member[0], member[0]))
    assigned = ASSIGNORS[protocol](in_order, topics)
    return {member: tuple(partitions) for member, partitions in assigned.items()}


def is_cooperative(assignors: Sequence[str]) -> bool:
    """Return whether members keep partitions during a rebalance (KIP-429).

    They do if no assignor requires them to give up all of their partitions.
    """
    return all(name == COOPERATIVE_STICKY for name in assignors)


def _no_partitions(members: Members) -> Assignment:
    return {member: [] for member, _, _ in members}


def _by_range(members: Members, topics: Mapping[str, Sequence[str]]) -> Assignment:
    """Assign adjacent partitions; the first members get one more if needed (``RangeAssignor``)."""
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
    """Assign partitions to the subscribers of their topics in turn (``RoundRobinAssignor``)."""
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

    If two members claim it, the one of the later generation wins; in the same generation, neither.
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
    """Balance the assignment, and then move as few partitions as possible.

    It models ``AbstractStickyAssignor.constrainedAssign``.
    """
    assigned, owners = _no_partitions(members), _owners(members)
    topics_of = {member: subscription.topics for member, _, subscription in members}
    partitions = [
        partition
        for topic in sorted(topics)
        for partition in topics[topic]
        if any(topic in subscription.topics for _, _, subscription in members)
    ]
    least, remainder = divmod(len(partitions), len(members))
    unassigned = []
    for partition in partitions:
        owner = owners.get(partition)
        keeps = owner is not None and partition.rpartition("-")[0] in topics_of[owner]
        if keeps and owner is not None and len(assigned[owner]) < least:
            assigned[owner].append(partition)
        elif keeps and owner is not None and len(assigned[owner]) == least and remainder:
            assigned[owner].append(partition)
            remainder -= 1
        else:
            unassigned.append(partition)
    for partition in unassigned:
        topic = partition.rpartition("-")[0]
        readers = [member for member, _, subscription in members if topic in subscription.topics]
        fewest = min(readers, key=lambda member: len(assigned[member]))
        assigned[fewest].append(partition)
    return assigned


def _cooperative_sticky(members: Members, topics: Mapping[str, Sequence[str]]) -> Assignment:
    """Assign like `_sticky`, without partitions that another member must give up first.

    Their new owner gets them in the next rebalance (``CooperativeStickyAssignor``).
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
