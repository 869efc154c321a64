"""The controller's part in a controlled shutdown: moves, refusals and answers."""

import pytest

from harrow.cluster_model import errors
from harrow.cluster_model.cluster import Cluster
from harrow.cluster_model.protocol import (
    NO_EPOCH,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    LeaderAndIsr,
    ReplicaAssignment,
)
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.sim.choices import Choices
from harrow.cluster_model.topology import ZOOKEEPER, BrokerSpec, ClusterSpec, TopicSpec
from harrow.cluster_model.zookeeper.broker_lifecycle import ZkBrokerLifecycle
from harrow.cluster_model.zookeeper.controller.controller_context import ControllerContext
from harrow.cluster_model.zookeeper.controller.kafka_controller import KafkaController
from tests.cluster_model.fakes import FakeServerEndpoint

SECOND = 1_000_000
Answers = list[ControlledShutdownResponse]


class Term:
    """Brokers 0, 1 and 2, the controller; t-0 is on 0 and 1, t-1 on 1 and 0, u-0 only on 0."""

    def __init__(self, release: str = "2.4") -> None:
        spec = ClusterSpec(
            brokers=tuple(BrokerSpec(id=number) for number in range(3)),
            topics=(
                TopicSpec(name="t", partitions=2, assignment=((0, 1), (1, 0))),
                TopicSpec(name="u", assignment=((0,),)),
            ),
            controller=2,
            metadata=ZOOKEEPER,
        )
        self.cluster = Cluster(spec, release, RELEASES[release].behaviours, Choices.from_seed(0))
        self.cluster.start()

    def controller(self, broker: int = 2) -> KafkaController:
        lifecycle = self.cluster.brokers[broker]._lifecycle
        assert isinstance(lifecycle, ZkBrokerLifecycle)
        return lifecycle._controller

    def ask(self, broker: int, epoch: int = NO_EPOCH, *, controller: int = 2) -> Answers:
        answers: Answers = []
        self.controller(controller).controlled_shutdown(
            ControlledShutdownRequest(broker, epoch), answers.append
        )
        return answers

    def run(self, duration_us: int = SECOND) -> None:
        self.cluster.simulator.run_until(self.cluster.simulator.now_us + duration_us)

    def context(self) -> ControllerContext:
        return self.controller()._context

    def states(self) -> dict[str, tuple[int, tuple[int, ...]]]:
        states = {p: self.cluster.partition_state(p) for p in ("t-0", "t-1", "u-0")}
        return {name: (state.leader, state.isr) for name, state in states.items() if state is not None}


@pytest.mark.parametrize("release", RELEASES)
def test_a_broker_loses_leaderships_that_others_can_take_and_leaves_isrs(release: str) -> None:
    term = Term(release)
    answers = term.ask(0)
    while not answers:
        assert term.cluster.simulator.step(SECOND)
    assert answers == [ControlledShutdownResponse(errors.NONE, ())]
    assert term.states() == {"t-0": (1, (1,)), "t-1": (1, (1,)), "u-0": (0, (0,))}


def test_a_broker_learns_of_its_successors_and_leaves_the_partitions_that_it_followed() -> None:
    term = Term()
    term.ask(0)
    term.run()
    partitions = term.cluster.brokers[0].replicas.partitions
    assert (partitions["t-0"].leader, partitions["t-0"].leader_epoch) == (1, 1)
    fetchers = term.cluster.brokers[0].replicas._fetchers._fetchers
    assert [name for fetcher in fetchers.values() for name in fetcher._states] == ["t-0"]


def test_the_answer_lists_partitions_without_another_possible_leader() -> None:
    term = Term()
    term.ask(1)
    term.run()
    assert term.states()["t-0"] == (0, (0,))
    answers = term.ask(0)
    term.run()
    # Broker 1 has rejoined the ISR of its former partition, but is in shutdown too.
    assert answers == [ControlledShutdownResponse(errors.NONE, ("t-0", "t-1"))]
    assert {name: leader for name, (leader, _) in term.states().items()} == {"t-0": 0, "t-1": 0, "u-0": 0}


def test_a_broker_in_shutdown_is_not_elected_until_its_session_has_ended() -> None:
    term = Term()
    term.ask(0)
    term.run()
    term.cluster.elect_preferred_leaders()
    term.run()
    assert term.states()["t-0"][0] == 1
    assert term.context().shutting_down == {0}
    term.cluster.crash_broker(0, power_loss=False)
    term.run(9 * SECOND)
    assert term.context().shutting_down == set()
    term.cluster.start_broker(0)
    term.run(9 * SECOND)
    term.cluster.elect_preferred_leaders()
    term.run()
    assert term.states()["t-0"] == (0, (1, 0))


@pytest.mark.parametrize(
    ("release", "has_epoch"), [("0.10.2", False), ("0.11", False), ("2.0", False), ("2.4", True)]
)
def test_since_2_2_the_request_has_the_epoch_of_the_registration(release: str, has_epoch: bool) -> None:
    term = Term(release)
    endpoint = FakeServerEndpoint(term.cluster.simulator)
    controller = term.cluster.controller()
    assert controller is not None
    term.cluster.network.listen(term.cluster.processes[controller], endpoint)
    term.cluster.stop_broker(0)
    term.run()
    requests = [message.request for message in endpoint.messages]
    assert requests == [
        ControlledShutdownRequest(0, term.context().live_brokers[0] if has_epoch else NO_EPOCH)
    ]


@pytest.mark.parametrize("release", RELEASES)
def test_a_broker_that_is_not_controller_refuses(release: str) -> None:
    term = Term(release)
    assert term.ask(0, controller=1) == [ControlledShutdownResponse(errors.STALE_CONTROLLER_EPOCH)]


@pytest.mark.parametrize(
    ("epoch", "error"), [(NO_EPOCH, errors.BROKER_NOT_AVAILABLE), (7, errors.UNKNOWN_SERVER_ERROR)]
)
def test_an_unregistered_broker_is_refused(epoch: int, error: str) -> None:
    term = Term()
    assert term.ask(9, epoch) == [ControlledShutdownResponse(error)]
    assert term.context().shutting_down == set()


@pytest.mark.parametrize(("older_by", "error"), [(1, errors.STALE_BROKER_EPOCH), (0, errors.NONE)])
def test_an_earlier_incarnation_of_the_broker_is_refused(older_by: int, error: str) -> None:
    term = Term()
    answers = term.ask(0, term.context().live_brokers[0] - older_by)
    term.run()
    assert [answer.error for answer in answers] == [error]


@pytest.mark.parametrize(
    ("release", "errors_of_waiting"),
    [("0.11", []), ("2.0", []), ("2.4", [errors.STALE_CONTROLLER_EPOCH])],
)
def test_a_deposed_controller_refuses_the_request_in_progress_and_since_2_2_waiting_ones(
    release: str, errors_of_waiting: list[str]
) -> None:
    term = Term(release)
    begun, waiting = term.ask(0), term.ask(1)
    term.controller().session_expired()
    assert [answer.error for answer in begun] == [errors.STALE_CONTROLLER_EPOCH]
    assert [answer.error for answer in waiting] == errors_of_waiting


def test_a_controller_whose_write_fails_refuses_the_request_in_progress() -> None:
    term = Term()
    term.cluster.pause_broker(2)
    term.cluster.delete_controller_znode()
    term.run()
    term.cluster.resume_broker(2)
    # The request arrives before the watch event, so that the write to ZooKeeper fails.
    answers = term.ask(0)
    term.run()
    assert [answer.error for answer in answers] == [errors.STALE_CONTROLLER_EPOCH]
    assert term.states()["t-0"] == (0, (0, 1))


def test_a_new_controller_knows_no_shutdowns() -> None:
    term = Term()
    term.ask(0)
    term.run()
    term.cluster.delete_controller_znode()
    term.run()
    successor = term.cluster.controller()
    assert successor is not None
    assert term.controller(successor)._context.shutting_down == set()


def test_only_partitions_with_other_replicas_are_moved() -> None:
    context = ControllerContext()
    context.add_topic("t", tuple(map(ReplicaAssignment, ((0, 1), (1, 0), (0,), (1, 2), (0, 2)))))
    for number, leader in enumerate((0, 1, 0, 1)):
        context.leadership[f"t-{number}"] = LeaderAndIsr(leader, 0, (leader,), 0)
    assert context.replicated_partitions(0) == (["t-0"], ["t-1"])
