"""Kafka's rules for new leaders, followers and ZooKeeper controllers hold in random histories."""

from collections.abc import Callable
from typing import Any, cast

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from harrow.cluster_model import errors
from harrow.cluster_model.broker.broker import Broker
from harrow.cluster_model.broker.replica import UNKNOWN_OFFSET
from harrow.cluster_model.cluster import Cluster
from harrow.cluster_model.controller.control_plane import ControlPlane
from harrow.cluster_model.events import ControllerElected
from harrow.cluster_model.log.disk import Disk
from harrow.cluster_model.protocol import (
    LeaderAndIsr,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from harrow.cluster_model.release.profiles import Behaviours
from harrow.cluster_model.sim.choices import Choices
from harrow.cluster_model.sim.connection import Exchange
from harrow.cluster_model.topic_settings import TopicConfigs
from harrow.cluster_model.topology import BrokerSpec, ClusterSpec, TopicSpec
from harrow.cluster_model.trace import select
from harrow.cluster_model.zookeeper.alter_partition_manager import IsrChangePropagation
from harrow.cluster_model.zookeeper.service import protocol as zk
from harrow.cluster_model.zookeeper.service.client import ZooKeeperClient
from tests.cluster_model.broker.test_partition import LEADER
from tests.cluster_model.broker.test_replica_fetcher import P, follower_with
from tests.cluster_model.fakes import MS, SECOND, FakeEndpoint, FakeHost, batch
from tests.cluster_model.log.test_damaged_disk import manager_on
from tests.cluster_model.zookeeper.controller.test_controller_writes import (
    CONFIG,
    UnreachableControlPlane,
)
from tests.properties.test_replication_protocol_rules import diverged_logs, histories
from tests.properties.test_replication_rules import Step, TrackedLeader, isrs, steps

# Leaders


@pytest.mark.soak(size=50, rounds_in_test=1, rounds_in_soak=100)
@settings(max_examples=50)
@given(
    release=st.sampled_from(["2.4", "2.8", "3.6", "4.3"]),
    terms=st.lists(st.tuples(st.booleans(), isrs, steps), min_size=1, max_size=4),
)
def test_a_new_leader_records_its_epoch_at_its_leo_and_knows_no_follower_positions(
    release: str, terms: list[tuple[bool, tuple[int, ...], list[Step]]]
) -> None:
    """Partition.makeLeader: a leader that also leads the next epoch keeps follower positions."""
    leader = TrackedLeader((0, 1, 2), release)
    for epoch, (was_follower, isr, history) in enumerate(terms, start=2):
        for step in history:
            leader.do(step)
        before = {b: r.log_end_offset for b, r in leader.partition.remote_replicas.items()}
        if was_follower:
            leader.partition.make_follower(
                leader.state(1, (0, 1, 2), epoch * 2, leader.partition.partition_epoch)
            )
        state = leader.state(LEADER, isr, epoch * 2 + 1, leader.partition.partition_epoch + 1)
        leader.partition.make_leader(state)
        assert leader.partition.log.epochs.entries[-1] == (epoch * 2 + 1, leader.leo)
        assert leader.partition.leader_epoch_start == leader.leo
        after = {b: r.log_end_offset for b, r in leader.partition.remote_replicas.items()}
        assert after == (dict.fromkeys(before, UNKNOWN_OFFSET) if was_follower else before)


# Followers


@pytest.mark.soak(size=80, rounds_in_test=1, rounds_in_soak=100)
@settings(max_examples=80)
@given(
    release=st.sampled_from(["2.0", "2.4"]),
    common=histories,
    leader_suffix=histories,
    follower_suffix=histories,
    hw=st.integers(0, 4),
)
def test_a_follower_truncates_to_the_end_of_common_epochs_and_asks_again_if_it_lacks_the_answered_one(
    release: str, common: list[int], leader_suffix: list[int], follower_suffix: list[int], hw: int
) -> None:
    """AbstractFetcherThread.getOffsetTruncationState (KIP-101, KIP-279) makes the logs agree."""
    leaders, followers, leader = diverged_logs(common, leader_suffix, follower_suffix)
    hw = min(hw, sum(common))
    follower = follower_with(*followers, release=release, epoch=90, hw=hw)
    log = follower.partitions[P].log
    kept = sum(common)
    for _ in range(len(followers) + 2):
        requests = follower.host.requests("OffsetsForLeaderEpoch")
        if not requests:
            break
        ((_, own_epoch),) = [sent.body.partitions[P] for sent in requests]
        assert own_epoch == log.epochs.latest_epoch(), "a follower asks for its latest epoch"
        epoch, end_offset = leader.end_offset_for(own_epoch, len(leaders))
        before = log.log_end_offset
        # Where the follower's epochs up to the answered one end. If all its epochs are later, this
        # is where the first one starts.
        own_end = next((start for e, start in log.epochs.entries if e > epoch), before)
        own_epochs = [e for e, _ in log.epochs.entries if e <= epoch]
        if end_offset < 0:
            event("undefined")
            expected = kept = hw
        elif own_epochs and own_epochs[-1] != epoch:
            event("an epoch that the follower lacks")
            expected = min(own_end, before)
        else:
            expected = min(end_offset, own_end, before)
        follower.answer_epoch(epoch, end_offset)
        assert log.log_end_offset == expected
    assert not follower.host.requests("OffsetsForLeaderEpoch")
    assert log.log_end_offset >= kept
    assert followers[: log.log_end_offset] == leaders[: log.log_end_offset]


# Recovery


@pytest.mark.soak(size=60, rounds_in_test=1, rounds_in_soak=100)
@settings(max_examples=60)
@given(
    sizes=st.lists(st.integers(1, 3), max_size=8),
    flushed=st.integers(0, 8),
    torn_after=st.one_of(st.none(), st.integers(0, 8)),
)
def test_a_machine_loses_unflushed_records_and_recovery_truncates_at_the_first_bad_crc(
    sizes: list[int], flushed: int, torn_after: int | None
) -> None:
    """Log.recoverLog keeps all batches that were flushed or written back before the torn one."""
    disk = Disk()
    file = disk.log_file(P)
    ends = [0]
    for number, size in enumerate(sizes):
        values = [f"{number}.{place}" for place in range(size)]
        file.append(batch(*values, at=ends[-1], leader_epoch=0))
        ends.append(ends[-1] + size)
    whole = min(flushed, len(sizes))
    file.flushed_offset = ends[whole]
    file.lose_power(torn_after)
    log = manager_on(disk)[0].open(P)
    written_back = whole if torn_after is None else min(whole + torn_after, len(sizes))
    assert log.log_end_offset == ends[written_back]
    assert not file.damaged


# ISR changes of ZooKeeper


class NotificationLog(ZooKeeperClient):
    """Records the notifications of a leader with their times."""

    def __init__(self, host: FakeHost) -> None:
        self.host = host
        self.notifications: list[tuple[int, tuple[str, ...]]] = []

    def submit(
        self,
        operations: tuple[zk.ZooKeeperOperation, ...],
        on_response: Callable[[zk.ZooKeeperResponse], None],
        **_: Any,
    ) -> None:
        (node,) = operations
        assert isinstance(node, zk.Create)
        assert node.sequential
        self.notifications.append((self.host.clock.now_us, cast("tuple[str, ...]", node.data)))
        on_response(zk.ZooKeeperResponse(zk.OK, ()))


@pytest.mark.soak(size=60, rounds_in_test=1, rounds_in_soak=100)
@settings(max_examples=60)
@given(
    changes=st.lists(st.tuples(st.integers(1, 9_000), st.sampled_from(["t-0", "t-1", "t-2"])), max_size=40)
)
def test_isr_changes_are_announced_together_after_five_quiet_or_sixty_seconds(
    changes: list[tuple[int, str]],
) -> None:
    """ReplicaManager.maybePropagateIsrChanges, which runs every 2.5 s."""
    host = FakeHost("broker-0")
    zookeeper = NotificationLog(host)
    propagation = IsrChangePropagation(host, zookeeper)
    propagation.start()
    noted_changes: list[tuple[int, str]] = []
    for gap_ms, partition in changes:
        host.advance(gap_ms * MS)
        noted_changes.append((host.clock.now_us, partition))
        propagation.note(partition)
    host.advance(70 * SECOND)
    begin = 0
    for at_us, partitions in zookeeper.notifications:
        announced = [(when, name) for when, name in noted_changes[begin:] if when <= at_us]
        assert list(partitions) == list(dict.fromkeys(name for _, name in announced)), (
            "each changed partition once"
        )
        last_us = announced[-1][0]
        before_us = (
            zookeeper.notifications[zookeeper.notifications.index((at_us, partitions)) - 1][0] if begin else 0
        )
        assert at_us - last_us > 5 * SECOND or at_us - before_us > 60 * SECOND
        if at_us - before_us <= 60 * SECOND:
            assert at_us - last_us <= 5 * SECOND + 2_500 * MS, "no later than the next check"
        begin += len(announced)
    assert begin == len(noted_changes), "a change was not announced"


# The controller of ZooKeeper


@pytest.mark.soak(size=40, rounds_in_test=1, rounds_in_soak=100)
@settings(max_examples=40)
@given(
    requests=st.lists(
        st.tuples(st.integers(1, 5), st.sampled_from(["UpdateMetadata", "StopReplica", "LeaderAndIsr"])),
        max_size=12,
    )
)
def test_a_broker_refuses_requests_of_a_controller_epoch_below_the_highest_known(
    requests: list[tuple[int, str]],
) -> None:
    """KafkaApis answers STALE_CONTROLLER_EPOCH to each of the three kinds of request."""
    host = FakeHost("broker-1")
    behaviours = Behaviours().with_switches(requests_wait_for_registration=False)
    broker = Broker(
        1,
        host,
        Disk(),
        CONFIG,
        TopicConfigs({}, CONFIG),
        behaviours,
        cast("ControlPlane", UnreachableControlPlane()),
    )
    highest = 0
    for leader_epoch, (epoch, api) in enumerate(requests):
        state = LeaderAndIsrPartitionState(epoch, LeaderAndIsr(1, leader_epoch, (1,), 0), (0, 1))
        bodies: dict[str, Any] = {
            "UpdateMetadata": UpdateMetadataRequest(2, epoch, 1, {}, (1, 2)),
            "StopReplica": StopReplicaRequest(2, epoch, 1, ()),
            "LeaderAndIsr": LeaderAndIsrRequest(2, epoch, 1, {P: state}),
        }
        before = broker.replicas.partitions[P].leader_epoch if P in broker.replicas.partitions else None
        connection = host.connect("broker-1", "control", FakeEndpoint(host.clock))
        broker.receive_request(Exchange(connection, 1, bodies[api]))
        error = host.responses[-1].body.error
        assert error == (errors.STALE_CONTROLLER_EPOCH if epoch < highest else errors.NONE)
        if error != errors.NONE and before is not None:
            assert broker.replicas.partitions[P].leader_epoch == before, "a refused request changes nothing"
        highest = max(highest, epoch)


@pytest.mark.soak(size=6, rounds_in_test=1, rounds_in_soak=60)
def test_the_first_creator_of_the_controller_node_leads_and_each_election_raises_the_epoch(
    numbers: range,
) -> None:
    """KafkaController.elect, KafkaZkClient.registerControllerAndIncrementControllerEpoch.

    Deleting the controller's node restarts no broker.
    """
    for seed in numbers:
        spec = ClusterSpec(
            brokers=tuple(BrokerSpec(id=number) for number in range(3)),
            topics=(TopicSpec(name="t", partitions=1, replication_factor=3),),
        )
        cluster = Cluster(spec, "2.4", Behaviours(), Choices.from_seed(seed))
        cluster.start()
        incarnations = {broker: process.incarnation for broker, process in cluster.processes.items()}
        elected = list(select(cluster.trace.events, ControllerElected))
        for _ in range(4):
            cluster.delete_controller_znode()
            cluster.simulator.run_until(cluster.simulator.now_us + 3 * SECOND)
            elected = list(select(cluster.trace.events, ControllerElected))
            assert elected[-1].broker == cluster.controller()
        assert [line.controller_epoch for line in elected] == list(range(1, 6))
        assert {broker: process.incarnation for broker, process in cluster.processes.items()} == incarnations
