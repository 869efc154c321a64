"""How a group's coordinator divides partitions among its members (KIP-848, ``group.consumer.assignors``).

An assignor is given the members with what they subscribe to, how many partitions each topic has, and the target assignment so far.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from harrow.cluster_model.coordinators.protocol import NO_INSTANCE

UNIFORM: Final = "uniform"
RANGE: Final = "range"

Target = dict[str, tuple[str, ...]]


class MemberSpec(NamedTuple):
    """What an assignor knows of a member (``MemberSubscriptionAndAssignmentImpl``)."""

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
    """Of each topic neighbours, static members first, by their instance ids (``RangeAssignor.java``)."""
    in_order = sorted(members, key=lambda name: _range_order(name, members[name]))
    target: dict[str, list[str]] = {name: [] for name in members}
    for topic in sorted(topics):
        readers = [name for name in in_order if topic in members[name].topics]
        partitions = partitions_of(topic, topics[topic])
        if not readers:
            continue
        each, more = divmod(len(partitions), len(readers))
        begin = 0
        for place, name in enumerate(readers):
            end = begin + each + (place < more)
            target[name] += partitions[begin:end]
            begin = end
    return {name: tuple(partitions) for name, partitions in target.items()}


def _range_order(name: str, member: MemberSpec) -> tuple[bool, str, str]:
    return member.instance == NO_INSTANCE, member.instance, name


def _uniform(members: Members, topics: Mapping[str, int]) -> Target:
    """As even as may be, and of what members have been given as much as may be stays (``UniformAssignor.java``)."""
    subscriptions = {frozenset(member.topics) for member in members.values()}
    kept = {
        name: [
            partition
            for partition in member.target
            if partition.rpartition("-")[0] in member.topics and partition.rpartition("-")[0] in topics
        ]
        for name, member in members.items()
    }
    if len(subscriptions) <= 1:
        return _uniform_homogeneous(kept, topics)
    return _uniform_heterogeneous(members, kept, topics)


def _uniform_homogeneous(kept: dict[str, list[str]], topics: Mapping[str, int]) -> Target:
    """All subscribe to the same: each has a quota, gives up what is above it, and is filled up to it.

    The first members may have one more where it does not come out even (``UniformHomogeneousAssignmentBuilder``).
    """
    partitions = list(_partitions(topics))
    taken = {partition for names in kept.values() for partition in names}
    unassigned = [partition for partition in partitions if partition not in taken]
    least, more = divmod(len(partitions), len(kept))
    quotas = {name: least + (place < more) for place, name in enumerate(kept)}
    for name, names in kept.items():
        unassigned += names[quotas[name] :]
        del names[quotas[name] :]
    for name, names in kept.items():
        free = quotas[name] - len(names)
        names.extend(unassigned[:free])
        del unassigned[:free]
    assert not unassigned, "partitions were left unassigned"
    return {name: tuple(names) for name, names in kept.items()}


def _uniform_heterogeneous(members: Members, kept: dict[str, list[str]], topics: Mapping[str, int]) -> Target:
    """They subscribe to different topics: what is free goes to who has least, and partitions move while that evens it out.

    ``UniformHeterogeneousAssignmentBuilder`` does the same in another order.
    """
    readers: dict[str, Sequence[str]] = {
        topic: [name for name in members if topic in members[name].topics] for topic in topics
    }
    taken = {partition for names in kept.values() for partition in names}
    for partition in _partitions(topics):
        may_have = readers[partition.rpartition("-")[0]]
        if partition not in taken and may_have:
            fewest = min(may_have, key=lambda name: len(kept[name]))
            kept[fewest].append(partition)
    is_moving = True
    while is_moving:
        is_moving = False
        for owner in sorted(kept, key=lambda name: -len(kept[name])):
            for partition in reversed(kept[owner]):
                may_have = readers[partition.rpartition("-")[0]]
                fewest = min(may_have, key=lambda name: len(kept[name]))
                if len(kept[fewest]) + 1 < len(kept[owner]):
                    kept[owner].remove(partition)
                    kept[fewest].append(partition)
                    is_moving = True
                    break
    return {name: tuple(names) for name, names in kept.items()}


SERVER_ASSIGNORS: Final[Mapping[str, ServerAssignor]] = {UNIFORM: _uniform, RANGE: _by_range}
