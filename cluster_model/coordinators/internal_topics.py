"""Defines the internal topics, and maps keys to their partitions (``Topic.java``).

A coordinator is the leader of a partition of such a topic. Its records are text: the key names the
subject, the value is JSON. The log does not interpret them, just as with Kafka's own encoding.
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
    """Return Java's hash of a string's UTF-16 units, a signed 32-bit number (``String.hashCode``).

    It is cached, because coordinators look up the same few ids in every request.
    """
    digest = 0
    units = text.encode("utf-16-be")
    for high, low in zip(units[::2], units[1::2], strict=True):
        digest = (31 * digest + (high << 8 | low)) & 0xFFFFFFFF
    return digest - (1 << _INT_BITS) if digest >> (_INT_BITS - 1) else digest


def java_hash_place(text: str) -> tuple[int, ...]:
    """Return the position of a string in a Java hash table of 16 buckets (``HashMap.hash``)."""
    digest = java_hash(text) & _UNSIGNED
    return ((digest ^ digest >> 16) & 15,)


def scala_hash_place(text: str) -> tuple[int, ...]:
    """Return the position of a string in a Scala hash table: five bits of the hash for each level.

    It follows ``HashMap`` and ``Hashing.improve`` of Scala 2.13.
    """
    digest = java_hash(text) & _UNSIGNED
    digest = (digest + (~(digest << 9) & _UNSIGNED)) & _UNSIGNED
    digest ^= digest >> 14
    digest = (digest + (digest << 4)) & _UNSIGNED
    digest ^= digest >> 10
    return tuple(digest >> level & 31 for level in range(0, _INT_BITS, 5))


def partition_for(key: str, partitions: int) -> int:
    """Return the number of the partition whose leader coordinates a group or a transactional id.

    As in ``GroupMetadataManager.partitionFor`` it uses the absolute value of the hash, which is 0
    for the smallest int (``Utils.abs``).
    """
    digest = java_hash(key)
    return (0 if digest == _INT_MIN else abs(digest)) % partitions


def internal_topic(name: str, config: BrokerConfig) -> TopicSpec:
    """Return an internal topic as brokers with these settings create it.

    See ``AutoTopicCreationManager.creatableTopic``.
    """
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
