"""Kafka's replication rules, checked against their definitions on random histories of one leader.

The rules are those of ``Partition.scala`` and ``Replica.scala``.
"""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harrow.cluster_model import errors
from harrow.cluster_model.log.leader_epoch_cache import (
    UNDEFINED_EPOCH,
    UNDEFINED_EPOCH_OFFSET,
    LeaderEpochCache,
)
from tests.cluster_model.broker.test_partition import LAG_US, LEADER, LedPartition
from tests.cluster_model.fakes import SECOND

FOLLOWERS = (1, 2)
LONG_AGO_US = -(10**15)

Step = tuple[str, int, int]
steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 3), st.just(0)),
        st.tuples(st.just("wait"), st.integers(1, 12), st.just(0)),
        st.tuples(st.just("fetch"), st.sampled_from(FOLLOWERS), st.integers(0, 4)),
        st.tuples(st.just("shrink"), st.just(0), st.just(0)),
        st.tuples(st.just("answer"), st.integers(0, 1), st.just(0)),
    ),
    max_size=25,
)
rounds = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 2), st.just(0)),
        st.tuples(st.just("wait"), st.just(1), st.just(0)),
        st.tuples(st.just("fetch"), st.just(1), st.integers(0, 2)),
    ),
    min_size=10,
    max_size=60,
)
isrs = st.sampled_from([(0,), (0, 1), (0, 2), (0, 1, 2)])
releases = st.sampled_from(["0.10.2", "2.0", "2.4", "2.8", "3.6", "4.3"])


class TrackedLeader(LedPartition):
    """A leader. The test itself records each fetch of its followers with the leader's LEO."""

    def __init__(self, isr: tuple[int, ...], release: str, min_isr: int = 1) -> None:
        super().__init__(isr=isr, release=release, min_isr=min_isr)
        self.fetches: dict[int, list[tuple[int, int, int]]] = {follower: [] for follower in FOLLOWERS}
        self.caught_up_us = {
            follower: self.host.clock.now_us if follower in isr else LONG_AGO_US for follower in FOLLOWERS
        }

    @property
    def leo(self) -> int:
        return self.partition.log.log_end_offset

    def do(self, step: Step) -> None:
        """Perform a step. The last number is how far a fetch is behind the LEO."""
        kind, number, behind = step
        if kind == "append":
            self.append(number)
        elif kind == "wait":
            self.host.clock.now_us += number * SECOND
        elif kind == "fetch":
            self.fetch_from(number, max(self.leo - behind, 0))
        elif kind == "shrink":
            self.partition.maybe_shrink_isr()
        elif self.partition.isr_write_in_flight:
            self.written(self.partition.partition_epoch + 1 if number else None)

    def fetch_from(self, follower: int, offset: int) -> None:
        now_us = self.host.clock.now_us
        if offset >= self.leo:
            self.caught_up_us[follower] = max(self.caught_up_us[follower], now_us)
        elif self.fetches[follower] and offset >= self.fetches[follower][-1][2]:
            self.caught_up_us[follower] = max(self.caught_up_us[follower], self.fetches[follower][-1][0])
        self.fetches[follower].append((now_us, offset, self.leo))
        self.fetch(**{f"r{follower}": offset})

    def known_leo(self, follower: int) -> int:
        return self.fetches[follower][-1][1] if self.fetches[follower] else -1

    def is_caught_up(self, follower: int) -> bool:
        in_time = self.host.clock.now_us - self.caught_up_us[follower] <= LAG_US
        return self.known_leo(follower) == self.leo or in_time


def after_each(leader: TrackedLeader, history: list[Step], check: Callable[[Step], None]) -> None:
    for step in history:
        leader.do(step)
        check(step)


@pytest.mark.soak(size=50, rounds_in_test=1, rounds_in_soak=100)
@settings(max_examples=50)
@given(isr=isrs, release=releases, history=steps)
def test_the_high_watermark_never_falls_and_never_passes_a_member_of_the_isr(
    isr: tuple[int, ...], release: str, history: list[Step]
) -> None:
    leader = TrackedLeader(isr, release)
    hw = leader.hw

    def check(_: Step) -> None:
        nonlocal hw
        assert hw <= leader.hw <= leader.leo
        if leader.hw > hw:
            for member in leader.partition.maximal_isr:
                assert member == LEADER or leader.known_leo(member) >= leader.hw
        hw = leader.hw

    after_each(leader, history, check)


@pytest.mark.soak(size=50, rounds_in_test=1, rounds_in_soak=100)
@settings(max_examples=50)
@given(isr=isrs, release=releases, history=steps)
def test_the_high_watermark_is_the_smallest_leo_of_the_leader_the_isr_and_caught_up_replicas(
    isr: tuple[int, ...], release: str, history: list[Step]
) -> None:
    leader = TrackedLeader(isr, release)
    for step in history:
        leader.do(step)
    if leader.partition.isr_write_in_flight:
        leader.written(leader.partition.partition_epoch + 1)
    before = leader.hw
    leader.partition.maybe_increment_hw()
    since_us = leader.host.clock.now_us - LAG_US
    counted = [
        leader.known_leo(follower)
        for follower in FOLLOWERS
        if follower in leader.partition.isr or leader.caught_up_us[follower] >= since_us
    ]
    assert leader.hw == max(before, min([leader.leo, *counted]))


@pytest.mark.soak(size=100, rounds_in_test=1, rounds_in_soak=100)
@settings(max_examples=100)
@given(isr=isrs, release=releases, history=rounds)
def test_a_replica_was_last_caught_up_when_it_fetched_from_the_leo_of_this_or_the_previous_fetch(
    isr: tuple[int, ...], release: str, history: list[Step]
) -> None:
    leader = TrackedLeader(isr, release)

    def check(_: Step) -> None:
        for follower in FOLLOWERS:
            assert leader.partition.remote_replicas[follower].caught_up_us == leader.caught_up_us[follower]

    after_each(leader, history, check)


@pytest.mark.soak(size=50, rounds_in_test=1, rounds_in_soak=100)
@settings(max_examples=50)
@given(isr=isrs, release=releases, history=steps)
def test_a_shrink_drops_exactly_the_replicas_that_are_not_caught_up(
    isr: tuple[int, ...], release: str, history: list[Step]
) -> None:
    leader = TrackedLeader(isr, release)
    for step in history:
        leader.do(step)
    if leader.partition.isr_write_in_flight:
        leader.written(leader.partition.partition_epoch + 1)
    before, write_count = leader.partition.isr, len(leader.store.writes)
    remaining = tuple(member for member in before if member == LEADER or leader.is_caught_up(member))
    leader.partition.maybe_shrink_isr()
    written = [isr for isr, _ in leader.store.writes[write_count:]]
    assert written == ([] if remaining == before else [remaining])


@pytest.mark.soak(size=50, rounds_in_test=1, rounds_in_soak=100)
@settings(max_examples=50)
@given(isr=isrs, release=releases, history=steps)
def test_a_follower_joins_when_it_has_reached_the_high_watermark_and_the_start_of_the_epoch(
    isr: tuple[int, ...], release: str, history: list[Step]
) -> None:
    leader = TrackedLeader(isr, release)
    for step in history:
        is_busy, before = leader.partition.isr_write_in_flight, leader.partition.isr
        write_count = len(leader.store.writes)
        hw = leader.hw
        leader.do(step)
        expansions = [written for written, change in leader.store.writes[write_count:] if change == "expand"]
        kind, follower, _ = step
        if kind != "fetch" or follower in before or is_busy:
            assert expansions == []
            continue
        offset = leader.known_leo(follower)
        has_joined = expansions == [(*before, follower)]
        assert has_joined == (offset >= hw and offset >= leader.partition.leader_epoch_start)


@pytest.mark.soak(size=50, rounds_in_test=1, rounds_in_soak=100)
@settings(max_examples=50)
@given(isr=isrs, release=releases, min_isr=st.integers(1, 4), history=steps)
def test_acks_all_is_refused_before_the_append_if_the_isr_is_smaller_than_min_insync_replicas(
    isr: tuple[int, ...], release: str, min_isr: int, history: list[Step]
) -> None:
    leader = TrackedLeader(isr, release, min_isr)
    for step in history:
        leader.do(step)
    needed = min(min_isr, 3) if leader.partition.switches.min_isr_limited_to_replica_count else min_isr
    leo, is_small = leader.leo, len(leader.partition.isr) < needed
    assert leader.append(acks=-1) == (errors.NOT_ENOUGH_REPLICAS if is_small else errors.NONE)
    assert leader.leo == leo + (not is_small)
    assert leader.append(acks=1) == errors.NONE


@pytest.mark.soak(size=100, rounds_in_test=1, rounds_in_soak=100)
@settings(max_examples=100)
@given(
    lengths=st.lists(st.tuples(st.integers(1, 3), st.integers(0, 3)), max_size=6),
    requested=st.integers(-1, 20),
)
def test_an_epoch_ends_at_the_start_of_the_next_or_at_the_leo(
    lengths: list[tuple[int, int]], requested: int
) -> None:
    cache, epoch, leo = LeaderEpochCache(), 0, 0
    start_of: dict[int, int] = {}
    for gap, length in lengths:
        epoch += gap
        cache.assign(epoch, leo)
        # An epoch without records is dropped when the next one starts at its offset.
        start_of = {earlier: start for earlier, start in start_of.items() if start < leo}
        start_of[epoch] = leo
        leo += length
    answer = cache.end_offset_for(requested, leo)
    earlier_epochs = [epoch for epoch in start_of if epoch <= requested]
    if requested < 0 or not start_of or requested > max(start_of):
        assert answer == (UNDEFINED_EPOCH, UNDEFINED_EPOCH_OFFSET)
    elif not earlier_epochs:
        assert answer == (requested, min(start_of.values()))
    else:
        largest = max(earlier_epochs)
        higher = [start for epoch, start in start_of.items() if epoch > largest]
        assert answer == (largest, min(higher, default=leo))
