"""A program strikes faults on a served cluster at moments of its own, and asks for the verdict."""

import json
import socket
import struct
from collections.abc import Callable, Sequence
from contextlib import closing
from http import HTTPStatus
from http.client import HTTPConnection
from threading import Thread
from typing import Any, Final

import pytest
from confluent_kafka import Producer

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.run.run_result import RunResult
from harrow.checks.finding import HELD
from harrow.live_cluster.serve.ports.control_port import ControlAnswer, ControlPort
from harrow.live_cluster.serve.recording.request_recording import RequestRecording
from harrow.live_cluster.serve.run_control import handler_after
from harrow.live_cluster.serve.served_run import serve
from harrow.live_cluster.wire.client_requests import FRAME_MAX
from harrow.live_cluster.wire.codec import Address
from harrow.live_cluster.wire.connection import BrokerConnection
from tests.live_cluster.serve.answers.test_scram_credentials import alteration, described, upsertion
from tests.patience import PATIENCE_S, act_until

CAMPAIGN: Final = """
name: controlled
kafka: "4.3"
cluster: {brokers: 3, topics: [{name: t, replication_factor: 3}]}
workload: {producers: [{name: app}], duration: 60s}
"""
VERDICT: Final = ControlAnswer(HTTPStatus.OK, {"verdict": "from the command line"})


class Control:
    """A client of a control port."""

    def __init__(self, url: str, servers: str) -> None:
        self.servers = servers
        self._url = url

    def request(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        host, _, port = self._url.rpartition("/")[2].partition(":")
        connection = HTTPConnection(host, int(port), timeout=PATIENCE_S)
        connection.request(method, path, body if isinstance(body, str | None) else json.dumps(body))
        with connection.getresponse() as response:
            return response.status, json.load(response)

    def strike(self, **actions: Any) -> list[dict[str, Any]]:
        status, answer = self.request("POST", "/faults", actions)
        assert status == HTTPStatus.CREATED, answer
        faults: list[dict[str, Any]] = answer["faults"]
        return faults

    def state(self) -> Any:
        status, state = self.request("GET", "/state")
        assert status == HTTPStatus.OK
        return state


def controlled(
    use: Callable[[Control], None], text: str = CAMPAIGN, recording: RequestRecording | None = None
) -> RunResult:
    """Serve a campaign while *use* controls it."""
    (plan,) = load_text(text, "c.yaml").plans
    errors: list[BaseException] = []
    threads: list[Thread] = []

    def start(addresses: Sequence[Address]) -> None:
        control = Control(port.url, ",".join(f"{host}:{number}" for host, number in addresses))

        def run() -> None:
            try:
                use(control)
            except BaseException as error:  # noqa: BLE001 - raised again in the thread of the test
                errors.append(error)

        threads.append(Thread(target=run))
        threads[0].start()

    with closing(ControlPort(0)) as port:
        result = serve(
            plan,
            0,
            host="127.0.0.1",
            ports=[0] * len(plan.cluster.brokers),
            time_scale=1.0,
            on_ready=start,
            is_over=lambda _: not threads[0].is_alive(),
            control=port,
            recording=recording,
        )
        port.answer_waiting(VERDICT)
        port.handler = handler_after(VERDICT)
        port.serve_while(threads[0].is_alive)
    for error in errors:
        raise error
    return result


def produce(servers: str, client_id: str = "app") -> None:
    settings = {"client.id": client_id, "enable.idempotence": True, "retry.backoff.ms": 10}
    producer = Producer({"bootstrap.servers": servers, **settings})
    producer.produce("t", b"v")
    assert producer.flush(PATIENCE_S) == 0


def test_a_fault_strikes_and_ends_when_a_program_asks_for_it() -> None:
    def use(control: Control) -> None:
        leader = control.state()["partitions"]["t-0"]["leader"]
        (crash,) = control.strike(broker_crash={"broker": "leader of t-0"})
        assert (crash["fault"], crash["broker"]) == ("broker_crash", leader)
        assert control.state()["faults"] == [crash]
        assert [each["state"] for each in control.state()["brokers"] if each["id"] == leader] == ["down"]
        produce(control.servers)
        assert control.request("DELETE", f"/faults/{crash['id']}") == (200, {"ended": [crash]})
        state = control.state()
        assert state["faults"] == []
        assert {each["state"] for each in state["brokers"]} == {"up"}
        assert state["partitions"]["t-0"]["leader"] != leader

    result = controlled(use)
    assert (result.verdict.status, [fault.fault for fault in result.faults]) == (HELD, ["broker_crash"])


def test_deleting_all_faults_ends_each_once() -> None:
    def use(control: Control) -> None:
        control.strike(partition={"between": 0, "and": [1]})
        control.strike(broker_pause={"broker": 2})
        status, answer = control.request("DELETE", "/faults")
        assert (status, [each["fault"] for each in answer["ended"]]) == (200, ["partition", "broker_pause"])
        assert control.request("DELETE", "/faults") == (200, {"ended": []})

    trace = controlled(use).evidence.trace
    assert [event[1] for event in trace].count("fault_ended") == 2


@pytest.mark.parametrize("one_way", [True, False])
def test_no_change_that_the_server_makes_itself_passes_a_cut_link(one_way: bool) -> None:
    change = alteration(upsertion("ann"))

    def use(control: Control) -> None:
        cut, other = (connection_to(control, broker) for broker in (0, 1))
        with cut, other:
            assert described(cut) == described(other) == {}
            control.strike(partition={"between": "app", "and": [0], "one_way": one_way})
            cut.send(change)
            for _ in range(10):  # For each request, harrow reads from every socket.
                assert described(other) == {}
            assert not cut.has_answered(0)
            control.request("DELETE", "/faults")
            cut.receive(change)
            assert list(described(other)) == ["ann"]

    controlled(use)


def connection_to(control: Control, broker: int) -> BrokerConnection:
    host, _, port = control.state()["brokers"][broker]["address"].partition(":")
    return BrokerConnection((host, int(port)), client_id="app")


def test_a_paused_broker_does_not_read_from_its_sockets() -> None:
    """A client whose requests no longer fit into the buffers of the system has to wait."""

    def use(control: Control) -> None:
        control.strike(broker_pause={"broker": 0})
        host, _, port = control.state()["brokers"][0]["address"].partition(":")
        with socket.create_connection((host, int(port))) as client:
            client.setblocking(False)
            client.send(struct.pack(">i", FRAME_MAX))
            sent = refused = 0
            # With each request to its control port, harrow reads from every socket that it watches.
            while refused < 10 and sent < FRAME_MAX // 2:
                try:
                    sent += client.send(bytes(1 << 20))
                    refused = 0
                except BlockingIOError:
                    control.state()
                    refused += 1
            assert sent < FRAME_MAX // 2

    controlled(use)


def test_a_fault_with_a_duration_ends_once_even_if_it_is_ended_early() -> None:
    def use(control: Control) -> None:
        (cut,) = control.strike(partition={"between": 0, "and": [1], "duration": "300ms"})
        assert control.request("DELETE", f"/faults/{cut['id']}")[0] == 200
        assert control.request("DELETE", f"/faults/{cut['id']}")[0] == 404
        act_until(lambda: control.state()["time_ms"] >= cut["at_ms"] + 400)

    trace = controlled(use).evidence.trace
    assert [event[1] for event in trace].count("fault_ended") == 1


def test_a_request_may_release_what_an_earlier_one_holds_up() -> None:
    def use(control: Control) -> None:
        unknown = control.request("POST", "/faults", {"release": {"id": "held"}})
        assert "unknown message rule `held`" in unknown[1]["error"]
        control.strike(message={"action": "hold", "api": "Produce", "kind": "response", "id": "held"})
        control.strike(release={"id": "held"})
        produce(control.servers)

    assert controlled(use).verdict.status == HELD


def test_a_fault_that_has_struck_as_often_as_it_may_is_no_longer_in_force() -> None:
    def use(control: Control) -> None:
        control.strike(network_ack_loss={"count": 1})
        assert [each["fault"] for each in control.state()["faults"]] == ["network_ack_loss"]
        produce(control.servers)
        assert control.state()["faults"] == []

    assert controlled(use).verdict.status == HELD


def test_a_fault_may_name_a_client_that_the_campaign_does_not_know() -> None:
    def use(control: Control) -> None:
        loss = {"network_ack_loss": {"client": "mine", "count": 1}}
        assert "unknown client `mine`" in control.request("POST", "/faults", loss)[1]["error"]
        produce(control.servers, "mine")
        produce(control.servers, "no name: of a campaign")
        control.strike(**loss)
        produce(control.servers, "mine")

    result = controlled(use)
    kinds = [event[1] for event in result.evidence.trace]
    assert (result.verdict.status, kinds.count("message_rule")) == (HELD, 1)


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ('{"broker_crash": {"brokr": 1}}', 400, "request:1:19: unknown key `brokr`; did you mean `broker`?"),
        ('{\n"broker_crash": {"broker": 7}}', 400, "request:2:28: "),
        ('{"broker_crash": {"broker": 1}', 400, "request:1:31: not valid YAML"),
        ("", 400, "the body is empty: send a fault, as in "),
        (" \n", 400, "the body is empty: send a fault, as in "),
        ("[]", 400, "request:1:1: "),
        ("{}", 400, "request:1:1: "),
        ("7", 400, "request:1:1: "),
        ('{"send": "v"}', 400, "send: only the campaign's own clients do that"),
        ('{"client_pause": {"client": "app"}}', 400, "harrow can pause and kill only a program"),
        ('{"broker_crsh": {}}', 400, "unknown action or fault `broker_crsh`; did you mean `broker_crash`?"),
        ('{"expect": {"leader": {"t-0": 9}}}', 400, "request:1:"),
    ],
)
def test_a_mistake_is_answered_with_its_position(body: str, status: int, message: str) -> None:
    def use(control: Control) -> None:
        refused, answer = control.request("POST", "/faults", body)
        assert (refused, list(answer)) == (status, ["error"])
        assert message in answer["error"]

    controlled(use)


def test_a_fault_that_finds_nothing_to_act_on_is_a_conflict() -> None:
    def use(control: Control) -> None:
        control.strike(broker_crash={"broker": 0})
        refused = control.request("POST", "/faults", {"broker_crash": {"broker": 0}})
        assert refused == (409, {"error": "broker_crash found nothing to act on"})
        assert control.request("GET", "/faults")[0] == 404

    controlled(use)


def test_the_verdict_ends_the_cluster() -> None:
    def use(control: Control) -> None:
        produce(control.servers)
        assert control.request("POST", "/judge") == (200, VERDICT.document)
        assert control.request("POST", "/judge") == (200, VERDICT.document)
        assert control.request("GET", "/state")[0] == 409

    assert controlled(use).verdict.status == HELD
