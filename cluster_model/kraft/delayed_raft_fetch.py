"""Makes metadata fetches wait for news at the quorum's leader (``FuturePurgatory.java``)."""

from collections.abc import Callable
from typing import Final

from harrow.cluster_model.kraft.protocol import RaftFetchRequest, RaftFetchResponse
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.sim.connection import Exchange
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.sim.idle_fetch import IdleFetch
from harrow.cluster_model.sim.virtual_time import US_PER_MS

FETCH_WAIT_MAX_US: Final = 500 * US_PER_MS
"""How long a fetch waits for news (``KafkaRaftClient.MAX_FETCH_WAIT_MS``)."""


@dataclass(slots=True, eq=False)
class DelayedRaftFetch:
    """A fetch that waits at the leader.

    While there is no news, it may repeat itself (`harrow.cluster_model.sim.idle_fetch`).
    """

    number: int
    exchange: Exchange[RaftFetchRequest]
    since_us: int
    host: Host
    answer: Callable[[], RaftFetchResponse]
    empty: RaftFetchResponse
    purgatory: "RaftFetchPurgatory"
    idle: IdleFetch | None = None
    has_timer: bool = False
    completed: bool = False

    @property
    def request(self) -> RaftFetchRequest:
        return self.exchange.request

    @property
    def deadline_us(self) -> int:
        return self.since_us + FETCH_WAIT_MAX_US

    @property
    def fetched_us(self) -> int:
        """The time when the fetch arrived or last repeated itself."""
        return self.since_us if self.idle is None else self.idle.since_us

    def wait(self) -> None:
        self.has_timer = True
        self.host.set_timer(self.deadline_us - self.host.clock.now_us, self._time_out)

    def _time_out(self, _: None) -> None:
        if not self.completed and self.idle is None:
            self.expire()

    def expire(self) -> None:
        """Answer the fetch, although there is no news."""
        self.purgatory.complete(self)

    # While it repeats itself

    def advance(self, cycles: int, since_us: int) -> None:
        self.idle = None
        self.purgatory.is_awake(self)
        if cycles:
            exchange = self.exchange
            self.exchange = Exchange(exchange.connection, exchange.correlation_id + cycles, exchange.request)
            self.since_us = since_us

    def take_empty_response(self) -> RaftFetchResponse:
        """Return the empty answer, which has the leader's state from when the fetch began to wait.

        The leader may have died since then.
        """
        connection = self.exchange.connection
        if connection.server.incarnation == connection.server_incarnation:
            self.purgatory.forget(self, self.deadline_us)
        return self.empty

    def next_request(self) -> RaftFetchRequest:
        return self.request


class RaftFetchPurgatory:
    """The waiting fetches, in order of arrival.

    *on_left* is called when a fetch stops waiting, with its replica, the time when it last arrived,
    and the time of its answer.
    """

    __slots__ = ("_host", "_idle", "_next", "_of_connection", "_on_left", "_waiting")

    def __init__(self, host: Host, on_left: Callable[[int, int, int], None]) -> None:
        self._host = host
        self._on_left = on_left
        self._next = 0
        self._waiting: dict[int, DelayedRaftFetch] = {}
        # The waiting fetches by connection. A connection has one, unless a request was duplicated.
        self._of_connection: dict[int, list[DelayedRaftFetch]] = {}
        # The fetches that repeat themselves, by connection. At the moment some may be in flight.
        self._idle: dict[int, IdleFetch] = {}

    def watch(
        self, exchange: Exchange[RaftFetchRequest], answer: Callable[[], RaftFetchResponse], *, is_idle: bool
    ) -> None:
        """Make a fetch wait. It *is_idle* if its answer would be empty now."""
        fetch = DelayedRaftFetch(
            self._next, exchange, self._host.clock.now_us, self._host, answer, answer(), self
        )
        self._next += 1
        others = self._of_connection.setdefault(exchange.connection.id, [])
        if others:
            self._wake(others)
        self._waiting[fetch.number] = fetch
        fetch.idle = self._host.repeat_while_idle(fetch) if is_idle and not others else None
        others.append(fetch)
        if fetch.idle is None:
            fetch.wait()
        else:
            self._idle[exchange.connection.id] = fetch.idle

    def _wake(self, fetches: list[DelayedRaftFetch]) -> None:
        """Stop the repetition on a connection that has another request. Each fetch gets a timer."""
        idle = self._idle.get(fetches[0].exchange.connection.id)
        if idle is not None:
            idle.wake(is_tried=True)
        for fetch in fetches:
            if not fetch.has_timer:
                fetch.wait()

    def last_fetches(self) -> dict[int, int]:
        """Return when each replica's waiting fetch arrived or was last repeated, by replica."""
        return {fetch.request.replica_id: fetch.fetched_us for fetch in self._waiting.values()}

    def complete(self, fetch: DelayedRaftFetch) -> None:
        self.forget(fetch, self._host.clock.now_us)
        self._host.send_response(fetch.exchange.connection, fetch.exchange.correlation_id, fetch.answer())

    def forget(self, fetch: DelayedRaftFetch, answered_us: int) -> None:
        fetch.completed = True
        self._waiting.pop(fetch.number, None)
        of_connection = self._of_connection.get(fetch.exchange.connection.id, [])
        if fetch in of_connection:
            of_connection.remove(fetch)
        if not of_connection:
            self._of_connection.pop(fetch.exchange.connection.id, None)
        self._on_left(fetch.request.replica_id, fetch.fetched_us, answered_us)

    def is_awake(self, fetch: DelayedRaftFetch) -> None:
        self._idle.pop(fetch.exchange.connection.id, None)

    def check(self, has_news: Callable[[RaftFetchRequest], bool]) -> None:
        """Answer the fetches for which there is news, and stop the repetition of all others."""
        for idle in tuple(self._idle.values()):
            idle.wake(is_tried=True)
        for fetch in sorted(self._waiting.values(), key=_age):
            if has_news(fetch.request):
                self.complete(fetch)
            elif not fetch.has_timer:
                fetch.wait()


def _age(fetch: DelayedRaftFetch) -> tuple[int, int]:
    """Return the sort key of a fetch: its arrival, and then its connection."""
    return fetch.since_us, fetch.exchange.connection.id
