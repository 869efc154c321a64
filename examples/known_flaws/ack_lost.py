"""Writes one record without idempotence."""

import os

from confluent_kafka import Producer

servers = os.environ["KAFKA_BOOTSTRAP_SERVERS"]
producer = Producer({"bootstrap.servers": servers, "client.id": "app", "enable.idempotence": False})
producer.produce("t", b"m1")
assert producer.flush(60) == 0
