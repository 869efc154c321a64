"""Partitions get other replicas (KIP-455), whether a controller on ZooKeeper or one of KRaft has it done."""

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
    Elected,
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
everywhere = pytest.mark.parametrize(
    ("release", "metadata"),
    [
        (name, mode)
        for name, release in RELEASES.items()
        if version_of(name) >= (2, 4)
        for mode in release.modes
    ],
)
on_both = pytest.mark.parametrize(("release", "metadata"), [ON_ZOOKEEPER, IN_KRAFT])


class Moving:
    """Brokers 0 to 4, of which 4 starts first; t-0 is on 0, 1 and 2."""

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

    def passes(self, seconds: float = 2) -> None:
        self.cluster.simulator.run_until(self.cluster.simulator.now_us + int(seconds * SECOND))

    def assignment(self) -> ReplicaAssignment:
        found = self.cluster.assignment("t-0")
        assert found is not None
        return found

    def state(self) -> tuple[int, set[int]]:
        found = self.cluster.partition_state("t-0")
        assert found is not None
        return found.leader, set(found.isr)

    def with_log(self) -> set[int]:
        return {broker for broker, disk in self.cluster.disks.items() if "t-0" in disk.log_files}

    def refusals(self) -> list[str]:
        return [rejected.error for rejected in self.happened(RequestRejected) if "Reassign" in rejected.api]

    def happened(self, kind: type[E]) -> Iterator[E]:
        return iter(select(self.cluster.trace.events, kind))


@everywhere
def test_new_replicas_come_before_old_ones_go(release: str, metadata: str) -> None:
    moving = Moving(release, metadata)
    moving.ask(3, 4, 2)
    moving.passes(10)
    assert moving.assignment() == ReplicaAssignment((3, 4, 2))
    assert moving.state() == (3, {2, 3, 4})
    assert moving.with_log() == {2, 3, 4}
    first, *_, last = moving.happened(ReplicasAssigned)
    assert (set(first.replicas), set(first.adding), set(first.removing)) == ({0, 1, 2, 3, 4}, {3, 4}, {0, 1})
    assert (last.replicas, last.adding, last.removing) == ((3, 4, 2), (), ())
    assert all(deleted.at_us > first.at_us for deleted in moving.happened(LogDeleted))


@everywhere
def test_a_leader_that_stays_begins_a_new_epoch_without_those_that_go(release: str, metadata: str) -> None:
    moving = Moving(release, metadata)
    moving.ask(0, 1)
    moving.passes(10)
    assert moving.state() == (0, {0, 1})
    assert moving.with_log() == {0, 1}
    elected = list(moving.happened(LeaderElected))[-1]
    assert (elected.leader, elected.reason) == (0, "reassignment")
    assert 2 not in moving.cluster.leader(0, "t-0").remote_replicas


@on_both
def test_it_waits_for_a_broker_that_is_down(release: str, metadata: str) -> None:
    moving = Moving(release, metadata)
    moving.ask(0, 1, 3)
    moving.cluster.crash_broker(3, power_loss=False)
    moving.passes(30)
    assert moving.assignment().is_being_reassigned
    assert moving.with_log() >= {0, 1, 2}
    moving.cluster.start_broker(3)
    moving.passes(30)
    assert moving.assignment() == ReplicaAssignment((0, 1, 3))
    assert moving.with_log() == {0, 1, 3}


@on_both
def test_the_next_controller_goes_on_with_it(release: str, metadata: str) -> None:
    moving = Moving(release, metadata)
    moving.cluster.crash_broker(3, power_loss=False)
    moving.passes(30)
    if metadata == ZOOKEEPER:
        moving.cluster.start_broker(3)
        while not moving.cluster.is_registered(3):
            moving.passes(0.1)
        moving.passes(0.5)
    moving.ask(0, 1, 3)
    while not moving.assignment().is_being_reassigned:
        assert moving.cluster.simulator.step(moving.cluster.simulator.now_us + SECOND)
    controller = moving.cluster.controller()
    assert controller is not None
    moving.cluster.crash_broker(controller, power_loss=False)
    moving.cluster.start_broker(3)
    moving.passes(40)
    assert moving.assignment() == ReplicaAssignment((0, 1, 3))
    assert moving.state()[1] == {0, 1, 3}


@on_both
def test_what_is_cancelled_leaves_nothing_behind(release: str, metadata: str) -> None:
    moving = Moving(release, metadata)
    moving.cluster.pause_broker(3)
    moving.ask(0, 1, 3)
    moving.passes(2)
    moving.cancel()
    moving.passes(2)
    moving.cluster.resume_broker(3)
    moving.passes(30)
    assert moving.assignment() == ReplicaAssignment((0, 1, 2))
    assert moving.state() == (0, {0, 1, 2})
    assert moving.with_log() == {0, 1, 2}


@on_both
def test_what_nobody_can_do_is_refused(release: str, metadata: str) -> None:
    moving = Moving(release, metadata)
    for target in ((0, 9), (0, 0), ()):
        moving.ask(*target)
    moving.cancel()
    moving.passes()
    wanted = [*[errors.INVALID_REPLICA_ASSIGNMENT] * 3, errors.NO_REASSIGNMENT_IN_PROGRESS]
    assert moving.refusals() == wanted
    assert moving.assignment() == ReplicaAssignment((0, 1, 2))


def test_a_release_without_the_request_refuses_it() -> None:
    moving = Moving("2.0", ZOOKEEPER)
    moving.ask(3)
    moving.passes()
    assert moving.refusals() == [errors.UNSUPPORTED_VERSION]


@on_both
def test_a_replica_that_comes_back_begins_with_an_empty_log(release: str, metadata: str) -> None:
    moving = Moving(release, metadata)
    for target in ((0, 1), (0, 1, 2)):
        moving.ask(*target)
        moving.passes(10)
    assert moving.state() == (0, {0, 1, 2})
    assert [deleted.broker for deleted in moving.happened(LogDeleted)] == [2]


def test_in_kraft_a_log_that_is_left_of_a_former_life_is_deleted() -> None:
    """A controller on ZooKeeper tells nobody who is down, and nobody else finds it."""
    for (release, metadata), left in ((IN_KRAFT, {0, 1}), (ON_ZOOKEEPER, {0, 1, 2})):
        moving = Moving(release, metadata)
        moving.cluster.crash_broker(2, power_loss=False)
        moving.passes(30)
        moving.ask(0, 1)
        moving.passes(10)
        assert moving.with_log() == {0, 1, 2}
        moving.cluster.start_broker(2)
        moving.passes(30)
        assert moving.with_log() == left


def controller_of(moving: Moving) -> KafkaController:
    lifecycle = moving.cluster.brokers[4]._lifecycle
    assert isinstance(lifecycle, ZkBrokerLifecycle)
    return lifecycle._controller


def write(moving: Moving, path: str, data: object) -> None:
    """Write a znode as a controller does that has succeeded this one unnoticed."""
    control_plane = moving.cluster.control_plane
    assert isinstance(control_plane, ZkControlPlane)
    control_plane._zookeeper.write(zk.SetData(path, data))


def test_a_controller_that_has_been_succeeded_stops_no_replica() -> None:
    """The write of the assignment before that (U1) fails: ControllerMovedException, of whatever a controller writes."""
    moving = Moving(*ON_ZOOKEEPER)
    moving.cluster.network.watch_messages()
    moving.cluster.network.cut("broker-3", "broker-0")
    moving.ask(0, 1, 3)
    moving.passes()
    assert moving.with_log() == {0, 1, 2, 3}
    controller = controller_of(moving)
    write(moving, zk.CONTROLLER_EPOCH, controller._context.epoch + 1)
    moving.cancel()
    moving.passes()
    assert moving.assignment().adding == (3,)
    assert not controller.is_active
    assert "StopReplica" not in {message.api for message in moving.happened(MessageDelivered)}


@pytest.mark.parametrize("target", [(0, 1), (1, 2)], ids=["the leader stays", "another leads"])
def test_what_a_newer_controller_has_written_is_left_alone(target: tuple[int, ...]) -> None:
    """StateChangeFailedException: of the leader epoch it ends the event, of an election or an ISR there is no deletion after it."""
    moving = Moving(*ON_ZOOKEEPER)
    epoch = controller_of(moving)._context.epoch
    write(moving, zk.state_path("t-0"), zk.TopicPartitionState(0, 7, (0, 1, 2), epoch + 1))
    moving.ask(*target)
    moving.passes()
    assert moving.state() == (0, {0, 1, 2})
    assert moving.with_log() == {0, 1, 2}
    assert controller_of(moving).is_active


def test_one_that_fails_in_taking_office_resigns() -> None:
    moving = Moving(*ON_ZOOKEEPER)
    moving.cluster.pause_broker(3)
    moving.ask(0, 1, 3)
    moving.passes()
    epoch = controller_of(moving)._context.epoch
    write(moving, zk.state_path("t-0"), zk.TopicPartitionState(0, 7, (0, 1, 2), epoch + 10))
    moving.cluster.expire_session(4)
    moving.passes(5)
    elected, resigned = moving.happened(ControllerElected), moving.happened(ControllerResigned)
    assert [each.controller_epoch for each in resigned] == [each.controller_epoch for each in elected]


def test_replicas_go_also_where_no_target_replica_can_lead() -> None:
    """As in ``moveReassignedPartitionLeaderIfRequired``, which does not ask what came of the election."""
    moving = Moving(*ON_ZOOKEEPER)
    controller_of(moving)._context.shutting_down.add(1)
    moving.ask(1)
    moving.passes()
    assert moving.assignment() == ReplicaAssignment((1,))
    assert moving.state() == (-1, {1})
    assert moving.with_log() == {1}


# What is wanted of whom, as data


def test_a_target_comes_before_those_that_go() -> None:
    """The example of ``KafkaController.updateCurrentReassignment``: the order of before is not kept."""
    wanted = ReplicaAssignment((1, 2, 3)).reassigned_to((3, 4, 2))
    assert wanted == ReplicaAssignment((3, 4, 2, 1), adding=(4,), removing=(1,))
    assert (wanted.target, wanted.origin) == ((3, 4, 2), (3, 2, 1))


def test_another_target_forgets_what_the_first_one_has_added() -> None:
    first = ReplicaAssignment((0, 1)).reassigned_to((2, 3))
    assert first.reassigned_to((0, 4)) == ReplicaAssignment((0, 4, 1), adding=(4,), removing=(1,))


def test_in_kraft_it_is_complete_with_the_record_that_has_the_target_in_the_isr() -> None:
    rules = LeaderRules(is_acceptable=lambda _: True, election=Election.ONLINE, elr_min_isr=None)
    known = PartitionRecord("t-0", (0, 1), 0, 5, (0, 1), 7)
    begun = changed_partition(known, rules, known.isr, assignment=reassignment(known, (2,)))
    assert begun is not None
    assert begun[0] == PartitionRecord("t-0", (2, 0, 1), 0, 5, (0, 1), 8, adding=(2,), removing=(0, 1))
    ended = changed_partition(begun[0], rules, (0, 1, 2), altered_by=0)
    assert ended == (PartitionRecord("t-0", (2,), 2, 6, (2,), 9, altered_by=0), Elected.CLEAN)


def test_a_controller_knows_which_partitions_are_under_way() -> None:
    context = ControllerContext()
    context.add_topic("t", (ReplicaAssignment((0, 1)), ReplicaAssignment((0, 1), adding=(1,))))
    assert list(context.reassigning) == ["t-1"]
    assert context.assignment("t-1").adding == (1,)
    context.assign("t-1", ReplicaAssignment((0,)))
    assert context.topic_assignment("t") == (ReplicaAssignment((0, 1)), ReplicaAssignment((0,)))
