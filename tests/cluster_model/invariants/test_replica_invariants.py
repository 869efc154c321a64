"""The invariants between replicas and controllers: each notices what breaks it, and nothing else."""

import pytest

from harrow.cluster_model.events import ControllerElected, LogStartRaised
from harrow.cluster_model.log.disk import REPLICATION_OFFSET_CHECKPOINT
from tests.cluster_model.invariants.watched_cluster import Leader, T, Watched


@pytest.fixture
def watched() -> Watched:
    return Watched()


class TestIsrHoldsCommitted:
    def test_a_member_has_not_what_its_leader_commits(self, watched: Watched) -> None:
        watched.append(0, "a")
        watched.fetch(0, 1)
        watched.raise_hw(1, 0)
        assert watched.broken == [("isr-holds-committed", 2, T, 0, 0)]

    def test_a_member_has_something_else(self, watched: Watched) -> None:
        watched.commit("a")
        watched.append(0, "b")
        watched.append(1, "B")
        watched.fetch(0, 2)
        watched.raise_hw(2, 0)
        assert watched.broken == [("isr-holds-committed", 1, T, 0, 1)]

    def test_who_is_not_in_the_isr_need_not_have_it(self, watched: Watched) -> None:
        watched.lead(0, 1, (0, 1))
        watched.append(0, "a", epoch=1)
        watched.fetch(0, 1)
        watched.raise_hw(1, 0)
        assert watched.broken == []

    def test_one_joins_without_it(self, watched: Watched) -> None:
        leader = watched.lead(0, 1, (0, 1))
        watched.append(0, "a", epoch=1)
        watched.fetch(0, 1)
        watched.raise_hw(1, 0)
        leader.isr = (0, 1, 2)
        watched.change_isr(leader)
        assert watched.broken == [("isr-holds-committed", 2, T, 1, 0)]

    def test_one_joins_with_something_else(self, watched: Watched) -> None:
        leader = watched.lead(0, 1, (0, 1))
        watched.append(0, "a", epoch=1)
        watched.fetch(0, 1)
        watched.append(2, "A", epoch=1)
        watched.raise_hw(1, 0)
        leader.isr = (0, 1, 2)
        watched.change_isr(leader)
        assert watched.broken == [("isr-holds-committed", 2, T, 1, 0)]

    def test_a_member_truncates_it(self, watched: Watched) -> None:
        watched.commit("a", "b")
        watched.truncate(1, 1)
        assert watched.broken == [("isr-holds-committed", 1, T, 0, 1)]

    def test_a_member_truncates_what_is_not_committed(self, watched: Watched) -> None:
        watched.commit("a")
        watched.append(0, "b")
        watched.fetch(0, 1)
        watched.truncate(1, 1)
        assert watched.broken == []

    def test_one_outside_the_isr_truncates_it(self, watched: Watched) -> None:
        watched.commit("a", "b")
        watched.elect(0, 1, (0, 2))
        watched.truncate(1, 1)
        assert watched.broken == []

    def test_a_member_comes_back_without_it(self, watched: Watched) -> None:
        watched.commit("a", "b")
        watched.restart(1, power_loss=True)
        assert watched.broken == [("isr-holds-committed", 1, T, 0, 0)]

    def test_a_member_that_is_down_has_it_on_its_disk(self, watched: Watched) -> None:
        watched.append(0, "a")
        watched.fetch(0, 1, 2)
        watched.stop(2)
        watched.raise_hw(1, 0, 1)
        watched.logs[2] = watched.open(2)
        assert watched.broken == []

    def test_an_unclean_election_breaks_it_once(self, watched: Watched) -> None:
        watched.commit("a")
        watched.lead(0, 1, (0,))
        watched.append(0, "b", epoch=1)
        watched.raise_hw(2, 0)
        watched.stop(0)
        watched.lead(1, 2, (1,))
        assert watched.broken == [("isr-holds-committed", 1, T, 2, 1)]
        # From now on what the new leader has is what counts.
        watched.append(1, "c", epoch=2)
        watched.fetch(1, 2)
        watched.raise_hw(2, 1)
        watched.change_isr(Leader(T, 1, 2, (1, 2)))
        assert len(watched.broken) == 1

    def test_what_a_leader_appends_after_its_power_loss_was_not_committed(self, watched: Watched) -> None:
        watched.commit("a")
        watched.elect(0, 2, (0, 1))
        watched.restart(0, power_loss=True)
        assert watched.broken == [("isr-holds-committed", 0, T, 2, 0)]
        # It obeys what the controller said before the last election, and takes a record.
        watched.append(0, "b", epoch=1)
        watched.lead(0, 2, (0, 1))
        watched.truncate(1, 0)
        assert len(watched.broken) == 1

    def test_a_leader_of_the_past_says_nothing_about_the_isr_of_today(self, watched: Watched) -> None:
        watched.commit("a")
        watched.lead(0, 1, (0,))
        past = Leader(T, 0, 1, (0,))
        watched.lead(1, 2, (1, 2))
        watched.append(0, "b", epoch=1)
        watched.raise_hw(2, 0)
        past.isr = (0, 1)
        watched.change_isr(past)
        assert watched.broken == []


class TestOneControllerPerEpoch:
    def test_two_have_the_same_epoch(self, watched: Watched) -> None:
        watched.emit(ControllerElected, 0, 1)
        watched.emit(ControllerElected, 1, 1)
        assert watched.broken == [("one-controller-per-epoch", 1, "", 1, -1)]

    def test_each_has_its_own(self, watched: Watched) -> None:
        for epoch, broker in enumerate((0, 1, 0)):
            watched.emit(ControllerElected, broker, epoch)
        assert watched.broken == []


class TestLogMatching:
    def diverge(self, watched: Watched) -> None:
        watched.append(1, "a")
        watched.append(2, "b")

    def test_two_commit_different_batches(self) -> None:
        watched = Watched(["log-matching"])
        self.diverge(watched)
        watched.raise_hw(1, 1)
        assert watched.broken == []
        watched.raise_hw(1, 2)
        assert watched.broken == [("log-matching", 2, T, 0, 0)]

    def test_the_first_difference_is_named(self) -> None:
        watched = Watched(["log-matching"])
        watched.commit("a", "b")
        self.diverge(watched)
        watched.raise_hw(3, 1, 2)
        assert watched.broken == [("log-matching", 2, T, 0, 2)]

    def test_above_the_smaller_high_watermark_they_may_differ(self) -> None:
        watched = Watched(["log-matching"])
        watched.commit("a")
        self.diverge(watched)
        watched.raise_hw(2, 1)
        assert watched.broken == []

    def test_what_was_deleted_may_stand_there_again_and_differ(self) -> None:
        watched = Watched(["log-matching", "isr-holds-committed"])
        self.diverge(watched)
        watched.emit(LogStartRaised, 1, T, 1, "DeleteRecords", 0)
        watched.append(1, "c")
        watched.append(2, "d")
        watched.raise_hw(1, 1, 2)
        assert watched.broken == []
        watched.raise_hw(2, 1, 2)
        assert watched.broken == [("log-matching", 2, T, 0, 1)]

    def test_one_that_is_down_is_not_compared(self) -> None:
        watched = Watched(["log-matching"])
        self.diverge(watched)
        watched.raise_hw(1, 1)
        watched.stop(1)
        watched.raise_hw(1, 2)
        assert watched.broken == []

    def test_one_comes_back_with_something_else(self) -> None:
        watched = Watched(["log-matching"])
        self.diverge(watched)
        watched.disks[1].write_checkpoint(REPLICATION_OFFSET_CHECKPOINT, {T: 1})
        watched.stop(1)
        watched.raise_hw(1, 2)
        watched.open(1)
        assert watched.broken == [("log-matching", 1, T, 0, 0)]

    def test_batches_made_twice_are_the_same_when_nothing_tells_them_apart(self) -> None:
        watched = Watched(["log-matching"])
        watched.append(1, "a")
        watched.append(2, "a")
        watched.raise_hw(1, 1, 2)
        assert watched.broken == []

    def test_the_leader_epoch_tells_them_apart(self) -> None:
        watched = Watched(["log-matching"])
        watched.append(1, "a", epoch=0)
        watched.append(2, "a", epoch=1)
        watched.raise_hw(1, 1, 2)
        assert watched.names() == ["log-matching"]


class TestHwWaitsForMinIsr:
    def led(self, isr: tuple[int, ...], min_isr: int) -> Watched:
        watched = Watched()
        leader = watched.lead(0, 1, isr)
        leader.min_insync_replicas = min_isr
        watched.append(0, "a", epoch=1)
        watched.fetch(0, 1, 2)
        return watched

    def test_it_rises_while_the_isr_is_too_small(self) -> None:
        watched = self.led((0,), 2)
        watched.raise_hw(1, 0)
        assert watched.names() == ["hw-waits-for-min-isr"]

    @pytest.mark.parametrize(("isr", "min_isr"), [((0, 1), 2), ((0, 1, 2), 5)])
    def test_it_rises_when_as_many_as_are_needed_or_all_are_in_the_isr(
        self, isr: tuple[int, ...], min_isr: int
    ) -> None:
        watched = self.led(isr, min_isr)
        watched.raise_hw(1, 0)
        assert watched.broken == []

    def test_a_follower_goes_by_its_leader(self) -> None:
        watched = self.led((0,), 2)
        watched.raise_hw(1, 1)
        assert watched.broken == []
