"""Brokers and the active controller of KRaft, in a whole cluster."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from harrow.cluster_model import errors, events
from harrow.cluster_model.cluster import Cluster
from harrow.cluster_model.controller.alter_partition_manager import _outcome
from harrow.cluster_model.controller.control_plane import INELIGIBLE, OUTDATED
from harrow.cluster_model.controller.node_to_controller_channel import NodeToControllerChannel
from harrow.cluster_model.kraft import protocol
from harrow.cluster_model.kraft.broker_lifecycle import KRaftBrokerLifecycle
from harrow.cluster_model.kraft.cluster_image import ClusterImage
from harrow.cluster_model.kraft.control_plane import QuorumControlPlane
from harrow.cluster_model.kraft.metadata_log import MetadataLog
from harrow.cluster_model.kraft.quorum_controller import QuorumController
from harrow.cluster_model.kraft.raft import QuorumConfig
from harrow.cluster_model.kraft.records import PartitionRecord
from harrow.cluster_model.protocol import AlterPartition, AlterPartitionRequest, AlterPartitionResponse
from harrow.cluster_model.release.kraft import WHILE_SILENT
from harrow.cluster_model.release.profiles import RELEASES, Behaviours
from harrow.cluster_model.release.switch import NEVER
from harrow.cluster_model.settings import broker_config
from harrow.cluster_model.sim.choices import Choices
from harrow.cluster_model.sim.connection import Reply
from harrow.cluster_model.sim.message import Body
from harrow.cluster_model.topology import KRAFT, BrokerSpec, ClusterSpec, DiskSpec, TopicSpec
from tests.cluster_model.fakes import FakeHost, FakeListener

SECOND = 1_000_000
PARTITION = "t-0"


class KraftCluster:
    """Three brokers, three controllers, a topic with three replicas."""

    def __init__(
        self,
        *,
        voters: int = 3,
        combined: bool = False,
        settings: dict[str, Any] | None = None,
        log_dirs: int = 1,
        **switches: Any,
    ) -> None:
        spec = ClusterSpec(
            brokers=tuple(BrokerSpec(id=number) for number in range(3)),
            topics=(TopicSpec(name="t", assignment=((0, 1, 2),), replication_factor=3),),
            metadata=KRAFT,
            voters=voters,
            combined=combined,
            settings=settings or {},
            disk=DiskSpec(log_dirs=log_dirs),
        )
        behaviours = Behaviours().with_switches(
            **{"maximal_isr": True, "isr_expansion_checks_registration": True, **switches}
        )
        self.cluster = Cluster(spec, "2.4", behaviours, Choices.from_seed(1))
        self.cluster.start()

    @property
    def controller(self) -> int:
        controller = self.cluster.controller()
        assert controller is not None
        return controller

    @property
    def active(self) -> QuorumController:
        plane = self.cluster.control_plane
        assert isinstance(plane, QuorumControlPlane)
        return plane._nodes[self.controller]

    def run(self, seconds: float) -> None:
        self.cluster.simulator.run_until(self.cluster.simulator.now_us + int(seconds * SECOND))

    def state(self) -> tuple[int, int, tuple[int, ...]]:
        state = self.cluster.partition_state(PARTITION)
        assert state is not None
        return state.leader, state.leader_epoch, state.isr

    def events_named(self, kind: type[events.Event]) -> list[tuple[Any, ...]]:
        return [event for event in self.cluster.trace.events if event[1] == kind.name]


@pytest.mark.parametrize("voters", [1, 3, 5])
def test_a_cluster_is_ready_at_time_zero(voters: int) -> None:
    harness = KraftCluster(voters=voters)
    assert harness.state() == (0, 0, (0, 1, 2))
    assert harness.controller >= 3_000
    assert harness.cluster.leader(0, PARTITION).is_leader()


def test_combined_controllers_are_brokers() -> None:
    assert KraftCluster(combined=True).controller in (0, 1, 2)


def test_a_broker_without_heartbeats_is_fenced_and_loses_its_leaderships() -> None:
    harness = KraftCluster(settings={"broker.session.timeout.ms": 6_000})
    harness.cluster.crash_broker(0, power_loss=False)
    harness.run(3.5)
    assert harness.state() == (0, 0, (0, 1, 2))
    harness.run(3)
    assert harness.state() == (1, 1, (1, 2))
    assert not harness.cluster.is_registered(0)


def test_a_killed_broker_registers_again_when_its_session_has_expired() -> None:
    """ClusterControlManager.registerBroker: DUPLICATE_BROKER_REGISTRATION until then."""
    harness = KraftCluster()
    harness.cluster.crash_broker(0, power_loss=False)
    harness.cluster.start_broker(0)
    harness.run(6)
    assert harness.state() == (0, 0, (0, 1, 2))
    harness.run(12)
    assert harness.state()[:2] == (1, 1)
    assert sorted(harness.state()[2]) == [0, 1, 2]


def test_a_broker_loses_its_leaderships_before_it_stops() -> None:
    harness = KraftCluster()
    harness.cluster.stop_broker(0)
    harness.run(0.3)
    assert harness.state() == (1, 1, (1, 2))
    assert not harness.events_named(events.BrokerStopped)
    harness.run(5)
    assert [event[2:] for event in harness.events_named(events.BrokerStopped)] == [(0, events.SHUT_DOWN)]
    assert harness.events_named(events.SessionClosed)
    assert not harness.events_named(events.SessionExpired)


def test_the_next_controller_completes_a_controlled_shutdown() -> None:
    harness = KraftCluster()
    harness.cluster.stop_broker(0)
    harness.run(0.2)
    assert harness.state()[0] == 1
    harness.cluster.crash_broker(harness.controller, power_loss=False)
    harness.run(15)
    assert [event[2:] for event in harness.events_named(events.BrokerStopped)][-1] == (0, events.SHUT_DOWN)


def test_a_lost_disk_makes_a_shutdown_unclean() -> None:
    harness = KraftCluster(eligible_leader_replicas=True, settings={"min.insync.replicas": 2})
    harness.cluster.crash_broker(2, power_loss=False)
    harness.run(12)
    harness.cluster.stop_broker(1)
    harness.run(8)
    assert harness.active.image.partitions[PARTITION].elr == (1,)
    harness.cluster.lose_disk(1)
    harness.cluster.start_broker(1)
    harness.run(0.5)
    assert harness.active.image.partitions[PARTITION].elr == ()


@pytest.mark.parametrize(
    ("fails", "elr"), [("never", (1,)), ("before it stops", ()), ("before it starts", ())]
)
def test_a_failed_log_directory_makes_a_shutdown_unclean(fails: str, elr: tuple[int, ...]) -> None:
    """LogManager.readBrokerEpochFromCleanShutdownFiles: without a file in each directory there is
    no epoch."""
    settings = {"min.insync.replicas": 2}
    harness = KraftCluster(eligible_leader_replicas=True, settings=settings, log_dirs=3)
    harness.cluster.disks[1].dir_by_partition[PARTITION] = 1
    harness.cluster.crash_broker(2, power_loss=False)
    harness.run(12)
    if fails == "before it stops":
        harness.cluster.fail_log_dir(1, 2)
    harness.cluster.stop_broker(1)
    harness.run(8)
    assert harness.active.image.partitions[PARTITION].elr == (1,)
    if fails == "before it stops":
        harness.cluster.repair_log_dir(1, 2)
    if fails == "before it starts":
        harness.cluster.fail_log_dir(1, 2)
    harness.cluster.start_broker(1)
    harness.run(0.5)
    assert harness.active.image.partitions[PARTITION].elr == elr


def test_the_effective_min_isr_is_limited_by_the_replicas_of_the_first_partition() -> None:
    """ReplicationControlManager.getTopicEffectiveMinIsr."""
    harness = KraftCluster(eligible_leader_replicas=True, settings={"min.insync.replicas": 3})
    active, partition = harness.active, harness.active.image.partitions[PARTITION]
    assert active._elr_min_isr(PARTITION) == 3
    active._write(
        (replace(partition, replicas=(0,), isr=(0,), partition_epoch=partition.partition_epoch + 1),),
        lambda _: None,
    )
    other = PartitionRecord("t-1", (0, 1, 2), 0, 0, (0, 1, 2), 0)
    active._write((other,), lambda _: None)
    assert active._elr_min_isr("t-1") == 1


def test_the_next_controller_knows_which_replicas_are_in_failed_log_directories() -> None:
    """BrokerRegistrationChangeRecord.logDirs: elections use the metadata log, not the next
    heartbeats."""
    harness = KraftCluster(log_dirs=2, log_dir_failure_reported=True)
    harness.cluster.disks[1].dir_by_partition[PARTITION] = 1
    harness.cluster.fail_log_dir(1, 1)
    harness.run(20)
    assert harness.active.image.brokers[1].offline == {PARTITION}
    before = harness.active
    image = ClusterImage.of_snapshot(before.image.write(), before.image.next_offset)
    assert image.brokers[1].offline == {PARTITION}
    harness.cluster.crash_broker(harness.controller, power_loss=False)
    harness.run(4)
    assert harness.active is not before
    assert harness.active.image.brokers[1].offline == {PARTITION}
    assert not harness.active.image.may_lead(PARTITION, 1)
    assert harness.active.image.may_lead("t-1", 1)


@pytest.mark.parametrize("combined", [True, False])
def test_a_controller_that_loses_its_disk_loses_its_vote_and_its_metadata_log(combined: bool) -> None:
    harness = KraftCluster(combined=combined)
    plane = harness.cluster.control_plane
    assert isinstance(plane, QuorumControlPlane)
    node = harness.controller
    epoch = plane._logs[node].epoch
    assert plane.has_metadata_log(node)
    harness.cluster.crash_broker(node, power_loss=False)
    harness.cluster.lose_disk(node)
    assert (plane._logs[node].end_offset, plane._logs[node].epoch, plane._logs[node].voted_for) == (0, 0, -1)
    harness.cluster.start_broker(node)
    harness.run(10)
    assert plane._logs[node].epoch > epoch
    assert plane._changes.are_all_in(plane._logs[node])
    assert not harness.events_named(events.InvariantBroken)


def test_losing_the_disks_of_a_majority_loses_committed_metadata() -> None:
    harness = KraftCluster()
    plane = harness.cluster.control_plane
    for node in (3_000, 3_001):
        harness.cluster.crash_broker(node, power_loss=False)
        harness.cluster.lose_disk(node)
    assert [event[-1] for event in harness.events_named(events.MetadataLogLost)] == [True, False]
    assert not plane.keeps_metadata_without(3_002)
    harness.cluster.crash_broker(3_002, power_loss=False)
    for node in (3_000, 3_001):
        harness.cluster.start_broker(node)
    harness.run(5)
    assert harness.controller in (3_000, 3_001)
    assert "committed-metadata-kept" in {event[2] for event in harness.events_named(events.InvariantBroken)}
    assert harness.cluster.partition_state(PARTITION) is None, "the cluster has lost its topics"


def test_a_node_stops_instead_of_truncating_committed_metadata() -> None:
    """KafkaMetadataLog.truncateTo: the next incarnation has no high watermark, and adopts the
    leader's log."""
    harness = KraftCluster(voters=1)
    plane = harness.cluster.control_plane
    assert isinstance(plane, QuorumControlPlane)
    epoch = plane._logs[3_000].epoch
    harness.cluster.crash_broker(3_000, power_loss=False)
    harness.cluster.lose_disk(3_000)
    plane._logs[3_000].epoch = epoch
    harness.cluster.start_broker(3_000)
    harness.run(10)
    assert not any(process.running for process in harness.cluster.processes.values())
    for broker in range(3):
        harness.cluster.start_broker(broker)
    harness.run(20)
    assert all(harness.cluster.is_registered(broker) for broker in range(3))


@pytest.mark.parametrize(("kafka", "leader"), [("3.6", -1), ("3.9", 0)])
def test_kraft_applies_unclean_leader_election_from_3_9_on(kafka: str, leader: int) -> None:
    """ConfigurationControlManager.uncleanLeaderElectionEnabledForTopic (KAFKA-12670)."""
    behaviours = RELEASES[kafka].behaviours
    harness = KraftCluster(
        settings={"unclean.leader.election.enable": True},
        **{
            name: behaviours.value(name)
            for name in ("kraft_allows_unclean_election", "eligible_leader_replicas")
        },
    )
    for broker in (0, 1):
        harness.cluster.crash_broker(broker, power_loss=False)
    harness.run(12)
    harness.cluster.crash_broker(2, power_loss=False)
    harness.cluster.start_broker(0)
    harness.run(20)
    assert harness.state()[0] == leader


@pytest.mark.parametrize(("kafka", "leader"), [("3.6", 0), ("3.9", 1)])
def test_the_controller_learns_of_a_failed_log_directory_from_3_7_on(kafka: str, leader: int) -> None:
    """BrokerLifecycleManager.propagateDirectoryFailure (KIP-858)."""
    harness = KraftCluster(
        log_dirs=2, log_dir_failure_reported=RELEASES[kafka].behaviours.kraft.log_dir_failure_reported
    )
    harness.cluster.disks[0].dir_by_partition[PARTITION] = 1
    harness.cluster.fail_log_dir(0, 1)
    harness.run(20)
    assert [event[2:4] for event in harness.events_named(events.LogDirFailed)] == [(0, 1)]
    assert harness.cluster.processes[0].running
    assert harness.state()[0] == leader


def test_a_broker_stops_when_the_directory_of_its_metadata_log_fails() -> None:
    """ReplicaManager.handleLogDirFailure (metadataLogDir): even without partitions in it."""
    harness = KraftCluster(log_dirs=2)
    harness.cluster.fail_log_dir(0, 0)
    harness.run(40)
    assert not harness.cluster.processes[0].running
    harness.cluster.start_broker(0)
    harness.run(1)
    assert not harness.cluster.processes[0].running, "it cannot start without the directory"
    harness.cluster.repair_log_dir(0, 0)
    harness.cluster.start_broker(0)
    harness.run(20)
    assert harness.cluster.is_registered(0)


def request_times(harness: KraftCluster, api: str, sender: str, kind: str = "request") -> list[int]:
    """Return the arrival times of a sender's requests of an API, in microseconds."""
    return [
        event[0]
        for event in harness.events_named(events.MessageDelivered)
        if (event[2], event[3], event[4]) == (api, kind, sender)
    ]


def crash_controllers(harness: KraftCluster) -> None:
    for node in harness.cluster.control_plane.servers:
        harness.cluster.crash_broker(node, power_loss=False)


def test_a_refused_registration_is_retried_after_100_ms_doubled_each_time() -> None:
    """BrokerLifecycleManager.resendExponentialBackoff, with a jitter of 2 %."""
    harness = KraftCluster(settings={"broker.session.timeout.ms": 3_000})
    harness.cluster.crash_broker(0, power_loss=False)
    harness.cluster.network.watch_messages()
    harness.cluster.start_broker(0)
    harness.run(4)
    times = request_times(harness, "BrokerRegistration", "broker-0")
    gaps = [(after - before) // 1_000 for before, after in pairwise(times)]
    assert len(gaps) >= 4
    assert all(
        98 << place <= gap <= (102 << place) + 5 for place, gap in enumerate(gaps) if 100 << place < 3_000
    )


def test_a_broker_that_cannot_register_gives_up_after_a_minute() -> None:
    """initial.broker.registration.timeout.ms."""
    harness = KraftCluster()
    crash_controllers(harness)
    harness.cluster.crash_broker(0, power_loss=False)
    harness.cluster.start_broker(0)
    harness.run(59)
    assert len(harness.events_named(events.BrokerStopped)) == 4
    harness.run(2)
    assert harness.events_named(events.BrokerStopped)[-1][2:] == (0, events.KILLED)
    assert not harness.cluster.processes[0].running


def test_a_broker_that_is_about_to_give_up_is_restarted_by_a_heal() -> None:
    harness = KraftCluster()
    crash_controllers(harness)
    for broker in (0, 1):
        harness.cluster.crash_broker(broker, power_loss=False)
    harness.cluster.start_broker(0)
    harness.run(30)
    harness.cluster.start_broker(1)
    harness.run(28)
    harness.cluster.heal()
    harness.run(30)
    assert sorted(harness.state()[2]) == [0, 1, 2]
    started = [event[2] for event in harness.events_named(events.BrokerStarted) if event[2] in (0, 1)]
    assert started[-2:].count(1) == 1 or started.count(0) > started.count(1)


def test_a_broker_that_shut_down_cleanly_registers_at_once() -> None:
    harness = KraftCluster()
    harness.cluster.stop_broker(0)
    harness.run(6)
    harness.cluster.start_broker(0)
    harness.run(5)
    assert harness.state() == (1, 1, (1, 2, 0))


@pytest.mark.parametrize(("keeps", "isr"), [(False, (1, 2, 0)), (True, (1, 2))])
def test_from_4_0_on_a_broker_registers_only_a_session_after_its_last_heartbeat(
    keeps: bool, isr: tuple[int, ...]
) -> None:
    """BrokerHeartbeatTracker.java."""
    harness = KraftCluster(fenced_broker_keeps_session=keeps)
    harness.cluster.stop_broker(0)
    while harness.cluster.processes[0].running:
        harness.run(0.1)
    harness.cluster.start_broker(0)
    harness.run(4)
    assert harness.state() == (1, 1, isr)
    harness.run(12)
    assert harness.state() == (1, 1, (1, 2, 0))


def test_a_fenced_broker_keeps_its_session() -> None:
    harness = KraftCluster(fenced_broker_keeps_session=True)
    harness.active.expire_session(0)
    broker = harness.active.image.brokers[0]
    assert broker.fenced
    request = protocol.BrokerRegistrationRequest(0, broker.incarnation + 1, broker.broker_epoch)
    _, answer = harness.active._register(request)
    assert isinstance(answer, protocol.BrokerRegistrationResponse)
    assert answer.error == errors.DUPLICATE_BROKER_REGISTRATION


def test_when_the_controller_dies_another_continues_from_the_committed_metadata() -> None:
    harness = KraftCluster()
    first = harness.controller
    harness.cluster.crash_broker(first, power_loss=False)
    harness.run(6)
    assert harness.controller != first
    harness.cluster.crash_broker(0, power_loss=False)
    harness.run(12)
    assert harness.state() == (1, 1, (1, 2))


def test_a_new_controller_gives_every_broker_a_whole_session() -> None:
    harness = KraftCluster()
    harness.cluster.crash_broker(0, power_loss=False)
    harness.run(6)
    harness.cluster.crash_broker(harness.controller, power_loss=False)
    harness.run(6)
    # Twelve seconds of silence, but only about five under the new controller.
    assert harness.state() == (0, 0, (0, 1, 2))
    harness.run(8)
    assert harness.state() == (1, 1, (1, 2))


def test_without_a_majority_nothing_changes() -> None:
    harness = KraftCluster()
    for node in list(harness.cluster.control_plane.servers)[:2]:
        harness.cluster.crash_broker(node, power_loss=False)
    harness.cluster.crash_broker(0, power_loss=False)
    harness.run(30)
    assert harness.state() == (0, 0, (0, 1, 2))


def test_an_isolated_controller_commits_no_fencing() -> None:
    """It receives no heartbeats, but its decisions are not committed."""
    harness = KraftCluster()
    cut_off, network = harness.controller, harness.cluster.network
    for name in [process.name for process in harness.cluster.nodes.values()]:
        if name != f"controller-{cut_off}":
            network.cut(name, f"controller-{cut_off}")
            network.cut(f"controller-{cut_off}", name)
    harness.run(20)
    assert harness.state() == (0, 0, (0, 1, 2))
    assert harness.controller != cut_off


def request(harness: KraftCluster, isr: tuple[tuple[int, int], ...], **others: int) -> AlterPartitionRequest:
    epoch = harness.active.image.brokers[0].broker_epoch
    alteration = AlterPartition(others.get("leader_epoch", 0), others.get("partition_epoch", 0), isr)
    return AlterPartitionRequest(0, others.get("broker_epoch", epoch), {PARTITION: alteration})


@pytest.mark.parametrize(
    ("isr", "others", "error"),
    [
        ((0, 1), {}, errors.NONE),
        ((0, 1), {"leader_epoch": 1}, errors.NOT_CONTROLLER),
        ((0, 1), {"partition_epoch": 1}, errors.NOT_CONTROLLER),
        ((0, 1), {"leader_epoch": -1}, errors.FENCED_LEADER_EPOCH),
        ((0, 1), {"partition_epoch": -1}, errors.INVALID_UPDATE_VERSION),
        ((1, 2), {}, errors.INVALID_REQUEST),
    ],
)
def test_only_the_leader_writes_an_isr_in_its_epoch_on_top_of_the_current_state(
    isr: tuple[int, ...], others: dict[str, int], error: str
) -> None:
    harness = KraftCluster()
    members = tuple((member, -1) for member in isr)
    _, answer = harness.active._alter_partitions(request(harness, members, **others))
    assert isinstance(answer, AlterPartitionResponse)
    assert answer.partitions[PARTITION][0] == error


def test_a_request_with_an_old_broker_epoch_is_refused() -> None:
    harness = KraftCluster()
    _, answer = harness.active._alter_partitions(request(harness, ((0, -1),), broker_epoch=0))
    assert isinstance(answer, AlterPartitionResponse)
    assert answer.error == errors.STALE_BROKER_EPOCH


@pytest.mark.parametrize(
    ("checked", "offset", "error"),
    [(True, 0, errors.NONE), (True, -1, errors.INELIGIBLE_REPLICA), (False, -1, errors.NONE)],
)
def test_a_follower_joins_the_isr_only_in_the_incarnation_that_fetched(
    checked: bool, offset: int, error: str
) -> None:
    """KIP-903."""
    harness = KraftCluster(isr_expansion_checks_broker_epoch=checked)
    epoch = harness.active.image.brokers[1].broker_epoch + offset
    _, answer = harness.active._alter_partitions(request(harness, ((0, -1), (1, epoch))))
    assert isinstance(answer, AlterPartitionResponse)
    assert answer.partitions[PARTITION][0] == error


@pytest.mark.parametrize("checked", [False, True])
def test_a_leader_knows_the_broker_epochs_of_its_followers_fetches(checked: bool) -> None:
    """KIP-903."""
    harness = KraftCluster(isr_expansion_checks_broker_epoch=checked)
    harness.run(1)
    replica = harness.cluster.leader(0, PARTITION).remote_replicas[1]
    assert replica.broker_epoch == (harness.active.image.brokers[1].broker_epoch if checked else -1)


def test_a_fenced_broker_may_not_join_the_isr() -> None:
    """KIP-841."""
    harness = KraftCluster()
    harness.cluster.crash_broker(2, power_loss=False)
    harness.run(12)
    assert harness.state() == (0, 0, (0, 1))
    partition_epoch = harness.active.image.partitions[PARTITION].partition_epoch
    _, answer = harness.active._alter_partitions(
        request(harness, ((0, -1), (1, -1), (2, -1)), partition_epoch=partition_epoch)
    )
    assert isinstance(answer, AlterPartitionResponse)
    assert answer.partitions[PARTITION][0] == errors.INELIGIBLE_REPLICA


def test_a_block_of_producer_ids_is_allocated_once() -> None:
    harness = KraftCluster()
    first, second = (
        harness.active._allocate_producer_ids(
            protocol.AllocateProducerIdsRequest(0, harness.active.image.brokers[0].broker_epoch)
        )
        for _ in range(2)
    )
    assert first == second, "no block is allocated yet"
    harness.active._write(first[0], lambda _: None)
    _, answer = harness.active._allocate_producer_ids(
        protocol.AllocateProducerIdsRequest(0, harness.active.image.brokers[0].broker_epoch)
    )
    assert isinstance(answer, protocol.AllocateProducerIdsResponse)
    assert answer.first == protocol.PRODUCER_IDS_BLOCK


@pytest.mark.parametrize(("elr", "isr"), [(False, (0,)), (True, ())])
def test_the_last_member_of_an_isr_stays_in_it_unless_there_are_elrs(elr: bool, isr: tuple[int, ...]) -> None:
    """KIP-966, from 4.1 on."""
    harness = KraftCluster(eligible_leader_replicas=elr, settings={"min.insync.replicas": 2})
    for broker in (2, 1, 0):
        harness.cluster.crash_broker(broker, power_loss=False)
        harness.run(12)
    assert harness.state() == (-1, 1, isr)
    for broker in (1, 0):
        harness.cluster.start_broker(broker)
    harness.run(15)
    assert harness.state()[0] >= 0


def test_a_broker_that_stopped_uncleanly_is_no_longer_eligible() -> None:
    harness = KraftCluster(eligible_leader_replicas=True, settings={"min.insync.replicas": 2})
    harness.cluster.crash_broker(2, power_loss=False)
    harness.run(12)
    harness.cluster.crash_broker(1, power_loss=False)
    harness.run(12)
    assert harness.active.image.partitions[PARTITION].elr == (1,)
    harness.cluster.crash_broker(0, power_loss=False)
    harness.run(12)
    assert harness.active.image.partitions[PARTITION].elr == (1, 0)
    harness.cluster.start_broker(1)
    harness.run(3)
    # Broker 1 may have lost records that broker 0 has.
    assert harness.state()[0] == -1
    assert harness.active.image.partitions[PARTITION].elr == (0,)


# Stopping


def test_a_combined_controller_has_a_successor_before_it_stops() -> None:
    """KafkaRaftServer.shutdown: the broker stops first, then the controller resigns
    (EndQuorumEpoch)."""
    harness = KraftCluster(combined=True)
    first = harness.controller
    harness.cluster.stop_broker(first)
    while harness.cluster.processes[first].running:
        harness.run(0.01)
    assert harness.cluster.control_plane.controller() not in (None, first)
    resigned, succeeded = (
        harness.events_named(events.ControllerResigned)[-1],
        harness.events_named(events.ControllerElected)[-1],
    )
    assert succeeded[0] - resigned[0] < 500_000, "the others waited for their fetch timeout"


def test_a_controller_in_its_own_process_has_a_successor_before_it_stops() -> None:
    harness = KraftCluster()
    first = harness.controller
    harness.cluster.stop_broker(first)
    harness.run(0.5)
    assert harness.controller != first
    assert harness.events_named(events.BrokerStopped)[-1][2:] == (first, events.SHUT_DOWN)


def test_a_broker_in_controlled_shutdown_stops_fetching_from_brokers() -> None:
    """ReplicaManager.applyLocalFollowersDelta.

    With ZooKeeper it still fetches, and may rejoin ISRs.
    """
    harness = KraftCluster()
    harness.cluster.network.watch_messages()
    harness.cluster.stop_broker(0)
    harness.run(0.2)
    assert harness.state() == (1, 1, (1, 2))
    harness.run(1)
    assert harness.cluster.processes[0].running
    fetched_from = {
        event[5]
        for event in harness.events_named(events.MessageDelivered)
        if event[2:5] == ("Fetch", "request", "broker-0")
    }
    assert not [name for name in fetched_from if name.startswith("broker-")]
    assert harness.state() == (1, 1, (1, 2))


def test_a_broker_that_dies_in_controlled_shutdown_returns_after_its_session() -> None:
    """A controller of 4.3.1 refuses it earlier, despite KAFKA-19047."""
    harness = KraftCluster()
    harness.cluster.stop_broker(0)
    harness.run(0.1)
    harness.cluster.crash_broker(0, power_loss=False)
    harness.cluster.start_broker(0)
    harness.run(3)
    assert 0 not in harness.state()[2]
    harness.run(12)
    assert 0 in harness.state()[2]


# ISR changes


def test_a_leader_whose_isr_was_refused_waits_for_the_metadata_log() -> None:
    """Partition.handleAlterPartitionError: FENCED_LEADER_EPOCH, INVALID_UPDATE_VERSION,
    INVALID_REQUEST."""
    harness = KraftCluster()
    leader = harness.cluster.leader(0, PARTITION)
    leader.pending_isr = (0, 1)
    assert not leader.isr_written((0, 1), "shrink", OUTDATED)
    pending = leader.pending_isr
    assert (pending, leader.isr) == ((0, 1), (0, 1, 2))
    harness.cluster.crash_broker(2, power_loss=False)
    harness.run(12)
    assert leader.pending_isr != pending
    assert leader.isr == (0, 1)


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (errors.NONE, 7),
        (errors.INELIGIBLE_REPLICA, INELIGIBLE),
        (errors.FENCED_LEADER_EPOCH, OUTDATED),
        (errors.INVALID_UPDATE_VERSION, OUTDATED),
        (errors.INVALID_REQUEST, OUTDATED),
    ],
)
def test_each_error_of_an_isr_change_has_an_outcome(error: str, outcome: int) -> None:
    assert _outcome(error, 7) == outcome


class Channel:
    """A broker's channel to a controller, whose answers the test decides."""

    def __init__(self) -> None:
        self.host = FakeHost("broker-0")
        self.answers: list[Any] = []
        self.channel = NodeToControllerChannel(
            *(self.host, protocol.server_name, protocol.CONTROLLER_LISTENER),
            *(30 * SECOND, lambda: 3_000, 4 * SECOND),
        )

    def send(self) -> AlterPartitionRequest:
        alteration = AlterPartition(0, 0, ((0, -1),))
        request = AlterPartitionRequest(0, 1, {PARTITION: alteration})
        self.channel.send(request, self.answers.append)
        return request

    def answer(self, error: str, of_partition: str = errors.NONE) -> None:
        message = self.host.take("AlterPartition")
        answer = AlterPartitionResponse(error, {PARTITION: (of_partition, 0)})
        message.connection.client_endpoint.receive_response(
            Reply(message.connection, message.correlation_id, answer)
        )


@pytest.mark.parametrize("of_partition", [False, True])
def test_a_request_that_a_former_controller_answered_is_sent_again(of_partition: bool) -> None:
    """NodeToControllerRequestThread.handleResponse checks every error in an answer."""
    channel = Channel()
    channel.send()
    if of_partition:
        channel.answer(errors.NONE, errors.NOT_CONTROLLER)
    else:
        channel.answer(errors.NOT_CONTROLLER)
    assert not channel.answers
    assert not channel.host.requests()
    channel.host.advance(50_000)
    channel.answer(errors.NONE, errors.INVALID_UPDATE_VERSION)
    (answer,) = channel.answers
    assert answer.partitions[PARTITION][0] == errors.INVALID_UPDATE_VERSION


def test_a_request_times_out_before_its_retry() -> None:
    """retryTimeoutMs: half a session for heartbeats."""
    channel = Channel()
    channel.send()
    channel.host.advance(3 * SECOND)
    channel.answer(errors.NOT_CONTROLLER)
    channel.host.advance(50_000)
    channel.host.advance(SECOND)
    channel.answer(errors.NOT_CONTROLLER)
    channel.host.advance(50_000)
    assert channel.answers == [None]
    assert not channel.host.requests()


# Heartbeats


class RegisteredBroker:
    """A registered broker, whose heartbeats the test answers."""

    def __init__(self) -> None:
        self.host = FakeHost("broker-0")
        config = broker_config("4.3", {})
        quorum = QuorumConfig(
            election_timeout_us=SECOND,
            election_backoff_max_us=SECOND,
            fetch_timeout_us=60 * SECOND,
            request_timeout_us=60 * SECOND,
            check_quorum=True,
            pre_vote=True,
            tells_high_watermark=True,
            election_backoff=NEVER,
            looks_for_leader=True,
            begin_epoch_repeated=WHILE_SILENT,
        )
        log = MetadataLog()
        log.leader = 3_000
        self.listener = FakeListener()
        self.ended = 0
        self.lifecycle = KRaftBrokerLifecycle(
            0, self.host, config, (3_000,), log, quorum, self.listener, lambda: False
        )
        self.lifecycle.start()
        self.answer("BrokerRegistration", protocol.BrokerRegistrationResponse(errors.NONE, 1))

    def answer(self, api: str, answer: Body) -> Any:
        message = self.host.take(api)
        message.connection.client_endpoint.receive_response(
            Reply(message.connection, message.correlation_id, answer)
        )
        return message.body

    def heartbeat(self, error: str = errors.NONE, **answer: bool) -> protocol.BrokerHeartbeatRequest:
        request: protocol.BrokerHeartbeatRequest = self.answer(
            "BrokerHeartbeat", protocol.BrokerHeartbeatResponse(error, **answer)
        )
        return request

    def next_after(self, milliseconds: int) -> None:
        """Check that the next heartbeat leaves after this time, not before."""
        assert not self.host.requests("BrokerHeartbeat")
        if milliseconds > 1:
            self.host.advance(milliseconds * 1_000 - 1)
            assert not self.host.requests("BrokerHeartbeat")
            self.host.advance(1)
        assert len(self.host.requests("BrokerHeartbeat")) == 1

    def run(self) -> None:
        """Bring it to RUNNING."""
        self.heartbeat(is_caught_up=True)
        self.heartbeat(is_caught_up=True, is_fenced=False)


def test_a_broker_that_catches_up_sends_a_heartbeat_every_ten_milliseconds() -> None:
    broker = RegisteredBroker()
    for _ in range(3):
        assert broker.heartbeat().want_fence
        broker.next_after(10)
    broker.heartbeat(is_caught_up=True)
    assert not broker.heartbeat(is_caught_up=True).want_fence
    broker.next_after(2_000)


def test_a_broker_learns_of_its_registration_when_it_has_caught_up_and_of_its_unfencing_later() -> None:
    broker = RegisteredBroker()
    broker.heartbeat(is_caught_up=True)
    broker.heartbeat(is_caught_up=True, is_fenced=True)
    assert (1 in broker.listener.log, "unfenced" in broker.listener.log) == (True, False)
    broker.next_after(2_000)
    broker.heartbeat(is_caught_up=True, is_fenced=False)
    assert broker.listener.log[-1] == "unfenced"


def test_a_refused_heartbeat_is_retried_after_100_ms_doubled_each_time() -> None:
    broker = RegisteredBroker()
    broker.run()
    broker.next_after(2_000)
    for milliseconds in (98, 196, 392):
        broker.heartbeat(errors.STALE_BROKER_EPOCH)
        broker.next_after(milliseconds)
    broker.heartbeat(is_fenced=False)
    broker.next_after(2_000)
    broker.heartbeat(errors.STALE_BROKER_EPOCH)
    broker.next_after(98)


def test_a_broker_in_shutdown_sends_a_heartbeat_at_once_after_50_ms_and_then_as_usual() -> None:
    broker = RegisteredBroker()
    broker.run()
    ended: list[int] = []
    broker.lifecycle.request_controlled_shutdown(lambda: ended.append(1))
    assert broker.heartbeat(is_fenced=False).want_shut_down
    broker.next_after(50)
    broker.heartbeat(is_fenced=False)
    broker.next_after(2_000)
    broker.heartbeat(is_fenced=False, should_shut_down=True)
    assert ended


def test_a_heartbeat_that_reports_a_failed_directory_and_unfences_changes_a_partition_once() -> None:
    harness = KraftCluster(eligible_leader_replicas=True, settings={"min.insync.replicas": 2})
    harness.cluster.crash_broker(0, power_loss=False)
    harness.run(12)
    active, image = harness.active, harness.active.image
    # The replica of broker 1 is lost too, but a new controller does not know it yet.
    partition = image.partitions[PARTITION]
    leaderless = replace(
        partition, leader=-1, isr=(), elr=(0, 1), partition_epoch=partition.partition_epoch + 1
    )
    active._write((leaderless,), lambda _: None)
    broker_epoch, offset = image.brokers[0].broker_epoch, image.next_offset - 1
    request = protocol.BrokerHeartbeatRequest(0, broker_epoch, offset, False, False, frozenset({PARTITION}))
    records, answer = active._heartbeat(request)
    active._write(records, lambda _: None)
    assert answer == protocol.BrokerHeartbeatResponse(errors.NONE, True, False, False)
    assert image.is_active(0)
    assert image.partitions[PARTITION].leader == 1
    changes = [record for _, record in active._log.records if isinstance(record, PartitionRecord)]
    assert [record.partition_epoch for record in changes] == list(range(len(changes)))


def test_a_failed_log_directory_is_reported_at_once_or_after_the_answer_in_flight() -> None:
    broker = RegisteredBroker()
    broker.run()
    broker.lifecycle.propagate_log_dir_failure((PARTITION,))
    assert broker.heartbeat(is_fenced=False).offline == {PARTITION}
    broker.next_after(2_000)
    broker.lifecycle.propagate_log_dir_failure(("t-1",))
    assert broker.heartbeat(is_fenced=False).offline == {PARTITION}
    assert broker.heartbeat(is_fenced=False).offline == {PARTITION, "t-1"}
