"""Moves and adds replicas of assigned topics: across racks, with as few moves as possible."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from harrow.campaigns.advise.axis import topics_of
from harrow.campaigns.language.plan import Plan
from harrow.cluster_model.controller.assignment import topic_assignments

Assignment = tuple[tuple[int, ...], ...]
"""The replicas of each partition of a topic, preferred leader first."""


def has_racks(plan: Plan) -> bool:
    """Return whether Kafka regards racks: each broker has one, and there are several."""
    return len(set(_racks(plan).values())) > 1


def is_across_racks(plan: Plan, assignment: Assignment) -> bool:
    """Return whether each partition has replicas in as many racks as it can."""
    racks = _racks(plan)
    return all(
        len({racks[broker] for broker in replicas}) >= min(len(replicas), len(set(racks.values())))
        for replicas in assignment
    )


def reassigned(plan: Plan, *, factor: int = 0, across_racks: bool = False) -> Mapping[int, Assignment]:
    """Return new assignments of topics with too few replicas, or too few racks, by their places.

    A partition keeps its preferred leader, and each replica that is alone in its rack. The others
    move to the brokers with the fewest replicas in racks without one. Added replicas go there too.
    """
    loads = Counter(
        broker
        for assignment in topic_assignments(plan.cluster).values()
        for replicas in assignment
        for broker in replicas
    )
    racks = _racks(plan)
    result = {}
    for number, topic in topics_of(plan):
        assignment = tuple(
            _replicas(replicas, max(factor, len(replicas)), across_racks, racks, loads)
            for replicas in topic.assignment
        )
        if assignment != topic.assignment:
            result[number] = assignment
    return result


def _replicas(
    replicas: Sequence[int], factor: int, across_racks: bool, racks: Mapping[int, str], loads: Counter[int]
) -> tuple[int, ...]:
    """Return the new replicas of a partition, and count them in *loads*."""
    placed = list(replicas)
    if across_racks:
        for place, broker in enumerate(replicas):
            unused = set(racks.values()) - {racks[other] for other in placed}
            if unused and racks[broker] in {racks[other] for other in placed[:place]}:
                loads[broker] -= 1
                placed[place] = _emptiest((each for each in racks if racks[each] in unused), loads)
                loads[placed[place]] += 1
    while len(placed) < factor:
        used = {racks[broker] for broker in placed}
        left = [broker for broker in racks if broker not in placed]
        placed.append(_emptiest([each for each in left if racks[each] not in used] or left, loads))
        loads[placed[-1]] += 1
    return tuple(placed)


def _emptiest(brokers: Iterable[int], loads: Counter[int]) -> int:
    return min(brokers, key=lambda broker: (loads[broker], broker))


def _racks(plan: Plan) -> Mapping[int, str]:
    """Return the rack of each broker; the same for all unless each has one."""
    brokers = plan.cluster.initial_brokers()
    is_known = all(broker.rack is not None for broker in brokers)
    return {broker.id: broker.rack or "" if is_known else "" for broker in brokers}
