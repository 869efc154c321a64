"""The quorum of controllers: its leader, and how to make that leader resign."""

from typing import Final, NamedTuple

from kafka.protocol.admin import DescribeQuorumRequest

from harrow.live_cluster.wire.connection import BrokerConnection, ConnectionLostError
from harrow.live_cluster.wire.schemas import VOTE

_METADATA_TOPIC: Final = "__cluster_metadata"
_CANDIDATE: Final = 2_000_000_000
"""An id that no voter has."""


class QuorumLeader(NamedTuple):
    """The voter that leads the quorum, and its epoch."""

    id: int
    epoch: int


def quorum_leader(connection: BrokerConnection) -> QuorumLeader | None:
    """Return the leader of the quorum if this controller leads, else None (KIP-595)."""
    topic = DescribeQuorumRequest.TopicData
    partitions = [topic.PartitionData(partition_index=0)]
    answer = connection.ask(
        DescribeQuorumRequest[0](topics=[topic(topic_name=_METADATA_TOPIC, partitions=partitions)])
    )
    states = [partition for topic in answer.topics for partition in topic.partitions]
    if answer.error_code or len(states) != 1:
        host, port = connection.address
        raise ConnectionLostError(f"{host}:{port} does not describe its quorum: error {answer.error_code}")
    # Any other voter answers NOT_LEADER_OR_FOLLOWER.
    return None if states[0].error_code else QuorumLeader(states[0].leader_id, states[0].leader_epoch)


def depose_leader(connection: BrokerConnection) -> None:
    """Make a controller resign if it leads the quorum, by asking for a vote in the next epoch.

    A leader that receives a vote request with a higher epoch steps down
    (``KafkaRaftClient.handleVoteRequest``). The log of this candidate is empty, so no voter grants
    it the vote. The first voter whose election timeout ends becomes leader.
    """
    leader = quorum_leader(connection)
    if leader is None:
        return
    topic = VOTE.TopicData
    partition = topic.PartitionData(
        partition_index=0,
        candidate_epoch=leader.epoch + 1,
        candidate_id=_CANDIDATE,
        last_offset_epoch=0,
        last_offset=0,
    )
    connection.ask(
        VOTE[0](cluster_id=None, topics=[topic(topic_name=_METADATA_TOPIC, partitions=[partition])])
    )
