"""Consumers that read from followers (KIP-392): redirection, and answers of followers."""

from collections.abc import Mapping
from typing import Any

import pytest

from harrow.cluster_model import errors
from harrow.cluster_model.protocol import FetchedPartition, FetchRequest, FetchResponse, ListOffsetsRequest
from harrow.cluster_model.settings import RACK_AWARE_SELECTOR
from tests.cluster_model.broker.test_purgatory import WAIT_US, P, Replicas
from tests.cluster_model.fakes import MS, batch

RACKS = {0: "a", 1: "b", 2: "c", 3: "c"}
NONE = errors.NONE


class Racks(Replicas):
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
        request = FetchRequest(-1, wait_us, 1_000_000, {name: (offset, epoch)}, rack=rack)
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
    racks = Racks(release="3.9")
    racks.commit("m0")
    answer = racks.answer(racks.consume(rack=rack))
    assert answer is not None
    assert answer.preferred_read_replica == replica
    assert answer.hw == 1
    # A redirected consumer gets no records.
    assert [batch.values for batch in answer.batches] == ([] if replica is not None else [("m0",)])


def test_without_a_selector_no_consumer_is_redirected() -> None:
    racks = Racks(selector="none", release="3.9")
    racks.commit("m0")
    assert racks.sent_to(racks.consume()) is None


def test_a_follower_is_never_redirected() -> None:
    racks = Racks({0: "a", 1: "c", 2: "c"}, release="3.9")
    racks.commit("m0", followers=(2,))
    assert racks.fetched(racks.fetch(1, max_wait_us=0, t_0=0)) == (NONE, ["m0"], 0)


def test_the_most_advanced_replica_in_a_rack_wins_then_the_last_caught_up() -> None:
    racks = Racks({1: "c", 2: "c"}, release="3.9")
    racks.commit("m0")
    assert racks.sent_to(racks.consume()) == 2
    racks.host.advance(MS)
    racks.fetch(1, max_wait_us=0, t_0=1)
    assert racks.sent_to(racks.consume()) == 1
    racks.produce("m1", acks=1)
    racks.fetch(2, max_wait_us=0, t_0=2)
    assert racks.sent_to(racks.consume()) == 2


def test_consumers_are_not_redirected_to_a_replica_that_lags_has_deleted_or_is_dead() -> None:
    racks = Racks(release="3.9")
    racks.commit("m0", followers=(1,))
    racks.fetch(2, max_wait_us=0, t_0=0)
    assert racks.sent_to(racks.consume(1, wait_us=0)) is None
    racks.fetch(2, max_wait_us=0, t_0=1)
    assert racks.sent_to(racks.consume(1, wait_us=0)) == 2
    racks.manager.partitions[P].remote_replicas[2].log_start_offset = 1
    assert racks.sent_to(racks.consume(0)) is None
    racks.manager.partitions[P].remote_replicas[2].log_start_offset = 0
    assert racks.sent_to(racks.consume(0)) == 2
    racks.manager._metadata.live_brokers = (0, 1)
    assert racks.sent_to(racks.consume(0)) is None


@pytest.mark.parametrize(("release", "replica"), [("2.8", 2), ("3.9", None)])
def test_since_kafka_14372_consumers_are_redirected_only_to_the_isr(
    release: str, replica: int | None
) -> None:
    racks = Racks(release=release, isr=(0, 1))
    racks.commit("m0", "m1", followers=(1,))
    racks.fetch(2, max_wait_us=0, t_0=1)
    assert racks.manager.partitions[P].isr == (0, 1)
    assert racks.sent_to(racks.consume(0, wait_us=0)) == replica


@pytest.mark.parametrize(("release", "at_once"), [("2.4", False), ("2.8", False), ("3.6", True)])
def test_before_kafka_13767_a_redirected_consumer_waits_first(release: str, at_once: bool) -> None:
    racks = Racks(release=release)
    racks.commit("m0")
    request = racks.consume()
    assert (racks.answer(request) is not None) == at_once
    if not at_once:
        # Events in between do not matter.
        racks.commit("m1")
        racks.host.advance(WAIT_US - 1)
        assert racks.answer(request) is None
        racks.host.advance(1)
    assert racks.sent_to(request) == 2


def test_a_waiting_consumer_is_redirected_when_the_replica_in_its_rack_returns() -> None:
    racks = Racks(release="3.9")
    racks.manager._metadata.live_brokers = (0, 1)
    racks.commit("m0")
    request = FetchRequest(-1, WAIT_US, 1_000_000, {P: (1, -1)}, session_epoch=0, rack="c")
    racks.manager.fetching.handle_fetch(racks.exchange(request, "near"))
    racks.host.advance(WAIT_US)
    session = dict(racks.responses)[racks.correlation_id].session_id
    racks.manager._metadata.live_brokers = (0, 1, 2)
    following = FetchRequest(-1, WAIT_US, 1_000_000, {}, session_id=session, session_epoch=1, rack="c")
    racks.manager.fetching.handle_fetch(racks.exchange(following, "near"))
    assert racks.sent_to(racks.correlation_id) == 2


@pytest.mark.parametrize(("release", "replica"), [("2.4", None), ("2.8", 2), ("3.6", None)])
def test_before_kafka_13778_a_former_leader_still_redirects_consumers(
    release: str, replica: int | None
) -> None:
    racks = Racks(release=release)
    racks.commit("m0")
    racks.follow(leader=1)
    request = racks.consume(1, epoch=2)
    racks.host.advance(WAIT_US)
    assert racks.sent_to(request) == replica


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
    racks = Racks(release=release) if release != "2.0" else _without_selector(release)
    racks.follow()
    racks.host.advance(MS)
    answer = racks.answer(racks.consume(rack=rack, wait_us=0))
    assert answer is not None
    assert answer.error == error


def _without_selector(release: str) -> Racks:
    return Racks(selector="none", release=release)


def test_a_follower_serves_up_to_its_own_high_watermark() -> None:
    racks = Racks(release="3.9")
    racks.follow()
    racks.replicate("m0", "m1", hw=1)
    racks.replicate(hw=0)
    assert racks.fetched(racks.consume(0, wait_us=0)) == (NONE, [], 0)
    racks.replicate("m2", at=2, hw=2)
    assert racks.fetched(racks.consume(0, wait_us=0)) == (NONE, ["m0", "m1"], 2)
    # Uncommitted offsets are in range; offsets beyond the log are not.
    assert racks.fetched(racks.consume(3, wait_us=0)) == (NONE, [], 2)
    assert racks.fetched(racks.consume(4, wait_us=0))[0] == errors.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize(
    ("epoch", "error"), [(1, errors.FENCED_LEADER_EPOCH), (2, NONE), (3, errors.UNKNOWN_LEADER_EPOCH)]
)
def test_a_follower_checks_the_leader_epoch_of_a_consumer(epoch: int, error: str) -> None:
    racks = Racks(release="3.9")
    racks.follow(epoch=2)
    assert racks.fetched(racks.consume(epoch=epoch, wait_us=0))[0] == error


def test_a_follower_does_not_answer_list_offsets_of_a_consumer() -> None:
    racks = Racks(release="3.9")
    racks.follow()
    racks.manager.fetching.handle_list_offsets(racks.exchange(ListOffsetsRequest(-1, {P: -1}), "near"))
    assert dict(racks.responses)[racks.correlation_id].partitions == {
        P: (errors.NOT_LEADER_FOR_PARTITION, -1)
    }


@pytest.mark.parametrize(("release", "woken"), [("2.8", False), ("3.6", True)])
def test_since_kafka_14334_a_consumer_is_woken_by_the_followers_high_watermark(
    release: str, woken: bool
) -> None:
    racks = Racks(release=release)
    racks.follow()
    racks.replicate("m0", hw=0)
    request = racks.consume()
    racks.replicate(hw=1)
    assert (racks.answer(request) is not None) == woken
    racks.host.advance(WAIT_US)
    assert racks.fetched(request) == (NONE, ["m0"], 1)


def test_a_consumer_waiting_at_a_follower_is_answered_on_a_new_leader() -> None:
    racks = Racks(release="3.9")
    racks.follow(epoch=2)
    request = racks.consume(epoch=2)
    racks.follow(leader=2, epoch=3)
    assert racks.fetched(request)[0] == errors.FENCED_LEADER_EPOCH


def test_a_deleted_replica_serves_no_consumer() -> None:
    racks = Racks(release="3.9")
    racks.follow()
    request = racks.consume(epoch=2)
    racks.manager._delete_replica(P)
    assert racks.fetched(request)[0] == errors.NOT_LEADER_FOR_PARTITION


# Answers to followers on a new high watermark (KAFKA-9731)


def answered_high_watermarks(racks: Racks) -> tuple[int | None, int | None]:
    """Return the high watermarks in the answers to two followers, after the second one's fetch."""
    racks.produce("m0", acks=1)
    first, second = racks.fetch(1, t_0=1), racks.fetch(2, t_0=1)
    answers = [racks.answer(request) for request in (first, second)]
    return tuple(None if answer is None else answer.hw for answer in answers)  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("release", "selector", "at_once"),
    [
        ("2.0", "none", False),
        ("2.4", "none", False),
        ("2.4", RACK_AWARE_SELECTOR, True),
        ("2.8", RACK_AWARE_SELECTOR, False),
    ],
)
def test_2_4_with_a_selector_answers_followers_when_the_high_watermark_moves(
    release: str, selector: str, at_once: bool
) -> None:
    racks = Racks(selector=selector, release=release)
    assert answered_high_watermarks(racks) == ((1, 1) if at_once else (None, None))


def test_2_4_1_answers_them_without_a_selector_too() -> None:
    racks = Racks(selector="none", hw_advance_completes_follower_fetches="always")
    assert answered_high_watermarks(racks) == (1, 1)
    # The first fetch is answered at once, because it confirms the last answer. Later ones wait.
    again = racks.answer(racks.fetch(1, t_0=1))
    assert again is not None
    assert again.hw == 1
    assert racks.answer(racks.fetch(1, t_0=1)) is None
