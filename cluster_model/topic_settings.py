"""Reads the settings of topics that administrators change, and resolves them for each broker."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from harrow.cluster_model import errors
from harrow.cluster_model.controller.administration import (
    APPEND,
    DELETE,
    SET,
    SUBTRACT,
    NewTopic,
    RefusedError,
)
from harrow.cluster_model.settings import (
    INT_MAX,
    LONG_MAX,
    SETTINGS,
    TOPIC,
    BrokerConfig,
    Setting,
    TopicConfig,
    Value,
    topic_config,
)

Settings = Mapping[str, Value]

_DIGITS_MAX: Final = 20
_LISTS: Final = frozenset(
    {"cleanup.policy", "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"}
)
"""The settings to whose items AlterConfigs can append, and from which it can remove items."""


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


def changed_settings(
    before: Settings, changes: Iterable[tuple[str, int, str | None]], release: str
) -> dict[str, Value]:
    """Return the settings after the changes of an IncrementalAlterConfigs.

    Raises:
        RefusedError: A setting is unknown, or a value or an operation is invalid.

    """
    settings = dict(before)
    for name, operation, text in changes:
        setting = SETTINGS.get((TOPIC, name)) or WITHOUT_EFFECT.get(name)
        if setting is None or not setting.exists_in(release):
            raise RefusedError(errors.INVALID_CONFIG, f"topics have no setting {name}")
        if operation == DELETE:
            settings.pop(name, None)
            continue
        if text is None:
            raise RefusedError(errors.INVALID_CONFIG, f"{name} has no value")
        if operation in {APPEND, SUBTRACT}:
            if name not in _LISTS:
                raise RefusedError(errors.INVALID_CONFIG, f"{name} is not a list")
        elif operation != SET:
            raise RefusedError(errors.INVALID_REQUEST, f"there is no operation {operation}")
        whole = _changed_list(str(settings.get(name, "")), text, operation)
        settings[name] = _value(setting, whole)
    return settings


def new_settings(topic: NewTopic, release: str) -> dict[str, Value]:
    """Return the settings of a new topic.

    Raises:
        RefusedError: A setting is unknown, or a value is invalid.

    """
    return changed_settings({}, [(name, SET, value) for name, value in topic.settings], release)


def setting_text(value: Value) -> str:
    """Return a value as Kafka writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _changed_list(text: str, items: str, operation: int) -> str:
    """Return the text of a setting after an operation with a value or items of a list."""
    if operation == SET:
        return items
    before, given = [item for item in text.split(",") if item], items.split(",")
    if operation == APPEND:
        return ",".join(dict.fromkeys((*before, *given)))
    return ",".join(item for item in before if item not in given)


def _value(setting: Setting, text: str) -> Value:
    """Return the value of a setting from its text."""
    text = text.strip()
    if setting.kind == "bool" and text.lower() in {"true", "false"}:
        return text.lower() == "true"
    if setting.kind in {"int", "ms"}:
        is_number = text.isascii() and text.removeprefix("-").isdecimal() and len(text) <= _DIGITS_MAX
        if is_number and setting.minimum <= int(text) <= setting.maximum:
            return int(text)
    elif setting.kind == "choice":
        value = dict(setting.aliases).get(text, text)
        if value in setting.choices:
            return value
    elif setting.kind == "ratio":
        if text.replace(".", "", 1).isdecimal() and float(text) <= 1:
            return text
    elif setting.kind == "replicas" and (text in {"", "*"} or all(map(_is_replica, text.split(",")))):
        return text
    raise RefusedError(errors.INVALID_CONFIG, f"{text!r} is no value of {setting.name}")


def _is_replica(text: str) -> bool:
    number, colon, broker = text.partition(":")
    return bool(colon) and number.isdecimal() and broker.isdecimal()


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
