"""The invariants of control: each notices who obeys, writes or knows what it should not, and nothing else."""

import pytest

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
from tests.cluster_model.invariants.watched_cluster import T, Watched


def state(leader_epoch: int, isr: tuple[int, ...] = (0, 1)) -> LeaderAndIsr:
    return LeaderAndIsr(0, leader_epoch, isr, 0)


@pytest.fixture
def watched() -> Watched:
    """Three brokers that have registered."""
    watched = Watched()
    for broker in range(3):
        watched.emit(RegistrationLearned, broker, 1)
    return watched


class TestControllerEpochMonotonic:
    def test_a_broker_obeys_one_that_has_been_succeeded(self, watched: Watched) -> None:
        watched.emit(ControlRequestObeyed, 1, "LeaderAndIsr", 4)
        watched.emit(ControlRequestObeyed, 1, "UpdateMetadata", 3)
        assert watched.broken == [("controller-epoch-monotonic", 1, "", 3, -1)]
        assert watched.details == ["it obeyed UpdateMetadata of controller epoch 3 after one of 4"]

    def test_other_brokers_may_not_have_heard_yet(self, watched: Watched) -> None:
        watched.emit(ControlRequestObeyed, 1, "LeaderAndIsr", 4)
        watched.emit(ControlRequestObeyed, 2, "LeaderAndIsr", 3)
        watched.emit(ControlRequestObeyed, 2, "LeaderAndIsr", 4)
        watched.emit(ControlRequestObeyed, 2, "StopReplica", 4)
        assert watched.broken == []

    def test_a_new_life_knows_no_controller(self, watched: Watched) -> None:
        watched.emit(ControlRequestObeyed, 1, "LeaderAndIsr", 4)
        watched.stop(1)
        watched.emit(RegistrationLearned, 1, 1)
        watched.emit(ControlRequestObeyed, 1, "LeaderAndIsr", 3)
        assert watched.broken == []


class TestLeaderEpochMonotonic:
    def test_it_goes_back(self, watched: Watched) -> None:
        for epoch in (1, 1, 4, 3):
            watched.emit(LeaderEpochTaken, 1, T, epoch)
        assert watched.broken == [("leader-epoch-monotonic", 1, T, 3, -1)]
        assert watched.details == ["its leader epoch fell from 4 to 3"]

    def test_other_replicas_have_their_own(self, watched: Watched) -> None:
        watched.emit(LeaderEpochTaken, 1, T, 4)
        watched.emit(LeaderEpochTaken, 1, "t-1", 2)
        watched.emit(LeaderEpochTaken, 2, T, 3)
        assert watched.broken == []

    def test_a_new_life_begins_anew(self, watched: Watched) -> None:
        watched.emit(LeaderEpochTaken, 1, T, 4)
        watched.stop(1)
        watched.emit(LeaderEpochTaken, 1, T, 3)
        assert watched.broken == []


class TestControllerWritesFenced:
    def test_one_that_has_been_succeeded_elects(self, watched: Watched) -> None:
        watched.emit(PartitionStateWritten, 2, T, state(6), state(7), 3, 4)
        assert watched.broken == [("controller-writes-fenced", 2, T, 7, -1)]

    def test_the_present_one_elects(self, watched: Watched) -> None:
        watched.emit(PartitionStateWritten, 2, T, state(6), state(7), 4, 4)
        assert watched.broken == []

    def test_a_leader_of_an_older_controller_writes_its_isr(self, watched: Watched) -> None:
        watched.emit(PartitionStateWritten, 2, T, state(7), state(7, (0,)), 3, 4)
        assert watched.broken == []


class TestRegisteredBeforeControl:
    def test_a_broker_obeys_before_it_has_registered(self, watched: Watched) -> None:
        watched.stop(1)
        watched.emit(ControlRequestObeyed, 1, "LeaderAndIsr", 4)
        assert watched.broken == [("registered-before-control", 1, "", 4, -1)]

    def test_a_session_that_expires_takes_nothing_back(self, watched: Watched) -> None:
        watched.emit(ControlRequestObeyed, 1, "LeaderAndIsr", 4)
        assert watched.broken == []


class TestRegistrationsKnown:
    def test_a_bounce_goes_unnoticed(self, watched: Watched) -> None:
        watched.emit(BrokerChangeProcessed, 0, 4, {0: 10, 1: 25}, {0: 10, 1: 11})
        assert watched.broken == [("registrations-known", 1, "", 4, -1)]
        assert watched.details == ["it is registered with broker epoch 25, but controller 0 uses 11"]

    def test_a_new_broker_goes_unnoticed(self, watched: Watched) -> None:
        watched.emit(BrokerChangeProcessed, 0, 4, {0: 10, 1: 25}, {0: 10})
        assert watched.names() == ["registrations-known"]

    def test_all_are_known(self, watched: Watched) -> None:
        watched.emit(BrokerChangeProcessed, 0, 4, {0: 10, 1: 25}, {1: 25, 0: 10})
        assert watched.broken == []


class TestFailoverShrinksIsr:
    def test_a_dead_broker_stays(self, watched: Watched) -> None:
        watched.emit(FailoverCompleted, 0, 4, (1, 2), {T: LeaderAndIsr(0, 7, (0, 1), 9)})
        assert watched.broken == [("failover-shrinks-isr", 1, T, 7, -1)]

    def test_the_last_member_stays(self, watched: Watched) -> None:
        watched.emit(FailoverCompleted, 0, 4, (1, 2), {T: LeaderAndIsr(-1, 7, (1,), 9)})
        assert watched.broken == []

    def test_the_living_stay(self, watched: Watched) -> None:
        watched.emit(FailoverCompleted, 0, 4, (2,), {T: LeaderAndIsr(0, 7, (0, 1), 9)})
        assert watched.broken == []

    def test_one_without_a_session_that_runs_may_join_meanwhile(self, watched: Watched) -> None:
        watched.emit(ControllerElected, 0, 4)
        watched.emit(PartitionStateWritten, 0, T, state(7, (0,)), state(7, (0, 1)), 3, 4)
        watched.emit(FailoverCompleted, 0, 4, (1, 2), {T: LeaderAndIsr(0, 7, (0, 1), 9)})
        assert watched.broken == []

    def test_one_that_had_joined_before_has_to_go(self, watched: Watched) -> None:
        watched.emit(PartitionStateWritten, 0, T, state(7, (0,)), state(7, (0, 1)), 3, 3)
        watched.emit(ControllerElected, 0, 4)
        watched.emit(FailoverCompleted, 0, 4, (1, 2), {T: LeaderAndIsr(0, 7, (0, 1), 9)})
        assert watched.names() == ["failover-shrinks-isr"]

    def test_one_that_has_been_succeeded_meanwhile_need_not_care(self, watched: Watched) -> None:
        watched.emit(ControllerElected, 1, 5)
        watched.emit(FailoverCompleted, 0, 4, (1, 2), {T: LeaderAndIsr(0, 7, (0, 1), 9)})
        assert watched.broken == []


class TestUncleanReplicaNotElected:
    def elect(self, watched: Watched, broker: int, *, unclean: bool = False) -> None:
        watched.emit(LeaderElected, 3000, T, broker, 5, (broker,), unclean, "broker startup")

    def back(self, watched: Watched, broker: int, cause: str) -> None:
        watched.emit(BrokerStopped, broker, cause)
        watched.emit(RegistrationLearned, broker, 7)
        watched.emit(BrokerRegistered, broker, 7)

    @pytest.mark.parametrize("cause", ["process", "power_loss"])
    def test_one_that_has_stopped_uncleanly_is_elected_when_it_is_back(
        self, watched: Watched, cause: str
    ) -> None:
        self.back(watched, 1, cause)
        self.elect(watched, 1)
        assert watched.broken == [("unclean-replica-not-elected", 1, T, 5, -1)]

    def test_an_unclean_election_may_take_it(self, watched: Watched) -> None:
        self.back(watched, 1, "power_loss")
        self.elect(watched, 1, unclean=True)
        self.elect(watched, 1)
        assert watched.broken == []

    def test_one_that_has_stopped_in_good_order_may_lead(self, watched: Watched) -> None:
        self.back(watched, 1, "shutdown")
        self.elect(watched, 1)
        assert watched.broken == []

    def test_one_that_has_joined_the_isr_again_may_lead(self, watched: Watched) -> None:
        self.back(watched, 1, "power_loss")
        watched.elect(0, 0, (0, 2))
        watched.emit(IsrWritten, 0, T, 0, (0, 2, 1))
        self.elect(watched, 1)
        assert watched.broken == []

    def test_one_that_joins_the_isr_with_the_change_that_completes_a_reassignment_may_lead(
        self, watched: Watched
    ) -> None:
        self.back(watched, 1, "process")
        watched.elect(0, 0, (0, 2))
        watched.emit(LeaderElected, 3000, T, 1, 5, (1, 2), False, "reassignment")
        assert watched.broken == []

    def test_a_reassignment_elects_nobody_for_what_it_had_before_it_stopped_uncleanly(
        self, watched: Watched
    ) -> None:
        watched.elect(0, 0, (0, 1, 2))
        self.back(watched, 1, "process")
        watched.emit(LeaderElected, 3000, T, 1, 5, (1, 2), False, "reassignment")
        assert watched.broken == [("unclean-replica-not-elected", 1, T, 5, -1)]

    def test_one_that_is_still_down_may_be_elected_by_a_controller_that_has_not_heard(
        self, watched: Watched
    ) -> None:
        watched.emit(BrokerStopped, 1, "process")
        self.elect(watched, 1)
        assert watched.broken == []

    def test_what_its_former_life_has_sent_may_unfence_one_that_has_just_died(self, watched: Watched) -> None:
        watched.emit(RegistrationLearned, 1, 6)
        watched.emit(BrokerStopped, 1, "process")
        watched.emit(BrokerRegistered, 1, 6)
        self.elect(watched, 1)
        assert watched.broken == []

    def test_one_that_is_killed_when_its_logs_are_closed_has_stopped_in_good_order(
        self, watched: Watched
    ) -> None:
        watched.emit(RegistrationLearned, 1, 6)
        watched.emit(CleanShutdownNoted, 1)
        self.back(watched, 1, "process")
        self.elect(watched, 1)
        assert watched.broken == []

    def test_one_that_dies_before_it_has_opened_its_logs_loses_nothing(self, watched: Watched) -> None:
        watched.emit(BrokerStopped, 1, "shutdown")
        watched.emit(BrokerStopped, 1, "process")
        watched.emit(RegistrationLearned, 1, 7)
        watched.emit(BrokerRegistered, 1, 7)
        self.elect(watched, 1)
        assert watched.broken == []


class TestCommittedMetadataKept:
    def test_a_node_cuts_off_what_is_committed(self, watched: Watched) -> None:
        watched.emit(CommittedMetadataCut, 3001, 17, 20)
        assert watched.broken == [("committed-metadata-kept", 3001, "", -1, -1)]
        assert watched.details == [
            "it lacks offset 17 of the metadata log, although everything below 20 was committed"
        ]


class TestMetadataSnapshotCommitted:
    def test_a_snapshot_says_otherwise_than_what_is_committed_or_goes_further(self, watched: Watched) -> None:
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
