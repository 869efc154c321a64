"""Answers what the model does not: which APIs there are, and what Metadata says about topics."""

from collections import Counter
from collections.abc import Callable, Collection
from copy import copy
from functools import partial
from typing import Any, Final

from kafka.protocol.admin import (
    AlterConfigsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DescribeQuorumRequest,
    IncrementalAlterConfigsRequest,
)
from kafka.protocol.consumer import SyncGroupRequest
from kafka.protocol.metadata import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FindCoordinatorRequest,
    MetadataRequest,
)

from harrow.cluster_model.cluster import Cluster
from harrow.cluster_model.controller.administration import (
    AlterPartitionReassignmentsResponse,
    AlterTopicSettingsResponse,
    CreatePartitionsResponse,
    CreateTopicsResponse,
    DeleteTopicsResponse,
    Outcome,
    RefusedError,
)
from harrow.cluster_model.controller.new_topics import LIFE, validate_name
from harrow.cluster_model.coordinators.protocol import (
    DeleteGroupsResponse,
    DescribeGroupsResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteResponse,
    OffsetFetchResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from harrow.cluster_model.errors import (
    GROUP_ID_NOT_FOUND,
    INCONSISTENT_GROUP_PROTOCOL,
    INVALID_REQUEST,
    NONE,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from harrow.cluster_model.protocol import (
    NO_LEADER,
    MetadataResponse,
)
from harrow.cluster_model.topology import KRAFT, ZOOKEEPER, is_internal
from harrow.live_cluster.serve.answers.client_answers import UNSUPPORTED_VERSION, ClientAnswers, Completion
from harrow.live_cluster.serve.answers.commit_metadata import CommitMetadata, is_too_large
from harrow.live_cluster.serve.answers.described_cluster import CLUSTER_ID, DescribedCluster
from harrow.live_cluster.serve.answers.plain_login import LOGIN_VERSIONS
from harrow.live_cluster.serve.answers.served_topics import ServedTopics
from harrow.live_cluster.serve.answers.served_versions import finalized_features, served_versions
from harrow.live_cluster.wire.client_requests import ClientRequest, batching_of
from harrow.live_cluster.wire.codec import BROKER_RESOURCE, TOPIC_RESOURCE, UNKNOWN_TOPIC_ID, Naming
from harrow.live_cluster.wire.errors import error_code

_FEATURES_EPOCH: Final = 1
"""The version of the cluster's features, which never change."""
_UNKNOWN_GROUP_IS_ERROR: Final = 6
"""The first version of DescribeGroups with an error for an unknown group (KIP-1043)."""
_PROTOCOL_IN_SYNC: Final = 5
"""The first version of SyncGroup in which members must name the type and name of their protocol."""
_DELETION_BY_ID: Final = 6
"""Since this version of DeleteTopics, clients can name topics by their ids."""
_NEITHER: Final = "Neither topic name nor id were specified."
_BOTH: Final = "You may not specify both topic name and topic id."
_KEY_TYPES: Final = (0, 1)
"""A group or a transactional id (``FindCoordinatorRequest.CoordinatorType``)."""
_SETTINGS_CHANGES: Final = frozenset({AlterConfigsRequest.API_KEY, IncrementalAlterConfigsRequest.API_KEY})
"""The APIs that change settings of resources."""
_DISTINCT_TOPICS: Final = _SETTINGS_CHANGES | {DeleteTopicsRequest.API_KEY, CreatePartitionsRequest.API_KEY}
"""The APIs that refuse topics that occur more than once in a request.

See ``ControllerApis`` and ``ConfigAdminManager``. The model's controllers refuse duplicates in
CreateTopics.
"""
_METADATA_WITH_NULL_TOPICS: Final = 1
"""The first version of Metadata in which an empty list asks for no topics, and not for all."""


_CHANGEABLE: Final = {KRAFT: (TOPIC_RESOURCE, BROKER_RESOURCE), ZOOKEEPER: (TOPIC_RESOURCE,)}
"""The types of resources whose settings clients can change, by the kind of the control plane."""
_REFUSALS: Final = {
    KRAFT: "harrow changes settings of topics and brokers only",
    ZOOKEEPER: "harrow changes settings of topics only in a cluster with ZooKeeper",
}
"""The answers to changes of other resources."""


class OwnAnswers:
    """The answers to clients that come from the server and not from a broker of the model."""

    def __init__(
        self,
        cluster: Cluster,
        topics: ServedTopics,
        naming: Naming,
        *,
        client_ms: Callable[[int], int],
        with_login: bool = False,
    ) -> None:
        self._cluster = cluster
        self._topics = topics
        self._naming = naming
        self._described = DescribedCluster(cluster, topics, naming.addresses, client_ms)
        self._versions = {**served_versions(cluster.release), **(LOGIN_VERSIONS if with_login else {})}
        if cluster.metadata != KRAFT:
            self._versions.pop(DescribeQuorumRequest.API_KEY, None)
        self._features = finalized_features(cluster.release, cluster.behaviours)
        self._commit_metadata = CommitMetadata(
            naming, lambda partition: cluster.partition_state(partition) is not None
        )
        self._client_answers = ClientAnswers(cluster, naming)
        self._completions: dict[type, Completion] = {
            **self._client_answers.completions,
            OffsetCommitResponse: self._complete_commit,
            TxnOffsetCommitResponse: self._complete_commit,
            DeleteGroupsResponse: self._commit_metadata.delete_groups,
            OffsetDeleteResponse: self._commit_metadata.delete_offsets,
            MetadataResponse: self._complete_metadata,
            OffsetFetchResponse: self._commit_metadata.complete,
            CreateTopicsResponse: self._complete_creations,
            CreatePartitionsResponse: self._refuse_duplicates,
            DeleteTopicsResponse: self._complete_deletions,
            DescribeGroupsResponse: _complete_descriptions,
            AlterTopicSettingsResponse: self._complete_settings,
            AlterPartitionReassignmentsResponse: _complete_reassignments,
        }

    def supports(self, request: ClientRequest) -> bool:
        """Return whether the cluster's release supports the version of a request."""
        low, high = self._versions.get(request.api_key, (0, -1))
        return low <= request.version <= high

    def answer(self, request: ClientRequest, broker: int) -> Callable[[], Any] | None:
        """Return what answers a request to *broker* that the model does not get; else None.

        It has to be called when the broker would get the request, because it may change something.
        """
        if request.api_key == ApiVersionsRequest.API_KEY:
            return partial(self._api_versions, request)
        if request.api_key == CreateTopicsRequest.API_KEY and request.body is not None:
            for topic in request.body.topics:
                self._topics.prepare_creation(topic.name)
        if request.api_key == MetadataRequest.API_KEY and request.body is not None:
            self._prepare_missing(request.body)
        if request.body is None or not self.supports(request):
            return None
        batching = batching_of(request)
        if batching is not None and not getattr(request.body, batching.asked):
            return partial(request.body.header.get_response_class(), **{batching.answered: []})
        if request.api_key == FindCoordinatorRequest.API_KEY and request.body.key_type not in _KEY_TYPES:
            return partial(_without_coordinator, request)
        if request.api_key == SyncGroupRequest.API_KEY and _lacks_protocol(request):
            refused = request.body.header.get_response_class()
            return partial(refused, error_code=error_code(INCONSISTENT_GROUP_PROTOCOL))
        self._commit_metadata.note(request)
        return self._described.answer(request, broker)

    def _prepare_missing(self, request: Any) -> None:
        """Prepare the topics that brokers create if they do not exist."""
        for topic in request.topics or ():
            if request.allow_auto_topic_creation and topic.name is not None:
                self._topics.prepare_creation(topic.name)

    def without_refused_offsets(self, model: Any, request: ClientRequest) -> Any:
        """Return a request without offsets of unknown partitions or with too large metadata.

        Brokers refuse the former before the group sees them
        (``KafkaApis.handleOffsetCommitRequest``), and coordinators the latter.
        """
        if isinstance(model, OffsetCommitRequest | TxnOffsetCommitRequest):
            large = {
                f"{self._naming.topic_of(topic)}-{partition.partition_index}"
                for topic in request.body.topics
                for partition in topic.partitions
                if is_too_large(partition.committed_metadata)
            }
            model.offsets = {
                partition: offset
                for partition, offset in model.offsets.items()
                if partition not in large and self._cluster.partition_state(partition) is not None
            }
        return model

    def without_refused(self, request: ClientRequest) -> Any:
        """Return the body of a request without the topics that no controller gets.

        They occur more than once, or the request gives neither or both of their name and their id.
        """
        duplicates, ambiguous = self._duplicates(request), self._refused_topics(request)
        if not duplicates and not ambiguous:
            return request.body
        body, names = copy(request.body), _topics_attribute(request)
        topics = [each for each in getattr(body, names) if each not in ambiguous]
        setattr(body, names, [each for each in topics if self._key(each) not in duplicates])
        return body

    def _refused_topics(self, request: ClientRequest) -> Collection[Any]:
        """Return the ambiguous topics, and the resources whose settings cannot change."""
        if request.api_key not in _SETTINGS_CHANGES:
            return _ambiguous_topics(request)
        return [each for each in request.body.resources if self._refusal(each) is not None]

    def _refusal(self, resource: Any) -> Outcome | None:
        """Return why the type or the name of a resource forbids to change it; else None.

        Controllers check the names of topics (``ControllerConfigurationValidator``). With ZooKeeper
        brokers first look for the topic (``ZkAdminManager.alterTopicConfigs``).
        """
        metadata, name = self._cluster.metadata, resource.resource_name
        if resource.resource_type not in _CHANGEABLE[metadata]:
            return INVALID_REQUEST, _REFUSALS[metadata]
        if resource.resource_type != TOPIC_RESOURCE:
            return None
        if not name:
            return INVALID_REQUEST, "Default topic resources are not allowed."
        try:
            validate_name(name)
        except RefusedError as refused:
            if metadata == ZOOKEEPER:
                return UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist."
            return refused.error, refused.message
        return None

    def _duplicates(self, request: ClientRequest) -> Collection[Any]:
        """Return the keys of topics that occur more than once in a request."""
        if request.api_key not in _DISTINCT_TOPICS:
            return ()
        ambiguous = _ambiguous_topics(request)
        topics = getattr(request.body, _topics_attribute(request)) or ()
        keys = Counter(self._key(topic) for topic in topics if topic not in ambiguous)
        return [key for key, count in keys.items() if count > 1]

    def _key(self, topic: Any) -> Any:
        """Return what identifies a topic, or another resource, in a request."""
        if isinstance(topic, str):
            return topic
        if hasattr(topic, "resource_name"):
            return topic.resource_type, topic.resource_name
        return topic.name or self._name_of(topic) or getattr(topic, "topic_id", "")

    def complete(self, wire: Any, request: ClientRequest, sent: Any, answer: Any) -> None:
        """Complete the *answer* of a broker to *sent*, which is *wire* on the wire."""
        completion = self._completions.get(type(answer))
        if completion is not None:
            completion(wire, request, sent, answer)

    def _complete_commit(self, wire: Any, request: ClientRequest, sent: Any, _: Any) -> None:
        self._client_answers.complete_commit(wire, request, sent)
        self._commit_metadata.settle(wire, request)

    def _complete_creations(self, wire: Any, request: ClientRequest, *_: Any) -> None:
        """Fill in the ids of new topics. A topic that was only validated has none."""
        for topic in wire.topics:
            is_created = not (topic.error_code or request.body.validate_only)
            topic.topic_id = self._topics[topic.name] if is_created else None

    def _complete_deletions(self, wire: Any, request: ClientRequest, *_: Any) -> None:
        """Return the ids by which a client has named topics."""
        if request.version >= _DELETION_BY_ID:
            sent = self.without_refused(request).topics
            requested = {str(self._key(topic)): topic for topic in sent}
            for answer in wire.responses:
                topic = requested.get(answer.name.removeprefix(LIFE))
                if topic is None:  # The name has characters that no topic has.
                    continue
                answer.topic_id = topic.topic_id
                if topic.name is None and answer.error_code == error_code(UNKNOWN_TOPIC_OR_PARTITION):
                    answer.name, answer.error_code = None, error_code(UNKNOWN_TOPIC_ID)
        self._refuse_duplicates(wire, request)
        kind = type(wire)._struct.fields["responses"]  # noqa: SLF001 - kafka-python has no public name
        for topic in _ambiguous_topics(request):
            message = _NEITHER if topic.name is None else _BOTH
            names = {"name": topic.name, "topic_id": topic.topic_id}
            wire.responses.append(
                kind(error_code=error_code(INVALID_REQUEST), error_message=message, **names)
            )

    def _refuse_duplicates(self, wire: Any, request: ClientRequest, *_: Any) -> None:
        name = "results" if request.api_key == CreatePartitionsRequest.API_KEY else "responses"
        kind = type(wire)._struct.fields[name]  # noqa: SLF001 - kafka-python has no public name
        for key in self._duplicates(request):
            names = {"name": key} if isinstance(key, str) else {"name": None, "topic_id": key}
            code, message = error_code(INVALID_REQUEST), "Duplicate topic name."
            getattr(wire, name).append(kind(error_code=code, error_message=message, **names))

    def _complete_settings(self, wire: Any, request: ClientRequest, *_: Any) -> None:
        """Refuse to change settings of what has none or has no valid name, or of anything twice."""
        duplicates = self._duplicates(request)
        for resource in request.body.resources:
            refusal = self._refusal(resource)
            if refusal is None and self._key(resource) in duplicates:
                refusal = INVALID_REQUEST, "Each resource must appear at most once."
            if refusal is not None:
                wire.responses.append(_refused(wire, resource, *refusal))

    def _api_versions(self, request: ClientRequest) -> Any:
        """Return the versions; a client with a later version of the request gets version 0."""
        is_known = self.supports(request)
        keys, supported = ApiVersionsResponse.ApiVersion, ApiVersionsResponse.SupportedFeatureKey
        finalized = ApiVersionsResponse.FinalizedFeatureKey
        return ApiVersionsResponse[request.version if is_known else 0](
            error_code=0 if is_known else UNSUPPORTED_VERSION,
            api_keys=[
                keys(api_key=key, min_version=low, max_version=high)
                for key, (low, high) in sorted(self._versions.items())
            ],
            throttle_time_ms=0,
            supported_features=[
                supported(name=name, min_version=1, max_version=level)
                for name, level in self._features.items()
            ],
            finalized_features_epoch=_FEATURES_EPOCH,
            finalized_features=[
                finalized(name=name, min_version_level=level, max_version_level=level)
                for name, level in self._features.items()
            ],
        )

    def _complete_metadata(self, wire: Any, request: ClientRequest, _: Any, answer: MetadataResponse) -> None:
        known: dict[str, list[str]] = {}
        naming = self._topics.names
        for name in answer.partitions:
            topic = name.rpartition("-")[0]
            if naming.campaign_topic(naming.cluster_topic(topic)) == topic:
                known.setdefault(naming.cluster_topic(topic), []).append(name)
        requested = request.body.topics
        if not requested and request.version < _METADATA_WITH_NULL_TOPICS:
            requested = None
        names = list(known) if requested is None else [self._name_of(topic) for topic in requested]
        kind = type(wire)._struct.fields["topics"]  # noqa: SLF001 - kafka-python has no public name
        wire.topics = [self._topic(kind, name, known.get(name or "", ()), answer) for name in names]
        wire.cluster_id = CLUSTER_ID
        wire.controller_id = self._described.controller()

    def _name_of(self, topic: Any) -> str | None:
        """Return the name of a topic in a request, which has a name or an id (KIP-516).

        Return None if no topic has the id.
        """
        if topic.name is not None:
            return str(topic.name)
        found = self._topics.find(topic.topic_id)
        return None if found is None else self._naming.names.cluster_topic(found)

    def _topic(
        self, kind: Any, name: str | None, partitions: Collection[str], answer: MetadataResponse
    ) -> Any:
        missing = UNKNOWN_TOPIC_ID if name is None else UNKNOWN_TOPIC_OR_PARTITION
        error = NONE if partitions else missing
        if name is not None and (refused := answer.topic_errors.get(self._topics.names.campaign_topic(name))):
            error, partitions = refused, ()
        inner = kind.fields["partitions"]
        return kind(
            error_code=error_code(error),
            name=name,
            topic_id=self._topics[name] if name and partitions else None,
            is_internal=is_internal(f"{name}-0"),
            partitions=[
                self._partition(inner, partition, *answer.partitions[partition]) for partition in partitions
            ],
        )

    def _partition(self, kind: Any, partition: str, leader: int, leader_epoch: int) -> Any:
        state, assignment = self._cluster.partition_state(partition), self._cluster.assignment(partition)
        return kind(
            error_code=error_code("LEADER_NOT_AVAILABLE" if leader == NO_LEADER else "NONE"),
            partition_index=int(partition.rpartition("-")[2]),
            leader_id=leader,
            leader_epoch=leader_epoch,
            replica_nodes=[] if assignment is None else list(assignment.replicas),
            isr_nodes=[] if state is None else list(state.isr),
            offline_replicas=[],
        )


def _without_coordinator(request: ClientRequest) -> Any:
    """Refuse to find coordinators of another kind, as those of share groups."""
    kind, code = request.body.header.get_response_class(), error_code(INVALID_REQUEST)
    batching = batching_of(request)
    if batching is None:
        return kind(error_code=code, node_id=NO_LEADER, host="", port=-1)
    refused = kind._struct.fields["coordinators"]  # noqa: SLF001 - kafka-python has no public name
    keys = request.body.coordinator_keys
    return kind(
        coordinators=[refused(key=key, error_code=code, node_id=NO_LEADER, host="", port=-1) for key in keys]
    )


def _lacks_protocol(request: ClientRequest) -> bool:
    """Return whether a SyncGroup does not name the protocol (KIP-559)."""
    names = request.body.protocol_type, request.body.protocol_name
    return request.version >= _PROTOCOL_IN_SYNC and None in names


def _complete_reassignments(wire: Any, request: ClientRequest, *_: Any) -> None:
    """Repeat whether the replication factor may change (KIP-860)."""
    wire.allow_replication_factor_change = request.body.allow_replication_factor_change


def _complete_descriptions(wire: Any, request: ClientRequest, *_: Any) -> None:
    """Describe an unknown group without an error in versions that have none for it."""
    for group in wire.groups:
        if group.error_code == error_code(GROUP_ID_NOT_FOUND) and request.version < _UNKNOWN_GROUP_IS_ERROR:
            group.error_code = 0


def _ambiguous_topics(request: ClientRequest) -> Collection[Any]:
    """Return the topics that a DeleteTopics gives by neither or both of name and id."""
    if request.api_key != DeleteTopicsRequest.API_KEY or request.version < _DELETION_BY_ID:
        return ()
    return [topic for topic in request.body.topics or () if (topic.name is None) != _has_id(topic)]


def _has_id(topic: Any) -> bool:
    return topic.topic_id is not None and topic.topic_id.int != 0


def _topics_attribute(request: ClientRequest) -> str:
    """Return the attribute of a request with the topics that it administers."""
    if request.api_key == DeleteTopicsRequest.API_KEY and request.version < _DELETION_BY_ID:
        return "topic_names"
    return "resources" if request.api_key in _SETTINGS_CHANGES else "topics"


def _refused(wire: Any, resource: Any, error: str, message: str) -> Any:
    kind = type(wire)._struct.fields["responses"]  # noqa: SLF001 - kafka-python has no public name
    return kind(
        error_code=error_code(error),
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
