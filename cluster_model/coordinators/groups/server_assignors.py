"""Assigns partitions to the members of a group on its coordinator (KIP-848).

The setting ``group.consumer.assignors`` selects assignors. An assignor gets the members, each with
its topics and its previous target, and the number of partitions of each topic. It returns the
target assignment.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from harrow.cluster_model.coordinators.protocol import NO_INSTANCE

UNIFORM: Final = "uniform"
RANGE: Final = "range"

Target = dict[str, tuple[str, ...]]


class MemberSpec(NamedTuple):
    """An assignor's view of a member (``MemberSubscriptionAndAssignmentImpl``).

    ``target`` are the member's partitions in the previous target assignment.
    """

    instance: str
    topics: tuple[str, ...]
    target: tuple[str, ...]


Members = Mapping[str, MemberSpec]
ServerAssignor = Callable[[Members, Mapping[str, int]], Target]


def partitions_of(topic: str, count: int) -> tuple[str, ...]:
    return tuple(f"{topic}-{number}" for number in range(count))


def _partitions(topics: Mapping[str, int]) -> Iterator[str]:
    for topic in sorted(topics):
        yield from partitions_of(topic, topics[topic])


def _by_range(members: Members, topics: Mapping[str, int]) -> Target:
    """Assign each member adjacent partitions of each topic (``RangeAssignor.java``).

    Static members come first, ordered by instance id, then the others, ordered by member id.
    """
    in_order = sorted(members, key=lambda name: _range_order(name, members[name]))
    target: dict[str, list[str]] = {name: [] for name in members}
    for topic in sorted(topics):
        subscribers = [name for name in in_order if topic in members[name].topics]
        partitions = partitions_of(topic, topics[topic])
        if not subscribers:
            continue
        share, remainder = divmod(len(partitions), len(subscribers))
        begin = 0
        for index, name in enumerate(subscribers):
            end = begin + share + (index < remainder)
            target[name] += partitions[begin:end]
            begin = end
    return {name: tuple(partitions) for name, partitions in target.items()}


def _range_order(name: str, member: MemberSpec) -> tuple[bool, str, str]:
    return member.instance == NO_INSTANCE, member.instance, name


def _uniform(members: Members, topics: Mapping[str, int]) -> Target:
    """Balance the assignment, and move as few partitions as possible (``UniformAssignor.java``)."""
    subscriptions = {frozenset(member.topics) for member in members.values()}
    assigned = {
        name: [
            partition
            for partition in member.target
            if partition.rpartition("-")[0] in member.topics and partition.rpartition("-")[0] in topics
        ]
        for name, member in members.items()
    }
    if len(subscriptions) <= 1:
        return _uniform_homogeneous(assigned, topics)
    return _uniform_heterogeneous(members, assigned, topics)


def _uniform_homogeneous(assigned: dict[str, list[str]], topics: Mapping[str, int]) -> Target:
    """Assign partitions to members with equal subscriptions, so that each member meets its quota.

    The quotas differ by at most one; the first members have the higher quota
    (``UniformHomogeneousAssignmentBuilder``).
    """
    partitions = list(_partitions(topics))
    owned = {partition for own_partitions in assigned.values() for partition in own_partitions}
    unassigned = [partition for partition in partitions if partition not in owned]
    least, remainder = divmod(len(partitions), len(assigned))
    quotas = {name: least + (index < remainder) for index, name in enumerate(assigned)}
    for name, own_partitions in assigned.items():
        unassigned += own_partitions[quotas[name] :]
        del own_partitions[quotas[name] :]
    for name, own_partitions in assigned.items():
        missing_count = quotas[name] - len(own_partitions)
        own_partitions.extend(unassigned[:missing_count])
        del unassigned[:missing_count]
    assert not unassigned, "partitions were left unassigned"
    return {name: tuple(own_partitions) for name, own_partitions in assigned.items()}


def _uniform_heterogeneous(
    members: Members, assigned: dict[str, list[str]], topics: Mapping[str, int]
) -> Target:
    """Assign partitions to members with different subscriptions.

    Each free partition goes to the subscriber with the fewest partitions. Then partitions move
    between members as long as moves improve the balance. Kafka's
    ``UniformHeterogeneousAssignmentBuilder`` does the same in another order.
    """
    subscribers: dict[str, Sequence[str]] = {
        topic: [name for name in members if topic in members[name].topics] for topic in topics
    }
    owned = {partition for own_partitions in assigned.values() for partition in own_partitions}
    for partition in _partitions(topics):
        candidates = subscribers[partition.rpartition("-")[0]]
        if partition not in owned and candidates:
            fewest = min(candidates, key=lambda name: len(assigned[name]))
            assigned[fewest].append(partition)
    is_moving = True
    while is_moving:
        is_moving = False
        for owner in sorted(assigned, key=lambda name: -len(assigned[name])):
            for partition in reversed(assigned[owner]):
                candidates = subscribers[partition.rpartition("-")[0]]
                fewest = min(candidates, key=lambda name: len(assigned[name]))
                if len(assigned[fewest]) + 1 < len(assigned[owner]):
                    assigned[owner].remove(partition)
                    assigned[fewest].append(partition)
                    is_moving = True
                    break
    return {name: tuple(own_partitions) for name, own_partitions in assigned.items()}


SERVER_ASSIGNORS: Final[Mapping[str, ServerAssignor]] = {UNIFORM: _uniform, RANGE: _by_range}
