"""Unmodified clients administer a served cluster: they create, extend and delete topics."""

from collections.abc import Callable
from typing import Any

import confluent_kafka.admin
import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from harrow.checks.finding import HELD
from tests.live_cluster.serve.test_served_run import CALM, run_python, run_with
from tests.patience import PATIENCE_S


def admin(servers: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": servers})


def outcome(futures: dict[str, Any], name: str) -> str:
    """Return the name of the error with which a request ended, or an empty text."""
    try:
        futures[name].result(PATIENCE_S)
    except KafkaException as error:
        return str(error.args[0].name())
    return ""


def produce(servers: str, topic: str, *values: bytes) -> None:
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(PATIENCE_S) == 0


def consume(servers: str, topic: str, count: int) -> list[bytes]:
    settings = {"group.id": f"reads-{topic}", "auto.offset.reset": "earliest"}
    consumer = Consumer({"bootstrap.servers": servers, **settings})
    consumer.subscribe([topic])
    values: list[bytes] = []
    while len(values) < count:
        message = consumer.poll(PATIENCE_S)
        assert message is not None
        assert message.error() is None
        values.append(message.value() or b"")
    consumer.close()
    return values


def judged_held(text: str, client: Callable[[str], None]) -> Any:
    result = run_with(text, client)
    assert (result.verdict.status, result.verdict.reasons) == (HELD, ())
    return result


def test_a_created_topic_takes_and_returns_records() -> None:
    def use(servers: str) -> None:
        client = admin(servers)
        assert outcome(client.create_topics([NewTopic("new", 3, 3)]), "new") == ""
        produce(servers, "new", *(b"%d" % number for number in range(30)))
        assert sorted(consume(servers, "new", 30)) == sorted(b"%d" % number for number in range(30))

    result = judged_held(CALM, use)
    assert {name for name in result.evidence.replicas if name.startswith("new-")} == {
        "new-0",
        "new-1",
        "new-2",
    }


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        (NewTopic("t", 1, 1), "TOPIC_ALREADY_EXISTS"),
        (NewTopic("a b", 1, 1), "TOPIC_EXCEPTION"),
        (NewTopic("n", 0, 1), "INVALID_PARTITIONS"),
        (NewTopic("n", 1, 4), "INVALID_REPLICATION_FACTOR"),
        (NewTopic("n", 1, 1, config={"no.such.setting": "1"}), "INVALID_CONFIG"),
        (NewTopic("n", 1, 1, config={"min.insync.replicas": "none"}), "INVALID_CONFIG"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_an_invalid_topic_is_refused_with_the_error_of_kafka(topic: NewTopic, error: str) -> None:
    def use(servers: str) -> None:
        client = admin(servers)
        assert outcome(client.create_topics([topic]), topic.topic) == error

    run_with(CALM, use)


def test_a_request_that_only_validates_creates_nothing() -> None:
    def use(servers: str) -> None:
        client = admin(servers)
        assert outcome(client.create_topics([NewTopic("n", 1, 1)], validate_only=True), "n") == ""
        assert outcome(client.create_topics([NewTopic("n", 1, 1)]), "n") == ""
        assert outcome(client.create_topics([NewTopic("n", 1, 1)]), "n") == "TOPIC_ALREADY_EXISTS"

    run_with(CALM, use)


def test_a_topic_gets_more_partitions_but_not_fewer() -> None:
    def use(servers: str) -> None:
        client = admin(servers)
        assert outcome(client.create_partitions([NewPartitions("t", 4)]), "t") == ""
        assert outcome(client.create_partitions([NewPartitions("t", 3)]), "t") == "INVALID_PARTITIONS"
        assert outcome(client.create_partitions([NewPartitions("no", 3)]), "no") == "UNKNOWN_TOPIC_OR_PART"
        partitions = client.list_topics(timeout=PATIENCE_S).topics["t"].partitions
        assert [len(partitions[number].replicas) for number in range(4)] == [3] * 4

    run_with(CALM, use)


def test_a_topic_that_is_created_again_has_none_of_the_old_records() -> None:
    def use(servers: str) -> None:
        client = admin(servers)
        produce(servers, "t", b"old")
        assert outcome(client.delete_topics(["t"]), "t") == ""
        assert outcome(client.delete_topics(["t"]), "t") == "UNKNOWN_TOPIC_OR_PART"
        assert outcome(client.create_topics([NewTopic("t", 1, 3)]), "t") == ""
        produce(servers, "t", b"new")
        assert consume(servers, "t", 1) == [b"new"]

    result = judged_held(CALM, use)
    assert sorted(result.evidence.replicas) == ["t~2-0"]


DUPLICATES = """
import sys
from kafka.protocol.admin import (
    AlterConfigsRequest, CreatePartitionsRequest, CreateTopicsRequest, DeleteTopicsRequest, DescribeConfigsRequest
)
from kafka.protocol.metadata import MetadataRequest
from harrow.live_cluster.wire.connection import BrokerConnection
from harrow.live_cluster.wire.errors import error_name

host, _, port = sys.argv[1].partition(",")[0].partition(":")
connection = BrokerConnection((host, int(port)))

def errors(answers, name="name"):
    return [(getattr(each, name), error_name(each.error_code)) for each in answers]

topic = DeleteTopicsRequest.DeleteTopicState
(t,) = connection.ask(MetadataRequest[10](topics=[MetadataRequest.MetadataRequestTopic(name="t")])).topics
for topics in (
    [topic(name="t"), topic(name="t")],
    [topic(name="t"), topic(name=None, topic_id=t.topic_id)],
    [topic(name=None, topic_id=t.topic_id)] * 2,
):
    answer = connection.ask(DeleteTopicsRequest[6](topics=topics, timeout_ms=1_000))
    assert errors(answer.responses) == [("t", "INVALID_REQUEST")]
for name, topic_id in ((None, None), ("t", t.topic_id)):
    answer = connection.ask(DeleteTopicsRequest[6](topics=[topic(name=name, topic_id=topic_id)], timeout_ms=1_000))
    assert errors(answer.responses) == [(name, "INVALID_REQUEST")]
answer = connection.ask(DeleteTopicsRequest[3](topic_names=["t", "t", "no"], timeout_ms=1_000))
assert errors(answer.responses) == [("no", "UNKNOWN_TOPIC_OR_PARTITION"), ("t", "INVALID_REQUEST")]

topic = CreatePartitionsRequest.CreatePartitionsTopic
topics = [topic(name="t", count=count, assignments=None) for count in (3, 4)]
answer = connection.ask(CreatePartitionsRequest[2](topics=topics, timeout_ms=1_000, validate_only=False))
assert errors(answer.results) == [("t", "INVALID_REQUEST")]

resource = AlterConfigsRequest.AlterConfigsResource
resources = [resource(resource_type=2, resource_name="t", configs=[])] * 2
answer = connection.ask(AlterConfigsRequest[1](resources=resources, validate_only=False))
assert errors(answer.responses, "resource_name") == [("t", "INVALID_REQUEST")] * 2

topic = CreateTopicsRequest.CreatableTopic
new = topic(name="n", num_partitions=1, replication_factor=1, assignments=[], configs=[])
answer = connection.ask(CreateTopicsRequest[7](topics=[new], timeout_ms=1_000, validate_only=True))
assert errors(answer.topics) == [("n", "NONE")]
assert not answer.topics[0].topic_id or not answer.topics[0].topic_id.int

resource = DescribeConfigsRequest.DescribeConfigsResource
few, = [resource(resource_type=2, resource_name="t", configuration_keys=[])]
request = DescribeConfigsRequest[1](resources=[few], include_synonyms=False)
(answer,) = connection.ask(request).results
assert "retention.ms" in [each.name for each in answer.configs]
"""


def test_requests_of_an_administrator_have_the_answers_of_kafka() -> None:
    """A topic that occurs twice is refused, a validated one has no id, and no keys mean all."""

    def use(servers: str) -> None:
        client = admin(servers)
        run_python(DUPLICATES, servers)
        assert sorted(client.list_topics(timeout=PATIENCE_S).topics["t"].partitions) == [0, 1]

    run_with(CALM, use)


def altered(client: AdminClient, topic: str, **settings: str) -> None:
    """Set settings of a topic, whose names have underscores here for dots."""
    kinds: Any = confluent_kafka.admin
    resource = kinds.ConfigResource(kinds.ResourceType.TOPIC, topic)
    for name, value in settings.items():
        entry = kinds.ConfigEntry(
            name.replace("_", "."), value, incremental_operation=kinds.AlterConfigOpType.SET
        )
        resource.add_incremental_config(entry)
    client.incremental_alter_configs([resource])[resource].result(PATIENCE_S)


def test_a_record_is_judged_by_the_settings_from_before_they_became_stricter() -> None:
    def use(servers: str) -> None:
        client = admin(servers)
        alone = NewTopic("n", 1, 1, config={"min.insync.replicas": "1"})
        assert outcome(client.create_topics([alone]), "n") == ""
        produce(servers, "n", b"a")
        altered(client, "n", min_insync_replicas="2")

    # Since 3.7 the setting is limited to the number of replicas.
    judged_held(CALM.replace('"4.3"', '"3.6"'), use)


def test_a_transaction_may_lose_a_topic_that_is_deleted_while_it_is_open() -> None:
    def use(servers: str) -> None:
        client = admin(servers)
        assert outcome(client.create_topics([NewTopic("z", 1, 3)]), "z") == ""
        producer = Producer({"bootstrap.servers": servers, "transactional.id": "pay"})
        producer.init_transactions(PATIENCE_S)
        producer.begin_transaction()
        producer.produce("t", b"a")
        producer.produce("z", b"b")
        assert producer.flush(PATIENCE_S) == 0
        assert outcome(client.delete_topics(["z"]), "z") == ""
        producer.commit_transaction(PATIENCE_S)

    judged_held(CALM, use)


OFFSETS = """
import sys
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

servers, kind = sys.argv[1], sys.argv[2]
with KafkaProducer(bootstrap_servers=servers, compression_type=None if kind == "plain" else kind) as producer:
    for place, timestamp in enumerate((5_000, 7_000, 6_000, 9_000, 9_000)):
        producer.send("t", b"%d" % place, partition=0, timestamp_ms=timestamp)
    producer.flush(PATIENCE_S)
consumer = KafkaConsumer(bootstrap_servers=servers)
partition = TopicPartition("t", 0)
found = {}
for time in (0, 5_001, 7_001, 9_001):
    offset = consumer.offsets_for_times({partition: time})[partition]
    found[time] = offset and (offset.offset, offset.timestamp)
assert found == {0: (0, 5_000), 5_001: (1, 7_000), 7_001: (3, 9_000), 9_001: None}, found
assert consumer.beginning_offsets([partition]) == {partition: 0}
assert consumer.end_offsets([partition]) == {partition: 5}
""".replace("PATIENCE_S", str(PATIENCE_S))


@pytest.mark.parametrize("compression", ["plain", "gzip"])
def test_a_client_finds_the_first_record_since_a_time(compression: str) -> None:
    run_with(CALM, lambda servers: run_python(OFFSETS, servers, compression))


def test_a_client_finds_the_record_with_the_largest_timestamp() -> None:
    def use(servers: str) -> None:
        producer = Producer({"bootstrap.servers": servers})
        for timestamp in (5_000, 9_000, 7_000):
            producer.produce("t", b"v", partition=0, timestamp=timestamp)
        assert producer.flush(PATIENCE_S) == 0
        client = admin(servers)
        partition = TopicPartition("t", 0)
        specs: Any = confluent_kafka.admin
        asked = {partition: specs.OffsetSpec.max_timestamp()}
        found = client.list_offsets(asked)[partition].result(PATIENCE_S)
        assert (found.offset, found.timestamp) == (1, 9_000)

    run_with(CALM, use)
