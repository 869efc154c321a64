"""Clients name topics by ids, which no other topic ever has (KIP-516)."""

from collections.abc import Callable
from typing import Any, Final
from uuid import UUID

from kafka.protocol.admin import CreateTopicsRequest, DeleteTopicsRequest
from kafka.protocol.consumer import FetchRequest, OffsetCommitRequest, OffsetFetchRequest
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.producer import ProduceRequest

from harrow.cluster_model import errors
from harrow.cluster_model.log.record_batch import RecordBatch
from harrow.live_cluster.wire.codec import UNKNOWN_TOPIC_ID
from harrow.live_cluster.wire.connection import BrokerConnection, ConnectionLostError
from harrow.live_cluster.wire.errors import error_name
from harrow.live_cluster.wire.stored_batches import encoded
from tests.live_cluster.serve.answers.test_served_versions import id_of, use

NO_TOPIC: Final = UUID(int=7)
_NO_EPOCH: Final = -1


def produced(connection: BrokerConnection, topic_id: UUID, value: str) -> str:
    topic = ProduceRequest.TopicProduceData
    records = encoded(RecordBatch((value,)), 0)
    answer = connection.ask(
        ProduceRequest[13](
            acks=-1,
            timeout_ms=1_000,
            topic_data=[
                topic(
                    topic_id=topic_id, partition_data=[topic.PartitionProduceData(index=0, records=records)]
                )
            ],
        )
    )
    [written] = answer.responses
    assert written.topic_id == topic_id
    return error_name(written.partition_responses[0].error_code)


def fetched(connection: BrokerConnection, topic_id: UUID, **fields: Any) -> Any:
    """Return the partition 0 of a topic as a fetch from its start returns it."""
    topic = FetchRequest.FetchTopic
    values = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1_000, "current_leader_epoch": -1}
    answer = connection.ask(
        FetchRequest[18](
            max_wait_ms=1,
            min_bytes=1,
            max_bytes=1_000,
            topics=[topic(topic_id=topic_id, partitions=[topic.FetchPartition(**{**values, **fields})])],
        )
    )
    [read] = answer.responses
    assert read.topic_id == topic_id
    return read.partitions[0]


def committed(connection: BrokerConnection, topic_id: UUID, *partitions: int) -> list[tuple[int, str]]:
    """Commit the offset 3 of partitions, and return the outcomes."""
    topic = OffsetCommitRequest.OffsetCommitRequestTopic
    parts = [
        topic.OffsetCommitRequestPartition(partition_index=each, committed_offset=3) for each in partitions
    ]
    answer = connection.ask(
        OffsetCommitRequest[10](
            group_id="g",
            generation_id_or_member_epoch=-1,
            member_id="",
            topics=[topic(topic_id=topic_id, partitions=parts)],
        )
    )
    assert {each.topic_id for each in answer.topics} == {topic_id}
    return sorted(
        (each.partition_index, error_name(each.error_code))
        for each in (partition for topic in answer.topics for partition in topic.partitions)
    )


def found(connection: BrokerConnection, topic_id: UUID) -> tuple[str, int]:
    """Return the error and the committed offset of partition 0."""
    group = OffsetFetchRequest.OffsetFetchRequestGroup
    topics = [group.OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=[0])]
    answer = connection.ask(OffsetFetchRequest[10](groups=[group(group_id="g", topics=topics)]))
    [topic] = answer.groups[0].topics
    assert topic.topic_id == topic_id
    return error_name(topic.partitions[0].error_code), topic.partitions[0].committed_offset


def with_topic_id(client: Callable[[BrokerConnection, UUID], None]) -> None:
    """Run a client with a connection to a served cluster and the id of the topic t."""

    def connect(connection: BrokerConnection) -> None:
        topic_id = id_of(connection, "t", "4.3")
        assert topic_id is not None
        client(connection, topic_id)

    use("4.3", connect)


def test_records_are_written_and_read_by_the_id_of_their_topic() -> None:
    def ask(connection: BrokerConnection, topic_id: UUID) -> None:
        assert produced(connection, topic_id, "a") == errors.NONE
        read = fetched(connection, topic_id)
        assert (error_name(read.error_code), read.high_watermark) == (errors.NONE, 1)
        assert bytes(read.records)
        assert committed(connection, topic_id, 0) == [(0, errors.NONE)]
        assert found(connection, topic_id) == (errors.NONE, 3)

    with_topic_id(ask)


def test_an_unknown_id_is_reported_as_such() -> None:
    def ask(connection: BrokerConnection, _: UUID) -> None:
        assert produced(connection, NO_TOPIC, "a") == UNKNOWN_TOPIC_ID
        assert error_name(fetched(connection, NO_TOPIC).error_code) == UNKNOWN_TOPIC_ID
        assert committed(connection, NO_TOPIC, 0) == [(0, UNKNOWN_TOPIC_ID)]
        assert found(connection, NO_TOPIC)[0] == UNKNOWN_TOPIC_ID

    with_topic_id(ask)


def test_offsets_of_a_partition_that_does_not_exist_are_not_committed() -> None:
    def ask(connection: BrokerConnection, topic_id: UUID) -> None:
        outcomes = committed(connection, topic_id, 0, 9)
        assert outcomes == [(0, errors.NONE), (9, errors.UNKNOWN_TOPIC_OR_PARTITION)]

    with_topic_id(ask)


def test_a_topic_that_is_created_again_has_another_id() -> None:
    def ask(connection: BrokerConnection, former: UUID) -> None:
        connection.ask(DeleteTopicsRequest[6](topics=[_named("t")], timeout_ms=1_000))
        topic = CreateTopicsRequest.CreatableTopic
        again = topic(name="t", num_partitions=1, replication_factor=1, assignments=[], configs=[])
        [created] = connection.ask(CreateTopicsRequest[7](topics=[again], timeout_ms=1_000)).topics
        assert error_name(created.error_code) == errors.NONE
        assert created.topic_id != former
        assert error_name(fetched(connection, former).error_code) == UNKNOWN_TOPIC_ID
        asked = [MetadataRequest.MetadataRequestTopic(name=None, topic_id=former)]
        [described] = connection.ask(MetadataRequest[12](topics=asked)).topics
        assert error_name(described.error_code) == UNKNOWN_TOPIC_ID

    with_topic_id(ask)


def _named(topic: str) -> Any:
    return DeleteTopicsRequest.DeleteTopicState(name=topic, topic_id=None)


def test_a_consumer_learns_where_its_log_diverges_from_the_leaders() -> None:
    def ask(connection: BrokerConnection, topic_id: UUID) -> None:
        assert produced(connection, topic_id, "a") == errors.NONE
        read = fetched(connection, topic_id, fetch_offset=2, last_fetched_epoch=0)
        assert (read.diverging_epoch.epoch, read.diverging_epoch.end_offset) == (0, 1)
        assert not bytes(read.records or b"")
        read = fetched(connection, topic_id, last_fetched_epoch=_NO_EPOCH)
        assert bytes(read.records)

    with_topic_id(ask)


def test_clients_do_not_fetch_as_brokers() -> None:
    def ask(connection: BrokerConnection) -> None:
        state = FetchRequest.ReplicaState(replica_id=0, replica_epoch=-1)
        request = FetchRequest[18](
            max_wait_ms=1, min_bytes=1, max_bytes=1_000, topics=[], replica_state=state
        )
        try:
            connection.ask(request)
        except ConnectionLostError:
            return
        raise AssertionError("the server has answered")

    use("4.3", ask)
