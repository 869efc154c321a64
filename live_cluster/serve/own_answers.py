"""Answers what the model does not: which APIs there are, and what Metadata says about topics."""

from collections.abc import Collection, Mapping
from typing import Any, Final
from uuid import UUID

from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse

from harrow.cluster_model.cluster import Cluster
from harrow.cluster_model.protocol import NO_LEADER, MetadataResponse
from harrow.cluster_model.topology import is_internal
from harrow.live_cluster.serve.requests import ClientRequest
from harrow.live_cluster.serve.served_versions import served_versions
from harrow.live_cluster.wire.errors import error_code

_UNSUPPORTED_VERSION: Final = 35
_METADATA_WITH_NULL_TOPICS: Final = 1
"""The first version of Metadata in which an empty list asks for no topics, and not for all."""
CLUSTER_ID: Final = "harrow"


class OwnAnswers:
    """The answers to clients that come from the server and not from a broker of the model."""

    def __init__(self, cluster: Cluster, topic_ids: Mapping[str, UUID]) -> None:
        self._cluster = cluster
        self._topic_ids = topic_ids
        self._topics = {id_: name for name, id_ in topic_ids.items()}
        self._versions = served_versions(cluster.release)

    def supports(self, request: ClientRequest) -> bool:
        """Return whether the cluster's release supports the version of a request."""
        low, high = self._versions.get(request.api_key, (0, -1))
        return low <= request.version <= high

    def answer(self, request: ClientRequest) -> Any:
        """Return the answer to a request that no broker of the model gets; else None."""
        if request.api_key == ApiVersionsRequest.API_KEY:
            return self._api_versions(request)
        return None

    def complete(self, wire: Any, request: ClientRequest, answer: Any) -> None:
        """Complete the answer of a broker, which is *wire* on the wire."""
        if isinstance(answer, MetadataResponse):
            self._complete_metadata(wire, request, answer)

    def _api_versions(self, request: ClientRequest) -> Any:
        """Return the versions; a client with a later version of the request gets version 0."""
        is_known = self.supports(request)
        keys = ApiVersionsResponse.ApiVersion
        return ApiVersionsResponse[request.version if is_known else 0](
            error_code=0 if is_known else _UNSUPPORTED_VERSION,
            api_keys=[
                keys(api_key=key, min_version=low, max_version=high)
                for key, (low, high) in sorted(self._versions.items())
            ],
            throttle_time_ms=0,
        )

    def _complete_metadata(self, wire: Any, request: ClientRequest, answer: MetadataResponse) -> None:
        known: dict[str, list[str]] = {}
        for name in answer.partitions:
            known.setdefault(name.rpartition("-")[0], []).append(name)
        asked = request.body.topics
        if not asked and request.version < _METADATA_WITH_NULL_TOPICS:
            asked = None
        names = list(known) if asked is None else [self._name_of(topic) for topic in asked]
        controller = self._cluster.controller()
        kind = type(wire)._struct.fields["topics"]  # noqa: SLF001 - kafka-python has no public name
        wire.topics = [self._topic(kind, name, known.get(name or "", ()), answer) for name in names]
        wire.cluster_id = CLUSTER_ID
        wire.controller_id = controller if controller in answer.brokers else next(iter(answer.brokers), -1)

    def _name_of(self, topic: Any) -> str | None:
        """Return the name of a topic in a request, which has a name or an id (KIP-516).

        Return None if no topic has the id.
        """
        return self._topics.get(topic.topic_id) if topic.name is None else str(topic.name)

    def _topic(
        self, kind: Any, name: str | None, partitions: Collection[str], answer: MetadataResponse
    ) -> Any:
        missing = "UNKNOWN_TOPIC_ID" if name is None else "UNKNOWN_TOPIC_OR_PARTITION"
        error = "NONE" if partitions else missing
        inner = kind.fields["partitions"]
        return kind(
            error_code=error_code(error),
            name=name,
            topic_id=self._topic_ids.get(name or ""),
            is_internal=is_internal(f"{name}-0"),
            partitions=[
                self._partition(inner, partition, *answer.partitions[partition]) for partition in partitions
            ],
        )

    def _partition(self, kind: Any, partition: str, leader: int, leader_epoch: int) -> Any:
        state = self._cluster.partition_state(partition)
        return kind(
            error_code=error_code("LEADER_NOT_AVAILABLE" if leader == NO_LEADER else "NONE"),
            partition_index=int(partition.rpartition("-")[2]),
            leader_id=leader,
            leader_epoch=leader_epoch,
            replica_nodes=list(self._cluster.replicas_of(partition)),
            isr_nodes=[] if state is None else list(state.isr),
            offline_replicas=[],
        )
