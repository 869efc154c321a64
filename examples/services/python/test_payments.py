"""A service that is killed between two steps of its work pays each order once."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition

from harrow.live_cluster.serve.kafka_cluster import KafkaCluster

SERVICE = Path(__file__).with_name(os.environ.get("SERVICE", "payments.py"))
ORDERS = [b"order %d" % number for number in range(5)]


def test_each_order_is_paid_once(kafka_cluster: KafkaCluster) -> None:
    place(ORDERS, kafka_cluster)
    third_write = {"action": "drop", "api": "Produce", "kind": "request", "from": "payments", "skip": 2}
    kafka_cluster.fault("message", third_write)
    with service(kafka_cluster):
        while kafka_cluster.state()["faults"]:
            time.sleep(0.1)
    with service(kafka_cluster):
        assert payments(kafka_cluster) == [b"paid " + order for order in ORDERS]
    assert kafka_cluster.judge().status == "held"


@contextmanager
def service(cluster: KafkaCluster) -> Iterator[None]:
    """Run the service, and kill it at the end of the block."""
    variables = {**os.environ, "KAFKA_BOOTSTRAP_SERVERS": cluster.bootstrap_servers}
    with subprocess.Popen([sys.executable, SERVICE], env=variables) as process:
        try:
            yield
        finally:
            process.kill()


def place(orders: list[bytes], cluster: KafkaCluster) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    for order in orders:
        producer.produce("orders", order)
    assert producer.flush(60) == 0


def payments(cluster: KafkaCluster) -> list[bytes]:
    """Return the payments up to that of the last order."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap_servers, "group.id": "auditors"})
    consumer.assign([TopicPartition("payments", 0, 0)])
    read: list[bytes] = []
    while b"paid " + ORDERS[-1] not in read:
        message = consumer.poll(60)
        assert message is not None, read
        read.append(message.value())
    consumer.close()
    return read
