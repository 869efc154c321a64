"""Resolves the settings of topics for each broker. Administrators can change them."""

from collections.abc import Iterable, Mapping
from typing import Final, TypeVar

from harrow.cluster_model.registry import derived
from harrow.cluster_model.settings import (
    BROKER,
    INT_MAX,
    LONG_MAX,
    NO_TEXT,
    SETTINGS,
    TOPIC,
    BrokerConfig,
    Setting,
    TopicConfig,
    Value,
    reconfigured,
    topic_config,
)

_T = TypeVar("_T")
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
    inherits: str | None = None,
    later: tuple[tuple[str, Value], ...] = (),
) -> Setting:
    return Setting(
        name,
        TOPIC,
        kind,
        ((since, default), *later),
        "",
        minimum=minimum,
        maximum=maximum,
        choices=choices,
        since=since,
        inherits=name if name.startswith("compression.") else inherits,
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
        _without_effect(
            *("file.delete.delay.ms", "ms", 60_000), maximum=LONG_MAX, inherits="log.segment.delete.delay.ms"
        ),
        _without_effect("index.interval.bytes", "int", 4096),
        _without_effect(
            *("max.message.bytes", "int", 1_000_012),
            later=(("2.5", 1_048_588),),  # KAFKA-4203
            inherits="message.max.bytes",
        ),
        _without_effect(
            "message.timestamp.type", "choice", "CreateTime", choices=("CreateTime", "LogAppendTime")
        ),
        _without_effect("preallocate", "bool", default=False),
        _without_effect(
            *("segment.index.bytes", "int", 10_485_760), minimum=4, inherits="log.index.size.max.bytes"
        ),
        _without_effect("segment.jitter.ms", "ms", 0, maximum=LONG_MAX, inherits=NO_TEXT),
    )
}
"""Kafka's settings of topics that the model keeps but does not follow (``LogConfig``)."""


ALL_BROKERS: Final = ":"
"""Stands for all brokers where a topic is named (``ConfigResource`` with an empty name)."""


def brokers_resource(name: str) -> str:
    """Return what stands for a broker where a topic is named; an empty *name* is all brokers."""
    return ALL_BROKERS + name


def is_of_brokers(resource: str) -> bool:
    """Return whether settings are those of brokers.

    No topic has such a name, and servers refuse it if a client gives it to a topic.
    """
    return resource.startswith(ALL_BROKERS)


@derived
def dynamic_settings(release: str) -> Mapping[str, Setting]:
    """Return the settings of brokers that topics inherit, which can change while brokers run.

    See ``DynamicLogConfig`` (KIP-226).
    """
    of_topics = [setting for (scope, _), setting in SETTINGS.items() if scope == TOPIC]
    return {
        setting.broker_name: SETTINGS.get((BROKER, setting.broker_name)) or setting
        for setting in (*of_topics, *WITHOUT_EFFECT.values())
        if setting.exists_in(release) and setting.broker_name != NO_TEXT
    }


def setting_text(value: Value) -> str:
    """Return a value as Kafka writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def effective_config(settings: Settings, broker: BrokerConfig) -> TopicConfig:
    """Return the configuration of a topic, without the settings that the model does not follow."""
    return topic_config(
        {name: value for name, value in settings.items() if name not in WITHOUT_EFFECT}, broker
    )


def _in_force(replaced: Iterable[tuple[int, _T]], at_us: int, latest: _T) -> _T:
    """Return what was in force at a time, of what was replaced at these times and the latest."""
    return next((before for until_us, before in replaced if at_us <= until_us), latest)


class TopicConfigs:
    """The configurations of all topics on one broker.

    The settings of a topic override those of the broker. Administrators can change both while the
    broker runs.
    """

    __slots__ = ("_brokers_before", "_config", "_configs", "_own", "_settings", "_settings_before", "_static")

    def __init__(
        self, topics: Mapping[str, Settings], config: BrokerConfig, broker: int | None = None
    ) -> None:
        self._static = self._config = config
        self._own = brokers_resource("" if broker is None else str(broker))
        self._settings: dict[str, Settings] = dict(topics)
        self._configs = {topic: topic_config(settings, config) for topic, settings in topics.items()}
        # What was replaced, oldest first, each with the time of that.
        self._settings_before: dict[str, list[tuple[int, Settings]]] = {}
        self._brokers_before: list[tuple[int, BrokerConfig]] = []

    def get(self, topic: str) -> TopicConfig:
        """Return the configuration of a topic, or of one without settings."""
        config = self._configs.get(topic)
        if config is None:
            config = self._configs[topic] = effective_config(self.settings(topic), self._config)
        return config

    def at(self, topic: str, at_us: int) -> TopicConfig:
        """Return the configuration of a topic at a time, before a change at that very time."""
        latest = self.settings(topic)
        settings = _in_force(self._settings_before.get(topic, ()), at_us, latest)
        broker = _in_force(self._brokers_before, at_us, self._config)
        if settings is latest and broker is self._config:
            return self.get(topic)
        return effective_config(settings, broker)

    def changed_us(self, topic: str) -> tuple[int, ...]:
        """Return when the configuration of a topic changed."""
        changes = (*self._settings_before.get(topic, ()), *self._brokers_before)
        times = sorted({until_us for until_us, _ in changes})
        return tuple([at_us for at_us in times if self.at(topic, at_us) != self.at(topic, at_us + 1)])

    def values(self) -> Iterable[TopicConfig]:
        return self._configs.values()

    def set(self, resource: str, settings: Settings, now_us: int) -> None:
        """Set all settings of a topic or of brokers."""
        if is_of_brokers(resource):
            self._settings[resource] = settings
            self._brokers_before.append((now_us, self._config))
            dynamic = {**self.settings(ALL_BROKERS), **self.settings(self._own)}
            self._config = reconfigured(self._static, dynamic)
            self._configs.clear()
        else:
            self._settings_before.setdefault(resource, []).append((now_us, self.settings(resource)))
            self._settings[resource] = settings
            self._configs.pop(resource, None)

    def settings(self, resource: str) -> Settings:
        """Return the settings of a topic or of brokers that override those in the broker's file."""
        return self._settings.get(resource, {})
