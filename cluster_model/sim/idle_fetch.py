"""Lets idle fetches repeat themselves without events, so that an idle cluster costs nothing.

The fetch of a follower or consumer that has read everything waits at the leader for
``replica.fetch.wait.max.ms`` or ``fetch.max.wait.ms``. Then it expires and gets an empty response,
and the client sends the same incremental fetch again (KIP-227). Such a cycle changes nothing but
takes time to simulate: twelve brokers have 132 cycles every half second.

So a fetch that is about to wait becomes an `IdleFetch`, if its session has no news and its client
would repeat it unchanged. An idle fetch has no timer and no messages. Each of its cycles has the
same length: the wait, and twice the network's minimum latency, which is one of the latencies that
the network might draw. So arithmetic can tell at any time whether the fetch is waiting, or which of
its two messages is in flight.

`IdleFetch.wake` schedules the message that is in flight, or the timer of the wait. From then on the
fetch is one like any other. It must be called before any change that a cycle would notice: a change
of a partition of the session, the end of the session, a process that stops, pauses or dies, a
connection that closes or carries another request, a client that wants to send another request, or a
fault that may affect the next message. Whatever a cycle does at exactly the time of waking counts
as done before the waking.

`SteppedIdleFetch` goes through each cycle event by event, and calls the code of both ends. It is
for campaigns that have conditions on messages or on waiting fetches. Runs are the same with either
class, which `tests/properties/test_idle_fetches.py` checks.
"""

from collections.abc import Callable
from typing import Final, Protocol

from harrow.cluster_model.sim.connection import Connection, Exchange, IdleRequest, Reply
from harrow.cluster_model.sim.message import Body
from harrow.cluster_model.sim.process import Process
from harrow.cluster_model.sim.simulator import Simulator


class RepeatableFetch(Protocol):
    """A fetch that waits at its server, and whose response would be empty."""

    @property
    def exchange(self) -> Exchange[Body]:
        """The waiting request."""

    @property
    def deadline_us(self) -> int:
        """When the fetch expires."""

    def advance(self, cycles: int, since_us: int) -> None:
        """Become the request that is *cycles* later, and has waited since *since_us*."""

    def wait(self) -> None:
        """Set a timer for the deadline, like a fetch that is not idle."""

    def expire(self) -> None:
        """Send an empty response."""

    def take_empty_response(self) -> Body:
        """Return the empty response, and become a fetch that has been answered."""

    def next_request(self) -> Body:
        """Return the request that the client sends after the empty response."""


class IdleFetch(IdleRequest):
    """The fetch of an idle session.

    It repeats itself until `wake`. With *is_traced* the trace has the wait and the expiry of each
    cycle.
    """

    __slots__ = (
        "_client_incarnation",
        "_connection",
        "_fetch",
        "_forget",
        "_latency_us",
        "_period_us",
        "_server_incarnation",
        "_simulator",
        "_since_us",
        "_wait_us",
        "is_traced",
    )

    def __init__(
        self,
        fetch: RepeatableFetch,
        simulator: Simulator,
        latency_us: int,
        forget: Callable[[Connection], None],
        *,
        is_traced: bool,
    ) -> None:
        connection = fetch.exchange.connection
        self.is_traced = is_traced
        self._fetch = fetch
        self._connection = connection
        self._simulator = simulator
        self._latency_us = latency_us
        self._forget = forget
        self._since_us = simulator.now_us
        self._wait_us = fetch.deadline_us - simulator.now_us
        self._period_us = self._wait_us + 2 * latency_us
        self._client_incarnation = connection.client.incarnation
        self._server_incarnation = connection.server.incarnation

    @property
    def connection(self) -> Connection:
        """The connection of the fetch. It has no other request."""
        return self._connection

    @property
    def api(self) -> str:
        """The API of the fetch."""
        return self._fetch.exchange.request.api

    @property
    def repeated_us(self) -> int | None:
        """When the client last repeated the fetch after an empty response; None if it never has."""
        since_us = self.since_us
        answered_us = since_us + self._wait_us + self._latency_us
        if answered_us <= self._simulator.now_us:
            return answered_us
        return since_us - self._latency_us if since_us > self._since_us else None

    @property
    def since_us(self) -> int:
        """When the server received the current request."""
        elapsed_us = self._simulator.now_us - self._since_us
        return self._since_us + elapsed_us - elapsed_us % self._period_us

    def wake(self, *, is_tried: bool = False) -> None:
        """Make this an ordinary fetch: schedule its message in flight, or the timer of its wait.

        With *is_tried* no timer is set: the caller tries to answer the fetch at once, and sets the
        timer itself if the fetch still has to wait.
        """
        self._forget(self._connection)
        cycles, elapsed_us = divmod(self._simulator.now_us - self._since_us, self._period_us)
        since_us = self._since_us + cycles * self._period_us
        answered_us = since_us + self._wait_us
        received_us = answered_us + self._latency_us
        fetch, to_server, to_client = self._fetch, self._connection.to_server, self._connection.to_client
        fetch.advance(cycles, since_us)
        if cycles:
            to_server.arrival_us, to_client.arrival_us = since_us, since_us - self._latency_us
        if elapsed_us < self._wait_us:
            self._tell_client(cycles, since_us - self._latency_us)
            if not is_tried:
                self._wait()
            return
        answer, correlation_id = fetch.take_empty_response(), fetch.exchange.correlation_id
        to_client.arrival_us = received_us
        if elapsed_us < self._wait_us + self._latency_us:
            self._tell_client(cycles, since_us - self._latency_us)
            self._deliver(Reply(self._connection, correlation_id, answer))
        else:
            to_server.arrival_us = received_us + self._latency_us
            self._tell_client(cycles + 1, received_us)
            self._deliver(Exchange(self._connection, correlation_id + 1, fetch.next_request()))

    def _tell_client(self, requests: int, sent_us: int) -> None:
        """Tell the client, if it lives, how many requests were sent for it, and when the last."""
        on_repeated = self._connection.on_repeated
        assert on_repeated is not None, "a client that does not repeat its fetch"
        if self._connection.client.incarnation == self._client_incarnation:
            on_repeated(requests, sent_us)

    def _wait(self) -> None:
        if self._connection.server.incarnation == self._server_incarnation:
            self._fetch.wait()

    def _deliver(self, message: Exchange[Body] | Reply) -> None:
        """Schedule the arrival of the message in flight, unless its receiver has died."""
        connection = self._connection
        if isinstance(message, Exchange):
            if connection.server.incarnation == self._server_incarnation:
                self._simulator.add(connection.to_server.arrival_us, connection.server, message)
        elif connection.client.incarnation == self._client_incarnation:
            self._simulator.add(connection.to_client.arrival_us, connection.client, message)

    # Only for cycles that are taken event by event

    def wait_again(self, fetch: RepeatableFetch) -> None:
        """Continue with the request of the next cycle."""
        raise NotImplementedError

    def transmit(self, message: Exchange[Body] | Reply) -> None:
        """Send the empty response or the next request."""
        raise NotImplementedError


class SteppedIdleFetch(IdleFetch):
    """An idle fetch that goes through each cycle event by event.

    Its events happen before other events at the same time.
    """

    __slots__ = ("_message_in_flight", "_step")

    def __init__(
        self,
        fetch: RepeatableFetch,
        simulator: Simulator,
        latency_us: int,
        forget: Callable[[Connection], None],
        *,
        is_traced: bool,
    ) -> None:
        super().__init__(fetch, simulator, latency_us, forget, is_traced=is_traced)
        self._step = 0
        self._message_in_flight: Exchange[Body] | Reply | None = None
        self.wait_again(fetch)

    def wake(self, *, is_tried: bool = False) -> None:
        self._forget(self._connection)
        self._step = _AWAKE
        # The client has sent each request itself, so it need not be told of any.
        self._tell_client(0, 0)
        self._fetch.advance(0, self._since_us)
        if self._message_in_flight is None:
            if not is_tried:
                self._wait()
        else:
            self._deliver(self._message_in_flight)

    def wait_again(self, fetch: RepeatableFetch) -> None:
        self._fetch = fetch
        self._since_us = self._simulator.now_us
        self._message_in_flight = None
        self._schedule(fetch.deadline_us, self._connection.server)

    def transmit(self, message: Exchange[Body] | Reply) -> None:
        connection = self._connection
        self._message_in_flight = message
        if isinstance(message, Exchange):
            direction, receiver = connection.to_server, connection.server
        else:
            direction, receiver = connection.to_client, connection.client
        direction.arrival_us = self._simulator.now_us + self._latency_us
        self._schedule(direction.arrival_us, receiver)

    def _schedule(self, at_us: int, receiver: Process) -> None:
        self._step += 1
        self._simulator.schedule_first(at_us, receiver, self._take_step, self._step)

    def _take_step(self, step: int) -> None:
        if step != self._step:
            return
        message = self._message_in_flight
        if message is None:
            self._fetch.expire()
        else:
            message.run()


_AWAKE: Final = -1
