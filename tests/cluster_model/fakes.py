"""Fakes of the host that an actor runs on: it records messages, and a test moves its clock."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any

from harrow.cluster_model.controller.control_plane import MetadataDelta
from harrow.cluster_model.log.disk import Disk
from harrow.cluster_model.log.log_manager import LogManager
from harrow.cluster_model.log.record_batch import NO_PRODUCER_ID, RecordBatch
from harrow.cluster_model.release.profiles import Behaviours
from harrow.cluster_model.settings import Value, broker_config, topic_config
from harrow.cluster_model.sim.choices import Choices
from harrow.cluster_model.sim.connection import ClientEndpoint, Connection, Exchange, Reply, ServerEndpoint
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.sim.message import Body
from harrow.cluster_model.sim.process import Process
from harrow.cluster_model.trace import Clock, Trace, TraceEvent
from tests.recorded_choices import recorded_choices

MS = 1_000
SECOND = 1_000_000

SMALLEST_CHOICES: dict[str, tuple[int, ...]] = {}
"""An empty recording: every draw returns the smallest choice."""


class FakeClock(Clock):
    def __init__(self) -> None:
        self.now_us = 0


@dataclass(eq=False)
class Sent:
    """A request that has been sent, and a way to answer it."""

    connection: Connection
    correlation_id: int
    body: Any
    at_us: int

    @property
    def server(self) -> str:
        return self.connection.server.name

    def answer(self, body: Any) -> None:
        self.connection.client_endpoint.receive_response(Reply(self.connection, self.correlation_id, body))

    def lose(self) -> None:
        """Break the connection of the request."""
        self.connection.is_open = False
        self.connection.client_endpoint.connection_lost(self.connection)


@dataclass(order=True)
class _Timer:
    at_us: int
    number: int
    callback: Callable[[Any], None] = field(compare=False)
    argument: Any = field(compare=False)


class FakeHost(Host):
    """Records sent messages, runs timers when a test moves the clock, draws the least choice."""

    def __init__(self, name: str = "host", choices: Choices | None = None) -> None:
        self.clock = FakeClock()
        trace = Trace(self.clock)
        self.events: Sequence[TraceEvent] = trace.events
        self.trace = trace
        self.subscribe = trace.subscribe
        self.choices = choices or recorded_choices(dict(SMALLEST_CHOICES))
        self.name = name
        self.skew_us = 0
        self.sent: list[Sent] = []
        self.responses: list[Any] = []
        self.closed: list[Connection] = []
        self.closed_by_server: list[Connection] = []
        self.connections: list[Connection] = []
        self.exits = 0
        self.halts = 0
        self._timers: list[_Timer] = []
        self._timer_number = 0

    # For actors

    def set_timer(self, delay_us: int, callback: Callable[[Any], None], argument: Any = None) -> None:
        assert delay_us >= 0, "a timer in the past"
        self._timer_number += 1
        heappush(self._timers, _Timer(self.clock.now_us + delay_us, self._timer_number, callback, argument))

    def connect(self, server: str, listener: str, endpoint: ClientEndpoint) -> Connection:
        number = len(self.connections)
        connection = Connection(number, Process(self.name), Process(server), listener, endpoint)
        self.connections.append(connection)
        return connection

    def send_request(self, connection: Connection, correlation_id: int, body: Any) -> None:
        assert connection.is_open, "a request over a closed connection"
        self.sent.append(Sent(connection, correlation_id, body, self.clock.now_us))

    def send_response(self, connection: Connection, correlation_id: int, body: Any) -> None:
        self.responses.append(Reply(connection, correlation_id, body))

    def close(self, connection: Connection) -> None:
        connection.is_open = False
        self.closed.append(connection)

    def close_by_server(self, connection: Connection) -> None:
        self.closed_by_server.append(connection)

    def exit(self) -> None:
        self.exits += 1

    def halt(self) -> None:
        self.halts += 1

    # For tests

    def advance(self, duration_us: int) -> None:
        """Move the clock, and run the timers that become due, in order."""
        end_us = self.clock.now_us + duration_us
        while self._timers and self._timers[0].at_us <= end_us:
            timer = heappop(self._timers)
            self.clock.now_us = timer.at_us
            timer.callback(timer.argument)
        self.clock.now_us = end_us

    def timers(self) -> int:
        """Return how many timers have ever been set."""
        return self._timer_number

    def requests(self, api: str | None = None) -> list[Sent]:
        """Return requests of an API, by default of any, that a test has not yet taken. Their
        connection is open."""
        return [sent for sent in self.sent if sent.connection.is_open and api in (None, sent.body.api)]

    def take(self, api: str | None = None) -> Sent:
        """Take the oldest of `requests`."""
        pending = self.requests(api)
        assert pending, f"nothing under way of {api or 'any API'}"
        self.sent.remove(pending[0])
        return pending[0]

    def events_named(self, name: str) -> list[tuple[Any, ...]]:
        """Return the fields of the trace's events of one name."""
        return [event[2:] for event in self.events if event[1] == name]


class FakeServerEndpoint(ServerEndpoint):
    """A server's end of a connection. It keeps the requests, with the time of each."""

    def __init__(self, clock: Any) -> None:
        self._clock = clock
        self.received: list[tuple[int, Any]] = []
        self.closed: list[int] = []
        self.messages: list[Any] = []

    def bodies(self) -> list[Any]:
        return [body for _, body in self.received]

    def receive_request(self, exchange: Exchange[Body]) -> None:
        self.messages.append(exchange)
        self.received.append((self._clock.now_us, exchange.request))

    def connection_closed(self, connection: Connection) -> None:
        self.closed.append(connection.id)
        self.received.append((self._clock.now_us, "closed"))


class FakeEndpoint(ClientEndpoint):
    """A client's end of a connection. It keeps the responses, with the time of each."""

    def __init__(self, clock: Any) -> None:
        self._clock = clock
        self.received: list[tuple[int, Any]] = []
        self.lost: list[int] = []
        self.messages: list[Any] = []

    def bodies(self) -> list[Any]:
        return [body for _, body in self.received]

    def receive_response(self, reply: Reply) -> None:
        self.messages.append(reply)
        self.received.append((self._clock.now_us, reply.body))

    def connection_lost(self, connection: Connection) -> None:
        self.lost.append(connection.id)
        self.received.append((self._clock.now_us, "lost"))


def batch(
    *values: str,
    producer_id: int = NO_PRODUCER_ID,
    epoch: int = 0,
    sequence: int = -1,
    at: int = -1,
    leader_epoch: int = -1,
    size: int = 0,
) -> RecordBatch:
    """Return a batch; with ``at`` and ``leader_epoch`` as a log stores it."""
    producer_epoch = epoch if producer_id != NO_PRODUCER_ID else -1
    return RecordBatch(values, producer_id, producer_epoch, sequence, at, leader_epoch, size)


def transactional(*values: str, producer_id: int = 9, sequence: int = 0) -> RecordBatch:
    """Return a batch of a transaction."""
    return RecordBatch(values, producer_id, 0, sequence, is_transactional=True)


def control(control_type: str, *, producer_id: int = 9, epoch: int = 0) -> RecordBatch:
    """Return the control batch that ends a transaction."""
    return RecordBatch((), producer_id, epoch, is_transactional=True, control_type=control_type)


def log_manager(
    broker: int, host: FakeHost, disk: Disk, behaviours: Behaviours, topic: Mapping[str, Value] | None = None
) -> LogManager:
    """Return the logs of a broker with default settings; its topics have settings of their own."""
    config = broker_config("2.4", {})
    return LogManager(broker, host, disk, config, lambda _: topic_config(topic or {}, config), behaviours)


def slow_disk() -> Disk:
    """Return a disk that takes a second for each append."""
    disk = Disk()
    disk.slow_down(SECOND)
    return disk


def disk_with(partition: str, *epochs_and_values: tuple[int, str], flushed: int = 0) -> Disk:
    """Return a disk with a log of one-record batches, each as (leader epoch, value)."""
    disk = Disk()
    write_log(disk, partition, *epochs_and_values)
    disk.log_file(partition).flushed_offset = flushed
    return disk


def write_log(disk: Disk, partition: str, *epochs_and_values: tuple[int, str]) -> None:
    """Put a log of one-record batches on a disk, each as (leader epoch, value)."""
    file = disk.log_file(partition)
    checkpoint = disk.epoch_checkpoint(partition)
    for offset, (epoch, value) in enumerate(epochs_and_values):
        if not checkpoint or checkpoint[-1][0] != epoch:
            checkpoint.append((epoch, offset))
        file.append(batch(value, at=offset, leader_epoch=epoch))


class FakeListener:
    """A broker that records the calls of its part of the control plane."""

    known_controller = -1

    def __init__(self) -> None:
        self.log: list[object] = []

    def has_failed_log_dirs(self) -> bool:
        return False

    def on_registration(self, broker_epoch: int) -> None:
        self.log.append(broker_epoch)

    def on_unfencing(self) -> None:
        self.log.append("unfenced")

    def on_metadata_update(self, delta: MetadataDelta) -> None:
        self.log.append(delta)
