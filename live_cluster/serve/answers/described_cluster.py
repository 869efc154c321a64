"""Describes a served cluster to clients, and changes what controllers of the model do not know."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final

from kafka.protocol.admin import (
    AlterReplicaLogDirsRequest,
    AlterUserScramCredentialsRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeLogDirsRequest,
    DescribeQuorumRequest,
    DescribeTopicPartitionsRequest,
    DescribeUserScramCredentialsRequest,
    ListConfigResourcesRequest,
)

from harrow.cluster_model import errors
from harrow.cluster_model.cluster import Cluster
from harrow.cluster_model.topology import is_internal
from harrow.live_cluster.serve.answers.described_log_dirs import described_log_dirs
from harrow.live_cluster.serve.answers.described_quorum import described_quorum
from harrow.live_cluster.serve.answers.described_settings import DEFAULT, DescribedSetting, DescribedSettings
from harrow.live_cluster.serve.answers.moved_replicas import move_replicas
from harrow.live_cluster.serve.answers.refused_acls import ACL_REQUESTS, refused_acls
from harrow.live_cluster.serve.answers.scram_credentials import ScramCredentials
from harrow.live_cluster.serve.answers.served_topics import ServedTopics
from harrow.live_cluster.wire.client_requests import ClientRequest
from harrow.live_cluster.wire.codec import BROKER_RESOURCE, TOPIC_RESOURCE, Address
from harrow.live_cluster.wire.errors import error_code

CLUSTER_ID: Final = "harrow"
_BROKER_LOGGER, _CLIENT_METRICS, _GROUP = 8, 16, 32
"""Types of resources with settings (``ConfigResource.Type``)."""
_LISTED_TYPES: Final = (_BROKER_LOGGER, BROKER_RESOURCE, TOPIC_RESOURCE, _CLIENT_METRICS, _GROUP)
_BROKER_ENDPOINTS: Final = 1
_PARTITIONS_MAX: Final = 2_000
"""The default of ``max.request.partition.size.limit``."""


class DescribedCluster:
    """What a served cluster says about itself."""

    def __init__(
        self,
        cluster: Cluster,
        topics: ServedTopics,
        addresses: Mapping[int, Address],
        client_ms: Callable[[int], int],
    ) -> None:
        """Describe a cluster; *client_ms* converts the model's time to that of clients."""
        self._client_ms = client_ms
        self._cluster = cluster
        self._topics = topics
        self._addresses = addresses
        credentials = ScramCredentials()
        self._handlers = {
            DescribeClusterRequest.API_KEY: self._describe_cluster,
            DescribeConfigsRequest.API_KEY: self._describe_settings,
            AlterReplicaLogDirsRequest.API_KEY: self._move_replicas,
            AlterUserScramCredentialsRequest.API_KEY: credentials.alter,
            DescribeLogDirsRequest.API_KEY: self._describe_log_dirs,
            DescribeQuorumRequest.API_KEY: self._describe_quorum,
            DescribeTopicPartitionsRequest.API_KEY: self._describe_topics,
            DescribeUserScramCredentialsRequest.API_KEY: credentials.describe,
            ListConfigResourcesRequest.API_KEY: self._list_resources,
            **{kind.API_KEY: refused_acls for kind in ACL_REQUESTS},
        }

    def answer(self, request: ClientRequest, broker: int) -> Callable[[], Any] | None:
        """Return what answers such a request for a broker; None if the model does."""
        handle = self._handlers.get(request.api_key)
        return None if handle is None else partial(handle, request.body, broker)

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

    def _describe_quorum(self, request: Any, _: int) -> Any:
        return described_quorum(request, self._cluster.control_plane, self._client_ms)

    def _describe_log_dirs(self, request: Any, broker: int) -> Any:
        kind, disk = request.header.get_response_class(), self._cluster.disks[broker]
        return described_log_dirs(kind, request, broker, disk, self._topics.names)

    def _move_replicas(self, request: Any, broker: int) -> Any:
        return move_replicas(request, broker, self._cluster, self._topics.names)

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

    def _list_resources(self, request: Any, _: int) -> Any:
        """List what has settings (KIP-1142). Version 0 asks for client metrics: there are none."""
        kind = request.header.get_response_class()
        types = request.resource_types or _LISTED_TYPES if request.API_VERSION > 0 else ()
        if not set(types) <= set(_LISTED_TYPES):
            return kind(error_code=error_code(errors.UNSUPPORTED_VERSION), config_resources=[])
        live = [str(broker) for broker in self._addresses if self._cluster.is_registered(broker)]
        names = {_BROKER_LOGGER: live, BROKER_RESOURCE: live, TOPIC_RESOURCE: list(self._topics)}
        return kind(
            error_code=0,
            config_resources=[
                kind.ConfigResource(resource_name=name, resource_type=each)
                for each in _LISTED_TYPES
                if each in types
                for name in names.get(each, ())
            ],
        )

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

    def _settings_of(self, kind: int, name: str, broker: int) -> tuple[str, Iterable[DescribedSetting]]:
        described = DescribedSettings(self._cluster, broker, self._addresses[broker])
        if kind == TOPIC_RESOURCE:
            if not self._partitions_of(name):
                return errors.UNKNOWN_TOPIC_OR_PARTITION, ()
            own = self._cluster.topic_settings(self._topics.names.campaign_topic(name), broker)
            return errors.NONE, described.of_topic(own)
        if kind == BROKER_RESOURCE and name == str(broker):
            return errors.NONE, described.of_broker()
        if kind == BROKER_RESOURCE and not name:
            return errors.NONE, described.of_all_brokers()
        return errors.INVALID_REQUEST, ()


def _config(kind: Any, setting: DescribedSetting, *, with_synonyms: bool) -> Any:
    synonyms = setting.synonyms if with_synonyms else ()
    return kind(
        name=setting.name,
        value=setting.value,
        read_only=setting.is_read_only,
        config_source=setting.source,
        is_default=setting.source == DEFAULT,
        is_sensitive=False,
        synonyms=[
            kind.DescribeConfigsSynonym(name=name, value=text, source=source)
            for name, text, source in synonyms
        ],
        config_type=setting.type,
        documentation=None,
    )
