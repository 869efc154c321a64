"""A request that asks for thousands of things at once does not hold up others."""

import socket

from kafka.protocol.consumer import OffsetFetchRequest
from kafka.protocol.metadata import FindCoordinatorRequest, FindCoordinatorResponse

from harrow.live_cluster.wire.connection import BrokerConnection
from tests.live_cluster.serve.test_served_run import CALM, run_with
from tests.patience import PATIENCE_S

KEYS = [f"group-{number}" for number in range(5_000)]


def frame(request: object, correlation_id: int) -> bytes:
    request.with_header(correlation_id, "client")  # type: ignore[attr-defined]  # kafka-python has no types
    return bytes(request.encode(header=True, framed=True))  # type: ignore[attr-defined]  # likewise


def test_other_clients_are_served_while_a_broker_finds_thousands_of_coordinators() -> None:
    finds = frame(FindCoordinatorRequest[4](key_type=0, coordinator_keys=KEYS), 1)
    fetches = frame(
        OffsetFetchRequest[8](
            groups=[OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g", topics=None)],
            require_stable=False,
        ),
        2,
    )

    def use(servers: str) -> None:
        host, _, port = servers.partition(",")[0].partition(":")
        with (
            socket.create_connection((host, int(port)), PATIENCE_S) as client,
            BrokerConnection((host, int(port))) as other,
        ):
            client.sendall(finds + fetches)
            found = other.ask(FindCoordinatorRequest[4](key_type=0, coordinator_keys=["g"]))
            assert len(found.coordinators) == 1
            client.setblocking(False)
            try:
                answered = client.recv(1)
            except BlockingIOError:
                answered = b""
            assert answered == b""
            client.settimeout(PATIENCE_S)
            with client.makefile("rb") as answers:
                data = answers.read(int.from_bytes(answers.read(4)))
                answer = FindCoordinatorResponse[4].decode(data, header=True)
                assert [each.key for each in answer.coordinators] == KEYS
                next_data = answers.read(int.from_bytes(answers.read(4)))
                assert [data[:4], next_data[:4]] == [b"\0\0\0\1", b"\0\0\0\2"]

    run_with(CALM, use)
