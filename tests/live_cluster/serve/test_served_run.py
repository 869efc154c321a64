"""Unmodified clients use a served cluster while faults strike it, and are judged."""

import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, Producer
from kafka.protocol.consumer import JoinGroupRequest
from kafka.protocol.metadata import FindCoordinatorRequest

from benchmarks.serve import hostile_frames, send_hostile
from harrow.campaigns.language.loader import load_text
from harrow.campaigns.run.run_result import RunResult
from harrow.checks.finding import HELD, PERMITTED, VIOLATED
from harrow.live_cluster.serve.served_run import serve
from harrow.live_cluster.wire.codec import Address
from harrow.live_cluster.wire.connection import BrokerConnection
from harrow.live_cluster.wire.errors import error_name
from tests.patience import PATIENCE_S

COUNT: Final = 200
CALM = """
name: served
kafka: "4.3"
cluster: {brokers: 3, topics: [{name: t, partitions: 2, replication_factor: 3}]}
settings: {min.insync.replicas: 2}
workload: {producers: [{name: unused}], duration: 10s}
"""
CRASH = f"{CALM}faults: [{{at: 500ms, do: {{broker_crash: {{broker: leader of t-0, restart_after: 3s}}}}}}]\n"
# The leader alone has what it acknowledges, and dies. The links stay cut until the end and the ISR
# does not shrink, so that it does not matter how long the client takes.
LONELY_LEADER = """
name: lonely-leader
kafka: "3.9"
cluster: {brokers: 3, topics: [{name: t, assignment: [[0, 1, 2]]}]}
settings: {replica.lag.time.max.ms: 86400000}
workload: {producers: [{name: unused}], duration: 60s}
script:
  - when: {leader: {t-0: 0}}
    do: {partition: {between: 0, and: [1, 2]}}
  # Meanwhile the client gets the last acknowledgement.
  - when: {replicas: {t-0: {0: {leo: 20}}}}
    do: {wait: {}}
  - after: 5s
    do: {broker_crash: {broker: 0, restart_after: 20s}}
"""


def run_with(text: str, client: Callable[[str], None], **options: Any) -> RunResult:
    """Serve a campaign for as long as *client* runs with the servers' addresses."""
    (plan,) = load_text(text, "c.yaml").plans
    errors: list[BaseException] = []

    def use(servers: str) -> None:
        try:
            client(servers)
        except BaseException as error:  # noqa: BLE001 - raised again in the thread of the test
            errors.append(error)

    threads: list[threading.Thread] = []

    def start(addresses: Sequence[Address]) -> None:
        servers = ",".join(f"{host}:{port}" for host, port in addresses)
        threads.append(threading.Thread(target=use, args=(servers,)))
        threads[0].start()

    result = serve(
        plan,
        0,
        host="127.0.0.1",
        ports=[0] * len(plan.cluster.brokers),
        time_scale=options.get("time_scale", 1.0),
        unique=options.get("unique"),
        users=options.get("users"),
        recording=options.get("recording"),
        on_ready=start,
        is_over=lambda _: not threads[0].is_alive(),
    )
    threads[0].join(PATIENCE_S)
    for error in errors:
        raise error
    return result


def acked(result: RunResult) -> int:
    operations = [operation for operation in result.evidence.operations if operation.type == "ok"]
    return sum(len(list(operation.sends())) for operation in operations)


# kafka-python leaves the sockets of refused connections to the garbage collector, so it runs in
# processes of its own.
PRODUCE = """
import sys
from kafka import KafkaConsumer, KafkaProducer

servers, acks, count = sys.argv[1], {"all": "all"}.get(sys.argv[2], 1), int(sys.argv[3])
options = {"enable_idempotence": acks == "all", "bootstrap_servers": servers, "acks": acks}
with KafkaProducer(**options) as producer:
    sent = [producer.send("t", b"%d" % number) for number in range(count)]
    producer.flush(PATIENCE_S)
    assert len({(future.get(0).partition, future.get(0).offset) for future in sent}) == count
""".replace("PATIENCE_S", str(PATIENCE_S))
CONSUME = """
consumer = KafkaConsumer("t", bootstrap_servers=servers, group_id="g", auto_offset_reset="earliest")
values = {next(consumer).value for _ in range(count)}
consumer.close()
assert values == {b"%d" % number for number in range(count)}
"""


def run_python(program: str, *arguments: str) -> None:
    subprocess.run([sys.executable, "-c", program, *arguments], check=True, timeout=PATIENCE_S)


def use_kafka_python(servers: str) -> None:
    run_python(PRODUCE + CONSUME, servers, "all", str(COUNT))


def use_librdkafka(servers: str) -> None:
    failures: list[Any] = []

    def delivered(error: Any, _: Any) -> None:
        if error is not None:
            failures.append(error)

    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 1})
    for number in range(COUNT):
        producer.produce("t", b"%d" % number, on_delivery=delivered)
        producer.poll(0.005)
    assert producer.flush(PATIENCE_S) == 0
    assert failures == []
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["t"])
    values: set[bytes | None] = set()
    while len(values) < COUNT:
        message = consumer.poll(PATIENCE_S)
        assert message is not None
        assert message.error() is None
        values.add(message.value())
    consumer.close()


CLIENTS = {"kafka-python": use_kafka_python, "librdkafka": use_librdkafka}


@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)
@pytest.mark.parametrize("text", [CALM, CRASH], ids=["calm", "crash"])
def test_a_client_loses_nothing_when_a_leader_dies(client: Callable[[str], None], text: str) -> None:
    result = run_with(text, client)
    assert (result.verdict.status, result.verdict.reasons) == (HELD, ())
    assert [fault.fault for fault in result.faults] == ["broker_crash"] * (text == CRASH)
    assert acked(result) == COUNT


def wait_until_refused(servers: str) -> None:
    """Wait until the first broker is down."""
    host, _, port = servers.partition(",")[0].partition(":")
    until_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < until_s:
        try:
            socket.create_connection((host, int(port))).close()
        except ConnectionError:
            return
        time.sleep(0.05)
    raise TimeoutError("the broker still listens")


def test_records_that_only_a_dead_leader_had_are_lost_as_acks_1_permits() -> None:
    def use(servers: str) -> None:
        run_python(PRODUCE, servers, "1", "20")
        wait_until_refused(servers)
        # This one is sent to the next leader.
        run_python(PRODUCE, servers, "1", "1")

    result = run_with(LONELY_LEADER, use, time_scale=10)
    lost = result.verdict.rules["lost-write"]
    assert (result.verdict.status, result.verdict.reasons) == (PERMITTED, ())
    assert [finding.permitted_by for finding in lost.findings] == ["acks=1"] * 20


def test_a_transaction_is_read_as_a_whole_or_not_at_all() -> None:
    committed: list[bytes] = []

    def use(servers: str) -> None:
        producer = Producer({"bootstrap.servers": servers, "transactional.id": "pay"})
        producer.init_transactions(PATIENCE_S)
        for number in range(4):
            producer.begin_transaction()
            values = [b"%d-%d" % (number, place) for place in range(5)]
            for value in values:
                producer.produce("t", value)
            producer.flush(PATIENCE_S)
            if number % 2:
                producer.abort_transaction(PATIENCE_S)
            else:
                producer.commit_transaction(PATIENCE_S)
                committed.extend(values)
        settings = {"group.id": "g", "auto.offset.reset": "earliest", "isolation.level": "read_committed"}
        consumer = Consumer({"bootstrap.servers": servers, **settings})
        consumer.subscribe(["t"])
        read: list[bytes | None] = []
        while len(read) < len(committed):
            message = consumer.poll(PATIENCE_S)
            assert message is not None
            read.append(message.value())
        consumer.close()
        assert sorted(map(bytes, filter(None, read))) == sorted(committed)

    result = run_with(CALM, use)
    assert (result.verdict.status, result.verdict.reasons) == (HELD, ())
    outcomes = [(operation.f, operation.type) for operation in result.evidence.operations]
    assert (outcomes.count(("txn", "ok")), outcomes.count(("txn", "fail"))) == (2, 2)


def test_hostile_frames_end_only_their_own_connections() -> None:
    member = {"group_id": "g", "session_timeout_ms": 10_000, "rebalance_timeout_ms": 10_000, "member_id": ""}
    assignor = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"")
    joins = (
        JoinGroupRequest[3](**member, protocol_type="consumer", protocols=[]),
        JoinGroupRequest[3](**member, protocol_type="", protocols=[assignor]),
    )

    def use(servers: str) -> None:
        host, _, port = servers.partition(",")[0].partition(":")
        run_python(PRODUCE + CONSUME, servers, "all", "1")
        for frame in hostile_frames(Random(0), 300):
            send_hostile((host, int(port)), [frame])
        with BrokerConnection((host, int(port))) as first:
            found = first.ask(FindCoordinatorRequest[3](key="g", key_type=0))
        with BrokerConnection((found.host, found.port)) as coordinator:
            for join in joins:
                answer = coordinator.ask(join)
                assert error_name(answer.error_code) == "INCONSISTENT_GROUP_PROTOCOL"
        run_python(PRODUCE, servers, "all", "1")

    result = run_with(CALM, use)
    assert result.verdict.status != VIOLATED
    assert acked(result) >= 2


def test_a_served_swarm_has_only_the_drawn_values_that_real_clients_meet() -> None:
    swarm = """
name: served-swarm
kafka: "4.3"
cluster: {brokers: 3, topics: [{name: t}]}
workload: {producers: [{name: p}], consumers: [{name: c}], duration: 1s}
swarm:
  partitions: 1..2
  producers: 1..3
  consumers: 1..3
  rate: [1/s, 2/s]
  settings: {acks: [0, all], min.insync.replicas: [1]}
"""
    result = run_with(swarm, lambda _: None)
    assert [name for name, _ in result.drawn] == ["partitions", "min.insync.replicas"]
