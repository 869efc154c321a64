"""How requests wait for a thread of their broker while it, or its disk, is slow (``RequestChannel``, ``KafkaRequestHandlerPool``).

Network threads (``num.network.threads``) read requests from sockets and put them into one queue (``queued.max.requests``), from
which I/O threads (``num.io.threads``) take them. An append that waits for the disk keeps its thread. Once all of them wait, so
does everything else that the broker is asked for, what followers fetch and what the controller orders included; once the
queue is full, so do the network threads, with the answers that they would have sent.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from harrow.cluster_model.broker.append_locks import Steps
from harrow.cluster_model.events import RequestQueueFull
from harrow.cluster_model.protocol import LeaderAndIsrRequest, StopReplicaRequest, UpdateMetadataRequest
from harrow.cluster_model.settings import CONTROL_PLANE, BrokerConfig
from harrow.cluster_model.sim.connection import Exchange
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.sim.message import Body

_CONTROL_PLANE_QUEUE: Final = 20
"""How many requests the queue of the control plane holds (``SocketServer.ControlPlaneQueueSize``)."""


@dataclass(slots=True)
class RequestPace:
    """How much longer each request takes a broker, whichever of its lives it is; all that makes it slow at once adds up."""

    request_us: int = 0
    delays_us: list[int] = field(default_factory=list)

    def slow_down(self, request_us: int) -> None:
        self.delays_us.append(request_us)
        self.request_us = sum(self.delays_us)

    def speed_up(self, request_us: int) -> None:
        """Undo one `slow_down`; what has been healed meanwhile is as it is."""
        if request_us in self.delays_us:
            self.delays_us.remove(request_us)
        self.request_us = sum(self.delays_us)

    def heal(self) -> None:
        self.delays_us.clear()
        self.request_us = 0


_Backlog = deque[tuple[Exchange[Body], bool, Body | None]]
"""What a network thread has not come to: requests (True), and answers with their bodies."""


class RequestChannels:
    """The requests of a broker: one queue for all, or another one for what controllers send (KIP-291).

    *handle* returns what a thread does that has come to a request; *send* is given an answer.
    """

    def __init__(
        self,
        broker: int,
        host: Host,
        config: BrokerConfig,
        handle: Callable[[Exchange[Body]], Steps],
        send: Callable[[Exchange[Body], Body | None], None],
    ) -> None:
        def channel(network_threads: int, requests_max: int, io_threads: int) -> RequestChannel:
            return RequestChannel(
                broker,
                host,
                handle,
                send,
                network_threads=network_threads,
                requests_max=requests_max,
                io_threads=io_threads,
            )

        self._data_plane = channel(config.network_threads, config.queued_requests_max, config.io_threads)
        self._control_plane = (
            channel(1, _CONTROL_PLANE_QUEUE, 1)
            if config.control_plane_listener == CONTROL_PLANE
            else self._data_plane
        )

    @property
    def are_idle(self) -> bool:
        """Whether every thread waits for something to do."""
        return self._data_plane.is_idle and self._control_plane.is_idle

    def put(self, exchange: Exchange[Body]) -> None:
        """Take a request that has come."""
        self._channel_of(exchange).put(exchange)

    def answer(self, exchange: Exchange[Body], body: Body | None) -> None:
        """Answer a request, as soon as its network thread comes to it."""
        self._channel_of(exchange).answer(exchange, body)

    def close(self) -> None:
        """Handle what has been put into a queue, and nothing any more."""
        self._data_plane.close()
        self._control_plane.close()

    def _channel_of(self, exchange: Exchange[Body]) -> "RequestChannel":
        of_controller = isinstance(
            exchange.request, (LeaderAndIsrRequest, UpdateMetadataRequest, StopReplicaRequest)
        )
        return self._control_plane if of_controller else self._data_plane


class RequestChannel:
    """A queue of requests, and the threads before and behind it.

    *handle* returns what a thread does with a request; *send* is given an answer.
    """

    def __init__(
        self,
        broker: int,
        host: Host,
        handle: Callable[[Exchange[Body]], Steps],
        send: Callable[[Exchange[Body], Body | None], None],
        *,
        network_threads: int,
        requests_max: int,
        io_threads: int,
    ) -> None:
        self._broker = broker
        self._host = host
        self._handle = handle
        self._send = send
        self._requests_max = requests_max
        self._io_threads = io_threads
        # What each I/O thread that is not free goes on with after it has waited.
        self._under_way: list[Steps] = []
        self._queue: deque[Exchange[Body]] = deque()
        # One for each network thread; the first thing in it is a request that has no place in the queue.
        self._backlogs: list[_Backlog] = [deque() for _ in range(network_threads)]
        # Those that wait for a place, in the order in which they came to it.
        self._blocked: deque[_Backlog] = deque()
        # The one that goes on now: what comes in meanwhile, for an answer lets the next request in, comes after what it has.
        self._draining: _Backlog | None = None
        self._is_dispatching = False

    @property
    def is_idle(self) -> bool:
        """Whether every thread waits for something to do."""
        return not self._queue and not self._under_way and not self._blocked

    def put(self, exchange: Exchange[Body]) -> None:
        """Take a request that has come."""
        backlog = self._backlog_of(exchange)
        if backlog or backlog is self._draining:
            backlog.append((exchange, True, None))
        else:
            self._enqueue(exchange, backlog)
            self._dispatch()

    def answer(self, exchange: Exchange[Body], body: Body | None) -> None:
        """Have the network thread of a request send its answer."""
        backlog = self._backlog_of(exchange)
        if backlog or backlog is self._draining:
            backlog.append((exchange, False, body))
        else:
            self._send(exchange, body)

    def close(self) -> None:
        """Handle what threads wait with and what has been put into the queue, and nothing any more.

        After ``KafkaRequestHandlerPool.shutdown``, but at once.
        """
        under_way, self._under_way = self._under_way, []
        queue, self._queue = self._queue, deque()
        self._io_threads = 0
        for steps in (*under_way, *[self._handle(exchange) for exchange in queue]):
            for _ in steps:
                pass

    def _backlog_of(self, exchange: Exchange[Body]) -> _Backlog:
        """Return what the network thread of a connection has not come to; connections take turns."""
        return self._backlogs[exchange.connection.id % len(self._backlogs)]

    def _enqueue(self, exchange: Exchange[Body], backlog: _Backlog) -> bool:
        """Put a request into the queue; return False where it has no place, and its network thread waits for one."""
        if len(self._queue) < self._requests_max:
            self._queue.append(exchange)
            return True
        backlog.appendleft((exchange, True, None))
        self._blocked.append(backlog)
        self._host.emit(RequestQueueFull, self._broker, len(self._queue))
        return False

    def _dispatch(self) -> None:
        """Give requests to the I/O threads that are free."""
        if self._is_dispatching:
            return
        self._is_dispatching = True
        while self._queue and len(self._under_way) < self._io_threads:
            exchange = self._queue.popleft()
            self._drain_next()
            steps = self._handle(exchange)
            self._under_way.append(steps)
            self._work(steps)
        self._is_dispatching = False

    def _work(self, steps: Steps) -> None:
        """Have a thread do what it can do before it has to wait."""
        wait_us = next(steps, None)
        if wait_us is None:
            self._under_way.remove(steps)
        else:
            self._host.set_timer(wait_us, self._work_again, steps)

    def _work_again(self, steps: Steps) -> None:
        if steps in self._under_way:
            self._work(steps)
            self._dispatch()

    def _drain_next(self) -> None:
        """Let the network thread that has waited longest go on: there is a place."""
        if not self._blocked:
            return
        self._draining = backlog = self._blocked.popleft()
        while backlog:
            exchange, is_request, body = backlog.popleft()
            if not is_request:
                self._send(exchange, body)
            elif not self._enqueue(exchange, backlog):
                break
        self._draining = None
