"""Clients learn who leads the quorum of controllers."""

from typing import Any

import pytest
from kafka.protocol.admin import DescribeQuorumRequest

from harrow.live_cluster.wire.connection import BrokerConnection
from harrow.live_cluster.wire.errors import error_code
from tests.live_cluster.serve.test_administration_on_zookeeper import ON_ZOOKEEPER
from tests.live_cluster.serve.test_partition_administration import connections
from tests.live_cluster.serve.test_served_run import CALM, run_with


def ask(connection: BrokerConnection, version: int, topic: str = "__cluster_metadata") -> Any:
    data = DescribeQuorumRequest.TopicData
    partitions = [data.PartitionData(partition_index=0)]
    return connection.ask(
        DescribeQuorumRequest[version](topics=[data(topic_name=topic, partitions=partitions)])
    )


@pytest.mark.parametrize("version", [0, 1, 2])
def test_every_broker_describes_the_leader_the_voters_and_the_observers(version: int) -> None:
    def use(servers: str) -> None:
        with connections(servers) as brokers:
            for broker in brokers:
                answer = ask(broker, version)
                [quorum] = answer.topics[0].partitions
                assert (answer.error_code, quorum.error_code) == (0, 0)
                voters = [voter.replica_id for voter in quorum.current_voters]
                assert (len(voters), quorum.leader_id in voters) == (3, True)
                assert [each.replica_id for each in quorum.observers] == [0, 1, 2]
                ends = {each.replica_id: each.log_end_offset for each in quorum.current_voters}
                assert 0 < quorum.high_watermark <= ends[quorum.leader_id]
                assert version < 2 or [node.node_id for node in answer.nodes] == voters
                if version > 0:
                    fetched = {each.replica_id: each.last_fetch_timestamp for each in quorum.current_voters}
                    assert max(fetched.values()) == fetched[quorum.leader_id] > 1_700_000_000_000

    run_with(CALM, use)


def test_no_other_topic_has_a_quorum() -> None:
    def use(servers: str) -> None:
        with connections(servers) as brokers:
            [partition] = ask(brokers[0], 1, "t").topics[0].partitions
            assert partition.error_code == error_code("UNKNOWN_TOPIC_OR_PARTITION")

    run_with(CALM, use)


def test_a_cluster_with_zookeeper_has_no_quorum_to_describe() -> None:
    def use(servers: str) -> None:
        with connections(servers) as brokers:
            assert not brokers[0].speaks(DescribeQuorumRequest, 0)

    run_with(ON_ZOOKEEPER.replace('"2.8"', '"3.6"'), use)
