"""A client's connection to one server: answers in order, timeouts, reconnect backoff."""

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from harrow.cluster_model.clients.network_client import NetworkClient
from harrow.cluster_model.sim.connection import PUSHED, Reply
from harrow.cluster_model.sim.message import Request
from tests.cluster_model.fakes import MS, SECOND, FakeHost

TIMEOUT_US = 30 * SECOND


@dataclass(frozen=True)
class FakeRequest(Request):
    api: ClassVar[str] = "Fetch"
    text: str


@dataclass(frozen=True)
class FakeResponse:
    api: ClassVar[str] = "Fetch"
    text: str


class ClientHarness:
    """A network client on a fake host, and the answers that it has delivered."""

    def __init__(self, **options: Any) -> None:
        self.host = FakeHost()
        self.completed: list[tuple[str, Any]] = []
        self.pushed: list[Any] = []
        self.disconnects = 0
        self.client = NetworkClient(
            self.host,
            "broker-1",
            "client",
            options.pop("timeout_us", TIMEOUT_US),
            on_push=self.pushed.append,
            on_disconnect=self._disconnected,
            **options,
        )

    def _disconnected(self) -> None:
        self.disconnects += 1

    def ask(self, *texts: str) -> None:
        for text in texts:
            self.client.send(
                FakeRequest(text), lambda answer, context: self.completed.append((context, answer)), text
            )


def test_a_connection_is_opened_on_demand_and_reused() -> None:
    harness = ClientHarness()
    assert harness.host.connections == []
    harness.ask("a", "b")
    harness.client.send_without_answer(FakeRequest("c"))
    assert [sent.connection for sent in harness.host.sent] == [harness.host.connections[0]] * 3
    assert [(c.server.name, c.listener) for c in harness.host.connections] == [("broker-1", "client")]
    assert [sent.correlation_id for sent in harness.host.sent] == [0, 1, -1]


def test_answers_complete_the_requests_in_order_with_their_contexts() -> None:
    harness = ClientHarness()
    harness.ask("a", "b")
    harness.host.take().answer("A")
    harness.host.take().answer("B")
    assert harness.completed == [("a", "A"), ("b", "B")]
    assert not harness.client.in_flight


def test_an_answer_out_of_order_closes_the_connection() -> None:
    harness = ClientHarness()
    harness.ask("a", "b")
    harness.host.sent[1].answer("B")
    assert harness.completed == [("a", None), ("b", None)]
    assert harness.host.closed == [harness.host.connections[0]]
    assert harness.disconnects == 1


def test_a_second_answer_is_ignored() -> None:
    harness = ClientHarness()
    harness.ask("a", "b", "c")
    first = harness.host.sent[0]
    first.answer("A")
    first.answer("A again")
    harness.host.sent[1].answer("B")
    harness.host.sent[2].answer("C")
    first.answer("A once more")
    assert harness.completed == [("a", "A"), ("b", "B"), ("c", "C")]
    assert harness.host.closed == []


def test_messages_that_the_server_pushes_reach_the_callback() -> None:
    harness = ClientHarness()
    harness.ask("a")
    connection = harness.host.connections[0]
    harness.client.receive_response(Reply(connection, PUSHED, FakeResponse("event")))
    assert harness.pushed == [FakeResponse("event")]
    assert harness.completed == []


@pytest.mark.parametrize("ends_by", ["lost", "disconnect", "timeout"])
def test_the_end_of_a_connection_fails_the_requests_in_flight_oldest_first(ends_by: str) -> None:
    harness = ClientHarness()
    harness.ask("a", "b")
    if ends_by == "lost":
        harness.host.sent[0].lose()
    elif ends_by == "disconnect":
        harness.client.disconnect()
    else:
        harness.host.advance(TIMEOUT_US)
    assert harness.completed == [("a", None), ("b", None)]
    assert harness.disconnects == 1
    assert harness.host.closed == ([] if ends_by == "lost" else [harness.host.connections[0]])
    harness.ask("c")
    assert harness.host.sent[-1].connection is harness.host.connections[1]


def test_answers_and_losses_of_a_former_connection_are_ignored() -> None:
    harness = ClientHarness()
    harness.ask("a")
    old = harness.host.take()
    harness.client.disconnect()
    harness.ask("b")
    old.answer("A")
    harness.client.receive_response(Reply(old.connection, PUSHED, FakeResponse("event")))
    harness.client.connection_lost(old.connection)
    assert (harness.completed, harness.pushed) == ([("a", None)], [])
    harness.host.take().answer("B")
    assert harness.completed[-1] == ("b", "B")


def test_a_closed_client_drops_its_requests_in_flight() -> None:
    harness = ClientHarness()
    harness.ask("a")
    harness.client.close()
    harness.host.sent[0].answer("A")
    harness.host.advance(2 * TIMEOUT_US)
    assert harness.completed == []
    assert harness.disconnects == 0
    assert harness.host.closed == [harness.host.connections[0]]


def test_a_timeout_counts_from_the_oldest_unanswered_request() -> None:
    harness = ClientHarness(timeout_us=10 * MS)
    harness.ask("a")
    harness.host.advance(6 * MS)
    harness.ask("b")
    harness.host.sent[0].answer("A")
    harness.host.advance(9 * MS)  # 15: b was sent at 6
    assert harness.completed == [("a", "A")]
    harness.host.advance(MS)
    assert harness.completed == [("a", "A"), ("b", None)]


def test_a_request_sent_long_after_the_first_has_its_own_timeout() -> None:
    harness = ClientHarness(timeout_us=10 * MS)
    harness.ask("a")
    harness.host.take().answer("A")
    harness.host.advance(500 * MS)
    harness.ask("b")
    harness.host.advance(10 * MS - 1)
    assert ("b", None) not in harness.completed
    harness.host.advance(1)
    assert harness.completed[-1] == ("b", None)


def test_a_request_sent_from_a_failure_callback_has_its_own_timeout() -> None:
    harness = ClientHarness(timeout_us=10 * MS)

    def ask_again(_: Any, __: Any) -> None:
        harness.ask("again")

    harness.client.send(FakeRequest("a"), ask_again)
    harness.host.advance(10 * MS)
    assert harness.host.sent[-1].connection is harness.host.connections[1]
    harness.host.advance(10 * MS - 1)
    assert harness.completed == []
    harness.host.advance(1)
    assert harness.completed == [("again", None)]


def test_the_reconnect_backoff_doubles_up_to_its_maximum_and_restarts_after_an_answer() -> None:
    harness = ClientHarness(backoff_us=50 * MS, backoff_max_us=1 * SECOND)
    waited = []
    for _ in range(7):
        harness.ask("a")
        assert harness.client.is_usable()
        harness.host.sent[-1].lose()
        assert not harness.client.is_usable()
        wait_us = harness.client.usable_at_us - harness.host.clock.now_us
        waited.append(wait_us // MS)
        harness.host.advance(wait_us - 1)
        assert not harness.client.is_usable()
        harness.host.advance(1)
    assert waited == [50, 100, 200, 400, 800, 1000, 1000]
    harness.ask("b")
    harness.host.sent[-1].answer("B")
    harness.ask("c")
    harness.host.sent[-1].lose()
    assert harness.client.usable_at_us - harness.host.clock.now_us == 50 * MS


@pytest.mark.parametrize(("backoff_us", "expected_us"), [(0, 0), (50 * MS, 50 * MS)])
def test_without_a_maximum_the_backoff_is_constant(backoff_us: int, expected_us: int) -> None:
    harness = ClientHarness(backoff_us=backoff_us)
    for _ in range(3):
        harness.ask("a")
        harness.host.sent[-1].lose()
        assert harness.client.usable_at_us - harness.host.clock.now_us == expected_us
        harness.host.advance(expected_us)
