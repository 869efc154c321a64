"""A broker refuses single batches of a request, and appends the others."""

import socket
import struct
from typing import Final

import pytest
from kafka.protocol.consumer import SyncGroupRequest
from kafka.protocol.metadata import FindCoordinatorRequest, MetadataRequest
from kafka.protocol.producer import ProduceRequest

from harrow.checks.finding import HELD
from harrow.cluster_model.log.record_batch import RecordBatch
from harrow.live_cluster.wire.connection import BrokerConnection
from harrow.live_cluster.wire.errors import error_name
from harrow.live_cluster.wire.stored_batches import encoded
from tests.live_cluster.serve.test_served_run import run_with
from tests.patience import PATIENCE_S

CAMPAIGN: Final = """
name: batches
kafka: "4.3"
cluster: {brokers: 1, topics: [{name: t, partitions: 4}]}
workload: {producers: [{name: app}], duration: 60s}
"""
GOOD: Final = encoded(RecordBatch(("a",)), 0)
CORRUPT: Final = GOOD[:-1] + bytes([GOOD[-1] ^ 1])
LARGE: Final = encoded(RecordBatch(("a" * 1_048_589,)), 0)


def outcomes(connection: BrokerConnection, **topics: list[bytes]) -> dict[str, tuple[str, int]]:
    """Write a batch to each partition of topics, and return the errors and base offsets."""
    topic = ProduceRequest.TopicProduceData
    data = [
        topic(
            name=name,
            partition_data=[
                topic.PartitionProduceData(index=index, records=records)
                for index, records in enumerate(batches)
            ],
        )
        for name, batches in topics.items()
    ]
    answer = connection.ask(ProduceRequest[9](acks=-1, timeout_ms=1_000, topic_data=data))
    return {
        f"{each.name}-{partition.index}": (error_name(partition.error_code), partition.base_offset)
        for each in answer.responses
        for partition in each.partition_responses
    }


def produce(acks: int, index: int, records: bytes) -> bytes:
    """Return the frame of a request that writes a batch to a partition."""
    topic = ProduceRequest.TopicProduceData
    partition = topic.PartitionProduceData(index=index, records=records)
    request = ProduceRequest[9](
        acks=acks, timeout_ms=1_000, topic_data=[topic(name="t", partition_data=[partition])]
    )
    request.with_header(1, "app")
    frame: bytes = request.encode(header=True, framed=True)
    return frame


def test_only_the_refused_batches_of_a_request_are_not_appended() -> None:
    def use(servers: str) -> None:
        host, _, port = servers.partition(":")
        with BrokerConnection((host, int(port))) as connection:
            connection.ask(MetadataRequest[9](topics=None, allow_auto_topic_creation=False))
            batches = [GOOD, CORRUPT, LARGE, GOOD]
            assert outcomes(connection, t=batches, __consumer_offsets=[GOOD]) == {
                "t-0": ("NONE", 0),
                "t-1": ("CORRUPT_MESSAGE", -1),
                "t-2": ("MESSAGE_SIZE_TOO_LARGE", -1),
                "t-3": ("NONE", 0),
                "__consumer_offsets-0": ("INVALID_TOPIC", -1),
            }
            assert outcomes(connection, t=[CORRUPT]) == {"t-0": ("CORRUPT_MESSAGE", -1)}
            assert outcomes(connection, t=[GOOD]) == {"t-0": ("NONE", 1)}

    result = run_with(CAMPAIGN, use)
    assert result.verdict.status == HELD


@pytest.mark.parametrize("batch", [CORRUPT, GOOD], ids=["refused by the server", "refused by the broker"])
def test_a_refused_batch_with_acks_0_ends_the_connection(batch: bytes) -> None:
    """The producer gets no answer, so it learns of the error in no other way."""

    def use(servers: str) -> None:
        host, _, port = servers.partition(":")
        with BrokerConnection((host, int(port))) as connection:
            connection.ask(MetadataRequest[9](topics=None, allow_auto_topic_creation=False))
        with socket.create_connection((host, int(port)), PATIENCE_S) as client:
            client.sendall(produce(0, 0 if batch == CORRUPT else 77, batch))
            assert client.recv(1) == b""

    run_with(CAMPAIGN, use)


@pytest.mark.parametrize(
    ("index", "batch"), [(0, CORRUPT), (77, GOOD)], ids=["refused by the server", "refused by the broker"]
)
def test_a_client_gets_all_earlier_answers_before_a_refused_batch_ends_the_connection(
    index: int, batch: bytes
) -> None:
    def use(servers: str) -> None:
        host, _, port = servers.partition(":")
        with BrokerConnection((host, int(port))) as connection:
            connection.ask(MetadataRequest[9](topics=None, allow_auto_topic_creation=False))
        with socket.create_connection((host, int(port)), PATIENCE_S) as client:
            client.sendall(b"".join([produce(-1, 0, GOOD), produce(0, index, batch), produce(-1, 0, GOOD)]))
            with client.makefile("rb") as answers:
                (length,) = struct.unpack(">i", answers.read(4))
                assert len(answers.read()) == length

    run_with(CAMPAIGN, use)


def test_no_request_is_handled_after_a_refused_batch_that_ends_the_connection() -> None:
    finds = FindCoordinatorRequest[4](key_type=0, coordinator_keys=[f"g{number}" for number in range(500)])
    finds.with_header(1, "app")
    requests = [finds.encode(header=True, framed=True), produce(0, 0, CORRUPT), produce(-1, 0, GOOD)]

    def use(servers: str) -> None:
        host, _, port = servers.partition(":")
        with BrokerConnection((host, int(port))) as connection:
            connection.ask(MetadataRequest[9](topics=None, allow_auto_topic_creation=False))
            with socket.create_connection((host, int(port)), PATIENCE_S) as client:
                client.sendall(b"".join(requests))
                while client.recv(1 << 16):
                    pass
            assert outcomes(connection, t=[GOOD]) == {"t-0": ("NONE", 0)}

    run_with(CAMPAIGN, use)


def test_a_member_that_names_no_protocol_is_refused() -> None:
    """The names are mandatory since version 5 (KIP-559, ``KafkaApis.handleSyncGroupRequest``)."""
    fields = {"group_id": "g", "generation_id": 1, "member_id": "m", "assignments": []}

    def use(servers: str) -> None:
        host, _, port = servers.partition(":")
        with BrokerConnection((host, int(port))) as connection:
            answer = connection.ask(
                SyncGroupRequest[5](protocol_type="consumer", protocol_name=None, **fields)
            )
            assert error_name(answer.error_code) == "INCONSISTENT_GROUP_PROTOCOL"
            for request in (SyncGroupRequest[4](**fields), named):
                assert error_name(connection.ask(request).error_code) != "INCONSISTENT_GROUP_PROTOCOL"

    named = SyncGroupRequest[5](protocol_type="consumer", protocol_name="range", **fields)
    run_with(CAMPAIGN, use)
