"""Selects the replica from which a consumer reads (KIP-392).

Modelled on ``ReplicaManager.findPreferredReadReplica`` and ``RackAwareReplicaSelector.java``.
"""

from harrow.cluster_model.broker.metadata_cache import MetadataCache
from harrow.cluster_model.broker.partition import Partition
from harrow.cluster_model.sim.virtual_time import US_PER_MS


def preferred_read_replica(
    partition: Partition, offset: int, rack: str, metadata: MetadataCache
) -> int | None:
    """Return the replica in *rack* with the highest log end that has *offset*; None for the leader.

    The leader knows the log ends of other replicas from their fetches. Brokers that are not alive
    have no rack. If log ends are equal, the replica that was caught up last wins, and then the
    broker with the larger id.
    """
    if partition.leader in metadata.live_brokers and metadata.racks.get(partition.leader) == rack:
        return None
    best: tuple[int, int, int] | None = None
    for replica in partition.remote_replicas.values():
        broker = replica.broker
        if (
            broker != partition.leader
            and replica.log_start_offset <= offset <= replica.log_end_offset
            and metadata.racks.get(broker) == rack
            and broker in metadata.live_brokers
            and (broker in partition.isr or not partition.switches.read_replica_must_be_in_isr)
        ):
            rank = replica.log_end_offset, replica.caught_up_us // US_PER_MS, broker
            if best is None or rank > best:
                best = rank
    return None if best is None else best[2]


def may_have_read_replica(partition: Partition, rack: str, metadata: MetadataCache) -> bool:
    """Return whether the leader may ever redirect a consumer in *rack* to another replica."""
    return metadata.racks.get(partition.leader) != rack and any(
        metadata.racks.get(broker) == rack for broker in partition.replicas if broker != partition.leader
    )
