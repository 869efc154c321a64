"""Kafka's rules of what leader and follower tell each other: high watermarks, maximal ISR, truncation, acks, the purgatory, checkpoints."""

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
from tests.properties.test_replication_rules import FOLLOWERS, Followed, Step, isrs, releases, steps

T = TypeVar("T")

SINCE_KIP_497 = st.sampled_from(["2.8", "3.6", "4.3"])
BY_ISR_OF_ZOOKEEPER = st.sampled_from(["0.10.2", "2.0", "2.4"])


def while_answered(replicas: Replicas, taken: Iterable[T]) -> Iterator[T]:
    """Yield what is taken until an ISR has to be written: up to 2.4 nothing is answered before that is done."""
    for step in taken:
        if replicas.manager.partitions[P].isr_writes:
            return
        yield step


# The follower's high watermark


@pytest.mark.soak(size=50, test=1, soak=100)
@settings(max_examples=50)
@given(release=SINCE_KIP_497, answers=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), max_size=8))
def test_a_followers_high_watermark_is_the_leaders_or_its_own_leo_if_that_is_smaller(
    release: str, answers: list[tuple[int, int]]
) -> None:
    """The leader's high watermark never falls, and is behind what it has sent, or ahead of what has arrived."""
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


@pytest.mark.soak(size=50, test=1, soak=100)
@settings(max_examples=50)
@given(
    release=releases,
    isr=isrs,
    taken=st.lists(
        st.tuples(
            st.sampled_from(["produce", "fetch", "wait"]), st.sampled_from(FOLLOWERS), st.integers(0, 2)
        ),
        max_size=30,
    ),
)
def test_a_fetch_with_data_has_the_high_watermark_of_before_it_counts_and_one_that_waited_that_of_its_end(
    release: str, isr: tuple[int, ...], taken: list[tuple[str, int, int]]
) -> None:
    """ReplicaManager.readFromLocalLog, then updateFollowerLogReadResults; DelayedFetch.onComplete reads again."""
    replicas = Replicas(isr=isr, release=release)
    log = replicas.manager.partitions[P].log
    position = dict.fromkeys(FOLLOWERS, 0)
    waiting: dict[int, int] = {}

    def take_answer(follower: int, number: int, hw: int) -> None:
        error, values, answered_hw = replicas.fetched(number)
        assert (error, answered_hw) == (errors.NONE, hw)
        position[follower] += len(values)

    for number, (kind, follower, behind) in enumerate(while_answered(replicas, taken)):
        answered = len(replicas.responses)
        if kind == "produce":
            hw = log.high_watermark
            replicas.produce(f"m{number}", acks=1)
            # A leader that is alone commits at once, before those who wait are answered.
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
                take_answer(follower, own, hw)
            else:
                waiting[follower] = own
            hw = log.high_watermark
        for correlation_id, _ in replicas.responses[answered:]:
            for other, own in list(waiting.items()):
                if own == correlation_id:
                    event("waited")
                    del waiting[other]
                    take_answer(other, own, hw)


# The maximal ISR, one change at a time


@pytest.mark.soak(size=80, test=1, soak=100)
@settings(max_examples=80)
@given(isr=isrs, release=SINCE_KIP_497, history=steps, ineligible=st.booleans())
def test_while_an_isr_is_written_who_joins_counts_who_leaves_does_and_nothing_else_is_asked_for(
    isr: tuple[int, ...], release: str, history: list[Step], ineligible: bool
) -> None:
    """KIP-497: PendingExpandIsr and PendingShrinkIsr; INELIGIBLE_REPLICA takes the state of before back (KIP-841).

    Who was to join counts on after any other refusal: an earlier try may have arrived.
    """
    led = Followed(isr, release)
    is_refused = False
    for step in history:
        was_busy, before, asked = led.partition.isr_write_in_flight, led.partition.isr, len(led.store.writes)
        if step[0] == "answer" and was_busy and ineligible:
            led.store.answers[-1](INELIGIBLE)
            # It may try again at once, from the ISR that it had.
            assert led.partition.isr == before
        else:
            led.do(step)
        new = led.store.writes[asked:]
        answered = step[0] == "answer"
        assert len(new) <= (not was_busy or answered)
        if led.partition.isr_write_in_flight:
            wanted = led.store.writes[-1][0]
            event("joining" if len(wanted) > len(led.partition.isr) else "leaving")
            counted = {*led.partition.isr, *wanted}
        else:
            counted = set(led.partition.isr)
        assert set(led.partition.maximal_isr) >= counted
        if answered and was_busy:
            is_refused = not step[1] and not ineligible
        if not is_refused:
            assert set(led.partition.maximal_isr) == counted
        if was_busy and not answered:
            assert led.partition.isr == before, "the ISR changes when it is written"


@pytest.mark.soak(size=40, test=1, soak=100)
@settings(max_examples=40)
@given(isr=isrs, release=BY_ISR_OF_ZOOKEEPER, history=steps)
def test_before_kip_497_the_isr_is_what_is_written_and_one_write_is_under_way(
    isr: tuple[int, ...], release: str, history: list[Step]
) -> None:
    led = Followed(isr, release)
    for step in history:
        was_busy, asked = led.partition.isr_write_in_flight, len(led.store.writes)
        led.do(step)
        assert len(led.store.writes) - asked <= (not was_busy or step[0] == "answer")
        assert led.partition.isr == isr or led.store.answers


# Truncation on fetch (KIP-595)

histories = st.lists(st.integers(1, 3), min_size=0, max_size=4)


def log_of(common: list[int], rest: list[int], mark: str, first_epoch: int) -> list[tuple[int, str]]:
    """Return (epoch, value) by offset: a common beginning, and what is of this log alone."""
    found = [(epoch, f"c{epoch}.{n}") for epoch, count in enumerate(common) for n in range(count)]
    for place, count in enumerate(rest):
        found += [(first_epoch + 2 * place, f"{mark}{place}.{n}") for n in range(count)]
    return found


@pytest.mark.soak(size=80, test=1, soak=100)
@settings(max_examples=80)
@given(release=SINCE_KIP_497, common=histories, of_leader=histories, of_follower=histories)
def test_a_follower_that_is_told_where_logs_part_ends_with_a_prefix_of_its_leaders_log_and_no_shorter_one(
    release: str, common: list[int], of_leader: list[int], of_follower: list[int]
) -> None:
    """What both have alike stays; epochs of one leader are those of no other (Partition.readRecords, truncateOnFetchResponse)."""
    leaders, followers, cache = parted(common, of_leader, of_follower)
    follower = follower_with(*followers, release=release, epoch=90)
    shared = sum(common)
    for _ in range(len(followers) + 2):
        ((offset, _),) = [sent.body.partitions[P] for sent in follower.host.requests("Fetch")]
        last_epoch = follower.host.requests("Fetch")[0].body.last_epochs.get(P, -1)
        epoch, end_offset = cache.end_offset_for(last_epoch, len(leaders))
        # The leader's rule, as it stands in KAFKA_RULES: the answered epoch is smaller, or it ends before the fetch offset.
        diverges = last_epoch >= 0 and (epoch < last_epoch or end_offset < offset)
        if not diverges:
            break
        event("diverging")
        before = len(follower.truncated)
        answer = FetchedPartition(errors.NONE, 99, diverging=(epoch, end_offset))
        follower.host.take("Fetch").answer(FetchResponse({P: answer}))
        assert len(follower.truncated) == before + 1
        log = follower.partitions[P].log
        assert log.high_watermark == 0, "no high watermark is taken from such an answer"
        follower.host.advance(WAIT_US)
    kept = follower.partitions[P].log.log_end_offset
    assert kept >= min(shared, len(leaders), len(followers))
    assert followers[:kept] == leaders[:kept]


def parted(
    common: list[int], of_leader: list[int], of_follower: list[int]
) -> tuple[list[tuple[int, str]], list[tuple[int, str]], LeaderEpochCache]:
    """Return the logs of a leader and a follower that have parted, and the epochs of the leader, which leads in epoch 90."""
    begin = len(common)
    leaders = log_of(common, of_leader, "l", begin)
    followers = log_of(common, of_follower, "f", begin + 1)
    cache = LeaderEpochCache()
    # A leader notes its own epoch at its LEO at once (KAFKA-7415).
    cache.entries = [*epochs_of(leaders), (90, len(leaders))]
    return leaders, followers, cache


def epochs_of(log: list[tuple[int, str]]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for offset, (epoch, _) in enumerate(log):
        if not found or found[-1][0] != epoch:
            found.append((epoch, offset))
    return found


# Acks and the purgatory


@pytest.mark.soak(size=50, test=1, soak=100)
@settings(max_examples=50)
@given(
    release=releases,
    isr=isrs,
    taken=st.lists(st.tuples(st.sampled_from([0, 1, -1]), st.sampled_from(FOLLOWERS)), max_size=20),
)
def test_acks_0_is_never_answered_acks_1_at_once_and_acks_all_when_the_high_watermark_has_passed_it(
    release: str, isr: tuple[int, ...], taken: list[tuple[int, int]]
) -> None:
    # Before KIP-497 requests wait while an ISR is written: nobody joins here.
    assume(len(isr) == len((LEADER, *FOLLOWERS)) or release not in ("0.10.2", "2.0", "2.4"))
    replicas = Replicas(isr=isr, release=release)
    log = replicas.manager.partitions[P].log
    due: dict[int, int] = {}
    for number, (acks, follower) in enumerate(taken):
        begin = log.log_end_offset
        produced = replicas.produce(f"m{number}", acks=acks, client=f"p{number}")
        assert log.log_end_offset == begin + 1
        # An answer to acks=0 has no body: nothing is sent.
        sent = {correlation_id for correlation_id, body in replicas.responses if body is not None}
        assert (produced in sent) == (acks == 1 or (acks == -1 and log.high_watermark > begin))
        if acks == -1:
            due[produced] = begin
        replicas.fetch(follower, max_wait_us=0, t_0=log.log_end_offset)
        sent = {correlation_id for correlation_id, body in replicas.responses if body is not None}
        for waits, offset in due.items():
            assert (waits in sent) == (log.high_watermark > offset)


@pytest.mark.soak(size=40, test=1, soak=100)
@settings(max_examples=40)
@given(release=releases, waits_ms=st.lists(st.integers(1, 700), min_size=1, max_size=6))
def test_a_fetch_with_nothing_to_read_waits_so_long_unless_something_is_appended(
    release: str, waits_ms: list[int]
) -> None:
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


def run_quietly(kafka: str) -> RunResult:
    (plan,) = load_text(CHECKPOINTED.format(kafka=kafka), "checkpoints.yaml").plans
    return run_plan(plan, 0)


@pytest.mark.parametrize("kafka", ["2.4", "4.3"])
@pytest.mark.parametrize(
    ("name", "interval_s"), [("replication-offset-checkpoint", 5), ("recovery-point-offset-checkpoint", 60)]
)
def test_high_watermarks_are_checkpointed_every_five_seconds_and_recovery_points_every_sixty(
    kafka: str, name: str, interval_s: int
) -> None:
    written: dict[int, list[float]] = {}
    for found in select(run_quietly(kafka).evidence.trace, events.CheckpointWritten):
        if found.kind == name and 0 < found.at_us < 125_000_000:
            times = written.setdefault(found.broker, [])
            if not times or found.at_us / 1e6 - times[-1] > 0.5:
                times.append(found.at_us / 1e6)
    assert sorted(written) == [0, 1, 2]
    for times in written.values():
        assert all(round(later - earlier) == interval_s for earlier, later in pairwise(times))
        assert len(times) >= 120 // interval_s - 1


# The request queue


@pytest.mark.soak(size=60, test=1, soak=200)
@settings(max_examples=60)
@given(
    io_threads=st.integers(1, 4),
    network_threads=st.integers(1, 3),
    requests_max=st.integers(1, 4),
    arrivals=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 5)), max_size=30),
)
def test_one_queue_is_emptied_in_its_order_by_so_many_threads_and_holds_so_many_requests(
    io_threads: int, network_threads: int, requests_max: int, arrivals: list[tuple[int, int, int]]
) -> None:
    """Acceptor, num.network.threads, queued.max.requests, num.io.threads (SocketServer, RequestChannel)."""
    host = FakeHost("broker-0")
    connections = [host.connect("broker-0", "listener", FakeEndpoint(host.clock)) for _ in range(4)]
    begun: list[int] = []
    ended: list[int] = []
    queued: list[int] = []

    def handle(exchange: Exchange[Any]) -> Iterator[int]:
        number, takes_ms = exchange.request
        begun.append(number)
        assert len(begun) - len(ended) <= io_threads, "more at once than there are threads"
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
        channel.put(Exchange(connections[connection], number, cast("Body", (number, takes_ms))))
        assert len(channel._queue) <= requests_max
        is_waiting = len(begun) < len(queued)
        assert not is_waiting or len(begun) - len(ended) == io_threads, "a thread is free and something waits"
    host.advance(1_000_000)
    assert sorted(ended) == queued
    assert channel.is_idle
    by_network_thread: dict[int, list[int]] = {}
    for number in begun:
        read_by = connections[arrivals[number][0]].id % network_threads
        by_network_thread.setdefault(read_by, []).append(number)
    for each in by_network_thread.values():
        assert each == sorted(each), "a network thread reads one request after the other"
    if network_threads == 1:
        assert begun == queued
