"""librdkafka with a broker that does not know a topic yet, here a server of Metadata only."""

import socketserver
import struct
import threading
import time
from collections.abc import Iterator
from typing import Any, Final

import pytest
from confluent_kafka import KafkaError, Producer

from harrow.cluster_model.topology import CONFLUENT_KAFKA
from harrow.live_cluster.clients.client_settings import LIBRARIES

_METADATA: Final = 3
_API_VERSIONS: Final = 18
_FIRST_FLEXIBLE: Final = 3
_VERSIONS: Final = {0: (0, 7), 1: (0, 4), _METADATA: (4, 4), _API_VERSIONS: (0, 3)}
_UNKNOWN_TOPIC_OR_PARTITION: Final = 3
_TOPIC: Final = "t"
_PROPAGATION: Final = "topic.metadata.propagation.max.ms"
_WATCHED_S: Final = 1.5
_WAIT_MAX_S: Final = 60.0


class MetadataServer(socketserver.ThreadingTCPServer):
    """A broker that leads a partition of a topic or knows none, and never answers Produce."""

    daemon_threads = True
    knows_topic = True

    def answer(self, api: int, version: int) -> bytes | None:
        if api == _API_VERSIONS:
            return _api_versions(version)
        return self._metadata() if api == _METADATA else None

    def _metadata(self) -> bytes:
        host, port = self.server_address[:2]
        brokers = struct.pack(">ii", 1, 0) + _string(str(host)) + struct.pack(">ih", port, -1)
        if self.knows_topic:
            partition = struct.pack(">hii", 0, 0, 0) + struct.pack(">iiii", 1, 0, 1, 0)
            topic = struct.pack(">h", 0) + _string(_TOPIC) + struct.pack(">?i", False, 1) + partition
        else:
            topic = (
                struct.pack(">h", _UNKNOWN_TOPIC_OR_PARTITION)
                + _string(_TOPIC)
                + struct.pack(">?i", False, 0)
            )
        return struct.pack(">i", 0) + brokers + _string("c") + struct.pack(">ii", 0, 1) + topic


class _MetadataConnection(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        assert isinstance(self.server, MetadataServer)
        while len(size := self.rfile.read(4)) == 4:
            frame = self.rfile.read(*struct.unpack(">i", size))
            api, version, correlation_id = struct.unpack_from(">hhi", frame)
            body = self.server.answer(api, version)
            if body is not None:
                self.wfile.write(struct.pack(">ii", len(body) + 4, correlation_id) + body)


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def _api_versions(version: int) -> bytes:
    entries = [struct.pack(">hhh", api, *versions) for api, versions in _VERSIONS.items()]
    if version < _FIRST_FLEXIBLE:
        return (
            struct.pack(">hi", 0, len(entries))
            + b"".join(entries)
            + (struct.pack(">i", 0) if version else b"")
        )
    return struct.pack(">hB", 0, len(entries) + 1) + b"".join(one + b"\0" for one in entries) + b"\0" * 5


@pytest.fixture
def server() -> Iterator[MetadataServer]:
    with MetadataServer(("127.0.0.1", 0), _MetadataConnection) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        yield listening
        listening.shutdown()


def errors_once_unknown(server: MetadataServer, watched_s: float, **settings: Any) -> list[str]:
    """Return the errors of records that are queued when the broker no longer knows their topic."""
    host, port = server.server_address[:2]
    connection = LIBRARIES[CONFLUENT_KAFKA].connection([f"{host!s}:{port}"], "p")
    # The producer lingers, because a record in a request ends with the request.
    producer = Producer({**connection, "linger.ms": 1_000 * _WAIT_MAX_S, **settings})
    errors: list[str] = []

    def ended(error: KafkaError | None, _: Any) -> None:
        errors.append("" if error is None else error.name())

    producer.produce(_TOPIC, b"m0", partition=0, on_delivery=ended)
    producer.list_topics(_TOPIC, timeout=10)
    server.knows_topic = False
    until_s = time.monotonic() + watched_s
    while not errors and time.monotonic() < until_s:
        producer.list_topics(_TOPIC, timeout=10)
        producer.poll(0.05)
    before_purge = list(errors)
    producer.purge()
    producer.flush(5)
    return before_purge


def test_records_wait_for_a_new_topic(server: MetadataServer) -> None:
    assert errors_once_unknown(server, _WATCHED_S) == []


def test_librdkafka_without_propagation_time_gives_records_up(server: MetadataServer) -> None:
    assert errors_once_unknown(server, _WAIT_MAX_S, **{_PROPAGATION: 0}) != []
