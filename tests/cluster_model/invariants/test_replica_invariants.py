"""The invariants between replicas or controllers: each reports its breaches, and nothing else."""

from random import Random

import pytest

from harrow.cluster_model.events import ControllerElected, LogStartRaised
from harrow.cluster_model.invariants.watched_replica import first_difference
from harrow.cluster_model.log.disk import REPLICATION_OFFSET_CHECKPOINT, LogFile
from tests.cluster_model.fakes import batch
from tests.cluster_model.invariants.watched_cluster import PARTITION, Leader, WatchedCluster


@pytest.fixture
def watched() -> WatchedCluster:
    return WatchedCluster()


def _lead_beside_a_compacted_log(watched: WatchedCluster) -> Leader:
    """Commit three records with the ISR 0 and 2, and compact the first away on broker 1."""
    leader = watched.lead(0, 1, (0, 2))
    for value in ("a", "b", "c"):
        watched.append(0, value, epoch=1)
    watched.fetch(0, 1, 2)
    watched.set_hw(3, 0, 2)
    watched.compact(1, 0)
    return leader


class TestIsrHoldsCommitted:
    def test_a_member_without_a_committed_record_breaks_it(self, watched: WatchedCluster) -> None:
        watched.append(0, "a")
        watched.fetch(0, 1)
        watched.set_hw(1, 0)
        assert watched.broken == [("isr-holds-committed", 2, PARTITION, 0, 0)]

    def test_a_member_with_another_record_breaks_it(self, watched: WatchedCluster) -> None:
        watched.commit("a")
        watched.append(0, "b")
        watched.append(1, "B")
        watched.fetch(0, 2)
        watched.set_hw(2, 0)
        assert watched.broken == [("isr-holds-committed", 1, PARTITION, 0, 1)]

    def test_a_replica_outside_the_isr_may_lack_a_committed_record(self, watched: WatchedCluster) -> None:
        watched.lead(0, 1, (0, 1))
        watched.append(0, "a", epoch=1)
        watched.fetch(0, 1)
        watched.set_hw(1, 0)
        assert watched.broken == []

    def test_joining_the_isr_without_a_committed_record_breaks_it(self, watched: WatchedCluster) -> None:
        leader = watched.lead(0, 1, (0, 1))
        watched.append(0, "a", epoch=1)
        watched.fetch(0, 1)
        watched.set_hw(1, 0)
        leader.isr = (0, 1, 2)
        watched.change_isr(leader)
        assert watched.broken == [("isr-holds-committed", 2, PARTITION, 1, 0)]

    def test_joining_the_isr_with_another_record_breaks_it(self, watched: WatchedCluster) -> None:
        leader = watched.lead(0, 1, (0, 1))
        watched.append(0, "a", epoch=1)
        watched.fetch(0, 1)
        watched.append(2, "A", epoch=1)
        watched.set_hw(1, 0)
        leader.isr = (0, 1, 2)
        watched.change_isr(leader)
        assert watched.broken == [("isr-holds-committed", 2, PARTITION, 1, 0)]

    def test_a_member_that_truncates_a_committed_record_breaks_it(self, watched: WatchedCluster) -> None:
        watched.commit("a", "b")
        watched.truncate(1, 1)
        assert watched.broken == [("isr-holds-committed", 1, PARTITION, 0, 1)]

    def test_a_member_may_truncate_uncommitted_records(self, watched: WatchedCluster) -> None:
        watched.commit("a")
        watched.append(0, "b")
        watched.fetch(0, 1)
        watched.truncate(1, 1)
        assert watched.broken == []

    def test_a_replica_outside_the_isr_may_truncate_a_committed_record(self, watched: WatchedCluster) -> None:
        watched.commit("a", "b")
        watched.elect(0, 1, (0, 2))
        watched.truncate(1, 1)
        assert watched.broken == []

    def test_a_member_that_returns_without_a_committed_record_breaks_it(
        self, watched: WatchedCluster
    ) -> None:
        watched.commit("a", "b")
        watched.restart(1, power_loss=True)
        assert watched.broken == [("isr-holds-committed", 1, PARTITION, 0, 0)]

    def test_a_member_that_is_down_may_have_a_committed_record_on_disk(self, watched: WatchedCluster) -> None:
        watched.append(0, "a")
        watched.fetch(0, 1, 2)
        watched.stop(2)
        watched.set_hw(1, 0, 1)
        watched.logs[2] = watched.open(2)
        assert watched.broken == []

    def test_an_unclean_election_breaks_it_once(self, watched: WatchedCluster) -> None:
        watched.commit("a")
        watched.lead(0, 1, (0,))
        watched.append(0, "b", epoch=1)
        watched.set_hw(2, 0)
        watched.stop(0)
        watched.lead(1, 2, (1,))
        assert watched.broken == [("isr-holds-committed", 1, PARTITION, 2, 1)]
        # From this election on, the log of the new leader is the reference.
        watched.append(1, "c", epoch=2)
        watched.fetch(1, 2)
        watched.set_hw(2, 1)
        watched.change_isr(Leader(PARTITION, 1, 2, (1, 2)))
        assert len(watched.broken) == 1

    def test_the_log_of_a_new_leader_is_the_reference_before_it_commits(
        self, watched: WatchedCluster
    ) -> None:
        watched.commit("a")
        watched.lead(0, 1, (0,))
        watched.append(0, "b", epoch=1)
        watched.set_hw(2, 0)
        watched.stop(0)
        leader = watched.lead(1, 2, (1,))
        assert len(watched.broken) == 1
        watched.append(1, "c", epoch=2)
        watched.fetch(1, 2)
        leader.isr = (1, 2)
        watched.change_isr(leader)
        assert len(watched.broken) == 1

    def test_a_former_leader_that_loses_records_does_not_change_what_is_committed(
        self, watched: WatchedCluster
    ) -> None:
        watched.commit("a", "b")
        watched.lead(1, 1, (1, 2))
        watched.restart(0, power_loss=True)
        assert watched.broken == []
        watched.truncate(2, 1)
        assert watched.broken == [("isr-holds-committed", 2, PARTITION, 1, 1)]

    def test_records_appended_by_a_leader_after_a_power_loss_are_not_committed(
        self, watched: WatchedCluster
    ) -> None:
        watched.commit("a")
        watched.elect(0, 2, (0, 1))
        watched.restart(0, power_loss=True)
        assert watched.broken == [("isr-holds-committed", 0, PARTITION, 2, 0)]
        # The former leader obeys an earlier state, and accepts a record.
        watched.append(0, "b", epoch=1)
        watched.lead(0, 2, (0, 1))
        watched.truncate(1, 0)
        assert len(watched.broken) == 1

    def test_a_new_leader_may_have_compacted_its_log_before_its_election(
        self, watched: WatchedCluster
    ) -> None:
        watched.append(0, "a", "b")
        watched.append(0, "c")
        watched.fetch(0, 1, 2)
        watched.set_hw(2, 0)
        watched.elect(0, 1, (0, 1))
        watched.set_hw(3, 0)
        watched.stop(0)
        watched.compact(2, 0)
        watched.lead(2, 2, (2,))
        assert watched.broken == []

    def test_a_replica_may_compact_its_log_alone_and_join_the_isr_of_a_leader_that_does_not(
        self, watched: WatchedCluster
    ) -> None:
        leader = _lead_beside_a_compacted_log(watched)
        watched.restart(1)
        leader.isr = (0, 1, 2)
        watched.change_isr(leader)
        watched.set_hw(3, 1)
        assert watched.broken == []

    def test_a_compacted_log_must_reach_the_end_of_the_committed_records(
        self, watched: WatchedCluster
    ) -> None:
        leader = _lead_beside_a_compacted_log(watched)
        watched.truncate(1, 2)
        leader.isr = (0, 1, 2)
        watched.change_isr(leader)
        assert watched.broken == [("isr-holds-committed", 1, PARTITION, 1, 2)]

    def test_a_former_leader_does_not_define_the_current_isr(self, watched: WatchedCluster) -> None:
        watched.commit("a")
        watched.lead(0, 1, (0,))
        past = Leader(PARTITION, 0, 1, (0,))
        watched.lead(1, 2, (1, 2))
        watched.append(0, "b", epoch=1)
        watched.set_hw(2, 0)
        past.isr = (0, 1)
        watched.change_isr(past)
        assert watched.broken == []

    def test_a_replica_is_compared_again_with_a_leader_that_has_replaced_its_records(
        self, watched: WatchedCluster
    ) -> None:
        leader = watched.lead(0, 1, (0, 1))
        watched.append(0, "a", epoch=1)
        watched.fetch(0, 1, 2)
        watched.set_hw(1, 0)
        for leader.isr in ((0, 1, 2), (0, 1)):
            watched.change_isr(leader)
        watched.truncate(0, 0)
        watched.truncate(1, 0)
        watched.append(0, "b", epoch=1)
        watched.fetch(0, 1)
        watched.set_hw(1, 0)
        leader.isr = (0, 1, 2)
        watched.change_isr(leader)
        assert watched.broken[-1] == ("isr-holds-committed", 2, PARTITION, 1, 0)

    @pytest.mark.parametrize("seed", range(120))
    def test_the_same_breaches_are_reported_if_every_log_is_compared_from_its_beginning(
        self, seed: int
    ) -> None:
        names = ("isr-holds-committed", "log-matching")
        watched, forgetful = WatchedCluster(names), WatchedCluster(names)
        for step in range(1, 120):
            for cluster in (watched, forgetful):
                take_random_step(cluster, step, Random(f"{seed} {step}"))
            for replica in forgetful.monitor._partitions[PARTITION].replicas.values():
                replica.compared_end = 0
            assert watched.broken == forgetful.broken


def take_random_step(watched: WatchedCluster, step: int, random: Random) -> None:
    """Let something happen to some replica that may or may not keep it in step with the others."""
    broker, other = random.sample(range(3), 2)
    log, isr = watched.logs[broker], tuple(sorted({broker, other}))
    match random.choice(("append", "append", "fetch", "fetch", "commit", "lead", "join", "truncate", "lose")):
        case "append":
            watched.append(broker, *"ab"[: random.randint(1, 2)], epoch=step)
        case "fetch":
            watched.fetch(broker, other)
        case "commit":
            watched.set_hw(log.log_end_offset, broker)
        case "lead":
            watched.lead(broker, step, isr)
        case "join":
            watched.change_isr(Leader(PARTITION, broker, step, random.choice(((broker,), isr, (0, 1, 2)))))
        case "truncate":
            watched.truncate(broker, random.randint(max(log.log_end_offset - 3, 0), log.log_end_offset))
        case "lose":
            watched.disks[broker].log_file(PARTITION).flushed_offset = log.log_end_offset // 2
            watched.restart(broker, power_loss=True)


class TestOneControllerPerEpoch:
    def test_two_controllers_with_one_epoch_break_it(self, watched: WatchedCluster) -> None:
        watched.emit(ControllerElected, 0, 1)
        watched.emit(ControllerElected, 1, 1)
        assert watched.broken == [("one-controller-per-epoch", 1, "", 1, -1)]

    def test_controllers_with_their_own_epochs_do_not_break_it(self, watched: WatchedCluster) -> None:
        for epoch, broker in enumerate((0, 1, 0)):
            watched.emit(ControllerElected, broker, epoch)
        assert watched.broken == []


class TestLogMatching:
    def diverge(self, watched: WatchedCluster) -> None:
        watched.append(1, "a")
        watched.append(2, "b")

    def test_two_replicas_that_commit_different_batches_break_it(self) -> None:
        watched = WatchedCluster(["log-matching"])
        self.diverge(watched)
        watched.set_hw(1, 1)
        assert watched.broken == []
        watched.set_hw(1, 2)
        assert watched.broken == [("log-matching", 2, PARTITION, 0, 0)]

    def test_the_first_difference_is_reported(self) -> None:
        watched = WatchedCluster(["log-matching"])
        watched.commit("a", "b")
        self.diverge(watched)
        watched.set_hw(3, 1, 2)
        assert watched.broken == [("log-matching", 2, PARTITION, 0, 2)]

    def test_replicas_may_differ_above_the_smaller_high_watermark(self) -> None:
        watched = WatchedCluster(["log-matching"])
        watched.commit("a")
        self.diverge(watched)
        watched.set_hw(2, 1)
        assert watched.broken == []

    def test_deleted_offsets_may_hold_other_records_later(self) -> None:
        watched = WatchedCluster(["log-matching", "isr-holds-committed"])
        self.diverge(watched)
        watched.emit(LogStartRaised, 1, PARTITION, 1, "DeleteRecords", 0)
        watched.append(1, "c")
        watched.append(2, "d")
        watched.set_hw(1, 1, 2)
        assert watched.broken == []
        watched.set_hw(2, 1, 2)
        assert watched.broken == [("log-matching", 2, PARTITION, 0, 1)]

    def test_a_replica_that_is_down_is_not_compared(self) -> None:
        watched = WatchedCluster(["log-matching"])
        self.diverge(watched)
        watched.set_hw(1, 1)
        watched.stop(1)
        watched.set_hw(1, 2)
        assert watched.broken == []

    def test_a_replica_that_returns_with_other_batches_breaks_it(self) -> None:
        watched = WatchedCluster(["log-matching"])
        self.diverge(watched)
        watched.disks[1].write_checkpoint(REPLICATION_OFFSET_CHECKPOINT, {PARTITION: 1})
        watched.stop(1)
        watched.set_hw(1, 2)
        watched.open(1)
        assert watched.broken == [("log-matching", 1, PARTITION, 0, 0)]

    def test_two_equal_batches_match(self) -> None:
        watched = WatchedCluster(["log-matching"])
        watched.append(1, "a")
        watched.append(2, "a")
        watched.set_hw(1, 1, 2)
        assert watched.broken == []

    def test_batches_of_different_leader_epochs_do_not_match(self) -> None:
        watched = WatchedCluster(["log-matching"])
        watched.append(1, "a", epoch=0)
        watched.append(2, "a", epoch=1)
        watched.set_hw(1, 1, 2)
        assert watched.names() == ["log-matching"]


class TestHwWaitsForMinIsr:
    def cluster_with_leader(self, isr: tuple[int, ...], min_isr: int) -> WatchedCluster:
        watched = WatchedCluster()
        leader = watched.lead(0, 1, isr)
        leader.min_insync_replicas = min_isr
        watched.append(0, "a", epoch=1)
        watched.fetch(0, 1, 2)
        return watched

    def test_a_high_watermark_that_rises_with_too_small_an_isr_breaks_it(self) -> None:
        watched = self.cluster_with_leader((0,), 2)
        watched.set_hw(1, 0)
        assert watched.names() == ["hw-waits-for-min-isr"]

    @pytest.mark.parametrize(("isr", "min_isr"), [((0, 1), 2), ((0, 1, 2), 5)])
    def test_a_high_watermark_may_rise_with_enough_members_or_all_replicas(
        self, isr: tuple[int, ...], min_isr: int
    ) -> None:
        watched = self.cluster_with_leader(isr, min_isr)
        watched.set_hw(1, 0)
        assert watched.broken == []

    def test_a_follower_may_adopt_its_leaders_high_watermark(self) -> None:
        watched = self.cluster_with_leader((0,), 2)
        watched.set_hw(1, 1)
        assert watched.broken == []


@pytest.mark.parametrize("count", [1, 2, 8, 9, 20])
def test_the_first_difference_within_a_range_is_found_wherever_it_is(count: int) -> None:
    one = LogFile()
    for offset in range(count):
        one.append(batch(f"m{offset}").stored_at(offset, 0))
    for place in range(count):
        other = LogFile()
        for stored in one.batches:
            other.append(stored if stored.base_offset != place else batch("other").stored_at(place, 0))
        for start in range(count):
            for end in range(start, count + 1):
                expected = place if start <= place < end else None
                assert first_difference(one, other, start, end) == expected
