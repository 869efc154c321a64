"""Unmodified clients use topics that no one has created."""

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.live_cluster.serve.test_administration import (
    admin,
    consume,
    judged_held,
    outcome,
    produce,
)
from tests.live_cluster.serve.test_served_run import CALM, run_with
from tests.patience import PATIENCE_S

OWN = "min.insync.replicas: 2"
WITH_NUMBERS = CALM.replace(OWN, f"{OWN}, num.partitions: 3, default.replication.factor: 2")


def sizes(client: AdminClient, topic: str) -> list[int]:
    """Return the number of replicas of each partition."""
    partitions = client.list_topics(timeout=PATIENCE_S).topics[topic].partitions
    return [len(partition.replicas) for partition in partitions.values()]


@pytest.mark.parametrize("release", ["2.4", "4.3"])
def test_a_producer_writes_to_a_topic_that_the_broker_creates(release: str) -> None:
    def use(servers: str) -> None:
        produce(servers, "n", *(b"%d" % number for number in range(30)))
        assert sizes(admin(servers), "n") == [2, 2, 2]
        assert sorted(consume(servers, "n", 30)) == sorted(b"%d" % number for number in range(30))

    result = judged_held(WITH_NUMBERS.replace('"4.3"', f'"{release}"'), use)
    assert {"n-0", "n-1", "n-2"} <= result.evidence.replicas.keys()


def test_a_deleted_topic_that_a_client_names_is_another_topic() -> None:
    def use(servers: str) -> None:
        produce(servers, "t", b"old")
        assert outcome(admin(servers).delete_topics(["t"]), "t") == ""
        produce(servers, "t", b"new")
        assert consume(servers, "t", 1) == [b"new"]

    judged_held(WITH_NUMBERS, use)


def test_brokers_create_no_topic_if_their_settings_forbid_it() -> None:
    def use(servers: str) -> None:
        producer = Producer({"bootstrap.servers": servers})
        assert producer.list_topics("n", PATIENCE_S).topics["n"].error is not None
        assert "n" not in admin(servers).list_topics(timeout=PATIENCE_S).topics

    run_with(CALM.replace(OWN, f"{OWN}, auto.create.topics.enable: false"), use)


def test_a_topic_without_numbers_has_those_of_the_brokers() -> None:
    def use(servers: str) -> None:
        client = admin(servers)
        assert outcome(client.create_topics([NewTopic("n", -1, -1)]), "n") == ""
        assert sizes(client, "n") == [2, 2, 2]

    run_with(WITH_NUMBERS, use)
