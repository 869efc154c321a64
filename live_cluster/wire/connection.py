"""A connection to a broker that carries one request at a time."""

import select
import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Self, TypeVar

from kafka.protocol.metadata import ApiVersionsRequest

from harrow.live_cluster.errors import LiveError
from harrow.live_cluster.wire.decoding import decoded
from harrow.live_cluster.wire.security import PLAINTEXT, Security

_LENGTH: Final = struct.Struct(">i")
_FRAME_MAX: Final = 256 * 1024 * 1024
CLIENT_ID: Final = "harrow"
T = TypeVar("T")


class ConnectionLostError(LiveError):
    """The broker cannot be reached, does not answer in time, or answers something else."""


def only(answers: Sequence[T], what: str) -> T:
    """Return the only answer; any other number of them is a `ConnectionLostError`."""
    if len(answers) != 1:
        raise ConnectionLostError(f"a broker answers for {len(answers)} {what} in place of 1")
    return answers[0]


class BrokerConnection:
    """A connection to an address, opened by the first request and reopened after a failure.

    *timeout_s* limits how long connecting takes, and how long each answer takes.
    """

    def __init__(
        self,
        address: tuple[str, int],
        *,
        client_id: str = CLIENT_ID,
        timeout_s: float = 5.0,
        security: Security = PLAINTEXT,
    ) -> None:
        self._security = security
        self.address = address
        self._client_id = client_id
        self._timeout_s = timeout_s
        self._socket: socket.socket | None = None
        self._correlation_id = 0
        self._versions: dict[int, tuple[int, int]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the socket; the next request opens another."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def answers(self) -> bool:
        """Return whether a broker answers. It registers, and may be controller, before that."""
        try:
            self.ask(ApiVersionsRequest[0]())
        except ConnectionLostError:
            return False
        return True

    def version_of(self, request: Any, *candidates: int) -> int:
        """Return the highest of these versions of a request that the broker supports."""
        lowest, highest = self._supported(request)
        version = max((version for version in candidates if lowest <= version <= highest), default=None)
        if version is None:
            host, port = self.address
            raise ConnectionLostError(f"{host}:{port} supports no known version of {request.name}")
        return version

    def speaks(self, request: Any, version: int) -> bool:
        """Return whether the broker supports a version of a request."""
        lowest, highest = self._supported(request)
        return lowest <= version <= highest

    def _supported(self, request: Any) -> tuple[int, int]:
        if not self._versions:
            apis = self.ask(ApiVersionsRequest[0]()).api_keys
            self._versions = {api.api_key: (api.min_version, api.max_version) for api in apis}
        return self._versions.get(request.API_KEY, (0, -1))

    def ask(self, request: Any) -> Any:
        """Send a request of kafka-python, in the version of its class, and return the answer."""
        with self._convert_errors(request):
            if self._socket is None:
                self._connect()
            return self._exchange(request)

    def send(self, request: Any) -> None:
        """Send a request without waiting for the answer.

        Send no other request until `has_answered`, then call `receive`.
        """
        with self._convert_errors(request):
            if self._socket is None:
                self._connect()
            self._send(request)

    def has_answered(self, timeout_s: float) -> bool:
        """Return whether data arrives, or the broker closes the connection, within a time."""
        return self._socket is not None and bool(select.select([self._socket], [], [], timeout_s)[0])

    def receive(self, request: Any) -> Any:
        """Return the answer to the request that was sent last."""
        with self._convert_errors(request):
            return self._answer_to(request)

    @contextmanager
    def _convert_errors(self, request: Any) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError, struct.error) as error:
            self.close()
            host, port = self.address
            raise ConnectionLostError(f"{host}:{port} does not answer {request.name}: {error}") from error

    def _connect(self) -> None:
        plain = socket.create_connection(self.address, self._timeout_s)
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket = self._security.secured(plain, self.address[0])
        except BaseException:
            plain.close()
            raise
        self._security.authenticate(self._exchange)

    def _exchange(self, request: Any) -> Any:
        self._send(request)
        return self._answer_to(request) if request.expect_response() else None

    def _send(self, request: Any) -> None:
        assert self._socket is not None
        self._correlation_id += 1
        request.with_header(self._correlation_id, self._client_id)
        self._socket.sendall(request.encode(header=True, framed=True))

    def _answer_to(self, request: Any) -> Any:
        (length,) = _LENGTH.unpack(self._receive(_LENGTH.size))
        if not 0 < length <= _FRAME_MAX:
            raise ValueError(f"a frame of {length} bytes")
        answer = decoded(request.header.get_response_class(), self._receive(length))
        if answer.header.correlation_id != self._correlation_id:
            raise ValueError(f"it answers request {answer.header.correlation_id}")
        return answer

    def _receive(self, size: int) -> bytes:
        assert self._socket is not None
        data = bytearray()
        while len(data) < size:
            received = self._socket.recv(size - len(data))
            if not received:
                raise ConnectionError("the connection was closed")
            data += received
        return bytes(data)
