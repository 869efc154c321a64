"""The clients on kafka-python; the library is a fake, except for its futures and errors."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import pytest
from kafka import TopicPartition
from kafka.errors import (
    KafkaTimeoutError,
    MessageSizeTooLargeError,
    NotEnoughReplicasError,
    OffsetOutOfRangeError,
)
from kafka.future import Future

from harrow.live_cluster.clients import kafka_python_clients
from harrow.live_cluster.clients.client_library import load_library
from harrow.live_cluster.clients.kafka_python_clients import KafkaPythonConsumer, KafkaPythonProducer

T0, T1 = TopicPartition("a-b", 0), TopicPartition("a-b", 1)
Ended = list[tuple[str, int | None, str | None]]


class Stored(NamedTuple):
    offset: int


class Record(NamedTuple):
    offset: int
    value: bytes | None


@dataclass
class FakeProducer:
    settings: dict[str, Any]
    future: Future = field(default_factory=Future)
    refusal: Exception | None = None
    sent: list[Any] = field(default_factory=list)

    def send(self, topic: str, value: bytes, key: bytes | None, partition: int) -> Future:
        if self.refusal is not None:
            raise self.refusal
        self.sent.append((topic, value, key, partition))
        return self.future


class FakeConsumer:
    def __init__(self, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.records: dict[TopicPartition, list[Record]] = {}
        self.positions: dict[TopicPartition, int | None] = {}
        self.high_watermarks: dict[TopicPartition, int] = {}
        self.error: Exception | None = None
        self.assigned: list[TopicPartition] = []
        self.poll_arguments: tuple[int, int] | None = None

    def assign(self, partitions: list[TopicPartition]) -> None:
        self.assigned = partitions

    def seek_to_beginning(self) -> None:
        self.positions = dict.fromkeys(self.assigned)

    def poll(self, timeout_ms: int, max_records: int) -> dict[TopicPartition, list[Record]]:
        self.poll_arguments = (timeout_ms, max_records)
        if self.error is not None:
            raise self.error
        return self.records

    def highwater(self, partition: TopicPartition) -> int | None:
        return self.high_watermarks.get(partition)

    def position(self, partition: TopicPartition, timeout_ms: int) -> int | None:
        assert timeout_ms == 0, "the call does not wait"
        if self.error is not None:
            raise self.error
        return self.positions[partition]


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    objects: list[Any] = []

    def maker(kind: Any) -> Any:
        def make(**settings: Any) -> Any:
            objects.append(kind(settings))
            return objects[-1]

        return make

    monkeypatch.setattr(kafka_python_clients, "KafkaProducer", maker(FakeProducer))
    monkeypatch.setattr(kafka_python_clients, "KafkaConsumer", maker(FakeConsumer))
    return objects


def sent_with(fakes: list[Any], **settings: Any) -> tuple[FakeProducer, Ended]:
    producer = KafkaPythonProducer(settings)
    ended: Ended = []
    producer.send("a-b", 1, b"v", b"  ", lambda *outcome: ended.append(outcome))
    return fakes[0], ended


def test_acknowledged_record_has_its_offset(fakes: list[Any]) -> None:
    library, ended = sent_with(fakes, acks=1)
    assert (library.sent, ended) == ([("a-b", b"v", b"  ", 1)], [])
    library.future.success(Stored(5))
    assert ended == [("ok", 5, None)]


def test_forgotten_duplicate_has_no_offset(fakes: list[Any]) -> None:
    library, ended = sent_with(fakes, acks="all")
    library.future.success(Stored(-1))
    assert ended == [("ok", None, None)]


def test_record_without_acks_has_no_offset(fakes: list[Any]) -> None:
    library, ended = sent_with(fakes, acks=0)
    library.future.success(Stored(-1))
    assert ended == [("ok", None, None)]


@pytest.mark.parametrize(
    ("error", "type_", "name"),
    [
        (NotEnoughReplicasError(), "info", "NOT_ENOUGH_REPLICAS"),
        (KafkaTimeoutError("no answer"), "info", "KafkaTimeoutError"),
        (MessageSizeTooLargeError(), "fail", "MESSAGE_SIZE_TOO_LARGE"),
    ],
)
def test_failed_send_reports_its_type_and_error(
    fakes: list[Any], error: Exception, type_: str, name: str
) -> None:
    library, ended = sent_with(fakes)
    library.future.failure(error)
    assert ended == [(type_, None, name)]


def test_rejected_record_was_never_sent(fakes: list[Any]) -> None:
    producer = KafkaPythonProducer({})
    fakes[0].refusal = KafkaTimeoutError("no metadata")
    ended: Ended = []
    producer.send("t", 0, b"v", None, lambda *outcome: ended.append(outcome))
    assert ended == [("fail", None, "KafkaTimeoutError")]


def test_consumer_is_at_the_end_at_the_high_watermark(fakes: list[Any]) -> None:
    consumer = KafkaPythonConsumer({"client_id": "c"})
    consumer.assign(["a-b-0", "a-b-1"])
    library = fakes[0]
    assert library.assigned == [T0, T1]
    first = consumer.poll(7, 0.02)
    assert library.poll_arguments == (20, 7)
    assert (first.records, first.positions, first.at_end) == ({}, {"a-b-0": 0, "a-b-1": 0}, frozenset())
    library.records = {T0: [Record(0, b"x"), Record(1, b"\xff")]}
    library.positions = {T0: 2, T1: 0}
    library.high_watermarks = {T0: 3, T1: 0}
    second = consumer.poll(7, 0.02)
    assert second.records == {"a-b-0": [(0, "x"), (1, "\\xff")]}
    assert (second.positions, second.at_end) == ({"a-b-0": 2, "a-b-1": 0}, frozenset({"a-b-1"}))


def test_consumer_out_of_range_reads_nothing(fakes: list[Any]) -> None:
    consumer = KafkaPythonConsumer({})
    consumer.assign(["a-b-0"])
    fakes[0].error = OffsetOutOfRangeError()
    read = consumer.poll(7, 0.02)
    assert (read.records, read.positions, read.at_end) == ({}, {"a-b-0": 0}, frozenset())


def test_kafka_python_consumer_has_no_group(fakes: list[Any]) -> None:
    KafkaPythonConsumer({"client_id": "c"})
    assert fakes[0].settings["group_id"] is None
    assert fakes[0].settings["enable_auto_commit"] is False


def test_libraries_are_loaded_by_name() -> None:
    assert load_library("kafka-python").make_producer is KafkaPythonProducer
    assert load_library("confluent-kafka").make_consumer.__name__ == "ConfluentConsumer"
