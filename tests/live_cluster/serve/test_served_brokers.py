"""The ports of served brokers wait for clients without work of their own."""

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest
from kafka.protocol.metadata import ApiVersionsRequest, FindCoordinatorRequest, MetadataRequest

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.run.targets.model_target import ModelTarget
from harrow.cluster_model.sim.choices import Choices
from harrow.cluster_model.sim.process import Process
from harrow.live_cluster.serve import served_brokers
from harrow.live_cluster.serve.ports.client_socket import ClientSocket
from harrow.live_cluster.serve.served_brokers import ServedBrokers
from harrow.live_cluster.serve.served_target import ServedTarget
from tests.patience import act_until

CAMPAIGN = """
name: served
kafka: "4.3"
cluster: {brokers: 1, topics: [{name: t}]}
workload: {duration: 1s}
"""
COUNT = 3_000


def started(
    connections_max: int = 500, note_limit: Callable[[int], None] = lambda _: None
) -> tuple[ServedBrokers, ServedTarget]:
    """Return brokers that listen, and the cluster behind them."""
    (plan,) = load_text(CAMPAIGN, "c.yaml").plans
    brokers = ServedBrokers([0], "127.0.0.1", [0], connections_max=connections_max, note_limit=note_limit)
    target = ServedTarget(plan, Choices.from_seed(0), (), brokers)
    target.start()
    return brokers, target


def serve(brokers: ServedBrokers, target: ServedTarget) -> None:
    """Take what clients do, while the time of the model stands still."""
    brokers.wait(target.now_us + 1)
    if brokers.is_due(target.now_us + 1):
        brokers.take()


def test_a_connection_beyond_the_limit_is_closed_at_once_and_the_limit_is_named_once() -> None:
    named: list[int] = []
    served, target = started(connections_max=2, note_limit=named.append)
    with ExitStack() as stack:
        clients = [stack.enter_context(socket.create_connection(served.addresses[0])) for _ in range(4)]
        for _ in range(20):
            serve(served, target)
        assert len(target.real_clients.connections) == 2
        assert clients[2].recv(1) == clients[3].recv(1) == b""
    assert named == [2]
    served.close()


def test_connections_leave_room_in_the_limit_of_open_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served_brokers, "_files_max", lambda _: served_brokers._OTHER_FILES + 2)
    named: list[int] = []
    served, target = started(note_limit=named.append)
    with ExitStack() as stack:
        for _ in range(2):
            stack.enter_context(socket.create_connection(served.addresses[0]))
        act_until(lambda: bool(named), lambda: serve(served, target))
    assert named == [1]
    served.close()


@contextmanager
def at_most_open_files(count: int) -> Iterator[None]:
    """Lower the limit of open files, and restore it."""
    resource = pytest.importorskip("resource", reason="only POSIX limits open files")
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (count, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.parametrize("soft", [256, 1_024])
def test_a_low_limit_of_open_files_is_raised_for_connections(soft: int) -> None:
    with at_most_open_files(soft):
        served, _ = started()
        assert served._connections_max == 500
        served.close()


def test_a_server_that_may_open_no_more_files_closes_new_connections() -> None:
    named: list[int] = []
    served, target = started(note_limit=named.append)
    with ExitStack() as stack:
        client = stack.enter_context(socket.create_connection(served.addresses[0]))
        # All numbers below that of the last copy are in use, so that none is left for a new file.
        copies = [os.dup(served._spare.fileno())]
        while copies[-1] < served._spare.fileno():
            copies.append(os.dup(served._spare.fileno()))
        for copy in copies:
            stack.callback(os.close, copy)
        with at_most_open_files(copies[-1]):
            act_until(lambda: bool(named), lambda: serve(served, target))
        assert client.recv(1) == b""
        assert not served._sockets
    served.close()


def test_an_idle_connection_costs_a_step_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    watched: list[ClientSocket] = []
    watch = ServedBrokers._watch

    def note(brokers: ServedBrokers, client: ClientSocket) -> None:
        watched.append(client)
        watch(brokers, client)

    monkeypatch.setattr(ServedBrokers, "_watch", note)
    served, target = started()
    request = ApiVersionsRequest[0]()
    request.with_header(1, "client")
    with ExitStack() as stack:
        idle = [stack.enter_context(socket.create_connection(served.addresses[0])) for _ in range(20)]
        act_until(lambda: len(served._sockets) == len(idle), lambda: serve(served, target))
        serve(served, target)
        watched.clear()
        busy = stack.enter_context(socket.create_connection(served.addresses[0]))
        busy.sendall(request.encode(header=True, framed=True))
        busy.setblocking(False)
        answer = bytearray()

        def read() -> None:
            serve(served, target)
            with suppress(BlockingIOError):
                answer.extend(busy.recv(1 << 20))

        act_until(lambda: bool(answer), read)
        assert {client.number for client in watched} == {len(idle)}
    served.close()


def test_the_client_that_fills_the_memory_loses_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served_brokers, "_BUFFERED_MAX", 1_000)
    served, target = started()
    with ExitStack() as stack:
        modest, greedy = (
            stack.enter_context(socket.create_connection(served.addresses[0])) for _ in range(2)
        )
        modest.sendall((100).to_bytes(4) + b"x")
        greedy.sendall((10_000).to_bytes(4) + b"x" * 2_000)
        for _ in range(20):
            serve(served, target)
        assert len(target.real_clients.connections) == 1
        assert greedy.recv(1) == b""
    served.close()


def test_a_client_that_gets_no_answers_is_neither_read_for_ever_nor_written_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    writes: list[ClientSocket] = []
    monkeypatch.setattr(ClientSocket, "write", writes.append)
    served, target = started()
    request = MetadataRequest[9](topics=None, allow_auto_topic_creation=False)
    request.with_header(1, "client")
    with socket.create_connection(served.addresses[0]) as client:
        client.sendall(request.encode(header=True, framed=True) * COUNT)
        # The time of the model stands still, so that the broker answers nothing.
        for _ in range(20):
            serve(served, target)
        (connection,) = target.real_clients.connections.values()
        assert not connection.may_send
        serve(served, target)
        assert writes == []
    served.close()


def test_a_closed_connection_whose_answers_are_lost_gives_its_socket_back() -> None:
    served, target = started()
    request = FindCoordinatorRequest[4](key_type=0, coordinator_keys=[f"g{number}" for number in range(500)])
    request.with_header(1, "client")
    with socket.create_connection(served.addresses[0]) as client:
        client.sendall(request.encode(header=True, framed=True))
        act_until(lambda: bool(target.real_clients.connections), lambda: serve(served, target))
        (connection,) = target.real_clients.connections.values()
        act_until(lambda: not connection.may_send, lambda: serve(served, target))
        target.cluster.network.cut("broker-0", "client")
        act_until(lambda: connection.may_send, lambda: target.step(target.now_us + 1_000_000))
    act_until(lambda: not served._sockets, lambda: target.step(target.now_us + 1_000_000))
    served.close()


def test_a_client_that_reads_late_gets_every_answer() -> None:
    served, target = started()
    request = ApiVersionsRequest[0]()
    request.with_header(1, "client")
    with socket.create_connection(served.addresses[0]) as client:
        act_until(lambda: bool(served._sockets), lambda: serve(served, target))
        (accepted,) = served._sockets.values()
        accepted.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
        client.setblocking(False)
        client.sendall(request.encode(header=True, framed=True) * COUNT)
        act_until(lambda: bool(accepted.to_send), lambda: serve(served, target))

        def read() -> None:
            serve(served, target)
            with suppress(BlockingIOError):
                client.recv(1 << 20)

        act_until(lambda: not accepted.to_send, read)
        assert not accepted.is_broken
    served.close()


def test_a_late_server_takes_waiting_requests_before_timers_that_are_due(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    served, target = started()
    request = ApiVersionsRequest[0]()
    request.with_header(1, "client")
    happened: list[str] = []
    monkeypatch.setattr(target.real_clients, "receive", lambda *_: happened.append("request"))
    with socket.create_connection(served.addresses[0]) as client:
        act_until(lambda: bool(served._sockets), lambda: serve(served, target))
        host = target.cluster.host(Process("app"))
        host.set_timer(10_000_000, lambda _: happened.append("timer"))
        client.sendall(request.encode(header=True, framed=True))
        served._began_s -= 20
        end_us = target.now_us + 15_000_000
        act_until(lambda: "timer" in happened, lambda: target.step(end_us))
    assert happened == ["request", "timer"]
    served.close()


def test_a_timer_that_is_over_before_it_is_set_does_not_turn_the_clock_back() -> None:
    (plan,) = load_text(CAMPAIGN, "c.yaml").plans
    cluster = ModelTarget(plan, Choices.from_seed(0), ()).cluster
    cluster.simulator.run_until(1_000)
    host, fired = cluster.host(Process("app")), []
    host.set_timer(-500, lambda _: fired.append(cluster.simulator.now_us))
    cluster.simulator.run_until(1_001)
    assert fired == [1_000]
