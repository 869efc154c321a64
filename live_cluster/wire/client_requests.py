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
    api_key, version, correlation_id, client_id = start_of(frame)
    kind = REQUESTS.get(api_key)
    if kind is None or not 0 <= version <= kind.max_version:
        return ClientRequest(api_key, version, correlation_id, client_id, None)
    try:
        body = decoded(kind[version], frame)
    except MalformedMessageError as error:
        raise BadRequestError(f"{kind.name} {version}: {error}") from error
    return ClientRequest(api_key, version, correlation_id, body.header.client_id or "", body)


class Batching(NamedTuple):
    """A request that asks for several things at once since a version, and where they are."""

    since: int
    asked: str
    answered: str


_BATCHES: Final = {
    consumer.OffsetFetchRequest.API_KEY: Batching(8, "groups", "groups"),  # KIP-709
    metadata.FindCoordinatorRequest.API_KEY: Batching(4, "coordinator_keys", "coordinators"),  # KIP-699
}


def batching_of(request: ClientRequest) -> Batching | None:
    """Return what a request asks for at once; None if it asks for one thing."""
    batching = _BATCHES.get(request.api_key)
    return None if batching is None or request.version < batching.since else batching


def parts_of(request: ClientRequest) -> Iterator[tuple[ClientRequest, bool]]:
    """Yield a request for each thing that a request asks for, and whether it is the last."""
    batching = batching_of(request)
    if batching is None or request.body is None:
        yield request, True
        return
    asked = getattr(request.body, batching.asked)
    for number, each in enumerate(asked, 1):
        body = copy(request.body)
        setattr(body, batching.asked, [each])
        yield request._replace(body=body), number == len(asked)


def joined_response(request: ClientRequest, parts: Sequence[Any]) -> Any:
    """Return the response to a request from the responses to its parts."""
    batching, response = batching_of(request), parts[0]
    if batching is not None:
        answers = [each for part in parts for each in getattr(part, batching.answered)]
        setattr(response, batching.answered, answers)
    return response


def response_bytes(correlation_id: int, response: Any) -> bytes:
    """Return the frame of a response, which is in kafka-python's form."""
    response.with_header(correlation_id)
    data: bytes = response.encode(header=True, framed=True)
    return data
