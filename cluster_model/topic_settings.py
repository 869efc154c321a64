"""Resolves the settings of topics for each broker. Administrators can change them."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from harrow.cluster_model.settings import (
    INT_MAX,
    LONG_MAX,
    TOPIC,
    BrokerConfig,
    Setting,
    TopicConfig,
    Value,
    topic_config,
)

Settings = Mapping[str, Value]


def _without_effect(
    name: str,
    kind: str,
    default: Value,
    *,
    minimum: int = 0,
    maximum: int = INT_MAX,
    choices: tuple[str, ...] = (),
    since: str = "0.10.2",
) -> Setting:
    return Setting(
        name,
        TOPIC,
        kind,
        ((since, default),),
        "",
        minimum=minimum,
        maximum=maximum,
        choices=choices,
        since=since,
    )


WITHOUT_EFFECT: Final[Mapping[str, Setting]] = {
    setting.name: setting
    for setting in (
        _without_effect(
            *("compression.gzip.level", "choice", "-1"),
            choices=("-1", *map(str, range(1, 10))),
            since="3.8",
        ),
        _without_effect("compression.lz4.level", "int", 9, minimum=1, maximum=17, since="3.8"),
        _without_effect(
            *("compression.type", "choice", "producer"),
            choices=("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd"),
        ),
        _without_effect("compression.zstd.level", "int", 3, minimum=-131_072, maximum=22, since="3.8"),
        _without_effect("file.delete.delay.ms", "ms", 60_000, maximum=LONG_MAX),
        _without_effect("index.interval.bytes", "int", 4096),
        _without_effect("max.message.bytes", "int", 1_048_588),
        _without_effect(
            "message.timestamp.type", "choice", "CreateTime", choices=("CreateTime", "LogAppendTime")
        ),
        _without_effect("preallocate", "bool", default=False),
        _without_effect("segment.index.bytes", "int", 10_485_760, minimum=4),
        _without_effect("segment.jitter.ms", "ms", 0, maximum=LONG_MAX),
    )
}
"""Kafka's settings of topics that the model keeps but does not follow (``LogConfig``)."""


def setting_text(value: Value) -> str:
    """Return a value as Kafka writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def effective_config(settings: Settings, broker: BrokerConfig) -> TopicConfig:
    """Return the configuration of a topic, without the settings that the model does not follow."""
    return topic_config(
        {name: value for name, value in settings.items() if name not in WITHOUT_EFFECT}, broker
    )


def _lower_limit(first: int, second: int) -> int:
    """Return the lower of two limits, where -1 stands for none."""
    return min(first, second) if min(first, second) >= 0 else max(first, second)


class TopicConfigs:
    """The configurations of all topics on one broker.

    The settings of a topic override those of the broker. Administrators can change them while the
    broker runs. The logs of topics that administrators have made compacted are not compacted,
    because the model does not know the keys of their records.
    """

    __slots__ = ("_config", "_configs", "_settings", "_weakest")

    def __init__(self, topics: Mapping[str, Settings], config: BrokerConfig) -> None:
        self._config = config
        self._settings: dict[str, Settings] = dict(topics)
        self._configs = {topic: topic_config(settings, config) for topic, settings in topics.items()}
        self._weakest: dict[str, TopicConfig] = {}

    def get(self, topic: str) -> TopicConfig:
        """Return the configuration of a topic, or of one without settings."""
        config = self._configs.get(topic)
        if config is None:
            config = self._configs[topic] = topic_config({}, self._config)
        return config

    def weakest(self, topic: str) -> TopicConfig:
        """Return a topic's configuration with the weakest value that each setting ever had.

        These are the settings on which promises depend. A record may be older than the last change.
        """
        return self._weakest.get(topic) or self.get(topic)

    def values(self) -> Iterable[TopicConfig]:
        return self._configs.values()

    def set(self, topic: str, settings: Settings) -> None:
        """Set all settings of a topic that override those of the broker."""
        before = self._configs.get(topic)
        config = effective_config(settings, self._config)
        self._settings[topic] = settings
        if before is not None:
            weakest = self.weakest(topic)
            self._weakest[topic] = replace(
                config,
                min_insync_replicas=min(weakest.min_insync_replicas, config.min_insync_replicas),
                unclean_leader_election=weakest.unclean_leader_election or config.unclean_leader_election,
                flush_messages=max(weakest.flush_messages, config.flush_messages),
                retention_us=_lower_limit(weakest.retention_us, config.retention_us),
                retention_bytes=_lower_limit(weakest.retention_bytes, config.retention_bytes),
            )
        self._configs[topic] = replace(config, compacts=before is not None and before.compacts)

    def settings(self, topic: str) -> Settings:
        """Return the settings of a topic that override those of the broker."""
        return self._settings.get(topic, {})
