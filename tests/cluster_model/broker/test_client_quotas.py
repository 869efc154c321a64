"""Client quotas: how long clients are throttled and muted, and their answers (KIP-13, KIP-219)."""

from typing import Any

import pytest

from harrow.cluster_model.clients.network_client import NetworkClient
from harrow.cluster_model.protocol import (
    FetchRequest,
    FetchResponse,
    LeaderAndIsr,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    PartitionData,
    ProduceRequest,
)
from harrow.cluster_model.sim.connection import Connection, Exchange
from harrow.cluster_model.sim.process import Process
from harrow.cluster_model.topology import QuotaSpec
from tests.cluster_model.broker.test_broker_life import BrokerHarness
from tests.cluster_model.fakes import SECOND, FakeEndpoint, FakeHost, batch

KB = 1_000
PARTITION = "t-0"


class Leader(BrokerHarness):
    """Broker 1, the only replica and leader of t-0, with quotas for clients."""

    def __init__(self, *quotas: QuotaSpec, release: str = "2.4") -> None:
        super().__init__(release=release, quotas=quotas)
        state = LeaderAndIsrPartitionState(1, LeaderAndIsr(1, 1, (1,), 1), (1,))
        self.send(LeaderAndIsrRequest(0, 1, 5, {PARTITION: state}))
        self.host.responses.clear()
        self.connections: dict[str, Connection] = {}

    def ask(self, client: str, request: Any) -> None:
        connection = self.connections.get(client)
        if connection is None:
            number, endpoint = 1_000 + len(self.connections), FakeEndpoint(self.host.clock)
            connection = Connection(number, Process(client), Process("broker-1"), "client", endpoint)
            self.connections[client] = connection
        self.broker.receive_request(Exchange(connection, 1, request))

    def append(self, client: str, value: str, size: int, acks: int = 1) -> None:
        self.ask(client, ProduceRequest(acks, 30 * SECOND, {PARTITION: batch(value, size=size)}))

    def fetch(self, client: str, offset: int = 0, *, session: int = 0, epoch: int = 0) -> FetchResponse:
        partitions = {} if epoch else {PARTITION: PartitionData(offset, -1)}
        self.ask(client, FetchRequest(-1, 0, 1_000_000, partitions, session_id=session, session_epoch=epoch))
        answer: FetchResponse = self.answers[-1]
        return answer

    @property
    def answers(self) -> list[Any]:
        return [answer.body for answer in self.host.responses]


def test_a_client_above_its_quota_is_answered_at_once_and_then_muted() -> None:
    leader = Leader(QuotaSpec(producer_byte_rate=KB))
    leader.append("bulk", "m0", 10 * KB)
    leader.append("bulk", "m1", 5 * KB)
    assert [answer.throttle_us for answer in leader.answers] == [0, 5 * SECOND]
    assert leader.host.events_named("client_throttled") == [(1, "bulk", "Produce", 5 * SECOND)]
    leader.append("bulk", "m2", 1)
    leader.host.advance(5 * SECOND - 1)
    assert leader.log() == ["m0", "m1"]
    leader.host.advance(1)
    assert leader.log() == ["m0", "m1", "m2"]


def test_up_to_1_1_a_throttled_answer_is_delayed() -> None:
    leader = Leader(QuotaSpec(producer_byte_rate=KB), release="1.1")
    leader.append("bulk", "m0", 15 * KB)
    assert leader.log() == ["m0"]
    leader.append("bulk", "m1", 1)
    leader.host.advance(5 * SECOND - 1)
    assert leader.answers == []
    leader.host.advance(1)
    assert leader.answers[0].throttle_us == 0
    assert leader.log() == ["m0", "m1"]


def test_a_producer_with_acks_0_is_muted_too() -> None:
    leader = Leader(QuotaSpec(producer_byte_rate=KB))
    leader.append("bulk", "m0", 15 * KB, acks=0)
    leader.append("bulk", "m1", 1, acks=0)
    leader.host.advance(5 * SECOND - 1)
    assert leader.log() == ["m0"]
    leader.host.advance(1)
    assert leader.log() == ["m0", "m1"]


def test_the_default_quota_applies_to_each_client_unless_it_has_its_own() -> None:
    leader = Leader(QuotaSpec(producer_byte_rate=KB), QuotaSpec(client="rich", producer_byte_rate=100 * KB))
    for client in ("one", "another", "rich"):
        leader.append(client, client, 10 * KB)
    assert [answer.throttle_us for answer in leader.answers] == [0, 0, 0]
    for client in ("one", "rich", "reader"):
        leader.append(client, f"{client} again", 20 * KB)
    assert [answer.throttle_us for answer in leader.answers[3:]] == [20 * SECOND, 0, 0]


def test_a_consumer_quota_does_not_limit_produces() -> None:
    leader = Leader(QuotaSpec(consumer_byte_rate=KB))
    leader.append("bulk", "m0", 500 * KB)
    assert leader.answers[0].throttle_us == 0


def test_a_throttled_consumer_gets_no_records_and_uses_no_quota() -> None:
    leader = Leader(QuotaSpec(consumer_byte_rate=KB))
    leader.append("bulk", "m0", 15 * KB)
    for _ in range(3):
        answer = leader.fetch("consumer")
        assert (answer.partitions, answer.throttle_us, answer.session_id) == ({}, 5 * SECOND, 0)
        leader.host.advance(5 * SECOND)
    assert not leader.host.events_named("served")


def test_a_throttled_fetch_does_not_change_its_session() -> None:
    leader = Leader(QuotaSpec(consumer_byte_rate=KB))
    leader.append("bulk", "m0", 2 * KB)
    first = leader.fetch("consumer")
    assert first.session_id
    assert list(first.partitions) == [PARTITION]
    leader.append("bulk", "m1", 9 * KB)
    rejected = leader.fetch("consumer", session=first.session_id, epoch=1)
    assert (rejected.partitions, rejected.session_id) == ({}, first.session_id)
    # The consumer has always fetched from offset 0, and got m0 once.
    assert rejected.throttle_us == 3 * SECOND
    leader.host.advance(20 * SECOND)
    retried = leader.fetch("consumer", session=first.session_id, epoch=2)
    assert retried.throttle_us == SECOND


def test_up_to_1_1_a_throttled_consumer_gets_its_records_late() -> None:
    leader = Leader(QuotaSpec(consumer_byte_rate=KB), release="1.1")
    leader.append("bulk", "m0", 15 * KB)
    leader.host.responses.clear()
    leader.ask("consumer", FetchRequest(-1, 0, 1_000_000, {PARTITION: PartitionData(0, -1)}, session_epoch=0))
    assert leader.answers == []
    leader.host.advance(5 * SECOND)
    assert [len(answer.partitions[PARTITION].batches) for answer in leader.answers] == [1]


@pytest.mark.parametrize(("release", "batches"), [("2.4", 0), ("2.8", 5)])
def test_since_2_5_a_consumer_gets_at_most_a_quota_window_at_once(release: str, batches: int) -> None:
    """KAFKA-9677: before, an answer could exceed the quota forever."""
    leader = Leader(QuotaSpec(consumer_byte_rate=KB), release=release)
    for number in range(20):
        leader.append("bulk", f"m{number}", 2 * KB)
    answer = leader.fetch("consumer")
    assert sum(len(fetched.batches) for fetched in answer.partitions.values()) == batches
    assert bool(answer.throttle_us) is (batches == 0)


def test_a_throttled_client_is_not_ready_until_the_throttle_ends_or_its_connection_closes() -> None:
    host = FakeHost()
    client = NetworkClient(host, "broker-1", "client", 30 * SECOND)
    client.send(FetchRequest(-1, 0, 1, {}), lambda *_: None)
    client.throttle(5 * SECOND)
    assert not client.is_usable()
    host.advance(5 * SECOND)
    assert client.is_usable()
    client.throttle(5 * SECOND)
    client.disconnect()
    assert client.is_usable()
