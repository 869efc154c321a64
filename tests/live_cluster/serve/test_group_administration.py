"""Unmodified clients list, describe and delete the groups of a served cluster."""

from typing import Any

import confluent_kafka.admin
from confluent_kafka import Consumer, ConsumerGroupState, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.cimpl import NewTopic

from tests.live_cluster.serve.test_administration import (
    admin,
    consume,
    judged_held,
    outcome,
    produce,
)
from tests.live_cluster.serve.test_served_run import CALM, run_python, run_with
from tests.patience import PATIENCE_S, act_until

GROUP = "reads-t"
ADMIN: Any = confluent_kafka.admin


def listed(client: Any) -> dict[str, Any]:
    result = client.list_consumer_groups().result(PATIENCE_S)
    assert result.errors == []
    return {group.group_id: group for group in result.valid}


def committed(client: Any) -> dict[int, int]:
    """Return the offsets of the group by the numbers of their partitions."""
    asked = ConsumerGroupTopicPartitions(GROUP)
    result = client.list_consumer_group_offsets([asked])[GROUP].result(PATIENCE_S)
    return {each.partition: each.offset for each in result.topic_partitions}


def test_a_group_is_listed_and_described_and_deleted_once_it_is_empty() -> None:
    def use(servers: str) -> None:
        client = admin(servers)
        assert listed(client) == {}
        produce(servers, "t", b"a", b"b")
        consumer = Consumer({"bootstrap.servers": servers, "group.id": GROUP, "client.id": "app"})
        consumer.subscribe(["t"])
        act_until(consumer.assignment, lambda: consumer.poll(0.1))
        described = client.describe_consumer_groups([GROUP])[GROUP].result(PATIENCE_S)
        (member,) = described.members
        assert (described.state, member.client_id) == (ConsumerGroupState.STABLE, "app")
        assert [each.topic for each in member.assignment.topic_partitions] == ["t", "t"]
        consumer.commit(offsets=[TopicPartition("t", 0, 0)], asynchronous=False)
        assert outcome(client.delete_consumer_groups([GROUP]), GROUP) == "NON_EMPTY_GROUP"
        consumer.close()
        assert listed(client)[GROUP].state == ConsumerGroupState.EMPTY
        assert committed(client) == {0: 0}
        assert outcome(client.delete_consumer_groups([GROUP]), GROUP) == ""
        assert outcome(client.delete_consumer_groups([GROUP]), GROUP) == "GROUP_ID_NOT_FOUND"
        assert listed(client) == {}
        assert committed(client) == {}

    judged_held(CALM, use)


def test_a_deleted_group_begins_again_and_may_commit_lower_offsets() -> None:
    def commit(servers: str, offset: int) -> None:
        consumer = Consumer({"bootstrap.servers": servers, "group.id": GROUP})
        consumer.commit(offsets=[TopicPartition("t", 0, offset)], asynchronous=False)
        consumer.close()

    def use(servers: str) -> None:
        client = admin(servers)
        produce(servers, "t", b"a")
        assert consume(servers, "t", 1) == [b"a"]
        commit(servers, 10)
        assert outcome(client.delete_consumer_groups([GROUP]), GROUP) == ""
        assert consume(servers, "t", 1) == [b"a"]
        commit(servers, 3)

    judged_held(CALM, use)


def test_a_deleted_topic_takes_the_offsets_of_groups_with_it() -> None:
    def use(servers: str) -> None:
        client = admin(servers)
        consumer = Consumer({"bootstrap.servers": servers, "group.id": GROUP})
        offsets = [TopicPartition("t", 0, 7), TopicPartition("t", 1, 7)]
        consumer.commit(offsets=offsets, asynchronous=False)
        assert outcome(client.delete_topics(["t"]), "t") == ""
        assert outcome(client.create_topics([NewTopic("t", 1, 3)]), "t") == ""
        produce(servers, "t", b"a")
        consumer.commit(offsets=[TopicPartition("t", 0, 3)], asynchronous=False)
        assert committed(client) == {0: 3}
        consumer.close()

    judged_held(CALM, use)


ALONE = CALM.replace("brokers: 3", "brokers: 1").replace("replication_factor: 3", "replication_factor: 1")
ALONE = ALONE.replace("{min.insync.replicas: 2}", "{}")


OFFSET_DELETE = """
import sys
from kafka.protocol.consumer import OffsetDeleteRequest
from kafka.protocol.metadata import FindCoordinatorRequest
from harrow.live_cluster.wire.connection import BrokerConnection
from harrow.live_cluster.wire.errors import error_name

def connect(address):
    host, _, port = address.partition(":")
    return BrokerConnection((host, int(port)))

found = connect(sys.argv[1].partition(",")[0]).ask(FindCoordinatorRequest[3](key="reads-t", key_type=0))
connection = connect(f"{found.host}:{found.port}")
topic = OffsetDeleteRequest.OffsetDeleteRequestTopic
partition = topic.OffsetDeleteRequestPartition

def delete(group, *topics):
    wanted = [topic(name=name, partitions=[partition(partition_index=0)]) for name in topics]
    answer = connection.ask(OffsetDeleteRequest[0](group_id=group, topics=wanted))
    outcome = {each.name: error_name(each.partitions[0].error_code) for each in answer.topics}
    return error_name(answer.error_code), outcome

assert delete("reads-t", "t", "missing") == (
    "NONE", {"t": sys.argv[2], "missing": "UNKNOWN_TOPIC_OR_PARTITION"}
)
"""


def test_offsets_are_deleted_unless_a_member_subscribes_to_the_topic() -> None:
    def use(servers: str) -> None:
        client = admin(servers)
        produce(servers, "t", b"a")
        consumer = Consumer({"bootstrap.servers": servers, "group.id": GROUP})
        consumer.subscribe(["t"])
        act_until(consumer.assignment, lambda: consumer.poll(0.1))
        offsets = [TopicPartition("t", 0, 0), TopicPartition("t", 1, 0)]
        consumer.commit(offsets=offsets, asynchronous=False)
        run_python(OFFSET_DELETE, servers, "GROUP_SUBSCRIBED_TO_TOPIC")
        consumer.close()
        run_python(OFFSET_DELETE, servers, "NONE")
        assert committed(client) == {1: 0}

    judged_held(CALM, use)


FETCH_OF_GROUPS = """
import sys
from kafka.protocol.consumer import OffsetFetchRequest
from harrow.live_cluster.wire.connection import BrokerConnection
from harrow.live_cluster.wire.errors import error_name

host, _, port = sys.argv[1].partition(":")
connection = BrokerConnection((host, int(port)))
group = OffsetFetchRequest.OffsetFetchRequestGroup
for names in ([], ["reads-t"], ["reads-t", "missing"], ["missing", "another", "reads-t"]):
    groups = [group(group_id=name, topics=None) for name in names]
    answer = connection.ask(OffsetFetchRequest[8](groups=groups, require_stable=False))
    offsets = {
        each.group_id: [
            (topic.name, partition.committed_offset)
            for topic in each.topics
            for partition in topic.partitions
        ]
        for each in answer.groups
    }
    assert [error_name(each.error_code) for each in answer.groups] == ["NONE"] * len(names)
    assert offsets == {name: [("t", 1)] if name == "reads-t" else [] for name in names}, offsets
"""


def test_a_request_may_fetch_the_offsets_of_any_number_of_groups() -> None:
    def use(servers: str) -> None:
        consumer = Consumer({"bootstrap.servers": servers, "group.id": GROUP})
        consumer.commit(offsets=[TopicPartition("t", 0, 1)], asynchronous=False)
        run_python(FETCH_OF_GROUPS, servers)
        consumer.close()

    run_with(ALONE, use)


DESCRIBE_CONSUMERS = """
import sys
import time
from kafka.protocol.metadata import FindCoordinatorRequest
from harrow.live_cluster.wire.connection import BrokerConnection
from harrow.live_cluster.wire.errors import error_name
from harrow.live_cluster.wire.schemas import CONSUMER_GROUP_DESCRIBE

def connect(address):
    host, _, port = address.partition(":")
    return BrokerConnection((host, int(port)))

first = connect(sys.argv[1].partition(",")[0])
found = first.ask(FindCoordinatorRequest[3](key="reads-t", key_type=0))
asked = CONSUMER_GROUP_DESCRIBE[1](group_ids=["reads-t", "missing"], include_authorized_operations=False)
connection = connect(f"{found.host}:{found.port}")
group, missing = connection.ask(asked).groups
while group.group_state != "Stable":
    time.sleep(0.05)
    group, missing = connection.ask(asked).groups
assert error_name(missing.error_code) in {"GROUP_ID_NOT_FOUND", "NOT_COORDINATOR"}
(member,) = group.members
assert (group.assignor_name, member.client_id) == ("uniform", "app")
assert list(member.subscribed_topic_names) == ["t"]
for assignment in (member.assignment, member.target_assignment):
    (topic,) = assignment.topic_partitions
    assert (topic.topic_name, sorted(topic.partitions)) == ("t", [0, 1])
    assert topic.topic_id.int
"""


def test_a_group_of_the_new_protocol_is_described_and_listed_with_its_type() -> None:
    def use(servers: str) -> None:
        client = admin(servers)
        produce(servers, "t", b"a")
        settings = {"group.id": GROUP, "client.id": "app", "group.protocol": "consumer"}
        consumer = Consumer({"bootstrap.servers": servers, "auto.offset.reset": "earliest", **settings})
        consumer.subscribe(["t"])
        act_until(lambda: len(consumer.assignment()) == 2, lambda: consumer.poll(0.1))
        run_python(DESCRIBE_CONSUMERS, servers)
        assert listed(client)[GROUP].type == confluent_kafka.ConsumerGroupType.CONSUMER
        consumer.close()

    judged_held(CALM, use)
