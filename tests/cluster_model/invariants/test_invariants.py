"""Checking invariants: breaches are reported once, and disabled invariants never."""

import pytest

from harrow.cluster_model.events import (
    BecameFollower,
    BrokerChangeProcessed,
    BrokerRegistered,
    BrokerStopped,
    CheckpointWritten,
    CommittedMetadataCut,
    ControllerElected,
    ControlRequestObeyed,
    FailoverCompleted,
    LeaderElected,
    LeaderEpochTaken,
    MemberReconciled,
    MetadataSnapshotDiffers,
    OffsetsCommitted,
    PartitionStateWritten,
    RegistrationLearned,
)
from harrow.cluster_model.invariants.catalogue import INVARIANTS, SHOWN_BY_TRACE, Invariant
from harrow.cluster_model.log.disk import REPLICATION_OFFSET_CHECKPOINT
from harrow.cluster_model.protocol import LeaderAndIsr
from tests.cluster_model.fakes import batch
from tests.cluster_model.invariants.watched_cluster import PARTITION, Leader, WatchedCluster


@pytest.fixture
def watched() -> WatchedCluster:
    return WatchedCluster()


def test_a_sound_cluster_breaks_no_invariant(watched: WatchedCluster) -> None:
    watched.commit("a", "b", "c")
    watched.append(0, "d")
    watched.stop(0)
    watched.lead(1, 1, (1, 2))
    watched.commit("e", leader=1, epoch=1)
    watched.open(0)
    watched.emit(BecameFollower, 0, PARTITION, 1, 1)
    watched.truncate(0, 3)
    watched.fetch(1, 0)
    watched.change_isr(Leader(PARTITION, 1, 1, (1, 2, 0)))
    watched.set_hw(4, 0)
    assert watched.broken == []


def break_everything(watched: WatchedCluster) -> None:
    watched.append(1, "a", epoch=2)
    watched.append(1, "b", epoch=1)
    watched.append(2, "c", epoch=2)
    watched.set_hw(9, 0, 1, 2)
    watched.set_hw(1, 0)
    watched.leaders[0].min_insync_replicas, watched.leaders[0].isr = 2, (0,)
    watched.set_hw(2, 0)
    watched.copy(batch("d", producer_id=7, sequence=5).stored_at(2, 2), 1)
    watched.emit(CheckpointWritten, 1, REPLICATION_OFFSET_CHECKPOINT, ((PARTITION, 9),))
    watched.emit(ControllerElected, 0, 1)
    watched.emit(ControllerElected, 1, 1)
    watched.emit(ControlRequestObeyed, 2, "LeaderAndIsr", 2)
    watched.emit(ControlRequestObeyed, 2, "LeaderAndIsr", 1)
    watched.emit(LeaderEpochTaken, 0, PARTITION, 2)
    watched.emit(LeaderEpochTaken, 0, PARTITION, 1)
    before, state = LeaderAndIsr(0, 0, (0,), 1), LeaderAndIsr(0, 1, (0,), 2)
    watched.emit(PartitionStateWritten, 0, PARTITION, before, state, 1, 2)
    watched.emit(BrokerChangeProcessed, 0, 1, {1: 9}, {1: 8})
    watched.emit(FailoverCompleted, 0, 1, (2,), {PARTITION: LeaderAndIsr(0, 1, (0, 2), 3)})
    watched.emit(BrokerStopped, 1, "shutdown")
    watched.emit(RegistrationLearned, 0, 1)
    watched.emit(BrokerStopped, 0, "power_loss")
    watched.emit(BrokerRegistered, 0, 2)
    watched.emit(LeaderElected, 3000, PARTITION, 0, 3, (0,), False, "broker startup")
    watched.emit(CommittedMetadataCut, 3000, 1, 2)
    watched.emit(MetadataSnapshotDiffers, 3000, 1, 2)
    watched.emit(OffsetsCommitted, 0, "g", "one", 1, 2, ((PARTITION, 1),))
    watched.emit(MemberReconciled, 0, "g", "a", 1, "STABLE", (PARTITION,), ())
    watched.emit(MemberReconciled, 0, "g", "b", 2, "STABLE", (PARTITION,), ())


WATCHED = tuple(name for name in INVARIANTS if name not in SHOWN_BY_TRACE)


def test_all_invariants_can_break_at_once(watched: WatchedCluster) -> None:
    break_everything(watched)
    assert set(watched.names()) == set(WATCHED)


@pytest.mark.parametrize("name", WATCHED)
def test_one_invariant_can_be_checked_alone(name: str) -> None:
    watched = WatchedCluster([name])
    break_everything(watched)
    assert set(watched.names()) == {name}


@pytest.mark.parametrize("name", WATCHED)
def test_one_invariant_can_be_switched_off(name: str) -> None:
    watched = WatchedCluster([other for other in INVARIANTS if other != name])
    break_everything(watched)
    assert set(watched.names()) == set(WATCHED) - {name}


def test_without_invariants_nothing_is_checked() -> None:
    watched = WatchedCluster([])
    break_everything(watched)
    assert watched.broken == []


def test_a_broken_invariant_is_reported_once_per_leader_epoch(watched: WatchedCluster) -> None:
    for _ in range(3):
        watched.set_hw(1, 1)
    assert watched.broken == [("hw-within-log", 1, PARTITION, 0, 1)]
    watched.elect(0, 1, (0, 1, 2))
    watched.set_hw(1, 1)
    assert watched.broken == [("hw-within-log", 1, PARTITION, 0, 1), ("hw-within-log", 1, PARTITION, 1, 1)]


@pytest.mark.parametrize("invariant", INVARIANTS.values(), ids=INVARIANTS.keys())
def test_each_invariant_has_a_definition_and_a_source(invariant: Invariant) -> None:
    assert invariant.definition.endswith(".")
    assert invariant.source
