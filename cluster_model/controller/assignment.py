"""Assigns the replicas of topics to brokers (``AdminUtils.assignReplicasToBrokers``)."""

from collections.abc import Collection, Mapping, Sequence

from harrow.cluster_model import errors
from harrow.cluster_model.topology import ClusterSpec


def topic_assignments(spec: ClusterSpec) -> dict[str, tuple[tuple[int, ...], ...]]:
    """Return the replicas of each topic's partitions, as the campaign or Kafka assigns them."""
    initial = spec.initial_brokers()
    brokers = [broker.id for broker in initial]
    racks = {broker.id: broker.rack for broker in initial if broker.rack is not None}
    return {
        topic.name: topic.assignment
        or assign_replicas(brokers, topic.partitions, topic.replication_factor, racks)
        for topic in spec.topics
    }


def partition_assignments(spec: ClusterSpec) -> dict[str, tuple[int, ...]]:
    """Return the replicas of each partition, by the partition's name."""
    assigned = topic_assignments(spec)
    return {
        f"{topic}-{number}": replicas
        for topic, partitions in assigned.items()
        for number, replicas in enumerate(partitions)
    }


def assign_replicas(
    brokers: Sequence[int],
    partitions: int,
    replication_factor: int,
    racks: Mapping[int, str] | None = None,
    start_index: int = 0,
    start_shift: int = 0,
    start_partition: int = 0,
) -> tuple[tuple[int, ...], ...]:
    """Return the replicas of each partition, preferred leader first.

    With n brokers, the first replica of partition i is on broker (i + *start_index*) mod n. The
    other replicas follow at a distance that is shifted after every n partitions, so that the
    partitions of a broker have their followers on different brokers. With *racks*, the brokers are
    ordered so that racks alternate, and a replica goes to a rack, or else to a broker, without a
    replica of the partition if there is any. The brokers that have no rack count as one more rack,
    as in KRaft (``StripedReplicaPlacer``). Kafka draws *start_index* and *start_shift*. Here both
    are 0 by default.
    """
    if racks:
        rack_of = {broker: racks.get(broker, "") for broker in brokers}
        return _assign_rack_aware(
            brokers, partitions, replication_factor, rack_of, start_index, start_shift, start_partition
        )
    count = len(brokers)
    shift = start_shift
    assignment = []
    for partition in range(start_partition, start_partition + partitions):
        if partition > 0 and partition % count == 0:
            shift += 1
        first = (partition + start_index) % count
        replicas = [brokers[first]]
        replicas += [
            brokers[_replica_index(first, shift, number, count)] for number in range(replication_factor - 1)
        ]
        assignment.append(tuple(replicas))
    return tuple(assignment)


def refusal_of_partitions(live: Collection[int], first: Sequence[int], existing: int, total: int) -> str:
    """Return the error of a request for *total* partitions of a topic, or `errors.NONE`.

    The topic has *existing* partitions. The replicas of its partition 0 are *first*.
    """
    if not existing:
        return errors.UNKNOWN_TOPIC_OR_PARTITION
    if total <= existing:
        return errors.INVALID_PARTITIONS
    return errors.INVALID_REPLICATION_FACTOR if len(first) > len(live) else errors.NONE


def assign_partitions(
    brokers: Sequence[int], racks: Mapping[int, str], first: Sequence[int], existing: int, total: int
) -> tuple[tuple[int, ...], ...]:
    """Return the replicas of a topic's additional partitions (``AdminZkClient.addPartitions``).

    Each partition has as many replicas as partition 0, whose replicas are *first*. The assignment
    continues from that partition.
    """
    start = next((index for index, broker in enumerate(brokers) if broker >= first[0]), 0)
    return assign_replicas(brokers, total - existing, len(first), racks, start, start, existing)


def _replica_index(first: int, shift: int, replica: int, brokers: int) -> int:
    distance = 1 + (shift + replica) % (brokers - 1)
    return (first + distance) % brokers


def _assign_rack_aware(
    brokers: Sequence[int],
    partitions: int,
    replication_factor: int,
    racks: Mapping[int, str],
    start_index: int,
    start_shift: int,
    start_partition: int,
) -> tuple[tuple[int, ...], ...]:
    alternated = _alternate_racks(brokers, racks)
    count = len(alternated)
    rack_count = len({racks[broker] for broker in alternated})
    shift = start_shift
    assignment = []
    for partition in range(start_partition, start_partition + partitions):
        if partition > 0 and partition % count == 0:
            shift += 1
        first = (partition + start_index) % count
        replicas = [alternated[first]]
        offset = 0
        while len(replicas) < replication_factor:
            candidate = alternated[_rack_replica_index(first, shift * rack_count, offset, count)]
            used_racks = {racks[broker] for broker in replicas}
            rack_is_new = racks[candidate] not in used_racks or len(used_racks) == rack_count
            broker_is_new = candidate not in replicas or len(set(replicas)) == count
            if rack_is_new and broker_is_new:
                replicas.append(candidate)
            offset += 1
        assignment.append(tuple(replicas))
    return tuple(assignment)


def _rack_replica_index(first: int, shift: int, replica: int, brokers: int) -> int:
    return (first + 1 + (shift + replica) % (brokers - 1)) % brokers


def _alternate_racks(brokers: Sequence[int], racks: Mapping[int, str]) -> list[int]:
    """Return the brokers in an order in which racks alternate (``getRackAlternatedBrokerList``)."""
    by_rack: dict[str, list[int]] = {}
    for broker in sorted(brokers):
        by_rack.setdefault(racks[broker], []).append(broker)
    names = sorted(by_rack)
    result: list[int] = []
    round_ = 0
    while len(result) < len(brokers):
        for name in names:
            if round_ < len(by_rack[name]):
                result.append(by_rack[name][round_])
        round_ += 1
    return result
