"""Records the producers and consumers of confluent-kafka.

As a program: ``confluent_recorder.py send|read SERVERS TOPIC HISTORY PROCESS [TRANSACTIONAL_ID]``.
To send, it reads lines with a partition and a value, or with ``commit`` or ``abort``.
"""

import sys
from typing import Any

from confluent_kafka import Consumer, Message, Producer, TopicPartition
from history_recorder import HistoryRecorder


class RecordingProducer:
    """Sends unique values to chosen partitions."""

    def __init__(self, producer: Producer, recorder: HistoryRecorder) -> None:
        self._producer, self._recorder = producer, recorder
        self._sends: list[Any] | None = None  # those of the open transaction

    def send(self, topic: str, partition: int, value: str) -> None:
        send: list[Any] = ["send", f"{topic}-{partition}", value]
        f = "send" if self._sends is None else "txn"
        self._recorder.write("invoke", f, [send])

        def end(error: Any, message: Message) -> None:
            if error is None:
                send[2] = [message.offset(), value]
            if f == "send":  # The record may have been stored in spite of an error.
                self._recorder.write("ok" if error is None else "info", f, [send])

        if self._sends is not None:
            self._sends.append(send)
        self._producer.produce(topic, value, partition=partition, on_delivery=end)
        self._producer.poll(0)

    def begin(self) -> None:
        self._producer.begin_transaction()
        self._sends = []

    def commit(self) -> None:
        self._producer.flush()  # It calls `end`, which gets the offsets.
        self._producer.commit_transaction()
        self._end("ok")

    def abort(self) -> None:
        self._producer.abort_transaction()
        self._end("fail")

    def _end(self, type_: str) -> None:
        self._recorder.write(type_, "txn", self._sends or [])
        self._sends = None


class RecordingConsumer:
    """Reads topics as a member of a group."""

    def __init__(self, consumer: Consumer, recorder: HistoryRecorder, topics: list[str]) -> None:
        self._consumer, self._recorder = consumer, recorder

        def assign(_: Any, partitions: list[TopicPartition]) -> None:
            recorder.rebalance(assigned=map(_name, partitions))

        def revoke(_: Any, partitions: list[TopicPartition]) -> None:
            recorder.rebalance(revoked=map(_name, partitions))

        consumer.subscribe(topics, on_assign=assign, on_revoke=revoke, on_lost=revoke)

    def poll(self, timeout_s: float) -> list[Message]:
        self._recorder.write("invoke", "poll", [["poll"]])
        messages = [each for each in self._consumer.consume(500, timeout_s) if each.error() is None]
        records: dict[str, list[Any]] = {}
        for message in messages:
            name = f"{message.topic()}-{message.partition()}"
            records.setdefault(name, []).append([message.offset(), (message.value() or b"").decode()])
        self._recorder.write("ok", "poll", [["poll", records]])
        return messages

    def commit(self) -> None:
        positions = self._consumer.position(self._consumer.assignment())
        offsets = [["commit", _name(each), each.offset] for each in positions if each.offset >= 0]
        self._recorder.write("invoke", "commit", offsets)
        self._consumer.commit(asynchronous=False)
        self._recorder.write("ok", "commit", offsets)


def _name(partition: TopicPartition) -> str:
    return f"{partition.topic}-{partition.partition}"


def main() -> None:
    """Send what standard input says, or read a topic to its end."""
    mode, servers, topic, history, process, *transactional_id = sys.argv[1:]
    recorder = HistoryRecorder(history, int(process))
    settings = {"bootstrap.servers": servers}
    if mode == "read":
        group = {"group.id": history, "auto.offset.reset": "earliest", "enable.auto.commit": False}
        inner = Consumer({**settings, **group})
        consumer = RecordingConsumer(inner, recorder, [topic])
        while not consumer.poll(5):  # The first polls may be too early for records.
            pass
        while consumer.poll(5):
            pass
        consumer.commit()
        inner.close()
        return
    transactions = {"transactional.id": transactional_id[0]} if transactional_id else {}
    library = Producer({**settings, "enable.idempotence": True, **transactions})
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
    library.flush()


if __name__ == "__main__":
    main()
