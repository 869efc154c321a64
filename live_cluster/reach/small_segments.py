"""Translates segments of less than 1 MiB, which brokers have refused since 4.0 (KIP-1030).

Campaigns use small segments so that a few records fill several of them. Newer brokers accept them
only as an internal setting of topics, ``internal.segment.bytes``
(``LogConfig.INTERNAL_SEGMENT_BYTES_CONFIG``). Brokers have no such setting, so harrow moves
``log.segment.bytes`` to each topic.
"""

from collections.abc import Mapping
from typing import Final

from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.release.switch import version_of
from harrow.cluster_model.settings import Value
from harrow.cluster_model.topology import ClusterSpec, TopicSpec

_ACCEPTED_MIN: Final = 1 << 20
_BROKER_SETTING: Final = "log.segment.bytes"
_TOPIC_SETTING: Final = "segment.bytes"
_INTERNAL_TOPIC_SETTING: Final = "internal.segment.bytes"
_REFUSED_SINCE: Final = version_of("4.0")


def refuses_small_segments(release: str) -> bool:
    """Return whether brokers of a release refuse small segments."""
    return RELEASES[release].version >= _REFUSED_SINCE


def accepted_topic_settings(cluster: ClusterSpec, topic: TopicSpec) -> dict[str, Value]:
    """Return the settings of a topic in the form that brokers since 4.0 accept."""
    size = topic.settings.get(_TOPIC_SETTING, cluster.settings.get(_BROKER_SETTING, _ACCEPTED_MIN))
    if int(size) >= _ACCEPTED_MIN:
        return dict(topic.settings)
    others = {name: value for name, value in topic.settings.items() if name != _TOPIC_SETTING}
    return {**others, _INTERNAL_TOPIC_SETTING: size}


def accepted_broker_settings(settings: Mapping[str, Value]) -> dict[str, Value]:
    """Return the settings of a broker without a segment size that it would refuse."""
    return {
        name: value
        for name, value in settings.items()
        if name != _BROKER_SETTING or int(value) >= _ACCEPTED_MIN
    }


def has_broker_with_small_segments(cluster: ClusterSpec) -> bool:
    """Return whether a broker has small segments of its own. harrow supports one size for all."""
    return any(
        int(broker.settings.get(_BROKER_SETTING, _ACCEPTED_MIN)) < _ACCEPTED_MIN for broker in cluster.brokers
    )
