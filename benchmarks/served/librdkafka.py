"""Uses a cluster with librdkafka.

Run ``python -m benchmarks.served.librdkafka SERVERS COUNT PROTOCOL RESULT``.
"""

import sys
import time
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks.served.figures import (
    ABORTED_EVERY,
    COMMITTED,
    PARTITIONS,
    PATIENCE_S,
    PER_TRANSACTION,
    TRANSACTIONS,
    write_figures,
)


def produce(servers: str, count: int) -> int:
    """Return how many records are acknowledged."""
    acked = 0

    def on_delivery(error: Any, _: Any) -> None:
        nonlocal acked
        acked += error is None

    settings = {"client.id": "producer", "enable.idempotence": True, "linger.ms": 5}
    producer = Producer({"bootstrap.servers": servers, "queue.buffering.max.messages": count, **settings})
    for number in range(count):
        producer.produce("plain", b"%d" % number, partition=number % PARTITIONS, on_delivery=on_delivery)
        producer.poll(0)
    producer.flush()
    return acked


def consume(servers: str, count: int, protocol: str) -> dict[str, Any]:
    """Read all records with a member, and from a third of them on with two."""
    settings = {"group.id": "group", "auto.offset.reset": "earliest", "group.protocol": protocol}
    members: list[Consumer] = []
    seen: dict[bytes, int] = {}

    def join() -> None:
        number = len(members)
        members.append(Consumer({"bootstrap.servers": servers, "client.id": f"member-{number}", **settings}))
        members[-1].subscribe(["plain"])

    join()
    shared = False
    while len(seen) < count:
        if len(members) == 1 and len(seen) > count // 3:
            join()
        for member in members:
            for message in member.consume(1_000, 0.1):
                assert message.error() is None, message.error()
                value = message.value() or b""
                seen[value] = seen.get(value, 0) + 1
        shared = shared or (len(members) == 2 and all(member.assignment() for member in members))
    while not shared:
        for member in members:
            member.consume(1, 0.1)
        shared = all(member.assignment() for member in members)
    for member in members:
        member.close()
    return {"consumed": len(seen), "shared": shared, "committed": committed(servers)}


def committed(servers: str) -> int:
    """Return the sum of the group's committed offsets."""
    asking = Consumer({"bootstrap.servers": servers, "group.id": "group", "client.id": "asking"})
    partitions = [TopicPartition("plain", number) for number in range(PARTITIONS)]
    found = sum(partition.offset for partition in asking.committed(partitions))
    asking.close()
    return found


def transactions(servers: str) -> dict[str, int]:
    """Write transactions, a fifth of them aborted, and read them with read_committed."""
    producer = Producer({"bootstrap.servers": servers, "client.id": "payer", "transactional.id": "pay"})
    producer.init_transactions()
    for number in range(TRANSACTIONS):
        producer.begin_transaction()
        for place in range(PER_TRANSACTION):
            producer.produce("paid", b"%d-%d" % (number, place))
        if number % ABORTED_EVERY:
            producer.commit_transaction()
        else:
            producer.flush()
            producer.abort_transaction()
    settings = {"group.id": "auditors", "isolation.level": "read_committed", "enable.auto.commit": False}
    reader = Consumer({"bootstrap.servers": servers, "client.id": "auditor", **settings})
    reader.assign([TopicPartition("paid", 0, 0)])
    read, until_s = 0, time.monotonic() + PATIENCE_S
    while read < COMMITTED and time.monotonic() < until_s:
        read += sum(message.error() is None for message in reader.consume(1_000, 0.2))
    _, end = reader.get_watermark_offsets(TopicPartition("paid", 0))
    reader.close()
    return {"read_committed": read, "paid_end": end}


if __name__ == "__main__":
    servers, count = sys.argv[1], int(sys.argv[2])
    write_figures(
        Path(sys.argv[4]),
        lambda: produce(servers, count),
        lambda: consume(servers, count, sys.argv[3]),
        lambda: transactions(servers),
    )
