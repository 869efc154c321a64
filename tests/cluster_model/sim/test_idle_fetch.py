"""A repeated idle fetch is not simulated, but has the same state at any time as if it were."""

from collections.abc import Callable
from typing import Any, Final

import pytest

from harrow.cluster_model.broker.delayed_requests import DelayedFetch
from harrow.cluster_model.broker.fetch_session import (
    CachedPartition,
    FetchSession,
    FetchSessionCache,
    HostedPartition,
    HostedPartitions,
)
from harrow.cluster_model.clients.fetch_session_handler import FetchSessionHandler
from harrow.cluster_model.clients.network_client import NetworkClient
from harrow.cluster_model.protocol import FetchRequest, FetchResponse, MetadataRequest
from harrow.cluster_model.sim.connection import Connection, Exchange, Reply, ServerEndpoint
from harrow.cluster_model.sim.host import SimulatedHost
from harrow.cluster_model.sim.message_rule import DELAY, REQUEST, RESPONSE, MessageRule
from harrow.cluster_model.sim.network import Network
from harrow.cluster_model.sim.process import Process, ScheduledEvent
from harrow.cluster_model.sim.simulator import Simulator
from harrow.cluster_model.topology import NetworkSpec
from harrow.cluster_model.trace import Trace
from tests.recorded_choices import recorded_choices

WAIT_US: Final = 7
TIMEOUT_US: Final = 40
SESSION: Final = 5


def content_of(message: Exchange[Any] | Reply) -> Any:
    return message.request if isinstance(message, Exchange) else message.body


def pending(simulator: Simulator) -> list[ScheduledEvent]:
    """Return the events that have not happened yet, in order."""
    events: list[ScheduledEvent] = []
    event = simulator._next
    while event is not None:
        events.append(event)
        event = event.following
    return [*events, *reversed(simulator._later)]


class Leader(ServerEndpoint):
    """Answers the full fetch, and lets later fetches wait."""

    def __init__(self, host: SimulatedHost, wait_us: int) -> None:
        self.host = host
        self.session = FetchSession(SESSION, 1, host.clock.now_us, is_cached=True)
        self.waits: list[tuple[int, int, int]] = []
        self.metadata_requests = 0

    def receive_request(self, exchange: Exchange[Any]) -> None:
        connection, correlation_id, request = exchange.connection, exchange.correlation_id, exchange.request
        now_us = self.host.clock.now_us
        if isinstance(request, MetadataRequest):
            self.metadata_requests += 1
        elif request.session_epoch == 0:
            self.host.send_response(connection, correlation_id, FetchResponse({}, session_id=SESSION))
        else:
            assert self.session.epoch == request.session_epoch
            connection.muted = True
            self.session.epoch += 1
            self.session.counted_us = self.session.received_us = now_us
            delayed = DelayedFetch(exchange, now_us, self.session, self.complete, self.watch)
            self.session.delayed = delayed
            self.session.idle = self.host.repeat_while_idle(delayed)
            if self.session.idle is None:
                self.watch(delayed)

    def watch(self, delayed: DelayedFetch) -> None:
        self.waits.append(
            (delayed.since_us, delayed.exchange.correlation_id, delayed.exchange.request.session_epoch)
        )
        self.host.set_timer(delayed.deadline_us - self.host.clock.now_us, self.fire, delayed)

    def fire(self, delayed: DelayedFetch) -> None:
        if not delayed.completed:
            delayed.expire()

    def complete(self, delayed: DelayedFetch, expired: bool) -> None:
        assert expired
        exchange = delayed.exchange
        exchange.connection.muted = False
        self.host.send_response(
            exchange.connection, exchange.correlation_id, FetchResponse({}, session_id=SESSION)
        )

    def connection_closed(self, connection: Connection) -> None:
        pass


class LeaderAndFollower:
    """A leader and a follower with nothing to read. From `began_us` on its fetches are idle."""

    def __init__(self, *, stepped: bool = False, wait_us: int = WAIT_US, latency_us: int = 3) -> None:
        self.simulator = Simulator()
        trace = Trace(self.simulator)
        choices = recorded_choices({})
        spec = NetworkSpec(latency_min_us=latency_us, latency_max_us=latency_us)
        self.network = Network(self.simulator, choices, spec, trace)
        if stepped:
            self.network.step_idle_fetches()
        self.client_process, self.server_process = Process("client"), Process("server")
        self.leader = Leader(self._host(self.server_process, choices, trace), wait_us)
        self.network.listen(self.server_process, self.leader)
        self.host = self._host(self.client_process, choices, trace)
        self.client = NetworkClient(self.host, "server", "listener", TIMEOUT_US)
        self.handler = FetchSessionHandler()
        self.handler.set_position("t-0", 0, 0)
        self.wait_us = wait_us
        self.fetch()
        self.began_us = max(3 * latency_us, 1)
        self.run_until(self.began_us)

    def _host(self, process: Process, choices: Any, trace: Trace) -> SimulatedHost:
        return SimulatedHost(process, self.simulator, self.network, choices, trace)

    def fetch(self) -> None:
        request = self.handler.request(1, self.wait_us, 1_000)
        self.client.send(request, self.fetched, None, self.handler.next_request(request))

    def fetched(self, response: FetchResponse | None, _: Any) -> None:
        if response is not None:
            self.handler.handle_response(response)
            self.fetch()

    @property
    def connection(self) -> Connection:
        connection = self.client._connection
        assert connection is not None
        return connection

    @property
    def is_idle(self) -> bool:
        return self.connection.idle is not None

    def run_until(self, at_us: int) -> None:
        self.simulator.run_until(at_us)

    def wake(self) -> None:
        assert self.connection.idle is not None
        self.connection.idle.wake()

    def state(self) -> dict[str, Any]:
        session, connection, delayed = self.leader.session, self.connection, self.leader.session.delayed
        assert delayed is None or isinstance(delayed, DelayedFetch)
        return {
            "session": (session.epoch, session.last_fetch_us, session.used_us, session.idle),
            "waits": delayed
            and (
                delayed.exchange.correlation_id,
                delayed.exchange.request,
                delayed.since_us,
                delayed.deadline_us,
                delayed.completed,
            ),
            "muted": connection.muted,
            "arrivals": (connection.to_server.arrival_us, connection.to_client.arrival_us),
            "idle": connection.idle,
            "client": (self.handler._session_epoch, self.client._correlation_id),
            "in flight": [(request.correlation_id, request.deadline_us) for request in self.client.in_flight],
            # But for timers that find nothing any more, and those are set again when they are
            # missing.
            "due": sorted(
                (event.rank, event.process.name, event.correlation_id, content_of(event))
                for event in pending(self.simulator)
                if isinstance(event, Exchange | Reply)
            ),
        }


@pytest.mark.parametrize(("wait_us", "latency_us"), [(WAIT_US, 3), (1, 1), (WAIT_US, 0), (2, 9)])
def test_an_idle_fetch_has_the_same_state_at_any_time_as_if_each_cycle_had_run(
    wait_us: int, latency_us: int
) -> None:
    period_us = wait_us + 2 * latency_us
    # Longer than a client waits for an answer.
    for after_us in range(max(5 * period_us, 3 * TIMEOUT_US)):
        one, other = (
            LeaderAndFollower(stepped=stepped, wait_us=wait_us, latency_us=latency_us)
            for stepped in (False, True)
        )
        for pair in (one, other):
            pair.run_until(pair.began_us + after_us)
            assert pair.is_idle
            since_us = pair.leader.session.last_fetch_us
            assert (
                since_us == pair.leader.session.used_us == pair.began_us + after_us // period_us * period_us
            )
            pair.wake()
        assert one.state() == other.state()
        assert one.leader.waits == other.leader.waits
        for pair in (one, other):
            pair.connection.on_repeated = None  # for a moment
            pair.run_until(pair.began_us + after_us + 3 * period_us)
            if pair.is_idle:
                pair.wake()
        assert one.state() == other.state()


def test_a_fetch_that_repeats_itself_causes_no_events() -> None:
    pair = LeaderAndFollower()
    pair.run_until(10 * TIMEOUT_US)  # the client's timer fires once
    handled = pair.simulator.events_handled
    pair.run_until(1_000_000)
    assert pair.is_idle
    assert pair.simulator.events_handled == handled
    assert not pending(pair.simulator)


def test_watched_fetches_run_each_cycle() -> None:
    pair = LeaderAndFollower(stepped=True)
    handled = pair.simulator.events_handled
    pair.run_until(pair.began_us + 100 * (WAIT_US + 6))
    assert pair.is_idle
    assert 300 <= pair.simulator.events_handled - handled <= 310


def cut_a_link(pair: LeaderAndFollower) -> None:
    pair.network.cut("client", "server")


def cut_the_link_back(pair: LeaderAndFollower) -> None:
    pair.network.cut("server", "client")


def delay_fetches(pair: LeaderAndFollower) -> None:
    pair.network.add_rule(MessageRule(name="rule", action=DELAY, api="Fetch", kind=REQUEST))


def delay_answers(pair: LeaderAndFollower) -> None:
    senders = frozenset({"server"})
    pair.network.add_rule(MessageRule(name="rule", action=DELAY, kind=RESPONSE, senders=senders))


def watch_messages(pair: LeaderAndFollower) -> None:
    pair.network.watch_messages()


def pause_the_client(pair: LeaderAndFollower) -> None:
    pair.client_process.paused = True
    pair.network.wake_idle_fetches(pair.client_process)


def pause_the_server(pair: LeaderAndFollower) -> None:
    pair.server_process.paused = True
    pair.network.wake_idle_fetches(pair.server_process)


@pytest.mark.parametrize(
    "disturb",
    [
        *(cut_a_link, cut_the_link_back, delay_fetches, delay_answers),
        *(watch_messages, pause_the_client, pause_the_server),
    ],
)
def test_a_fault_that_may_affect_the_next_message_wakes_the_fetch_until_it_ends(
    disturb: Callable[[LeaderAndFollower], None],
) -> None:
    pair = LeaderAndFollower()
    pair.run_until(1_000)
    disturb(pair)
    assert not pair.is_idle
    pair.run_until(1_010)
    assert not pair.is_idle


def cut_another_link(pair: LeaderAndFollower) -> None:
    pair.network.cut("client", "zookeeper")


def delay_produces(pair: LeaderAndFollower) -> None:
    pair.network.add_rule(MessageRule(name="rule", action=DELAY, api="Produce"))


def delay_fetches_of_another_process(pair: LeaderAndFollower) -> None:
    rule = MessageRule(name="rule", action=DELAY, api="Fetch", senders=frozenset({"broker-7"}))
    pair.network.add_rule(rule)


def delay_fetches_of_another_listener(pair: LeaderAndFollower) -> None:
    pair.network.add_rule(MessageRule(name="rule", action=DELAY, api="Fetch", listener="other"))


def pause_another_process(pair: LeaderAndFollower) -> None:
    pair.network.wake_idle_fetches(Process("broker-7"))


@pytest.mark.parametrize(
    "disturb",
    [
        cut_another_link,
        delay_produces,
        delay_fetches_of_another_process,
        delay_fetches_of_another_listener,
        pause_another_process,
    ],
)
def test_faults_elsewhere_do_not_wake_the_fetch(disturb: Callable[[LeaderAndFollower], None]) -> None:
    pair = LeaderAndFollower()
    pair.run_until(1_000)
    disturb(pair)
    assert pair.is_idle


def test_after_a_fault_the_fetch_repeats_itself_again() -> None:
    pair = LeaderAndFollower()
    pair.run_until(1_000)
    pair.network.cut("client", "server")
    pair.run_until(1_020)
    pair.network.restore("client", "server")
    pair.run_until(1_060)
    assert pair.is_idle


def test_another_request_of_the_connection_follows_the_fetch() -> None:
    pair = LeaderAndFollower()
    pair.run_until(1_000)
    pair.client.send(MetadataRequest(), lambda *_: None)
    assert not pair.is_idle
    pair.run_until(1_004)
    assert not pair.is_idle
    assert pair.leader.metadata_requests == 1


def test_a_client_with_another_request_does_not_repeat_the_fetch() -> None:
    pair = LeaderAndFollower()
    pair.run_until(1_000)
    pair.client.stop_repeating()
    waits = pair.leader.waits[-1:]
    pair.handler.set_position("t-1", 0, 0)
    pair.run_until(1_013)
    assert waits
    assert list(pair.handler.requested) == ["t-0", "t-1"]


@pytest.mark.parametrize("after_us", range(WAIT_US + 6))
def test_a_message_in_flight_to_a_dead_process_does_not_arrive(after_us: int) -> None:
    """The next incarnation of the process does not know the message."""
    for is_client in (True, False):
        pair = LeaderAndFollower()
        pair.run_until(pair.began_us + after_us)
        process = pair.client_process if is_client else pair.server_process
        connection = pair.connection
        process.kill()
        pair.network.process_died(process, power_loss=True)
        assert connection.idle is None
        process.start()
        assert all(
            event.process is not process or event.incarnation != process.incarnation
            for event in pending(pair.simulator)
        )


def close_the_connection(pair: LeaderAndFollower) -> None:
    pair.client.close()


def stop_listening(pair: LeaderAndFollower) -> None:
    pair.network.stop_listening(pair.server_process)


def close_it_at_the_server(pair: LeaderAndFollower) -> None:
    pair.network.close_by_server(pair.connection)


def watched_partition(pair: LeaderAndFollower) -> HostedPartition:
    session, hosted = pair.leader.session, HostedPartition("t-0")
    cached = session.partitions["t-0"] = CachedPartition(session, hosted, 0, 0)
    hosted.watch(cached)
    return hosted


def begin_an_isr_write(pair: LeaderAndFollower) -> None:
    watched_partition(pair).wake_fetches()


def close_the_session(pair: LeaderAndFollower) -> None:
    cache = FetchSessionCache(1, HostedPartitions(), first_id=SESSION, bound_to_connection=False)
    cache._sessions[SESSION] = pair.leader.session
    cache.remove(SESSION)


@pytest.mark.parametrize(
    "end",
    [close_the_connection, stop_listening, close_it_at_the_server, begin_an_isr_write, close_the_session],
)
def test_a_change_that_a_cycle_would_notice_wakes_the_fetch(end: Callable[[LeaderAndFollower], None]) -> None:
    pair = LeaderAndFollower()
    pair.run_until(1_000)
    connection = pair.connection
    end(pair)
    assert connection.idle is None
    assert pair.leader.session.idle is None


@pytest.mark.parametrize("after_us", range(WAIT_US + 6))
def test_an_event_of_a_partition_wakes_its_fetch_and_retries_it_if_it_still_waits(after_us: int) -> None:
    """If its answer or the next request is under way, no fetch waits.

    A completed one has no timer.
    """
    pair = LeaderAndFollower()
    hosted, session = watched_partition(pair), pair.leader.session
    pair.run_until(pair.began_us + after_us)
    tried: list[DelayedFetch] = []

    def complete(delayed: DelayedFetch, expired: bool) -> None:
        assert not expired
        tried.append(delayed)

    # Without a replica on the leader, the fetch completes as soon as it is tried.
    exchange = Exchange(pair.connection, 0, FetchRequest(1, WAIT_US, 1, {}))
    delayed = session.delayed = DelayedFetch(
        exchange, pair.simulator.now_us, session, complete, pair.leader.watch
    )
    hosted.check_fetches()
    assert not pair.is_idle
    assert [cached.hosted.name for cached in session.news] == ["t-0"]
    assert tried == ([delayed] if after_us < WAIT_US else [])


def test_a_woken_fetch_without_an_answer_times_out() -> None:
    pair = LeaderAndFollower()
    pair.run_until(1_000)
    pair.network.cut("server", "client")
    sent_us = pair.leader.session.last_fetch_us - 3  # what the leader has got was under way for as long
    ended: list[int] = []
    pair.fetched = lambda response, _: ended.append(pair.simulator.now_us)  # type: ignore[method-assign]  # of this object alone
    pair.client.in_flight[0].on_complete = pair.fetched
    pair.run_until(sent_us + TIMEOUT_US - 1)
    assert ended == []
    pair.run_until(sent_us + TIMEOUT_US)
    assert ended == [sent_us + TIMEOUT_US]
