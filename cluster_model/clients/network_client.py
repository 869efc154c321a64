"""Connects a client to one server, with requests in flight, timeouts and a reconnect backoff.

This is the part of Kafka's ``NetworkClient`` for one node. Answers arrive in the order of the
requests. An answer out of order or a request timeout closes the connection, and fails all requests
in flight.
"""

from collections.abc import Callable
from dataclasses import field
from typing import Any, Final, final

from harrow.cluster_model.compiling import mypyc_attr
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.sim.connection import PUSHED, ClientEndpoint, Connection, Reply
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.sim.message import Body, Request

_OWN_TIMER_US: Final = 1 << 60
"""The deadline of a request that has its own timeout and timer."""

OnComplete = Callable[[Any, Any], None]
"""Called with (answer, context); the answer is None if the connection was lost."""


@final
@mypyc_attr(free_list_len=1)
class InFlightRequest:
    """A request that has no answer yet (``NetworkClient.InFlightRequest``).

    ``following`` is the next request to the same server.
    """

    __slots__ = ("context", "correlation_id", "deadline_us", "following", "on_complete")

    def __init__(self, correlation_id: int, deadline_us: int, on_complete: OnComplete, context: Any) -> None:
        self.correlation_id = correlation_id
        self.deadline_us = deadline_us
        self.on_complete = on_complete
        self.context = context
        self.following: InFlightRequest | None = None


@dataclass(slots=True, eq=False)
class NetworkClient(ClientEndpoint):
    """Requests to one server over one connection, which is opened on demand."""

    host: Host
    server: str
    listener: str
    timeout_us: int
    backoff_us: int = 0
    backoff_max_us: int = 0
    on_push: Callable[[Body], None] | None = None
    on_disconnect: Callable[[], None] | None = None
    oldest_fails_first: bool = field(default=True, kw_only=True)
    usable_at_us: int = field(default=0, init=False)
    is_throttled: bool = field(default=False, init=False)
    """Whether the broker has announced that it reads nothing before `usable_at_us`."""
    in_flight_count: int = field(default=0, init=False)
    """The number of requests without an answer. They are a chain that begins with the oldest."""
    _oldest: InFlightRequest | None = field(default=None, init=False)
    _newest: InFlightRequest | None = field(default=None, init=False)
    _connection: Connection | None = field(default=None, init=False)
    _correlation_id: int = field(default=0, init=False)
    _failures: int = field(default=0, init=False)
    _is_timer_set: bool = field(default=False, init=False)
    _count_repetitions: Callable[[int], None] | None = field(default=None, init=False)

    def is_usable(self) -> bool:
        """Return whether a request may be sent, on this connection or a new one."""
        if self._connection is not None and not self.is_throttled:
            return True
        return self.host.clock.now_us >= self.usable_at_us

    def throttle(self, throttle_us: int) -> None:
        """Send nothing for a while, because the server reads nothing (KIP-219).

        See ``ClusterConnectionStates.throttle``.
        """
        self.is_throttled = True
        self.usable_at_us = max(self.usable_at_us, self.host.clock.now_us + throttle_us)

    def is_connected(self) -> bool:
        """Return whether the client has a connection that it does not know to be lost."""
        return self._connection is not None

    def send(
        self,
        request: Request,
        on_complete: OnComplete,
        context: Any = None,
        count_repetitions: Callable[[int], None] | None = None,
        timeout_us: int | None = None,
    ) -> None:
        """Send a request; *on_complete* is called once, with the answer or None and the *context*.

        A request that takes longer than others may have its own *timeout_us* (KIP-266).

        *count_repetitions* declares that after an empty answer the client would send the same
        request again. The simulation may then repeat the request by itself
        (`harrow.cluster_model.sim.idle_fetch`), until another request is sent or `stop_repeating`
        is called. *count_repetitions* is then called with the number of repetitions.
        """
        host = self.host
        connection = self._connection
        if (
            connection is not None
            and connection.on_repeated is not None
            and (count_repetitions is None or self.in_flight_count)
        ):
            self.stop_repeating()
        correlation_id = self._correlation_id
        self._correlation_id = correlation_id + 1
        if timeout_us is not None:
            self._add(InFlightRequest(correlation_id, _OWN_TIMER_US, on_complete, context))
            host.set_timer(timeout_us, self._check_long_request, correlation_id)
        else:
            deadline_us = host.clock.now_us + self.timeout_us
            self._add(InFlightRequest(correlation_id, deadline_us, on_complete, context))
            if not self._is_timer_set and not self._is_idle():
                self._is_timer_set = True
                host.set_timer(self.timeout_us, self._check_timeouts)
        if connection is None:
            connection = self._connection = host.connect(self.server, self.listener, self)
        if count_repetitions is not None and self.in_flight_count == 1:
            self._count_repetitions = count_repetitions
            connection.on_repeated = self._on_repeated
        host.send_request(connection, correlation_id, request)

    @property
    def in_flight(self) -> list[InFlightRequest]:
        """The requests without an answer, oldest first."""
        requests: list[InFlightRequest] = []
        request = self._oldest
        while request is not None:
            requests.append(request)
            request = request.following
        return requests

    def _add(self, request: InFlightRequest) -> None:
        if self._newest is None:
            self._oldest = request
        else:
            self._newest.following = request
        self._newest = request
        self.in_flight_count += 1

    def _forget_requests(self) -> None:
        self._oldest = self._newest = None
        self.in_flight_count = 0

    def stop_repeating(self) -> None:
        """Stop the repetitions of the request in flight, because the next request may differ."""
        connection = self._connection
        if connection is not None and connection.on_repeated is not None:
            if connection.idle is not None:
                connection.idle.wake()
            connection.on_repeated = None

    @property
    def repeated_us(self) -> int | None:
        """When the request in flight last repeated itself; None if it does not."""
        connection = self._connection
        return None if connection is None or connection.idle is None else connection.idle.repeated_us

    @property
    def sent_us(self) -> int:
        """When the request in flight was sent."""
        assert self._oldest is not None, "no request is in flight"
        return self._oldest.deadline_us - self.timeout_us

    def _is_idle(self) -> bool:
        return self._connection is not None and self._connection.idle is not None

    def _on_repeated(self, requests: int, sent_us: int) -> None:
        """Count *requests* repetitions of the request in flight, which now stops repeating itself.

        The last repetition was sent at *sent_us* and is still in flight.
        """
        if requests:
            assert self._count_repetitions is not None, "a request that is not repeated"
            request = self._oldest
            assert request is not None, "no request is in flight"
            assert request is self._newest, "a request beside one that repeats itself"
            request.correlation_id += requests
            request.deadline_us = sent_us + self.timeout_us
            self._correlation_id += requests
            self._count_repetitions(requests)
        self._watch_timeouts()

    def send_without_answer(self, request: Body) -> None:
        """Send a request that the server never answers (acks=0)."""
        if self._connection is None:
            self._connection = self.host.connect(self.server, self.listener, self)
        self.host.send_request(self._connection, PUSHED, request)

    def receive_response(self, reply: Reply) -> None:
        """Complete the request that *reply* answers."""
        if reply.connection is not self._connection:
            return
        correlation_id = reply.correlation_id
        if correlation_id < 0:
            if self.on_push is not None:
                self.on_push(reply.body)
            return
        request = self._oldest
        if request is None or correlation_id < request.correlation_id:
            return
        if correlation_id > request.correlation_id:
            self.disconnect()
            return
        self._failures = 0
        self._oldest = request.following
        if self._oldest is None:
            self._newest = None
        self.in_flight_count -= 1
        request.on_complete(reply.body, request.context)

    def connection_lost(self, connection: Connection) -> None:
        """Fail the requests in flight. The next request opens a new connection."""
        if connection is self._connection:
            self._fail_in_flight()

    def disconnect(self) -> None:
        """Close the connection and fail the requests in flight."""
        if self._connection is not None:
            self.host.close(self._connection)
            self._fail_in_flight()

    def close(self) -> None:
        """Close the connection and forget the requests in flight, without completing them."""
        if self._connection is not None:
            self.host.close(self._connection)
            self._connection = None
        self._forget_requests()

    def on_clock_step(self, by_us: int) -> None:
        """Shift deadlines and the backoff, after the clock of the machine jumped."""
        if self._is_idle():
            self.stop_repeating()
        if self._failures:
            self.usable_at_us -= by_us
        for request in self.in_flight:
            request.deadline_us -= by_us
        if by_us > 0 and self._oldest is not None:
            due_us = self._oldest.deadline_us - self.host.clock.now_us
            self.host.set_timer(max(due_us, 0), self._check_stepped_timeouts)

    def _check_stepped_timeouts(self, _: None) -> None:
        """Check the oldest request after a clock jump, earlier than the shared timer would."""
        if self._oldest is not None and self._oldest.deadline_us <= self.host.clock.now_us:
            self.disconnect()

    def _fail_in_flight(self) -> None:
        self._connection = None
        self.is_throttled = False
        backoff_us = min(
            self.backoff_us << min(self._failures, 20), max(self.backoff_us, self.backoff_max_us)
        )
        self._failures += 1
        self.usable_at_us = self.host.clock.now_us + backoff_us
        failed = self.in_flight
        self._forget_requests()
        if not self.oldest_fails_first:
            failed.reverse()
        for request in failed:
            request.on_complete(None, request.context)
        if self.on_disconnect is not None:
            self.on_disconnect()

    def _check_timeouts(self, _: None) -> None:
        """Check the oldest request, and set the timer again. One timer serves all requests.

        A request that repeats itself is always answered in time, so it needs no timer. When it
        stops repeating itself, the timer is set again.
        """
        self._is_timer_set = False
        if self._is_idle():
            return
        if self._deadline_us() <= self.host.clock.now_us:
            self.disconnect()
        self._watch_timeouts()

    def _deadline_us(self) -> int:
        """Return the deadline of the oldest request in flight without its own timer."""
        request = self._oldest
        while request is not None and request.deadline_us == _OWN_TIMER_US:
            request = request.following
        return _OWN_TIMER_US if request is None else request.deadline_us

    def _watch_timeouts(self) -> None:
        deadline_us = self._deadline_us()
        if deadline_us != _OWN_TIMER_US and not self._is_timer_set:
            self._is_timer_set = True
            self.host.set_timer(deadline_us - self.host.clock.now_us, self._check_timeouts)

    def _check_long_request(self, correlation_id: int) -> None:
        if any(request.correlation_id == correlation_id for request in self.in_flight):
            self.disconnect()
