"""Records the producers and consumers of kafka-python.

As a program: ``kafka_python_recorder.py send|read SERVERS TOPIC HISTORY PROCESS
[TRANSACTIONAL_ID]``. To send, it reads lines with a partition and a value, or with ``commit`` or
``abort``.
"""

import sys
from collections.abc import Iterable
from typing import Any

from history_recorder import HistoryRecorder
from kafka import ConsumerRebalanceListener, KafkaConsumer, KafkaProducer, TopicPartition


class RecordingProducer:
    """Sends unique values to chosen partitions."""

    def __init__(self, producer: KafkaProducer, recorder: HistoryRecorder) -> None:
        self._producer, self._recorder = producer, recorder
        self._sends: list[Any] | None = None  # those of the open transaction

    def send(self, topic: str, partition: int, value: str) -> None:
        send: list[Any] = ["send", f"{topic}-{partition}", value]
        f = "send" if self._sends is None else "txn"
        self._recorder.write("invoke", f, [send])

        def end(type_: str, offset: int | None = None) -> None:
            if offset is not None:
                send[2] = [offset, value]
            if f == "send":
                self._recorder.write(type_, f, [send])

        if self._sends is not None:
            self._sends.append(send)
        future = self._producer.send(topic, value.encode(), partition=partition)
        future.add_callback(lambda metadata: end("ok", metadata.offset))
        future.add_errback(lambda _: end("info"))  # The record may have been stored in spite of an error.

    def begin(self) -> None:
        self._producer.begin_transaction()
        self._sends = []

    def commit(self) -> None:
        self._producer.flush()  # Afterwards `end` has got the offsets.
        self._producer.commit_transaction()
        self._end("ok")

    def abort(self) -> None:
        self._producer.abort_transaction()
        self._end("fail")

    def _end(self, type_: str) -> None:
        self._recorder.write(type_, "txn", self._sends or [])
        self._sends = None


class RecordingConsumer(ConsumerRebalanceListener):  # type: ignore[misc] # kafka-python has no types
    """Reads topics as a member of a group."""

    def __init__(self, consumer: KafkaConsumer, recorder: HistoryRecorder, topics: list[str]) -> None:
        self._consumer, self._recorder = consumer, recorder
        consumer.subscribe(topics, listener=self)

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        self._recorder.rebalance(assigned=map(_name, assigned))

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        self._recorder.rebalance(revoked=map(_name, revoked))

    def poll(self, timeout_s: float) -> int:
        self._recorder.write("invoke", "poll", [["poll"]])
        polled = self._consumer.poll(timeout_ms=int(timeout_s * 1000), max_records=500)
        records = {
            _name(partition): [[record.offset, record.value.decode()] for record in records]
            for partition, records in polled.items()
        }
        self._recorder.write("ok", "poll", [["poll", records]])
        return len(records)

    def commit(self) -> None:
        assigned = sorted(self._consumer.assignment())
        offsets = [["commit", _name(each), self._consumer.position(each)] for each in assigned]
        self._recorder.write("invoke", "commit", offsets)
        self._consumer.commit()
        self._recorder.write("ok", "commit", offsets)


def _name(partition: TopicPartition) -> str:
    return f"{partition.topic}-{partition.partition}"


def main() -> None:
    """Send what standard input says, or read a topic to its end."""
    mode, servers, topic, history, process, *transactional_id = sys.argv[1:]
    recorder = HistoryRecorder(history, int(process))
    if mode == "read":
        library = KafkaConsumer(
            bootstrap_servers=servers,
            group_id=history.replace("/", "."),
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
        )
        consumer = RecordingConsumer(library, recorder, [topic])
        while not consumer.poll(5):  # The first polls may be too early for records.
            pass
        while consumer.poll(5):
            pass
        consumer.commit()
        library.close()
        return
    transactions = {"transactional_id": transactional_id[0]} if transactional_id else {}
    library = KafkaProducer(bootstrap_servers=servers, acks="all", enable_idempotence=True, **transactions)
    producer = RecordingProducer(library, recorder)
    if transactional_id:
        library.init_transactions()
        producer.begin()
    for line in sys.stdin:
        match line.split():
            case ["commit" | "abort" as end]:
                getattr(producer, end)()
                producer.begin()
            case [partition, value]:
                producer.send(topic, int(partition), value)
    library.close()


if __name__ == "__main__":
    main()
