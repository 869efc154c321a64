"""Describes settings of brokers and topics as DescribeConfigs does (``ConfigHelper``)."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from harrow.campaigns.language.kafka_settings import kafka_has, type_of
from harrow.cluster_model.cluster import Cluster
from harrow.cluster_model.release.switch import version_of
from harrow.cluster_model.settings import (
    BROKER,
    INT_MAX,
    MIN_ISR,
    NO_LISTENER,
    SETTINGS,
    TOPIC,
    Setting,
    Value,
    shared_with,
)
from harrow.cluster_model.topic_settings import (
    ALL_BROKERS,
    WITHOUT_EFFECT,
    brokers_resource,
    dynamic_settings,
    setting_text,
)
from harrow.cluster_model.topology import KRAFT
from harrow.live_cluster.wire.codec import Address

OF_TOPIC, OF_BROKER, OF_ALL_BROKERS, STATIC, DEFAULT = range(1, 6)
"""Where a value comes from (``DescribeConfigsResponse.ConfigSource``)."""
_TYPES: Final = {
    name: number
    for number, name in enumerate(
        ("boolean", "string", "int", "short", "long", "double", "list", "class", "password"), 1
    )
}
"""The numbers of types (``DescribeConfigsResponse.ConfigType``)."""
_TYPES_OF_KINDS: Final = {"bool": "boolean", "choice": "string", "text": "string", "ratio": "double"}
_QUOTAS: Final = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
"""Settings of brokers that only administrators set (``DynamicConfig.Broker``)."""
_DYNAMIC_SINCE: Final = version_of("1.1")
"""The first release that lets administrators change settings of running brokers (KIP-226)."""
_KRAFT_LISTED_SINCE: Final = version_of("3.0")
"""The first release whose brokers describe the settings of KRaft."""
_ADVERTISED_FIXED_SINCE: Final = version_of("4.0")
"""The first release in which the advertised listeners cannot change."""
_CHANGED_IN_4_3: Final = version_of("4.3")
"""The first profile in which the quotas are not read-only, and the listeners are a list."""
_ADVERTISED: Final = "advertised.listeners"
_NULL: Final = NO_LISTENER
"""The word in the model for Kafka's null as the name of a class or of a listener."""

Synonym = tuple[str, str, int]
"""The name of a setting, its value, and the source."""


class DescribedSetting(NamedTuple):
    """A setting with its value, and all values that it would have without the first one."""

    name: str
    type: int
    value: str | None
    is_read_only: bool
    synonyms: tuple[Synonym, ...]

    @property
    def source(self) -> int:
        return self.synonyms[0][2] if self.synonyms else DEFAULT


class DescribedSettings:
    """The settings of a served cluster, as one broker describes them."""

    def __init__(self, cluster: Cluster, broker: int, address: Address) -> None:
        spec, release = cluster.spec, cluster.release
        self._cluster = cluster
        self._address = address
        own = next(each.settings for each in spec.brokers if each.id == broker)
        self._static = {**shared_with(BROKER, release, spec.settings), **own}
        self._quotas = {name: self._static.pop(name) for name in _QUOTAS if name in self._static}
        if cluster.replication_throttle is not None:
            (rate,) = cluster.replication_throttle
            self._quotas = {} if rate is None else dict.fromkeys(_QUOTAS, rate)
        self._of_all = {
            **dict(self._settings_of_all()),
            **cluster.topic_settings(ALL_BROKERS, broker),
        }
        self._own = cluster.topic_settings(brokers_resource(str(broker)), broker)
        self._version = version_of(release)
        self._has_dynamic = self._version >= _DYNAMIC_SINCE

    def _settings_of_all(self) -> Iterator[tuple[str, Value]]:
        """Yield the settings of all brokers that are in the metadata log.

        A controller with ELRs writes ``min.insync.replicas`` there (KIP-966,
        ``ConfigurationControlManager.maybeGenerateElrSafetyRecords``).
        """
        cluster = self._cluster
        if cluster.metadata == KRAFT and cluster.behaviours.kraft.eligible_leader_replicas:
            shared = cluster.spec.settings
            yield MIN_ISR, shared.get(MIN_ISR, SETTINGS[BROKER, MIN_ISR].default(cluster.release))

    def of_topic(self, own: Mapping[str, Value]) -> Iterator[DescribedSetting]:
        """Yield the settings of a topic, which has *own* ones."""
        release = self._cluster.release
        for setting in (*self._existing(TOPIC), *WITHOUT_EFFECT.values()):
            if not setting.exists_in(release):
                continue
            name, broker_name = setting.name, setting.broker_name
            inherited = SETTINGS.get((BROKER, broker_name))
            synonyms = [(name, setting_text(own[name]), OF_TOPIC)] if name in own else []
            synonyms += self._synonyms(inherited or setting, broker_name) if broker_name else ()
            default = self._static.get(broker_name, setting.default(release))
            value = synonyms[0][1] if synonyms else setting_text(default)
            yield DescribedSetting(
                name, _type_of(setting), value, is_read_only=False, synonyms=tuple(synonyms)
            )

    def of_broker(self) -> Iterator[DescribedSetting]:
        """Yield the settings of the broker that describes them."""
        dynamic = dynamic_settings(self._cluster.release)
        existing = {setting.name: setting for setting in self._existing(BROKER)}
        for name, setting in {**existing, **dynamic}.items():
            if name in _QUOTAS or not self._is_listed(name, setting):
                continue
            synonyms = tuple(self._synonyms(setting, name))
            value = synonyms[0][1] if synonyms else None
            can_change = self._has_dynamic and (name in dynamic or setting.is_dynamic)
            yield DescribedSetting(name, _type_of(setting), value, not can_change, synonyms)
        for name, rate in self._quotas.items():
            is_read_only = self._version < _CHANGED_IN_4_3
            synonym = (name, setting_text(rate), OF_BROKER)
            yield DescribedSetting(name, _TYPES["long"], synonym[1], is_read_only, (synonym,))
        listeners = f"PLAINTEXT://{self._address.host}:{self._address.port}"
        yield DescribedSetting(
            *(_ADVERTISED, _TYPES["list" if self._version >= _CHANGED_IN_4_3 else "string"], listeners),
            is_read_only=self._version >= _ADVERTISED_FIXED_SINCE or not self._has_dynamic,
            synonyms=((_ADVERTISED, listeners, STATIC),),
        )

    def of_all_brokers(self) -> Iterator[DescribedSetting]:
        """Yield the settings of all brokers that an administrator could change."""
        for name, value in self._of_all.items():
            synonym = (name, setting_text(value), OF_ALL_BROKERS)
            kind = _type_of(dynamic_settings(self._cluster.release)[name])
            yield DescribedSetting(name, kind, synonym[1], is_read_only=False, synonyms=(synonym,))

    def _is_listed(self, name: str, setting: Setting) -> bool:
        if setting.metadata == KRAFT and self._version < _KRAFT_LISTED_SINCE:
            return False
        return kafka_has(BROKER, name, self._cluster.release)

    def _existing(self, scope: str) -> Iterable[Setting]:
        release = self._cluster.release
        return [each for (of, _), each in SETTINGS.items() if of == scope and each.exists_in(release)]

    def _synonyms(self, setting: Setting, name: str) -> Iterator[Synonym]:
        """Yield the values of a setting of brokers, the one in force first.

        A setting that is null has none, although another setting decides instead of it
        (``ConfigHelper.configSynonyms``).
        """
        sources = ((self._own, OF_BROKER), (self._of_all, OF_ALL_BROKERS), (self._static, STATIC))
        for values, source in sources:
            if name in values:
                yield name, setting_text(values[name]), source
        default = setting.default(self._cluster.release)
        if setting.fallback is None:
            if default != _NULL:
                yield name, setting_text(default), DEFAULT
        elif any(name in values for values, _ in sources):
            other, value = setting.fallback
            yield other, setting_text(value), DEFAULT


def _type_of(setting: Setting) -> int:
    """Return the number of a setting's type. The table lacks settings that Kafka 4 removed."""
    kind = type_of(setting.scope, setting.name) or _TYPES_OF_KINDS.get(setting.kind)
    if kind is None:
        kind = "int" if setting.maximum <= INT_MAX else "long"
    return _TYPES[kind]
