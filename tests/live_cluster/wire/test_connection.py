"""A connection exchanges one request and answer at a time, and reports every failure."""

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress

import pytest
from kafka.protocol.consumer import FetchRequest, ListOffsetsRequest, ListOffsetsResponse
from kafka.protocol.metadata import ApiVersionsRequest, ApiVersionsResponse

from harrow.live_cluster.wire.connection import BrokerConnection, ConnectionLostError

Answer = Callable[[bytes], bytes | None]
Broker = Callable[..., BrokerConnection]


@pytest.fixture
def broker() -> Iterator[Broker]:
    """Return a function that connects to a broker with scripted answers, where None hangs up."""
    with ExitStack() as opened:

        def serve(server: socket.socket, answers: list[Answer]) -> None:
            left = list(answers)
            with suppress(OSError):  # The test has ended.
                while left:
                    connection, _ = server.accept()
                    with connection:
                        while left:
                            header = connection.recv(4, socket.MSG_WAITALL)
                            if not header:
                                break
                            request = connection.recv(struct.unpack(">i", header)[0], socket.MSG_WAITALL)
                            answer = left.pop(0)(request)
                            if answer is None:
                                break
                            connection.sendall(answer)

        def connect(*answers: Answer, timeout_s: float = 30) -> BrokerConnection:
            server = opened.enter_context(socket.create_server(("127.0.0.1", 0)))
            threading.Thread(target=serve, args=(server, answers), daemon=True).start()
            return opened.enter_context(BrokerConnection(server.getsockname(), timeout_s=timeout_s))

        yield connect


def offsets(offset: int) -> Answer:
    topic = ListOffsetsResponse.ListOffsetsTopicResponse
    partition = topic.ListOffsetsPartitionResponse(partition_index=0, error_code=0, offset=offset)

    def answer(request: bytes) -> bytes:
        response = ListOffsetsResponse[1](topics=[topic(name="t", partitions=[partition])])
        response.with_header(correlation_id=struct.unpack(">i", request[4:8])[0])
        return bytes(response.encode(header=True, framed=True))

    return answer


def versions(lowest: int, highest: int) -> Answer:
    api = ApiVersionsResponse.ApiVersion(
        api_key=FetchRequest.API_KEY, min_version=lowest, max_version=highest
    )

    def answer(request: bytes) -> bytes:
        assert struct.unpack(">hh", request[:4]) == (ApiVersionsRequest.API_KEY, 0)
        response = ApiVersionsResponse[0](error_code=0, api_keys=[api])
        response.with_header(correlation_id=struct.unpack(">i", request[4:8])[0])
        return bytes(response.encode(header=True, framed=True))

    return answer


def request() -> object:
    return ListOffsetsRequest[1](replica_id=-2, topics=[])


def test_each_request_has_its_answer(broker: Broker) -> None:
    connection = broker(offsets(3), offsets(4))
    assert [connection.ask(request()).topics[0].partitions[0].offset for _ in range(2)] == [3, 4]


def test_a_request_after_a_failure_opens_another_connection(broker: Broker) -> None:
    connection = broker(lambda _: None, offsets(4))
    with pytest.raises(
        ConnectionLostError, match=r"127\.0\.0\.1:\d+ does not answer ListOffsetsRequest: the connection was"
    ):
        connection.ask(request())
    assert connection.ask(request()).topics[0].partitions[0].offset == 4


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda _: b"\xff\xff\xff\xff", "a frame of -1 bytes"),
        (lambda _: b"\x7f\xff\xff\xff", "a frame of 2147483647 bytes"),
        (lambda _: b"\0\0\0\x08\0\0\0\x63\0\0\0\0", "it answers request 99"),
        (lambda _: b"\0\0\0\x05\0\0\0\x01\0", "does not answer ListOffsetsRequest"),
    ],
)
def test_a_response_that_breaks_the_protocol_is_refused(broker: Broker, answer: Answer, message: str) -> None:
    with pytest.raises(ConnectionLostError, match=message):
        broker(answer).ask(request())


def test_a_request_to_a_silent_broker_times_out(broker: Broker) -> None:
    with pytest.raises(ConnectionLostError, match="timed out"):
        broker(lambda _: b"\0", offsets(0), timeout_s=0.1).ask(request())
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
    with pytest.raises(ConnectionLostError, match="refused"):
        BrokerConnection(address).ask(request())


def test_the_highest_common_version_is_used_and_negotiated_once(broker: Broker) -> None:
    connection = broker(versions(4, 12))
    assert connection.version_of(FetchRequest, 3, 4, 11) == 11
    assert connection.version_of(FetchRequest, 3, 4) == 4
    with pytest.raises(ConnectionLostError, match="supports no known version of FetchRequest"):
        connection.version_of(FetchRequest, 3)
    with pytest.raises(ConnectionLostError, match="supports no known version of ListOffsetsRequest"):
        connection.version_of(ListOffsetsRequest, 1)
