"""Reassignments of partitions (KIP-455) by ZooKeeper and KRaft controllers."""

from collections.abc import Iterator

import pytest

from harrow.cluster_model import errors
from harrow.cluster_model.cluster import Cluster
from harrow.cluster_model.events import (
    ControllerElected,
    ControllerResigned,
    E,
    LeaderElected,
    LogDeleted,
    MessageDelivered,
    ReplicasAssigned,
    RequestRejected,
)
from harrow.cluster_model.kraft.partition_change import (
    ElectedLeader,
    Election,
    LeaderRules,
    changed_partition,
    reassignment,
)
from harrow.cluster_model.kraft.records import PartitionRecord
from harrow.cluster_model.protocol import ReplicaAssignment
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.release.switch import version_of
from harrow.cluster_model.sim.choices import Choices
from harrow.cluster_model.topology import KRAFT, ZOOKEEPER, BrokerSpec, ClusterSpec, TopicSpec
from harrow.cluster_model.trace import select
from harrow.cluster_model.zookeeper.broker_lifecycle import ZkBrokerLifecycle
from harrow.cluster_model.zookeeper.control_plane import ZkControlPlane
from harrow.cluster_model.zookeeper.controller.controller_context import ControllerContext
from harrow.cluster_model.zookeeper.controller.kafka_controller import KafkaController
from harrow.cluster_model.zookeeper.service import protocol as zk

SECOND = 1_000_000
ON_ZOOKEEPER = ("2.4", ZOOKEEPER)
IN_KRAFT = ("4.3", KRAFT)
on_every_release = pytest.mark.parametrize(
    ("release", "metadata"),
    [
        (name, mode)
        for name, release in RELEASES.items()
        if version_of(name) >= (2, 4)
        for mode in release.modes
    ],
)
on_both_control_planes = pytest.mark.parametrize(("release", "metadata"), [ON_ZOOKEEPER, IN_KRAFT])


class Reassignment:
    """Brokers 0 to 4. Broker 4 starts first; t-0 is on 0, 1 and 2."""

    def __init__(self, release: str, metadata: str) -> None:
        spec = ClusterSpec(
            brokers=tuple(BrokerSpec(id=number) for number in range(5)),
            topics=(TopicSpec(name="t", assignment=((0, 1, 2),)),),
            controller=4,
            metadata=KRAFT if metadata == KRAFT else ZOOKEEPER,
        )
        self.cluster = Cluster(spec, release, RELEASES[release].behaviours, Choices.from_seed(0))
        self.cluster.start()

    def ask(self, *target: int) -> None:
        self.cluster.alter_partition_reassignment("t-0", target)

    def cancel(self) -> None:
        self.cluster.alter_partition_reassignment("t-0", None)

    def run(self, seconds: float = 2) -> None:
        self.cluster.simulator.run_until(self.cluster.simulator.now_us + int(seconds * SECOND))

    def assignment(self) -> ReplicaAssignment:
        assignment = self.cluster.assignment("t-0")
        assert assignment is not None
        return assignment

    def state(self) -> tuple[int, set[int]]:
        state = self.cluster.partition_state("t-0")
        assert state is not None
        return state.leader, set(state.isr)

    def brokers_with_log(self) -> set[int]:
        return {broker for broker, disk in self.cluster.disks.items() if "t-0" in disk.log_files}

    def refusals(self) -> list[str]:
        return [rejected.error for rejected in self.events(RequestRejected) if "Reassign" in rejected.api]

    def events(self, kind: type[E]) -> Iterator[E]:
        return iter(select(self.cluster.trace.events, kind))


@on_every_release
def test_new_replicas_join_before_old_ones_are_removed(release: str, metadata: str) -> None:
    reassignments = Reassignment(release, metadata)
    reassignments.ask(3, 4, 2)
    reassignments.run(10)
    assert reassignments.assignment() == ReplicaAssignment((3, 4, 2))
    assert reassignments.state() == (3, {2, 3, 4})
    assert reassignments.brokers_with_log() == {2, 3, 4}
    first, *_, last = reassignments.events(ReplicasAssigned)
    assert (set(first.replicas), set(first.adding), set(first.removing)) == ({0, 1, 2, 3, 4}, {3, 4}, {0, 1})
    assert (last.replicas, last.adding, last.removing) == ((3, 4, 2), (), ())
    assert all(deleted.at_us > first.at_us for deleted in reassignments.events(LogDeleted))


@on_every_release
def test_a_leader_that_stays_starts_a_new_epoch_without_removed_replicas(release: str, metadata: str) -> None:
    reassignments = Reassignment(release, metadata)
    reassignments.ask(0, 1)
    reassignments.run(10)
    assert reassignments.state() == (0, {0, 1})
    assert reassignments.brokers_with_log() == {0, 1}
    elected = list(reassignments.events(LeaderElected))[-1]
    assert (elected.leader, elected.reason) == (0, "reassignment")
    assert 2 not in reassignments.cluster.leader(0, "t-0").remote_replicas


@on_both_control_planes
def test_a_reassignment_waits_for_a_broker_that_is_down(release: str, metadata: str) -> None:
    reassignments = Reassignment(release, metadata)
    reassignments.ask(0, 1, 3)
    reassignments.cluster.crash_broker(3, power_loss=False)
    reassignments.run(30)
    assert reassignments.assignment().is_being_reassigned
    assert reassignments.brokers_with_log() >= {0, 1, 2}
    reassignments.cluster.start_broker(3)
    reassignments.run(30)
    assert reassignments.assignment() == ReplicaAssignment((0, 1, 3))
    assert reassignments.brokers_with_log() == {0, 1, 3}


@on_both_control_planes
def test_the_next_controller_completes_a_reassignment(release: str, metadata: str) -> None:
    reassignments = Reassignment(release, metadata)
    reassignments.cluster.crash_broker(3, power_loss=False)
    reassignments.run(30)
    if metadata == ZOOKEEPER:
        reassignments.cluster.start_broker(3)
        while not reassignments.cluster.is_registered(3):
            reassignments.run(0.1)
        reassignments.run(0.5)
    reassignments.ask(0, 1, 3)
    while not reassignments.assignment().is_being_reassigned:
        assert reassignments.cluster.simulator.step(reassignments.cluster.simulator.now_us + SECOND)
    controller = reassignments.cluster.controller()
    assert controller is not None
    reassignments.cluster.crash_broker(controller, power_loss=False)
    reassignments.cluster.start_broker(3)
    reassignments.run(40)
    assert reassignments.assignment() == ReplicaAssignment((0, 1, 3))
    assert reassignments.state()[1] == {0, 1, 3}


@on_both_control_planes
def test_a_cancelled_reassignment_leaves_nothing_behind(release: str, metadata: str) -> None:
    reassignments = Reassignment(release, metadata)
    reassignments.cluster.pause_broker(3)
    reassignments.ask(0, 1, 3)
    reassignments.run(2)
    reassignments.cancel()
    reassignments.run(2)
    reassignments.cluster.resume_broker(3)
    reassignments.run(30)
    assert reassignments.assignment() == ReplicaAssignment((0, 1, 2))
    assert reassignments.state() == (0, {0, 1, 2})
    assert reassignments.brokers_with_log() == {0, 1, 2}


@on_both_control_planes
def test_invalid_reassignments_are_refused(release: str, metadata: str) -> None:
    reassignments = Reassignment(release, metadata)
    for target in ((0, 9), (0, 0), ()):
        reassignments.ask(*target)
    reassignments.cancel()
    reassignments.run()
    assert reassignments.refusals() == [
        *[errors.INVALID_REPLICA_ASSIGNMENT] * 3,
        errors.NO_REASSIGNMENT_IN_PROGRESS,
    ]
    assert reassignments.assignment() == ReplicaAssignment((0, 1, 2))


def test_a_release_without_reassignment_requests_refuses_them() -> None:
    reassignments = Reassignment("2.0", ZOOKEEPER)
    reassignments.ask(3)
    reassignments.run()
    assert reassignments.refusals() == [errors.UNSUPPORTED_VERSION]


@on_both_control_planes
def test_a_replica_that_is_added_again_starts_with_an_empty_log(release: str, metadata: str) -> None:
    reassignments = Reassignment(release, metadata)
    for target in ((0, 1), (0, 1, 2)):
        reassignments.ask(*target)
        reassignments.run(10)
    assert reassignments.state() == (0, {0, 1, 2})
    assert [deleted.broker for deleted in reassignments.events(LogDeleted)] == [2]


def test_in_kraft_a_restarted_broker_deletes_logs_of_removed_replicas() -> None:
    """A ZooKeeper controller sends nothing to a dead broker, and the log is not found later."""
    for (release, metadata), brokers in ((IN_KRAFT, {0, 1}), (ON_ZOOKEEPER, {0, 1, 2})):
        reassignments = Reassignment(release, metadata)
        reassignments.cluster.crash_broker(2, power_loss=False)
        reassignments.run(30)
        reassignments.ask(0, 1)
        reassignments.run(10)
        assert reassignments.brokers_with_log() == {0, 1, 2}
        reassignments.cluster.start_broker(2)
        reassignments.run(30)
        assert reassignments.brokers_with_log() == brokers


def controller_of(reassignments: Reassignment) -> KafkaController:
    lifecycle = reassignments.cluster.brokers[4]._lifecycle
    assert isinstance(lifecycle, ZkBrokerLifecycle)
    return lifecycle._controller


def write(reassignments: Reassignment, path: str, data: object) -> None:
    """Write a znode, as an unnoticed successor of this controller would."""
    control_plane = reassignments.cluster.control_plane
    assert isinstance(control_plane, ZkControlPlane)
    control_plane._zookeeper.write(zk.SetData(path, data))


def test_a_superseded_controller_stops_no_replica() -> None:
    """The earlier write of the assignment (U1) fails with ControllerMovedException, as any write
    would."""
    reassignments = Reassignment(*ON_ZOOKEEPER)
    reassignments.cluster.network.watch_messages()
    reassignments.cluster.network.cut("broker-3", "broker-0")
    reassignments.ask(0, 1, 3)
    reassignments.run()
    assert reassignments.brokers_with_log() == {0, 1, 2, 3}
    controller = controller_of(reassignments)
    write(reassignments, zk.CONTROLLER_EPOCH, controller._context.epoch + 1)
    reassignments.cancel()
    reassignments.run()
    assert reassignments.assignment().adding == (3,)
    assert not controller.is_active
    assert "StopReplica" not in {message.api for message in reassignments.events(MessageDelivered)}


@pytest.mark.parametrize("target", [(0, 1), (1, 2)], ids=["the leader stays", "another leads"])
def test_a_state_that_a_newer_controller_wrote_stays_unchanged(target: tuple[int, ...]) -> None:
    """StateChangeFailedException: for a leader epoch it ends the event; for an election or ISR it
    prevents deletion."""
    reassignments = Reassignment(*ON_ZOOKEEPER)
    epoch = controller_of(reassignments)._context.epoch
    write(reassignments, zk.state_path("t-0"), zk.TopicPartitionState(0, 7, (0, 1, 2), epoch + 1))
    reassignments.ask(*target)
    reassignments.run()
    assert reassignments.state() == (0, {0, 1, 2})
    assert reassignments.brokers_with_log() == {0, 1, 2}
    assert controller_of(reassignments).is_active


def test_a_controller_that_fails_during_its_start_resigns() -> None:
    reassignments = Reassignment(*ON_ZOOKEEPER)
    reassignments.cluster.pause_broker(3)
    reassignments.ask(0, 1, 3)
    reassignments.run()
    epoch = controller_of(reassignments)._context.epoch
    write(reassignments, zk.state_path("t-0"), zk.TopicPartitionState(0, 7, (0, 1, 2), epoch + 10))
    reassignments.cluster.expire_session(4)
    reassignments.run(5)
    elected, resigned = reassignments.events(ControllerElected), reassignments.events(ControllerResigned)
    assert [resignation.controller_epoch for resignation in resigned] == [
        election.controller_epoch for election in elected
    ]


def test_replicas_are_removed_even_if_no_target_replica_can_lead() -> None:
    """As in ``moveReassignedPartitionLeaderIfRequired``, which ignores the result of the
    election."""
    reassignments = Reassignment(*ON_ZOOKEEPER)
    controller_of(reassignments)._context.shutting_down.add(1)
    reassignments.ask(1)
    reassignments.run()
    assert reassignments.assignment() == ReplicaAssignment((1,))
    assert reassignments.state() == (-1, {1})
    assert reassignments.brokers_with_log() == {1}


# Assignments as data


def test_target_replicas_come_before_removed_ones() -> None:
    """The example of ``KafkaController.updateCurrentReassignment``: the former order is lost."""
    assignment = ReplicaAssignment((1, 2, 3)).reassigned_to((3, 4, 2))
    assert assignment == ReplicaAssignment((3, 4, 2, 1), adding=(4,), removing=(1,))
    assert (assignment.target, assignment.origin) == ((3, 4, 2), (3, 2, 1))


def test_another_target_drops_replicas_that_the_first_one_added() -> None:
    first = ReplicaAssignment((0, 1)).reassigned_to((2, 3))
    assert first.reassigned_to((0, 4)) == ReplicaAssignment((0, 4, 1), adding=(4,), removing=(1,))


def test_in_kraft_a_reassignment_completes_with_the_record_that_has_the_target_in_the_isr() -> None:
    rules = LeaderRules(is_acceptable=lambda _: True, election=Election.ONLINE, elr_min_isr=None)
    before = PartitionRecord("t-0", (0, 1), 0, 5, (0, 1), 7)
    start = changed_partition(before, rules, before.isr, assignment=reassignment(before, (2,)))
    assert start is not None
    assert start[0] == PartitionRecord("t-0", (2, 0, 1), 0, 5, (0, 1), 8, adding=(2,), removing=(0, 1))
    completion = changed_partition(start[0], rules, (0, 1, 2), altered_by=0)
    assert completion == (PartitionRecord("t-0", (2,), 2, 6, (2,), 9, altered_by=0), ElectedLeader.CLEAN)


def test_a_controller_lists_partitions_in_reassignment() -> None:
    context = ControllerContext()
    context.add_topic("t", (ReplicaAssignment((0, 1)), ReplicaAssignment((0, 1), adding=(1,))))
    assert list(context.partitions_being_reassigned) == ["t-1"]
    assert context.assignment("t-1").adding == (1,)
    context.assign("t-1", ReplicaAssignment((0,)))
    assert context.topic_assignment("t") == (ReplicaAssignment((0, 1)), ReplicaAssignment((0,)))
