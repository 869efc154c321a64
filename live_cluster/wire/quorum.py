"""The quorum of controllers: who leads it, and how its leader is made to resign."""

from typing import Any, Final, NamedTuple

from kafka.protocol.admin import DescribeQuorumRequest

from harrow.live_cluster.wire.connection import BrokerConnection, ConnectionLostError
from harrow.live_cluster.wire.schemas import VOTE

_METADATA_TOPIC: Final = "__cluster_metadata"
_PARTITION: Final = 0
_CANDIDATE: Final = 2_000_000_000
"""The id of no voter."""


class QuorumLeader(NamedTuple):
    """The voter that leads the quorum, and since which epoch."""

    id: int
    epoch: int


def quorum_leader(connection: BrokerConnection) -> QuorumLeader | None:
    """Return the leader of the quorum, None where the controller that is asked is not it: it tells nothing then (KIP-595).

    Raises:
        ConnectionLostError: it does not answer, or not that.

    """
    topic = DescribeQuorumRequest.TopicData
    answer = connection.ask(
        DescribeQuorumRequest[0](
            topics=[
                topic(
                    topic_name=_METADATA_TOPIC,
                    partitions=[topic.PartitionData(partition_index=_PARTITION)],
                )
            ]
        )
    )
    told = _only_partition(connection, answer)
    # Who does not lead answers NOT_LEADER_OR_FOLLOWER.
    return None if told.error_code else QuorumLeader(told.leader_id, told.leader_epoch)


def depose_leader(connection: BrokerConnection) -> None:
    """Have the controller that leads the quorum resign: a candidate that no voter votes for has begun a new epoch.

    A leader that is asked for a vote in an epoch above its own is none any more (``KafkaRaftClient.handleVoteRequest``). The
    candidate's log is empty, so it gets no vote, and who stands for election after a timeout wins. One that does not lead is
    left alone.

    Raises:
        ConnectionLostError: it does not answer, or not that.

    """
    leader = quorum_leader(connection)
    if leader is None:
        return
    topic = VOTE.TopicData
    connection.ask(
        VOTE[0](
            cluster_id=None,
            topics=[
                topic(
                    topic_name=_METADATA_TOPIC,
                    partitions=[
                        topic.PartitionData(
                            partition_index=_PARTITION,
                            candidate_epoch=leader.epoch + 1,
                            candidate_id=_CANDIDATE,
                            last_offset_epoch=0,
                            last_offset=0,
                        )
                    ],
                )
            ],
        )
    )


def _only_partition(connection: BrokerConnection, answer: Any) -> Any:
    partitions = [told for topic in answer.topics for told in topic.partitions]
    if answer.error_code or len(partitions) != 1:
        host, port = connection.address
        raise ConnectionLostError(f"{host}:{port} does not describe its quorum: error {answer.error_code}")
    return partitions[0]
