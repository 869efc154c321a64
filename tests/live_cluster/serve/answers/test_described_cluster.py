"""Unmodified clients describe a served cluster, and change the settings of its topics."""

import time
from typing import Any

import confluent_kafka.admin
import pytest
from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.cimpl import NewTopic

from harrow.checks.finding import HELD
from tests.live_cluster.serve.test_administration import admin, outcome, produce
from tests.live_cluster.serve.test_served_run import CALM, acked, run_python, run_with
from tests.patience import PATIENCE_S

ADMIN: Any = confluent_kafka.admin
BROKER, TOPIC = "broker", "topic"


def resource(kind: str, name: str, **changes: str) -> Any:
    entries = [
        ADMIN.ConfigEntry(key.replace("_", "."), value, incremental_operation=ADMIN.AlterConfigOpType.SET)
        for key, value in changes.items()
    ]
    return ADMIN.ConfigResource(kind, name, incremental_configs=entries)


def settings(client: Any, kind: str, name: str) -> dict[str, Any]:
    asked = resource(kind, name)
    described: dict[str, Any] = client.describe_configs([asked])[asked].result(PATIENCE_S)
    return described


def alter(client: Any, kind: str, name: str, **changes: str) -> str:
    asked = resource(kind, name, **changes)
    return outcome(client.incremental_alter_configs([asked]), asked)


def test_a_changed_setting_is_described_and_takes_effect() -> None:
    name = "message.timestamp.after.max.ms"

    def use(servers: str) -> None:
        client = admin(servers)
        late = int(time.time() * 1_000) + 600_000
        inherited = settings(client, TOPIC, "t")["min.insync.replicas"]
        assert (inherited.value, inherited.source) == (
            "2",
            ADMIN.ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG.value,
        )
        assert alter(client, TOPIC, "t", message_timestamp_after_max_ms="60000") == ""
        own = settings(client, TOPIC, "t")[name]
        assert (own.value, own.source) == ("60000", ADMIN.ConfigSource.DYNAMIC_TOPIC_CONFIG.value)
        assert settings(client, TOPIC, "t")["min.insync.replicas"].source == inherited.source
        producer = confluent_kafka.Producer({"bootstrap.servers": servers})
        errors: list[Any] = []
        producer.produce("t", b"late", timestamp=late, on_delivery=lambda error, _: errors.append(error))
        assert producer.flush(PATIENCE_S) == 0
        assert [error.name() for error in errors] == ["INVALID_TIMESTAMP"]
        produce(servers, "t", b"new")

    assert acked(run_with(CALM, use)) == 1


@pytest.mark.parametrize(
    ("kind", "name", "changes", "error"),
    [
        (TOPIC, "t", {"no_such_setting": "1"}, "INVALID_CONFIG"),
        (TOPIC, "t", {"min_insync_replicas": "0"}, "INVALID_CONFIG"),
        (TOPIC, "missing", {"min_insync_replicas": "1"}, "UNKNOWN_TOPIC_OR_PART"),
        (BROKER, "0", {"num_partitions": "1"}, "INVALID_REQUEST"),
    ],
)
def test_an_invalid_change_of_settings_is_refused(
    kind: str, name: str, changes: dict[str, str], error: str
) -> None:
    def use(servers: str) -> None:
        client = admin(servers)
        assert alter(client, kind, name, **changes) == error

    run_with(CALM, use)


def test_the_settings_of_a_topic_are_those_that_it_was_created_with() -> None:
    def use(servers: str) -> None:
        client = admin(servers)
        topic = NewTopic("compact", 1, 1, config={"cleanup.policy": "compact", "compression.type": "zstd"})
        assert outcome(client.create_topics([topic]), "compact") == ""
        described = settings(client, TOPIC, "compact")
        assert described["cleanup.policy"].value == "compact"
        assert described["compression.type"].value == "zstd"
        assert described["segment.bytes"].is_default

    run_with(CALM, use)


def test_the_settings_of_a_broker_and_the_lack_of_a_topic_are_described() -> None:
    def use(servers: str) -> None:
        client = admin(servers)
        broker = settings(client, BROKER, "1")
        assert broker["min.insync.replicas"].value == "2"
        assert broker["replica.lag.time.max.ms"].is_default
        with pytest.raises(KafkaException, match="UNKNOWN_TOPIC_OR_PART"):
            settings(client, TOPIC, "missing")

    run_with(CALM, use)


def test_the_cluster_and_its_topics_are_described() -> None:
    def use(servers: str) -> None:
        client = admin(servers)
        cluster = client.describe_cluster().result(PATIENCE_S)
        assert sorted(node.id for node in cluster.nodes) == [0, 1, 2]
        topics = client.describe_topics(TopicCollection(["t", "missing"]))
        described = topics["t"].result(PATIENCE_S)
        assert [sorted(node.id for node in each.isr) for each in described.partitions] == [[0, 1, 2]] * 2
        with pytest.raises(KafkaException, match="UNKNOWN_TOPIC_OR_PART"):
            topics["missing"].result(PATIENCE_S)

    run_with(CALM, use)


PAGES = """
import sys
from kafka.protocol.admin import DescribeTopicPartitionsRequest
from harrow.live_cluster.wire.connection import BrokerConnection

host, _, port = sys.argv[1].partition(",")[0].partition(":")
connection = BrokerConnection((host, int(port)))
kind, seen, cursor = DescribeTopicPartitionsRequest, [], None
while True:
    answer = connection.ask(kind[0](topics=[], response_partition_limit=3, cursor=cursor))
    seen += [(topic.name, each.partition_index) for topic in answer.topics for each in topic.partitions]
    assert sum(len(topic.partitions) for topic in answer.topics) <= 3
    if answer.next_cursor is None:
        break
    next_ = answer.next_cursor
    cursor = kind.Cursor(topic_name=next_.topic_name, partition_index=next_.partition_index)
assert len(seen) == len(set(seen)) == 102, len(seen)
"""


def test_many_partitions_are_described_page_by_page() -> None:
    run_with(CALM, lambda servers: run_python(PAGES, servers))


@pytest.mark.parametrize("release", ["2.4", "4.3"])
def test_promises_follow_the_settings_before_and_after_a_change(release: str) -> None:
    def use(servers: str) -> None:
        produce(servers, "t", b"before")
        assert alter(admin(servers), TOPIC, "t", min_insync_replicas="1") == ""
        produce(servers, "t", b"after")

    result = run_with(CALM.replace('"4.3"', f'"{release}"'), use)
    settings = result.evidence.partitions["t-0"]
    first, *_ = settings.earlier
    assert result.verdict.status == HELD
    assert (first[1].min_insync_replicas, settings.min_insync_replicas) == (2, 1)
