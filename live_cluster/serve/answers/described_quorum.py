"""Describes the quorum of controllers (KIP-595, KIP-836)."""

from collections.abc import Callable, Iterable
from typing import Any, Final
from uuid import UUID

from harrow.cluster_model.controller.control_plane import ControlPlane
from harrow.cluster_model.kraft.control_plane import QuorumControlPlane
from harrow.live_cluster.wire.errors import error_code

_METADATA: Final = ("__cluster_metadata", (0,))
"""The only topic that has a quorum, and its partitions."""
_NO_DIRECTORY: Final = UUID(int=0)


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
    leader_end = next(end for voter, end, _ in quorum.voters if voter == quorum.leader)
    now_us = max(fetched_us for _, _, fetched_us in quorum.voters)
    observers = [(broker, end, now_us) for broker, end in control_plane.observed_ends().items()]

    def states(replicas: Iterable[tuple[int, int, int]]) -> list[Any]:
        return [
            kind.TopicData.PartitionData.ReplicaState(
                replica_id=replica,
                replica_directory_id=_NO_DIRECTORY,
                log_end_offset=end,
                last_fetch_timestamp=client_ms(fetched_us),
                last_caught_up_timestamp=client_ms(now_us if end >= leader_end else fetched_us),
            )
            for replica, end, fetched_us in replicas
        ]

    partition = kind.TopicData.PartitionData(
        partition_index=0,
        error_code=0,
        leader_id=quorum.leader,
        leader_epoch=quorum.epoch,
        high_watermark=quorum.high_watermark,
        current_voters=states(quorum.voters),
        observers=states(observers),
    )
    return kind(
        error_code=0,
        topics=[kind.TopicData(topic_name=_METADATA[0], partitions=[partition])],
        nodes=[kind.Node(node_id=voter, listeners=[]) for voter, *_ in quorum.voters],
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
