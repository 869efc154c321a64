"""The invariants of groups: held through all that may happen, and broken by what must not."""

import pytest

from harrow.cluster_model.events import (
    BrokerStopped,
    GroupStateChanged,
    MemberReconciled,
    OffsetsCommitted,
)
from harrow.cluster_model.invariants.catalogue import ONE_OWNER_PER_PARTITION
from tests.cluster_model.invariants.watched_cluster import Watched


@pytest.fixture
def watched() -> Watched:
    return Watched([ONE_OWNER_PER_PARTITION])


def owns(
    watched: Watched,
    member: str,
    epoch: int,
    *assigned: str,
    revoking: tuple[str, ...] = (),
    broker: int = 0,
    group: str = "g",
) -> None:
    watched.emit(MemberReconciled, broker, group, member, epoch, "STABLE", assigned, revoking)


class TestOneOwnerPerPartition:
    def test_who_has_given_up_owns_nothing(self, watched: Watched) -> None:
        owns(watched, "a", 1, "t-0", "t-1")
        owns(watched, "a", 1, "t-0", revoking=("t-1",))
        owns(watched, "a", 2, "t-0")
        owns(watched, "b", 2, "t-1")
        owns(watched, "a", -1)
        owns(watched, "b", 3, "t-0", "t-1")
        assert watched.broken == []

    def test_a_partition_that_is_still_to_be_given_up_is_owned(self, watched: Watched) -> None:
        owns(watched, "a", 1, revoking=("t-1",))
        owns(watched, "b", 2, "t-1")
        assert watched.broken == [(ONE_OWNER_PER_PARTITION, 0, "t-1", 2, -1)]

    def test_groups_and_coordinators_have_nothing_to_do_with_one_another(self, watched: Watched) -> None:
        owns(watched, "a", 1, "t-0")
        owns(watched, "b", 1, "t-0", group="h")
        owns(watched, "c", 1, "t-0", broker=1)
        assert watched.broken == []

    def test_a_coordinator_that_is_elected_again_begins_with_what_it_reads(self, watched: Watched) -> None:
        owns(watched, "a", 1, "t-0")
        watched.emit(GroupStateChanged, 0, "g", "Dead", 1, (), "another broker coordinates it")
        owns(watched, "b", 2, "t-0")
        watched.emit(BrokerStopped, 0, "process")
        owns(watched, "a", 3, "t-0")
        assert watched.broken == []


class TestCommitsOfPresentGeneration:
    def test_a_coordinator_takes_a_commit_of_a_member_that_has_missed_a_rebalance(self) -> None:
        watched = Watched()
        watched.emit(OffsetsCommitted, 1, "g", "one", 3, 5, (("t-0", 17), ("t-1", 4)))
        assert watched.broken == [("commits-of-present-generation", 1, "t-0", 5, 17)]
        assert watched.details == ["one of group g committed in generation 3, when the group was in 5"]

    @pytest.mark.parametrize(
        ("member", "generation"), [("one", 5), ("", -1)], ids=["of the generation", "of a transaction"]
    )
    def test_who_is_of_the_present_generation_or_of_none_may_commit(
        self, member: str, generation: int
    ) -> None:
        watched = Watched()
        watched.emit(OffsetsCommitted, 1, "g", member, generation, 5, (("t-0", 17),))
        assert watched.broken == []
