"""Completes the answers of the model's brokers to producers and consumers."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from kafka.protocol.consumer import SyncGroupRequest

from harrow.cluster_model.cluster import Cluster
from harrow.cluster_model.coordinators.protocol import (
    FindCoordinatorResponse,
    JoinGroupResponse,
    OffsetCommitRequest,
    SyncGroupResponse,
    TxnOffsetCommitRequest,
)
from harrow.cluster_model.errors import (
    INVALID_TXN_STATE,
    TRANSACTION_ABORTABLE,
    UNKNOWN_TOPIC_OR_PARTITION,
)
from harrow.cluster_model.protocol import (
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ProduceRequest,
    ProduceResponse,
    TimedOffsetsResponse,
)
from harrow.live_cluster.serve.answers.commit_metadata import is_too_large
from harrow.live_cluster.serve.contents.record_times import NOT_FOUND, find_by_time, supports_timestamp
from harrow.live_cluster.wire.client_requests import ClientRequest
from harrow.live_cluster.wire.codec import UNKNOWN_TOPIC_ID, Naming
from harrow.live_cluster.wire.errors import error_code

Completion = Callable[[Any, ClientRequest, Any, Any], None]
"""Completes an answer on the wire to a client's request, given the model's request and answer."""
UNSUPPORTED_VERSION: Final = 35
_METADATA_TOO_LARGE: Final = "OFFSET_METADATA_TOO_LARGE"
_ABORTABLE_IN_PRODUCE, _ABORTABLE_IN_COMMIT = 11, 4
"""The first versions of Produce and TxnOffsetCommit with TRANSACTION_ABORTABLE
(``AddPartitionsToTxnManager``, KIP-890)."""
_LEADERS_IN_PRODUCE, _LEADERS_IN_FETCH = 10, 16
"""The first versions whose answers name the leaders of partitions (KIP-951)."""


class ClientAnswers:
    """What the answers to producers and consumers have on the wire but not in the model."""

    def __init__(self, cluster: Cluster, naming: Naming) -> None:
        self._cluster = cluster
        self._naming = naming
        self.completions: Mapping[type, Completion] = {
            ListOffsetsResponse: self._complete_offsets,
            TimedOffsetsResponse: self._complete_offsets,
            ProduceResponse: self._complete_produce,
            FetchResponse: self._complete_fetch,
            FindCoordinatorResponse: _complete_coordinator,
            JoinGroupResponse: _complete_member,
            SyncGroupResponse: _complete_member,
        }

    def _complete_offsets(
        self,
        wire: Any,
        request: ClientRequest,
        sent: ListOffsetsRequest,
        answer: ListOffsetsResponse | TimedOffsetsResponse,
    ) -> None:
        """Fill in the offsets of those partitions for which the client gives a time."""
        readable = answer.readable if isinstance(answer, TimedOffsetsResponse) else {}
        for topic in wire.topics:
            name = self._naming.names.campaign_topic(topic.name)
            for partition in topic.partitions:
                partition_name = f"{name}-{partition.partition_index}"
                timestamp = sent.timestamps[partition_name]
                if not supports_timestamp(timestamp, request.version):
                    partition.timestamp, partition.offset = NOT_FOUND
                    partition.error_code = UNSUPPORTED_VERSION
                elif partition_name in readable:
                    found = find_by_time(readable[partition_name], timestamp)
                    partition.timestamp, partition.offset = found

    def _complete_produce(
        self, wire: Any, request: ClientRequest, _: ProduceRequest, answer: ProduceResponse
    ) -> None:
        if request.version < _ABORTABLE_IN_PRODUCE:
            partitions = (each for topic in wire.responses for each in topic.partition_responses)
            _replace_abortable_errors(partitions)
        if answer.current_leaders and request.version >= _LEADERS_IN_PRODUCE:
            self._name_leaders(wire, "partition_responses", "index", answer.current_leaders)

    def _complete_fetch(
        self, wire: Any, request: ClientRequest, _: FetchRequest, answer: FetchResponse
    ) -> None:
        leaders = {
            name: fetched.current_leader
            for name, fetched in answer.partitions.items()
            if fetched.current_leader is not None
        }
        if leaders and request.version >= _LEADERS_IN_FETCH:
            self._name_leaders(wire, "partitions", "partition_index", leaders)

    def _name_leaders(
        self, wire: Any, partitions: str, index: str, leaders: Mapping[str, tuple[int, int]]
    ) -> None:
        """Name the leaders and epochs of partitions, and the leaders' addresses (KIP-951)."""
        fields = type(wire)._struct.fields  # noqa: SLF001 - kafka-python has no public name
        kind = fields["responses"].fields[partitions].fields["current_leader"]
        for topic in wire.responses:
            for partition in getattr(topic, partitions):
                leader = leaders.get(f"{self._naming.topic_of(topic)}-{getattr(partition, index)}")
                if leader is not None:
                    partition.current_leader = kind(leader_id=leader[0], leader_epoch=leader[1])
        racks = {broker.id: broker.rack for broker in self._cluster.spec.brokers}
        wire.node_endpoints = [
            fields["node_endpoints"](
                node_id=broker, rack=racks[broker], **self._naming.addresses[broker]._asdict()
            )
            for broker in sorted({leader for leader, _ in leaders.values()} & racks.keys())
        ]

    def complete_commit(
        self, wire: Any, request: ClientRequest, sent: OffsetCommitRequest | TxnOffsetCommitRequest
    ) -> None:
        """Refuse the offsets that `OwnAnswers.without_refused_offsets` has left out."""
        if isinstance(sent, TxnOffsetCommitRequest) and request.version < _ABORTABLE_IN_COMMIT:
            _replace_abortable_errors(each for topic in wire.topics for each in topic.partitions)
        kind = type(wire)._struct.fields["topics"]  # noqa: SLF001 - kafka-python has no public name
        for topic in request.body.topics:
            name = self._naming.topic_of(topic)
            missing = UNKNOWN_TOPIC_OR_PARTITION if topic.name or self._is_known(name) else UNKNOWN_TOPIC_ID
            refused = []
            for partition in topic.partitions:
                index = partition.partition_index
                if f"{name}-{index}" not in sent.offsets:
                    is_large = is_too_large(partition.committed_metadata)
                    error = (
                        _METADATA_TOO_LARGE
                        if is_large and self._has_partition(f"{name}-{index}")
                        else missing
                    )
                    refused.append(
                        kind.fields["partitions"](partition_index=index, error_code=error_code(error))
                    )
            if refused:
                wire.topics.append(kind(name=topic.name, topic_id=topic.topic_id, partitions=refused))

    def _is_known(self, topic: str) -> bool:
        return self._has_partition(f"{topic}-0")

    def _has_partition(self, partition: str) -> bool:
        return self._cluster.partition_state(partition) is not None


def _replace_abortable_errors(partitions: Iterable[Any]) -> None:
    """Give a client that does not know TRANSACTION_ABORTABLE the error of earlier releases."""
    for partition in partitions:
        if partition.error_code == error_code(TRANSACTION_ABORTABLE):
            partition.error_code = error_code(INVALID_TXN_STATE)


def _complete_coordinator(wire: Any, request: ClientRequest, *_: Any) -> None:
    """Name the key of a coordinator in versions that find several at once (KIP-699)."""
    for found, key in zip(wire.coordinators or (), request.body.coordinator_keys or (), strict=True):
        found.key = key


def _complete_member(wire: Any, request: ClientRequest, *_: Any) -> None:
    """Return the protocol of the group, which is that of its members (KIP-559)."""
    if not wire.error_code:
        wire.protocol_type = request.body.protocol_type
        if request.api_key == SyncGroupRequest.API_KEY:
            wire.protocol_name = request.body.protocol_name
