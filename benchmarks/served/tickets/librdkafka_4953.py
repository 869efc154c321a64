"""Writes three records to a partition, and one to another one: SERVERS."""

import sys
import time
from typing import Any

from confluent_kafka import Producer

producer = Producer(
    {"bootstrap.servers": sys.argv[1], "client.id": "app", "enable.idempotence": True, "linger.ms": 0}
    | {"socket.timeout.ms": 40_000, "request.timeout.ms": 39_000}
)


def send(value: bytes, partition: int, wait_s: float) -> None:
    producer.produce("t", value, partition=partition, on_delivery=report)
    time.sleep(wait_s)
    producer.poll(0)


def report(error: Any, message: Any) -> None:
    print(f"{message.value().decode()}: {error or 'acknowledged'}")


send(b"first", partition=0, wait_s=1)
send(b"A", partition=1, wait_s=5)
send(b"B", partition=0, wait_s=8)
send(b"C", partition=0, wait_s=1)
producer.flush(100)
