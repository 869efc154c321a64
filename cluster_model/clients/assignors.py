"""How the leader of a group divides partitions among its members (``ConsumerPartitionAssignor``).

Each assignor is given the members, in the order of their names, and the partitions of each topic. A static member goes by its instance id,
so that it keeps its place when it comes back (KIP-345).
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Final

from harrow.cluster_model.coordinators.protocol import Subscription

Members = Sequence[tuple[str, str, Subscription]]
"""Member id, instance id and subscription of each."""
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
    """Return whether members keep partitions through a rebalance: where no assignor needs them to give up all (KIP-429)."""
    return all(name == COOPERATIVE_STICKY for name in assignors)


def _nothing(members: Members) -> Assignment:
    return {member: [] for member, _, _ in members}


def _by_range(members: Members, topics: Mapping[str, Sequence[str]]) -> Assignment:
    """Of each topic neighbours, the first members one more where it does not come out even (``RangeAssignor``)."""
    assigned = _nothing(members)
    for topic in sorted(topics):
        readers = [member for member, _, told in members if topic in told.topics]
        if not readers:
            continue
        each, more = divmod(len(topics[topic]), len(readers))
        begin = 0
        for place, member in enumerate(readers):
            end = begin + each + (place < more)
            assigned[member] += topics[topic][begin:end]
            begin = end
    return assigned


def _by_round_robin(members: Members, topics: Mapping[str, Sequence[str]]) -> Assignment:
    """One partition after the other to one member after the other that reads its topic (``RoundRobinAssignor``)."""
    assigned = _nothing(members)
    place = 0
    for topic in sorted(topics):
        if not any(topic in told.topics for _, _, told in members):
            continue
        for partition in topics[topic]:
            while topic not in members[place % len(members)][2].topics:
                place += 1
            assigned[members[place % len(members)][0]].append(partition)
            place += 1
    return assigned


def _owners(members: Members) -> dict[str, str]:
    """Return who owns each partition: of two who say so neither, or who was a member of the later generation."""
    owners: dict[str, tuple[int, str | None]] = {}
    for member, _, told in members:
        for partition in told.owned:
            generation, _ = owners.get(partition, (None, None))
            if generation is None or told.generation > generation:
                owners[partition] = told.generation, member
            elif told.generation == generation:
                owners[partition] = generation, None
    return {partition: owner for partition, (_, owner) in owners.items() if owner is not None}


def _sticky(members: Members, topics: Mapping[str, Sequence[str]]) -> Assignment:
    """As even as may be, and of that with as few partitions moved as may be (``AbstractStickyAssignor.constrainedAssign``)."""
    assigned, owners = _nothing(members), _owners(members)
    topics_of = {member: told.topics for member, _, told in members}
    partitions = [
        partition
        for topic in sorted(topics)
        for partition in topics[topic]
        if any(topic in told.topics for _, _, told in members)
    ]
    least, more = divmod(len(partitions), len(members))
    unassigned = []
    for partition in partitions:
        owner = owners.get(partition)
        keeps = owner is not None and partition.rpartition("-")[0] in topics_of[owner]
        if keeps and owner is not None and len(assigned[owner]) < least:
            assigned[owner].append(partition)
        elif keeps and owner is not None and len(assigned[owner]) == least and more:
            assigned[owner].append(partition)
            more -= 1
        else:
            unassigned.append(partition)
    for partition in unassigned:
        topic = partition.rpartition("-")[0]
        readers = [member for member, _, told in members if topic in told.topics]
        fewest = min(readers, key=lambda member: len(assigned[member]))
        assigned[fewest].append(partition)
    return assigned


def _cooperative_sticky(members: Members, topics: Mapping[str, Sequence[str]]) -> Assignment:
    """The same, without what another member has still to give up: it gets that with the next rebalance (``CooperativeStickyAssignor``)."""
    owners = dict(chain.from_iterable(((name, member) for name in told.owned) for member, _, told in members))
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
