"""Surveys a cluster that harrow did not start: its brokers, topics, settings and release."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from kafka.protocol.admin import DescribeConfigsRequest, DescribeQuorumRequest
from kafka.protocol.broker_version_data import infer_broker_version_from_api_versions
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest

from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.live_cluster.errors import LiveError
from harrow.live_cluster.releases.kafka_release import KRAFT, ZOOKEEPER, KafkaRelease
from harrow.live_cluster.wire.connection import BrokerConnection

_METADATA: Final = 7
_CONFIGS: Final = (1, 2, 4)
_TOPIC: Final = 2
_BROKER: Final = 4
_TOPIC_CONFIG_SOURCE: Final = 1
_DEFAULT_CONFIG_SOURCE: Final = 5
"""The sources of settings that were made for a topic itself, and of Kafka's defaults
(``DescribeConfigsResponse.ConfigSource``)."""
_METADATA_VERSION: Final = "metadata.version"
_API_VERSIONS: Final = 3
_FIRST_LEVELS: Final = (
    *((1, "3.0"), (2, "3.1"), (3, "3.2"), (4, "3.3"), (8, "3.4"), (9, "3.5"), (12, "3.6"), (15, "3.7")),
    *((20, "3.8"), (21, "3.9"), (22, "4.0"), (26, "4.1"), (28, "4.2"), (30, "4.3"), (31, "4.4"), (34, "4.5")),
)
"""The first level of metadata.version that each release introduced, oldest first
(``MetadataVersion.java``)."""


class SurveyError(LiveError):
    """A cluster does not describe itself; the message has the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerNode:
    """A broker and the address at which clients reach it (``Node.java``)."""

    id: int
    host: str
    port: int
    rack: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """A cluster. ``assignments`` has the replicas by topic, without Kafka's internal topics."""

    cluster_id: str
    release: KafkaRelease
    metadata: str
    brokers: tuple[BrokerNode, ...]
    controller: int | None
    assignments: Mapping[str, tuple[tuple[int, ...], ...]]

    @property
    def controller_node(self) -> BrokerNode | None:
        """The controller and its address."""
        return next((node for node in self.brokers if node.id == self.controller), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedSetting:
    """A setting as a broker describes it."""

    value: str
    is_default: bool


def survey_cluster(connection: BrokerConnection, release: KafkaRelease | None = None) -> Survey:
    """Return a broker's view of its cluster, which must run 2.1 or newer.

    Infer a missing *release*.
    """
    api_keys = connection.ask(ApiVersionsRequest[0]()).api_keys
    versions = {api.api_key: (api.min_version, api.max_version) for api in api_keys}
    if release is None:
        release = inferred_release(versions, _metadata_level(connection, versions))
    version = connection.version_of(MetadataRequest, _METADATA)
    answer = connection.ask(MetadataRequest[version](topics=None, allow_auto_topic_creation=False))
    return Survey(
        cluster_id=answer.cluster_id or "",
        release=release,
        # Brokers that use ZooKeeper do not support DescribeQuorum (KIP-595).
        metadata=KRAFT if DescribeQuorumRequest.API_KEY in versions else ZOOKEEPER,
        brokers=tuple(
            BrokerNode(id=broker.node_id, host=broker.host, port=broker.port, rack=broker.rack)
            for broker in sorted(answer.brokers, key=lambda broker: int(broker.node_id))
        ),
        controller=None if answer.controller_id < 0 else answer.controller_id,
        assignments={
            topic.name: tuple(
                tuple(partition.replica_nodes)
                for partition in sorted(
                    topic.partitions, key=lambda partition: int(partition.partition_index)
                )
            )
            for topic in answer.topics
            if not topic.error_code and not topic.is_internal
        },
    )


def inferred_release(versions: Mapping[int, tuple[int, int]], level: int | None = None) -> KafkaRelease:
    """Return the release of a broker.

    With KRaft, it follows from the newest *level* of metadata.version that the broker supports.
    With ZooKeeper, it follows from *versions*: the lowest and the highest version of each API that
    the broker supports.
    """
    if level is not None and level >= _FIRST_LEVELS[0][0]:
        return KafkaRelease(next(name for first, name in reversed(_FIRST_LEVELS) if level >= first))
    return KafkaRelease(".".join(map(str, infer_broker_version_from_api_versions(versions))))


def _metadata_level(connection: BrokerConnection, versions: Mapping[int, tuple[int, int]]) -> int | None:
    """Return the newest metadata.version that a broker supports, None if it reports none."""
    if versions.get(ApiVersionsRequest.API_KEY, (0, 0))[1] < _API_VERSIONS:
        return None
    request = ApiVersionsRequest[_API_VERSIONS](client_software_name="harrow", client_software_version="0")
    features = connection.ask(request).supported_features or ()
    return next((feature.max_version for feature in features if feature.name == _METADATA_VERSION), None)


def reported_settings(connection: BrokerConnection, broker: int) -> dict[str, ReportedSetting]:
    """Return a broker's settings, and whether they are Kafka's defaults, without secrets.

    Raise `SurveyError` if the broker refuses.
    """
    settings = _settings(connection, _BROKER, [str(broker)])
    if str(broker) not in settings:
        raise SurveyError(f"broker {broker} does not describe its settings")
    return {
        name: ReportedSetting(value=value, is_default=source == _DEFAULT_CONFIG_SOURCE)
        for name, (value, source) in settings[str(broker)].items()
    }


def topic_settings(connection: BrokerConnection, topics: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the settings made for each topic itself; raise `SurveyError` if the broker refuses."""
    return {
        topic: {name: value for name, (value, source) in settings.items() if source == _TOPIC_CONFIG_SOURCE}
        for topic, settings in _settings(connection, _TOPIC, topics).items()
    }


def _settings(
    connection: BrokerConnection, kind: int, names: Iterable[str]
) -> dict[str, dict[str, tuple[str, int]]]:
    """Return the values of settings, and their sources, by the name of their owner."""
    resource: Any = DescribeConfigsRequest.DescribeConfigsResource
    version = connection.version_of(DescribeConfigsRequest, *_CONFIGS)
    request = DescribeConfigsRequest[version](
        resources=[
            resource(resource_type=kind, resource_name=name, configuration_keys=None) for name in names
        ],
        include_synonyms=False,
    )
    settings = {}
    for result in connection.ask(request).results if request.resources else ():
        if result.error_code:
            reason = result.error_message or result.error_code
            raise SurveyError(
                f"the cluster does not describe the settings of {result.resource_name}: {reason}"
            )
        settings[result.resource_name] = {
            setting.name: (setting.value, setting.config_source)
            for setting in result.configs
            if setting.value is not None
        }
    return settings
