"""Describes a served cluster to clients: its brokers, its topics and their settings."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from kafka.protocol.admin import (
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeTopicPartitionsRequest,
)

from harrow.cluster_model import errors
from harrow.cluster_model.cluster import Cluster
from harrow.cluster_model.settings import (
    BROKER,
    SETTINGS,
    TOPIC,
    ResolvedSettings,
    Setting,
    Value,
    shared_with,
)
from harrow.cluster_model.topic_settings import WITHOUT_EFFECT, setting_text
from harrow.cluster_model.topology import is_internal
from harrow.live_cluster.serve.requests import ClientRequest
from harrow.live_cluster.serve.served_topics import ServedTopics
from harrow.live_cluster.wire.codec import TOPIC_RESOURCE, Address
from harrow.live_cluster.wire.errors import error_code

CLUSTER_ID: Final = "harrow"
_BROKER_RESOURCE: Final = 4
"""The type of a broker among resources with settings (``ConfigResource.Type``)."""
_OF_TOPIC, _OF_BROKER, _DEFAULT = 1, 4, 5
"""Where a value comes from (``DescribeConfigsResponse.ConfigSource``)."""
_TYPES: Final = {
    "bool": 1,
    "choice": 2,
    "text": 2,
    "int": 5,
    "ms": 5,
    "seconds": 5,
    "ratio": 6,
    "replicas": 7,
}
_BROKER_ENDPOINTS: Final = 1
_PARTITIONS_MAX: Final = 2_000
"""The default of ``max.request.partition.size.limit``."""
_RENAMED: Final[Mapping[str, str]] = {
    "flush.messages": "log.flush.interval.messages",
    "flush.ms": "log.flush.interval.ms",
    "segment.ms": "log.roll.ms",
    "min.cleanable.dirty.ratio": "log.cleaner.min.cleanable.ratio",
    "min.compaction.lag.ms": "log.cleaner.min.compaction.lag.ms",
    "max.compaction.lag.ms": "log.cleaner.max.compaction.lag.ms",
    "delete.retention.ms": "log.cleaner.delete.retention.ms",
}
"""The settings of brokers that topics inherit under another name than with ``log.`` before it."""


class _Described(NamedTuple):
    """A setting with its value, its type, and the names and sources of all values that it has."""

    name: str
    type: int
    synonyms: tuple[tuple[str, str, int], ...]


class DescribedCluster:
    """What a served cluster says about itself."""

    def __init__(self, cluster: Cluster, topics: ServedTopics, addresses: Mapping[int, Address]) -> None:
        self._cluster = cluster
        self._topics = topics
        self._addresses = addresses
        self._handlers = {
            DescribeClusterRequest.API_KEY: self._describe_cluster,
            DescribeConfigsRequest.API_KEY: self._describe_settings,
            DescribeTopicPartitionsRequest.API_KEY: self._describe_topics,
        }

    def answer(self, request: ClientRequest, broker: int) -> Any:
        """Return the answer of a broker to a request for a description; else None."""
        handle = self._handlers.get(request.api_key)
        return None if handle is None else handle(request.body, broker)

    # Brokers

    def controller(self) -> int:
        """Return the broker that clients take for the controller. With KRaft it is any broker."""
        live = [broker for broker in self._addresses if self._cluster.is_registered(broker)]
        controller = self._cluster.controller()
        return controller if controller in live else next(iter(live), -1)

    def _describe_cluster(self, request: Any, _: int) -> Any:
        kind = request.header.get_response_class()
        if request.API_VERSION >= 1 and request.endpoint_type != _BROKER_ENDPOINTS:
            return kind(
                error_code=error_code("MISMATCHED_ENDPOINT_TYPE"),
                error_message=None,
                cluster_id="",
                brokers=[],
            )
        racks = {broker.id: broker.rack for broker in self._cluster.spec.brokers}
        return kind(
            error_code=0,
            error_message=None,
            cluster_id=CLUSTER_ID,
            controller_id=self.controller(),
            brokers=[
                kind.DescribeClusterBroker(
                    broker_id=broker, rack=racks[broker], is_fenced=False, **address._asdict()
                )
                for broker, address in self._addresses.items()
                if self._cluster.is_registered(broker)
            ],
        )

    # Topics

    def _describe_topics(self, request: Any, _: int) -> Any:
        """Describe topics page by page (KIP-966, ``DescribeTopicPartitionsRequestHandler``)."""
        kind = request.header.get_response_class()
        requested_names = sorted({topic.name for topic in request.topics} or set(self._topics))
        cursor = request.cursor
        first = (cursor.topic_name, cursor.partition_index) if cursor is not None else ("", 0)
        room = min(request.response_partition_limit, _PARTITIONS_MAX)
        topics, following = [], None
        for name in requested_names:
            if name < first[0]:
                continue
            numbers = self._partitions_of(name)
            begin = first[1] if name == first[0] else 0
            shown = numbers[begin : begin + room]
            if numbers and not shown and room <= 0:
                following = kind.Cursor(topic_name=name, partition_index=begin)
                break
            topics.append(self._topic(kind.DescribeTopicPartitionsResponseTopic, name, shown, bool(numbers)))
            room -= len(shown)
            if len(numbers) > begin + len(shown):
                following = kind.Cursor(topic_name=name, partition_index=begin + len(shown))
                break
        return kind(topics=topics, next_cursor=following)

    def _partitions_of(self, topic: str) -> list[str]:
        model = self._topics.names.campaign_topic(topic)
        names: list[str] = []
        while self._cluster.assignment(f"{model}-{len(names)}") is not None:
            names.append(f"{model}-{len(names)}")
        return names

    def _topic(self, kind: Any, name: str, partitions: list[str], exists: bool) -> Any:
        error = errors.NONE if exists else errors.UNKNOWN_TOPIC_OR_PARTITION
        return kind(
            error_code=error_code(error),
            name=name,
            topic_id=self._topics[name] if exists else None,
            is_internal=is_internal(f"{name}-0"),
            partitions=[
                self._partition(kind.DescribeTopicPartitionsResponsePartition, each) for each in partitions
            ],
        )

    def _partition(self, kind: Any, partition: str) -> Any:
        cluster = self._cluster
        state = cluster.partition_state(partition)
        leader = -1 if state is None else state.leader
        isr = () if state is None else state.isr
        replicas = cluster.replicas_of(partition)
        return kind(
            error_code=error_code("LEADER_NOT_AVAILABLE" if leader < 0 else errors.NONE),
            partition_index=int(partition.rpartition("-")[2]),
            leader_id=leader,
            leader_epoch=-1 if state is None else state.leader_epoch,
            replica_nodes=list(replicas),
            isr_nodes=list(isr),
            eligible_leader_replicas=[broker for broker in cluster.electable(partition) if broker not in isr],
            last_known_elr=[],
            offline_replicas=[broker for broker in replicas if not cluster.is_registered(broker)],
        )

    # Settings

    def _describe_settings(self, request: Any, broker: int) -> Any:
        kind = request.header.get_response_class()
        return kind(
            results=[
                self._resource(kind.DescribeConfigsResult, resource, request, broker)
                for resource in request.resources
            ]
        )

    def _resource(self, kind: Any, resource: Any, request: Any, broker: int) -> Any:
        error, settings = self._settings_of(resource.resource_type, resource.resource_name, broker)
        # Without names, or with an empty list, all are described (``ConfigHelper``).
        requested_names = resource.configuration_keys or None
        return kind(
            error_code=error_code(error),
            error_message=None,
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            configs=[
                _config(kind.DescribeConfigsResourceResult, each, with_synonyms=request.include_synonyms)
                for each in settings
                if requested_names is None or each.name in requested_names
            ],
        )

    def _settings_of(self, kind: int, name: str, broker: int) -> tuple[str, list[_Described]]:
        if kind == TOPIC_RESOURCE:
            if not self._partitions_of(name):
                return errors.UNKNOWN_TOPIC_OR_PARTITION, []
            own = self._cluster.topic_settings(self._topics.names.campaign_topic(name), broker)
            return errors.NONE, list(self._topic_settings(own, self._explicit(broker)))
        if kind == _BROKER_RESOURCE and name == str(broker):
            return errors.NONE, list(self._broker_settings(self._explicit(broker)))
        return errors.INVALID_REQUEST, []

    def _explicit(self, broker: int) -> Mapping[str, Value]:
        """Return the settings that the campaign sets for a broker."""
        spec = self._cluster.spec
        own = next(each.settings for each in spec.brokers if each.id == broker)
        return {**shared_with(BROKER, self._cluster.release, spec.settings), **own}

    def _existing(self, scope: str) -> Iterator[Setting]:
        settings = (setting for (of, _), setting in SETTINGS.items() if of == scope)
        return (setting for setting in settings if setting.exists_in(self._cluster.release))

    def _topic_settings(
        self, own: Mapping[str, Value], of_broker: Mapping[str, Value]
    ) -> Iterator[_Described]:
        for setting in self._existing(TOPIC):
            name = setting.name
            broker_name = name if (BROKER, name) in SETTINGS else _RENAMED.get(name, f"log.{name}")
            values = [(name, own[name], _OF_TOPIC)] if name in own else []
            values += [(broker_name, of_broker[broker_name], _OF_BROKER)] if broker_name in of_broker else []
            values.append((broker_name, setting.default(self._cluster.release), _DEFAULT))
            yield _described(name, _TYPES[setting.kind], values)
        for name, setting in WITHOUT_EFFECT.items():
            if setting.exists_in(self._cluster.release):
                values = [(name, own[name], _OF_TOPIC)] if name in own else []
                values.append((name, setting.default(self._cluster.release), _DEFAULT))
                yield _described(name, _TYPES[setting.kind], values)

    def _broker_settings(self, explicit: Mapping[str, Value]) -> Iterator[_Described]:
        resolved = ResolvedSettings(BROKER, self._cluster.release, {})
        for setting in self._existing(BROKER):
            name = setting.name
            values = [(name, explicit[name], _OF_BROKER)] if name in explicit else []
            yield _described(name, _TYPES[setting.kind], [*values, (name, resolved.get(name), _DEFAULT)])


def _described(name: str, kind: int, values: list[tuple[str, Value, int]]) -> _Described:
    return _Described(
        name, kind, tuple((each, setting_text(value), source) for each, value, source in values)
    )


def _config(kind: Any, setting: _Described, *, with_synonyms: bool) -> Any:
    _, value, source = setting.synonyms[0]
    synonyms = setting.synonyms if with_synonyms else ()
    return kind(
        name=setting.name,
        value=value,
        read_only=False,
        config_source=source,
        is_default=source == _DEFAULT,
        is_sensitive=False,
        synonyms=[
            kind.DescribeConfigsSynonym(name=name, value=text, source=place) for name, text, place in synonyms
        ],
        config_type=setting.type,
        documentation=None,
    )
