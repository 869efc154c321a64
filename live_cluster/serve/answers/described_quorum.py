"""Describes the quorum of controllers (KIP-595, KIP-836)."""

from collections.abc import Callable, Iterable
from typing import Any, Final
from uuid import UUID

from harrow.cluster_model.controller.control_plane import ControlPlane
from harrow.cluster_model.kraft.control_plane import QuorumControlPlane
from harrow.cluster_model.kraft.raft import ReplicaDescription
from harrow.live_cluster.wire.errors import error_code

_METADATA: Final = ("__cluster_metadata", (0,))
"""The only topic that has a quorum, and its partitions."""
_NO_DIRECTORY: Final = UUID(int=0)
_NO_TIMESTAMP: Final = -1
"""The time of a fetch that never was."""


def described_quorum(request: Any, control_plane: ControlPlane, client_ms: Callable[[int], int]) -> Any:
    """Return the answer to a DescribeQuorum, which a broker forwards to the active controller.

    A broker gives up after a while if there is no active controller. Here it does so at once.
    """
    kind = request.header.get_response_class()
    requested = [
        (topic.topic_name, tuple(partition.partition_index for partition in topic.partitions))
        for topic in request.topics
    ]
    if requested != [_METADATA]:
        return kind(error_code=0, topics=[_unknown(kind, *each) for each in requested], nodes=[])
    assert isinstance(control_plane, QuorumControlPlane)
    quorum = control_plane.describe_quorum()
    if quorum is None:
        return kind(error_code=error_code("REQUEST_TIMED_OUT"), topics=[], nodes=[])

    def timestamp(us: int) -> int:
        return client_ms(us) if us >= 0 else _NO_TIMESTAMP

    def states(replicas: Iterable[ReplicaDescription]) -> list[Any]:
        return [
            kind.TopicData.PartitionData.ReplicaState(
                replica_id=replica.replica_id,
                replica_directory_id=_NO_DIRECTORY,
                log_end_offset=replica.end_offset,
                last_fetch_timestamp=timestamp(replica.fetched_us),
                last_caught_up_timestamp=timestamp(replica.caught_up_us),
            )
            for replica in replicas
        ]

    partition = kind.TopicData.PartitionData(
        partition_index=0,
        error_code=0,
        leader_id=quorum.leader,
        leader_epoch=quorum.epoch,
        high_watermark=quorum.high_watermark,
        current_voters=states(quorum.voters),
        observers=states(quorum.observers),
    )
    return kind(
        error_code=0,
        topics=[kind.TopicData(topic_name=_METADATA[0], partitions=[partition])],
        nodes=[kind.Node(node_id=voter.replica_id, listeners=[]) for voter in quorum.voters],
    )


def _unknown(kind: Any, topic: str, partitions: Iterable[int]) -> Any:
    code = error_code("UNKNOWN_TOPIC_OR_PARTITION")
    return kind.TopicData(
        topic_name=topic,
        partitions=[
            kind.TopicData.PartitionData(
                partition_index=number,
                error_code=code,
                leader_id=0,
                leader_epoch=0,
                high_watermark=0,
                current_voters=[],
                observers=[],
            )
            for number in partitions
        ],
    )
