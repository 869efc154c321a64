"""A served cluster has the transactions of its release, and each client uses those it knows."""

from typing import Any, Final

import pytest
from kafka.protocol.metadata import ApiVersionsRequest

from harrow.cluster_model import errors, protocol
from harrow.cluster_model.coordinators import protocol as messages
from harrow.cluster_model.log.record_batch import RecordBatch
from harrow.live_cluster.wire.codec import exchange
from harrow.live_cluster.wire.connection import BrokerConnection
from tests.live_cluster.serve.test_served_run import run_with

CLUSTER: Final = """
name: transactions
kafka: "{}"
cluster: {{brokers: 1, topics: [{{name: t}}]}}
workload: {{producers: [{{name: unused}}], duration: 10s}}
{}
"""
WITHOUT_V2: Final = "behaviours: {transactions_v2: false}"


def use(release: str, client: Any, more: str = "") -> Any:
    """Run a client with a connection to the only broker of a served cluster; return the result."""

    def connect(servers: str) -> None:
        host, _, port = servers.partition(":")
        with BrokerConnection((host, int(port))) as connection:
            client(connection)

    return run_with(CLUSTER.format(release, more), connect, time_scale=10)


class Client:
    """A transactional producer of transactions v2 or of earlier ones."""

    def __init__(self, connection: BrokerConnection, *, uses_v2: bool) -> None:
        self.connection = connection
        self.uses_v2 = uses_v2
        self.sequence = 0
        self.producer = (-1, -1)

    def ask(self, request: Any) -> Any:
        return exchange(self.connection, request)

    def start(self) -> None:
        while True:
            answer = self.ask(protocol.InitProducerIdRequest("pay", 60_000_000))
            if answer.error == errors.NONE:
                self.producer = answer.producer_id, answer.producer_epoch
                return

    def write(self, value: str) -> str:
        batch = RecordBatch((value,), *self.producer, self.sequence, is_transactional=True)
        request = protocol.ProduceRequest(-1, 1_000_000, {"t-0": batch}, "pay", self.uses_v2)
        while (error := self.ask(request).partitions["t-0"][0]) == errors.NOT_ENOUGH_REPLICAS:
            pass  # The last transaction has no marker yet (CONCURRENT_TRANSACTIONS).
        self.sequence += error == errors.NONE
        return str(error)

    def end(self, *, committed: bool) -> messages.EndTxnResponse:
        request = messages.EndTxnRequest("pay", *self.producer, committed, self.uses_v2)
        answer = self.ask(request)
        assert isinstance(answer, messages.EndTxnResponse)
        return answer


@pytest.mark.parametrize(
    ("release", "more", "features"),
    [
        ("3.9", "", {}),
        ("4.0", "", {"transaction.version": 2, "group.version": 1}),
        ("4.4", "", {"transaction.version": 2, "group.version": 1}),
        ("4.3", WITHOUT_V2, {"transaction.version": 1, "group.version": 1}),
    ],
)
def test_clients_find_the_version_of_transactions_among_the_features(
    release: str, more: str, features: dict[str, int]
) -> None:
    def ask(connection: BrokerConnection) -> None:
        answer = connection.ask(ApiVersionsRequest[3]())
        finalized = {each.name: each.max_version_level for each in answer.finalized_features or ()}
        assert finalized == features
        assert answer.finalized_features_epoch >= 0

    use(release, ask, more)


def test_a_producer_of_transactions_v2_adds_no_partitions_and_gets_an_epoch_for_each_transaction() -> None:
    def ask(connection: BrokerConnection) -> None:
        client = Client(connection, uses_v2=True)
        client.start()
        for number in range(3):
            assert client.write(f"m{number}") == errors.NONE
            answer = client.end(committed=True)
            assert (answer.error, answer.producer_id) == (errors.NONE, client.producer[0])
            assert answer.producer_epoch == client.producer[1] + 1
            client.producer, client.sequence = (answer.producer_id, answer.producer_epoch), 0
        former = client.producer[0], client.producer[1] - 1
        late = messages.EndTxnRequest("pay", *former, committed=False, is_v2=True)
        assert client.write("m3") == errors.NONE
        assert client.ask(late).error == errors.PRODUCER_FENCED

    result = use("4.3", ask)
    outcomes = [(each.f, each.type) for each in result.evidence.operations]
    assert outcomes.count(("txn", "ok")) == 3
    assert len({each.process for each in result.evidence.operations if each.f == "txn"}) == 1


@pytest.mark.parametrize("more", ["", WITHOUT_V2])
def test_an_older_producer_adds_partitions_and_keeps_its_epoch(more: str) -> None:
    def ask(connection: BrokerConnection) -> None:
        client = Client(connection, uses_v2=False)
        client.start()
        assert client.write("early") == errors.TRANSACTION_ABORTABLE
        for number in range(2):
            add = messages.AddPartitionsToTxnRequest("pay", *client.producer, ("t-0",))
            while (error := client.ask(add).partitions["t-0"]) == errors.CONCURRENT_TRANSACTIONS:
                pass
            assert error == errors.NONE
            assert client.write(f"m{number}") == errors.NONE
            answer = client.end(committed=True)
            assert (answer.error, answer.producer_epoch) == (errors.NONE, -1)

    result = use("4.3", ask, more)
    assert [(each.f, each.type) for each in result.evidence.operations].count(("txn", "ok")) == 2


@pytest.mark.parametrize(
    ("version", "error"), [(10, errors.INVALID_TXN_STATE), (11, errors.TRANSACTION_ABORTABLE)]
)
def test_an_old_client_gets_an_error_that_it_knows(version: int, error: str) -> None:
    def ask(connection: BrokerConnection) -> None:
        client = Client(connection, uses_v2=False)
        client.start()
        batch = RecordBatch(("a",), *client.producer, 0, is_transactional=True)
        request = protocol.ProduceRequest(-1, 1_000_000, {"t-0": batch}, "pay")
        answer = exchange(connection, request, versions=(version,))
        assert answer.partitions["t-0"][0] == error

    use("4.3", ask)
