"""Throttled replicas (KIP-73): the leader's answers, the follower's fetches, and exemptions."""

from typing import Any

import pytest

from harrow.cluster_model.broker.replication_quota_manager import ReplicationQuotaManager
from harrow.cluster_model.protocol import (
    FetchedPartition,
    FetchRequest,
    FetchResponse,
    LeaderAndIsr,
    LeaderAndIsrPartitionState,
    OffsetsForLeaderEpochResponse,
    PartitionData,
)
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.settings import broker_config
from tests.cluster_model.broker.test_broker_life import BrokerHarness
from tests.cluster_model.broker.test_replica_fetcher import Follower
from tests.cluster_model.fakes import MS, SECOND, FakeClock, batch

KB = 1_000
P, Q = "t-0", "t-1"
LEADERS = "leader.replication.throttled"
FOLLOWERS = "follower.replication.throttled"


def manager(replicas: str, broker: int = 1, bound: int | None = None) -> ReplicationQuotaManager:
    behaviours = RELEASES["2.4"].behaviours.replication
    manager = ReplicationQuotaManager(broker, FakeClock(), broker_config("2.4", {}), behaviours)
    manager.mark_throttled("t", replicas)
    manager.bound = manager.bound if bound is None else bound
    return manager


@pytest.mark.parametrize(
    ("replicas", "throttled"),
    [("*", [P, Q]), ("0:1,1:2", [P]), ("0:2,1:1", [Q]), ("10:1", []), ("0:11", []), ("", [])],
)
def test_a_broker_throttles_the_partitions_that_the_topic_lists_for_it(
    replicas: str, throttled: list[str]
) -> None:
    quota = manager(replicas)
    assert [name for name in (P, Q, "other-0") if quota.is_throttled(name)] == throttled


def test_unthrottled_partitions_do_not_count() -> None:
    quota = manager("0:1", bound=KB)
    quota.record(Q, 50 * KB)
    assert not quota.is_exceeded
    quota.record(P, 2 * KB)
    assert quota.is_exceeded


class Leader(BrokerHarness):
    """Broker 1, leader of t-0 with 2 in the ISR and 3 outside, which sends 1 KB per second."""

    def __init__(self, **rates: Any) -> None:
        super().__init__(topic={f"{LEADERS}.replicas": "0:1"}, rates={f"{LEADERS}.rate": KB, **rates})

    def fetch(self, follower: int, offset: int, max_wait_us: int = 0) -> Any:
        self.host.responses.clear()
        self.send(FetchRequest(follower, max_wait_us, 1_000_000, {P: PartitionData(offset, 0)}))
        return self.answer

    @property
    def answer(self) -> Any:
        """Return the answer for the partition, None without one."""
        bodies = [
            response.body for response in self.host.responses if isinstance(response.body, FetchResponse)
        ]
        return bodies[-1].partitions.get(P) if bodies else None


def commit(leader: Leader, *sizes: int) -> None:
    """Append batches up to broker 2, so that broker 3 is behind the HW and stays out of the ISR."""
    partition = leader.broker.replicas.partitions[P]
    for number, size in enumerate(sizes):
        partition.append_as_leader(batch(f"m{number}", size=size), 1)
    leader.fetch(2, partition.log.log_end_offset)


def test_a_follower_outside_the_isr_gets_no_records_above_the_quota() -> None:
    leader = Leader()
    commit(leader, 3 * KB, KB, KB)
    assert len(leader.fetch(3, 0).batches) == 3
    commit(leader, KB)
    withheld = leader.fetch(3, 3)
    assert withheld.batches == ()
    assert leader.host.events_named("replica_throttled") == [(1, P, 3, 3)]
    leader.host.advance(5 * SECOND)
    assert len(leader.fetch(3, 3).batches) == 1


def test_a_follower_in_the_isr_gets_everything_and_counts() -> None:
    leader = Leader()
    commit(leader, 5 * KB)
    for _ in range(2):
        assert len(leader.fetch(2, 0).batches) == 1
    assert leader.fetch(3, 0).batches == ()


def test_a_withheld_fetch_waits_in_the_purgatory_despite_appends() -> None:
    leader = Leader()
    commit(leader, 3 * KB)
    assert len(leader.fetch(3, 0).batches) == 1
    commit(leader, KB)
    assert leader.fetch(3, 1, 500 * MS) is None
    leader.produce("more")
    withheld_fetch = leader.answer
    assert withheld_fetch is None
    leader.host.advance(500 * MS)
    assert leader.answer.batches == ()


def test_an_administrator_can_change_the_rate_of_a_running_broker() -> None:
    leader = Leader()
    commit(leader, 50 * KB, KB)
    leader.fetch(3, 0)
    assert leader.fetch(3, 1).batches == ()
    leader.broker.replicas.throttle_replication(None)
    assert len(leader.fetch(3, 1).batches) == 1
    leader.broker.replicas.throttle_replication(KB)
    assert leader.fetch(3, 1).batches == ()


class ThrottledFollower(Follower):
    """Broker 1, follower of t-0 and t-1 on broker 0, which fetches 1 KB per second of t-0."""

    def __init__(self) -> None:
        super().__init__("2.4")
        self.quota = self.fetcher.quota = ReplicationQuotaManager(
            1, self.host.clock, self.config, self.behaviours.replication
        )
        self.quota.mark_throttled("t", "0:1")
        self.quota.bound = KB

    def answer(self, **fetched: FetchedPartition) -> None:
        sent = self.host.take("Fetch")
        named = {name.replace("_", "-"): answer for name, answer in fetched.items()}
        sent.answer(FetchResponse(named, session_id=7))

    def session_change(self) -> tuple[list[str], list[str]]:
        """Return the partitions that the fetch in flight names and removes."""
        (sent,) = self.host.requests("Fetch")
        return list(sent.body.partitions), list(sent.body.forgotten)


def fetched_partition(value: str, at: int, hw: int, size: int) -> FetchedPartition:
    return FetchedPartition("NONE", hw, (batch(value, at=at, leader_epoch=0, size=size),))


def test_a_lagging_follower_omits_a_throttled_partition_from_its_fetches() -> None:
    follower = ThrottledFollower()
    for name in (P, Q):
        follower.fetcher.add(follower.replica(name))
    assert follower.session_change() == ([P], [])
    follower.answer(t_0=fetched_partition("m0", 0, 9, 5 * KB))
    assert follower.host.events_named("follower_throttled") == [(1, P, 0, 1)]
    assert follower.session_change() == ([Q], [P])
    follower.host.advance(5 * SECOND)
    follower.answer()
    assert follower.session_change() == ([P], [])


def test_a_follower_at_the_high_watermark_is_not_throttled() -> None:
    follower = ThrottledFollower()
    follower.fetcher.add(follower.replica(P))
    follower.answer(t_0=fetched_partition("m0", 0, 1, 50 * KB))
    assert follower.session_change() == ([P], [])
    assert not follower.host.events_named("follower_throttled")


def test_a_follower_with_only_throttled_partitions_retries_after_its_backoff() -> None:
    follower = ThrottledFollower()
    follower.fetcher.add(follower.replica(P))
    follower.answer(t_0=fetched_partition("m0", 0, 9, 2 * KB))
    assert follower.host.requests("Fetch") == []
    follower.host.advance(SECOND - 1)
    assert follower.host.requests("Fetch") == []
    follower.host.advance(2 * SECOND)
    assert follower.session_change() == ([P], [])


def test_in_a_new_leader_epoch_a_follower_counts_as_lagging_until_it_fetches() -> None:
    """Every release: ``PartitionFetchState.lag`` begins as None, ``fetcherLagStats`` is empty."""
    follower = ThrottledFollower()
    partition = follower.replica(P)
    follower.fetcher.add(partition)
    follower.answer(t_0=fetched_partition("m0", 0, 1, 50 * KB))
    follower.fetcher.remove(P)
    state = LeaderAndIsrPartitionState(1, LeaderAndIsr(0, 1, (0, 1), 1), (0, 1))
    partition.make_follower(state)
    follower.fetcher.add(partition)
    for sent in follower.host.requests("OffsetsForLeaderEpoch"):
        follower.host.sent.remove(sent)
        sent.answer(OffsetsForLeaderEpochResponse({P: ("NONE", 0, 1)}))
    assert follower.host.events_named("follower_throttled") == [(1, P, 0, 1)]
