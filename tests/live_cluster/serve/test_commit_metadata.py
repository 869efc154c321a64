"""The texts that clients commit with offsets stay as long as their partitions can have offsets."""

from kafka.protocol.consumer import OffsetCommitRequest

from harrow.live_cluster.names import Names
from harrow.live_cluster.serve.commit_metadata import CommitMetadata
from harrow.live_cluster.serve.requests import ClientRequest
from harrow.live_cluster.wire.codec import Naming

COMMITTED = OffsetCommitRequest.OffsetCommitRequestTopic
PARTITION = COMMITTED.OffsetCommitRequestPartition


def test_a_refused_commit_for_an_unknown_partition_takes_no_memory() -> None:
    kept = CommitMetadata(Naming(Names()), {"t-0"}.__contains__)
    parts = [PARTITION(partition_index=index, committed_offset=1) for index in range(5)]
    topics = [COMMITTED(name="t", partitions=parts), COMMITTED(name="unknown", partitions=parts)]
    body = OffsetCommitRequest[8](group_id="g", topics=topics)
    kept.note(ClientRequest(OffsetCommitRequest.API_KEY, 8, 1, "app", body))
    assert [*kept._commits] == [("g", "t", 0)]
