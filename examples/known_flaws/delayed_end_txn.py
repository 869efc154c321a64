"""Commits one transaction and aborts the next one. Meanwhile a reader reads what is committed."""

import os

from confluent_kafka import Consumer, Producer

SERVERS = {"bootstrap.servers": os.environ["KAFKA_BOOTSTRAP_SERVERS"]}
producer = Producer({**SERVERS, "client.id": "app", "transactional.id": "app", "socket.timeout.ms": 1000})


def write(topic: str, value: bytes) -> None:
    producer.produce(topic, value)
    assert producer.flush(60) == 0


producer.init_transactions(60)
producer.begin_transaction()
write("t", b"first")
producer.commit_transaction(60)  # The first request is late, and the producer asks again.
producer.begin_transaction()
write("t", b"a")
reader = Consumer({**SERVERS, "group.id": "g", "client.id": "reader", "auto.offset.reset": "earliest"})
reader.subscribe(["t"])
values: list[bytes | None] = []
while b"a" not in values:
    message = reader.poll(60)
    assert message is not None
    values.append(message.value())
reader.close()
write("u", b"b")
producer.abort_transaction(60)
