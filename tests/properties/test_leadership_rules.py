"""Kafka's rules of those who begin to lead or follow, and of the controller in ZooKeeper, each held to its own definition over drawn histories."""

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
from harrow.cluster_model.topology import BrokerSpec, ClusterSpec, TopicSpec
from harrow.cluster_model.trace import select
from harrow.cluster_model.zookeeper.alter_partition_manager import IsrChangePropagation
from harrow.cluster_model.zookeeper.service import protocol as zk
from harrow.cluster_model.zookeeper.service.client import ZooKeeperClient
from tests.cluster_model.broker.test_partition import LEADER
from tests.cluster_model.broker.test_replica_fetcher import P, follower_with
from tests.cluster_model.fakes import MS, SECOND, FakeEndpoint, FakeHost, batch
from tests.cluster_model.log.test_damaged_disk import manager_on
from tests.cluster_model.zookeeper.controller.test_controller_writes import CONFIG, TOPIC, Unwatched
from tests.properties.test_replication_protocol_rules import histories, parted
from tests.properties.test_replication_rules import Followed, Step, isrs, steps

# Leaders


@pytest.mark.soak(size=50, test=1, soak=100)
@settings(max_examples=50)
@given(
    release=st.sampled_from(["2.4", "2.8", "3.6", "4.3"]),
    terms=st.lists(st.tuples(st.booleans(), isrs, steps), min_size=1, max_size=4),
)
def test_who_becomes_leader_notes_its_epoch_at_its_leo_at_once_and_knows_no_position_of_its_followers(
    release: str, terms: list[tuple[bool, tuple[int, ...], list[Step]]]
) -> None:
    """Partition.makeLeader. One that goes on as leader in a new epoch keeps what it knows of them."""
    led = Followed((0, 1, 2), release)
    for epoch, (was_follower, isr, history) in enumerate(terms, start=2):
        for step in history:
            led.do(step)
        known = {b: r.log_end_offset for b, r in led.partition.remote_replicas.items()}
        if was_follower:
            led.partition.make_follower(led.state(1, (0, 1, 2), epoch * 2, led.partition.partition_epoch))
        state = led.state(LEADER, isr, epoch * 2 + 1, led.partition.partition_epoch + 1)
        led.partition.make_leader(state)
        assert led.partition.log.epochs.entries[-1] == (epoch * 2 + 1, led.leo)
        assert led.partition.leader_epoch_start == led.leo
        found = {b: r.log_end_offset for b, r in led.partition.remote_replicas.items()}
        assert found == (dict.fromkeys(known, UNKNOWN_OFFSET) if was_follower else known)


# Followers


@pytest.mark.soak(size=80, test=1, soak=100)
@settings(max_examples=80)
@given(
    release=st.sampled_from(["2.0", "2.4"]),
    common=histories,
    of_leader=histories,
    of_follower=histories,
    hw=st.integers(0, 4),
)
def test_a_follower_truncates_to_where_its_epochs_end_with_the_leader_and_asks_again_about_one_that_it_has_not(
    release: str, common: list[int], of_leader: list[int], of_follower: list[int], hw: int
) -> None:
    """AbstractFetcherThread.getOffsetTruncationState (KIP-101, KIP-279): each answer cuts as the rule says, and in the end the logs agree."""
    leaders, followers, leader = parted(common, of_leader, of_follower)
    hw = min(hw, sum(common))
    follower = follower_with(*followers, release=release, epoch=90, hw=hw)
    log = follower.partitions[P].log
    kept = sum(common)
    for _ in range(len(followers) + 2):
        asked = follower.host.requests("OffsetsForLeaderEpoch")
        if not asked:
            break
        ((_, own_epoch),) = [sent.body.partitions[P] for sent in asked]
        assert own_epoch == log.epochs.latest_epoch(), "it asks about its latest epoch"
        epoch, end_offset = leader.end_offset_for(own_epoch, len(leaders))
        before = log.log_end_offset
        # Where its own epochs up to the answered one end; without any, where its first one begins.
        own_end = next((start for e, start in log.epochs.entries if e > epoch), before)
        knows = [e for e, _ in log.epochs.entries if e <= epoch]
        if end_offset < 0:
            event("undefined")
            expected = kept = hw
        elif knows and knows[-1] != epoch:
            event("an epoch that it has not")
            expected = min(own_end, before)
        else:
            expected = min(end_offset, own_end, before)
        follower.answer_epoch(epoch, end_offset)
        assert log.log_end_offset == expected
    assert not follower.host.requests("OffsetsForLeaderEpoch")
    assert log.log_end_offset >= kept
    assert followers[: log.log_end_offset] == leaders[: log.log_end_offset]


# Recovery


@pytest.mark.soak(size=60, test=1, soak=100)
@settings(max_examples=60)
@given(
    sizes=st.lists(st.integers(1, 3), max_size=8),
    flushed=st.integers(0, 8),
    torn_after=st.one_of(st.none(), st.integers(0, 8)),
)
def test_what_is_not_flushed_is_lost_with_the_machine_and_recovery_cuts_at_the_first_bad_crc(
    sizes: list[int], flushed: int, torn_after: int | None
) -> None:
    """Log.recoverLog: what is kept is whole batches, all that was flushed, and no more than had been written back before the torn one."""
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


class Announced(ZooKeeperClient):
    """Takes the notifications of a leader, and says when each came."""

    def __init__(self, host: FakeHost) -> None:
        self.host = host
        self.came: list[tuple[int, tuple[str, ...]]] = []

    def submit(
        self,
        operations: tuple[zk.ZooKeeperOperation, ...],
        on_response: Callable[[zk.ZooKeeperResponse], None],
        **_: Any,
    ) -> None:
        (node,) = operations
        assert isinstance(node, zk.Create)
        assert node.sequential
        self.came.append((self.host.clock.now_us, cast("tuple[str, ...]", node.data)))
        on_response(zk.ZooKeeperResponse(zk.OK, ()))


@pytest.mark.soak(size=60, test=1, soak=100)
@settings(max_examples=60)
@given(
    changes=st.lists(st.tuples(st.integers(1, 9_000), st.sampled_from(["t-0", "t-1", "t-2"])), max_size=40)
)
def test_isr_changes_are_announced_together_once_five_seconds_are_quiet_or_sixty_have_passed(
    changes: list[tuple[int, str]],
) -> None:
    """ReplicaManager.maybePropagateIsrChanges: looked at every 2.5 s."""
    host = FakeHost("broker-0")
    zookeeper = Announced(host)
    propagation = IsrChangePropagation(host, zookeeper)
    propagation.start()
    made: list[tuple[int, str]] = []
    for gap_ms, partition in changes:
        host.advance(gap_ms * MS)
        made.append((host.clock.now_us, partition))
        propagation.note(partition)
    host.advance(70 * SECOND)
    begin = 0
    for at_us, partitions in zookeeper.came:
        told = [(when, name) for when, name in made[begin:] if when <= at_us]
        assert list(partitions) == list(dict.fromkeys(name for _, name in told)), (
            "what has changed since, once"
        )
        last_us = told[-1][0]
        before_us = zookeeper.came[zookeeper.came.index((at_us, partitions)) - 1][0] if begin else 0
        assert at_us - last_us > 5 * SECOND or at_us - before_us > 60 * SECOND
        if at_us - before_us <= 60 * SECOND:
            assert at_us - last_us <= 5 * SECOND + 2_500 * MS, "no later than the next look"
        begin += len(told)
    assert begin == len(made), "none is forgotten"


# The controller of ZooKeeper


@pytest.mark.soak(size=40, test=1, soak=100)
@settings(max_examples=40)
@given(
    asked=st.lists(
        st.tuples(st.integers(1, 5), st.sampled_from(["UpdateMetadata", "StopReplica", "LeaderAndIsr"])),
        max_size=12,
    )
)
def test_a_broker_refuses_requests_of_a_controller_epoch_below_the_highest_that_it_has_heard_of(
    asked: list[tuple[int, str]],
) -> None:
    """KafkaApis: STALE_CONTROLLER_EPOCH for each of the three."""
    host = FakeHost("broker-1")
    behaviours = Behaviours().with_switches(requests_after_registration=False)
    broker = Broker(1, host, Disk(), CONFIG, lambda _: TOPIC, behaviours, cast("ControlPlane", Unwatched()))
    highest = 0
    for leader_epoch, (epoch, api) in enumerate(asked):
        led = LeaderAndIsrPartitionState(epoch, LeaderAndIsr(1, leader_epoch, (1,), 0), (0, 1))
        requests: dict[str, Any] = {
            "UpdateMetadata": UpdateMetadataRequest(2, epoch, 1, {}, (1, 2)),
            "StopReplica": StopReplicaRequest(2, epoch, 1, ()),
            "LeaderAndIsr": LeaderAndIsrRequest(2, epoch, 1, {P: led}),
        }
        known = broker.replicas.partitions[P].leader_epoch if P in broker.replicas.partitions else None
        connection = host.connect("broker-1", "control", FakeEndpoint(host.clock))
        broker.receive_request(Exchange(connection, 1, requests[api]))
        error = host.responses[-1].body.error
        assert error == (errors.STALE_CONTROLLER_EPOCH if epoch < highest else errors.NONE)
        if error != errors.NONE and known is not None:
            assert broker.replicas.partitions[P].leader_epoch == known, "a refused request changes nothing"
        highest = max(highest, epoch)


@pytest.mark.soak(size=6, test=1, soak=60)
def test_who_creates_the_controller_node_first_leads_and_each_election_raises_the_epoch(
    numbers: range,
) -> None:
    """KafkaController.elect, KafkaZkClient.registerControllerAndIncrementControllerEpoch. To delete the node restarts no broker."""
    for seed in numbers:
        spec = ClusterSpec(
            brokers=tuple(BrokerSpec(id=number) for number in range(3)),
            topics=(TopicSpec(name="t", partitions=1, replication_factor=3),),
        )
        cluster = Cluster(spec, "2.4", Behaviours(), Choices.from_seed(seed))
        cluster.start()
        lives = {broker: process.incarnation for broker, process in cluster.processes.items()}
        elected = list(select(cluster.trace.events, ControllerElected))
        for _ in range(4):
            cluster.delete_controller_znode()
            cluster.simulator.run_until(cluster.simulator.now_us + 3 * SECOND)
            elected = list(select(cluster.trace.events, ControllerElected))
            assert elected[-1].broker == cluster.controller()
        assert [line.controller_epoch for line in elected] == list(range(1, 6))
        assert {broker: process.incarnation for broker, process in cluster.processes.items()} == lives
