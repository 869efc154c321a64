"""Writes a payment for each order. The bug: it commits an order before the payment is written."""

import os

from confluent_kafka import Consumer, Producer

SERVERS = {"bootstrap.servers": os.environ["KAFKA_BOOTSTRAP_SERVERS"], "client.id": "payments"}
# A new process takes the place of the old one without waiting for the end of its session.
GROUP = {"group.id": "payments", "group.instance.id": "payments-0"}
consumer = Consumer({**SERVERS, **GROUP, "auto.offset.reset": "earliest", "enable.auto.commit": False})
producer = Producer(SERVERS)
consumer.subscribe(["orders"])
while True:
    order = consumer.poll(1)
    if order is None or order.error():
        continue
    consumer.commit(order, asynchronous=False)
    producer.produce("payments", b"paid " + order.value())
    producer.flush()
