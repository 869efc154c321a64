"""Writes two records, the second after the first is acknowledged, and waits for a new leader."""

import os
import time

from confluent_kafka import Producer

producer = Producer(
    {"bootstrap.servers": os.environ["KAFKA_BOOTSTRAP_SERVERS"], "client.id": "app", "acks": "all"}
)


def has_new_leader() -> bool:
    """Return whether broker 1 leads; a broker that has just started may not know the topic."""
    partition = producer.list_topics("t", 60).topics["t"].partitions.get(0)
    return partition is not None and partition.leader == 1


for value in (b"m0", b"m1"):
    producer.produce("t", value)
    assert producer.flush(60) == 0
while not has_new_leader():
    time.sleep(0.5)
