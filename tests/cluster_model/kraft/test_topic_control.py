"""The KRaft controller creates, extends, configures and deletes topics for administrators."""

from typing import Any

import pytest

from harrow.cluster_model import errors
from harrow.cluster_model.controller import administration
from harrow.cluster_model.controller.administration import (
    APPEND,
    DELETE,
    SET,
    SUBTRACT,
    CreateTopicsRequest,
    NewPartitions,
    NewTopic,
)
from harrow.cluster_model.controller.new_topics import RECORDS_MAX, ConfiguredTopics
from harrow.cluster_model.kraft.cluster_image import ClusterImage
from harrow.cluster_model.kraft.records import (
    BrokerRegistrationChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
)
from harrow.cluster_model.kraft.topic_control import TopicControl
from harrow.cluster_model.settings import broker_config
from harrow.cluster_model.topic_settings import ALL_BROKERS, brokers_resource, effective_config

FENCED = 3
CONFIG = broker_config("4.3", {"num.partitions": 4, "default.replication.factor": 2})


class Controller:
    """A controller with brokers 0 to 2 and the fenced broker 3, whose records are committed."""

    def __init__(self) -> None:
        self.image = ClusterImage()
        for broker in (0, 1, 2, FENCED):
            self.image.apply(RegisterBrokerRecord(broker, 0))
            epoch = self.image.brokers[broker].broker_epoch
            self.image.apply(
                BrokerRegistrationChangeRecord(
                    broker, epoch, fenced=broker == FENCED, in_controlled_shutdown=False
                )
            )
        topics = ConfiguredTopics("4.3", {"declared": {"retention.ms": 5}}, {})
        self.topics = TopicControl(lambda: self.image, topics, CONFIG, self.new_partition, has_elr=True)
        self.apply(self.topics.create_topics(CreateTopicsRequest((NewTopic("declared", 1, 3),))))

    def new_partition(self, name: str, replicas: tuple[int, ...]) -> PartitionRecord:
        isr = tuple(filter(self.image.is_active, replicas))
        return PartitionRecord(name, replicas, isr[0], 0, isr, 0)

    def apply(self, handled: tuple[Any, Any]) -> Any:
        records, answer = handled
        for record in records:
            self.image.apply(record)
        return answer

    def create(self, *topics: NewTopic, **options: Any) -> dict[str, str]:
        answer = self.apply(self.topics.create_topics(CreateTopicsRequest(topics, **options)))
        return {name: created.error for name, created in answer.topics.items()}

    def alter(self, topic: str, *changes: tuple[str, int, str | None], replaces: bool = False) -> str:
        request = administration.AlterTopicSettingsRequest({topic: changes}, replaces)
        return str(self.apply(self.topics.alter_settings(request)).topics[topic][0])


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        (NewTopic("t", 0, 1), errors.INVALID_PARTITIONS),
        (NewTopic("t", -2, 1), errors.INVALID_PARTITIONS),
        (NewTopic("t", RECORDS_MAX, 1), errors.POLICY_VIOLATION),
        (NewTopic("t", 1, 0), errors.INVALID_REPLICATION_FACTOR),
        (NewTopic("t", 1, 5), errors.INVALID_REPLICATION_FACTOR),
        (NewTopic("", 1, 1), errors.INVALID_TOPIC),
        (NewTopic("..", 1, 1), errors.INVALID_TOPIC),
        (NewTopic("x" * 250, 1, 1), errors.INVALID_TOPIC),
        (NewTopic("t~2", 1, 1), errors.NONE),
        (NewTopic("t", 1, 1, ((0, (0,)),)), errors.INVALID_REQUEST),
        (NewTopic("t", assignment=((1, (0,)),)), errors.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", assignment=((0, (0,)), (0, (1,)))), errors.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", assignment=((0, (0, 0)),)), errors.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", assignment=((0, ()),)), errors.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", assignment=((0, (0, 9)),)), errors.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", assignment=((0, (0, 1)), (1, (0,)))), errors.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", assignment=((0, (FENCED,)),)), errors.INVALID_REPLICA_ASSIGNMENT),
        (NewTopic("t", assignment=((0, (0, FENCED)),)), errors.NONE),
        (NewTopic("t", settings=(("retention.ms", None),)), errors.INVALID_CONFIG),
        (NewTopic("t", settings=(("retention.ms", "\u0661"),)), errors.INVALID_CONFIG),
        (NewTopic("t", settings=(("cleanup.policy", "keep"),)), errors.INVALID_CONFIG),
        (NewTopic("t", settings=(("compression.type", "zstd"),)), errors.NONE),
        (NewTopic("t", settings=(("compression.type", "foo"),)), errors.INVALID_CONFIG),
        (NewTopic("t", settings=(("max.message.bytes", "abc"),)), errors.INVALID_CONFIG),
        (NewTopic("t", settings=(("max.message.bytes", "5"),)), errors.NONE),
        (NewTopic("t", settings=(("compression.gzip.level", "0"),)), errors.INVALID_CONFIG),
    ],
)
def test_a_new_topic_is_created_or_refused_with_the_error_of_kafka(topic: NewTopic, error: str) -> None:
    controller = Controller()
    assert controller.create(topic) == {topic.name: error}
    assert (topic.name in controller.image.topics()) == (error == errors.NONE)


def test_a_topic_without_numbers_gets_those_of_the_controller() -> None:
    controller = Controller()
    assert controller.create(NewTopic("t")) == {"t": errors.NONE}
    replicas = [controller.image.partitions[f"t-{number}"].replicas for number in range(4)]
    assert (controller.image.topics()["t"], {*map(len, replicas)}) == (4, {2})


@pytest.mark.parametrize(
    "changes",
    [
        [("retention.ms", SET, "5"), ("retention.ms", SET, "6")],
        [("retention.ms", SET, "5"), ("retention.ms", DELETE, None)],
        [("retention.ms", SET, None)],
    ],
)
def test_changes_that_are_ambiguous_or_without_a_value_are_refused(changes: list[Any]) -> None:
    assert Controller().alter("declared", *changes) == errors.INVALID_REQUEST


def test_a_list_that_is_not_set_begins_with_the_default_of_kafka() -> None:
    controller, name = Controller(), "cleanup.policy"
    assert controller.alter("declared", (name, APPEND, "compact")) == errors.NONE
    assert controller.topics.settings("declared")[name] == "delete,compact"
    assert controller.alter("declared", (name, DELETE, None)) == errors.NONE
    assert controller.alter("declared", (name, SUBTRACT, "delete")) == errors.NONE
    assert controller.topics.settings("declared")[name] == ""


def test_a_list_may_be_empty_so_that_a_topic_keeps_all_its_records() -> None:
    controller = Controller()
    assert controller.alter("declared", ("cleanup.policy", SET, "")) == errors.NONE
    config = effective_config(controller.topics.settings("declared"), CONFIG)
    assert (config.retention_us, config.compacts) == (-1, False)


def test_a_name_that_the_metrics_of_another_topic_have_is_refused() -> None:
    controller = Controller()
    assert controller.create(NewTopic("a.b")) == {"a.b": errors.NONE}
    assert controller.create(NewTopic("a_b")) == {"a_b": errors.INVALID_TOPIC}


def test_the_name_of_a_deleted_topic_collides_with_no_other() -> None:
    controller = Controller()
    controller.create(NewTopic("a.b"))
    controller.apply(controller.topics.delete_topics(administration.DeleteTopicsRequest(("a.b",))))
    assert controller.create(NewTopic("a_b")) == {"a_b": errors.NONE}
    assert controller.create(NewTopic("a.b~2")) == {"a.b~2": errors.INVALID_TOPIC}


def test_a_request_with_too_many_records_creates_nothing() -> None:
    controller = Controller()
    half = RECORDS_MAX // 2
    first, second = NewTopic("first", half - 1, 1), NewTopic("second", half, 1)
    refusal = {"first": errors.POLICY_VIOLATION, "second": errors.POLICY_VIOLATION}
    assert controller.create(first, second) == refusal
    assert list(controller.image.topics()) == ["declared"]
    wanted = {"declared": NewPartitions(RECORDS_MAX + 2)}
    answer = controller.apply(
        controller.topics.create_partitions(administration.CreatePartitionsRequest(wanted))
    )
    assert answer.topics["declared"][0] == errors.POLICY_VIOLATION
    second = NewTopic("second", half - 1, 1)
    assert controller.create(first, second) == {"first": errors.NONE, "second": errors.NONE}


def test_a_topic_that_a_request_names_twice_is_not_created() -> None:
    assert Controller().create(NewTopic("t"), NewTopic("t"), NewTopic("u")) == {
        "t": errors.INVALID_REQUEST,
        "u": errors.NONE,
    }


def test_replicas_go_to_a_fenced_broker_only_if_there_are_too_few_others() -> None:
    controller = Controller()
    controller.create(NewTopic("few", 3, 3), NewTopic("many", 1, 4))
    partitions = controller.image.partitions
    assert all(FENCED not in partitions[f"few-{number}"].replicas for number in range(3))
    assert partitions["many-0"].replicas == (0, 1, 2, FENCED)


def test_a_request_that_only_validates_has_no_records() -> None:
    controller = Controller()
    before = controller.image.next_offset
    assert controller.create(NewTopic("t"), validate_only=True) == {"t": errors.NONE}
    assert controller.image.next_offset == before


@pytest.mark.parametrize(
    ("topic", "wanted", "error"),
    [
        ("declared", NewPartitions(2), errors.NONE),
        ("declared", NewPartitions(1), errors.INVALID_PARTITIONS),
        ("declared", NewPartitions(2, ((2, 1, 0),)), errors.NONE),
        ("declared", NewPartitions(3, ((2, 1, 0),)), errors.INVALID_REPLICA_ASSIGNMENT),
        ("declared", NewPartitions(2, ((2, 1),)), errors.INVALID_REPLICA_ASSIGNMENT),
        ("missing", NewPartitions(2), errors.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_a_topic_gets_partitions_with_as_many_replicas_as_its_first(
    topic: str, wanted: NewPartitions, error: str
) -> None:
    controller = Controller()
    request = administration.CreatePartitionsRequest({topic: wanted})
    answer = controller.apply(controller.topics.create_partitions(request))
    assert answer.topics[topic][0] == error
    added = controller.image.partitions.get("declared-1")
    assert (added is not None and len(added.replicas) == 3) == (error == errors.NONE)


def test_nothing_of_a_deleted_topic_remains_in_the_metadata_or_in_a_snapshot() -> None:
    controller = Controller()
    controller.alter("declared", ("retention.ms", SET, "7"))
    request = administration.DeleteTopicsRequest(("declared", "missing", "__consumer_offsets"))
    answer = controller.apply(controller.topics.delete_topics(request))
    assert [error for error, _ in answer.topics.values()] == [
        errors.NONE,
        errors.UNKNOWN_TOPIC_OR_PARTITION,
        errors.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    image = ClusterImage.of_snapshot(controller.image.write(), controller.image.next_offset)
    for each in (controller.image, image):
        assert (each.topics(), each.topic_settings) == ({}, {})
        assert not any(each.with_in_isr(broker) for broker in (0, 1, 2))
        assert each.removed_partitions("declared") == ("declared-0",)
    assert controller.create(NewTopic("declared")) == {"declared": errors.TOPIC_ALREADY_EXISTS}


def test_settings_of_a_topic_are_changed_one_by_one_or_replaced() -> None:
    controller = Controller()
    settings = controller.topics.settings
    assert controller.alter("declared", ("min.insync.replicas", SET, "2")) == errors.NONE
    assert settings("declared") == {"retention.ms": 5, "min.insync.replicas": 2}
    assert controller.alter("declared", ("retention.ms", DELETE, None)) == errors.NONE
    assert settings("declared") == {"min.insync.replicas": 2}
    assert controller.alter("declared", ("flush.messages", SET, "1"), replaces=True) == errors.NONE
    assert settings("declared") == {"flush.messages": 1}
    assert controller.alter("declared", ("flush.messages", SET, "0")) == errors.INVALID_CONFIG
    assert controller.alter("missing", ("flush.messages", SET, "1")) == errors.UNKNOWN_TOPIC_OR_PARTITION
    assert settings("declared") == {"flush.messages": 1}


def test_items_are_appended_to_a_list_and_removed_from_it() -> None:
    controller, name = Controller(), "leader.replication.throttled.replicas"
    assert controller.alter("declared", (name, APPEND, "0:1,0:2")) == errors.NONE
    assert controller.alter("declared", (name, SUBTRACT, "0:1")) == errors.NONE
    assert controller.topics.settings("declared")[name] == "0:2"
    assert controller.alter("declared", ("retention.ms", APPEND, "1")) == errors.INVALID_CONFIG


@pytest.mark.parametrize(
    ("changes", "replaces", "error"),
    [
        ((("log.retention.ms", SET, "5"),), False, errors.NONE),
        ((("log.retention.ms", SET, "5"),), True, errors.INVALID_CONFIG),
        ((), True, errors.INVALID_CONFIG),
        ((("min.insync.replicas", DELETE, None),), False, errors.INVALID_CONFIG),
        ((("min.insync.replicas", SET, "2"),), False, errors.NONE),
        ((("min.insync.replicas", SET, "2"),), True, errors.NONE),
    ],
)
def test_a_cluster_with_elrs_keeps_its_minimum_of_the_isr(
    changes: tuple[tuple[str, int, str | None], ...], replaces: bool, error: str
) -> None:
    assert Controller().alter(ALL_BROKERS, *changes, replaces=replaces) == error


def test_an_older_request_replaces_the_settings_of_a_single_broker_in_a_cluster_with_elrs() -> None:
    controller = Controller()
    assert (
        controller.alter(brokers_resource("1"), ("log.retention.ms", SET, "5"), replaces=True) == errors.NONE
    )
