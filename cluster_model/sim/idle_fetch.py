"""Fetches that go on by themselves while nothing happens: an idle cluster costs no events for them.

A follower or consumer that has read everything goes in circles: its fetch waits at the leader for
``replica.fetch.wait.max.ms`` or ``fetch.max.wait.ms``, expires, is answered with nothing, and the client sends the same
incremental fetch again (KIP-227). Nothing comes of such a cycle but its time: with twelve brokers there are 132 of
them, each half a second.

So a fetch that is about to wait, of a session without news, whose client would repeat it as it is, becomes an
`IdleFetch`. It has no timer and no messages. Each of its cycles takes the same time: the wait, and the least latency of
the network for the answer and for the next request, which is a latency that the network may choose. So where the
fetch is at any time is arithmetic: it waits, its answer is under way, or the next request is.

`IdleFetch.wake` makes it that, and from then on it is a fetch like any other. It is called before anything that a
cycle would notice: something happens to a partition of the session, the session is closed, one of the processes
stops, is paused or dies, the connection is closed or carries another request, the client has something else to ask
for, or a fault may touch the next message. What is due at the very time of waking has happened before.

`SteppedIdleFetch` is the same with each cycle taken event by event, through the code of both ends, for campaigns with
conditions on messages or on fetches that wait. A run is the same run with either, which is what
`tests/properties/test_idle_fetches.py` holds the arithmetic to.
"""

from collections.abc import Callable
from typing import Final, Protocol

from harrow.cluster_model.sim.connection import Connection, Exchange, Reply
from harrow.cluster_model.sim.message import Body
from harrow.cluster_model.sim.process import Process
from harrow.cluster_model.sim.simulator import Simulator


class RepeatableFetch(Protocol):
    """A fetch that waits at its server, and whose answer would be empty."""

    @property
    def exchange(self) -> Exchange[Body]:
        """The request that waits."""

    @property
    def deadline_us(self) -> int:
        """When it expires."""

    def repeated(self, cycles: int, since_us: int) -> None:
        """Be the request that waits after so many *cycles*, since *since_us*; it is idle no more."""

    def wait(self) -> None:
        """Wait for the deadline like any fetch."""

    def expire(self) -> None:
        """Answer with nothing."""

    def answered(self) -> Body:
        """Be a fetch that has been answered with nothing, and return the answer."""

    def repetition(self) -> Body:
        """Return the request that the client sends when it has that answer."""


class IdleFetch:
    """The fetch of an idle session, which repeats itself until it is woken.

    One that *is_traced* is in the trace each time that it waits and expires.
    """

    __slots__ = (
        "_client_life",
        "_connection",
        "_fetch",
        "_forget",
        "_latency_us",
        "_period_us",
        "_server_life",
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
        self._client_life = connection.client.incarnation
        self._server_life = connection.server.incarnation

    @property
    def connection(self) -> Connection:
        """The connection whose only request it is."""
        return self._connection

    @property
    def api(self) -> str:
        """What the request is called."""
        return self._fetch.exchange.request.api

    @property
    def repeated_us(self) -> int | None:
        """When the client has last got an empty answer, and repeated its request; None before the first time."""
        since_us = self.since_us
        answered_us = since_us + self._wait_us + self._latency_us
        if answered_us <= self._simulator.now_us:
            return answered_us
        return since_us - self._latency_us if since_us > self._since_us else None

    @property
    def since_us(self) -> int:
        """When the server got the request that it last got."""
        elapsed_us = self._simulator.now_us - self._since_us
        return self._since_us + elapsed_us - elapsed_us % self._period_us

    def wake(self, *, is_tried: bool = False) -> None:
        """Be what has become of the fetch by now, in messages and timers.

        If it waits, it has a timer from now on. One that *is_tried* right away gets it from the server, if that was in vain.
        """
        self._forget(self._connection)
        cycles, into_us = divmod(self._simulator.now_us - self._since_us, self._period_us)
        since_us = self._since_us + cycles * self._period_us
        answered_us = since_us + self._wait_us
        received_us = answered_us + self._latency_us
        fetch, to_server, to_client = self._fetch, self._connection.to_server, self._connection.to_client
        fetch.repeated(cycles, since_us)
        if cycles:
            to_server.arrival_us, to_client.arrival_us = since_us, since_us - self._latency_us
        if into_us < self._wait_us:
            self._tell_client(cycles, since_us - self._latency_us)
            if not is_tried:
                self._wait()
            return
        answer, correlation_id = fetch.answered(), fetch.exchange.correlation_id
        to_client.arrival_us = received_us
        if into_us < self._wait_us + self._latency_us:
            self._tell_client(cycles, since_us - self._latency_us)
            self._deliver(Reply(self._connection, correlation_id, answer))
        else:
            to_server.arrival_us = received_us + self._latency_us
            self._tell_client(cycles + 1, received_us)
            self._deliver(Exchange(self._connection, correlation_id + 1, fetch.repetition()))

    def _tell_client(self, requests: int, sent_us: int) -> None:
        """Tell the client how many requests it has sent, and when the last of them, unless it is dead."""
        on_repeated = self._connection.on_repeated
        assert on_repeated is not None, "a client that does not repeat its fetch"
        if self._connection.client.incarnation == self._client_life:
            on_repeated(requests, sent_us)

    def _wait(self) -> None:
        if self._connection.server.incarnation == self._server_life:
            self._fetch.wait()

    def _deliver(self, message: Exchange[Body] | Reply) -> None:
        """Have a message that is under way arrive, unless its receiver is dead."""
        connection = self._connection
        if isinstance(message, Exchange):
            server, endpoint = connection.server, connection.server_endpoint
            assert endpoint is not None
            if server.incarnation == self._server_life:
                self._simulator.schedule(
                    connection.to_server.arrival_us, server, endpoint.receive_request, message
                )
        elif connection.client.incarnation == self._client_life:
            self._simulator.schedule(
                connection.to_client.arrival_us,
                *(connection.client, connection.client_endpoint.receive_response, message),
            )

    # With each cycle taken event by event

    def wait_again(self, fetch: RepeatableFetch) -> None:
        """Go on with the request of the next cycle."""
        raise NotImplementedError

    def transmit(self, message: Exchange[Body] | Reply) -> None:
        """Send the answer or the next request."""
        raise NotImplementedError


class SteppedIdleFetch(IdleFetch):
    """The same with each cycle taken event by event: what happens at one time, happens to idle fetches first."""

    __slots__ = ("_step", "_under_way")

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
        self._under_way: Exchange[Body] | Reply | None = None
        self.wait_again(fetch)

    def wake(self, *, is_tried: bool = False) -> None:
        self._forget(self._connection)
        self._step = _AWAKE
        # As many as the fetch has had already: it is what it is.
        self._tell_client(0, 0)
        self._fetch.repeated(0, self._since_us)
        if self._under_way is None:
            if not is_tried:
                self._wait()
        else:
            self._deliver(self._under_way)

    def wait_again(self, fetch: RepeatableFetch) -> None:
        self._fetch = fetch
        self._since_us = self._simulator.now_us
        self._under_way = None
        self._schedule(fetch.deadline_us, self._connection.server)

    def transmit(self, message: Exchange[Body] | Reply) -> None:
        connection = self._connection
        self._under_way = message
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
        message = self._under_way
        if message is None:
            self._fetch.expire()
        elif isinstance(message, Reply):
            self._connection.client_endpoint.receive_response(message)
        else:
            assert self._connection.server_endpoint is not None
            self._connection.server_endpoint.receive_request(message)


_AWAKE: Final = -1
