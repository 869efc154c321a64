"""Divides partitions among members, as coordinator (KIP-848, ``group.consumer.assignors``).

An assignor gets the members with their topics and previous targets, and the number of partitions of
each topic.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from harrow.cluster_model.coordinators.protocol import NO_INSTANCE

UNIFORM: Final = "uniform"
RANGE: Final = "range"

Target = dict[str, tuple[str, ...]]


class MemberSpec(NamedTuple):
    """An assignor's view of a member (``MemberSubscriptionAndAssignmentImpl``)."""

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
    """Assign adjacent partitions, first to static members by id (``RangeAssignor.java``)."""
    in_order = sorted(members, key=lambda name: _range_order(name, members[name]))
    target: dict[str, list[str]] = {name: [] for name in members}
    for topic in sorted(topics):
        readers = [name for name in in_order if topic in members[name].topics]
        partitions = partitions_of(topic, topics[topic])
        if not readers:
            continue
        share, remainder = divmod(len(partitions), len(readers))
        begin = 0
        for index, name in enumerate(readers):
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
    """Assign to members with equal subscriptions: each meets its quota of partitions.

    The first members have a higher quota if needed (``UniformHomogeneousAssignmentBuilder``).
    """
    partitions = list(_partitions(topics))
    owned = {partition for names in assigned.values() for partition in names}
    unassigned = [partition for partition in partitions if partition not in owned]
    least, remainder = divmod(len(partitions), len(assigned))
    quotas = {name: least + (index < remainder) for index, name in enumerate(assigned)}
    for name, names in assigned.items():
        unassigned += names[quotas[name] :]
        del names[quotas[name] :]
    for name, names in assigned.items():
        free = quotas[name] - len(names)
        names.extend(unassigned[:free])
        del unassigned[:free]
    assert not unassigned, "partitions were left unassigned"
    return {name: tuple(names) for name, names in assigned.items()}


def _uniform_heterogeneous(
    members: Members, assigned: dict[str, list[str]], topics: Mapping[str, int]
) -> Target:
    """Assign to members with different subscriptions.

    Each free partition goes to the subscriber with the fewest, then partitions move as long as that
    improves the balance. ``UniformHeterogeneousAssignmentBuilder`` does the same in another order.
    """
    readers: dict[str, Sequence[str]] = {
        topic: [name for name in members if topic in members[name].topics] for topic in topics
    }
    owned = {partition for names in assigned.values() for partition in names}
    for partition in _partitions(topics):
        candidates = readers[partition.rpartition("-")[0]]
        if partition not in owned and candidates:
            fewest = min(candidates, key=lambda name: len(assigned[name]))
            assigned[fewest].append(partition)
    is_moving = True
    while is_moving:
        is_moving = False
        for owner in sorted(assigned, key=lambda name: -len(assigned[name])):
            for partition in reversed(assigned[owner]):
                candidates = readers[partition.rpartition("-")[0]]
                fewest = min(candidates, key=lambda name: len(assigned[name]))
                if len(assigned[fewest]) + 1 < len(assigned[owner]):
                    assigned[owner].remove(partition)
                    assigned[fewest].append(partition)
                    is_moving = True
                    break
    return {name: tuple(names) for name, names in assigned.items()}


SERVER_ASSIGNORS: Final[Mapping[str, ServerAssignor]] = {UNIFORM: _uniform, RANGE: _by_range}
