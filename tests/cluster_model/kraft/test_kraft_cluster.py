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
from harrow.cluster_model.kraft import protocol as kraft
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
P = "t-0"


class Kraft:
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
        found = self.cluster.controller()
        assert found is not None
        return found

    @property
    def active(self) -> QuorumController:
        plane = self.cluster.control_plane
        assert isinstance(plane, QuorumControlPlane)
        return plane._nodes[self.controller]

    def run(self, seconds: float) -> None:
        self.cluster.simulator.run_until(self.cluster.simulator.now_us + int(seconds * SECOND))

    def state(self) -> tuple[int, int, tuple[int, ...]]:
        known = self.cluster.partition_state(P)
        assert known is not None
        return known.leader, known.leader_epoch, known.isr

    def named(self, kind: type[events.Event]) -> list[tuple[Any, ...]]:
        return [event for event in self.cluster.trace.events if event[1] == kind.name]


@pytest.mark.parametrize("voters", [1, 3, 5])
def test_a_cluster_is_ready_at_time_zero(voters: int) -> None:
    kraft_cluster = Kraft(voters=voters)
    assert kraft_cluster.state() == (0, 0, (0, 1, 2))
    assert kraft_cluster.controller >= 3_000
    assert kraft_cluster.cluster.leader(0, P).is_leader()


def test_combined_controllers_are_brokers() -> None:
    assert Kraft(combined=True).controller in (0, 1, 2)


def test_a_broker_that_is_not_heard_of_is_fenced_and_leads_nothing() -> None:
    known = Kraft(settings={"broker.session.timeout.ms": 6_000})
    known.cluster.crash_broker(0, power_loss=False)
    known.run(3.5)
    assert known.state() == (0, 0, (0, 1, 2))
    known.run(3)
    assert known.state() == (1, 1, (1, 2))
    assert not known.cluster.is_registered(0)


def test_a_broker_that_is_killed_registers_again_once_its_session_is_over() -> None:
    """ClusterControlManager.registerBroker: DUPLICATE_BROKER_REGISTRATION until then."""
    known = Kraft()
    known.cluster.crash_broker(0, power_loss=False)
    known.cluster.start_broker(0)
    known.run(6)
    assert known.state() == (0, 0, (0, 1, 2))
    known.run(12)
    assert known.state()[:2] == (1, 1)
    assert sorted(known.state()[2]) == [0, 1, 2]


def test_a_broker_that_stops_is_relieved_of_its_leaderships_first() -> None:
    known = Kraft()
    known.cluster.stop_broker(0)
    known.run(0.3)
    assert known.state() == (1, 1, (1, 2))
    assert not known.named(events.BrokerStopped)
    known.run(5)
    assert [event[2:] for event in known.named(events.BrokerStopped)] == [(0, events.SHUT_DOWN)]
    assert known.named(events.SessionClosed)
    assert not known.named(events.SessionExpired)


def test_a_broker_that_stops_is_let_go_by_the_next_controller() -> None:
    known = Kraft()
    known.cluster.stop_broker(0)
    known.run(0.2)
    assert known.state()[0] == 1
    known.cluster.crash_broker(known.controller, power_loss=False)
    known.run(15)
    assert [event[2:] for event in known.named(events.BrokerStopped)][-1] == (0, events.SHUT_DOWN)


def test_who_has_lost_its_disk_has_not_stopped_in_good_order() -> None:
    known = Kraft(eligible_leader_replicas=True, settings={"min.insync.replicas": 2})
    known.cluster.crash_broker(2, power_loss=False)
    known.run(12)
    known.cluster.stop_broker(1)
    known.run(8)
    assert known.active.image.partitions[P].elr == (1,)
    known.cluster.lose_disk(1)
    known.cluster.start_broker(1)
    known.run(0.5)
    assert known.active.image.partitions[P].elr == ()


@pytest.mark.parametrize(
    ("fails", "elr"), [("never", (1,)), ("before it stops", ()), ("before it starts", ())]
)
def test_a_broker_with_a_failed_log_directory_has_not_stopped_in_good_order(
    fails: str, elr: tuple[int, ...]
) -> None:
    """LogManager.readBrokerEpochFromCleanShutdownFiles: each directory has a file, or there is no epoch."""
    settings = {"min.insync.replicas": 2}
    known = Kraft(eligible_leader_replicas=True, settings=settings, log_dirs=3)
    known.cluster.disks[1].dir_by_partition[P] = 1
    known.cluster.crash_broker(2, power_loss=False)
    known.run(12)
    if fails == "before it stops":
        known.cluster.fail_log_dir(1, 2)
    known.cluster.stop_broker(1)
    known.run(8)
    assert known.active.image.partitions[P].elr == (1,)
    if fails == "before it stops":
        known.cluster.repair_log_dir(1, 2)
    if fails == "before it starts":
        known.cluster.fail_log_dir(1, 2)
    known.cluster.start_broker(1)
    known.run(0.5)
    assert known.active.image.partitions[P].elr == elr


def test_below_which_size_an_isr_leaves_an_elr_goes_by_the_first_partition() -> None:
    """ReplicationControlManager.getTopicEffectiveMinIsr."""
    known = Kraft(eligible_leader_replicas=True, settings={"min.insync.replicas": 3})
    active, led = known.active, known.active.image.partitions[P]
    assert active._elr_min_isr(P) == 3
    active._write(
        (replace(led, replicas=(0,), isr=(0,), partition_epoch=led.partition_epoch + 1),), lambda _: None
    )
    other = PartitionRecord("t-1", (0, 1, 2), 0, 0, (0, 1, 2), 0)
    active._write((other,), lambda _: None)
    assert active._elr_min_isr("t-1") == 1


def test_the_next_controller_knows_which_replicas_are_in_failed_log_directories() -> None:
    """BrokerRegistrationChangeRecord.logDirs: an election goes by the metadata log, and not by the next heartbeats."""
    known = Kraft(log_dirs=2, log_dir_failure_reported=True)
    known.cluster.disks[1].dir_by_partition[P] = 1
    known.cluster.fail_log_dir(1, 1)
    known.run(20)
    assert known.active.image.brokers[1].offline == {P}
    before = known.active
    image = ClusterImage.of_snapshot(before.image.write(), before.image.next_offset)
    assert image.brokers[1].offline == {P}
    known.cluster.crash_broker(known.controller, power_loss=False)
    known.run(4)
    assert known.active is not before
    assert known.active.image.brokers[1].offline == {P}
    assert not known.active.image.may_lead(P, 1)
    assert known.active.image.may_lead("t-1", 1)


@pytest.mark.parametrize("combined", [True, False])
def test_who_loses_its_disk_forgets_its_vote_and_what_it_had_of_the_metadata(combined: bool) -> None:
    known = Kraft(combined=combined)
    plane = known.cluster.control_plane
    assert isinstance(plane, QuorumControlPlane)
    node = known.controller
    epoch = plane._logs[node].epoch
    assert plane.has_metadata_log(node)
    known.cluster.crash_broker(node, power_loss=False)
    known.cluster.lose_disk(node)
    assert (plane._logs[node].end_offset, plane._logs[node].epoch, plane._logs[node].voted_for) == (0, 0, -1)
    known.cluster.start_broker(node)
    known.run(10)
    assert plane._logs[node].epoch > epoch
    assert plane._changes.are_all_in(plane._logs[node])
    assert not known.named(events.InvariantBroken)


def test_a_disk_more_than_a_minority_takes_what_is_committed() -> None:
    known = Kraft()
    plane = known.cluster.control_plane
    for node in (3_000, 3_001):
        known.cluster.crash_broker(node, power_loss=False)
        known.cluster.lose_disk(node)
    assert [event[-1] for event in known.named(events.MetadataLogLost)] == [True, False]
    assert not plane.keeps_metadata_without(3_002)
    known.cluster.crash_broker(3_002, power_loss=False)
    for node in (3_000, 3_001):
        known.cluster.start_broker(node)
    known.run(5)
    assert known.controller in (3_000, 3_001)
    assert "committed-metadata-kept" in {event[2] for event in known.named(events.InvariantBroken)}
    assert known.cluster.partition_state(P) is None, "the cluster knows no topic any more"


def test_a_node_that_would_have_to_cut_off_what_is_committed_ends() -> None:
    """KafkaMetadataLog.truncateTo; its next life knows of no high watermark, and takes what the leader has."""
    known = Kraft(voters=1)
    plane = known.cluster.control_plane
    assert isinstance(plane, QuorumControlPlane)
    epoch = plane._logs[3_000].epoch
    known.cluster.crash_broker(3_000, power_loss=False)
    known.cluster.lose_disk(3_000)
    plane._logs[3_000].epoch = epoch
    known.cluster.start_broker(3_000)
    known.run(10)
    assert not any(process.running for process in known.cluster.processes.values())
    for broker in range(3):
        known.cluster.start_broker(broker)
    known.run(20)
    assert all(known.cluster.is_registered(broker) for broker in range(3))


@pytest.mark.parametrize(("kafka", "leader"), [("3.6", -1), ("3.9", 0)])
def test_who_is_not_in_sync_is_elected_from_3_9_on_where_that_is_enabled(kafka: str, leader: int) -> None:
    """ConfigurationControlManager.uncleanLeaderElectionEnabledForTopic (KAFKA-12670)."""
    behaviours = RELEASES[kafka].behaviours
    known = Kraft(
        settings={"unclean.leader.election.enable": True},
        **{name: behaviours.value(name) for name in ("kraft_elects_uncleanly", "eligible_leader_replicas")},
    )
    for broker in (0, 1):
        known.cluster.crash_broker(broker, power_loss=False)
    known.run(12)
    known.cluster.crash_broker(2, power_loss=False)
    known.cluster.start_broker(0)
    known.run(20)
    assert known.state()[0] == leader


@pytest.mark.parametrize(("kafka", "leader"), [("3.6", 0), ("3.9", 1)])
def test_the_controller_hears_of_a_failed_log_directory_from_3_7_on(kafka: str, leader: int) -> None:
    """BrokerLifecycleManager.propagateDirectoryFailure (KIP-858)."""
    known = Kraft(
        log_dirs=2, log_dir_failure_reported=RELEASES[kafka].behaviours.kraft.log_dir_failure_reported
    )
    known.cluster.disks[0].dir_by_partition[P] = 1
    known.cluster.fail_log_dir(0, 1)
    known.run(20)
    assert [event[2:4] for event in known.named(events.LogDirFailed)] == [(0, 1)]
    assert known.cluster.processes[0].running
    assert known.state()[0] == leader


def test_a_broker_ends_when_the_directory_with_its_metadata_log_fails() -> None:
    """ReplicaManager.handleLogDirFailure (metadataLogDir): also where no partition is in it."""
    known = Kraft(log_dirs=2)
    known.cluster.fail_log_dir(0, 0)
    known.run(40)
    assert not known.cluster.processes[0].running
    known.cluster.start_broker(0)
    known.run(1)
    assert not known.cluster.processes[0].running, "it cannot start either"
    known.cluster.repair_log_dir(0, 0)
    known.cluster.start_broker(0)
    known.run(20)
    assert known.cluster.is_registered(0)


def sent(known: Kraft, api: str, sender: str, kind: str = "request") -> list[int]:
    """Return when requests of an API have arrived, in microseconds."""
    return [
        event[0]
        for event in known.named(events.MessageDelivered)
        if (event[2], event[3], event[4]) == (api, kind, sender)
    ]


def without_controllers(known: Kraft) -> None:
    for node in known.cluster.control_plane.servers:
        known.cluster.crash_broker(node, power_loss=False)


def test_a_registration_that_was_refused_is_tried_again_after_100_ms_and_twice_as_long_each_time() -> None:
    """BrokerLifecycleManager.resendExponentialBackoff, give or take 2 %."""
    known = Kraft(settings={"broker.session.timeout.ms": 3_000})
    known.cluster.crash_broker(0, power_loss=False)
    known.cluster.network.watch_messages()
    known.cluster.start_broker(0)
    known.run(4)
    times = sent(known, "BrokerRegistration", "broker-0")
    gaps = [(after - before) // 1_000 for before, after in pairwise(times)]
    assert len(gaps) >= 4
    assert all(
        98 << place <= gap <= (102 << place) + 5 for place, gap in enumerate(gaps) if 100 << place < 3_000
    )


def test_a_broker_that_cannot_register_gives_up_after_a_minute() -> None:
    """initial.broker.registration.timeout.ms."""
    known = Kraft()
    without_controllers(known)
    known.cluster.crash_broker(0, power_loss=False)
    known.cluster.start_broker(0)
    known.run(59)
    assert len(known.named(events.BrokerStopped)) == 4
    known.run(2)
    assert known.named(events.BrokerStopped)[-1][2:] == (0, events.KILLED)
    assert not known.cluster.processes[0].running


def test_a_broker_that_would_give_up_soon_begins_anew_when_all_is_healed() -> None:
    known = Kraft()
    without_controllers(known)
    for broker in (0, 1):
        known.cluster.crash_broker(broker, power_loss=False)
    known.cluster.start_broker(0)
    known.run(30)
    known.cluster.start_broker(1)
    known.run(28)
    known.cluster.heal()
    known.run(30)
    assert sorted(known.state()[2]) == [0, 1, 2]
    started = [event[2] for event in known.named(events.BrokerStarted) if event[2] in (0, 1)]
    assert started[-2:].count(1) == 1 or started.count(0) > started.count(1)


def test_one_that_has_stopped_in_good_order_registers_at_once() -> None:
    known = Kraft()
    known.cluster.stop_broker(0)
    known.run(6)
    known.cluster.start_broker(0)
    known.run(5)
    assert known.state() == (1, 1, (1, 2, 0))


@pytest.mark.parametrize(("keeps", "isr"), [(False, (1, 2, 0)), (True, (1, 2))])
def test_from_4_0_on_it_registers_once_it_has_not_been_heard_of_for_a_session(
    keeps: bool, isr: tuple[int, ...]
) -> None:
    """BrokerHeartbeatTracker.java."""
    known = Kraft(fenced_broker_keeps_session=keeps)
    known.cluster.stop_broker(0)
    while known.cluster.processes[0].running:
        known.run(0.1)
    known.cluster.start_broker(0)
    known.run(4)
    assert known.state() == (1, 1, isr)
    known.run(12)
    assert known.state() == (1, 1, (1, 2, 0))


def test_a_broker_that_is_fenced_while_it_starts_keeps_its_session() -> None:
    known = Kraft(fenced_broker_keeps_session=True)
    known.active.expire_session(0)
    broker = known.active.image.brokers[0]
    assert broker.fenced
    request = kraft.BrokerRegistrationRequest(0, broker.incarnation + 1, broker.broker_epoch)
    _, answer = known.active._register(request)
    assert isinstance(answer, kraft.BrokerRegistrationResponse)
    assert answer.error == errors.DUPLICATE_BROKER_REGISTRATION


def test_when_the_controller_dies_another_goes_on_with_what_is_committed() -> None:
    known = Kraft()
    first = known.controller
    known.cluster.crash_broker(first, power_loss=False)
    known.run(6)
    assert known.controller != first
    known.cluster.crash_broker(0, power_loss=False)
    known.run(12)
    assert known.state() == (1, 1, (1, 2))


def test_a_new_controller_gives_every_broker_a_whole_session() -> None:
    known = Kraft()
    known.cluster.crash_broker(0, power_loss=False)
    known.run(6)
    known.cluster.crash_broker(known.controller, power_loss=False)
    known.run(6)
    # Twelve seconds of silence, of which the new controller has heard some five.
    assert known.state() == (0, 0, (0, 1, 2))
    known.run(8)
    assert known.state() == (1, 1, (1, 2))


def test_without_a_majority_nothing_changes() -> None:
    known = Kraft()
    for node in list(known.cluster.control_plane.servers)[:2]:
        known.cluster.crash_broker(node, power_loss=False)
    known.cluster.crash_broker(0, power_loss=False)
    known.run(30)
    assert known.state() == (0, 0, (0, 1, 2))


def test_a_controller_that_is_cut_off_fences_nobody_for_good() -> None:
    """It hears of no broker, and what it decides is not committed."""
    known = Kraft()
    cut_off, network = known.controller, known.cluster.network
    for name in [process.name for process in known.cluster.nodes.values()]:
        if name != f"controller-{cut_off}":
            network.cut(name, f"controller-{cut_off}")
            network.cut(f"controller-{cut_off}", name)
    known.run(20)
    assert known.state() == (0, 0, (0, 1, 2))
    assert known.controller != cut_off


def request(known: Kraft, isr: tuple[tuple[int, int], ...], **others: int) -> AlterPartitionRequest:
    epoch = known.active.image.brokers[0].broker_epoch
    wanted = AlterPartition(others.get("leader_epoch", 0), others.get("partition_epoch", 0), isr)
    return AlterPartitionRequest(0, others.get("broker_epoch", epoch), {P: wanted})


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
def test_an_isr_is_written_by_the_leader_in_its_epoch_if_nobody_was_faster(
    isr: tuple[int, ...], others: dict[str, int], error: str
) -> None:
    known = Kraft()
    members = tuple((member, -1) for member in isr)
    _, answer = known.active._alter_partitions(request(known, members, **others))
    assert isinstance(answer, AlterPartitionResponse)
    assert answer.partitions[P][0] == error


def test_a_request_of_a_former_life_is_refused() -> None:
    known = Kraft()
    _, answer = known.active._alter_partitions(request(known, ((0, -1),), broker_epoch=0))
    assert isinstance(answer, AlterPartitionResponse)
    assert answer.error == errors.STALE_BROKER_EPOCH


@pytest.mark.parametrize(
    ("checked", "offset", "error"),
    [(True, 0, errors.NONE), (True, -1, errors.INELIGIBLE_REPLICA), (False, -1, errors.NONE)],
)
def test_a_follower_joins_the_isr_only_in_the_life_in_which_it_fetched(
    checked: bool, offset: int, error: str
) -> None:
    """KIP-903."""
    known = Kraft(replica_epoch_checked=checked)
    epoch = known.active.image.brokers[1].broker_epoch + offset
    _, answer = known.active._alter_partitions(request(known, ((0, -1), (1, epoch))))
    assert isinstance(answer, AlterPartitionResponse)
    assert answer.partitions[P][0] == error


@pytest.mark.parametrize("checked", [False, True])
def test_a_leader_knows_in_which_life_its_followers_have_fetched(checked: bool) -> None:
    """KIP-903."""
    known = Kraft(replica_epoch_checked=checked)
    known.run(1)
    replica = known.cluster.leader(0, P).remote_replicas[1]
    assert replica.broker_epoch == (known.active.image.brokers[1].broker_epoch if checked else -1)


def test_a_fenced_broker_may_not_join_the_isr() -> None:
    """KIP-841."""
    known = Kraft()
    known.cluster.crash_broker(2, power_loss=False)
    known.run(12)
    assert known.state() == (0, 0, (0, 1))
    partition_epoch = known.active.image.partitions[P].partition_epoch
    _, answer = known.active._alter_partitions(
        request(known, ((0, -1), (1, -1), (2, -1)), partition_epoch=partition_epoch)
    )
    assert isinstance(answer, AlterPartitionResponse)
    assert answer.partitions[P][0] == errors.INELIGIBLE_REPLICA


def test_producer_ids_are_given_away_once() -> None:
    known = Kraft()
    first, second = (
        known.active._allocate_producer_ids(
            kraft.AllocateProducerIdsRequest(0, known.active.image.brokers[0].broker_epoch)
        )
        for _ in range(2)
    )
    assert first == second, "nothing was written yet"
    known.active._write(first[0], lambda _: None)
    _, answer = known.active._allocate_producer_ids(
        kraft.AllocateProducerIdsRequest(0, known.active.image.brokers[0].broker_epoch)
    )
    assert isinstance(answer, kraft.AllocateProducerIdsResponse)
    assert answer.first == kraft.PRODUCER_IDS_BLOCK


@pytest.mark.parametrize(("elr", "isr"), [(False, (0,)), (True, ())])
def test_the_last_member_of_an_isr_stays_in_it_unless_eligible_leaders_are_remembered(
    elr: bool, isr: tuple[int, ...]
) -> None:
    """KIP-966, from 4.1 on."""
    known = Kraft(eligible_leader_replicas=elr, settings={"min.insync.replicas": 2})
    for broker in (2, 1, 0):
        known.cluster.crash_broker(broker, power_loss=False)
        known.run(12)
    assert known.state() == (-1, 1, isr)
    for broker in (1, 0):
        known.cluster.start_broker(broker)
    known.run(15)
    assert known.state()[0] >= 0


def test_who_has_stopped_uncleanly_is_eligible_no_more() -> None:
    known = Kraft(eligible_leader_replicas=True, settings={"min.insync.replicas": 2})
    known.cluster.crash_broker(2, power_loss=False)
    known.run(12)
    known.cluster.crash_broker(1, power_loss=False)
    known.run(12)
    assert known.active.image.partitions[P].elr == (1,)
    known.cluster.crash_broker(0, power_loss=False)
    known.run(12)
    assert known.active.image.partitions[P].elr == (1, 0)
    known.cluster.start_broker(1)
    known.run(3)
    # It may have lost what 0 has.
    assert known.state()[0] == -1
    assert known.active.image.partitions[P].elr == (0,)


# Stopping


def test_a_combined_controller_that_stops_is_succeeded_before_it_is_gone() -> None:
    """KafkaRaftServer.shutdown: first the broker, then the controller, which resigns (EndQuorumEpoch)."""
    known = Kraft(combined=True)
    first = known.controller
    known.cluster.stop_broker(first)
    while known.cluster.processes[first].running:
        known.run(0.01)
    assert known.cluster.control_plane.controller() not in (None, first)
    resigned, succeeded = (
        known.named(events.ControllerResigned)[-1],
        known.named(events.ControllerElected)[-1],
    )
    assert succeeded[0] - resigned[0] < 500_000, "the others have waited for their fetch timeout"


def test_a_controller_in_a_process_of_its_own_that_stops_is_succeeded_before_it_is_gone() -> None:
    known = Kraft()
    first = known.controller
    known.cluster.stop_broker(first)
    known.run(0.5)
    assert known.controller != first
    assert known.named(events.BrokerStopped)[-1][2:] == (first, events.SHUT_DOWN)


def test_a_broker_in_controlled_shutdown_fetches_nothing_for_which_it_does_not_count() -> None:
    """ReplicaManager.applyLocalFollowersDelta; with ZooKeeper it goes on, and may come back into ISRs."""
    known = Kraft()
    known.cluster.network.watch_messages()
    known.cluster.stop_broker(0)
    known.run(0.2)
    assert known.state() == (1, 1, (1, 2))
    known.run(1)
    assert known.cluster.processes[0].running
    fetched_from = {
        event[5]
        for event in known.named(events.MessageDelivered)
        if event[2:5] == ("Fetch", "request", "broker-0")
    }
    assert not [name for name in fetched_from if name.startswith("broker-")]
    assert known.state() == (1, 1, (1, 2))


def test_a_broker_that_dies_in_its_controlled_shutdown_is_back_when_its_session_is_over() -> None:
    """A controller of 4.3.1 refuses it, whatever KAFKA-19047 was to change."""
    known = Kraft()
    known.cluster.stop_broker(0)
    known.run(0.1)
    known.cluster.crash_broker(0, power_loss=False)
    known.cluster.start_broker(0)
    known.run(3)
    assert 0 not in known.state()[2]
    known.run(12)
    assert 0 in known.state()[2]


# ISR changes


def test_a_leader_that_was_refused_asks_for_nothing_else_before_the_metadata_log_says_what_is_so() -> None:
    """Partition.handleAlterPartitionError: FENCED_LEADER_EPOCH, INVALID_UPDATE_VERSION, INVALID_REQUEST."""
    known = Kraft()
    leader = known.cluster.leader(0, P)
    leader.pending_isr = (0, 1)
    assert not leader.isr_written((0, 1), "shrink", OUTDATED)
    pending = leader.pending_isr
    assert (pending, leader.isr) == ((0, 1), (0, 1, 2))
    known.cluster.crash_broker(2, power_loss=False)
    known.run(12)
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
def test_what_a_leader_makes_of_an_answer(error: str, outcome: int) -> None:
    assert _outcome(error, 7) == outcome


class Channel:
    """A broker's way to a controller that does not know of it yet."""

    def __init__(self) -> None:
        self.host = FakeHost("broker-0")
        self.answers: list[Any] = []
        self.channel = NodeToControllerChannel(
            *(self.host, kraft.server_name, kraft.CONTROLLER_LISTENER),
            *(30 * SECOND, lambda: 3_000, 4 * SECOND),
        )

    def send(self) -> AlterPartitionRequest:
        wanted = AlterPartition(0, 0, ((0, -1),))
        request = AlterPartitionRequest(0, 1, {P: wanted})
        self.channel.send(request, self.answers.append)
        return request

    def answer(self, error: str, of_partition: str = errors.NONE) -> None:
        taken = self.host.take("AlterPartition")
        answer = AlterPartitionResponse(error, {P: (of_partition, 0)})
        taken.connection.client_endpoint.receive_response(
            Reply(taken.connection, taken.correlation_id, answer)
        )


@pytest.mark.parametrize("of_partition", [False, True])
def test_a_request_that_another_controller_has_answered_is_sent_again(of_partition: bool) -> None:
    """NodeToControllerRequestThread.handleResponse looks at every error of an answer."""
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
    assert answer.partitions[P][0] == errors.INVALID_UPDATE_VERSION


def test_a_request_is_given_up_when_its_time_is_over_before_it_can_be_sent_again() -> None:
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


class Life:
    """A broker that has registered, with its heartbeats as they are sent."""

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
        self.life = KRaftBrokerLifecycle(
            0, self.host, config, (3_000,), log, quorum, self.listener, lambda: False
        )
        self.life.start()
        self.answer("BrokerRegistration", kraft.BrokerRegistrationResponse(errors.NONE, 1))

    def answer(self, api: str, answer: Body) -> Any:
        taken = self.host.take(api)
        taken.connection.client_endpoint.receive_response(
            Reply(taken.connection, taken.correlation_id, answer)
        )
        return taken.body

    def heartbeat(self, error: str = errors.NONE, **answer: bool) -> kraft.BrokerHeartbeatRequest:
        request: kraft.BrokerHeartbeatRequest = self.answer(
            "BrokerHeartbeat", kraft.BrokerHeartbeatResponse(error, **answer)
        )
        return request

    def next_after(self, milliseconds: int) -> None:
        """The next heartbeat is sent after so long, not before."""
        assert not self.host.requests("BrokerHeartbeat")
        if milliseconds > 1:
            self.host.advance(milliseconds * 1_000 - 1)
            assert not self.host.requests("BrokerHeartbeat")
            self.host.advance(1)
        assert len(self.host.requests("BrokerHeartbeat")) == 1

    def run(self) -> None:
        """Take it to RUNNING."""
        self.heartbeat(is_caught_up=True)
        self.heartbeat(is_caught_up=True, is_fenced=False)


def test_while_it_catches_up_a_broker_is_heard_of_every_ten_milliseconds() -> None:
    life = Life()
    for _ in range(3):
        assert life.heartbeat().want_fence
        life.next_after(10)
    life.heartbeat(is_caught_up=True)
    assert not life.heartbeat(is_caught_up=True).want_fence
    life.next_after(2_000)


def test_a_broker_hears_that_it_is_registered_when_it_has_caught_up_and_that_it_is_unfenced_later() -> None:
    life = Life()
    life.heartbeat(is_caught_up=True)
    life.heartbeat(is_caught_up=True, is_fenced=True)
    assert (1 in life.listener.log, "unfenced" in life.listener.log) == (True, False)
    life.next_after(2_000)
    life.heartbeat(is_caught_up=True, is_fenced=False)
    assert life.listener.log[-1] == "unfenced"


def test_after_an_error_the_next_heartbeat_comes_after_100_ms_and_twice_as_long_each_time() -> None:
    life = Life()
    life.run()
    life.next_after(2_000)
    for milliseconds in (98, 196, 392):
        life.heartbeat(errors.STALE_BROKER_EPOCH)
        life.next_after(milliseconds)
    life.heartbeat(is_fenced=False)
    life.next_after(2_000)
    life.heartbeat(errors.STALE_BROKER_EPOCH)
    life.next_after(98)


def test_a_broker_that_stops_is_heard_of_at_once_then_after_50_ms_then_as_ever() -> None:
    life = Life()
    life.run()
    ended: list[int] = []
    life.life.request_controlled_shutdown(lambda: ended.append(1))
    assert life.heartbeat(is_fenced=False).want_shut_down
    life.next_after(50)
    life.heartbeat(is_fenced=False)
    life.next_after(2_000)
    life.heartbeat(is_fenced=False, should_shut_down=True)
    assert ended


def test_a_heartbeat_that_says_of_a_failed_log_directory_and_unfences_its_broker_changes_a_partition_once() -> (
    None
):
    known = Kraft(eligible_leader_replicas=True, settings={"min.insync.replicas": 2})
    known.cluster.crash_broker(0, power_loss=False)
    known.run(12)
    active, image = known.active, known.active.image
    # The replica of broker 1 is gone as well, which a new controller has not heard of yet.
    led = image.partitions[P]
    nobody_leads = replace(led, leader=-1, isr=(), elr=(0, 1), partition_epoch=led.partition_epoch + 1)
    active._write((nobody_leads,), lambda _: None)
    broker_epoch, offset = image.brokers[0].broker_epoch, image.next_offset - 1
    request = kraft.BrokerHeartbeatRequest(0, broker_epoch, offset, False, False, frozenset({P}))
    records, answer = active._heartbeat(request)
    active._write(records, lambda _: None)
    assert answer == kraft.BrokerHeartbeatResponse(errors.NONE, True, False, False)
    assert image.is_active(0)
    assert image.partitions[P].leader == 1
    changes = [record for _, record in active._log.records if isinstance(record, PartitionRecord)]
    assert [record.partition_epoch for record in changes] == list(range(len(changes)))


def test_a_failed_log_directory_is_said_at_once_or_as_soon_as_the_last_heartbeat_is_answered() -> None:
    life = Life()
    life.run()
    life.life.propagate_log_dir_failure((P,))
    assert life.heartbeat(is_fenced=False).offline == {P}
    life.next_after(2_000)
    life.life.propagate_log_dir_failure(("t-1",))
    assert life.heartbeat(is_fenced=False).offline == {P}
    assert life.heartbeat(is_fenced=False).offline == {P, "t-1"}
