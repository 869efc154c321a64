"""Defines the settings of internal topics, and maps groups and transactional ids to partitions.

The internal topics are ``__consumer_offsets`` and ``__transaction_state``. The coordinator of a
group or a transactional id is the leader of its partition. Coordinators write records as text: the
key names the subject of the record, for example a group, and the value is JSON. As in Kafka, the
log does not interpret these records. Modelled on ``Topic.java``.
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

    The hashes are cached, because coordinators look up the same few ids in every request.
    """
    digest = 0
    units = text.encode("utf-16-be")
    for high, low in zip(units[::2], units[1::2], strict=True):
        digest = (31 * digest + (high << 8 | low)) & 0xFFFFFFFF
    return digest - (1 << _INT_BITS) if digest >> (_INT_BITS - 1) else digest


def java_hash_place(text: str) -> tuple[int, ...]:
    """Return a sort key: the number of a string's bucket in a Java hash table (``HashMap.hash``).

    The table has 16 buckets, and is iterated in the order of the buckets.
    """
    digest = java_hash(text) & _UNSIGNED
    return ((digest ^ digest >> 16) & 15,)


def scala_hash_place(text: str) -> tuple[int, ...]:
    """Return a sort key: the path of a string in a Scala hash table, five bits for each level.

    The table is iterated in the order of the paths. See ``HashMap`` and ``Hashing.improve`` of
    Scala 2.13.
    """
    digest = java_hash(text) & _UNSIGNED
    digest = (digest + (~(digest << 9) & _UNSIGNED)) & _UNSIGNED
    digest ^= digest >> 14
    digest = (digest + (digest << 4)) & _UNSIGNED
    digest ^= digest >> 10
    return tuple(digest >> level & 31 for level in range(0, _INT_BITS, 5))


def partition_for(key: str, partition_count: int) -> int:
    """Return the partition, of *partition_count*, whose leader coordinates *key*.

    *key* is a group or a transactional id. The partition is the absolute value of its hash modulo
    the count (``GroupMetadataManager.partitionFor``). The absolute value of the smallest int counts
    as 0 (``Utils.abs``).
    """
    digest = java_hash(key)
    return (0 if digest == _INT_MIN else abs(digest)) % partition_count


def internal_topic(name: str, config: BrokerConfig) -> TopicSpec:
    """Return an internal topic as brokers with these settings create it.

    See ``AutoTopicCreationManager.creatableTopic``.
    """
    settings: dict[str, Value] = {"cleanup.policy": "compact"}
    if name == CONSUMER_OFFSETS:
        settings["segment.bytes"] = config.offsets_topic_segment_bytes
        partitions, replication_factor = (
            config.offsets_topic_partitions,
            config.offsets_topic_replication_factor,
        )
    else:
        settings["segment.bytes"] = config.transaction_topic_segment_bytes
        settings["min.insync.replicas"] = config.transaction_topic_min_isr
        settings["unclean.leader.election.enable"] = False
        partitions, replication_factor = (
            config.transaction_topic_partitions,
            config.transaction_topic_replication_factor,
        )
    return TopicSpec(
        name=name,
        partitions=partitions,
        replication_factor=replication_factor,
        assignment=(),
        settings=settings,
    )
