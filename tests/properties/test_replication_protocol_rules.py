"""Kafka's replication rules: high watermarks, ISRs, truncation, acks, checkpoints."""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, TypeVar, cast

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.cluster_model import errors, events
from harrow.cluster_model.broker.request_channel import RequestChannel
from harrow.cluster_model.controller.control_plane import INELIGIBLE
from harrow.cluster_model.log.leader_epoch_cache import LeaderEpochCache
from harrow.cluster_model.protocol import FetchedPartition, FetchResponse
from harrow.cluster_model.sim.connection import Exchange
from harrow.cluster_model.sim.message import Body
from harrow.cluster_model.trace import select
from tests.cluster_model.broker.test_partition import LEADER
from tests.cluster_model.broker.test_purgatory import WAIT_US, Replicas
from tests.cluster_model.broker.test_replica_fetcher import P, follower_with
from tests.cluster_model.fakes import FakeEndpoint, FakeHost
from tests.properties.test_replication_rules import FOLLOWERS, Step, TrackedLeader, isrs, releases, steps

T = TypeVar("T")

SINCE_KIP_497 = st.sampled_from(["2.8", "3.6", "4.3"])
BEFORE_KIP_497 = st.sampled_from(["0.10.2", "2.0", "2.4"])


def until_isr_write(replicas: Replicas, steps: Iterable[T]) -> Iterator[T]:
    """Yield steps until an ISR write starts, because up to 2.4 requests wait until it ends."""
    for step in steps:
        if replicas.manager.partitions[P].isr_writes:
            return
        yield step


# The follower's high watermark


@pytest.mark.soak(size=50, rounds_in_test=1, rounds_in_soak=100)
@settings(max_examples=50)
@given(release=SINCE_KIP_497, answers=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), max_size=8))
def test_a_followers_high_watermark_is_the_smaller_of_the_leaders_and_its_own_leo(
    release: str, answers: list[tuple[int, int]]
) -> None:
    """The leader's high watermark never falls.

    It may be below the records that it sends, or above those that the follower has received.
    """
    follower = follower_with(release=release)
    leader_hw = leo = 0
    for records, ahead in answers:
        leader_hw = max(leader_hw, leo + records - 2 + ahead)
        leo += records
        follower.answer_fetch(*[f"m{leo - n}" for n in range(records)], hw=leader_hw, epoch=5)
        log = follower.partitions[P].log
        assert log.log_end_offset == leo
        assert log.high_watermark == min(leo, leader_hw)
        if not follower.host.requests("Fetch"):
            follower.host.advance(WAIT_US)


@pytest.mark.soak(size=50, rounds_in_test=1, rounds_in_soak=100)
@settings(max_examples=50)
@given(
    release=releases,
    isr=isrs,
    actions=st.lists(
        st.tuples(
            st.sampled_from(["produce", "fetch", "wait"]), st.sampled_from(FOLLOWERS), st.integers(0, 2)
        ),
        max_size=30,
    ),
)
def test_a_fetch_is_answered_with_the_high_watermark_from_before_it_or_from_the_end_of_its_wait(
    release: str, isr: tuple[int, ...], actions: list[tuple[str, int, int]]
) -> None:
    """A waiting fetch is read twice: ReplicaManager.readFromLocalLog, DelayedFetch.onComplete."""
    replicas = Replicas(isr=isr, release=release)
    log = replicas.manager.partitions[P].log
    position = dict.fromkeys(FOLLOWERS, 0)
    waiting: dict[int, int] = {}

    def check_answer(follower: int, number: int, hw: int) -> None:
        error, values, answered_hw = replicas.fetched(number)
        assert (error, answered_hw) == (errors.NONE, hw)
        position[follower] += len(values)

    for number, (kind, follower, behind) in enumerate(until_isr_write(replicas, actions)):
        answered = len(replicas.responses)
        if kind == "produce":
            hw = log.high_watermark
            replicas.produce(f"m{number}", acks=1)
            # A leader without followers in the ISR commits at once, before waiting fetches are
            # answered.
            hw = log.high_watermark if isr == (LEADER,) else hw
        elif kind == "wait":
            hw = log.high_watermark
            replicas.host.advance(WAIT_US)
        elif follower in waiting:
            continue
        else:
            hw, has_data = log.high_watermark, position[follower] - behind < log.log_end_offset
            position[follower] = max(position[follower] - behind, 0)
            own = replicas.fetch(follower, t_0=position[follower])
            if has_data and position[follower] < log.log_end_offset:
                event("data")
                check_answer(follower, own, hw)
            else:
                waiting[follower] = own
            hw = log.high_watermark
        for correlation_id, _ in replicas.responses[answered:]:
            for other, own in list(waiting.items()):
                if own == correlation_id:
                    event("waited")
                    del waiting[other]
                    check_answer(other, own, hw)


# The maximal ISR, one change at a time


@pytest.mark.soak(size=80, rounds_in_test=1, rounds_in_soak=100)
@settings(max_examples=80)
@given(isr=isrs, release=SINCE_KIP_497, history=steps, ineligible=st.booleans())
def test_during_an_isr_write_joining_and_leaving_replicas_count_and_no_other_write_starts(
    isr: tuple[int, ...], release: str, history: list[Step], ineligible: bool
) -> None:
    """The maximal ISR has the members before and after a pending change (KIP-497).

    INELIGIBLE_REPLICA restores the former state (KIP-841). After any other refusal a joining
    replica still counts, because an earlier request may have reached the controller.
    """
    leader = TrackedLeader(isr, release)
    is_refused = False
    for step in history:
        was_busy, before = leader.partition.isr_write_in_flight, leader.partition.isr
        write_count = len(leader.store.writes)
        if step[0] == "answer" and was_busy and ineligible:
            leader.store.answers[-1](INELIGIBLE)
            # The leader may try again at once, from its former ISR.
            assert leader.partition.isr == before
        else:
            leader.do(step)
        new = leader.store.writes[write_count:]
        answered = step[0] == "answer"
        assert len(new) <= (not was_busy or answered)
        if leader.partition.isr_write_in_flight:
            pending = leader.store.writes[-1][0]
            event("joining" if len(pending) > len(leader.partition.isr) else "leaving")
            counted = {*leader.partition.isr, *pending}
        else:
            counted = set(leader.partition.isr)
        assert set(leader.partition.maximal_isr) >= counted
        if answered and was_busy:
            is_refused = not step[1] and not ineligible
        if not is_refused:
            assert set(leader.partition.maximal_isr) == counted
        if was_busy and not answered:
            assert leader.partition.isr == before, "the ISR changes when it is written"


@pytest.mark.soak(size=40, rounds_in_test=1, rounds_in_soak=100)
@settings(max_examples=40)
@given(isr=isrs, release=BEFORE_KIP_497, history=steps)
def test_before_kip_497_the_isr_changes_when_written_with_one_write_at_a_time(
    isr: tuple[int, ...], release: str, history: list[Step]
) -> None:
    leader = TrackedLeader(isr, release)
    for step in history:
        was_busy, write_count = leader.partition.isr_write_in_flight, len(leader.store.writes)
        leader.do(step)
        assert len(leader.store.writes) - write_count <= (not was_busy or step[0] == "answer")
        assert leader.partition.isr == isr or leader.store.answers


# Truncation on fetch (KIP-595)

histories = st.lists(st.integers(1, 3), min_size=0, max_size=4)


def log_of(common: list[int], rest: list[int], mark: str, first_epoch: int) -> list[tuple[int, str]]:
    """Return (epoch, value) by offset: common records, then records of this log only."""
    log = [(epoch, f"c{epoch}.{n}") for epoch, count in enumerate(common) for n in range(count)]
    for place, count in enumerate(rest):
        log += [(first_epoch + 2 * place, f"{mark}{place}.{n}") for n in range(count)]
    return log


@pytest.mark.soak(size=80, rounds_in_test=1, rounds_in_soak=100)
@settings(max_examples=80)
@given(release=SINCE_KIP_497, common=histories, leader_suffix=histories, follower_suffix=histories)
def test_a_diverged_follower_truncates_to_the_longest_common_prefix(
    release: str, common: list[int], leader_suffix: list[int], follower_suffix: list[int]
) -> None:
    """Common records stay, as each epoch has one leader (Partition.truncateOnFetchResponse)."""
    leaders, followers, cache = diverged_logs(common, leader_suffix, follower_suffix)
    follower = follower_with(*followers, release=release, epoch=90)
    shared = sum(common)
    for _ in range(len(followers) + 2):
        (fetch,) = [sent.body.partitions[P] for sent in follower.host.requests("Fetch")]
        offset, last_epoch = fetch.offset, fetch.last_epoch
        epoch, end_offset = cache.end_offset_for(last_epoch, len(leaders))
        # The leader's rule: the answered epoch is smaller, or ends before the fetch offset.
        diverges = last_epoch >= 0 and (epoch < last_epoch or end_offset < offset)
        if not diverges:
            break
        event("diverging")
        before = len(follower.truncated)
        answer = FetchedPartition(errors.NONE, 99, diverging=(epoch, end_offset))
        follower.host.take("Fetch").answer(FetchResponse({P: answer}))
        assert len(follower.truncated) == before + 1
        log = follower.partitions[P].log
        assert log.high_watermark == 0, "a diverging answer sets no high watermark"
        follower.host.advance(WAIT_US)
    end_offset = follower.partitions[P].log.log_end_offset
    assert end_offset >= min(shared, len(leaders), len(followers))
    assert followers[:end_offset] == leaders[:end_offset]


def diverged_logs(
    common: list[int], leader_suffix: list[int], follower_suffix: list[int]
) -> tuple[list[tuple[int, str]], list[tuple[int, str]], LeaderEpochCache]:
    """Return the diverged logs of a leader and a follower, and the leader's epochs up to 90."""
    begin = len(common)
    leaders = log_of(common, leader_suffix, "l", begin)
    followers = log_of(common, follower_suffix, "f", begin + 1)
    cache = LeaderEpochCache()
    # A leader records its own epoch at its LEO at once (KAFKA-7415).
    cache.entries = [*epochs_of(leaders), (90, len(leaders))]
    return leaders, followers, cache


def epochs_of(log: list[tuple[int, str]]) -> list[tuple[int, int]]:
    entries: list[tuple[int, int]] = []
    for offset, (epoch, _) in enumerate(log):
        if not entries or entries[-1][0] != epoch:
            entries.append((epoch, offset))
    return entries


# Acks and the purgatory


@pytest.mark.soak(size=50, rounds_in_test=1, rounds_in_soak=100)
@settings(max_examples=50)
@given(
    release=releases,
    isr=isrs,
    sends=st.lists(st.tuples(st.sampled_from([0, 1, -1]), st.sampled_from(FOLLOWERS)), max_size=20),
)
def test_acks_0_is_never_answered_acks_1_at_once_and_acks_all_after_the_high_watermark(
    release: str, isr: tuple[int, ...], sends: list[tuple[int, int]]
) -> None:
    # Before KIP-497 requests wait during ISR writes. So no replica may join the ISR in this test.
    assume(len(isr) == len((LEADER, *FOLLOWERS)) or release not in ("0.10.2", "2.0", "2.4"))
    replicas = Replicas(isr=isr, release=release)
    log = replicas.manager.partitions[P].log
    due: dict[int, int] = {}
    for number, (acks, follower) in enumerate(sends):
        begin = log.log_end_offset
        produced = replicas.produce(f"m{number}", acks=acks, client=f"p{number}")
        assert log.log_end_offset == begin + 1
        # An answer without a body, for acks=0, is not sent.
        sent = {correlation_id for correlation_id, body in replicas.responses if body is not None}
        assert (produced in sent) == (acks == 1 or (acks == -1 and log.high_watermark > begin))
        if acks == -1:
            due[produced] = begin
        replicas.fetch(follower, max_wait_us=0, t_0=log.log_end_offset)
        sent = {correlation_id for correlation_id, body in replicas.responses if body is not None}
        for waits, offset in due.items():
            assert (waits in sent) == (log.high_watermark > offset)


@pytest.mark.soak(size=40, rounds_in_test=1, rounds_in_soak=100)
@settings(max_examples=40)
@given(release=releases, waits_ms=st.lists(st.integers(1, 700), min_size=1, max_size=6))
def test_an_empty_fetch_waits_for_its_timeout_or_an_append(release: str, waits_ms: list[int]) -> None:
    replicas = Replicas(release=release)
    for offset, wait_ms in enumerate(waits_ms):
        began_us = replicas.host.clock.now_us
        number = replicas.fetch(1, t_0=offset)
        assert number not in replicas.answered()
        replicas.host.advance(wait_ms * 1_000)
        has_expired = replicas.host.clock.now_us - began_us >= WAIT_US
        assert (number in replicas.answered()) == has_expired
        replicas.produce("m", acks=1)
        assert replicas.fetched(number)[1] == ([] if has_expired else ["m"])
        assert replicas.answered().count(number) == 1


# Checkpoints


CHECKPOINTED = """
name: checkpoints
kafka: "{kafka}"
settings: {{acks: all}}
cluster: {{brokers: 3, topics: [{{name: t, partitions: 2, replication_factor: 3}}]}}
workload: {{duration: 130s, producers: [{{name: p, rate: 2/s}}]}}
"""


def checkpointed_run(kafka: str) -> RunResult:
    (plan,) = load_text(CHECKPOINTED.format(kafka=kafka), "checkpoints.yaml").plans
    return run_plan(plan, 0)


@pytest.mark.parametrize("kafka", ["2.4", "4.3"])
@pytest.mark.parametrize(
    ("name", "interval_s"), [("replication-offset-checkpoint", 5), ("recovery-point-offset-checkpoint", 60)]
)
def test_high_watermarks_are_checkpointed_every_five_seconds_and_recovery_points_every_minute(
    kafka: str, name: str, interval_s: int
) -> None:
    written: dict[int, list[float]] = {}
    for checkpoint in select(checkpointed_run(kafka).evidence.trace, events.CheckpointWritten):
        if checkpoint.kind == name and 0 < checkpoint.at_us < 125_000_000:
            times = written.setdefault(checkpoint.broker, [])
            if not times or checkpoint.at_us / 1e6 - times[-1] > 0.5:
                times.append(checkpoint.at_us / 1e6)
    assert sorted(written) == [0, 1, 2]
    for times in written.values():
        assert all(round(later - earlier) == interval_s for earlier, later in pairwise(times))
        assert len(times) >= 120 // interval_s - 1


# The request queue


@pytest.mark.soak(size=60, rounds_in_test=1, rounds_in_soak=200)
@settings(max_examples=60)
@given(
    io_threads=st.integers(1, 4),
    network_threads=st.integers(1, 3),
    requests_max=st.integers(1, 4),
    arrivals=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 5)), max_size=30),
)
def test_the_request_queue_is_limited_and_its_threads_work_in_order(
    io_threads: int, network_threads: int, requests_max: int, arrivals: list[tuple[int, int, int]]
) -> None:
    """SocketServer with num.network.threads, queued.max.requests and num.io.threads."""
    host = FakeHost("broker-0")
    connections = [host.connect("broker-0", "listener", FakeEndpoint(host.clock)) for _ in range(4)]
    started: list[int] = []
    ended: list[int] = []
    queued: list[int] = []

    def handle(exchange: Exchange[Any]) -> Iterator[int]:
        number, takes_ms = exchange.request
        started.append(number)
        assert len(started) - len(ended) <= io_threads, "more requests at once than threads"
        if takes_ms:
            yield takes_ms * 1_000
        ended.append(number)

    channel = RequestChannel(
        *(0, host, handle, lambda *_: None),
        network_threads=network_threads,
        requests_max=requests_max,
        io_threads=io_threads,
    )
    for number, (connection, after_ms, takes_ms) in enumerate(arrivals):
        host.advance(after_ms * 1_000)
        queued.append(number)
        channel.add_request(Exchange(connections[connection], number, cast("Body", (number, takes_ms))))
        assert len(channel._queue) <= requests_max
        is_waiting = len(started) < len(queued)
        assert not is_waiting or len(started) - len(ended) == io_threads, "a request waits for a free thread"
    host.advance(1_000_000)
    assert sorted(ended) == queued
    assert channel.is_idle
    by_network_thread: dict[int, list[int]] = {}
    for number in started:
        thread = connections[arrivals[number][0]].id % network_threads
        by_network_thread.setdefault(thread, []).append(number)
    for requests in by_network_thread.values():
        assert requests == sorted(requests), "a network thread reads requests in order"
    if network_threads == 1:
        assert started == queued
