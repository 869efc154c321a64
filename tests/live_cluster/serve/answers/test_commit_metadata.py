"""The texts that clients commit with offsets stay as long as a group can have the offsets."""

from types import SimpleNamespace
from typing import Any, Final

from kafka.protocol.admin import DeleteGroupsRequest
from kafka.protocol.consumer import OffsetCommitRequest, OffsetCommitResponse, OffsetFetchRequest

from harrow.cluster_model import errors
from harrow.live_cluster.names import Names
from harrow.live_cluster.serve.answers.commit_metadata import CommitMetadata, is_too_large
from harrow.live_cluster.wire.client_requests import ClientRequest
from harrow.live_cluster.wire.codec import Naming
from harrow.live_cluster.wire.connection import BrokerConnection
from harrow.live_cluster.wire.errors import error_code, error_name
from tests.live_cluster.serve.answers.test_served_versions import use

TOPIC: Final = OffsetCommitRequest.OffsetCommitRequestTopic
PARTITION: Final = TOPIC.OffsetCommitRequestPartition
ANSWER: Final = OffsetCommitResponse.OffsetCommitResponseTopic
OUTCOME: Final = ANSWER.OffsetCommitResponsePartition


def commit_of(text: str, topic: str = "t", generation: int = -1) -> Any:
    """Return a request that commits the offset 1 of a partition with a text."""
    partition = PARTITION(
        partition_index=0, committed_offset=1, committed_metadata=text, committed_leader_epoch=0
    )
    return OffsetCommitRequest[8](
        group_id="g",
        member_id="",
        generation_id_or_member_epoch=generation,
        topics=[TOPIC(name=topic, partitions=[partition])],
    )


def committed(connection: BrokerConnection, text: str, generation: int = -1) -> str:
    """Commit a text, and return the outcome."""
    [topic] = connection.ask(commit_of(text, generation=generation)).topics
    [partition] = topic.partitions
    return error_name(partition.error_code)


def fetched(connection: BrokerConnection) -> tuple[int, str]:
    """Return the committed offset and its text."""
    topic = OffsetFetchRequest.OffsetFetchRequestTopic(name="t", partition_indexes=[0])
    [read] = connection.ask(OffsetFetchRequest[7](group_id="g", topics=[topic])).topics
    return read.partitions[0].committed_offset, read.partitions[0].metadata


class Commits:
    """The commits of a group for the only partition of the topic t."""

    def __init__(self) -> None:
        self.kept = CommitMetadata(Naming(Names()), {"t-0"}.__contains__)

    def note(self, text: str, topic: str = "t") -> ClientRequest:
        request = ClientRequest(OffsetCommitRequest.API_KEY, 8, 1, "app", commit_of(text, topic))
        self.kept.note(request)
        return request

    def settle(self, request: ClientRequest, error: str = errors.NONE) -> None:
        outcome = OUTCOME(partition_index=0, error_code=error_code(error))
        self.kept.settle(OffsetCommitResponse[8](topics=[ANSWER(name="t", partitions=[outcome])]), request)

    def text(self) -> str:
        partition = SimpleNamespace(partition_index=0, committed_offset=1)
        topic = SimpleNamespace(name="t", topic_id=None, partitions=[partition])
        wire = SimpleNamespace(groups=None, topics=[topic])
        body = SimpleNamespace(groups=None, group_id="g")
        self.kept.complete(wire, ClientRequest(9, 7, 2, "app", body))
        return str(partition.metadata)


def test_a_refused_commit_takes_no_memory() -> None:
    commits = Commits()
    commits.note("x", topic="unknown")
    commits.note("x" * 4_097)
    commits.settle(commits.note("x"), errors.ILLEGAL_GENERATION)
    assert commits.kept._groups == {}


def test_a_refused_commit_leaves_the_text_of_an_earlier_one() -> None:
    commits = Commits()
    for text in ("first", "second"):
        commits.settle(commits.note("first"))
        commits.settle(commits.note(text), errors.ILLEGAL_GENERATION)
        assert commits.text() == "first"


def test_a_commit_whose_answer_is_lost_counts() -> None:
    commits = Commits()
    commits.settle(commits.note("first"))
    commits.note("second")
    assert commits.text() == "second"


def test_the_length_of_a_text_is_that_in_java() -> None:
    assert not is_too_large(None)
    assert not is_too_large("\u00e9" * 4_096)
    assert is_too_large("x" * 4_097)
    assert is_too_large("\U0001f600" * 2_049)


def test_a_text_of_more_than_offset_metadata_max_bytes_is_refused() -> None:
    def ask(connection: BrokerConnection) -> None:
        assert committed(connection, "x" * 4_096) == errors.NONE
        assert committed(connection, "y" * 4_097) == "OFFSET_METADATA_TOO_LARGE"
        assert fetched(connection) == (1, "x" * 4_096)

    use("4.3", ask)


def test_a_deleted_group_leaves_no_text() -> None:
    def ask(connection: BrokerConnection) -> None:
        assert committed(connection, "old") == errors.NONE
        connection.ask(DeleteGroupsRequest[2](groups_names=["g"]))
        assert fetched(connection) == (-1, "")

    use("4.3", ask)
    commits = Commits()
    commits.settle(commits.note("old"))
    deleted = SimpleNamespace(results=[SimpleNamespace(group_id="g", error_code=0)])
    commits.kept.delete_groups(deleted)
    assert commits.text() == ""


def test_deleted_offsets_leave_no_text() -> None:
    commits = Commits()
    request = commits.note("old")
    commits.settle(request)
    partition = SimpleNamespace(partition_index=0, error_code=0)
    topic = SimpleNamespace(name="t", topic_id=None, partitions=[partition])
    commits.kept.delete_offsets(SimpleNamespace(error_code=0, topics=[topic]), request)
    assert (commits.text(), commits.kept._groups) == ("", {})
