"""The topics in which coordinators keep what they know (``Topic.java``), and which of their partitions a key belongs to.

A coordinator is the leader of a partition of such a topic. Its records are text: their keys say what they are about, their values
are JSON, as little a matter of the log as Kafka's own encoding is.
"""

from functools import lru_cache
from typing import Final

from harrow.cluster_model.settings import BrokerConfig, Value
from harrow.cluster_model.topology import CONSUMER_OFFSETS, TopicSpec

_INT_BITS: Final = 32
_UNSIGNED: Final = 0xFFFFFFFF
_INT_MIN: Final = -(2**31)


@lru_cache(maxsize=4096)
def java_hash(text: str) -> int:
    """Return Java's hash of a string (``String.hashCode``): of its UTF-16 units, as a signed 32-bit number.

    Cached: coordinators look up the partition of the same few ids with every request.
    """
    hashed = 0
    units = text.encode("utf-16-be")
    for high, low in zip(units[::2], units[1::2], strict=True):
        hashed = (31 * hashed + (high << 8 | low)) & 0xFFFFFFFF
    return hashed - (1 << _INT_BITS) if hashed >> (_INT_BITS - 1) else hashed


def java_hash_place(text: str) -> tuple[int, ...]:
    """Return where a small hash table of Java has a string: the bucket of 16 (``HashMap.hash``)."""
    hashed = java_hash(text) & _UNSIGNED
    return ((hashed ^ hashed >> 16) & 15,)


def scala_hash_place(text: str) -> tuple[int, ...]:
    """Return where a hash table of Scala has a string: five bits of the hash for each level of it (2.13, ``HashMap``, ``Hashing.improve``)."""
    hashed = java_hash(text) & _UNSIGNED
    hashed = (hashed + (~(hashed << 9) & _UNSIGNED)) & _UNSIGNED
    hashed ^= hashed >> 14
    hashed = (hashed + (hashed << 4)) & _UNSIGNED
    hashed ^= hashed >> 10
    return tuple(hashed >> level & 31 for level in range(0, _INT_BITS, 5))


def partition_for(key: str, partitions: int) -> int:
    """Return the number of the partition whose leader coordinates a group or a transactional id.

    After ``GroupMetadataManager.partitionFor``: the hash without its sign (``Utils.abs``), which of the least int is 0.
    """
    hashed = java_hash(key)
    return (0 if hashed == _INT_MIN else abs(hashed)) % partitions


def internal_topic(name: str, config: BrokerConfig) -> TopicSpec:
    """Return an internal topic as brokers with these settings create it (``AutoTopicCreationManager.creatableTopic``)."""
    settings: dict[str, Value] = {"cleanup.policy": "compact"}
    if name == CONSUMER_OFFSETS:
        settings["segment.bytes"] = config.offsets_topic_segment_bytes
        partitions, replicas = config.offsets_topic_partitions, config.offsets_topic_replication_factor
    else:
        settings["segment.bytes"] = config.transaction_topic_segment_bytes
        settings["min.insync.replicas"] = config.transaction_topic_min_isr
        settings["unclean.leader.election.enable"] = False
        partitions, replicas = (
            config.transaction_topic_partitions,
            config.transaction_topic_replication_factor,
        )
    return TopicSpec(
        name=name, partitions=partitions, replication_factor=replicas, assignment=(), settings=settings
    )
