"""A request that asks for thousands of things at once does not hold up others."""

import socket
from contextlib import ExitStack, suppress

from kafka.protocol.consumer import OffsetFetchRequest
from kafka.protocol.metadata import FindCoordinatorRequest, FindCoordinatorResponse

from tests.live_cluster.serve.test_served_brokers import serve, started
from tests.live_cluster.serve.test_served_run import CALM, run_with
from tests.patience import PATIENCE_S, act_until

KEYS = [f"group-{number}" for number in range(5_000)]


def frame(request: object, correlation_id: int) -> bytes:
    request.with_header(correlation_id, "client")  # type: ignore[attr-defined]  # kafka-python has no types
    return bytes(request.encode(header=True, framed=True))  # type: ignore[attr-defined]  # likewise


def test_other_clients_are_served_while_a_broker_finds_thousands_of_coordinators() -> None:
    served, target = started()
    finds, other_finds = (
        frame(FindCoordinatorRequest[4](key_type=0, coordinator_keys=keys), 1) for keys in (KEYS, ["g"])
    )
    with ExitStack() as stack:
        client, other = (stack.enter_context(socket.create_connection(served.addresses[0])) for _ in range(2))
        client.sendall(finds)
        connections = target.real_clients.connections
        act_until(lambda: any(each._parts for each in connections.values()), lambda: serve(served, target))
        (busy,) = (each for each in connections.values() if each._parts)
        other.sendall(other_finds)
        other.setblocking(False)
        answer = bytearray()

        def step() -> None:
            target.step(target.now_us + 1_000_000)
            with suppress(BlockingIOError):
                answer.extend(other.recv(1 << 16))

        act_until(lambda: bool(answer), step)
        assert busy._parts is not None
    served.close()


def test_answers_about_thousands_of_coordinators_precede_those_to_later_requests() -> None:
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
            client.makefile("rb") as answers,
        ):
            client.sendall(finds + fetches)
            data = answers.read(int.from_bytes(answers.read(4)))
            answer = FindCoordinatorResponse[4].decode(data, header=True)
            assert [each.key for each in answer.coordinators] == KEYS
            next_data = answers.read(int.from_bytes(answers.read(4)))
            assert [data[:4], next_data[:4]] == [b"\0\0\0\1", b"\0\0\0\2"]

    run_with(CALM, use)
