"""KRaft's promises for metadata under any faults of controllers, brokers and links."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from harrow.cluster_model import errors
from harrow.cluster_model.cluster import Cluster
from harrow.cluster_model.kraft.control_plane import QuorumControlPlane
from harrow.cluster_model.kraft.records import (
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    PartitionRecord,
    RegisterBrokerRecord,
)
from harrow.cluster_model.protocol import AlterPartition, AlterPartitionRequest, AlterPartitionResponse
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.sim.choices import Choices
from harrow.cluster_model.topology import KRAFT, BrokerSpec, ClusterSpec, TopicSpec

MS = 1_000
SECOND = 1_000_000
BROKERS = (0, 1, 2, 3)
PARTITIONS = ("t-0", "t-1")


@dataclass
class CheckedCluster:
    """A cluster whose committed metadata is checked record by record."""

    release: str
    voters: int
    combined: bool
    seed: int
    fenced: dict[int, bool] = field(default_factory=dict)
    partitions: dict[str, PartitionRecord] = field(default_factory=dict)
    committed: list[tuple[int, MetadataRecord]] = field(default_factory=list)

    def __post_init__(self) -> None:
        spec = ClusterSpec(
            brokers=tuple(BrokerSpec(id=number) for number in BROKERS),
            topics=(TopicSpec(name="t", assignment=((0, 1, 2), (1, 2, 3)), replication_factor=3),),
            metadata=KRAFT,
            voters=self.voters,
            combined=self.combined,
            settings={"min.insync.replicas": 2},
        )
        behaviours = RELEASES[self.release].behaviours
        self.cluster = Cluster(spec, self.release, behaviours, Choices.from_seed(self.seed))
        self.has_elr = behaviours.kraft.eligible_leader_replicas
        self.cluster.start()
        self.check()

    @property
    def plane(self) -> QuorumControlPlane:
        plane = self.cluster.control_plane
        assert isinstance(plane, QuorumControlPlane)
        return plane

    def run(self, duration_us: int) -> None:
        simulator = self.cluster.simulator
        end_us = simulator.now_us + duration_us
        while simulator.step(end_us):
            self.check()
        simulator.run_until(end_us)

    def check(self) -> None:
        """Check newly committed records of the active controller, and compare leaders."""
        active = self.plane._active_controller()
        if active is not None:
            high_watermark = active.raft.high_watermark
            log = active.raft.log.records
            end = min(len(self.committed), high_watermark)
            if high_watermark > len(self.committed):
                assert log[:end] == self.committed[:end], "a committed record has changed"
                for epoch, record in log[end:high_watermark]:
                    self.committed.append((epoch, record))
                    self.check_record(record)
        for name in PARTITIONS:
            leaders = [
                broker.replicas.partitions[name]
                for broker in self.cluster.brokers.values()
                if name in broker.replicas.partitions and broker.replicas.partitions[name].is_leader()
            ]
            for one, other in combinations(leaders, 2):
                assert one.leader_epoch != other.leader_epoch, "two leaders of one leader epoch"

    def check_record(self, record: MetadataRecord) -> None:
        if isinstance(record, RegisterBrokerRecord):
            self.fenced[record.broker] = True
        elif isinstance(record, BrokerRegistrationChangeRecord):
            self.fenced[record.broker] = record.fenced
        elif isinstance(record, PartitionRecord):
            self.check_partition(record)

    def check_partition(self, record: PartitionRecord) -> None:
        before = self.partitions.get(record.partition)
        self.partitions[record.partition] = record
        if before is not None:
            assert record.partition_epoch == before.partition_epoch + 1
            assert record.leader_epoch == before.leader_epoch + (record.leader != before.leader)
        if record.leader >= 0:
            assert record.leader in record.isr
            assert not any(self.fenced[member] for member in record.isr), "a fenced broker is in an ISR"
        assert not set(record.isr) & set(record.elr)
        assert self.has_elr or record.isr, "the last member stays in the ISR"

    # Actions

    def nodes(self) -> tuple[int, ...]:
        return tuple(self.cluster.nodes)

    def crash(self, node: int) -> None:
        if self.cluster.nodes[node].running:
            self.cluster.crash_broker(node, power_loss=False)

    def start(self, node: int) -> None:
        self.cluster.start_broker(node)

    def lose_disk(self, node: int) -> None:
        """Empty a disk if a majority of the quorum keeps the committed records."""
        if self.plane.keeps_metadata_without(node):
            self.crash(node)
            self.cluster.lose_disk(node)

    def stop(self, node: int) -> None:
        if self.cluster.nodes[node].running:
            self.cluster.stop_broker(node)

    def pause(self, node: int) -> None:
        process = self.cluster.nodes[node]
        if process.running and not process.paused:
            self.cluster.pause_broker(node)

    def resume(self, node: int) -> None:
        self.cluster.resume_broker(node)

    def isolate(self, node: int) -> None:
        """Isolate a node from all others, in both directions."""
        name = self.cluster.nodes[node].name
        for other in (process.name for process in self.cluster.nodes.values() if process.name != name):
            self.cluster.network.cut(name, other)
            self.cluster.network.cut(other, name)

    def heal(self) -> None:
        self.cluster.heal()


steps = st.one_of(
    st.tuples(st.just("run"), st.sampled_from([5, 100, 700, 3_000, 10_000])),
    st.tuples(
        st.sampled_from(["crash", "start", "stop", "pause", "resume", "isolate", "lose_disk"]),
        st.integers(0, 8),
    ),
    st.tuples(st.just("heal")),
)


def perform(checked: CheckedCluster, actions: list[tuple[Any, ...]]) -> None:
    nodes = checked.nodes()
    for name, *arguments in actions:
        if name == "run":
            checked.run(arguments[0] * MS)
        elif name == "heal":
            checked.heal()
        else:
            act: Callable[[int], None] = getattr(checked, name)
            act(nodes[arguments[0] % len(nodes)])
            checked.check()


@pytest.mark.soak(size=15, rounds_in_test=2, rounds_in_soak=200)
@settings(max_examples=15, deadline=None)
@given(
    release=st.sampled_from(["3.6", "3.9", "4.0", "4.3"]),
    voters=st.sampled_from([1, 3, 5]),
    combined=st.booleans(),
    actions=st.lists(steps, max_size=30),
    seed=st.integers(0, 2**16),
)
def test_isrs_have_no_fenced_brokers_epochs_rise_by_one_and_committed_records_survive(
    release: str, voters: int, combined: bool, actions: list[tuple[Any, ...]], seed: int
) -> None:
    checked = CheckedCluster(release, min(voters, len(BROKERS) - 1) if combined else voters, combined, seed)
    perform(checked, actions)
    checked.heal()
    checked.run(60 * SECOND)
    event(f"{len(checked.committed)} records")
    for name in PARTITIONS:
        assert sorted(checked.partitions[name].isr) == sorted(checked.cluster.replicas_of(name))
        assert checked.partitions[name].leader >= 0


def isolate_active_controller(checked: CheckedCluster) -> int:
    active = checked.plane.controller()
    assert active is not None
    checked.isolate(active)
    return active


@pytest.mark.parametrize("release", ["3.6", "4.3"])
def test_two_brokers_may_lead_a_partition_with_different_leader_epochs(release: str) -> None:
    checked = CheckedCluster(release, 3, False, 1)
    checked.isolate(0)
    checked.run(15 * SECOND)
    assert checked.cluster.leader(0, "t-0").is_leader()
    assert checked.cluster.leader(1, "t-0").is_leader()
    assert checked.cluster.leader(0, "t-0").leader_epoch < checked.cluster.leader(1, "t-0").leader_epoch
    checked.heal()
    checked.run(15 * SECOND)
    assert not checked.cluster.leader(0, "t-0").is_leader()


@pytest.mark.parametrize("release", ["3.6", "4.3"])
def test_the_next_controller_repeats_uncommitted_changes_of_an_isolated_one(release: str) -> None:
    checked = CheckedCluster(release, 3, False, 1)
    isolate_active_controller(checked)
    before = len(checked.committed)
    checked.crash(2)
    checked.run(30 * SECOND)
    assert len(checked.committed) > before
    assert sorted(checked.partitions["t-0"].isr) == [0, 1]
    checked.heal()
    checked.run(30 * SECOND)
    assert sorted(checked.partitions["t-0"].isr) == [0, 1, 2]


@pytest.mark.parametrize(("killed", "has_controller"), [(1, True), (2, False)])
def test_in_combined_mode_a_dead_broker_does_not_vote(killed: int, has_controller: bool) -> None:
    checked = CheckedCluster("4.3", 3, True, 1)
    # Broker 1 survives in both cases.
    for broker in (0, 2)[:killed]:
        checked.crash(broker)
    checked.run(30 * SECOND)
    assert (0 not in checked.partitions["t-0"].isr) == has_controller
    assert (checked.plane._active_controller() is not None) == has_controller


@pytest.mark.parametrize("voters", [1, 3, 5])
def test_a_partition_gets_another_leader_while_a_majority_of_the_voters_lives(voters: int) -> None:
    checked = CheckedCluster("4.3", voters, False, 1)
    controllers = list(checked.cluster.control_plane.servers)
    for node in controllers[: (voters - 1) // 2]:
        checked.crash(node)
    checked.crash(0)
    checked.run(30 * SECOND)
    assert checked.partitions["t-0"].leader == 1
    checked.crash(controllers[(voters - 1) // 2])
    checked.crash(1)
    checked.run(30 * SECOND)
    assert checked.partitions["t-0"].leader == 1


# Answers to AlterPartition


def alteration_error(
    partition: PartitionRecord,
    broker: int,
    alteration: AlterPartition,
    epochs: Mapping[int, int],
    fenced: Collection[int],
) -> str:
    """Return the error that ReplicationControlManager.validateAlterPartitionData would return."""
    if (
        alteration.leader_epoch > partition.leader_epoch
        or alteration.partition_epoch > partition.partition_epoch
    ):
        return errors.NOT_CONTROLLER
    if alteration.leader_epoch < partition.leader_epoch:
        return errors.FENCED_LEADER_EPOCH
    members = [member for member, _ in alteration.isr]
    if broker != partition.leader:
        return errors.INVALID_REQUEST
    if alteration.partition_epoch < partition.partition_epoch:
        return errors.INVALID_UPDATE_VERSION
    if broker not in members or not set(members) <= set(partition.replicas):
        return errors.INVALID_REQUEST
    is_eligible = all(
        member not in fenced and epoch in (-1, epochs[member]) for member, epoch in alteration.isr
    )
    return errors.NONE if is_eligible else errors.INELIGIBLE_REPLICA


@pytest.mark.soak(size=40, rounds_in_test=1, rounds_in_soak=200)
@settings(max_examples=40, deadline=None)
@given(
    release=st.sampled_from(["3.6", "4.3"]),
    fenced=st.lists(st.sampled_from([1, 2]), max_size=1),
    requests=st.lists(
        st.tuples(
            st.sampled_from([0, 0, 0, 1, 3]),
            st.sampled_from([-1, 0, 0, 0, 1]),
            st.sampled_from([-1, 0, 0, 0, 1]),
            st.lists(
                st.tuples(st.integers(0, 3), st.sampled_from([0, 0, 0, -1])),
                min_size=1,
                max_size=4,
                unique_by=lambda member: member[0],
            ),
        ),
        min_size=1,
        max_size=6,
    ),
)
def test_alter_partition_checks_epochs_sender_and_eligibility_in_this_order(
    release: str, fenced: list[int], requests: list[tuple[int, int, int, list[tuple[int, int]]]]
) -> None:
    checked = CheckedCluster(release, 1, False, 1)
    for broker in fenced:
        checked.crash(broker)
        checked.run(12 * SECOND)
    active = checked.plane._active_controller()
    assert active is not None
    for broker, leader_epoch, partition_epoch, members in requests:
        partition = active.image.partitions["t-0"]
        epochs = {id_: registration.broker_epoch for id_, registration in active.image.brokers.items()}
        isr = tuple((member, epochs[member] + former) for member, former in members)
        alteration = AlterPartition(
            partition.leader_epoch + leader_epoch, partition.partition_epoch + partition_epoch, isr
        )
        _, answer = active._alter_partitions(
            AlterPartitionRequest(broker, epochs[broker], {"t-0": alteration})
        )
        assert isinstance(answer, AlterPartitionResponse)
        expected = alteration_error(partition, broker, alteration, epochs, fenced)
        event(expected)
        assert answer.partitions["t-0"][0] == expected
