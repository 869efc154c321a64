"""A topic gets more partitions (KIP-195): a ZooKeeper controller finds them in a znode, a KRaft
controller creates them."""

from collections.abc import Iterator

import pytest

from harrow.cluster_model import errors
from harrow.cluster_model.cluster import Cluster
from harrow.cluster_model.controller.assignment import assign_partitions, assign_replicas
from harrow.cluster_model.controller.control_plane import CREATE_PARTITIONS_API
from harrow.cluster_model.events import E, LeaderElected, RequestRejected
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.sim.choices import Choices
from harrow.cluster_model.topology import KRAFT, ZOOKEEPER, BrokerSpec, ClusterSpec, TopicSpec
from harrow.cluster_model.trace import select

SECOND = 1_000_000
on_every_release = pytest.mark.parametrize(
    ("release", "metadata"), [(name, mode) for name, release in RELEASES.items() for mode in release.modes]
)
on_both_control_planes = pytest.mark.parametrize(
    ("release", "metadata"), [("2.4", ZOOKEEPER), ("4.3", KRAFT)]
)


class GrowingTopic:
    """Brokers 0 to 3, of which 3 starts first; t-0 is on 0, 1 and 2."""

    def __init__(self, release: str, metadata: str) -> None:
        spec = ClusterSpec(
            brokers=tuple(BrokerSpec(id=number) for number in range(4)),
            topics=(TopicSpec(name="t", assignment=((0, 1, 2),)),),
            controller=3,
            metadata=KRAFT if metadata == KRAFT else ZOOKEEPER,
        )
        self.cluster = Cluster(spec, release, RELEASES[release].behaviours, Choices.from_seed(0))
        self.cluster.start()

    def run(self, seconds: float = 1) -> None:
        self.cluster.simulator.run_until(self.cluster.simulator.now_us + int(seconds * SECOND))

    def leaders(self) -> dict[str, int]:
        return {
            name: state.leader
            for name in self.cluster.partition_names()
            if (state := self.cluster.partition_state(name)) is not None
        }

    def events(self, kind: type[E]) -> Iterator[E]:
        return iter(select(self.cluster.trace.events, kind))

    def refusals(self) -> list[tuple[str, str]]:
        return [
            (each.partition, each.error)
            for each in self.events(RequestRejected)
            if each.api == CREATE_PARTITIONS_API
        ]


@on_every_release
def test_new_partitions_follow_the_old_ones_and_get_leaders(release: str, metadata: str) -> None:
    topic = GrowingTopic(release, metadata)
    topic.cluster.create_partitions("t", 3)
    topic.run()
    assert topic.cluster.partition_names() == ("t-0", "t-1", "t-2")
    assert topic.leaders() == {"t-0": 0, "t-1": 1, "t-2": 2}
    assert topic.cluster.replicas_of("t-2") == (2, 3, 0)
    for name, leader in topic.leaders().items():
        assert topic.cluster.leader(leader, name).is_leader()
        assert topic.cluster.brokers[3].metadata.partitions[name] == (leader, 0)
    assert [elected.partition for elected in topic.events(LeaderElected)] == ["t-0", "t-1", "t-2"]


@on_both_control_planes
def test_a_topic_never_has_fewer_partitions_than_before(release: str, metadata: str) -> None:
    topic = GrowingTopic(release, metadata)
    for total in (1, 2, 2):
        topic.cluster.create_partitions("t", total)
        topic.run()
    assert topic.refusals() == [("t-1", errors.INVALID_PARTITIONS), ("t-2", errors.INVALID_PARTITIONS)]
    assert topic.cluster.partition_names() == ("t-0", "t-1")


@on_both_control_planes
def test_a_missing_topic_gets_no_partitions(release: str, metadata: str) -> None:
    topic = GrowingTopic(release, metadata)
    topic.cluster.create_partitions("u", 2)
    topic.run()
    assert topic.refusals() == [("u-0", errors.UNKNOWN_TOPIC_OR_PARTITION)]
    assert topic.cluster.partition_names() == ("t-0",)


@on_both_control_planes
def test_partitions_need_as_many_live_brokers_as_replicas(release: str, metadata: str) -> None:
    topic = GrowingTopic(release, metadata)
    for broker in (1, 2):
        topic.cluster.crash_broker(broker, power_loss=False)
    topic.run(30)
    topic.cluster.create_partitions("t", 2)
    topic.run()
    assert topic.refusals()[-1] == ("t-1", errors.INVALID_REPLICATION_FACTOR)
    assert topic.cluster.partition_names() == ("t-0",)


@on_both_control_planes
def test_dead_brokers_get_no_replicas(release: str, metadata: str) -> None:
    topic = GrowingTopic(release, metadata)
    topic.cluster.crash_broker(1, power_loss=False)
    topic.run(30)
    topic.cluster.create_partitions("t", 2)
    topic.run()
    assert topic.cluster.replicas_of("t-1") == (2, 3, 0)


@on_both_control_planes
def test_the_next_controller_elects_leaders_that_its_predecessor_did_not(release: str, metadata: str) -> None:
    topic = GrowingTopic(release, metadata)
    controller = topic.cluster.controller()
    assert controller is not None
    topic.cluster.crash_broker(controller, power_loss=False)
    topic.cluster.create_partitions("t", 2)
    topic.run(40)
    assert topic.cluster.partition_names() == ("t-0", "t-1")
    assert topic.leaders()["t-1"] >= 0


def test_in_kraft_uncommitted_partitions_are_requested_again() -> None:
    topic = GrowingTopic("4.3", KRAFT)
    controller = topic.cluster.controller()
    assert controller is not None
    for other in topic.cluster.control_plane.servers:
        if other != controller:
            topic.cluster.network.cut(f"controller-{controller}", f"controller-{other}")
            topic.cluster.network.cut(f"controller-{other}", f"controller-{controller}")
    topic.cluster.create_partitions("t", 2)
    topic.run(30)
    topic.cluster.network.restore_all()
    topic.run(10)
    assert topic.cluster.controller() != controller
    assert topic.cluster.partition_names() == ("t-0", "t-1")


@on_both_control_planes
def test_a_reassignment_does_not_change_added_partitions(release: str, metadata: str) -> None:
    topic = GrowingTopic(release, metadata)
    topic.cluster.create_partitions("t", 2)
    topic.run()
    topic.cluster.alter_partition_reassignment("t-0", (3,))
    topic.run(5)
    assert topic.cluster.replicas_of("t-0") == (3,)
    assert topic.cluster.replicas_of("t-1") == (1, 2, 3)


def test_the_assignment_continues_after_the_last_partition_if_all_brokers_are_alive() -> None:
    brokers = (0, 1, 2, 3, 4)
    complete = assign_replicas(brokers, 4, 3)
    assert assign_partitions(brokers, {}, complete[0], 2, 4) == complete[2:]
    racks = {broker: "ab"[broker % 2] for broker in brokers}
    added = assign_partitions(brokers, racks, complete[0], 2, 9)
    assert all({racks[broker] for broker in replicas} == {"a", "b"} for replicas in added)
    assert assign_partitions(brokers, {}, (3, 4), 1, 2) == ((4, 3),)
