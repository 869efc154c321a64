"""The invariants of groups: each notices who says what after it is over, and nothing else."""

import pytest

from harrow.cluster_model.events import OffsetsCommitted
from tests.cluster_model.invariants.watched_cluster import Watched


class TestCommitsOfPresentGeneration:
    def test_a_coordinator_takes_a_commit_of_a_member_that_has_missed_a_rebalance(self) -> None:
        watched = Watched()
        watched.emit(OffsetsCommitted, 1, "g", "one", 3, 5, (("t-0", 17), ("t-1", 4)))
        assert watched.broken == [("commits-of-present-generation", 1, "t-0", 5, 17)]
        assert watched.details == ["one of group g committed in generation 3, when it was in 5"]

    @pytest.mark.parametrize(
        ("member", "generation"), [("one", 5), ("", -1)], ids=["of the generation", "of a transaction"]
    )
    def test_who_is_of_the_present_generation_or_of_none_may_commit(
        self, member: str, generation: int
    ) -> None:
        watched = Watched()
        watched.emit(OffsetsCommitted, 1, "g", member, generation, 5, (("t-0", 17),))
        assert watched.broken == []
