"""Segments of less than 1 MiB on brokers that refuse them: from 4.0 on (KIP-1030).

Campaigns have small segments so that a log gets several of them within a few records. Those brokers take the same by a
setting of topics that they keep for themselves, ``internal.segment.bytes`` (``LogConfig.INTERNAL_SEGMENT_BYTES_CONFIG``).
A broker has no such setting, so that its ``log.segment.bytes`` becomes one of each topic.
"""

from collections.abc import Mapping
from typing import Final

from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.release.switch import version_of
from harrow.cluster_model.settings import Value
from harrow.cluster_model.topology import ClusterSpec, TopicSpec

_LEAST: Final = 1 << 20
_OF_BROKERS: Final = "log.segment.bytes"
_OF_TOPICS: Final = "segment.bytes"
_INTERNAL: Final = "internal.segment.bytes"
_REFUSED_SINCE: Final = version_of("4.0")


def refuses_small_segments(release: str) -> bool:
    """Return whether brokers that count as a release of the model refuse them."""
    return RELEASES[release].version >= _REFUSED_SINCE


def accepted_of_topic(cluster: ClusterSpec, topic: TopicSpec) -> dict[str, Value]:
    """Return the settings of a topic, in words that these brokers take."""
    size = topic.settings.get(_OF_TOPICS, cluster.settings.get(_OF_BROKERS, _LEAST))
    if int(size) >= _LEAST:
        return dict(topic.settings)
    others = {name: value for name, value in topic.settings.items() if name != _OF_TOPICS}
    return {**others, _INTERNAL: size}


def accepted_of_broker(settings: Mapping[str, Value]) -> dict[str, Value]:
    """Return the settings of a broker without a size of segments that it would not start with."""
    return {name: value for name, value in settings.items() if name != _OF_BROKERS or int(value) >= _LEAST}


def small_segments_of_one_broker(cluster: ClusterSpec) -> bool:
    """Return whether a broker has small segments of its own: a topic has one size on all of them."""
    return any(int(broker.settings.get(_OF_BROKERS, _LEAST)) < _LEAST for broker in cluster.brokers)
