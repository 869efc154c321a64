"""Clients elect leaders, move partitions, delete records, and describe transactions."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import confluent_kafka.admin
import pytest
from confluent_kafka import ElectionType, KafkaException, Producer, TopicPartition
from kafka.protocol.admin import (
    AlterPartitionReassignmentsRequest,
    DescribeProducersRequest,
    DescribeTransactionsRequest,
    ListTransactionsRequest,
)

from harrow.checks.finding import PERMITTED
from harrow.cluster_model.errors import NONE
from harrow.live_cluster.wire.administration import alter_reassignment, reassignments
from harrow.live_cluster.wire.connection import BrokerConnection
from harrow.live_cluster.wire.errors import error_name
from tests.live_cluster.serve.test_administration import admin, consume, judged_held, produce
from tests.live_cluster.serve.test_served_run import CALM, run_with
from tests.patience import PATIENCE_S

ADMIN: Any = confluent_kafka.admin
TWO_REPLICAS = CALM.replace("replication_factor: 3", "replication_factor: 2").replace(
    "min.insync.replicas: 2", "min.insync.replicas: 1"
)


@contextmanager
def connections(servers: str) -> Iterator[list[BrokerConnection]]:
    addresses = [server.partition(":") for server in servers.split(",")]
    opened = [BrokerConnection((host, int(port))) for host, _, port in addresses]
    yield opened
    for connection in opened:
        connection.close()


def partition(client: Any, number: int) -> Any:
    return client.list_topics(timeout=PATIENCE_S).topics["t"].partitions[number]


def test_a_client_may_forbid_that_the_number_of_replicas_changes() -> None:
    """Version 1 of the request has this option (KIP-860)."""

    def use(servers: str) -> None:
        topic = AlterPartitionReassignmentsRequest.ReassignableTopic
        for replicas, error in (([0, 1], "INVALID_REPLICATION_FACTOR"), ([2, 1, 0], NONE)):
            part = topic.ReassignablePartition(partition_index=0, replicas=replicas)
            request = AlterPartitionReassignmentsRequest[1](
                timeout_ms=1_000,
                allow_replication_factor_change=False,
                topics=[topic(name="t", partitions=[part])],
            )
            with connections(servers) as (connection, *_):
                answer = connection.ask(request)
            assert error_name(answer.responses[0].partitions[0].error_code) == error
            assert answer.allow_replication_factor_change is False

    run_with(CALM, use)


def test_a_client_moves_a_partition_to_other_brokers() -> None:
    def use(servers: str) -> None:
        client = admin(servers)
        produce(servers, "t", *(b"%d" % number for number in range(10)))
        before = set(partition(client, 0).replicas)
        (added,) = {0, 1, 2} - before
        target = (added, min(before))
        with connections(servers) as (connection, *_):
            assert alter_reassignment(connection, "t-0", target) == NONE
            assert alter_reassignment(connection, "t-9", target) == "UNKNOWN_TOPIC_OR_PARTITION"
            assert alter_reassignment(connection, "t-1", (7,)) == "INVALID_REPLICA_ASSIGNMENT"
            while reassignments(connection):
                time.sleep(0.05)
            assert alter_reassignment(connection, "t-0", None) == "NO_REASSIGNMENT_IN_PROGRESS"
        while set(partition(client, 0).replicas) != set(target):
            time.sleep(0.05)
        assert sorted(consume(servers, "t", 10)) == sorted(b"%d" % number for number in range(10))

    judged_held(TWO_REPLICAS, use)


def test_a_client_returns_leadership_to_the_preferred_replica() -> None:
    def use(servers: str) -> None:
        client = admin(servers)
        wanted = [TopicPartition("t", 0), TopicPartition("missing", 0)]
        outcome = client.elect_leaders(ElectionType.PREFERRED, wanted).result(PATIENCE_S)
        assert {each.topic: error and error.name() for each, error in outcome.items()} == {
            "t": "ELECTION_NOT_NEEDED",
            "missing": "UNKNOWN_TOPIC_OR_PART",
        }

    run_with(CALM, use)


def test_a_client_deletes_records() -> None:
    def use(servers: str) -> None:
        client = admin(servers)
        producer = Producer({"bootstrap.servers": servers})
        for number in range(5):
            producer.produce("t", b"%d" % number, partition=0)
            assert producer.flush(PATIENCE_S) == 0
        first = TopicPartition("t", 0, 3)
        deleted = client.delete_records([first])[first].result(PATIENCE_S)
        assert deleted.low_watermark == 3
        beyond = TopicPartition("t", 0, 9)
        with pytest.raises(KafkaException, match="OFFSET_OUT_OF_RANGE"):
            client.delete_records([beyond])[beyond].result(PATIENCE_S)
        assert consume(servers, "t", 2) == [b"3", b"4"]

    result = run_with(CALM, use)
    assert (result.verdict.status, result.verdict.reasons) == (PERMITTED, ())


def test_a_client_sees_producers_and_transactions() -> None:
    def use(servers: str) -> None:
        producer = Producer({"bootstrap.servers": servers, "transactional.id": "pay"})
        producer.init_transactions(PATIENCE_S)
        producer.begin_transaction()
        producer.produce("t", b"v", partition=0)
        assert producer.flush(PATIENCE_S) == 0
        with connections(servers) as brokers:
            described = [each.ask(describe_transaction("pay")).transaction_states[0] for each in brokers]
            (transaction,) = [each for each in described if not each.error_code]
            assert transaction.transaction_state == "Ongoing"
            assert [(each.topic, list(each.partitions)) for each in transaction.topics] == [("t", [0])]
            listed = [state for each in brokers for state in each.ask(list_ongoing()).transaction_states]
            assert [each.transactional_id for each in listed] == ["pay"]
            topic = DescribeProducersRequest.TopicRequest(name="t", partition_indexes=[0])
            answers = [each.ask(DescribeProducersRequest[0](topics=[topic])) for each in brokers]
            partitions = [answer.topics[0].partitions[0] for answer in answers]
            assert sorted(error_name(each.error_code) for each in partitions) == [
                "NONE",
                "NOT_LEADER_FOR_PARTITION",
                "NOT_LEADER_FOR_PARTITION",
            ]
            (state,) = [each for partition in partitions for each in partition.active_producers]
            assert (state.producer_id, state.current_txn_start_offset) == (transaction.producer_id, 0)
            producer.commit_transaction(PATIENCE_S)
            assert [each.ask(list_ongoing()).transaction_states for each in brokers] == [[], [], []]

    judged_held(CALM, use)


def describe_transaction(name: str) -> Any:
    return DescribeTransactionsRequest[0](transactional_ids=[name])


def list_ongoing() -> Any:
    return ListTransactionsRequest[0](state_filters=["Ongoing"], producer_id_filters=[])
