"""Requests that wait for a thread while the disk is slow."""

from typing import Any

import pytest

from harrow.cluster_model.broker.append_locks import AppendLocks, Steps
from harrow.cluster_model.broker.request_channel import RequestChannels
from harrow.cluster_model.log.unified_log import UnifiedLog
from harrow.cluster_model.protocol import (
    LeaderAndIsr,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    MetadataRequest,
    ProduceRequest,
    UpdateMetadataRequest,
)
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.settings import Value, broker_config
from harrow.cluster_model.sim.connection import ClientEndpoint, Connection, Exchange, Reply
from harrow.cluster_model.sim.message import Body
from tests.cluster_model.fakes import SECOND, FakeHost, batch, slow_disk


class Client(ClientEndpoint):
    """The other end of a connection."""

    def receive_response(self, reply: Reply) -> None:
        raise AssertionError(reply)

    def connection_lost(self, connection: Connection) -> None:
        raise AssertionError(connection)


class RequestThreads:
    """The threads of a broker with a disk that takes a second per append."""

    def __init__(self, **settings: Value) -> None:
        self.host = FakeHost("broker-0")
        options = {name.replace("_", "."): value for name, value in settings.items()}
        config = broker_config("2.4", options)
        self.disk = slow_disk()
        self.locks = AppendLocks(self.host, self.disk)
        self.handled: list[tuple[float, str]] = []
        self.sent: list[tuple[float, str]] = []
        self.channels = RequestChannels(0, self.host, config, self._handle, self._send)
        self.connections = [self.host.connect("broker-0", "clients", Client()) for _ in range(12)]

    @property
    def _now_s(self) -> float:
        return self.host.clock.now_us / SECOND

    def _handle(self, exchange: Exchange[Any]) -> Steps:
        """Append each batch, or change each partition, when its locks are free."""
        request, locks = exchange.request, self.locks
        for partition, appended in request.batches.items() if request.api == "Produce" else ():
            self.disk.place(partition)
            yield from locks.begin_append(partition)
            yield from locks.write(UnifiedLog(partition, self.disk, RELEASES["2.4"].behaviours), appended)
            locks.end_append(partition)
        for partition in request.partition_states if request.api == "LeaderAndIsr" else ():
            yield from locks.wait_for_appends(partition)
            locks.end_change()
        self.handled.append((self._now_s, name_of(request)))

    def _send(self, _: Exchange[Body], body: Any) -> None:
        self.sent.append((self._now_s, body))

    def enqueue(self, client: int, request: Any) -> None:
        self.channels.add_request(Exchange(self.connections[client], 1, request))

    def answer(self, client: int, body: Any) -> None:
        self.channels.answer(Exchange(self.connections[client], 1, METADATA), body)

    def run(self, duration_s: float) -> list[tuple[float, str]]:
        """Let time pass, and return the handled requests, each with its second."""
        self.host.advance(round(duration_s * SECOND))
        handled, self.handled[:] = self.handled[:], []
        return handled


def name_of(request: Any) -> str:
    return str(next(iter(request.batches.values())).values[0] if request.api == "Produce" else request.api)


def produce(value: str, *partitions: str) -> ProduceRequest:
    return ProduceRequest(1, SECOND, {name: batch(value) for name in partitions or ("t-0",)})


METADATA = MetadataRequest()
ORDER = LeaderAndIsrRequest(
    2, 1, 1, {"t-0": LeaderAndIsrPartitionState(1, LeaderAndIsr(1, 1, (1,), 0), (1,))}
)


def test_a_disk_handles_one_append_at_a_time() -> None:
    threads = RequestThreads()
    for client, value in enumerate(("a", "b", "c")):
        threads.enqueue(client, produce(value))
    assert threads.run(10) == [(1, "a"), (2, "b"), (3, "c")]


def test_each_log_directory_is_a_separate_disk() -> None:
    threads = RequestThreads()
    threads.disk.log_dirs = 2
    threads.enqueue(0, produce("a", "t-0"))
    threads.enqueue(1, produce("b", "t-1"))
    assert threads.run(10) == [(1, "a"), (1, "b")]


def test_a_request_that_appends_to_several_partitions_waits_for_each() -> None:
    threads = RequestThreads()
    threads.enqueue(0, produce("a", "t-0", "t-1", "t-2"))
    assert threads.run(10) == [(3, "a")]


def test_requests_do_not_wait_while_a_thread_is_free() -> None:
    threads = RequestThreads(num_io_threads=2)
    threads.enqueue(0, produce("a"))
    threads.enqueue(1, METADATA)
    assert threads.run(0) == [(0, "Metadata")]


def test_all_requests_wait_once_every_thread_waits_for_the_disk() -> None:
    threads = RequestThreads(num_io_threads=2)
    threads.enqueue(0, produce("a"))
    threads.enqueue(1, produce("b"))
    threads.enqueue(2, METADATA)
    assert not threads.channels.are_idle
    assert threads.run(10) == [(1, "a"), (1, "Metadata"), (2, "b")]
    assert threads.channels.are_idle


@pytest.mark.parametrize(
    ("settings", "handled"),
    [
        ({}, [(1, "a"), (2, "b"), (2, "LeaderAndIsr")]),
        # A change waits for the partition's append in progress (``Partition.leaderIsrUpdateLock``).
        (
            {"control_plane_listener_name": "CONTROL_PLANE"},
            [(1, "a"), (1, "LeaderAndIsr"), (2, "b")],
        ),
    ],
)
def test_a_controllers_request_waits_for_a_thread_unless_it_has_its_own(
    settings: dict[str, Value], handled: list[tuple[float, str]]
) -> None:
    threads = RequestThreads(num_io_threads=1, **settings)
    threads.enqueue(0, produce("a"))
    threads.enqueue(1, produce("b"))
    threads.enqueue(2, ORDER)
    assert threads.run(10) == handled


def test_a_full_queue_blocks_network_threads_and_their_answers() -> None:
    threads = RequestThreads(num_io_threads=1, num_network_threads=2, queued_max_requests=1)
    threads.enqueue(0, produce("a"))
    threads.enqueue(2, produce("b"))
    # The queue has one place, so the thread of clients 0, 2, 4 ... waits with this request.
    threads.enqueue(4, produce("c"))
    threads.enqueue(6, produce("d"))
    threads.answer(0, "by the thread that waits")
    threads.answer(1, "by the other one")
    assert threads.sent == [(0, "by the other one")]
    assert threads.host.events_named("request_queue_full") == [(0, 1)]
    assert threads.run(2.5) == [(1, "a"), (2, "b")]
    assert threads.sent[1:] == [(2, "by the thread that waits")]
    assert threads.run(10) == [(3, "c"), (4, "d")]


def test_a_request_admitted_by_an_answer_is_queued_once() -> None:
    threads = RequestThreads(num_io_threads=1, num_network_threads=1, queued_max_requests=1)
    pipelined = ["d"]

    def send(exchange: Exchange[Body], body: Any) -> None:
        threads.sent.append((threads.host.clock.now_us / SECOND, body))
        if pipelined:
            threads.channels.add_request(Exchange(exchange.connection, 2, produce(pipelined.pop())))

    threads.channels._data_plane._send = send
    for client, value in enumerate(("a", "b", "c")):
        threads.enqueue(client, produce(value))
    threads.answer(5, "an answer")
    assert threads.run(1.5) == [(1, "a")]
    assert threads.sent == [(1, "an answer")]
    assert threads.run(10) == [(2, "b"), (3, "c"), (4, "d")]
    assert threads.channels.are_idle
    assert threads.host.events_named("request_queue_full") == [(0, 1), (0, 1)]


def test_network_threads_get_places_in_the_queue_in_order_of_arrival() -> None:
    threads = RequestThreads(num_io_threads=1, num_network_threads=3, queued_max_requests=1)
    for client, value in enumerate(("a", "b", "c", "d")):
        threads.enqueue(client, produce(value))
    assert threads.run(10) == [(1, "a"), (2, "b"), (3, "c"), (4, "d")]


def test_a_change_before_time_zero_does_not_wait_without_appends() -> None:
    threads = RequestThreads()
    threads.host.clock.now_us = -5 * SECOND
    threads.enqueue(0, ORDER)
    assert threads.run(0) == [(-5, "LeaderAndIsr")]
    threads.enqueue(1, produce("a"))
    assert threads.run(10) == [(-4, "a")]


def test_queued_requests_are_handled_when_the_threads_stop() -> None:
    threads = RequestThreads(num_io_threads=1)
    threads.enqueue(0, produce("a"))
    threads.enqueue(1, produce("b"))
    threads.locks.close()
    threads.channels.close()
    assert threads.run(10) == [(0, "a"), (0, "b")]


def test_an_append_does_not_wait_after_the_disk_recovers() -> None:
    threads = RequestThreads(num_io_threads=1)
    threads.enqueue(0, produce("a"))
    threads.enqueue(1, UpdateMetadataRequest(2, 1, 1, {}, ()))
    threads.disk.write_us = 0
    threads.enqueue(2, produce("b"))
    assert threads.run(10) == [(1, "a"), (1, "UpdateMetadata"), (1, "b")]
