"""Lets programs on this machine control a served cluster by HTTP requests with JSON."""

import io
import selectors
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final, NamedTuple

from harrow.campaigns.record.json_text import json_document
from harrow.live_cluster.serve.ports.listening import LOOPBACK, bound_socket

_BACKLOG: Final = 16
_CONNECTIONS_MAX: Final = 32
_HEAD_MAX: Final = 1 << 14
_BODY_MAX: Final = 1 << 16
_CHECK_S: Final = 0.1
_READ_BYTES: Final = 1 << 14
_LAST_WRITE_S: Final = 10.0
"""How long a client may take to read an answer after the port has closed."""
_END_OF_HEAD: Final = b"\r\n\r\n"
_NAMES: Final = ("127.0.0.1", "localhost")


class ControlRequest(NamedTuple):
    """A request: its method, its path, and its body as text."""

    method: str
    path: str
    body: str


class ControlAnswer(NamedTuple):
    """The answer to a request: a status and a document."""

    status: HTTPStatus
    document: Mapping[str, Any]


class RefusedRequestError(Exception):
    """A request is not carried out; the message says why."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status

    def answer(self) -> ControlAnswer:
        return ControlAnswer(self.status, {"error": str(self)})


Handler = Callable[[ControlRequest], ControlAnswer | None]
"""Carries out a request. It returns None if `ControlPort.answer_waiting` will answer later."""


class _ControlConnection:
    """A connection, which brings one request and ends with the answer."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self.received = bytearray()
        self.to_send = b""


class ControlPort:
    """The port of a server that carries out requests when `listen` has been called.

    It serves this machine only. It refuses requests that a browser sends for a web page: those name
    another host or an origin.
    """

    def __init__(self, port: int) -> None:
        self.handler: Handler = _refuse_all
        self._selector: selectors.BaseSelector | None = None
        self._clients: dict[_ControlConnection, None] = {}
        self._waiting: list[_ControlConnection] = []
        self._listener = bound_socket(LOOPBACK, port)
        self._listener.listen(_BACKLOG)
        self._port = self._listener.getsockname()[1]

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self._port}"

    def listen(self, selector: selectors.BaseSelector) -> None:
        """Serve when *selector* reports a socket: its data is a function that takes the events."""
        self._selector = selector
        selector.register(self._listener, selectors.EVENT_READ, self._accept)
        for client in self._clients:
            if client not in self._waiting:
                self._watch(client)

    def serve_while(self, condition: Callable[[], bool]) -> None:
        """Serve alone, without the selector of a cluster."""
        with selectors.DefaultSelector() as selector:
            self.listen(selector)
            while condition():
                for key, events in selector.select(_CHECK_S):
                    key.data(events)
            self._selector = None

    def answer_waiting(self, answer: ControlAnswer) -> None:
        """Send the answer to each request that waits for it, whether or not the port listens."""
        for client in self._waiting:
            client.socket.settimeout(_LAST_WRITE_S)
            with suppress(OSError):  # The client may have gone.
                client.socket.sendall(_response(answer))
            client.socket.close()
            del self._clients[client]
        self._waiting.clear()

    def close(self) -> None:
        for sock in (self._listener, *(client.socket for client in self._clients)):
            sock.close()
        self._clients.clear()

    def _accept(self, _: int) -> None:
        try:
            sock, _ = self._listener.accept()
        except OSError:
            return
        sock.setblocking(False)
        if len(self._clients) >= _CONNECTIONS_MAX:
            # The oldest one that does not wait for the verdict has not sent a whole request.
            idle = next((client for client in self._clients if client not in self._waiting), None)
            if idle is None:
                sock.close()
                return
            self._end(idle)
        client = _ControlConnection(sock)
        self._clients[client] = None
        self._watch(client)

    def _watch(self, client: _ControlConnection) -> None:
        if self._selector is not None:
            events = selectors.EVENT_WRITE if client.to_send else selectors.EVENT_READ
            self._selector.register(client.socket, events, lambda _: self._serve(client))

    def _unwatch(self, client: _ControlConnection) -> None:
        if self._selector is not None:
            self._selector.unregister(client.socket)

    def _end(self, client: _ControlConnection) -> None:
        self._unwatch(client)
        client.socket.close()
        del self._clients[client]

    def _serve(self, client: _ControlConnection) -> None:
        if client not in self._clients:  # `_accept` may have ended it after the selector reported it.
            return
        try:
            if client.to_send:
                client.to_send = client.to_send[client.socket.send(client.to_send) :]
                if not client.to_send:
                    self._end(client)
                return
            data = client.socket.recv(_READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._end(client)
            return
        client.received += data
        try:
            request = _request(client.received, self._port)
            if request is None:
                return
            answer = self.handler(request)
        except RefusedRequestError as error:
            answer = error.answer()
        self._unwatch(client)
        if answer is None:
            self._waiting.append(client)
        else:
            client.to_send = _response(answer)
            self._watch(client)


def _refuse_all(_: ControlRequest) -> ControlAnswer:
    raise RefusedRequestError(HTTPStatus.SERVICE_UNAVAILABLE, "the cluster does not run")


def _request(received: bytearray, port: int) -> ControlRequest | None:
    """Return the request in the received bytes; None if it is not complete yet.

    Raises:
        RefusedRequestError: It is malformed or too large, or comes from a web page.

    """
    # Most clusters get no such request, and start faster without these libraries.
    from http.client import HTTPException, parse_headers  # noqa: PLC0415

    head, end, body = bytes(received).partition(_END_OF_HEAD)
    if len(head) > _HEAD_MAX:
        raise RefusedRequestError(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "the header is too large")
    if not end:
        return None
    line, _, fields = head.partition(b"\r\n")
    words = line.decode("latin-1").split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise RefusedRequestError(HTTPStatus.BAD_REQUEST, "this is not a request of HTTP/1.1")
    try:
        headers = parse_headers(io.BytesIO(fields + _END_OF_HEAD))
        length = int(headers.get("Content-Length", "0"))
    except (HTTPException, ValueError):
        raise RefusedRequestError(HTTPStatus.BAD_REQUEST, "the header is malformed") from None
    if headers.get("Host") not in {f"{name}:{port}" for name in _NAMES} or "Origin" in headers:
        raise RefusedRequestError(HTTPStatus.FORBIDDEN, "only programs on this machine may use this port")
    if "Transfer-Encoding" in headers:
        raise RefusedRequestError(HTTPStatus.LENGTH_REQUIRED, "send the body with Content-Length")
    if not 0 <= length <= _BODY_MAX:
        raise RefusedRequestError(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body has at most {_BODY_MAX} bytes"
        )
    if len(body) < length:
        return None
    try:
        text = body[:length].decode("utf-8")
    except UnicodeDecodeError:
        raise RefusedRequestError(HTTPStatus.BAD_REQUEST, "the body is not UTF-8") from None
    return ControlRequest(words[0], words[1], text)


def _response(answer: ControlAnswer) -> bytes:
    body = json_document(answer.document).encode()
    head = (
        f"HTTP/1.1 {answer.status.value} {answer.status.phrase}\r\n"
        "Content-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + body
