"""Writes a payment for each order. The transaction contains the payment and the offset."""

import os

from confluent_kafka import Consumer, Producer

SERVERS = {"bootstrap.servers": os.environ["KAFKA_BOOTSTRAP_SERVERS"], "client.id": "payments"}
# A new process takes the place of the old one without waiting for the end of its session.
GROUP = {"group.id": "payments", "group.instance.id": "payments-0"}
consumer = Consumer({**SERVERS, **GROUP, "auto.offset.reset": "earliest", "enable.auto.commit": False})
producer = Producer({**SERVERS, "transactional.id": "payments"})
producer.init_transactions()
consumer.subscribe(["orders"])
while True:
    order = consumer.poll(1)
    if order is None or order.error():
        continue
    producer.begin_transaction()
    producer.produce("payments", b"paid " + order.value())
    positions = consumer.position(consumer.assignment())
    producer.send_offsets_to_transaction(positions, consumer.consumer_group_metadata())
    producer.commit_transaction()
