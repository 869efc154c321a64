"""The clients on confluent-kafka without a broker; fakes replace parts that need one."""

from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, Consumer, KafkaError, KafkaException, TopicPartition

from harrow.live_cluster.clients import confluent_clients
from harrow.live_cluster.clients.client_library import MembershipError
from harrow.live_cluster.clients.confluent_clients import ConfluentMember, ConfluentProducer

NO_BROKER = "127.0.0.1:1"


class Message:
    """A record or an error of librdkafka in its place."""

    def __init__(self, offset: int, value: bytes = b"", error: Any = None) -> None:
        self._offset = offset
        self._value = value
        self._error = error

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset

    def value(self) -> bytes:
        return self._value

    def error(self) -> Any:
        return self._error


class FakeConsumer:
    """A consumer of confluent-kafka that a test controls."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.messages: list[Message] = []
        self.sought: list[tuple[str, int, int]] = []
        self.assigned: list[tuple[str, list[tuple[str, int, int]]]] = []
        self.committed_offsets: list[int | None] = []
        self.refusals = 0

    def subscribe(self, topics: list[str], **callbacks: Any) -> None:
        self.callbacks = callbacks

    def consume(self, _: int, __: float) -> list[Message]:
        messages, self.messages = self.messages, []
        return messages

    def committed(self, places: list[TopicPartition], _: float) -> list[TopicPartition]:
        offset = self.committed_offsets.pop(0)
        if offset is None:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        return [TopicPartition(place.topic, place.partition, offset) for place in places]

    def seek(self, place: TopicPartition) -> None:
        if self.refusals:
            self.refusals -= 1
            raise KafkaException(KafkaError(KafkaError._STATE))
        self.sought.append((place.topic, place.partition, place.offset))

    def assign(self, places: list[TopicPartition], how: str = "assign") -> None:
        self.assigned.append((how, [(p.topic, p.partition, p.offset) for p in places]))

    def incremental_assign(self, places: list[TopicPartition]) -> None:
        self.assign(places, "incremental")

    def consumer_group_metadata(self) -> bytes:
        return b""


@pytest.fixture
def consumers(monkeypatch: pytest.MonkeyPatch) -> list[FakeConsumer]:
    consumers: list[FakeConsumer] = []

    def make(settings: dict[str, Any]) -> FakeConsumer:
        consumers.append(FakeConsumer(settings))
        return consumers[-1]

    monkeypatch.setattr(confluent_clients, "Consumer", make)
    return consumers


def member(**settings: Any) -> ConfluentMember:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    return ConfluentMember({"group.id": "g", "auto.offset.reset": "earliest", **named})


def test_group_metadata_without_membership_matches_librdkafka() -> None:
    settings = {"bootstrap.servers": NO_BROKER, "group.id": "billing", "log_level": 0}
    fresh = Consumer(settings)
    metadata = bytes(fresh.consumer_group_metadata())
    fresh.close()
    consumer = ConfluentMember(settings)
    assert consumer.group_metadata(as_member=False) == metadata
    assert bytes(consumer.group_metadata(as_member=True)) == metadata
    consumer.close()


def test_end_of_partition_is_reached(consumers: list[FakeConsumer]) -> None:
    consumer = member()
    consumers[0].messages = [Message(3, b"a"), Message(4, b"b")]
    assert consumer.poll(5, 0.1) == {"t-0": [(3, "a"), (4, "b")]}
    assert consumer.read_end() == {"t-0": 5}
    # The marker of its transaction follows the last record.
    consumers[0].messages = [Message(6, error=KafkaError(KafkaError._PARTITION_EOF))]
    assert consumer.poll(5, 0.1) == {}
    assert consumer.read_end() == {"t-0": 6}
    assert consumers[0].settings["enable.partition.eof"] is True


@pytest.mark.parametrize(("callback", "lost"), [("on_revoke", False), ("on_lost", True)])
def test_reached_forgets_revoked_partitions(consumers: list[FakeConsumer], callback: str, lost: bool) -> None:
    consumer, revocations = member(), []
    consumer.subscribe(["t"], lambda *_: {}, lambda *event: revocations.append(event))
    consumers[0].messages = [Message(3, b"a")]
    consumer.poll(5, 0.1)
    consumers[0].callbacks[callback](None, [TopicPartition("t", 0)])
    assert (revocations, consumer.read_end()) == ([(["t-0"], lost)], {})


def test_fatal_error_ends_membership(consumers: list[FakeConsumer]) -> None:
    consumer = member()
    fatal = KafkaError(KafkaError.FENCED_INSTANCE_ID, "fenced", True)
    consumers[0].messages = [Message(-1, error=KafkaError(KafkaError._MAX_POLL_EXCEEDED))]
    assert consumer.poll(5, 0.1) == {}
    consumers[0].messages = [Message(-1, error=fatal)]
    with pytest.raises(MembershipError, match="FENCED_INSTANCE_ID"):
        consumer.poll(5, 0.1)


@pytest.mark.parametrize(
    ("reset", "offset", "sought"),
    [("earliest", 4, 4), ("earliest", -1001, OFFSET_BEGINNING), ("latest", -1001, OFFSET_END)],
)
def test_rewind_waits_for_committed_offsets(
    consumers: list[FakeConsumer], reset: str, offset: int, sought: int
) -> None:
    consumer = member(auto_offset_reset=reset)
    consumers[0].messages = [Message(9, b"a")]
    consumer.poll(5, 0.1)
    # The committed offset is unknown at first, and then the first seek fails.
    consumers[0].committed_offsets, consumers[0].refusals = [None, offset], 1
    assert consumer.rewind(["t-0"]) == {"t-0": max(offset, -1)}
    assert (consumers[0].sought, consumer.read_end()) == ([("t", 0, sought)], {})


@pytest.mark.parametrize(
    ("settings", "how"),
    [
        ({}, "assign"),
        ({"partition.assignment.strategy": "cooperative-sticky"}, "incremental"),
        ({"group.protocol": "consumer"}, "incremental"),
    ],
)
def test_application_chooses_its_first_offset(
    consumers: list[FakeConsumer], settings: dict[str, Any], how: str
) -> None:
    consumer = member(**settings)
    consumer.subscribe(["t"], lambda names, _: {names[0]: 7} if len(names) > 1 else {}, lambda *_: None)
    consumers[0].callbacks["on_assign"](None, [TopicPartition("t", 0)])
    # librdkafka assigns partitions itself if no offset is chosen.
    assert consumers[0].assigned == []
    consumers[0].callbacks["on_assign"](None, [TopicPartition("t", 0), TopicPartition("t", 1)])
    assert consumers[0].assigned == [(how, [("t", 0, 7), ("t", 1, -1001)])]


class FakeProducer:
    """A producer of confluent-kafka that knows a partition after a number of metadata requests.

    It refuses records for unknown partitions *at once*, or later when it gets metadata.
    """

    def __init__(self, asks: int, *, at_once: bool) -> None:
        self.asks = asks
        self._at_once = at_once
        self._refused: list[Any] = []
        self.sent: list[int] = []

    def produce(
        self, topic: str, value: bytes, key: bytes | None, *, partition: int, on_delivery: Any
    ) -> None:
        if self.asks and self._at_once:
            raise KafkaException(KafkaError(KafkaError._UNKNOWN_PARTITION))
        if self.asks:
            self._refused.append(on_delivery)
        else:
            self.sent.append(partition)

    def list_topics(self, topic: str, timeout_s: float) -> None:
        assert topic == "t"
        self.asks -= 1

    def poll(self, _: float) -> None:
        refused, self._refused = self._refused, []
        for delivered in refused:
            delivered(KafkaError(KafkaError._UNKNOWN_PARTITION), None)


@pytest.mark.parametrize("at_once", [True, False])
def test_record_waits_for_partition_metadata(monkeypatch: pytest.MonkeyPatch, *, at_once: bool) -> None:
    """librdkafka fails records for unknown partitions; the Java client waits up to max.block.ms."""
    fake = FakeProducer(2, at_once=at_once)
    monkeypatch.setattr(confluent_clients, "Producer", lambda _: fake)
    monkeypatch.setattr(confluent_clients, "_METADATA_INTERVAL_S", 0.0)
    ended: list[Any] = []
    producer = ConfluentProducer({})
    for partition in (3, 4):
        producer.send("t", partition, b"v", None, lambda *outcome: ended.append(outcome))
    while fake.asks:
        producer.poll(0)
    assert (fake.sent, ended) == ([3, 4], [])


@pytest.mark.parametrize("at_once", [True, False])
def test_record_for_a_missing_partition_fails(monkeypatch: pytest.MonkeyPatch, *, at_once: bool) -> None:
    fake = FakeProducer(1, at_once=at_once)
    monkeypatch.setattr(confluent_clients, "Producer", lambda _: fake)
    monkeypatch.setattr(confluent_clients, "_CALL_TIMEOUT_S", 0.0)
    ended: list[Any] = []
    producer = ConfluentProducer({})
    producer.send("t", 3, b"v", None, lambda *outcome: ended.append(outcome))
    producer.poll(0)
    assert ended == [("fail" if at_once else "info", None, "_UNKNOWN_PARTITION")]
