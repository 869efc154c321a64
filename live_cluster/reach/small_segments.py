"""Segments of less than 1 MiB, which brokers have refused since 4.0 (KIP-1030).

Campaigns use small segments so that a few records fill several of them. Newer brokers accept them
only as an internal setting of topics, ``internal.segment.bytes``
(``LogConfig.INTERNAL_SEGMENT_BYTES_CONFIG``). Brokers lack such a setting, so ``log.segment.bytes``
is moved to each topic.
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
    """Return whether brokers of a release refuse small segments."""
    return RELEASES[release].version >= _REFUSED_SINCE


def accepted_of_topic(cluster: ClusterSpec, topic: TopicSpec) -> dict[str, Value]:
    """Return the settings of a topic in the form that these brokers accept."""
    size = topic.settings.get(_OF_TOPICS, cluster.settings.get(_OF_BROKERS, _LEAST))
    if int(size) >= _LEAST:
        return dict(topic.settings)
    others = {name: value for name, value in topic.settings.items() if name != _OF_TOPICS}
    return {**others, _INTERNAL: size}


def accepted_of_broker(settings: Mapping[str, Value]) -> dict[str, Value]:
    """Return the settings of a broker without a segment size that it would refuse."""
    return {name: value for name, value in settings.items() if name != _OF_BROKERS or int(value) >= _LEAST}


def small_segments_of_one_broker(cluster: ClusterSpec) -> bool:
    """Return whether a single broker has small segments; here all have the same size."""
    return any(int(broker.settings.get(_OF_BROKERS, _LEAST)) < _LEAST for broker in cluster.brokers)
