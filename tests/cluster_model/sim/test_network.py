"""A simulated network orders, delays, cuts and drops messages, and closes connections."""

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from harrow.cluster_model.sim.choices import Choices
from harrow.cluster_model.sim.connection import Connection
from harrow.cluster_model.sim.message_rule import ACTIONS, DELAY, DROP, DUPLICATE, HOLD, RESET, MessageRule
from harrow.cluster_model.sim.network import Network
from harrow.cluster_model.sim.process import Process
from harrow.cluster_model.sim.simulator import Simulator
from harrow.cluster_model.topology import NetworkSpec
from harrow.cluster_model.trace import Trace
from harrow.cluster_model.zookeeper.service.protocol import (
    Create,
    GetData,
    WatchEvent,
    ZooKeeperRequest,
    ZooKeeperResponse,
    ZooKeeperResult,
)
from tests.cluster_model.fakes import FakeEndpoint, FakeServerEndpoint
from tests.recorded_choices import recorded_choices

LATENCY_US = 100
ANSWERED = 10_000


@dataclass(frozen=True)
class Body:
    """A message of an API; compares by its text."""

    text: str
    api: str = "Fetch"


@dataclass(frozen=True)
class Other:
    api: ClassVar[str] = "Produce"
    text: str = "other"


class NetworkHarness:
    """A client and a server with a network between them whose latency is 100 us."""

    def __init__(
        self,
        latency_max_us: int = LATENCY_US,
        seed: int | None = None,
        bytes_per_second: int | None = None,
    ) -> None:
        self.simulator = Simulator()
        self.trace = Trace(self.simulator)
        choices = recorded_choices({}) if seed is None else Choices.from_seed(seed)
        spec = NetworkSpec(
            latency_min_us=LATENCY_US,
            latency_max_us=latency_max_us,
            bytes_per_second=bytes_per_second,
        )
        self.network = Network(self.simulator, choices, spec, self.trace)
        self.client_process, self.server_process = Process("client"), Process("server")
        self.client, self.server = FakeEndpoint(self.simulator), FakeServerEndpoint(self.simulator)
        self.network.listen(self.server_process, self.server)
        self.sent = 0

    def connect(self, listener: str = "listener") -> Connection:
        return self.network.connect(self.client_process, "server", listener, self.client)

    def ask(self, connection: Connection, *texts: str) -> None:
        for text in texts:
            self.network.send_request(connection, self.sent, Body(text))
            self.sent += 1

    def reply(self, connection: Connection, *texts: str, correlation_id: int = 0) -> None:
        for text in texts:
            self.network.send_response(connection, correlation_id, Body(text))

    def rule(self, action: str, **options: Any) -> MessageRule:
        rule = MessageRule(name="rule", action=action, strike=7, **options)
        self.network.add_rule(rule)
        return rule

    def run(self, duration_us: int = ANSWERED) -> None:
        self.simulator.run_until(self.simulator.now_us + duration_us)

    def server_received(self) -> list[str]:
        return [body if isinstance(body, str) else body.text for body in self.server.bodies()]

    def client_received(self) -> list[str]:
        return [body if isinstance(body, str) else body.text for body in self.client.bodies()]


def test_messages_take_the_latency_and_keep_their_order() -> None:
    net = NetworkHarness()
    connection = net.connect()
    net.ask(connection, "a", "b")
    net.reply(connection, "x")
    net.run()
    assert net.server.received == [(100, Body("a")), (101, Body("b"))]
    assert net.client.received == [(100, Body("x"))]


@pytest.mark.parametrize("disturbed", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_a_connection_keeps_its_order_whatever_the_latency(seed: int, disturbed: bool) -> None:
    net = NetworkHarness(latency_max_us=5_000, seed=seed)
    if disturbed:
        net.network.cut("somebody", "else")
    one, other = net.connect(), net.connect()
    for number in range(50):
        net.ask(one, f"1:{number}")
        net.ask(other, f"2:{number}")
        net.reply(one, str(number))
        net.simulator.run_until(net.simulator.now_us + 50)
    net.run(20_000)
    received = net.server_received()
    for prefix in ("1:", "2:"):
        assert [text for text in received if text.startswith(prefix)] == [f"{prefix}{n}" for n in range(50)]
    assert net.client_received() == [str(n) for n in range(50)]
    # Two connections are not ordered between each other.
    assert received != [f"{c}:{n}" for n in range(50) for c in (1, 2)]
    latest = max(at_us for at_us, _ in net.server.received)
    assert latest <= 49 * 50 + 5_000 + 50


# Rules for single messages


def test_a_rule_for_a_znode_matches_messages_about_it_or_its_descendants() -> None:
    net = NetworkHarness()
    connection = net.connect()
    rule = net.rule(DROP, znode="/a", skip=1, count=1)
    watch = WatchEvent("/a", children=True)
    other = ZooKeeperRequest(1, (GetData("/ab"), GetData("/")))
    read = ZooKeeperRequest(1, (GetData("/b"), GetData("/a/b")))
    for body in (Body("a"), other, watch, read, watch):
        net.network.send_request(connection, 0, body)
    net.run()
    assert net.server.bodies() == [Body("a"), other, watch, watch]
    assert (rule.match_count, rule.applied_count) == (2, 1)


def test_an_answer_is_about_the_requested_and_the_created_znodes() -> None:
    asked = ZooKeeperRequest(1, (Create("/changes/change_", sequential=True),))
    created = ZooKeeperResponse("OK", (ZooKeeperResult("OK", path="/changes/change_0000000000"),), asked)
    assert created.znodes == ("/changes/change_", "/changes/change_0000000000")
    assert ZooKeeperResponse("OK", ()).znodes == ()


@pytest.mark.parametrize(
    ("action", "received"),
    [
        (HOLD, []),
        (DROP, ["b", "c"]),
        (DELAY, ["a", "b", "c"]),
        (DUPLICATE, ["a", "a", "b", "c"]),
        (RESET, ["closed"]),
    ],
)
def test_a_rule_for_requests_also_delays_those_behind_a_match(action: str, received: list[str]) -> None:
    net = NetworkHarness()
    connection = net.connect()
    net.rule(action, count=1, delay_us=500)
    net.network.send_request(connection, 0, Body("a"))
    if connection.is_open:
        net.ask(connection, "b", "c")
    net.run()
    assert net.server_received() == received
    assert net.client_received() == (["lost"] if action == RESET else [])
    if action == DUPLICATE:
        times_us = [at_us for at_us, _ in net.server.received]
        assert times_us == sorted(set(times_us)), "the second copy arrives after the first"
    if action == DELAY:
        # Later messages of the same connection wait, and do not overtake it.
        assert [at_us for at_us, _ in net.server.received] == [600, 601, 602]


@pytest.mark.parametrize(
    ("action", "received"),
    [
        (HOLD, []),
        (DROP, ["y"]),
        (DELAY, ["x", "y"]),
        (DUPLICATE, ["x", "x", "y"]),
        (RESET, ["lost"]),
    ],
)
def test_a_rule_acts_on_responses(action: str, received: list[str]) -> None:
    net = NetworkHarness()
    connection = net.connect()
    net.ask(connection, "a")
    net.run()
    net.rule(action, kind="response", count=1, delay_us=500)
    net.reply(connection, "x", "y")
    net.run()
    assert net.client_received() == received
    assert net.server_received() == (["a", "closed"] if action == RESET else ["a"])


@pytest.mark.parametrize("action", ACTIONS)
def test_a_rule_does_not_affect_the_other_direction_or_other_connections(action: str) -> None:
    net = NetworkHarness()
    touched, other = net.connect(), net.connect()
    net.rule(action, kind="request", count=1, delay_us=5_000)
    net.network.send_request(touched, 0, Body("first"))
    net.ask(other, "other")
    net.reply(other, "answer")
    if action != RESET:
        net.reply(touched, "push")
    net.run(1_000)
    assert "other" in net.server_received()
    assert set(net.client_received()) - {"lost"} == ({"answer", "push"} if action != RESET else {"answer"})


def test_a_request_that_arrives_twice_is_answered_twice() -> None:
    """A client takes the first answer (see test_network_client)."""
    net = NetworkHarness()
    connection = net.connect()
    net.rule(DUPLICATE, kind="request", count=1)
    net.ask(connection, "a", "b")
    net.run()
    assert [message.correlation_id for message in net.server.messages] == [0, 0, 1]
    for message in net.server.messages:
        net.reply(connection, message.request.text, correlation_id=message.correlation_id)
    net.run()
    assert net.client_received() == ["a", "a", "b"]


@pytest.mark.parametrize("how", ["release", "remove_rule", "restore_all"])
def test_held_messages_are_released_in_order(how: str) -> None:
    net = NetworkHarness()
    connection = net.connect()
    rule = net.rule(HOLD, count=1)
    net.ask(connection, "a", "b")
    net.run()
    net.ask(connection, "c")
    if how == "release":
        net.network.remove_rules(lambda rule: rule.name == "rule")
        assert not net.network.rules()
    elif how == "remove_rule":
        net.network.remove_rules(lambda each: each is rule)
    else:
        net.network.restore_all()
    net.ask(connection, "d")
    net.run()
    assert net.server_received() == ["a", "b", "c", "d"]
    assert net.server.received[0][0] == ANSWERED + LATENCY_US


def test_two_holding_rules_are_released_one_after_the_other() -> None:
    net = NetworkHarness()
    connection = net.connect()
    first = net.rule(HOLD, count=1)
    net.ask(connection, "a")
    second = MessageRule(name="second", action=HOLD, count=1)
    net.network.add_rule(second)
    net.ask(connection, "b", "c")
    net.network.remove_rules(lambda each: each is first)
    net.run()
    # A rule applies when a queued message is sent, so the second rule holds b.
    assert net.server_received() == ["a"]
    net.network.remove_rules(lambda rule: rule.name == "second")
    net.run()
    assert net.server_received() == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("options", "dropped"),
    [
        ({}, "abcd"),
        ({"count": 2}, "ab"),
        ({"skip": 1}, "bcd"),
        ({"skip": 1, "count": 2}, "bc"),
        ({"api": "Fetch"}, "abcd"),
        ({"api": "Produce"}, ""),
        ({"kind": "response"}, ""),
        ({"kind": "request"}, "abcd"),
        ({"senders": frozenset({"client"})}, "abcd"),
        ({"senders": frozenset({"server"})}, ""),
        ({"receivers": frozenset({"server", "x"})}, "abcd"),
        ({"receivers": frozenset({"x"})}, ""),
        ({"listener": "listener"}, "abcd"),
        ({"listener": "control"}, ""),
        ({"probability_millionths": 0}, ""),
    ],
)
def test_a_rule_matches_messages_by_all_its_fields(options: dict[str, Any], dropped: str) -> None:
    net = NetworkHarness()
    connection = net.connect()
    net.rule(DROP, **options)
    net.ask(connection, *"abcd")
    net.run()
    assert net.server_received() == [text for text in "abcd" if text not in dropped]
    assert [event[1:] for event in net.trace.events] == [
        ("message_rule", "rule", "drop", "Fetch", "request", "client", "server", 7)
    ] * len(dropped)


def test_the_first_rule_that_matches_acts_and_only_matches_count() -> None:
    net = NetworkHarness()
    connection = net.connect()
    net.rule(DROP, api="Produce", count=1)
    rule = net.rule(DROP, skip=1, count=1)
    net.network.send_request(connection, 0, Other())
    net.ask(connection, "a", "b", "c")
    net.run()
    assert net.server_received() == ["a", "c"]
    assert (rule.match_count, rule.applied_count, rule.is_exhausted()) == (2, 1, True)


def test_a_rule_with_a_probability_draws_for_each_match() -> None:
    net = NetworkHarness(seed=1)
    connection = net.connect()
    net.rule(DROP, probability_millionths=300_000)
    net.ask(connection, *(str(number) for number in range(1000)))
    net.run()
    assert 620 <= len(net.server_received()) <= 780


# Cut links


def test_a_link_cut_in_one_direction_stops_only_that_direction() -> None:
    net = NetworkHarness()
    connection = net.connect()
    connection.established = True
    net.network.cut("server", "client")
    net.ask(connection, "a")
    net.reply(connection, "x")
    net.run()
    assert net.server_received() == ["a"]
    assert net.client_received() == []
    net.network.restore("server", "client")
    net.run()
    assert net.client_received() == ["x"]


def test_messages_behind_a_cut_are_retransmitted_in_order() -> None:
    net = NetworkHarness()
    connection = net.connect()
    connection.established = True
    for ends in (("server", "client"), ("client", "server")):
        net.network.cut(*ends)
    net.ask(connection, "a", "b")
    net.reply(connection, "x")
    net.run()
    assert net.server_received() == net.client_received() == []
    net.network.restore("client", "server")
    net.ask(connection, "c")
    net.run()
    assert net.server_received() == ["a", "b", "c"]
    assert net.client_received() == []
    net.network.restore_all()
    net.run()
    assert net.client_received() == ["x"]


def test_a_link_that_is_cut_twice_is_restored_twice() -> None:
    net = NetworkHarness()
    connection = net.connect()
    net.network.cut("client", "server")
    net.network.cut("client", "server")
    net.ask(connection, "a")
    net.network.restore("client", "server")
    net.run()
    assert net.server_received() == []
    net.network.restore("client", "server")
    net.run()
    assert net.server_received() == ["a"]
    net.network.restore("client", "server")  # a third time has no effect
    net.ask(connection, "b")
    net.run()
    assert net.server_received() == ["a", "b"]


def test_a_message_in_flight_when_the_link_is_cut_arrives() -> None:
    net = NetworkHarness()
    connection = net.connect()
    net.ask(connection, "a")
    net.network.cut("client", "server")
    net.run()
    assert net.server_received() == ["a"]


def test_a_client_that_closes_behind_a_cut_drops_its_waiting_messages() -> None:
    net = NetworkHarness()
    connection = net.connect()
    net.network.cut("client", "server")
    net.ask(connection, "a")
    net.network.close(connection)
    again = net.connect()
    net.ask(again, "b")
    net.network.restore("client", "server")
    net.run()
    # The client's kernel drops the undelivered messages, and the FIN arrives.
    assert sorted(net.server_received()) == ["b", "closed"]


@pytest.mark.parametrize(("is_on_the_way", "received"), [(False, ["closed"]), (True, ["a", "b", "closed"])])
def test_a_held_message_arrives_although_its_client_has_given_up(
    is_on_the_way: bool, received: list[str]
) -> None:
    net = NetworkHarness()
    connection = net.connect()
    net.rule(HOLD, kind="request", count=1, is_on_the_way=is_on_the_way)
    net.ask(connection, "a", "b")
    net.network.close(connection)
    net.network.remove_rules(lambda rule: rule.name == "rule")
    net.run()
    assert net.server_received() == received
    net.reply(connection, "x")
    net.run()
    assert net.client_received() == []


def test_an_answer_to_a_closed_connection_is_dropped_when_the_link_is_restored() -> None:
    net = NetworkHarness()
    connection = net.connect()
    net.network.cut("server", "client")
    net.reply(connection, "x")
    net.network.close(connection)
    net.network.restore("server", "client")
    net.run()
    assert net.client_received() == []


# Closing


def test_a_servers_close_arrives_after_its_earlier_messages() -> None:
    net = NetworkHarness(latency_max_us=5_000, seed=2)
    connection = net.connect()
    net.reply(connection, "x", "y")
    net.network.close_by_server(connection)
    net.run()
    assert net.client_received() == ["x", "y", "lost"]
    assert not connection.is_open
    net.network.close_by_server(connection)
    net.reply(connection, "z")
    net.run()
    assert net.client_received() == ["x", "y", "lost"]


def test_a_clients_close_arrives_after_its_earlier_messages_and_ends_its_answers() -> None:
    net = NetworkHarness(latency_max_us=5_000, seed=2)
    connection = net.connect()
    net.ask(connection, "a", "b")
    net.reply(connection, "x")
    net.network.close(connection)
    net.network.close(connection)
    net.reply(connection, "y")
    net.run()
    assert net.server_received() == ["a", "b", "closed"]
    assert "lost" not in net.client_received()
    assert "y" not in net.client_received()


def test_a_fin_waits_behind_held_messages() -> None:
    net = NetworkHarness()
    connection = net.connect()
    net.rule(HOLD, kind="response", count=1)
    net.reply(connection, "x")
    net.network.close_by_server(connection)
    net.run()
    assert net.client_received() == []
    net.network.remove_rules(lambda rule: rule.name == "rule")
    net.run()
    assert net.client_received() == ["x", "lost"]


# Processes and machines that stop


def test_a_connection_to_a_process_that_is_down_is_refused() -> None:
    net = NetworkHarness()
    net.server_process.kill()
    net.ask(net.connect(), "a")
    net.run()
    assert net.client_received() == ["lost"]
    assert net.server_received() == []


def test_a_connection_opened_while_the_process_was_down_stays_refused() -> None:
    net = NetworkHarness()
    net.server_process.kill()
    connection = net.connect()
    net.server_process.start()
    net.ask(connection, "a")
    net.run()
    assert net.client_received() == ["lost"]


def test_a_process_that_dies_closes_its_connections_and_its_sent_messages_arrive() -> None:
    net = NetworkHarness()
    connection = net.connect()
    net.ask(connection, "a")
    net.reply(connection, "x")
    net.server_process.kill()
    net.network.process_died(net.server_process, power_loss=False)
    net.run()
    assert net.client_received() == ["x", "lost"]
    assert net.server_received() == []


def test_a_client_that_dies_closes_its_connections() -> None:
    net = NetworkHarness()
    connection = net.connect()
    net.ask(connection, "a")
    net.client_process.kill()
    net.network.process_died(net.client_process, power_loss=False)
    net.reply(connection, "x")
    net.run()
    assert net.server_received() == ["a", "closed"]
    assert net.client_received() == []


def test_the_next_incarnation_of_a_server_resets_the_connections_of_the_former_one() -> None:
    net = NetworkHarness()
    net.network.cut("server", "client")
    connection = net.connect()
    net.server_process.kill()
    net.network.process_died(net.server_process, power_loss=False)
    net.server_process.start()
    next_incarnation = FakeServerEndpoint(net.simulator)
    net.network.listen(net.server_process, next_incarnation)
    net.network.restore("server", "client")
    net.ask(connection, "a")
    net.run()
    assert net.client_received() == ["lost"]
    assert next_incarnation.bodies() == net.server.bodies() == []
    net.ask(net.connect(), "b")
    net.run()
    assert next_incarnation.bodies() == [Body("b")]


def test_a_started_process_refuses_connections_until_it_listens() -> None:
    net = NetworkHarness()
    net.server_process.kill()
    net.network.process_died(net.server_process, power_loss=False)
    net.server_process.start()
    net.network.add(net.server_process)
    net.ask(net.connect(), "a")
    net.run()
    assert (net.client_received(), net.server_received()) == (["lost"], [])
    net.network.listen(net.server_process, net.server)
    net.ask(net.connect(), "b")
    net.run()
    assert net.server.bodies() == [Body("b")]


def test_power_loss_is_silent_until_the_machine_boots() -> None:
    net = NetworkHarness()
    connection = net.connect()
    net.ask(connection, "a")
    net.server_process.kill(power_loss=True)
    net.network.process_died(net.server_process, power_loss=True)
    net.ask(connection, "b")
    net.ask(net.connect(), "c")
    net.run()
    assert net.client_received() == net.server_received() == []
    net.server_process.start()
    net.network.machine_booted(net.server_process)
    net.run()
    assert net.client_received() == ["lost", "lost"]


def test_a_machine_that_boots_does_not_reset_new_connections() -> None:
    net = NetworkHarness()
    net.server_process.kill(power_loss=True)
    net.network.process_died(net.server_process, power_loss=True)
    net.server_process.start()
    connection = net.connect()
    net.network.machine_booted(net.server_process)
    net.ask(connection, "a")
    net.run()
    assert net.client_received() == []
    assert net.server_received() == ["a"]


def test_a_client_that_loses_power_sends_no_close() -> None:
    net = NetworkHarness()
    net.connect()
    net.client_process.kill(power_loss=True)
    net.network.process_died(net.client_process, power_loss=True)
    net.run()
    assert net.server_received() == []


def test_a_reset_of_the_answer_breaks_the_connection_at_once() -> None:
    net = NetworkHarness()
    connection = net.connect()
    net.ask(connection, "a")
    net.run()
    net.rule(RESET, kind="response", count=1)
    net.reply(connection, "x")
    assert not connection.is_open
    net.run(LATENCY_US)
    assert net.client_received() == ["lost"]
    assert net.server_received() == ["a", "closed"]


def test_watched_messages_are_in_the_trace_and_closes_are_not() -> None:
    net = NetworkHarness()
    net.network.watch_messages()
    connection = net.connect()
    net.ask(connection, "a")
    net.reply(connection, "x")
    net.network.close(connection)
    net.run()
    assert [event[1:] for event in net.trace.events] == [
        ("message", "Fetch", "request", "client", "server"),
        ("message", "Fetch", "response", "server", "client"),
    ]


@pytest.mark.parametrize("cut", [("client", "server"), ("server", "client")])
def test_a_new_connection_needs_both_directions_of_its_link(cut: tuple[str, str]) -> None:
    net = NetworkHarness()
    net.network.cut(*cut)
    connection = net.connect()
    net.ask(connection, "a")
    net.run()
    assert net.server_received() == []
    net.network.restore(*cut)
    net.run()
    assert net.server_received() == ["a"]


def test_an_old_connection_continues_in_the_direction_that_is_not_cut() -> None:
    net = NetworkHarness()
    connection = net.connect()
    net.ask(connection, "a")
    net.run()
    net.network.cut("server", "client")
    net.ask(connection, "b")
    net.run()
    assert net.server_received() == ["a", "b"]


def test_a_process_that_stops_listening_closes_accepted_connections_and_refuses_others() -> None:
    net = NetworkHarness()
    accepted = net.connect()
    net.ask(accepted, "before")
    net.simulator.run_until(ANSWERED)
    net.reply(accepted, "answer")
    net.network.stop_listening(net.server_process)
    net.simulator.run_until(2 * ANSWERED)
    assert net.client.bodies() == [Body("answer"), "lost"]
    refused = net.connect()
    net.ask(refused, "after")
    net.simulator.run_until(3 * ANSWERED)
    assert net.client.lost == [accepted.id, refused.id]
    assert net.server.bodies() == [Body("before")]
    net.network.listen(net.server_process, net.server)
    net.ask(net.connect(), "again")
    net.simulator.run_until(4 * ANSWERED)
    assert net.server.bodies() == [Body("before"), Body("again")]


def test_a_process_that_stops_listening_keeps_the_connections_it_opened() -> None:
    net = NetworkHarness()
    connection = net.connect()
    net.network.stop_listening(net.client_process)
    net.ask(connection, "request")
    net.simulator.run_until(ANSWERED)
    assert (net.server.bodies(), net.client.lost) == ([Body("request")], [])
