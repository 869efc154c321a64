"""The invariants of groups: each reports its breaches, and nothing else."""

import pytest

from harrow.cluster_model.events import (
    BrokerStopped,
    GroupStateChanged,
    MemberReconciled,
    OffsetsCommitted,
)
from harrow.cluster_model.invariants.catalogue import ONE_OWNER_PER_PARTITION
from tests.cluster_model.invariants.watched_cluster import WatchedCluster


@pytest.fixture
def watched() -> WatchedCluster:
    return WatchedCluster([ONE_OWNER_PER_PARTITION])


def owns(
    watched: WatchedCluster,
    member: str,
    epoch: int,
    *assigned: str,
    revoking: tuple[str, ...] = (),
    broker: int = 0,
    group: str = "g",
) -> None:
    watched.emit(MemberReconciled, broker, group, member, epoch, "STABLE", assigned, revoking)


class TestOneOwnerPerPartition:
    def test_a_member_owns_nothing_after_its_revocation(self, watched: WatchedCluster) -> None:
        owns(watched, "a", 1, "t-0", "t-1")
        owns(watched, "a", 1, "t-0", revoking=("t-1",))
        owns(watched, "a", 2, "t-0")
        owns(watched, "b", 2, "t-1")
        owns(watched, "a", -1)
        owns(watched, "b", 3, "t-0", "t-1")
        assert watched.broken == []

    def test_a_partition_under_revocation_is_still_owned(self, watched: WatchedCluster) -> None:
        owns(watched, "a", 1, revoking=("t-1",))
        owns(watched, "b", 2, "t-1")
        assert watched.broken == [(ONE_OWNER_PER_PARTITION, 0, "t-1", 2, -1)]

    def test_groups_and_coordinators_are_independent(self, watched: WatchedCluster) -> None:
        owns(watched, "a", 1, "t-0")
        owns(watched, "b", 1, "t-0", group="h")
        owns(watched, "c", 1, "t-0", broker=1)
        assert watched.broken == []

    def test_a_reelected_coordinator_begins_with_the_state_that_it_loads(
        self, watched: WatchedCluster
    ) -> None:
        owns(watched, "a", 1, "t-0")
        watched.emit(GroupStateChanged, 0, "g", "Dead", 1, (), "another broker coordinates it")
        owns(watched, "b", 2, "t-0")
        watched.emit(BrokerStopped, 0, "process")
        owns(watched, "a", 3, "t-0")
        assert watched.broken == []


class TestCommitsOfPresentGeneration:
    def test_accepting_a_commit_of_an_earlier_generation_breaks_it(self) -> None:
        watched = WatchedCluster()
        watched.emit(OffsetsCommitted, 1, "g", "one", 3, 5, (("t-0", 17), ("t-1", 4)))
        assert watched.broken == [("commits-of-present-generation", 1, "t-0", 5, 17)]
        assert watched.details == ["one of group g committed in generation 3, when the group was in 5"]

    @pytest.mark.parametrize(
        ("member", "generation"), [("one", 5), ("", -1)], ids=["of the generation", "of a transaction"]
    )
    def test_members_of_the_current_generation_or_of_none_may_commit(
        self, member: str, generation: int
    ) -> None:
        watched = WatchedCluster()
        watched.emit(OffsetsCommitted, 1, "g", member, generation, 5, (("t-0", 17),))
        assert watched.broken == []
