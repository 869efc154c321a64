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
class Question(Request):
    api: ClassVar[str] = "Fetch"
    text: str


@dataclass(frozen=True)
class Answered:
    api: ClassVar[str] = "Fetch"
    text: str


class Asker:
    """A network client on a fake host, and the answers that it has handed on."""

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
                Question(text), lambda answer, context: self.completed.append((context, answer)), text
            )


def test_a_connection_is_opened_on_demand_and_reused() -> None:
    asker = Asker()
    assert asker.host.connections == []
    asker.ask("a", "b")
    asker.client.send_without_answer(Question("c"))
    assert [sent.connection for sent in asker.host.sent] == [asker.host.connections[0]] * 3
    assert [(c.server.name, c.listener) for c in asker.host.connections] == [("broker-1", "client")]
    assert [sent.correlation_id for sent in asker.host.sent] == [0, 1, -1]


def test_answers_complete_the_requests_in_order_with_their_contexts() -> None:
    asker = Asker()
    asker.ask("a", "b")
    asker.host.take().answer("A")
    asker.host.take().answer("B")
    assert asker.completed == [("a", "A"), ("b", "B")]
    assert not asker.client.in_flight


def test_an_answer_out_of_order_closes_the_connection() -> None:
    asker = Asker()
    asker.ask("a", "b")
    asker.host.sent[1].answer("B")
    assert asker.completed == [("a", None), ("b", None)]
    assert asker.host.closed == [asker.host.connections[0]]
    assert asker.disconnects == 1


def test_a_second_answer_is_ignored() -> None:
    asker = Asker()
    asker.ask("a", "b", "c")
    first = asker.host.sent[0]
    first.answer("A")
    first.answer("A again")
    asker.host.sent[1].answer("B")
    asker.host.sent[2].answer("C")
    first.answer("A once more")
    assert asker.completed == [("a", "A"), ("b", "B"), ("c", "C")]
    assert asker.host.closed == []


def test_messages_that_the_server_pushes_reach_the_callback() -> None:
    asker = Asker()
    asker.ask("a")
    connection = asker.host.connections[0]
    asker.client.receive_response(Reply(connection, PUSHED, Answered("event")))
    assert asker.pushed == [Answered("event")]
    assert asker.completed == []


@pytest.mark.parametrize("ends_by", ["lost", "disconnect", "timeout"])
def test_the_end_of_a_connection_fails_the_requests_in_flight_oldest_first(ends_by: str) -> None:
    asker = Asker()
    asker.ask("a", "b")
    if ends_by == "lost":
        asker.host.sent[0].lose()
    elif ends_by == "disconnect":
        asker.client.disconnect()
    else:
        asker.host.advance(TIMEOUT_US)
    assert asker.completed == [("a", None), ("b", None)]
    assert asker.disconnects == 1
    assert asker.host.closed == ([] if ends_by == "lost" else [asker.host.connections[0]])
    asker.ask("c")
    assert asker.host.sent[-1].connection is asker.host.connections[1]


def test_answers_and_losses_of_a_former_connection_are_ignored() -> None:
    asker = Asker()
    asker.ask("a")
    old = asker.host.take()
    asker.client.disconnect()
    asker.ask("b")
    old.answer("A")
    asker.client.receive_response(Reply(old.connection, PUSHED, Answered("event")))
    asker.client.connection_lost(old.connection)
    assert (asker.completed, asker.pushed) == ([("a", None)], [])
    asker.host.take().answer("B")
    assert asker.completed[-1] == ("b", "B")


def test_requests_in_flight_are_forgotten_after_close() -> None:
    asker = Asker()
    asker.ask("a")
    asker.client.close()
    asker.host.sent[0].answer("A")
    asker.host.advance(2 * TIMEOUT_US)
    assert asker.completed == []
    assert asker.disconnects == 0
    assert asker.host.closed == [asker.host.connections[0]]


def test_a_timeout_counts_from_the_oldest_unanswered_request() -> None:
    asker = Asker(timeout_us=10 * MS)
    asker.ask("a")
    asker.host.advance(6 * MS)
    asker.ask("b")
    asker.host.sent[0].answer("A")
    asker.host.advance(9 * MS)  # 15: b was sent at 6
    assert asker.completed == [("a", "A")]
    asker.host.advance(MS)
    assert asker.completed == [("a", "A"), ("b", None)]


def test_a_request_sent_long_after_the_first_has_its_own_timeout() -> None:
    asker = Asker(timeout_us=10 * MS)
    asker.ask("a")
    asker.host.take().answer("A")
    asker.host.advance(500 * MS)
    asker.ask("b")
    asker.host.advance(10 * MS - 1)
    assert ("b", None) not in asker.completed
    asker.host.advance(1)
    assert asker.completed[-1] == ("b", None)


def test_a_request_sent_from_a_failure_callback_has_its_own_timeout() -> None:
    asker = Asker(timeout_us=10 * MS)

    def ask_again(_: Any, __: Any) -> None:
        asker.ask("again")

    asker.client.send(Question("a"), ask_again)
    asker.host.advance(10 * MS)
    assert asker.host.sent[-1].connection is asker.host.connections[1]
    asker.host.advance(10 * MS - 1)
    assert asker.completed == []
    asker.host.advance(1)
    assert asker.completed == [("again", None)]


def test_the_reconnect_backoff_doubles_up_to_its_maximum_and_restarts_after_an_answer() -> None:
    asker = Asker(backoff_us=50 * MS, backoff_max_us=1 * SECOND)
    waited = []
    for _ in range(7):
        asker.ask("a")
        assert asker.client.is_usable()
        asker.host.sent[-1].lose()
        assert not asker.client.is_usable()
        wait_us = asker.client.usable_at_us - asker.host.clock.now_us
        waited.append(wait_us // MS)
        asker.host.advance(wait_us - 1)
        assert not asker.client.is_usable()
        asker.host.advance(1)
    assert waited == [50, 100, 200, 400, 800, 1000, 1000]
    asker.ask("b")
    asker.host.sent[-1].answer("B")
    asker.ask("c")
    asker.host.sent[-1].lose()
    assert asker.client.usable_at_us - asker.host.clock.now_us == 50 * MS


@pytest.mark.parametrize(("backoff_us", "expected_us"), [(0, 0), (50 * MS, 50 * MS)])
def test_without_a_maximum_the_backoff_is_constant(backoff_us: int, expected_us: int) -> None:
    asker = Asker(backoff_us=backoff_us)
    for _ in range(3):
        asker.ask("a")
        asker.host.sent[-1].lose()
        assert asker.client.usable_at_us - asker.host.clock.now_us == expected_us
        asker.host.advance(expected_us)
