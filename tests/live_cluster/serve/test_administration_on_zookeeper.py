"""Unmodified clients administer a served cluster whose controller keeps metadata in ZooKeeper."""

import time

from confluent_kafka.cimpl import NewPartitions, NewTopic

from harrow.cluster_model.errors import NONE
from harrow.live_cluster.wire.administration import alter_reassignment, reassignments
from tests.live_cluster.serve.answers.test_described_cluster import TOPIC, alter, settings
from tests.live_cluster.serve.test_administration import admin, consume, judged_held, outcome, produce
from tests.live_cluster.serve.test_partition_administration import connections, partition
from tests.live_cluster.serve.test_served_run import CALM

ON_ZOOKEEPER = CALM.replace('"4.3"', '"2.8"').replace("cluster: {", "cluster: {metadata: zookeeper, ")


def test_a_topic_is_created_extended_deleted_and_created_again() -> None:
    def use(servers: str) -> None:
        client = admin(servers)
        topic = NewTopic("new", 2, 3, config={"min.insync.replicas": "1"})
        assert outcome(client.create_topics([topic]), "new") == ""
        assert outcome(client.create_topics([topic]), "new") == "TOPIC_ALREADY_EXISTS"
        assert settings(client, TOPIC, "new")["min.insync.replicas"].value == "1"
        assert alter(client, TOPIC, "new", min_insync_replicas="2") == ""
        assert settings(client, TOPIC, "new")["min.insync.replicas"].value == "2"
        assert alter(client, TOPIC, "new", min_insync_replicas="x") == "INVALID_CONFIG"
        assert outcome(client.create_partitions([NewPartitions("new", 3)]), "new") == ""
        assert outcome(client.create_partitions([NewPartitions("new", 3)]), "new") == "INVALID_PARTITIONS"
        produce(servers, "new", b"old")
        assert consume(servers, "new", 1) == [b"old"]
        assert outcome(client.delete_topics(["new"]), "new") == ""
        assert outcome(client.delete_topics(["new"]), "new") == "UNKNOWN_TOPIC_OR_PART"
        assert outcome(client.create_topics([topic]), "new") == ""
        produce(servers, "new", b"new")

    result = judged_held(ON_ZOOKEEPER, use)
    assert sorted(result.evidence.replicas) == ["new~2-0", "new~2-1", "t-0", "t-1"]


def test_only_the_controller_changes_topics_and_partitions() -> None:
    def use(servers: str) -> None:
        client = admin(servers)
        produce(servers, "t", b"a", b"b")
        controller = client.list_topics().controller_id
        with connections(servers) as brokers:
            refused = [each for each in brokers if each is not brokers[controller]]
            outcomes = [alter_reassignment(each, "t-0", (0, 1)) for each in refused]
            assert outcomes == ["NOT_CONTROLLER"] * 2
            assert alter_reassignment(brokers[controller], "t-0", (1, 2)) == NONE
            while reassignments(brokers[controller]):
                time.sleep(0.05)
        while set(partition(client, 0).replicas) != {1, 2}:
            time.sleep(0.05)
        assert sorted(consume(servers, "t", 2)) == [b"a", b"b"]

    judged_held(ON_ZOOKEEPER, use)
