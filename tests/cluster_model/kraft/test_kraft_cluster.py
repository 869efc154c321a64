"""Brokers and the active controller of KRaft, in a whole cluster."""

from dataclasses import replace
from typing import Any

import pytest

from harrow.cluster_model import errors, events
from harrow.cluster_model.kraft import protocol as kraft
from harrow.cluster_model.kraft.control_plane import QuorumControlPlane
from harrow.cluster_model.kraft.quorum_controller import QuorumController
from harrow.cluster_model.protocol import AlterPartition, AlterPartitionRequest, AlterPartitionResponse
from harrow.cluster_model.release import Behaviours
from harrow.cluster_model.sim.choices import Choices
from harrow.cluster_model.sim.cluster import Cluster
from harrow.cluster_model.topology import KRAFT, BrokerSpec, ClusterSpec, TopicSpec

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
        **switches: Any,
    ) -> None:
        spec = ClusterSpec(
            brokers=tuple(BrokerSpec(id=number) for number in range(3)),
            topics=(TopicSpec(name="t", assignment=((0, 1, 2),), replication_factor=3),),
            metadata=KRAFT,
            voters=voters,
            combined=combined,
            settings=settings or {},
        )
        behaviours = replace(
            Behaviours(), **{"maximal_isr": True, "isr_expansion_checks_registration": True, **switches}
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


def test_one_that_has_stopped_in_good_order_registers_at_once() -> None:
    known = Kraft()
    known.cluster.stop_broker(0)
    known.run(6)
    known.cluster.start_broker(0)
    known.run(5)
    assert known.state() == (1, 1, (1, 2, 0))


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
    for node in list(known.cluster.control_plane.controllers)[:2]:
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
