"""The invariants of controllers: each reports its breaches, and nothing else."""

import pytest

from harrow.cluster_model.controller.control_plane import TOPIC_CREATION
from harrow.cluster_model.events import (
    BrokerChangeProcessed,
    BrokerRegistered,
    BrokerStopped,
    CleanShutdownNoted,
    CommittedMetadataCut,
    ControllerElected,
    ControlRequestObeyed,
    FailoverCompleted,
    IsrWritten,
    LeaderElected,
    LeaderEpochTaken,
    MetadataSnapshotDiffers,
    PartitionStateWritten,
    RegistrationLearned,
)
from harrow.cluster_model.protocol import LeaderAndIsr
from tests.cluster_model.invariants.watched_cluster import PARTITION, WatchedCluster


def state(leader_epoch: int, isr: tuple[int, ...] = (0, 1)) -> LeaderAndIsr:
    return LeaderAndIsr(0, leader_epoch, isr, 0)


@pytest.fixture
def watched() -> WatchedCluster:
    """Three registered brokers."""
    watched = WatchedCluster()
    for broker in range(3):
        watched.emit(RegistrationLearned, broker, 1)
    return watched


class TestControllerEpochMonotonic:
    def test_obeying_a_replaced_controller_breaks_it(self, watched: WatchedCluster) -> None:
        watched.emit(ControlRequestObeyed, 1, "LeaderAndIsr", 4)
        watched.emit(ControlRequestObeyed, 1, "UpdateMetadata", 3)
        assert watched.broken == [("controller-epoch-monotonic", 1, "", 3, -1)]
        assert watched.details == ["it obeyed UpdateMetadata of controller epoch 3 after one of 4"]

    def test_another_broker_may_still_obey_the_older_controller(self, watched: WatchedCluster) -> None:
        watched.emit(ControlRequestObeyed, 1, "LeaderAndIsr", 4)
        watched.emit(ControlRequestObeyed, 2, "LeaderAndIsr", 3)
        watched.emit(ControlRequestObeyed, 2, "LeaderAndIsr", 4)
        watched.emit(ControlRequestObeyed, 2, "StopReplica", 4)
        assert watched.broken == []

    def test_a_restarted_broker_may_obey_an_older_controller(self, watched: WatchedCluster) -> None:
        watched.emit(ControlRequestObeyed, 1, "LeaderAndIsr", 4)
        watched.stop(1)
        watched.emit(RegistrationLearned, 1, 1)
        watched.emit(ControlRequestObeyed, 1, "LeaderAndIsr", 3)
        assert watched.broken == []


class TestLeaderEpochMonotonic:
    def test_a_falling_leader_epoch_breaks_it(self, watched: WatchedCluster) -> None:
        for epoch in (1, 1, 4, 3):
            watched.emit(LeaderEpochTaken, 1, PARTITION, epoch)
        assert watched.broken == [("leader-epoch-monotonic", 1, PARTITION, 3, -1)]
        assert watched.details == ["its leader epoch fell from 4 to 3"]

    def test_each_replica_has_its_own_leader_epoch(self, watched: WatchedCluster) -> None:
        watched.emit(LeaderEpochTaken, 1, PARTITION, 4)
        watched.emit(LeaderEpochTaken, 1, "t-1", 2)
        watched.emit(LeaderEpochTaken, 2, PARTITION, 3)
        assert watched.broken == []

    def test_a_restarted_broker_may_begin_with_an_older_leader_epoch(self, watched: WatchedCluster) -> None:
        watched.emit(LeaderEpochTaken, 1, PARTITION, 4)
        watched.stop(1)
        watched.emit(LeaderEpochTaken, 1, PARTITION, 3)
        assert watched.broken == []


class TestControllerWritesFenced:
    def test_an_election_by_a_replaced_controller_breaks_it(self, watched: WatchedCluster) -> None:
        watched.emit(PartitionStateWritten, 2, PARTITION, state(6), state(7), 3, 4)
        assert watched.broken == [("controller-writes-fenced", 2, PARTITION, 7, -1)]

    def test_the_current_controller_may_elect(self, watched: WatchedCluster) -> None:
        watched.emit(PartitionStateWritten, 2, PARTITION, state(6), state(7), 4, 4)
        assert watched.broken == []

    def test_a_leader_of_an_older_controller_may_write_its_isr(self, watched: WatchedCluster) -> None:
        watched.emit(PartitionStateWritten, 2, PARTITION, state(7), state(7, (0,)), 3, 4)
        assert watched.broken == []


class TestRegisteredBeforeControl:
    def test_obeying_before_the_registration_breaks_it(self, watched: WatchedCluster) -> None:
        watched.stop(1)
        watched.emit(ControlRequestObeyed, 1, "LeaderAndIsr", 4)
        assert watched.broken == [("registered-before-control", 1, "", 4, -1)]

    def test_a_broker_counts_as_registered_after_its_session_expires(self, watched: WatchedCluster) -> None:
        watched.emit(ControlRequestObeyed, 1, "LeaderAndIsr", 4)
        assert watched.broken == []


class TestRegistrationsKnown:
    def test_a_missed_restart_breaks_it(self, watched: WatchedCluster) -> None:
        watched.emit(BrokerChangeProcessed, 0, 4, {0: 10, 1: 25}, {0: 10, 1: 11})
        assert watched.broken == [("registrations-known", 1, "", 4, -1)]
        assert watched.details == ["it is registered with broker epoch 25, but controller 0 uses 11"]

    def test_a_missed_new_broker_breaks_it(self, watched: WatchedCluster) -> None:
        watched.emit(BrokerChangeProcessed, 0, 4, {0: 10, 1: 25}, {0: 10})
        assert watched.names() == ["registrations-known"]

    def test_current_registrations_do_not_break_it(self, watched: WatchedCluster) -> None:
        watched.emit(BrokerChangeProcessed, 0, 4, {0: 10, 1: 25}, {1: 25, 0: 10})
        assert watched.broken == []


class TestFailoverShrinksIsr:
    def test_a_dead_broker_in_an_isr_breaks_it(self, watched: WatchedCluster) -> None:
        watched.emit(FailoverCompleted, 0, 4, (1, 2), {PARTITION: LeaderAndIsr(0, 7, (0, 1), 9)})
        assert watched.broken == [("failover-shrinks-isr", 1, PARTITION, 7, -1)]

    def test_the_last_member_of_an_isr_may_stay(self, watched: WatchedCluster) -> None:
        watched.emit(FailoverCompleted, 0, 4, (1, 2), {PARTITION: LeaderAndIsr(-1, 7, (1,), 9)})
        assert watched.broken == []

    def test_live_members_may_stay(self, watched: WatchedCluster) -> None:
        watched.emit(FailoverCompleted, 0, 4, (2,), {PARTITION: LeaderAndIsr(0, 7, (0, 1), 9)})
        assert watched.broken == []

    def test_a_running_broker_without_a_session_may_join_during_the_failover(
        self, watched: WatchedCluster
    ) -> None:
        watched.emit(ControllerElected, 0, 4)
        watched.emit(PartitionStateWritten, 0, PARTITION, state(7, (0,)), state(7, (0, 1)), 3, 4)
        watched.emit(FailoverCompleted, 0, 4, (1, 2), {PARTITION: LeaderAndIsr(0, 7, (0, 1), 9)})
        assert watched.broken == []

    def test_a_dead_broker_that_joined_before_the_failover_must_leave(self, watched: WatchedCluster) -> None:
        watched.emit(PartitionStateWritten, 0, PARTITION, state(7, (0,)), state(7, (0, 1)), 3, 3)
        watched.emit(ControllerElected, 0, 4)
        watched.emit(FailoverCompleted, 0, 4, (1, 2), {PARTITION: LeaderAndIsr(0, 7, (0, 1), 9)})
        assert watched.names() == ["failover-shrinks-isr"]

    def test_a_controller_replaced_during_its_failover_is_exempt(self, watched: WatchedCluster) -> None:
        watched.emit(ControllerElected, 1, 5)
        watched.emit(FailoverCompleted, 0, 4, (1, 2), {PARTITION: LeaderAndIsr(0, 7, (0, 1), 9)})
        assert watched.broken == []


class TestUncleanReplicaNotElected:
    def elect(self, watched: WatchedCluster, broker: int, *, unclean: bool = False) -> None:
        watched.emit(LeaderElected, 3000, PARTITION, broker, 5, (broker,), unclean, "broker startup")

    def return_after(self, watched: WatchedCluster, broker: int, cause: str) -> None:
        watched.emit(BrokerStopped, broker, cause)
        watched.emit(RegistrationLearned, broker, 7)
        watched.emit(BrokerRegistered, broker, 7)

    @pytest.mark.parametrize("cause", ["process", "power_loss"])
    def test_electing_a_replica_back_from_an_unclean_stop_breaks_it(
        self, watched: WatchedCluster, cause: str
    ) -> None:
        self.return_after(watched, 1, cause)
        self.elect(watched, 1)
        assert watched.broken == [("unclean-replica-not-elected", 1, PARTITION, 5, -1)]

    def test_an_unclean_election_may_elect_a_replica_that_stopped_uncleanly(
        self, watched: WatchedCluster
    ) -> None:
        self.return_after(watched, 1, "power_loss")
        self.elect(watched, 1, unclean=True)
        self.elect(watched, 1)
        assert watched.broken == []

    def test_a_cleanly_stopped_replica_may_lead(self, watched: WatchedCluster) -> None:
        self.return_after(watched, 1, "shutdown")
        self.elect(watched, 1)
        assert watched.broken == []

    def test_a_replica_that_has_rejoined_the_isr_may_lead(self, watched: WatchedCluster) -> None:
        self.return_after(watched, 1, "power_loss")
        watched.elect(0, 0, (0, 2))
        watched.emit(IsrWritten, 0, PARTITION, 0, (0, 2, 1))
        self.elect(watched, 1)
        assert watched.broken == []

    def test_a_replica_that_joins_the_isr_while_a_reassignment_completes_may_lead(
        self, watched: WatchedCluster
    ) -> None:
        self.return_after(watched, 1, "process")
        watched.elect(0, 0, (0, 2))
        watched.emit(LeaderElected, 3000, PARTITION, 1, 5, (1, 2), False, "reassignment")
        assert watched.broken == []

    def test_a_replica_back_from_an_unclean_stop_may_lead_a_new_partition(
        self, watched: WatchedCluster
    ) -> None:
        self.return_after(watched, 1, "process")
        watched.emit(LeaderElected, 3000, "new-0", 1, 0, (1, 2), False, TOPIC_CREATION)
        assert watched.broken == []

    def test_a_reassignment_must_not_elect_a_replica_for_its_earlier_isr_membership(
        self, watched: WatchedCluster
    ) -> None:
        watched.elect(0, 0, (0, 1, 2))
        self.return_after(watched, 1, "process")
        watched.emit(LeaderElected, 3000, PARTITION, 1, 5, (1, 2), False, "reassignment")
        assert watched.broken == [("unclean-replica-not-elected", 1, PARTITION, 5, -1)]

    def test_a_replica_that_is_still_down_may_be_elected(self, watched: WatchedCluster) -> None:
        watched.emit(BrokerStopped, 1, "process")
        self.elect(watched, 1)
        assert watched.broken == []

    def test_a_late_heartbeat_may_unfence_a_broker_that_has_just_died(self, watched: WatchedCluster) -> None:
        watched.emit(RegistrationLearned, 1, 6)
        watched.emit(BrokerStopped, 1, "process")
        watched.emit(BrokerRegistered, 1, 6)
        self.elect(watched, 1)
        assert watched.broken == []

    def test_a_broker_killed_after_it_closed_its_logs_has_stopped_cleanly(
        self, watched: WatchedCluster
    ) -> None:
        watched.emit(RegistrationLearned, 1, 6)
        watched.emit(CleanShutdownNoted, 1)
        self.return_after(watched, 1, "process")
        self.elect(watched, 1)
        assert watched.broken == []

    def test_a_broker_that_dies_before_it_opens_its_logs_loses_nothing(self, watched: WatchedCluster) -> None:
        watched.emit(BrokerStopped, 1, "shutdown")
        watched.emit(BrokerStopped, 1, "process")
        watched.emit(RegistrationLearned, 1, 7)
        watched.emit(BrokerRegistered, 1, 7)
        self.elect(watched, 1)
        assert watched.broken == []


class TestCommittedMetadataKept:
    def test_truncating_committed_metadata_breaks_it(self, watched: WatchedCluster) -> None:
        watched.emit(CommittedMetadataCut, 3001, 17, 20)
        assert watched.broken == [("committed-metadata-kept", 3001, "", -1, -1)]
        assert watched.details == [
            "it lacks offset 17 of the metadata log, although everything below 20 was committed"
        ]


class TestMetadataSnapshotCommitted:
    def test_a_snapshot_that_differs_from_committed_records_or_exceeds_them_breaks_it(
        self, watched: WatchedCluster
    ) -> None:
        watched.emit(MetadataSnapshotDiffers, 3001, 20, 20)
        watched.emit(MetadataSnapshotDiffers, 1, 21, 20)
        assert watched.broken == [
            ("metadata-snapshot-committed", 3001, "", -1, -1),
            ("metadata-snapshot-committed", 1, "", -1, -1),
        ]
        assert watched.details == [
            "its metadata snapshot below 20 differs from the committed records",
            "its metadata snapshot below 21 differs from the committed records, which end at 20",
        ]
