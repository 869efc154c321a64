"""A served cluster remembers a bounded number of clients."""

import pytest
from confluent_kafka import Producer

from harrow.checks.finding import HELD
from harrow.live_cluster.serve import served_clients
from tests.live_cluster.serve.test_served_run import CALM, acked, run_with
from tests.patience import PATIENCE_S


def test_clients_beyond_the_limit_share_a_name_and_are_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served_clients, "_CLIENTS_MAX", 2)

    def use(servers: str) -> None:
        for client in "abcd":
            producer = Producer({"bootstrap.servers": servers, "client.id": client})
            producer.produce("t", client.encode())
            assert producer.flush(PATIENCE_S) == 0

    result = run_with(CALM, use)
    producers = {result.evidence.process_names[process] for process in result.evidence.producers}
    assert (result.verdict.status, acked(result)) == (HELD, 4)
    assert producers == {"a", "b", "more clients"}
