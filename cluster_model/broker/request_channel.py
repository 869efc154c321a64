"""Queues requests for threads while a broker or its disk is slow.

Modelled on ``RequestChannel`` and ``KafkaRequestHandlerPool``. Network threads
(``num.network.threads``) read requests from sockets and put them into one queue
(``queued.max.requests``). I/O threads (``num.io.threads``) take requests from the queue and handle
them. An append that waits for the disk occupies its I/O thread. Once all I/O threads wait, every
other request waits too, including fetches of followers and requests of the controller. Once the
queue is full, the network threads wait as well, and so do the answers that they would send.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import field
from typing import Final

from harrow.cluster_model.broker.append_locks import Steps
from harrow.cluster_model.events import RequestQueueFull
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.protocol import LeaderAndIsrRequest, StopReplicaRequest, UpdateMetadataRequest
from harrow.cluster_model.settings import CONTROL_PLANE, BrokerConfig
from harrow.cluster_model.sim.connection import Exchange
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.sim.message import Body

_CONTROL_PLANE_QUEUE: Final = 20
"""The size of the control plane's queue (``SocketServer.ControlPlaneQueueSize``)."""


@dataclass(slots=True)
class RequestPace:
    """The extra time that a broker takes for each request, because of faults.

    Delays of several faults at the same time add up. A restart of the broker does not end them.
    """

    request_us: int = 0
    delays_us: list[int] = field(default_factory=list)

    def slow_down(self, request_us: int) -> None:
        self.delays_us.append(request_us)
        self.request_us = sum(self.delays_us)

    def speed_up(self, request_us: int) -> None:
        """Undo one `slow_down`, unless `heal` has already undone it."""
        if request_us in self.delays_us:
            self.delays_us.remove(request_us)
        self.request_us = sum(self.delays_us)

    def heal(self) -> None:
        self.delays_us.clear()
        self.request_us = 0


_Backlog = deque[tuple[Exchange[Body], bool, Body | None]]
"""The pending work of a network thread: requests (True) and responses (False), with bodies."""


class RequestChannels:
    """The request queues of a broker: one for all requests, or a second for controllers (KIP-291).

    *handle* returns the steps in which a thread handles a request. *send* sends a response.
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
        """Whether every thread is idle and no request is queued."""
        return self._data_plane.is_idle and self._control_plane.is_idle

    def add_request(self, exchange: Exchange[Body]) -> None:
        """Add an incoming request."""
        self._channel_of(exchange).add_request(exchange)

    def answer(self, exchange: Exchange[Body], body: Body | None) -> None:
        """Send an answer as soon as the network thread of its connection is free."""
        self._channel_of(exchange).answer(exchange, body)

    def close(self) -> None:
        """Handle the queued requests now, and no others later."""
        self._data_plane.close()
        self._control_plane.close()

    def _channel_of(self, exchange: Exchange[Body]) -> "RequestChannel":
        is_control = isinstance(
            exchange.request, (LeaderAndIsrRequest, UpdateMetadataRequest, StopReplicaRequest)
        )
        return self._control_plane if is_control else self._data_plane


class RequestChannel:
    """A queue of requests with its network threads and I/O threads.

    *handle* returns the steps in which a thread handles a request. *send* sends a response.
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
        # The remaining steps of each busy I/O thread.
        self._busy_threads: list[Steps] = []
        self._queue: deque[Exchange[Body]] = deque()
        # The backlog of each network thread. Unless it is empty, it begins with a request for which
        # the queue has no room.
        self._backlogs: list[_Backlog] = [deque() for _ in range(network_threads)]
        # The backlogs that wait for room in the queue, in the order in which they began to wait.
        self._blocked_backlogs: deque[_Backlog] = deque()
        # The backlog whose pending work is being done. A response may make the client send another
        # request, which must go to the end of this backlog.
        self._draining: _Backlog | None = None
        self._is_dispatching = False

    @property
    def is_idle(self) -> bool:
        """Whether every thread is idle and no request is queued."""
        return not self._queue and not self._busy_threads and not self._blocked_backlogs

    def add_request(self, exchange: Exchange[Body]) -> None:
        """Add an incoming request."""
        backlog = self._backlog_of(exchange)
        if backlog or backlog is self._draining:
            backlog.append((exchange, True, None))
        else:
            self._enqueue(exchange, backlog)
            self._dispatch()

    def answer(self, exchange: Exchange[Body], body: Body | None) -> None:
        """Send an answer by the network thread that read the request, once that thread is free."""
        backlog = self._backlog_of(exchange)
        if backlog or backlog is self._draining:
            backlog.append((exchange, False, body))
        else:
            self._send(exchange, body)

    def close(self) -> None:
        """Finish the requests of busy threads and the queued requests, and handle no others.

        Modelled on ``KafkaRequestHandlerPool.shutdown``, but without waiting.
        """
        busy_threads, self._busy_threads = self._busy_threads, []
        queue, self._queue = self._queue, deque()
        self._io_threads = 0
        for steps in (*busy_threads, *[self._handle(exchange) for exchange in queue]):
            for _ in steps:
                pass

    def _backlog_of(self, exchange: Exchange[Body]) -> _Backlog:
        """Return the backlog of the network thread that serves a connection.

        Connections are assigned to network threads round-robin.
        """
        return self._backlogs[exchange.connection.id % len(self._backlogs)]

    def _enqueue(self, exchange: Exchange[Body], backlog: _Backlog) -> bool:
        """Queue a request. If the queue is full, return False and let the network thread wait."""
        if len(self._queue) < self._requests_max:
            self._queue.append(exchange)
            return True
        backlog.appendleft((exchange, True, None))
        self._blocked_backlogs.append(backlog)
        self._host.emit(RequestQueueFull, self._broker, len(self._queue))
        return False

    def _dispatch(self) -> None:
        """Give requests to idle I/O threads."""
        if self._is_dispatching:
            return
        self._is_dispatching = True
        while self._queue and len(self._busy_threads) < self._io_threads:
            exchange = self._queue.popleft()
            self._drain_next()
            steps = self._handle(exchange)
            self._busy_threads.append(steps)
            self._work(steps)
        self._is_dispatching = False

    def _work(self, steps: Steps) -> None:
        """Run an I/O thread until it has to wait."""
        wait_us = next(steps, None)
        if wait_us is None:
            self._busy_threads.remove(steps)
        else:
            self._host.set_timer(wait_us, self._work_again, steps)

    def _work_again(self, steps: Steps) -> None:
        if steps in self._busy_threads:
            self._work(steps)
            self._dispatch()

    def _drain_next(self) -> None:
        """Let the network thread that has waited longest continue, because the queue has room."""
        if not self._blocked_backlogs:
            return
        self._draining = backlog = self._blocked_backlogs.popleft()
        while backlog:
            exchange, is_request, body = backlog.popleft()
            if not is_request:
                self._send(exchange, body)
            elif not self._enqueue(exchange, backlog):
                break
        self._draining = None
