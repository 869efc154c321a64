"""What KRaft promises of a cluster's metadata, whatever happens to controllers, brokers and links."""

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
class Watched:
    """A cluster, with its committed metadata looked at record by record."""

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
        self.look()

    @property
    def plane(self) -> QuorumControlPlane:
        plane = self.cluster.control_plane
        assert isinstance(plane, QuorumControlPlane)
        return plane

    def run(self, duration_us: int) -> None:
        simulator = self.cluster.simulator
        end_us = simulator.now_us + duration_us
        while simulator.step(end_us):
            self.look()
        simulator.run_until(end_us)

    def look(self) -> None:
        """Take what is committed by now, as far as the active controller knows, and hold leaders against each other."""
        active = self.plane._active_controller()
        if active is not None:
            high_watermark = active.raft.high_watermark
            log = active.raft.log.records
            known = min(len(self.committed), high_watermark)
            if high_watermark > len(self.committed):
                assert log[:known] == self.committed[:known], "what was committed is another record now"
                for epoch, record in log[known:high_watermark]:
                    self.committed.append((epoch, record))
                    self.take(record)
        for name in PARTITIONS:
            leaders = [
                life.replicas.partitions[name]
                for life in self.cluster.brokers.values()
                if name in life.replicas.partitions and life.replicas.partitions[name].is_leader()
            ]
            for one, other in combinations(leaders, 2):
                assert one.leader_epoch != other.leader_epoch, "two leaders of one leader epoch"

    def take(self, record: MetadataRecord) -> None:
        if isinstance(record, RegisterBrokerRecord):
            self.fenced[record.broker] = True
        elif isinstance(record, BrokerRegistrationChangeRecord):
            self.fenced[record.broker] = record.fenced
        elif isinstance(record, PartitionRecord):
            self.take_partition(record)

    def take_partition(self, record: PartitionRecord) -> None:
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

    # What may happen

    def nodes(self) -> tuple[int, ...]:
        return tuple(self.cluster.nodes)

    def crash(self, node: int) -> None:
        if self.cluster.nodes[node].running:
            self.cluster.crash_broker(node, power_loss=False)

    def start(self, node: int) -> None:
        self.cluster.start_broker(node)

    def lose_disk(self, node: int) -> None:
        """Empty a disk, if a majority of the quorum keeps what is committed."""
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

    def cut_off(self, node: int) -> None:
        """Cut a node off from all others, in both directions."""
        name = self.cluster.nodes[node].name
        for other in (process.name for process in self.cluster.nodes.values() if process.name != name):
            self.cluster.network.cut(name, other)
            self.cluster.network.cut(other, name)

    def heal(self) -> None:
        self.cluster.heal()


steps = st.one_of(
    st.tuples(st.just("run"), st.sampled_from([5, 100, 700, 3_000, 10_000])),
    st.tuples(
        st.sampled_from(["crash", "start", "stop", "pause", "resume", "cut_off", "lose_disk"]),
        st.integers(0, 8),
    ),
    st.tuples(st.just("heal")),
)


def do(watched: Watched, taken: list[tuple[Any, ...]]) -> None:
    nodes = watched.nodes()
    for name, *arguments in taken:
        if name == "run":
            watched.run(arguments[0] * MS)
        elif name == "heal":
            watched.heal()
        else:
            act: Callable[[int], None] = getattr(watched, name)
            act(nodes[arguments[0] % len(nodes)])
            watched.look()


@pytest.mark.soak(size=15, test=2, soak=200)
@settings(max_examples=15, deadline=None)
@given(
    release=st.sampled_from(["3.6", "3.9", "4.0", "4.3"]),
    voters=st.sampled_from([1, 3, 5]),
    combined=st.booleans(),
    taken=st.lists(steps, max_size=30),
    seed=st.integers(0, 2**16),
)
def test_fenced_brokers_are_in_no_isr_epochs_rise_by_one_and_nothing_committed_is_lost(
    release: str, voters: int, combined: bool, taken: list[tuple[Any, ...]], seed: int
) -> None:
    watched = Watched(release, min(voters, len(BROKERS) - 1) if combined else voters, combined, seed)
    do(watched, taken)
    watched.heal()
    watched.run(60 * SECOND)
    event(f"{len(watched.committed)} records")
    for name in PARTITIONS:
        assert sorted(watched.partitions[name].isr) == sorted(watched.cluster.replicas_of(name))
        assert watched.partitions[name].leader >= 0


def cut_off_active_controller(watched: Watched) -> int:
    active = watched.plane.controller()
    assert active is not None
    watched.cut_off(active)
    return active


@pytest.mark.parametrize("release", ["3.6", "4.3"])
def test_two_brokers_may_believe_different_leaders_who_are_told_apart_by_leader_epochs(release: str) -> None:
    watched = Watched(release, 3, False, 1)
    watched.cut_off(0)
    watched.run(15 * SECOND)
    assert watched.cluster.leader(0, "t-0").is_leader()
    assert watched.cluster.leader(1, "t-0").is_leader()
    assert watched.cluster.leader(0, "t-0").leader_epoch < watched.cluster.leader(1, "t-0").leader_epoch
    watched.heal()
    watched.run(15 * SECOND)
    assert not watched.cluster.leader(0, "t-0").is_leader()


@pytest.mark.parametrize("release", ["3.6", "4.3"])
def test_what_a_controller_has_not_committed_is_gone_with_it_and_asked_for_again(release: str) -> None:
    watched = Watched(release, 3, False, 1)
    cut_off_active_controller(watched)
    before = len(watched.committed)
    watched.crash(2)
    watched.run(30 * SECOND)
    assert len(watched.committed) > before
    assert sorted(watched.partitions["t-0"].isr) == [0, 1]
    watched.heal()
    watched.run(30 * SECOND)
    assert sorted(watched.partitions["t-0"].isr) == [0, 1, 2]


@pytest.mark.parametrize(("killed", "goes_on"), [(1, True), (2, False)])
def test_in_combined_mode_a_broker_takes_its_vote_with_it(killed: int, goes_on: bool) -> None:
    watched = Watched("4.3", 3, True, 1)
    # Not the one that leads t-1 then.
    for broker in (0, 2)[:killed]:
        watched.crash(broker)
    watched.run(30 * SECOND)
    assert (0 not in watched.partitions["t-0"].isr) == goes_on
    assert (watched.plane._active_controller() is not None) == goes_on


@pytest.mark.parametrize("voters", [1, 3, 5])
def test_a_partition_gets_another_leader_while_a_majority_of_the_voters_lives(voters: int) -> None:
    watched = Watched("4.3", voters, False, 1)
    controllers = list(watched.cluster.control_plane.servers)
    for node in controllers[: (voters - 1) // 2]:
        watched.crash(node)
    watched.crash(0)
    watched.run(30 * SECOND)
    assert watched.partitions["t-0"].leader == 1
    watched.crash(controllers[(voters - 1) // 2])
    watched.crash(1)
    watched.run(30 * SECOND)
    assert watched.partitions["t-0"].leader == 1


# What an active controller answers a leader that wants another ISR


def alteration_error(
    known: PartitionRecord,
    broker: int,
    wanted: AlterPartition,
    epochs: Mapping[int, int],
    fenced: Collection[int],
) -> str:
    """Return the error by the rules (ReplicationControlManager.validateAlterPartitionData), in their order."""
    if wanted.leader_epoch > known.leader_epoch or wanted.partition_epoch > known.partition_epoch:
        return errors.NOT_CONTROLLER
    if wanted.leader_epoch < known.leader_epoch:
        return errors.FENCED_LEADER_EPOCH
    members = [member for member, _ in wanted.isr]
    if broker != known.leader:
        return errors.INVALID_REQUEST
    if wanted.partition_epoch < known.partition_epoch:
        return errors.INVALID_UPDATE_VERSION
    if broker not in members or not set(members) <= set(known.replicas):
        return errors.INVALID_REQUEST
    is_eligible = all(member not in fenced and epoch in (-1, epochs[member]) for member, epoch in wanted.isr)
    return errors.NONE if is_eligible else errors.INELIGIBLE_REPLICA


@pytest.mark.soak(size=40, test=1, soak=200)
@settings(max_examples=40, deadline=None)
@given(
    release=st.sampled_from(["3.6", "4.3"]),
    fenced=st.lists(st.sampled_from([1, 2]), max_size=1),
    wanted=st.lists(
        st.tuples(
            st.sampled_from([0, 0, 0, 1, 3]),
            st.sampled_from([-1, 0, 0, 0, 1]),
            st.sampled_from([-1, 0, 0, 0, 1]),
            st.lists(
                st.tuples(st.integers(0, 3), st.sampled_from([0, 0, 0, -1])),
                min_size=1,
                max_size=4,
                unique_by=lambda each: each[0],
            ),
        ),
        min_size=1,
        max_size=6,
    ),
)
def test_an_alter_partition_is_refused_for_its_epochs_its_sender_and_ineligible_members_in_this_order(
    release: str, fenced: list[int], wanted: list[tuple[int, int, int, list[tuple[int, int]]]]
) -> None:
    watched = Watched(release, 1, False, 1)
    for broker in fenced:
        watched.crash(broker)
        watched.run(12 * SECOND)
    active = watched.plane._active_controller()
    assert active is not None
    for broker, leader_epoch, partition_epoch, members in wanted:
        known = active.image.partitions["t-0"]
        epochs = {each: registered.broker_epoch for each, registered in active.image.brokers.items()}
        isr = tuple((member, epochs[member] + former) for member, former in members)
        alteration = AlterPartition(
            known.leader_epoch + leader_epoch, known.partition_epoch + partition_epoch, isr
        )
        _, answer = active._alter_partitions(
            AlterPartitionRequest(broker, epochs[broker], {"t-0": alteration})
        )
        assert isinstance(answer, AlterPartitionResponse)
        expected = alteration_error(known, broker, alteration, epochs, fenced)
        event(expected)
        assert answer.partitions["t-0"][0] == expected
