"""A broker with arbitrary answers about its cluster."""

import socket
import struct
import threading
from contextlib import suppress
from random import Random
from typing import Any, Final

from kafka.protocol.admin import DescribeConfigsRequest, DescribeConfigsResponse
from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse, MetadataRequest, MetadataResponse

from tests.hostile.texts import text

_WITH_EPOCHS: Final = 7
_NULL_SHARE: Final = 0.4
_DEEPER_SHARE: Final = 0.7
_HEADER: Final = struct.Struct(">ihhi")
_API_VERSIONS: Final = (
    (0, 0, 9),
    (1, 0, 12),
    (2, 0, 7),
    (MetadataRequest.API_KEY, 0, 12),
    (ApiVersionsRequest.API_KEY, 0, 3),
    (20, 0, 6),
    (28, 0, 4),
    (DescribeConfigsRequest.API_KEY, 0, 4),
    (35, 0, 4),
    (55, 0, 1),
)


class FakeBroker:
    """Listens until the process ends. `answer_by` sets the seed from which answers are drawn."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self._seed = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def answer_by(self, seed: int) -> None:
        self._seed = seed

    def _accept(self) -> None:
        while True:
            connection, _ = self._server.accept()
            threading.Thread(target=self._serve, args=(connection, Random(self._seed)), daemon=True).start()

    def _serve(self, connection: socket.socket, draws: Random) -> None:
        is_garbled = draws.random() < 0.3
        with suppress(OSError, struct.error), connection:
            while head := connection.recv(_HEADER.size, socket.MSG_WAITALL):
                size, api, version, number = _HEADER.unpack(head)
                connection.recv(size - _HEADER.size + 4, socket.MSG_WAITALL)
                response = self._response(api, version, draws)
                response.with_header(correlation_id=number)
                frame = bytearray(response.encode(header=True, framed=True))
                if is_garbled:
                    frame = _garbled(frame, draws)
                connection.sendall(frame)

    def _response(self, api: int, version: int, draws: Random) -> Any:
        if api == ApiVersionsRequest.API_KEY:
            kind = ApiVersionsResponse[0]
            keys = [
                kind.ApiVersion(api_key=key, min_version=low, max_version=high)
                for key, low, high in _API_VERSIONS
            ]
            return kind(error_code=0, api_keys=keys)
        if api == MetadataRequest.API_KEY:
            return _with_nulls(self._metadata(max(version, _WITH_EPOCHS), draws), draws)
        described = DescribeConfigsResponse[version]
        result = described.DescribeConfigsResult
        setting = result.DescribeConfigsResourceResult
        settings = [
            setting(
                name=name,
                value=_maybe_hostile(draws, value),
                read_only=False,
                config_source=5,
                is_sensitive=False,
            )
            for name, value in (
                ("min.insync.replicas", "1"),
                ("log.flush.interval.messages", "1"),
                ("x", "y"),
            )
        ]
        results = [
            result(
                error_code=draws.choice((0, 0, 0, 3)),
                error_message=_maybe_hostile(draws, "no"),
                resource_type=4,
                resource_name=name,
                configs=settings,
            )
            for name in ("1", "2", "t")
        ]
        return _with_nulls(described(throttle_time_ms=0, results=results), draws)

    def _metadata(self, version: int, draws: Random) -> Any:
        kind = MetadataResponse[version]
        topic = kind.MetadataResponseTopic
        partition = topic.MetadataResponsePartition
        brokers = [
            kind.MetadataResponseBroker(
                node_id=draws.choice((number, number, number, -1, 2**31 - 1)),
                host=_maybe_hostile(draws, "127.0.0.1", often=0.2),
                port=draws.choice((self.port, self.port, self.port, 1, -1, 70_000)),
                rack=_maybe_hostile(draws, "a"),
            )
            for number in (1, 2)
        ]
        partitions = [
            partition(
                error_code=0,
                partition_index=number,
                leader_id=1,
                leader_epoch=0,
                replica_nodes=draws.choice(([1, 2], [], [1])),
                isr_nodes=[1],
                offline_replicas=[],
            )
            for number in range(draws.choice((0, 1, 2)))
        ]
        topics = [
            topic(
                error_code=0, name=_maybe_hostile(draws, "t") or "", is_internal=False, partitions=partitions
            )
        ]
        return kind(
            throttle_time_ms=0,
            brokers=brokers,
            cluster_id=_maybe_hostile(draws, "cluster"),
            controller_id=draws.choice((1, 2, -1, 9)),
            topics=topics,
        )


def _with_nulls(answer: Any, draws: Random) -> Any:
    """Return an answer, sometimes with null for a string or list, even where that is invalid."""
    part = answer
    while draws.random() < _NULL_SHARE:
        name = draws.choice(list(part.fields))
        value = getattr(part, name, None)
        if (
            isinstance(value, list)
            and value
            and hasattr(value[0], "fields")
            and draws.random() < _DEEPER_SHARE
        ):
            part = draws.choice(value)
        elif isinstance(value, list | str):
            setattr(part, name, None)
    return answer


def _maybe_hostile(draws: Random, usual: str, often: float = 0.5) -> str | None:
    if draws.random() > often:
        return usual
    return text(draws).encode("utf-8", "replace").decode()


def _garbled(frame: bytearray, draws: Random) -> bytearray:
    match draws.randrange(4):
        case 0:
            for _ in range(draws.randrange(1, 5)):
                frame[draws.randrange(4, len(frame))] = draws.randrange(256)
        case 1:
            del frame[draws.randrange(len(frame)) :]
        case 2:
            frame[:4] = struct.pack(">i", draws.choice((-1, 0, 1, 2**31 - 1, 2**20)))
        case _:
            place = draws.randrange(4, len(frame))
            frame[place : place + 4] = struct.pack(">i", draws.choice((-1, -2, 2**31 - 1, 2**24)))
    return frame
