"""Writes two records, and waits for each acknowledgement and then for another leader."""

import os
import time

from confluent_kafka import Producer

producer = Producer(
    {"bootstrap.servers": os.environ["KAFKA_BOOTSTRAP_SERVERS"], "client.id": "app", "acks": "all"}
)
for value in (b"m0", b"m1"):
    producer.produce("t", value)
    assert producer.flush(60) == 0
    # The brokers checkpoint the high watermark of the first record.
    time.sleep(6)
while producer.list_topics("t", 60).topics["t"].partitions[0].leader != 1:
    time.sleep(0.5)
