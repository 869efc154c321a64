"""Known flaws of Kafka show themselves to unmodified clients."""

import time
from typing import Any, Final

from confluent_kafka import Consumer, Producer

from harrow.campaigns.run.run_result import RunResult
from harrow.checks.finding import VIOLATED
from tests.live_cluster.serve.test_served_run import run_with
from tests.patience import PATIENCE_S

DELAYED_END: Final = """
name: delayed-end
kafka: "3.9"
cluster: {brokers: 1, topics: [{name: t}, {name: u}]}
workload: {producers: [{name: app}], duration: 60s}
script:
  - do: {message: {action: hold, api: EndTxn, kind: request, from: app, id: late-commit}}
  # The first transaction has a record and its marker, so this is the record of the second one.
  - when: {event: {message_rule: {rule: late-commit}}, replicas: {t-0: {0: {leo: 3}}}}
    do: {release: {id: late-commit}}
expect: {verdict: violated, rules: {G1a: violated}}
"""


def begin(producer: Producer, topic: str, value: bytes) -> None:
    producer.produce(topic, value)
    assert producer.flush(PATIENCE_S) == 0


def use_transactions(servers: str) -> None:
    settings = {"transactional.id": "app", "client.id": "app", "socket.timeout.ms": 1_000}
    producer = Producer({"bootstrap.servers": servers, **settings})
    producer.init_transactions(PATIENCE_S)
    producer.begin_transaction()
    begin(producer, "t", b"first")
    # The first request is late, and the producer asks again.
    producer.commit_transaction(PATIENCE_S)
    producer.begin_transaction()
    begin(producer, "t", b"a")
    readers: dict[str, Any] = {"group.id": "g", "client.id": "reader", "auto.offset.reset": "earliest"}
    reader = Consumer({"bootstrap.servers": servers, "isolation.level": "read_committed", **readers})
    reader.subscribe(["t"])
    until_s, values = time.monotonic() + PATIENCE_S, []
    while b"a" not in values and time.monotonic() < until_s:
        message = reader.poll(PATIENCE_S)
        assert message is not None
        values.append(message.value())
    reader.close()
    begin(producer, "u", b"b")
    producer.abort_transaction(PATIENCE_S)


def test_a_late_commit_of_one_transaction_commits_the_next_one_up_to_3_9() -> None:
    result: RunResult = run_with(DELAYED_END, use_transactions)
    assert result.verdict.rules["G1a"].status == VIOLATED
    assert result.expected
