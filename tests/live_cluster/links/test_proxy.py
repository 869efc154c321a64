"""Messages between processes pass a proxy one by one and in order, subject to the active faults."""

import asyncio
import socket
import socketserver
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest

from harrow.cluster_model.sim.choices import SeededStream
from harrow.cluster_model.sim.link_quality import LinkQuality
from harrow.cluster_model.sim.message_rule import (
    DELAY,
    DROP,
    DUPLICATE,
    HOLD,
    REQUEST,
    RESET,
    RESPONSE,
    MessageRule,
)
from harrow.live_cluster.links.frame import REPLICATION, RequestHeader, client_id_of
from harrow.live_cluster.links.link_faults import LinkFaults
from harrow.live_cluster.links.proxy import MessageObserver, ProxiedLink, Proxies
from harrow.live_cluster.processes.ports import LOOPBACK, Ports
from tests.patience import PATIENCE_S

PRODUCE, METADATA = 0, 3
SILENT = b"no answer, please"
BYE = b"hang up, please"
NONSENSE = b"talk nonsense, please"
SERVER = "broker-1"
P, Q = client_id_of("p"), client_id_of("q")
NOTHING: list[int] = []


def wait_until(holds: Callable[[], object]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.001)


def received(connection: socket.socket, size: int) -> bytes:
    """Return a number of bytes, or fewer if the connection ends."""
    data = b""
    with suppress(ConnectionResetError):
        while len(data) < size and (more := connection.recv(size - len(data))):
            data += more
    return data


def received_frame(connection: socket.socket) -> bytes | None:
    length = received(connection, 4)
    return received(connection, *struct.unpack(">i", length)) if length else None


def framed(frame: bytes) -> bytes:
    return struct.pack(">i", len(frame)) + frame


class Server(socketserver.ThreadingTCPServer):
    """Answers requests with their correlation id and content, except for some special ones."""

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64  # With the default of 5, a connection among many is retried after a second.

    def __init__(self, port: int) -> None:
        super().__init__((LOOPBACK, port), Conversation)
        self.frames: list[bytes] = []
        self.hung_up = 0
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    @property
    def correlation_ids(self) -> list[int]:
        """The correlation ids of the requests in the order of their arrival."""
        return [struct.unpack_from(">i", frame, 4)[0] for frame in list(self.frames)]


class Conversation(socketserver.BaseRequestHandler):
    server: Server

    def handle(self) -> None:
        with suppress(OSError):
            while frame := received_frame(self.request):
                self.server.frames.append(frame)
                if frame.endswith(BYE):
                    return
                if frame.endswith(NONSENSE):
                    self.request.sendall(framed(b"xx"))
                elif not frame.endswith(SILENT):
                    self.request.sendall(framed(frame[4:8] + frame))
        self.server.hung_up += 1


class Client:
    """A connection through a proxy."""

    def __init__(self, connection: socket.socket, client_id: str) -> None:
        self.connection = connection
        self._name = client_id.encode()

    def send(self, *correlation_ids: int, api: int = METADATA, body: bytes = b"") -> None:
        for correlation_id in correlation_ids:
            header = struct.pack(">hhih", api, 9, correlation_id, len(self._name)) + self._name
            self.connection.sendall(framed(header + body))

    def answer(self) -> int | None:
        """Return the correlation id of the next answer, or None at the end of the connection."""
        frame = received_frame(self.connection)
        if frame is None:
            return None
        assert frame[:4] == frame[8:12]
        return int.from_bytes(frame[:4], signed=True)

    def answers(self, count: int) -> list[int | None]:
        return [self.answer() for _ in range(count)]

    def ask(self, correlation_id: int, **request: Any) -> int | None:
        self.send(correlation_id, **request)
        return self.answer()

    def gets_no_answer(self) -> bool:
        self.connection.setblocking(False)
        try:
            return not self.connection.recv(1) and False
        except BlockingIOError:
            return True
        finally:
            self.connection.settimeout(PATIENCE_S)


class MessageLog(MessageObserver):
    """Notes each message that passes: its server, client, API and correlation id."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, str, int]] = []
        self.answers: list[tuple[str, str, str, int]] = []
        self.ended: list[ProxiedLink] = []

    def request_passed(self, link: ProxiedLink, header: RequestHeader, frame: bytes) -> None:
        assert struct.unpack_from(">i", frame, 4)[0] == header.correlation_id
        self.requests.append((link.server, link.client, header.api, header.correlation_id))

    def answer_passed(self, link: ProxiedLink, header: RequestHeader, frame: bytes) -> None:
        assert struct.unpack_from(">i", frame)[0] == header.correlation_id
        self.answers.append((link.server, link.client, header.api, header.correlation_id))

    def link_ended(self, link: ProxiedLink) -> None:
        self.ended.append(link)

    def unreadable(self, link: ProxiedLink, header: RequestHeader, error: Exception) -> None:
        raise AssertionError((link, header)) from error

    def answered(self, correlation_id: int) -> bool:
        return any(answer[3] == correlation_id for answer in list(self.answers))


class Network:
    """A server behind proxies."""

    def __init__(self, stack: ExitStack) -> None:
        self._open = stack
        self.ports = stack.enter_context(Ports())
        self.upstream = (LOOPBACK, self.ports.reserve())
        self.server = stack.enter_context(Server(self.upstream[1]))
        self.passed = MessageLog()
        self.matched: list[tuple[str, str, str, str]] = []
        faults = LinkFaults(SeededStream(1, "network"), lambda _, *message: self.matched.append(message))
        self.proxies = stack.enter_context(Proxies(faults, self.passed))
        self.port = self.ports.reserve()
        self.proxies.listen_for_broker(SERVER, self.port, self.upstream)
        self._other: Client | None = None
        self._others = 0

    def client(self, client_id: str = P, port: int | None = None) -> Client:
        connection = socket.create_connection((LOOPBACK, port or self.port), PATIENCE_S)
        return Client(self._open.enter_context(connection), client_id)

    def rule(self, action: str, *, api: str | None = "Metadata", **fields: Any) -> MessageRule:
        rule = MessageRule(name="r", action=action, api=api, **fields)
        self.proxies.in_loop(lambda faults: faults.add(rule))
        return rule

    def remove(self, rule: MessageRule) -> None:
        self.proxies.in_loop(lambda faults: faults.remove(rule))

    def cut(self, sender: str, receiver: str) -> None:
        self.proxies.in_loop(lambda faults: faults.cut(sender, receiver))

    def restore(self, sender: str, receiver: str) -> None:
        self.proxies.in_loop(lambda faults: faults.restore(sender, receiver))

    def flush(self) -> None:
        """Exchange requests on another connection, after which every earlier message has passed."""
        self._other = self._other or self.client(Q)
        for _ in range(3):
            self._others -= 1
            assert self._other.ask(self._others, api=PRODUCE) == self._others

    @property
    def arrived(self) -> list[int]:
        """The correlation ids of the requests that arrived, without the requests of `flush`."""
        return [each for each in self.server.correlation_ids if each > 0]


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the recorded delays of proxies that do not really sleep."""
    delays: list[float] = []

    async def sleep(delay_s: float) -> None:
        delays.append(delay_s)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    return delays


@pytest.fixture
def network(caplog: pytest.LogCaptureFixture) -> Iterator[Network]:
    with ExitStack() as stack:
        yield Network(stack)
    # However a connection ends, asyncio logs no error.
    logged = [record for when in ("call", "teardown") for record in caplog.get_records(when)]
    assert [record.getMessage() for record in logged if record.name == "asyncio"] == []


def test_requests_and_answers_pass_unchanged(network: Network) -> None:
    client = network.client()
    body = bytes(range(256)) * 4096
    client.send(1, body=body)
    frame = received_frame(client.connection)
    assert frame == struct.pack(">i", 1) + network.server.frames[0]
    assert network.server.frames[0].endswith(P.encode() + body)
    client.send(2, 3)
    assert client.answers(2) == [2, 3]


def test_messages_are_observed_with_both_process_names(network: Network) -> None:
    network.client().ask(1)
    network.client("2").ask(2, api=4)
    observed = [(SERVER, "p", "Metadata", 1), (SERVER, "broker-2", "LeaderAndIsr", 2)]
    assert network.passed.requests == network.passed.answers == observed


def test_a_dropped_request_never_arrives(network: Network) -> None:
    client = network.client()
    network.rule(DROP, kind=REQUEST, count=1)
    client.send(1, 2)
    assert client.answer() == 2
    assert network.arrived == [2]
    assert [request[3] for request in network.passed.requests] == [2]
    assert network.matched == [("Metadata", REQUEST, "p", SERVER)]


def test_an_answer_is_dropped_after_the_server_handled_the_request(network: Network) -> None:
    client = network.client()
    network.rule(DROP, kind=RESPONSE, count=1)
    client.send(1, 2)
    assert client.answer() == 2
    assert network.arrived == [1, 2]
    assert [answer[3] for answer in network.passed.answers] == [1, 2]
    assert network.matched == [("Metadata", RESPONSE, SERVER, "p")]


def test_a_rule_can_select_messages_by_listener(network: Network) -> None:
    network.rule(DROP, kind=REQUEST, listener=REPLICATION, count=1)
    assert network.client().ask(1) == 1
    fetcher = network.client("broker-2-fetcher-0")
    fetcher.send(2, 3)
    assert fetcher.answer() == 3
    assert network.matched == [("Metadata", REQUEST, "broker-2", SERVER)]


def test_a_held_request_blocks_later_ones_in_order(network: Network) -> None:
    client = network.client()
    rule = network.rule(HOLD, kind=REQUEST, count=1)
    client.send(1, 2, 3)
    wait_until(lambda: network.matched)
    network.flush()
    assert network.arrived == NOTHING
    network.remove(rule)
    assert client.answers(3) == [1, 2, 3]
    assert network.arrived == [1, 2, 3]


def test_a_held_answer_blocks_later_ones_in_order(network: Network) -> None:
    client = network.client()
    rule = network.rule(HOLD, kind=RESPONSE, count=1)
    client.send(1, 2, 3)
    wait_until(lambda: network.matched and network.arrived == [1, 2, 3])
    network.flush()
    assert client.gets_no_answer()
    network.remove(rule)
    assert client.answers(3) == [1, 2, 3]


@pytest.mark.parametrize("kind", [REQUEST, RESPONSE])
def test_a_delayed_message_passes_after_its_delay(network: Network, slept: list[float], kind: str) -> None:
    network.rule(DELAY, kind=kind, delay_us=2_500_000, count=1)
    client = network.client()
    client.send(1, 2)
    assert client.answers(2) == [1, 2]
    assert slept == [2.5]


@pytest.mark.parametrize("kind", [REQUEST, RESPONSE])
def test_a_delayed_message_blocks_later_ones(network: Network, kind: str) -> None:
    network.rule(DELAY, kind=kind, delay_us=3_600_000_000, count=1)
    client = network.client()
    client.send(1, 2)
    wait_until(lambda: network.matched)
    network.flush()
    assert client.gets_no_answer()
    assert network.arrived == NOTHING or kind == RESPONSE


def test_a_duplicated_request_arrives_twice_with_one_answer(network: Network) -> None:
    network.rule(DUPLICATE, kind=REQUEST, count=1)
    client = network.client()
    client.send(1, 2)
    assert client.answers(2) == [1, 2]
    assert network.arrived == [1, 1, 2]
    assert [request[3] for request in network.passed.requests] == [1, 2]
    assert [answer[3] for answer in network.passed.answers] == [1, 2]


def test_a_reset_breaks_the_connection_before_the_request(network: Network) -> None:
    network.rule(RESET, kind=REQUEST, count=1)
    assert network.client().ask(1) is None
    wait_until(lambda: network.server.hung_up == 1)
    assert network.arrived == NOTHING
    assert network.client().ask(2) == 2


def test_a_reset_breaks_the_connection_instead_of_the_answer(network: Network) -> None:
    network.rule(RESET, kind=RESPONSE, count=1)
    assert network.client().ask(1) is None
    wait_until(lambda: network.server.hung_up == 1)
    assert network.arrived == [1]
    assert network.client().ask(2) == 2


def test_requests_wait_while_their_direction_is_cut(network: Network) -> None:
    client = network.client()
    client.ask(1)
    network.cut("p", SERVER)
    network.rule(
        DELAY, kind=REQUEST, senders=frozenset({"p"})
    )  # The delay is 0; the rule reports the message.
    client.send(2, 3)
    wait_until(lambda: network.matched)
    network.flush()
    assert network.arrived == [1]
    network.restore("p", SERVER)
    assert client.answers(2) == [2, 3]
    assert network.arrived == [1, 2, 3]


def test_answers_wait_while_their_direction_is_cut(network: Network) -> None:
    client = network.client()
    client.ask(1)
    network.cut(SERVER, "p")
    client.send(2, 3)
    wait_until(lambda: network.passed.answered(2) and network.arrived == [1, 2, 3])
    network.flush()
    assert client.gets_no_answer()
    network.restore(SERVER, "p")
    assert client.answers(2) == [2, 3]


@pytest.mark.parametrize("link", [("p", SERVER), (SERVER, "p")])
def test_a_new_connection_needs_both_directions(network: Network, link: tuple[str, str]) -> None:
    network.client(P).ask(1)
    network.cut(*link)
    client = network.client()
    client.send(2)
    network.flush()
    assert network.arrived == [1]
    network.restore(*link)
    assert client.answer() == 2


def test_a_cut_affects_one_client(network: Network) -> None:
    network.cut("p", SERVER)
    network.cut(SERVER, "p")
    assert network.client(client_id_of("r")).ask(1) == 1


def test_a_connection_ends_without_a_server(network: Network) -> None:
    port = network.ports.reserve()
    network.proxies.listen_for_broker("broker-2", port, (LOOPBACK, network.ports.reserve()))
    client = network.client(port=port)
    with suppress(ConnectionError):
        client.send(1)
    assert client.answer() is None


def test_closing_one_end_closes_the_other(network: Network) -> None:
    assert network.client().ask(1, body=BYE) is None
    client = network.client()
    assert client.ask(2) == 2
    client.connection.shutdown(socket.SHUT_WR)
    wait_until(lambda: network.server.hung_up)
    assert client.answer() is None


def test_a_half_closed_client_still_gets_answers(network: Network) -> None:
    client = network.client()
    rule = network.rule(HOLD, kind=RESPONSE, count=1)
    client.send(1)
    client.connection.shutdown(socket.SHUT_WR)
    wait_until(lambda: network.server.hung_up)
    network.remove(rule)
    assert client.answers(2) == [1, None]


@pytest.mark.parametrize("length", [-1, 0, 3, 2**31 - 1])
def test_an_invalid_frame_ends_only_its_connection(network: Network, length: int) -> None:
    client, other = network.client(), network.client()
    client.connection.sendall(struct.pack(">i", length) + b"xxx")
    assert client.answer() is None
    assert other.ask(1) == 1


def test_an_invalid_request_ends_its_connection(network: Network) -> None:
    client = network.client()
    client.connection.sendall(framed(b"xxxxx"))
    assert client.answer() is None
    assert network.server.frames == []


def test_an_invalid_answer_ends_its_connection(network: Network) -> None:
    assert network.client().ask(1, body=NONSENSE) is None
    assert network.passed.answers == []


def test_requests_without_answers_stay_unanswered(network: Network) -> None:
    client = network.client()
    client.send(1, 2, api=PRODUCE, body=SILENT)
    assert client.ask(3) == 3
    client.send(4, api=PRODUCE, body=SILENT)
    network.rule(DUPLICATE, kind=REQUEST, count=1)
    client.send(5, 6)
    assert client.answers(2) == [5, 6]
    assert network.arrived == [1, 2, 3, 4, 5, 5, 6]
    assert [answer[3] for answer in network.passed.answers] == [3, 5, 6]


class ByteLink:
    """A proxy for the bytes of one client, with the first answers that it reported."""

    def __init__(self, network: Network) -> None:
        self.first: list[bytes] = []
        self.port = network.ports.reserve()
        network.proxies.listen_for_bytes("zookeeper", "p", self.port, network.upstream, self.first.append)


def test_bytes_pass_and_first_answers_are_reported(network: Network) -> None:
    link = ByteLink(network)
    client = network.client(port=link.port)
    assert [client.ask(1), client.ask(2)] == [1, 2]
    assert [struct.unpack_from(">i", data, 4)[0] for data in link.first] == [1]
    assert network.client(port=link.port).ask(3) == 3
    assert [struct.unpack_from(">i", data, 4)[0] for data in link.first] == [1, 3]
    assert network.passed.requests == []


def test_bytes_to_the_server_wait_while_their_direction_is_cut(network: Network) -> None:
    client = network.client(port=ByteLink(network).port)
    client.ask(1)
    network.cut("p", "zookeeper")
    client.send(2)
    network.flush()
    assert network.arrived == [1]
    network.restore("p", "zookeeper")
    assert client.answer() == 2


def test_bytes_to_the_client_wait_while_their_direction_is_cut(network: Network) -> None:
    link = ByteLink(network)
    network.cut("zookeeper", "p")
    client = network.client(port=link.port)
    client.send(1)
    wait_until(lambda: link.first)
    network.flush()
    assert client.gets_no_answer()
    network.restore("zookeeper", "p")
    assert client.answer() == 1


def test_a_byte_link_ends_with_its_server(network: Network) -> None:
    client = network.client(port=ByteLink(network).port)
    assert client.ask(1, body=BYE) is None


def test_closing_breaks_hanging_connections(network: Network) -> None:
    link = ByteLink(network)
    idle, half, held, late, cut, unanswered, of_bytes = clients = [
        *(
            network.client(client_id_of(name))
            for name in ("idle", "half", "held", "late", "cut", "unanswered")
        ),
        network.client(port=link.port),
    ]
    for number, client in enumerate(clients):
        client.ask(number + 1)
    network.rule(HOLD, senders=frozenset({"held"}))
    network.rule(DELAY, senders=frozenset({"late"}), delay_us=3_600_000_000)
    network.cut(SERVER, "cut")
    network.cut("p", "zookeeper")
    half.connection.sendall(b"\0\0")
    unanswered.send(11, body=SILENT)
    for number, client in enumerate((held, late, cut, of_bytes)):
        client.send(12 + number)
    wait_until(lambda: len(network.matched) == 2 and network.passed.answered(14) and 11 in network.arrived)
    network.proxies.close()
    assert [client.answer() for client in clients] == [None] * len(clients)
    assert idle.gets_no_answer() is False
    with pytest.raises(ConnectionRefusedError):
        network.client()
    network.proxies.close()  # A second close does nothing.


def test_a_loop_call_returns_its_result_or_error(network: Network) -> None:
    network.cut("p", SERVER)
    assert network.proxies.in_loop(lambda faults: faults.is_cut("p", SERVER))
    with pytest.raises(ZeroDivisionError):
        network.proxies.in_loop(lambda _: 1 // 0)


def test_a_slow_link_delays_a_burst_once(network: Network, slept: list[float]) -> None:
    quality = LinkQuality(latency_us=2_500_000)
    network.proxies.in_loop(lambda faults: faults.degrade("p", SERVER, quality))
    client = network.client()
    client.send(1, 2, 3)
    assert client.answers(3) == [1, 2, 3]
    assert len(slept) == 3
    # A message is due one latency after it was read, perhaps before its predecessor has passed.
    assert all(delay_s <= 2.5 for delay_s in slept)
    network.proxies.in_loop(lambda faults: faults.recover("p", SERVER, quality))
    assert client.ask(4) == 4
    assert len(slept) == 3


def test_a_slow_link_reads_ahead(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    sleep = asyncio.sleep

    async def noted_sleep(delay_s: float) -> None:
        slept.append(delay_s)
        await sleep(delay_s)

    monkeypatch.setattr(asyncio, "sleep", noted_sleep)
    network.proxies.in_loop(lambda faults: faults.degrade(SERVER, "p", LinkQuality(latency_us=300_000)))
    client = network.client()
    client.send(*range(1, 31))
    assert client.answers(30) == list(range(1, 31))
    # Consecutive waits would take 9 s.
    assert sum(delay_s for delay_s in slept if delay_s > 0) < 30 * 0.3


def test_a_slow_server_handles_requests_in_turn(network: Network, slept: list[float]) -> None:
    network.proxies.in_loop(lambda faults: faults.degrade("p", SERVER, LinkQuality(request_us=700_000)))
    client = network.client()
    client.send(1, 2)
    assert client.answers(2) == [1, 2]
    assert slept == [0.7, 0.7]


def test_a_reset_breaks_only_connections_between_its_two_processes(network: Network) -> None:
    client, other = network.client(), network.client(Q)
    assert client.ask(1) == 1
    assert other.ask(2) == 2
    network.proxies.reset(SERVER, "p")
    assert received(client.connection, 1) == b""
    assert other.ask(3) == 3
    assert network.client().ask(4) == 4


def test_an_error_of_an_observer_is_raised_and_not_logged(
    network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    failed: list[threading.ExceptHookArgs] = []
    monkeypatch.setattr(threading, "excepthook", failed.append)
    monkeypatch.setattr(network.passed, "link_ended", lambda link: tuple(link.number))
    client = network.client()
    client.ask(1)
    client.connection.close()
    wait_until(lambda: failed)
    (failure,) = failed
    assert (failure.exc_type, failure.thread and failure.thread.name) == (TypeError, "proxies")
