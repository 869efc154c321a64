"""Consumers that read from followers (KIP-392): redirection, and answers of followers."""

from collections.abc import Mapping
from typing import Any

import pytest

from harrow.cluster_model import errors
from harrow.cluster_model.protocol import (
    FetchedPartition,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    PartitionData,
)
from harrow.cluster_model.settings import RACK_AWARE_SELECTOR
from tests.cluster_model.broker.test_purgatory import WAIT_US, P, Replicas
from tests.cluster_model.fakes import MS, batch

RACKS = {0: "a", 1: "b", 2: "c", 3: "c"}
NONE = errors.NONE


class RackAwareLeader(Replicas):
    """Broker 0 in rack a, with follower 1 in rack b and follower 2 in rack c."""

    def __init__(
        self, racks: Mapping[int, str] = RACKS, selector: str = RACK_AWARE_SELECTOR, **options: Any
    ) -> None:
        options.setdefault("isr", (0, 1, 2))
        super().__init__(settings={"replica.selector.class": selector}, **options)
        self.manager._metadata.racks = racks

    def consume(
        self, offset: int = 0, rack: str | None = "c", epoch: int = -1, wait_us: int = WAIT_US, name: str = P
    ) -> int:
        request = FetchRequest(-1, wait_us, 1_000_000, {name: PartitionData(offset, epoch)}, rack=rack)
        self.manager.fetching.handle_fetch(self.exchange(request, "near"))
        return self.correlation_id

    def answer(self, correlation_id: int, name: str = P) -> FetchedPartition | None:
        """Return the answer to a fetch, None while it waits."""
        body: FetchResponse | None = dict(self.responses).get(correlation_id)
        return None if body is None else body.partitions[name]

    def sent_to(self, correlation_id: int) -> int | None:
        answer = self.answer(correlation_id)
        assert answer is not None, "it waits"
        return answer.preferred_read_replica

    def commit(self, *values: str, followers: tuple[int, ...] = (1, 2)) -> None:
        """Append records to the log of each of these followers."""
        self.produce(*values, acks=1)
        end = self.manager.partitions[P].log.log_end_offset
        for follower in followers:
            self.fetch(follower, max_wait_us=0, t_0=end)

    def follow(self, leader: int = 1, epoch: int = 2) -> None:
        self.lead(P, leader, (0, 1, 2), epoch)

    def replicate(self, *values: str, at: int = 0, hw: int = 0, epoch: int = 2) -> None:
        """Apply an answer of the leader as the fetcher does."""
        sent = [sent for sent in self.host.sent if isinstance(sent.body, FetchRequest)][-1]
        batches = (batch(*values, at=at, leader_epoch=epoch),) if values else ()
        sent.answer(FetchResponse({P: FetchedPartition(NONE, hw, batches)}))


# Redirection by a leader


@pytest.mark.parametrize(
    ("rack", "replica"),
    [("c", 2), ("b", 1), ("a", None), ("elsewhere", None), ("", None), (None, None)],
)
def test_a_consumer_is_redirected_to_the_replica_in_its_rack_unless_the_leader_is_there(
    rack: str | None, replica: int | None
) -> None:
    leader = RackAwareLeader(release="3.9")
    leader.commit("m0")
    answer = leader.answer(leader.consume(rack=rack))
    assert answer is not None
    assert answer.preferred_read_replica == replica
    assert answer.hw == 1
    # A redirected consumer gets no records.
    assert [batch.values for batch in answer.batches] == ([] if replica is not None else [("m0",)])


def test_without_a_selector_no_consumer_is_redirected() -> None:
    leader = RackAwareLeader(selector="none", release="3.9")
    leader.commit("m0")
    assert leader.sent_to(leader.consume()) is None


def test_a_follower_is_never_redirected() -> None:
    leader = RackAwareLeader({0: "a", 1: "c", 2: "c"}, release="3.9")
    leader.commit("m0", followers=(2,))
    assert leader.fetched(leader.fetch(1, max_wait_us=0, t_0=0)) == (NONE, ["m0"], 0)


def test_the_most_advanced_replica_in_a_rack_wins_then_the_last_caught_up() -> None:
    leader = RackAwareLeader({1: "c", 2: "c"}, release="3.9")
    leader.commit("m0")
    assert leader.sent_to(leader.consume()) == 2
    leader.host.advance(MS)
    leader.fetch(1, max_wait_us=0, t_0=1)
    assert leader.sent_to(leader.consume()) == 1
    leader.produce("m1", acks=1)
    leader.fetch(2, max_wait_us=0, t_0=2)
    assert leader.sent_to(leader.consume()) == 2


def test_consumers_are_not_redirected_to_a_replica_that_lags_has_deleted_or_is_dead() -> None:
    leader = RackAwareLeader(release="3.9")
    leader.commit("m0", followers=(1,))
    leader.fetch(2, max_wait_us=0, t_0=0)
    assert leader.sent_to(leader.consume(1, wait_us=0)) is None
    leader.fetch(2, max_wait_us=0, t_0=1)
    assert leader.sent_to(leader.consume(1, wait_us=0)) == 2
    leader.manager.partitions[P].remote_replicas[2].log_start_offset = 1
    assert leader.sent_to(leader.consume(0)) is None
    leader.manager.partitions[P].remote_replicas[2].log_start_offset = 0
    assert leader.sent_to(leader.consume(0)) == 2
    leader.manager._metadata.live_brokers = (0, 1)
    assert leader.sent_to(leader.consume(0)) is None


@pytest.mark.parametrize(("release", "replica"), [("2.8", 2), ("3.9", None)])
def test_since_kafka_14372_consumers_are_redirected_only_to_the_isr(
    release: str, replica: int | None
) -> None:
    leader = RackAwareLeader(release=release, isr=(0, 1))
    leader.commit("m0", "m1", followers=(1,))
    leader.fetch(2, max_wait_us=0, t_0=1)
    assert leader.manager.partitions[P].isr == (0, 1)
    assert leader.sent_to(leader.consume(0, wait_us=0)) == replica


@pytest.mark.parametrize(("release", "is_immediate"), [("2.4", False), ("2.8", False), ("3.6", True)])
def test_before_kafka_13767_a_redirected_consumer_waits_first(release: str, is_immediate: bool) -> None:
    leader = RackAwareLeader(release=release)
    leader.commit("m0")
    request = leader.consume()
    assert (leader.answer(request) is not None) == is_immediate
    if not is_immediate:
        # Events between the fetch and the answer do not matter.
        leader.commit("m1")
        leader.host.advance(WAIT_US - 1)
        assert leader.answer(request) is None
        leader.host.advance(1)
    assert leader.sent_to(request) == 2


def test_a_waiting_consumer_is_redirected_when_the_replica_in_its_rack_returns() -> None:
    leader = RackAwareLeader(release="3.9")
    leader.manager._metadata.live_brokers = (0, 1)
    leader.commit("m0")
    request = FetchRequest(-1, WAIT_US, 1_000_000, {P: PartitionData(1, -1)}, session_epoch=0, rack="c")
    leader.manager.fetching.handle_fetch(leader.exchange(request, "near"))
    leader.host.advance(WAIT_US)
    session = dict(leader.responses)[leader.correlation_id].session_id
    leader.manager._metadata.live_brokers = (0, 1, 2)
    following = FetchRequest(-1, WAIT_US, 1_000_000, {}, session_id=session, session_epoch=1, rack="c")
    leader.manager.fetching.handle_fetch(leader.exchange(following, "near"))
    assert leader.sent_to(leader.correlation_id) == 2


@pytest.mark.parametrize(("release", "replica"), [("2.4", None), ("2.8", 2), ("3.6", None)])
def test_before_kafka_13778_a_former_leader_still_redirects_consumers(
    release: str, replica: int | None
) -> None:
    leader = RackAwareLeader(release=release)
    leader.commit("m0")
    leader.follow(leader=1)
    request = leader.consume(1, epoch=2)
    leader.host.advance(WAIT_US)
    assert leader.sent_to(request) == replica


# Answers of a follower


@pytest.mark.parametrize(
    ("release", "rack", "error"),
    [
        ("2.0", "c", errors.NOT_LEADER_FOR_PARTITION),
        ("2.4", None, errors.NOT_LEADER_FOR_PARTITION),
        ("2.4", "", NONE),
        ("2.4", "c", NONE),
        ("4.3", "c", NONE),
    ],
)
def test_since_2_4_a_follower_serves_consumers_with_a_rack(
    release: str, rack: str | None, error: str
) -> None:
    leader = RackAwareLeader(release=release) if release != "2.0" else _without_selector(release)
    leader.follow()
    leader.host.advance(MS)
    answer = leader.answer(leader.consume(rack=rack, wait_us=0))
    assert answer is not None
    assert answer.error == error


def _without_selector(release: str) -> RackAwareLeader:
    return RackAwareLeader(selector="none", release=release)


def test_a_follower_serves_up_to_its_own_high_watermark() -> None:
    leader = RackAwareLeader(release="3.9")
    leader.follow()
    leader.replicate("m0", "m1", hw=1)
    leader.replicate(hw=0)
    assert leader.fetched(leader.consume(0, wait_us=0)) == (NONE, [], 0)
    leader.replicate("m2", at=2, hw=2)
    assert leader.fetched(leader.consume(0, wait_us=0)) == (NONE, ["m0", "m1"], 2)
    # Uncommitted offsets are in range; offsets beyond the log are not.
    assert leader.fetched(leader.consume(3, wait_us=0)) == (NONE, [], 2)
    assert leader.fetched(leader.consume(4, wait_us=0))[0] == errors.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize(
    ("epoch", "error"), [(1, errors.FENCED_LEADER_EPOCH), (2, NONE), (3, errors.UNKNOWN_LEADER_EPOCH)]
)
def test_a_follower_checks_the_leader_epoch_of_a_consumer(epoch: int, error: str) -> None:
    leader = RackAwareLeader(release="3.9")
    leader.follow(epoch=2)
    assert leader.fetched(leader.consume(epoch=epoch, wait_us=0))[0] == error


def test_a_follower_does_not_answer_list_offsets_of_a_consumer() -> None:
    leader = RackAwareLeader(release="3.9")
    leader.follow()
    leader.manager.fetching.handle_list_offsets(leader.exchange(ListOffsetsRequest(-1, {P: -1}), "near"))
    assert dict(leader.responses)[leader.correlation_id].partitions == {
        P: (errors.NOT_LEADER_FOR_PARTITION, -1)
    }


@pytest.mark.parametrize(("release", "woken"), [("2.8", False), ("3.6", True)])
def test_since_kafka_14334_a_consumer_is_woken_by_the_followers_high_watermark(
    release: str, woken: bool
) -> None:
    leader = RackAwareLeader(release=release)
    leader.follow()
    leader.replicate("m0", hw=0)
    request = leader.consume()
    leader.replicate(hw=1)
    assert (leader.answer(request) is not None) == woken
    leader.host.advance(WAIT_US)
    assert leader.fetched(request) == (NONE, ["m0"], 1)


def test_a_consumer_waiting_at_a_follower_is_answered_on_a_new_leader() -> None:
    leader = RackAwareLeader(release="3.9")
    leader.follow(epoch=2)
    request = leader.consume(epoch=2)
    leader.follow(leader=2, epoch=3)
    assert leader.fetched(request)[0] == errors.FENCED_LEADER_EPOCH


def test_a_deleted_replica_serves_no_consumer() -> None:
    leader = RackAwareLeader(release="3.9")
    leader.follow()
    request = leader.consume(epoch=2)
    leader.manager._delete_replica(P)
    assert leader.fetched(request)[0] == errors.NOT_LEADER_FOR_PARTITION


# Answers to followers on a new high watermark (KAFKA-9731)


def answered_high_watermarks(leader: RackAwareLeader) -> tuple[int | None, int | None]:
    """Return the high watermarks in the answers to two followers, after the second one's fetch."""
    leader.produce("m0", acks=1)
    first, second = leader.fetch(1, t_0=1), leader.fetch(2, t_0=1)
    answers = [leader.answer(request) for request in (first, second)]
    return tuple(None if answer is None else answer.hw for answer in answers)  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("release", "selector", "is_immediate"),
    [
        ("2.0", "none", False),
        ("2.4", "none", False),
        ("2.4", RACK_AWARE_SELECTOR, True),
        ("2.8", RACK_AWARE_SELECTOR, False),
    ],
)
def test_2_4_with_a_selector_answers_followers_when_the_high_watermark_moves(
    release: str, selector: str, is_immediate: bool
) -> None:
    leader = RackAwareLeader(selector=selector, release=release)
    assert answered_high_watermarks(leader) == ((1, 1) if is_immediate else (None, None))


def test_2_4_1_answers_followers_on_a_new_high_watermark_without_a_selector_too() -> None:
    leader = RackAwareLeader(selector="none", hw_advance_completes_follower_fetches="always")
    assert answered_high_watermarks(leader) == (1, 1)
    # The first fetch is answered at once, because it confirms the last answer. Later ones wait.
    later = leader.answer(leader.fetch(1, t_0=1))
    assert later is not None
    assert later.hw == 1
    assert leader.answer(leader.fetch(1, t_0=1)) is None
