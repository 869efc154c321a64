"""What a cluster is that somebody else has started: its brokers, its topics, its settings, its release."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kafka.protocol.admin import DeleteTopicsRequest, DescribeConfigsRequest, DescribeQuorumRequest
from kafka.protocol.broker_version_data import infer_broker_version_from_api_versions
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest

from harrow.live_cluster.errors import LiveError
from harrow.live_cluster.releases.kafka_release import KRAFT, ZOOKEEPER, KafkaRelease
from harrow.live_cluster.wire.connection import BrokerConnection

_METADATA: Final = 7
_CONFIGS: Final = (1, 2, 4)
_DELETE: Final = (1, 3)
_TOPIC: Final = 2
_BROKER: Final = 4
_TIMEOUT_MS: Final = 30_000
_UNKNOWN_TOPIC: Final = 3
_METADATA_VERSION: Final = "metadata.version"
_API_VERSIONS: Final = 3
_LEVELS: Final = (
    *((1, "3.0"), (2, "3.1"), (3, "3.2"), (4, "3.3"), (8, "3.4"), (9, "3.5"), (12, "3.6"), (15, "3.7")),
    *((20, "3.8"), (21, "3.9"), (22, "4.0"), (26, "4.1"), (28, "4.2"), (30, "4.3"), (31, "4.4"), (34, "4.5")),
)
"""The first level of the feature metadata.version in each release, oldest first (``MetadataVersion.java``)."""


class SurveyError(LiveError):
    """A cluster does not tell what it is asked; the message has the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerNode:
    """A broker, and where clients reach it (``Node.java``)."""

    id: int
    host: str
    port: int
    rack: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """A cluster by its id. ``assignments`` has the replicas of each partition, by topic; Kafka's own topics are left out."""

    cluster_id: str
    release: KafkaRelease
    metadata: str
    brokers: tuple[BrokerNode, ...]
    controller: int | None
    assignments: Mapping[str, tuple[tuple[int, ...], ...]]


def survey(connection: BrokerConnection, release: KafkaRelease | None = None) -> Survey:
    """Return what a broker tells of its cluster, from 2.1 on; without a *release* it is taken for that of its newest requests.

    Raises:
        ConnectionLostError: it does not answer, or is too old.

    """
    api_keys = connection.ask(ApiVersionsRequest[0]()).api_keys
    spoken = {api.api_key: (api.min_version, api.max_version) for api in api_keys}
    if release is None:
        release = release_that_speaks(spoken, _metadata_level(connection, spoken))
    version = connection.version_of(MetadataRequest, _METADATA)
    answer = connection.ask(MetadataRequest[version](topics=None, allow_auto_topic_creation=False))
    return Survey(
        cluster_id=answer.cluster_id or "",
        release=release,
        # Brokers of clusters with ZooKeeper do not know it (KIP-595).
        metadata=KRAFT if DescribeQuorumRequest.API_KEY in spoken else ZOOKEEPER,
        brokers=tuple(
            BrokerNode(id=broker.node_id, host=broker.host, port=broker.port, rack=broker.rack)
            for broker in sorted(answer.brokers, key=lambda broker: int(broker.node_id))
        ),
        controller=None if answer.controller_id < 0 else answer.controller_id,
        assignments={
            topic.name: tuple(
                tuple(partition.replica_nodes)
                for partition in sorted(topic.partitions, key=lambda each: int(each.partition_index))
            )
            for topic in answer.topics
            if not topic.error_code and not topic.is_internal
        },
    )


def release_that_speaks(spoken: Mapping[int, tuple[int, int]], level: int | None = None) -> KafkaRelease:
    """Return the release of a broker.

    In KRaft the newest *level* of metadata.version that it supports tells. With ZooKeeper its requests do: it *speaks* of each API the
    versions between the lowest and the highest one.
    """
    if level is not None and level >= _LEVELS[0][0]:
        return KafkaRelease(next(name for first, name in reversed(_LEVELS) if level >= first))
    return KafkaRelease(".".join(map(str, infer_broker_version_from_api_versions(spoken))))


def _metadata_level(connection: BrokerConnection, spoken: Mapping[int, tuple[int, int]]) -> int | None:
    """Return the newest level of metadata.version that a broker supports, None where it tells none."""
    if spoken.get(ApiVersionsRequest.API_KEY, (0, 0))[1] < _API_VERSIONS:
        return None
    request = ApiVersionsRequest[_API_VERSIONS](client_software_name="harrow", client_software_version="0")
    features = connection.ask(request).supported_features
    return next((each.max_version for each in features or () if each.name == _METADATA_VERSION), None)


def broker_settings(connection: BrokerConnection, broker: int) -> dict[str, str]:
    """Return the settings that a broker has, its defaults included; what it keeps secret is left out.

    Raises:
        ConnectionLostError: it does not answer.
        SurveyError: it does not tell.

    """
    described = _described(connection, _BROKER, [str(broker)])
    if str(broker) not in described:
        raise SurveyError(f"broker {broker} does not describe its settings")
    return described[str(broker)]


def topic_settings(connection: BrokerConnection, topics: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the settings that were made for each topic itself.

    Raises:
        ConnectionLostError: it does not answer.
        SurveyError: it does not tell.

    """
    return _described(connection, _TOPIC, topics, own_alone=True)


def delete_topics(connection: BrokerConnection, names: Iterable[str]) -> None:
    """Have the controller, or any broker of a KRaft cluster, delete topics; one that is not there is as good as deleted.

    Raises:
        ConnectionLostError: it does not answer.
        SurveyError: it does not do it.

    """
    version = connection.version_of(DeleteTopicsRequest, *_DELETE)
    answer = connection.ask(DeleteTopicsRequest[version](topic_names=list(names), timeout_ms=_TIMEOUT_MS))
    for result in answer.responses:
        if result.error_code not in (0, _UNKNOWN_TOPIC):
            raise SurveyError(f"topic {result.name} was not deleted: error {result.error_code}")


_TOPIC_CONFIG_SOURCE: Final = 1
"""Where a setting of a topic comes from that somebody made for it (``DescribeConfigsResponse.ConfigSource``)."""


def _described(
    connection: BrokerConnection, kind: int, names: Iterable[str], *, own_alone: bool = False
) -> dict[str, dict[str, str]]:
    resource: Any = DescribeConfigsRequest.DescribeConfigsResource
    version = connection.version_of(DescribeConfigsRequest, *_CONFIGS)
    request = DescribeConfigsRequest[version](
        resources=[
            resource(resource_type=kind, resource_name=name, configuration_keys=None) for name in names
        ],
        include_synonyms=False,
    )
    found = {}
    for result in connection.ask(request).results if request.resources else ():
        if result.error_code:
            raise SurveyError(
                f"settings of {result.resource_name} are not described: {result.error_message or result.error_code}"
            )
        found[result.resource_name] = {
            setting.name: setting.value
            for setting in result.configs
            if setting.value is not None and (not own_alone or setting.config_source == _TOPIC_CONFIG_SOURCE)
        }
    return found
