"""Reads requests of real clients from bytes, and writes the responses."""

import struct
from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any, Final, NamedTuple

from kafka.protocol import admin, consumer, metadata, producer, sasl  # noqa: F401 - registers all requests
from kafka.protocol.api_message import ApiMessage

from harrow.live_cluster.wire import schemas
from harrow.live_cluster.wire.decoding import MalformedMessageError, decoded

_LENGTH: Final = struct.Struct(">i")
_START: Final = struct.Struct(">hhi")
"""API key, version and correlation id, with which the header of every request begins."""
_CLIENT_ID_LENGTH: Final = struct.Struct(">h")
FRAME_MIN: Final = _START.size
FRAME_MAX: Final = 100 * 1024 * 1024
"""The default of ``socket.request.max.bytes``."""


class BadRequestError(ValueError):
    """A client sent bytes that are no request. Kafka closes the connection, too."""


class ClientRequest(NamedTuple):
    """A request in kafka-python's form."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str
    body: Any


def _request_kinds() -> dict[int, Any]:
    kinds: dict[int, Any] = {}
    for kind in ApiMessage.__subclasses__():
        if kind.is_request():
            kinds[kind.API_KEY] = kind
    kinds[schemas.TXN_OFFSET_COMMIT.API_KEY] = schemas.TXN_OFFSET_COMMIT
    return kinds


REQUESTS: Final = _request_kinds()
"""kafka-python's class of each request, by API key."""


def frames(buffer: bytearray) -> Iterator[bytes]:
    """Remove the whole frames from the start of *buffer*, and yield them without their lengths.

    Raises:
        BadRequestError: A length is negative or above `FRAME_MAX`.

    """
    while len(buffer) >= _LENGTH.size:
        (length,) = _LENGTH.unpack_from(buffer)
        if not FRAME_MIN <= length <= FRAME_MAX:
            raise BadRequestError(f"a frame has {length} bytes")
        end = _LENGTH.size + length
        if len(buffer) < end:
            return
        frame = bytes(buffer[_LENGTH.size : end])
        del buffer[:end]
        yield frame


def start_of(frame: bytes) -> tuple[int, int, int, str]:
    """Return the API key, the version, the correlation id and the client id of a frame.

    The client id of a damaged frame may be anything.
    """
    api_key, version, correlation_id = _START.unpack_from(frame)
    begin = _START.size + _CLIENT_ID_LENGTH.size
    length = 0
    if len(frame) >= begin:
        (length,) = _CLIENT_ID_LENGTH.unpack_from(frame, _START.size)
    client = frame[begin : begin + max(0, length)]
    return api_key, version, correlation_id, client.decode("utf-8", "backslashreplace")


def read_request(frame: bytes) -> ClientRequest:
    """Return the request in a frame.

    The body is None if the API or its version is unknown.

    Raises:
        BadRequestError: The bytes do not follow the schema.

    """
    api_key, version, correlation_id = _START.unpack_from(frame)
    kind = REQUESTS.get(api_key)
    if kind is None or not 0 <= version <= kind.max_version:
        return ClientRequest(api_key, version, correlation_id, "", None)
    try:
        body = decoded(kind[version], frame)
    except MalformedMessageError as error:
        raise BadRequestError(f"{kind.name} {version}: {error}") from error
    return ClientRequest(api_key, version, correlation_id, body.header.client_id or "", body)


def parts_of(request: ClientRequest) -> Sequence[ClientRequest]:
    """Return a request for each group, if a request fetches the offsets of several (KIP-709)."""
    if request.api_key != consumer.OffsetFetchRequest.API_KEY or len(groups_of(request.body)) < 2:
        return (request,)
    parts = []
    for group in groups_of(request.body):
        body = copy(request.body)
        body.groups = [group]
        parts.append(request._replace(body=body))
    return parts


def groups_of(message: Any) -> Sequence[Any]:
    """Return the groups of an OffsetFetch request or response that may name several."""
    return getattr(message, "groups", None) or ()


def response_bytes(correlation_id: int, response: Any) -> bytes:
    """Return the frame of a response, which is in kafka-python's form."""
    response.with_header(correlation_id)
    data: bytes = response.encode(header=True, framed=True)
    return data
