"""Which replica a consumer is to read from (``ReplicaManager.findPreferredReadReplica``, ``RackAwareReplicaSelector.java``, KIP-392)."""

from harrow.cluster_model.broker.metadata_cache import MetadataCache
from harrow.cluster_model.broker.partition import Partition
from harrow.cluster_model.sim.virtual_time import US_PER_MS


def preferred_read_replica(
    partition: Partition, offset: int, rack: str, metadata: MetadataCache
) -> int | None:
    """Return which replica in a rack is furthest, of those that have an offset; None where the leader is to be read from.

    It goes by what this broker knows of the others from their fetches. One that is not alive has no rack. Of two that are as far, it is the
    one that was caught up last, then the one with the larger id.
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
            and (broker in partition.isr or not partition.switches.read_replica_in_isr)
        ):
            place = replica.log_end_offset, replica.caught_up_us // US_PER_MS, broker
            if best is None or place > best:
                best = place
    return None if best is None else best[2]


def may_have_read_replica(partition: Partition, rack: str, metadata: MetadataCache) -> bool:
    """Return whether a leader may send a consumer elsewhere one day: another replica stands in its rack."""
    return metadata.racks.get(partition.leader) != rack and any(
        metadata.racks.get(broker) == rack for broker in partition.replicas if broker != partition.leader
    )
