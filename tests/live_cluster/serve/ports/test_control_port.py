"""The control port carries out requests of programs on this machine, and survives all others."""

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing
from functools import partial
from http import HTTPStatus
from http.client import HTTPConnection
from random import Random
from selectors import DefaultSelector
from threading import Event, Thread
from typing import Any

import pytest

from harrow.live_cluster.serve.ports.control_port import (
    ControlAnswer,
    ControlPort,
    ControlRequest,
    RefusedRequestError,
)
from harrow.live_cluster.serve.ports.listening import LOOPBACK, CannotListenError
from tests.patience import PATIENCE_S


def echo(request: ControlRequest) -> ControlAnswer | None:
    if request.path == "/wait":
        return None
    if request.path == "/refused":
        raise RefusedRequestError(HTTPStatus.CONFLICT, "not now")
    return ControlAnswer(HTTPStatus.OK, request._asdict())


class Served:
    """A port that is served in a thread."""

    def __init__(self) -> None:
        self.port = ControlPort(0)
        self.port.handler = echo
        self.address = LOOPBACK, int(self.port.url.rpartition(":")[2])
        self._is_over = Event()
        self._thread = Thread(target=self.port.serve_while, args=(lambda: not self._is_over.is_set(),))
        self._thread.start()

    def stop(self) -> None:
        self._is_over.set()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()

    def send(self, data: bytes) -> bytes:
        """Send bytes, and return the whole answer."""
        with socket.create_connection(self.address, PATIENCE_S) as connection:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            answer = b""
            while piece := connection.recv(1 << 16):
                answer += piece
            return answer

    def request(
        self, method: str, path: str, body: str | bytes | None = None, **headers: str
    ) -> tuple[int, Any]:
        connection = HTTPConnection(*self.address, timeout=PATIENCE_S)
        connection.request(method, path, body, headers)
        with connection.getresponse() as response:
            return response.status, json.load(response)


@pytest.fixture
def served() -> Iterator[Served]:
    one = Served()
    yield one
    one.stop()
    one.port.close()


def test_a_request_reaches_the_handler_and_its_answer_the_client(served: Served) -> None:
    assert served.request("POST", "/faults", "ä".encode()) == (
        200,
        {"method": "POST", "path": "/faults", "body": "ä"},
    )
    assert served.request("GET", "/refused") == (409, {"error": "not now"})


def test_a_request_may_arrive_byte_by_byte(served: Served) -> None:
    host = ":".join(map(str, served.address))
    text = f"POST /x HTTP/1.1\r\nHost: {host}\r\nContent-Length: 2\r\n\r\nab"
    with socket.create_connection(served.address, PATIENCE_S) as connection:
        for byte in text.encode():
            connection.sendall(bytes([byte]))
        assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200 OK\r\n")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "example.org"}, 403),
        ({"Host": "127.0.0.1"}, 403),
        ({"Origin": "http://127.0.0.1"}, 403),
        ({"Content-Length": "-1"}, 413),
        ({"Content-Length": "100000"}, 413),
        ({"Content-Length": "many"}, 400),
        ({"Transfer-Encoding": "chunked"}, 411),
        ({"Long": "x" * 20_000}, 431),
    ],
)
def test_a_request_of_a_web_page_or_without_bounds_is_refused(
    served: Served, headers: dict[str, str], status: int
) -> None:
    refused, document = served.request("GET", "/state", **headers)
    assert (refused, list(document)) == (status, ["error"])


@pytest.mark.parametrize(
    "text", [b"\r\n\r\n", b"GET\r\n\r\n", b"GET / SPDY/3\r\n\r\n", b"\x16\x03\x01\r\n\r\n"]
)
def test_bytes_that_are_no_request_are_refused(served: Served, text: bytes) -> None:
    assert served.send(text).startswith(b"HTTP/1.1 400 Bad Request\r\n")


def test_a_body_that_is_not_utf8_is_refused(served: Served) -> None:
    head = f"POST / HTTP/1.1\r\nHost: localhost:{served.address[1]}\r\nContent-Length: 1\r\n\r\n"
    assert b"the body is not UTF-8" in served.send(head.encode() + b"\xff")


def test_random_bytes_end_only_their_own_connections(served: Served) -> None:
    random = Random(0)
    for _ in range(200):
        served.send(random.randbytes(random.randrange(1, 200)) + random.choice([b"", b"\r\n\r\n"]))
    assert served.request("GET", "/state")[0] == 200


def test_idle_connections_do_not_keep_others_out(served: Served) -> None:
    idle = [socket.create_connection(served.address, PATIENCE_S) for _ in range(80)]
    assert served.request("GET", "/state")[0] == 200
    for connection in idle:
        connection.close()


def test_a_connection_that_has_to_make_room_may_send_at_that_moment() -> None:
    with closing(ControlPort(0)) as port, DefaultSelector() as selector, ExitStack() as sockets:
        port.listen(selector)
        (listener,) = selector.get_map().values()
        connect = partial(socket.create_connection, (LOOPBACK, int(port.url.rpartition(":")[2])))
        oldest = sockets.enter_context(connect())
        listener.data(listener.events)
        (first,) = [key for key in selector.get_map().values() if key is not listener]
        for _ in range(32):
            sockets.enter_context(connect())
            listener.data(listener.events)
        assert oldest.recv(1) == b""
        first.data(first.events)


def test_requests_that_wait_get_the_answer_when_the_port_no_longer_listens(served: Served) -> None:
    connection = HTTPConnection(*served.address, timeout=PATIENCE_S)
    connection.request("POST", "/wait")
    # The port has read the waiting request before a later one.
    assert served.request("GET", "/state")[0] == 200
    served.stop()
    served.port.answer_waiting(ControlAnswer(HTTPStatus.OK, {"verdict": "held"}))
    with connection.getresponse() as response:
        assert json.load(response) == {"verdict": "held"}


def test_a_port_in_use_is_named(served: Served) -> None:
    with pytest.raises(CannotListenError, match=r"cannot listen on 127\.0\.0\.1:\d+: Address already in use"):
        ControlPort(served.address[1])
