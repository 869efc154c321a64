"""Fetch sessions: partitions omitted from a request are still fetched, and unknown sessions are
rejected."""

from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harrow.cluster_model import errors, protocol
from harrow.cluster_model.broker.fetch_session import FetchSessionCache, HostedPartitions
from harrow.cluster_model.broker.replica import UNKNOWN_OFFSET
from harrow.cluster_model.clients.fetch_session_handler import FetchSessionHandler
from harrow.cluster_model.protocol import FetchRequest, FetchResponse, PartitionData, StopReplicaRequest
from tests.cluster_model.broker.test_purgatory import WAIT_US, P, Q, Replicas
from tests.cluster_model.fakes import MS, SECOND, FakeEndpoint, FakeHost

NAMES = (P, Q, "t-2")
MINUTE = 60 * SECOND


class Follower:
    """A follower of all partitions, with sessions or without."""

    def __init__(self, replicas: Replicas, broker: int, *, has_sessions: bool) -> None:
        self.broker = broker
        self.positions = dict.fromkeys(NAMES, 0)
        self._replicas = replicas
        self._session = FetchSessionHandler() if has_sessions else None
        if self._session is not None:
            for name in NAMES:
                self._session.set_position(name, 0, -1)

    def fetch(self, max_wait_us: int) -> dict[str, list[str]]:
        """Fetch, and return the values received."""
        request = FetchRequest(
            self.broker, max_wait_us, 1_000, {n: PartitionData(o, -1) for n, o in self.positions.items()}
        )
        if self._session is not None:
            request = self._session.request(self.broker, max_wait_us, 1_000)
        self._replicas.manager.fetching.handle_fetch(
            self._replicas.exchange(request, f"broker-{self.broker}")
        )
        correlation_id = self._replicas.correlation_id
        if correlation_id not in self._replicas.answered():
            self._replicas.host.advance(max_wait_us)
        response = dict(self._replicas.responses)[correlation_id]
        if self._session is not None:
            assert self._session.handle_response(response)
        received: dict[str, list[str]] = {}
        for name, fetched in response.partitions.items():
            assert fetched.error == errors.NONE
            for batch in fetched.batches:
                self.positions[name] = batch.next_offset
                received.setdefault(name, []).extend(map(str, batch.values))
            if self._session is not None:
                self._session.set_position(name, self.positions[name], -1)
        return received


class LeaderWithFollowers:
    """A leader with followers that use fetch sessions or full fetches."""

    def __init__(self, **options: Any) -> None:
        has_sessions = options.pop("has_sessions")
        self.replicas = Replicas((0, 1, 2), partitions=NAMES, **options)
        self.followers = {
            broker: Follower(self.replicas, broker, has_sessions=has_sessions) for broker in (1, 2)
        }
        self.sent = 0

    def take(self, step: tuple[Any, ...]) -> Any:
        match step:
            case "append", name:
                self.sent += 1
                return self.replicas.produce(f"m{self.sent}", acks=1, partitions=(name,))
            case "fetch", broker, max_wait_us:
                received = self.followers[broker].fetch(max_wait_us)
                self.answer_zookeeper()
                return received
            case "wait", duration_us:
                return self.replicas.host.advance(duration_us)
            case _:
                for partition in self.replicas.manager.partitions.values():
                    partition.maybe_shrink_isr()
                return self.answer_zookeeper()

    def answer_zookeeper(self) -> None:
        while self.replicas.zookeeper.submitted:
            self.replicas.zookeeper.answer_isr_write(version=7)

    def state(self) -> dict[str, Any]:
        return {
            name: (
                partition.isr,
                partition.log.high_watermark,
                {r.broker: (r.log_end_offset, r.caught_up_us) for r in partition.remote_replicas.values()},
            )
            for name, partition in self.replicas.manager.partitions.items()
        }


steps = st.one_of(
    st.tuples(st.just("append"), st.sampled_from(NAMES)),
    st.tuples(st.just("fetch"), st.sampled_from([1, 2]), st.sampled_from([0, WAIT_US])),
    st.tuples(st.just("wait"), st.sampled_from([MS, SECOND, 11 * SECOND])),
    st.tuples(st.just("shrink")),
)


@pytest.mark.parametrize("release", ["0.11", "2.4"])
@given(script=st.lists(steps, max_size=30))
def test_fetch_sessions_have_the_same_outcome_as_full_fetches(
    release: str, script: list[tuple[Any, ...]]
) -> None:
    """HW, ISR and the last catch-up of each replica are equal in both modes."""
    incremental, full = (
        LeaderWithFollowers(has_sessions=True, release=release),
        LeaderWithFollowers(has_sessions=False, release=release),
    )
    for step in script:
        assert incremental.take(step) == full.take(step)
        assert incremental.state() == full.state()


def test_a_fetch_without_news_returns_nothing_and_reads_nothing() -> None:
    leader = LeaderWithFollowers(has_sessions=True)
    for _ in range(4):
        leader.take(("fetch", 1, 0))
    before = len(leader.replicas.host.events_named("fetch"))
    leader.take(("append", Q))
    leader.take(("fetch", 1, 0))
    leader.take(("fetch", 1, 0))
    assert {name for _, name, _, _ in leader.replicas.host.events_named("fetch")[before:]} == {Q}


def fetch(replicas: Replicas, request: FetchRequest, client: str = "consumer-0") -> FetchResponse:
    replicas.manager.fetching.handle_fetch(replicas.exchange(request, client))
    body: FetchResponse = dict(replicas.responses)[replicas.correlation_id]
    return body


def full_fetch(replica: int = -1, *names: str, session_id: int = protocol.NO_SESSION) -> FetchRequest:
    partitions = dict.fromkeys(names or (P,), PartitionData(0, -1))
    return FetchRequest(replica, 0, 1_000, partitions, session_id=session_id, session_epoch=0)


def incremental_fetch(session_id: int, epoch: int) -> FetchRequest:
    return FetchRequest(-1, 0, 1_000, {}, session_id=session_id, session_epoch=epoch)


def test_an_unknown_session_is_rejected() -> None:
    replicas = Replicas()
    assert fetch(replicas, incremental_fetch(77, 1)).error == errors.FETCH_SESSION_ID_NOT_FOUND


def test_a_fetch_that_removes_the_last_partition_ends_the_session() -> None:
    replicas = Replicas()
    opened = fetch(replicas, full_fetch()).session_id
    last = incremental_fetch(opened, 1)
    last.forgotten = (P,)
    assert fetch(replicas, last) == FetchResponse({}, errors.NONE, protocol.NO_SESSION)
    assert fetch(replicas, incremental_fetch(opened, 2)).error == errors.FETCH_SESSION_ID_NOT_FOUND


def test_a_fetch_that_ends_its_session_gets_the_partitions_it_names() -> None:
    replicas = Replicas()
    last = incremental_fetch(fetch(replicas, full_fetch()).session_id, 1)
    last.partitions, last.forgotten = {P: PartitionData(0, -1)}, (P,)
    last_request = fetch(replicas, last)
    assert (last_request.session_id, list(last_request.partitions)) == (protocol.NO_SESSION, [P])


def test_a_session_fetch_counts_for_the_replica_in_the_request() -> None:
    replicas = Replicas()
    next_one = incremental_fetch(fetch(replicas, full_fetch()).session_id, 1)
    next_one.replica_id, next_one.partitions = 1, {P: PartitionData(0, -1)}
    fetch(replicas, next_one)
    assert replicas.host.events_named("fetch") == [(0, P, 1, 0)]


@pytest.mark.parametrize("offset", [-1, 2])
def test_a_fetch_outside_the_log_is_out_of_range(offset: int) -> None:
    replicas = Replicas()
    replicas.produce("m0", acks=1)
    request = FetchRequest(-1, 0, 1_000, {P: PartitionData(offset, -1)})
    assert fetch(replicas, request).partitions[P].error == errors.OFFSET_OUT_OF_RANGE


def test_since_kip_227_a_repeated_request_is_rejected() -> None:
    for release, error in (("0.11", errors.NONE), ("2.4", errors.INVALID_FETCH_SESSION_EPOCH)):
        replicas = Replicas(release=release)
        session_id = fetch(replicas, full_fetch()).session_id
        assert fetch(replicas, incremental_fetch(session_id, 1)).error == errors.NONE
        assert fetch(replicas, incremental_fetch(session_id, 1)).error == error


def test_a_full_fetch_closes_the_session_that_it_names() -> None:
    replicas = Replicas()
    first = fetch(replicas, full_fetch()).session_id
    second = fetch(replicas, full_fetch(session_id=first)).session_id
    assert second != first
    assert fetch(replicas, incremental_fetch(first, 1)).error == errors.FETCH_SESSION_ID_NOT_FOUND
    assert fetch(replicas, incremental_fetch(second, 1)).error == errors.NONE


def test_before_kip_227_a_session_ends_with_its_connection() -> None:
    """The model uses sessions in all releases. Before KIP-227 they stand for full fetches, so a
    client cannot continue one on another connection.
    """
    replicas = Replicas(release="0.11")
    session_id = fetch(replicas, full_fetch()).session_id
    assert (
        fetch(replicas, incremental_fetch(session_id, 1), "another").error
        == errors.FETCH_SESSION_ID_NOT_FOUND
    )
    replicas.manager.connection_closed(replicas.connections["consumer-0"])
    assert fetch(replicas, incremental_fetch(session_id, 1)).error == errors.FETCH_SESSION_ID_NOT_FOUND


def test_without_a_free_slot_every_fetch_is_full() -> None:
    replicas = Replicas(settings={"max.incremental.fetch.session.cache.slots": 0})
    for _ in range(2):
        response = fetch(replicas, full_fetch())
        assert (response.session_id, list(response.partitions)) == (protocol.NO_SESSION, [P])


def test_an_error_is_repeated_and_the_high_watermark_is_sent_after_it() -> None:
    replicas = Replicas()
    unknown = fetch(replicas, full_fetch(-1, P, Q))
    assert unknown.partitions[Q].error == errors.UNKNOWN_TOPIC_OR_PARTITION
    repeated = fetch(replicas, incremental_fetch(unknown.session_id, 1))
    assert {name: fetched.error for name, fetched in repeated.partitions.items()} == {
        Q: errors.UNKNOWN_TOPIC_OR_PARTITION
    }
    replicas.lead(Q, 0, (0, 1), epoch=1)
    recovered = fetch(replicas, incremental_fetch(unknown.session_id, 2))
    assert {name: (fetched.error, fetched.hw) for name, fetched in recovered.partitions.items()} == {
        Q: (errors.NONE, 0)
    }


@pytest.mark.parametrize(
    ("keeps_epoch", "error"), [(False, errors.NONE), (True, errors.UNKNOWN_LEADER_EPOCH)]
)
def test_before_2_5_an_incremental_fetch_ignores_its_leader_epoch(*, keeps_epoch: bool, error: str) -> None:
    replicas = Replicas(fetch_sessions_keep_epoch=keeps_epoch)
    session_id = fetch(replicas, full_fetch()).session_id
    moved = FetchRequest(-1, 0, 1_000, {P: PartitionData(0, 5)}, session_id=session_id, session_epoch=1)
    fetched = fetch(replicas, moved).partitions.get(P)
    assert (errors.NONE if fetched is None else fetched.error) == error


@pytest.mark.parametrize(("keeps_epoch", "error"), [(False, errors.NONE), (True, errors.FENCED_LEADER_EPOCH)])
def test_before_2_5_later_fetches_ignore_the_leader_epochs_of_the_full_fetch(
    *, keeps_epoch: bool, error: str
) -> None:
    replicas = Replicas(fetch_sessions_keep_epoch=keeps_epoch)
    opened = FetchRequest(-1, 0, 1_000, {P: PartitionData(0, 1)}, session_epoch=0)
    session_id = fetch(replicas, opened).session_id
    replicas.lead(P, 0, (0, 1), epoch=2)
    fetched = fetch(replicas, incremental_fetch(session_id, 1)).partitions.get(P)
    assert (errors.NONE if fetched is None else fetched.error) == error


@pytest.mark.parametrize(("keeps_position", "position"), [(False, UNKNOWN_OFFSET), (True, 0)])
@pytest.mark.parametrize("moved", [(0, 0), (0, 5), (9, -1)], ids=["fenced", "unknown epoch", "out of range"])
def test_up_to_2_3_a_rejected_fetch_resets_the_followers_position(
    *, keeps_position: bool, position: int, moved: tuple[int, int]
) -> None:
    replicas = Replicas(failed_fetch_keeps_follower_state=keeps_position)
    replicas.lead(P, 0, (0, 1), epoch=2)
    fetch(replicas, FetchRequest(1, 0, 1_000, {P: PartitionData(0, -1)}), "broker-1")
    fetch(replicas, FetchRequest(1, 0, 1_000, {P: PartitionData(*moved)}), "broker-1")
    assert replicas.manager.partitions[P].remote_replicas[1].log_end_offset == position


@pytest.mark.parametrize(
    ("max_wait_us", "error"),
    [(0, errors.UNKNOWN_TOPIC_OR_PARTITION), (WAIT_US, errors.NOT_LEADER_FOR_PARTITION)],
    ids=["later", "waiting"],
)
def test_a_session_reads_the_new_replica_of_a_partition_that_was_deleted(
    max_wait_us: int, error: str
) -> None:
    """The client names the partition once. A fetch in between gets an error."""
    replicas = Replicas()
    session_id = fetch(replicas, full_fetch(1)).session_id

    def send_fetch(epoch: int, max_wait_us: int = 0) -> int:
        request = FetchRequest(1, max_wait_us, 1_000, {}, session_id=session_id, session_epoch=epoch)
        replicas.manager.fetching.handle_fetch(replicas.exchange(request, "broker-1"))
        return replicas.correlation_id

    waiting = send_fetch(1, max_wait_us) if max_wait_us else None
    stop = StopReplicaRequest(3, 1, 0, (P,), delete_partitions=True)
    replicas.manager.handle_stop_replica(replicas.exchange(stop, "broker-3"))
    assert replicas.fetched(send_fetch(1) if waiting is None else waiting)[0] == error
    replicas.lead(P, 0, (0, 1), epoch=2)
    replicas.produce("new", acks=1)
    assert replicas.fetched(send_fetch(2)) == (errors.NONE, ["new"], 0)


@pytest.mark.parametrize("later_us", [0, 1], ids=["connection", "age"])
def test_an_append_answers_the_oldest_waiting_fetch_first(later_us: int) -> None:
    """Fetches that arrived at the same time are answered in the order of their connections, not by
    the age of their sessions.
    """
    replicas = Replicas()
    waits = dict.fromkeys(("first", "second"), 0)
    younger, older = ("first", "second") if later_us else ("second", "first")
    for client in waits:  # The first connection gets the lower id.
        replicas.exchange(full_fetch(), client)
    sessions = {client: fetch(replicas, full_fetch(), client).session_id for client in (younger, older)}
    for client in (older, younger):
        request = FetchRequest(-1, WAIT_US, 1_000, {}, session_id=sessions[client], session_epoch=1)
        replicas.manager.fetching.handle_fetch(replicas.exchange(request, client))
        waits[client] = replicas.correlation_id
        replicas.host.advance(later_us)
    replicas.responses.clear()
    replicas.produce("m0", acks=1)
    replicas.fetch(1, t_0=1)
    assert [number for number in replicas.answered() if number in waits.values()] == [
        waits[older],
        waits[younger],
    ]


def test_a_repeated_request_differs_only_in_its_session_epoch() -> None:
    request = FetchRequest(
        *(1, 500, 1_000, {P: PartitionData(7, 2)}, protocol.READ_COMMITTED, 9, 3, (Q,)),
        *(5, "rack-a"),
    )
    defaults = FetchRequest(-1, 0, 0, {})
    names = {field.name for field in fields(request)} - {"api"}  # mypyc counts it as a field
    assert all(getattr(request, name) != getattr(defaults, name) for name in names)
    assert request.repeated(4) == replace(request, session_epoch=7)


def caught_up_us(replicas: Replicas) -> int:
    return replicas.manager.partitions[P].remote_replicas[1].caught_up_us


def quiet_follower(replicas: Replicas) -> FetchSessionHandler:
    """Return the session of a caught-up follower."""
    follower = FetchSessionHandler()
    follower.set_position(P, 0, -1)
    follower.set_position(Q, 0, -1)
    for _ in range(3):
        follower.handle_response(fetch(replicas, follower.request(1, 0, 1_000), "broker-1"))
    return follower


def test_an_unused_session_does_not_stop_a_replica_from_catching_up() -> None:
    """A late or repeated full fetch opens a second session."""
    replicas = Replicas(partitions=(P, Q))
    follower = quiet_follower(replicas)
    second_session = FetchRequest(
        1, 0, 1_000, {P: PartitionData(0, -1), Q: PartitionData(0, -1)}, session_epoch=0
    )
    fetch(replicas, second_session, "broker-1 before")
    for _ in range(2):
        replicas.host.advance(SECOND)
        follower.handle_response(fetch(replicas, follower.request(1, 0, 1_000), "broker-1"))
    assert caught_up_us(replicas) == replicas.host.clock.now_us


def test_a_partition_removed_from_a_session_no_longer_counts_as_fetched() -> None:
    replicas = Replicas(partitions=(P, Q))
    follower = quiet_follower(replicas)
    last_us = replicas.host.clock.now_us
    follower.remove(P)
    for _ in range(2):
        replicas.host.advance(SECOND)
        follower.handle_response(fetch(replicas, follower.request(1, 0, 1_000), "broker-1"))
    assert caught_up_us(replicas) == last_us


def test_before_kip_227_a_repeated_fetch_gets_a_full_answer_and_changes_nothing() -> None:
    """Before KIP-227 a session of the model stands for full fetches, which have no epochs."""
    replicas = Replicas(release="0.11")
    follower = FetchSessionHandler()
    follower.set_position(P, 0, -1)
    request = follower.request(1, 0, 1_000)
    follower.handle_response(fetch(replicas, request, "broker-1"))
    assert list(fetch(replicas, request, "broker-1").partitions) == [P]
    request = follower.request(1, 0, 1_000)
    follower.handle_response(fetch(replicas, request, "broker-1"))
    replicas.produce("m0", acks=1)
    assert list(fetch(replicas, request, "broker-1").partitions) == [P]
    assert list(fetch(replicas, follower.request(1, 0, 1_000), "broker-1").partitions) == [P]


def test_an_evicted_session_still_answers_its_waiting_fetch() -> None:
    replicas = Replicas(settings={"max.incremental.fetch.session.cache.slots": 1})
    opened = FetchRequest(-1, WAIT_US, 1_000, {P: PartitionData(0, -1)}, session_epoch=0)
    replicas.manager.fetching.handle_fetch(replicas.exchange(opened, "consumer-0"))
    waiting = replicas.correlation_id
    assert fetch(replicas, full_fetch(1, P), "broker-1").session_id != protocol.NO_SESSION
    replicas.produce("m0", acks=1)
    replicas.fetch(1, max_wait_us=0, t_0=1)
    assert replicas.fetched(waiting)[1] == ["m0"]


# The cache of sessions


class Cache:
    """A cache with two slots, and a clock."""

    def __init__(self) -> None:
        self.now_us = 0
        host = FakeHost()
        self._connection = host.connect("broker-0", "listener", FakeEndpoint(host.clock))
        self._cache = FetchSessionCache(2, HostedPartitions(), first_id=1, bound_to_connection=False)

    def open(self, replica: int = -1, partitions: int = 1) -> int:
        names = [f"t-{number}" for number in range(partitions)]
        session = self._cache.session_of(
            full_fetch(replica, *names), self._connection, self.now_us, keeps_epoch=True
        )
        assert not isinstance(session, str)
        return session.id

    def use(self, session_id: int, epoch: int) -> bool:
        request = incremental_fetch(session_id, epoch)
        session = self._cache.session_of(request, self._connection, self.now_us, keeps_epoch=True)
        return not isinstance(session, str)


def test_a_session_unused_for_two_minutes_can_be_evicted() -> None:
    cache = Cache()
    first, second = cache.open(), cache.open()
    cache.now_us = MINUTE
    assert cache.use(first, 1)
    assert cache.open() == protocol.NO_SESSION
    cache.now_us = 2 * MINUTE + 1
    assert cache.open() != protocol.NO_SESSION
    assert not cache.use(second, 1)
    assert cache.use(first, 2)


def test_a_follower_can_evict_a_consumer_but_not_the_reverse() -> None:
    cache = Cache()
    small, large = cache.open(partitions=1), cache.open(partitions=2)
    assert cache.open(replica=1) != protocol.NO_SESSION
    assert not cache.use(small, 1)
    assert cache.open(replica=2) != protocol.NO_SESSION
    assert not cache.use(large, 1)
    assert cache.open(partitions=9) == protocol.NO_SESSION
    assert cache.open(replica=3, partitions=9) == protocol.NO_SESSION


def test_a_larger_session_evicts_a_smaller_old_one() -> None:
    cache = Cache()
    small, large = cache.open(partitions=2), cache.open(partitions=5)
    for epoch, minute in enumerate((1, 2, 3), start=1):
        cache.now_us = minute * MINUTE
        assert cache.use(small, epoch)
        assert cache.use(large, epoch)
    assert cache.open(partitions=1) == protocol.NO_SESSION
    assert cache.open(partitions=3) != protocol.NO_SESSION
    assert not cache.use(small, 4)
    assert cache.use(large, 4)


# The client's side


def test_a_client_sends_only_added_changed_and_removed_partitions() -> None:
    handler = FetchSessionHandler()
    handler.set_position(P, 0, 1)
    handler.set_position(Q, 3, 1)
    request = handler.request(1, 0, 1_000)
    assert (request.partitions, request.session_epoch) == (
        {P: PartitionData(0, 1), Q: PartitionData(3, 1)},
        0,
    )
    assert handler.handle_response(FetchResponse({}, errors.NONE, 9))
    handler.set_position(P, 2, 1)
    handler.set_position("t-2", 0, 1)
    handler.remove(Q)
    request = handler.request(1, 0, 1_000)
    assert request.partitions == {P: PartitionData(2, 1), "t-2": PartitionData(0, 1)}
    assert (request.forgotten, request.session_id, request.session_epoch) == ((Q,), 9, 1)
    assert {name: data.offset for name, data in handler.requested.items()} == {P: 2, "t-2": 0}


def test_a_client_sends_a_full_fetch_after_an_error() -> None:
    handler = FetchSessionHandler()
    handler.set_position(P, 0, 1)
    handler.request(1, 0, 1_000)
    handler.handle_response(FetchResponse({}, errors.NONE, 9))
    handler.handle_error()
    request = handler.request(1, 0, 1_000)
    assert (request.partitions, request.session_id, request.session_epoch) == ({P: PartitionData(0, 1)}, 9, 0)
    assert not handler.handle_response(FetchResponse({}, errors.FETCH_SESSION_ID_NOT_FOUND))
    request = handler.request(1, 0, 1_000)
    assert (request.partitions, request.session_id) == ({P: PartitionData(0, 1)}, protocol.NO_SESSION)


def test_a_follower_that_ignored_an_answer_gets_the_high_watermark_when_it_next_changes() -> None:
    """The follower ignores an answer to an older leader epoch. The session counts it as sent."""
    replicas = Replicas()
    replicas.produce("m0", acks=1)
    follower = FetchSessionHandler()
    follower.set_position(P, 1, -1)
    for hw in (0, 1):
        response = fetch(replicas, follower.request(1, 0, 1_000), "broker-1")
        assert response.partitions[P].hw == hw
        follower.handle_response(response)
    assert fetch(replicas, follower.request(1, 0, 1_000), "broker-1").partitions == {}
    follower.handle_response(response)
    follower.remove(P)
    follower.set_position(P, 1, -1)
    idle = fetch(replicas, follower.request(1, 0, 1_000), "broker-1")
    assert idle.partitions == {}
    follower.handle_response(idle)
    replicas.produce("m1", acks=1)
    assert fetch(replicas, follower.request(1, 0, 1_000), "broker-1").partitions[P].hw == 1
