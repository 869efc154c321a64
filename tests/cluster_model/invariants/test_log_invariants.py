"""The invariants of a single replica: each reports its breaches, and nothing else."""

import pytest

from harrow.cluster_model.events import BecameFollower, BrokerStopped, CheckpointWritten, LogStartRaised
from harrow.cluster_model.log.disk import RECOVERY_POINT_OFFSET_CHECKPOINT, REPLICATION_OFFSET_CHECKPOINT
from harrow.cluster_model.log.record_batch import ABORT, COMMIT
from harrow.cluster_model.release.profiles import Behaviours
from tests.cluster_model.fakes import batch, control
from tests.cluster_model.invariants.watched_cluster import PARTITION, WatchedCluster


@pytest.fixture
def watched() -> WatchedCluster:
    return WatchedCluster()


class TestHwMonotonic:
    def test_a_leader_that_lowers_its_high_watermark_breaks_it(self, watched: WatchedCluster) -> None:
        watched.commit("a", "b")
        watched.set_hw(1, 0)
        assert watched.broken == [("hw-monotonic", 0, PARTITION, 0, 1)]

    def test_a_leader_that_truncates_below_its_high_watermark_breaks_it(self) -> None:
        watched = WatchedCluster(["hw-monotonic"])
        watched.commit("a", "b")
        watched.truncate(0, 1)
        assert watched.names() == ["hw-monotonic"]

    def test_a_follower_may_lower_its_high_watermark(self, watched: WatchedCluster) -> None:
        watched.commit("a", "b")
        watched.set_hw(1, 1)
        assert watched.broken == []

    def test_a_former_leader_may_lower_its_high_watermark(self, watched: WatchedCluster) -> None:
        watched.commit("a", "b")
        watched.lead(1, 1, (0, 1, 2))
        watched.emit(BecameFollower, 0, PARTITION, 1, 1)
        watched.set_hw(1, 0)
        assert watched.broken == []

    def test_a_restart_may_lower_the_high_watermark(self, watched: WatchedCluster) -> None:
        watched.commit("a", "b")
        watched.restart(0)
        watched.lead(0, 1, (0, 1, 2))
        assert watched.logs[0].high_watermark == 0
        assert watched.broken == []


class TestHwWithinLog:
    def test_a_high_watermark_above_the_leo_breaks_it(self, watched: WatchedCluster) -> None:
        watched.set_hw(1, 1)
        assert watched.broken == [("hw-within-log", 1, PARTITION, 0, 1)]
        assert watched.details == ["the high watermark is 1, but the LEO is 0"]

    def test_a_negative_high_watermark_breaks_it(self, watched: WatchedCluster) -> None:
        watched.set_hw(-1, 1)
        assert watched.names() == ["hw-within-log"]

    def test_a_truncation_that_leaves_the_high_watermark_above_the_leo_breaks_it(self) -> None:
        watched = WatchedCluster(["hw-within-log"])
        watched.commit("a", "b")
        watched.logs[1].truncate_to(1)
        watched.logs[1].high_watermark = 2
        watched.report_truncation(1)
        assert watched.names() == ["hw-within-log"]


class TestEpochCacheMonotonic:
    def test_a_batch_of_an_older_epoch_breaks_it(self, watched: WatchedCluster) -> None:
        watched.append(1, "a", epoch=2)
        watched.append(1, "b", epoch=1)
        assert watched.broken == [("epoch-cache-monotonic", 1, PARTITION, 0, 1)]

    @pytest.mark.parametrize(("log_start", "names"), [(2, []), (1, ["epoch-cache-monotonic"])])
    def test_a_batch_below_the_log_start_does_not_count(self, log_start: int, names: list[str]) -> None:
        watched = WatchedCluster(["epoch-cache-monotonic"])
        watched.append(1, "a", epoch=3)
        watched.append(1, "b", epoch=3)
        watched.set_hw(2, 1)
        watched.logs[1].increment_log_start_offset(log_start)
        watched.append(1, "c", epoch=0)
        assert watched.names() == names

    def test_an_entry_that_does_not_rise_breaks_it(self, watched: WatchedCluster) -> None:
        watched.append(1, "a", epoch=2)
        watched.logs[1].epochs.entries.append((2, 1))
        watched.report_truncation(1)
        assert watched.names() == ["epoch-cache-monotonic"]

    def test_an_entry_above_the_leo_breaks_it(self, watched: WatchedCluster) -> None:
        watched.logs[0].epochs.assign(0, 7)
        watched.lead(0, 1, (0, 1, 2))
        assert watched.names() == ["epoch-cache-monotonic"]

    def test_a_missing_entry_breaks_it(self, watched: WatchedCluster) -> None:
        watched.append(1, "a", epoch=1)
        watched.logs[1].epochs.entries.pop()
        watched.copy(batch("b").stored_at(1, 2), 1)
        watched.logs[1].epochs.entries[:] = [(1, 0)]
        watched.report_append(1)
        assert watched.names() == ["epoch-cache-monotonic"]

    def test_a_new_leader_may_start_its_epoch_at_the_leo(self, watched: WatchedCluster) -> None:
        watched.commit("a")
        watched.logs[1].epochs.assign(1, 1)
        watched.lead(1, 1, (0, 1, 2))
        assert watched.broken == []


class TestProducerStateMatchesLog:
    def send(
        self, watched: WatchedCluster, sequence: int, *values: str, producer_id: int = 7, epoch: int = 0
    ) -> None:
        sent = batch(*values, producer_id=producer_id, sequence=sequence, epoch=epoch)
        watched.copy(sent.stored_at(watched.logs[1].log_end_offset, 0), 1)

    def test_consecutive_batches_do_not_break_it(self, watched: WatchedCluster) -> None:
        for sequence in range(12):
            self.send(watched, 2 * sequence, "a", "b")
            self.send(watched, sequence, "c", producer_id=8)
        self.send(watched, 0, "d", epoch=1)
        watched.truncate(1, 20)
        watched.restart(1)
        assert watched.broken == []

    def test_a_truncation_within_a_batch_removes_all_of_it(self, watched: WatchedCluster) -> None:
        for sequence in range(3):
            self.send(watched, 2 * sequence, "a", "b")
        watched.truncate(1, 5)
        assert watched.logs[1].log_end_offset == 5
        assert watched.broken == []

    @pytest.mark.parametrize(("deleted_below", "names"), [(3, []), (2, ["producer-state-matches-log"])])
    def test_a_gap_below_the_leaders_log_start_is_allowed(
        self, watched: WatchedCluster, deleted_below: int, names: list[str]
    ) -> None:
        """The follower still has some batches that its leader has deleted, and lacks others."""
        for sequence in range(3):
            self.send(watched, 2 * sequence, "a", "b")
        watched.emit(LogStartRaised, 0, PARTITION, deleted_below, "retention.ms", 0)
        watched.truncate(1, 5)
        self.send(watched, 8, "c")
        assert watched.names() == names

    def test_control_batches_do_not_break_it(self, watched: WatchedCluster) -> None:
        for sequence, control_type in enumerate((COMMIT, ABORT)):
            self.send(watched, sequence, "a")
            watched.copy(control(control_type, producer_id=7).stored_at(watched.logs[1].log_end_offset, 0), 1)
            watched.copy(control(control_type, producer_id=8).stored_at(watched.logs[1].log_end_offset, 0), 1)
        watched.truncate(1, 5)
        watched.restart(1)
        assert watched.broken == []

    def test_a_gap_between_sequence_numbers_breaks_it(self, watched: WatchedCluster) -> None:
        self.send(watched, 0, "a", "b")
        self.send(watched, 3, "c")
        assert watched.broken == [("producer-state-matches-log", 1, PARTITION, 0, 2)]
        assert watched.details == ["producer id 7 has sequence number 3 after 1"]

    def test_a_producer_that_does_not_begin_at_zero_breaks_it(self, watched: WatchedCluster) -> None:
        self.send(watched, 3, "c")
        assert watched.names() == ["producer-state-matches-log"]

    def test_since_kip_360_an_unknown_producer_may_begin_anywhere(self) -> None:
        watched = WatchedCluster(
            behaviours=Behaviours().with_switches(unknown_producer_sequence_accepted=True)
        )
        for sequence in range(3, 12):
            self.send(watched, sequence, "a")
        self.send(watched, 0, "b", epoch=1)
        assert watched.broken == []

    def test_producer_state_is_retained_from_the_first_sequence_number(self) -> None:
        watched = WatchedCluster(
            behaviours=Behaviours().with_switches(
                unknown_producer_sequence_accepted=True, producer_batches_retained=1
            )
        )
        self.send(watched, 3, "a")
        assert watched.broken == []
        self.send(watched, 4, "b")
        assert watched.names() == ["producer-state-matches-log"]

    def test_gaps_are_invisible_with_one_retained_batch(self) -> None:
        watched = WatchedCluster(
            behaviours=Behaviours().with_switches(producer_batches_retained=1, idempotent_in_flight_max=1)
        )
        self.send(watched, 3, "c")
        self.send(watched, 8, "d")
        assert watched.broken == []

    def test_retaining_fewer_batches_than_may_be_in_flight_breaks_it(self) -> None:
        watched = WatchedCluster(behaviours=Behaviours().with_switches(producer_batches_retained=1))
        self.send(watched, 0, "a")
        assert watched.broken == []
        self.send(watched, 1, "b")
        assert watched.names() == ["producer-state-matches-log"]
        assert watched.details == [
            "the state of producer id 7, which may have 5 requests in flight, has nothing below sequence number 1"
        ]

    def test_without_producer_state_nothing_can_break_it(self) -> None:
        watched = WatchedCluster(behaviours=Behaviours().with_switches(producer_batches_retained=0))
        self.send(watched, 3, "c")
        watched.restart(1)
        assert watched.broken == []

    def test_a_batch_missing_from_the_state_breaks_it(self, watched: WatchedCluster) -> None:
        self.send(watched, 0, "a")
        watched.logs[1].producers.entries.clear()
        watched.report_append(1)
        assert watched.names() == ["producer-state-matches-log"]

    def test_a_state_with_a_different_offset_breaks_it(self, watched: WatchedCluster) -> None:
        self.send(watched, 0, "a")
        watched.logs[1].producers.entries[7].batches[-1] = (0, 0, 5)
        watched.report_append(1)
        assert watched.names() == ["producer-state-matches-log"]

    @pytest.mark.parametrize("remaining", [0, 1, 2])
    def test_a_rebuilt_state_without_the_newest_batch_breaks_it(
        self, watched: WatchedCluster, remaining: int
    ) -> None:
        for sequence in range(4):
            self.send(watched, sequence, "a")
            self.send(watched, sequence, "b", producer_id=8)
        watched.truncate(1, 2 * remaining + 2)
        assert watched.broken == []
        watched.logs[1].producers.entries[7].batches.pop()
        watched.report_truncation(1)
        # Without any batch the state cannot be wrong.
        assert watched.names() == ["producer-state-matches-log"] * (remaining > 0)

    @pytest.mark.parametrize(
        "state",
        [
            [(0, 0, 0), (2, 2, 4), (3, 3, 6)],  # one in between is missing
            [(1, 1, 2), (0, 0, 0), (2, 2, 4), (3, 3, 6)],  # a different order
            [(0, 0, 0), (1, 1, 2), (2, 3, 4), (3, 3, 6)],  # different sequence numbers
            [(0, 0, 0), (1, 1, 3), (2, 2, 4), (3, 3, 6)],  # the offset of another producer's batch
            [(0, 0, 0), (1, 1, 2), (2, 2, 4), (3, 3, 8)],  # an offset without a batch
        ],
    )
    def test_a_rebuilt_state_with_different_batches_breaks_it(
        self, watched: WatchedCluster, state: list[tuple[int, int, int]]
    ) -> None:
        for sequence in range(4):
            self.send(watched, sequence, "a")
            self.send(watched, sequence, "b", producer_id=8)
        retained = watched.logs[1].producers.entries[7].batches
        assert list(retained) == [(0, 0, 0), (1, 1, 2), (2, 2, 4), (3, 3, 6)]
        watched.report_truncation(1)
        assert watched.broken == []
        retained.clear()
        retained.extend(state)
        watched.report_truncation(1)
        assert watched.names() == ["producer-state-matches-log"]

    def test_a_state_that_outlives_a_truncation_breaks_it(self, watched: WatchedCluster) -> None:
        for sequence in range(3):
            self.send(watched, sequence, "a")
        entry = watched.logs[1].producers.entries[7]
        watched.logs[1].truncate_to(1)
        watched.logs[1].producers.entries[7] = entry
        watched.report_truncation(1)
        assert watched.names() == ["producer-state-matches-log"]


class TestCheckpointWithinLog:
    @pytest.mark.parametrize(
        ("kind", "offset", "broken"),
        [
            (REPLICATION_OFFSET_CHECKPOINT, 2, False),
            (REPLICATION_OFFSET_CHECKPOINT, 3, True),
            (RECOVERY_POINT_OFFSET_CHECKPOINT, 1, False),
            (RECOVERY_POINT_OFFSET_CHECKPOINT, 2, True),
        ],
    )
    def test_a_checkpoint_beyond_the_log_or_the_flushed_offset_breaks_it(
        self, watched: WatchedCluster, kind: str, offset: int, broken: bool
    ) -> None:
        watched.append(1, "a")
        watched.logs[1].flush()
        watched.append(1, "b")
        watched.emit(CheckpointWritten, 1, kind, ((PARTITION, offset),))
        assert watched.names() == ["checkpoint-within-log"] * broken

    def test_a_log_opened_without_its_flushed_records_breaks_it(self, watched: WatchedCluster) -> None:
        watched.append(1, "a")
        watched.disks[1].write_checkpoint(RECOVERY_POINT_OFFSET_CHECKPOINT, {PARTITION: 2})
        watched.restart(1)
        assert watched.broken == [("checkpoint-within-log", 1, PARTITION, 0, 2)]

    @pytest.mark.parametrize("through_log", [True, False])
    def test_a_log_truncated_into_a_hole_may_end_above_its_last_batch(
        self, watched: WatchedCluster, *, through_log: bool
    ) -> None:
        for value in ("a", "b", "c"):
            watched.append(1, value)
        file = watched.disks[1].log_file(PARTITION)
        file.compacts = True
        file.replace_segments(0, 1, file.batches[2:])
        watched.logs[1].flush()
        if through_log:
            watched.truncate(1, 2)
            assert file.log_end_offset == 2
        else:
            file.truncate_to(2)
        watched.disks[1].write_checkpoint(RECOVERY_POINT_OFFSET_CHECKPOINT, {PARTITION: 2})
        watched.restart(1)
        assert watched.logs[1].log_end_offset == 0
        assert watched.names() == ["checkpoint-within-log"] * (not through_log)

    def test_a_log_truncated_within_a_batch_may_have_its_recovery_point_above_its_batches(
        self, watched: WatchedCluster
    ) -> None:
        watched.append(1, "a")
        watched.append(1, "b", "c")
        watched.logs[1].flush()
        watched.truncate(1, 2)
        watched.disks[1].write_checkpoint(RECOVERY_POINT_OFFSET_CHECKPOINT, {PARTITION: 2})
        watched.restart(1, power_loss=True)
        assert watched.logs[1].log_end_offset == 1
        assert watched.broken == []
        # A recovery point within the batches ends the exception.
        watched.emit(CheckpointWritten, 1, RECOVERY_POINT_OFFSET_CHECKPOINT, ((PARTITION, 1),))
        watched.restart(1, power_loss=True)
        assert watched.names() == ["checkpoint-within-log"]

    def test_a_log_truncated_on_an_unwritable_disk_may_keep_its_recovery_point(
        self, watched: WatchedCluster
    ) -> None:
        for value in ("a", "b"):
            watched.append(1, value)
        watched.logs[1].flush()
        disk = watched.disks[1]
        disk.write_checkpoint(RECOVERY_POINT_OFFSET_CHECKPOINT, {PARTITION: 2})
        disk.limit_room(disk.place(PARTITION), 0)
        watched.truncate(1, 1)
        disk.repair()
        watched.restart(1)
        assert watched.broken == []
        # A new recovery point ends the exception.
        watched.emit(CheckpointWritten, 1, RECOVERY_POINT_OFFSET_CHECKPOINT, ((PARTITION, 1),))
        watched.restart(1)
        assert watched.names() == ["checkpoint-within-log"]

    def test_a_high_watermark_may_be_above_the_log_after_a_power_loss(self) -> None:
        watched = WatchedCluster(["checkpoint-within-log", "hw-within-log"])
        watched.commit("a")
        watched.disks[1].write_checkpoint(REPLICATION_OFFSET_CHECKPOINT, {PARTITION: 1})
        watched.restart(1, power_loss=True)
        assert watched.logs[1].high_watermark == 0
        assert watched.broken == []


class TestShutdownFlushesLogs:
    @pytest.mark.parametrize(
        ("flushed", "recovery_point", "cause", "broken"),
        [
            (2, 2, "shutdown", False),
            (1, 1, "shutdown", True),
            (2, 1, "shutdown", True),
            (1, 1, "process", False),
            (1, 1, "power_loss", False),
        ],
    )
    def test_a_clean_shutdown_that_leaves_unflushed_records_breaks_it(
        self, watched: WatchedCluster, flushed: int, recovery_point: int, cause: str, broken: bool
    ) -> None:
        for value in ("a", "b"):
            watched.append(1, value)
        watched.disks[1].log_file(PARTITION).flushed_offset = flushed
        watched.disks[1].write_checkpoint(RECOVERY_POINT_OFFSET_CHECKPOINT, {PARTITION: recovery_point})
        watched.emit(BrokerStopped, 1, cause)
        assert watched.broken == [("shutdown-flushes-logs", 1, PARTITION, 0, 1)] * broken
