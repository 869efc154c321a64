"""Uses a cluster with kafka-python, whose groups have the classic protocol.

Run ``python -m benchmarks.served.kafka_python SERVERS COUNT PROTOCOL RESULT``.
"""

import sys
import time
from pathlib import Path
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

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
    settings = {"client_id": "producer", "enable_idempotence": True, "acks": "all", "linger_ms": 5}
    with KafkaProducer(bootstrap_servers=servers, **settings) as producer:
        sent = [
            producer.send("plain", b"%d" % number, partition=number % PARTITIONS) for number in range(count)
        ]
        producer.flush()
        return sum(future.succeeded() for future in sent)


def consume(servers: str, count: int) -> dict[str, Any]:
    """Read all records with a member, and from a third of them on with two."""
    members: list[KafkaConsumer] = []
    seen: dict[bytes, int] = {}

    def join() -> None:
        settings = {
            "group_id": "group",
            "auto_offset_reset": "earliest",
            "client_id": f"member-{len(members)}",
        }
        members.append(KafkaConsumer("plain", bootstrap_servers=servers, **settings))

    def poll() -> None:
        for member in members:
            for records in member.poll(timeout_ms=100).values():
                for record in records:
                    seen[record.value] = seen.get(record.value, 0) + 1

    join()
    while len(seen) < count // 3:
        poll()
    join()
    shared = False
    while len(seen) < count or not shared:
        poll()
        shared = shared or all(member.assignment() for member in members)
    for member in members:
        member.close()
    asking = KafkaConsumer(bootstrap_servers=servers, group_id="group", client_id="asking")
    committed = sum(asking.committed(TopicPartition("plain", number)) or 0 for number in range(PARTITIONS))
    asking.close()
    return {"consumed": len(seen), "shared": shared, "committed": committed}


def transactions(servers: str) -> dict[str, int]:
    """Write transactions, a fifth of them aborted, and read them with read_committed."""
    producer = KafkaProducer(bootstrap_servers=servers, client_id="payer", transactional_id="pay")
    producer.init_transactions()
    for number in range(TRANSACTIONS):
        producer.begin_transaction()
        for place in range(PER_TRANSACTION):
            producer.send("paid", b"%d-%d" % (number, place))
        if number % ABORTED_EVERY:
            producer.commit_transaction()
        else:
            producer.flush()
            producer.abort_transaction()
    producer.close()
    settings = {"isolation_level": "read_committed", "client_id": "auditor", "auto_offset_reset": "earliest"}
    reader = KafkaConsumer(bootstrap_servers=servers, **settings)
    partition = TopicPartition("paid", 0)
    reader.assign([partition])
    read, until_s = 0, time.monotonic() + PATIENCE_S
    while read < COMMITTED and time.monotonic() < until_s:
        read += sum(map(len, reader.poll(timeout_ms=200).values()))
    end = reader.end_offsets([partition])[partition]
    reader.close()
    return {"read_committed": read, "paid_end": end}


if __name__ == "__main__":
    servers, count = sys.argv[1], int(sys.argv[2])
    write_figures(
        Path(sys.argv[4]),
        lambda: produce(servers, count),
        lambda: consume(servers, count),
        lambda: transactions(servers),
    )
