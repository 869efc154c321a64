"""A connection to a broker, over which one request after the other is asked and answered."""

import select
import socket
import struct
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from kafka.protocol.metadata import ApiVersionsRequest

from harrow.live_cluster.errors import LiveError
from harrow.live_cluster.wire.answers import decoded
from harrow.live_cluster.wire.security import PLAINTEXT, Security

_LENGTH: Final = struct.Struct(">i")
_FRAME_MAX: Final = 256 * 1024 * 1024
CLIENT_ID: Final = "harrow"
T = TypeVar("T")


class ConnectionLostError(LiveError):
    """The broker is not there, does not answer in time, or answers something else."""


def only(answers: Sequence[T], what: str) -> T:
    """Return the answer to the only thing that a request asked for.

    Raises:
        ConnectionLostError: there is none, or there are several.

    """
    if len(answers) != 1:
        raise ConnectionLostError(f"a broker answers for {len(answers)} {what} in place of 1")
    return answers[0]


class BrokerConnection:
    """A connection to an address. It is made with the first request, and again after one that has failed.

    *timeout_s* is how long connecting, and an answer, may take.
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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close it; with the next request it is made again."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def answers(self) -> bool:
        """Return whether somebody answers: a broker is registered, and may be controller, before it listens."""
        try:
            self.ask(ApiVersionsRequest[0]())
        except ConnectionLostError:
            return False
        return True

    def version_of(self, request: Any, *known: int) -> int:
        """Return the highest of the *known* versions of a request that the broker speaks.

        Raises:
            ConnectionLostError: it does not say, or speaks none of them.

        """
        lowest, highest = self._spoken(request)
        version = max((version for version in known if lowest <= version <= highest), default=None)
        if version is None:
            host, port = self.address
            raise ConnectionLostError(f"{host}:{port} speaks no known version of {request.name}")
        return version

    def speaks(self, request: Any, version: int) -> bool:
        """Return whether the broker speaks a version of a request.

        Raises:
            ConnectionLostError: it does not say.

        """
        lowest, highest = self._spoken(request)
        return lowest <= version <= highest

    def _spoken(self, request: Any) -> tuple[int, int]:
        if not self._versions:
            told = self.ask(ApiVersionsRequest[0]()).api_keys
            self._versions = {api.api_key: (api.min_version, api.max_version) for api in told}
        return self._versions.get(request.API_KEY, (0, -1))

    def ask(self, request: Any) -> Any:
        """Send a request of kafka-python in the version that it has, and return the answer.

        Raises:
            ConnectionLostError: there is no answer, or none to this request.

        """
        try:
            if self._socket is None:
                self._connect()
            return self._exchange(request)
        except (OSError, ValueError, struct.error) as error:
            raise self._lost(request, error) from error

    def send(self, request: Any) -> None:
        """Send a request that is answered later: `receive` returns that, once `has_answered`. Nothing else is asked meanwhile.

        Raises:
            ConnectionLostError: it cannot be sent.

        """
        try:
            if self._socket is None:
                self._connect()
            self._send(request)
        except OSError as error:
            raise self._lost(request, error) from error

    def has_answered(self, timeout_s: float) -> bool:
        """Return whether something has come, or the connection has been closed, within a time."""
        return self._socket is not None and bool(select.select([self._socket], [], [], timeout_s)[0])

    def receive(self, request: Any) -> Any:
        """Return the answer to what was sent last.

        Raises:
            ConnectionLostError: there is none.

        """
        try:
            return self._answer_to(request)
        except (OSError, ValueError, struct.error) as error:
            raise self._lost(request, error) from error

    def _lost(self, request: Any, error: Exception) -> ConnectionLostError:
        self.close()
        host, port = self.address
        return ConnectionLostError(f"{host}:{port} does not answer {request.name}: {error}")

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
