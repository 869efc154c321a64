"""Internal topics: the partitions of keys, their settings, and the records of coordinators."""

import json
from typing import Any

import pytest

from harrow.cluster_model import errors
from harrow.cluster_model.clients.network_client import NetworkClient
from harrow.cluster_model.cluster import Cluster
from harrow.cluster_model.coordinators.coordinator_log import CoordinatorLog, CoordinatorRecord, records_of
from harrow.cluster_model.coordinators.internal_topics import (
    internal_topic,
    java_hash,
    java_hash_place,
    partition_for,
    scala_hash_place,
)
from harrow.cluster_model.coordinators.protocol import FindCoordinatorRequest
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.settings import broker_config
from harrow.cluster_model.sim.choices import Choices
from harrow.cluster_model.sim.process import Process
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from harrow.cluster_model.topology import (
    CONSUMER_OFFSETS,
    TRANSACTION_STATE,
    BrokerSpec,
    ClusterSpec,
    TopicSpec,
)

RECORDS = [
    CoordinatorRecord("my group t-0", {"offset": 3}),
    CoordinatorRecord("other", None),
]


def start_cluster(release: str = "3.9") -> Cluster:
    spec = ClusterSpec(
        brokers=tuple(BrokerSpec(id=number) for number in range(3)),
        topics=(
            TopicSpec(name="t", partitions=1, replication_factor=3),
            internal_topic(CONSUMER_OFFSETS, broker_config(release, {"offsets.topic.num.partitions": 5})),
        ),
        settings={"offsets.topic.num.partitions": 5},
    )
    cluster = Cluster(spec, release, RELEASES[release].behaviours, Choices.from_seed(0))
    cluster.start()
    return cluster


@pytest.mark.parametrize(
    ("text", "digest"), [("", 0), ("a", 97), ("hello", 99162322), ("polygenelubricants", -(2**31))]
)
def test_a_string_has_the_same_hash_as_in_java(text: str, digest: int) -> None:
    assert java_hash(text) == digest


@pytest.mark.parametrize(("key", "number"), [("console-consumer-49366", 19), ("polygenelubricants", 0)])
def test_a_key_belongs_to_the_partition_of_its_absolute_hash(key: str, number: int) -> None:
    assert partition_for(key, 50) == number


def test_the_transaction_topic_requires_two_in_sync_replicas_and_no_unclean_election() -> None:
    topic = internal_topic(TRANSACTION_STATE, broker_config("2.4", {"unclean.leader.election.enable": True}))
    assert (topic.partitions, topic.replication_factor) == (50, 3)
    assert topic.settings["min.insync.replicas"] == 2
    assert topic.settings["unclean.leader.election.enable"] is False


def test_clients_do_not_see_internal_topics() -> None:
    cluster = start_cluster()
    assert cluster.partition_names() == ("t-0",)
    assert cluster.topic_names() == ("t",)
    assert cluster.internal_partitions() == tuple(f"{CONSUMER_OFFSETS}-{number}" for number in range(5))
    assert set(cluster.brokers[0].metadata.response().partitions) == {"t-0"}


@pytest.mark.parametrize("release", ["0.11", "2.4", "3.9"])
def test_a_successor_reads_the_records_of_its_predecessor(release: str) -> None:
    cluster = start_cluster(release)
    first = cluster.brokers[2]
    assert first.replicas.partitions[f"{CONSUMER_OFFSETS}-2"].is_leader()
    outcomes: list[str] = []
    log = CoordinatorLog(CONSUMER_OFFSETS, cluster.host(cluster.processes[2]), first.replicas)
    log.append(2, RECORDS, US_PER_SECOND, outcomes.append)
    assert not outcomes
    cluster.simulator.run_until(US_PER_SECOND)
    assert outcomes == [errors.NONE]
    for broker in (0, 1):
        other = CoordinatorLog(
            CONSUMER_OFFSETS, cluster.host(cluster.processes[broker]), cluster.brokers[broker].replicas
        )
        assert [record for batch in other.batches(2) for record in records_of(batch)] == RECORDS


def test_a_record_is_written_as_compact_json() -> None:
    cluster = start_cluster()
    log = CoordinatorLog(CONSUMER_OFFSETS, cluster.host(cluster.processes[2]), cluster.brokers[2].replicas)
    value = {
        "text": 'a"\\\n\u00e9\U0001f600',
        "count": -3,
        "flag": True,
        "off": False,
        "none": None,
        "list": [],
        "pair": (1, "b"),
    }
    log.append(2, [CoordinatorRecord("group g", value)], US_PER_SECOND, lambda _: None)
    (batch,) = log.batches(2)
    assert batch.values == (f"group g {json.dumps(value, separators=(',', ':'))}",)


def test_an_append_that_is_not_replicated_in_time_is_reported_and_stays_in_the_log() -> None:
    cluster = start_cluster()
    leader = cluster.brokers[2]
    outcomes: list[str] = []
    log = CoordinatorLog(CONSUMER_OFFSETS, cluster.host(cluster.processes[2]), leader.replicas)
    for broker in (0, 1):
        cluster.pause_broker(broker)
    log.append(2, RECORDS, US_PER_SECOND, outcomes.append)
    cluster.simulator.run_until(2 * US_PER_SECOND)
    assert outcomes == [errors.REQUEST_TIMED_OUT]
    assert [record for batch in log.batches(2) for record in records_of(batch)] == RECORDS


class _Coordinator:
    def __init__(self) -> None:
        self.calls: list[tuple[int, int | None]] = []

    def on_election(self, partition: int, leader_epoch: int) -> None:
        self.calls.append((partition, leader_epoch))

    def on_resignation(self, partition: int) -> None:
        self.calls.append((partition, None))


@pytest.mark.parametrize("release", ["2.4", "3.9"])
def test_a_coordinator_is_notified_when_its_broker_gains_or_loses_leadership(release: str) -> None:
    cluster = start_cluster(release)
    coordinators = {}
    for number in (0, 1):
        coordinators[number] = cluster.brokers[number]._coordinators[CONSUMER_OFFSETS] = _Coordinator()
    cluster.crash_broker(2, power_loss=False)
    cluster.simulator.run_until(30 * US_PER_SECOND)
    state = cluster.partition_state(f"{CONSUMER_OFFSETS}-2")
    assert state is not None
    assert (2, state.leader_epoch) in coordinators[state.leader].calls
    cluster.start_broker(2)
    cluster.simulator.run_until(60 * US_PER_SECOND)
    cluster.elect_preferred_leaders()
    cluster.simulator.run_until(70 * US_PER_SECOND)
    assert coordinators[state.leader].calls[-1] == (2, None)


def _ask(cluster: Cluster, broker: int, request: Any) -> Any:
    answers: list[Any] = []
    host = cluster.host(Process("client"))
    client = NetworkClient(host, f"broker-{broker}", "client", 10 * US_PER_SECOND)
    client.send(request, lambda answer, _: answers.append(answer))
    cluster.simulator.run_until(cluster.simulator.now_us + US_PER_SECOND)
    return answers[0]


def test_any_broker_finds_the_coordinator_of_a_group() -> None:
    cluster = start_cluster()
    number = partition_for("g", 5)
    for broker in range(3):
        answer = _ask(cluster, broker, FindCoordinatorRequest(CONSUMER_OFFSETS, "g"))
        assert (answer.error, answer.node) == (errors.NONE, number % 3)


def test_a_group_without_a_partition_leader_has_no_coordinator() -> None:
    cluster = start_cluster()
    answer = _ask(cluster, 0, FindCoordinatorRequest(TRANSACTION_STATE, "id"))
    assert (answer.error, answer.node) == (errors.COORDINATOR_NOT_AVAILABLE, -1)


def test_hash_tables_of_java_and_scala_order_assignors_differently() -> None:
    names = ("range", "roundrobin", "sticky", "cooperative-sticky")
    assert sorted(names, key=java_hash_place) == ["sticky", "range", "roundrobin", "cooperative-sticky"]
    assert sorted(names, key=scala_hash_place) == ["cooperative-sticky", "roundrobin", "range", "sticky"]
