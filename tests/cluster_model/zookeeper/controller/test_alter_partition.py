"""A leader asks the controller to change its ISR.

Before 2.7 (KIP-497) it writes the znode itself.
"""

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.run.runner import run_plan
from harrow.cluster_model import errors
from harrow.cluster_model.cluster import Cluster
from harrow.cluster_model.events import IsrChanged, IsrRefused, IsrWritten, MessageDelivered
from harrow.cluster_model.protocol import AlterPartition, AlterPartitionRequest, AlterPartitionResponse
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.sim.choices import Choices
from harrow.cluster_model.sim.message_rule import MessageRule
from harrow.cluster_model.topology import ZOOKEEPER, BrokerSpec, ClusterSpec, TopicSpec
from harrow.cluster_model.trace import select
from harrow.cluster_model.zookeeper.broker_lifecycle import ZkBrokerLifecycle
from harrow.cluster_model.zookeeper.control_plane import ZkControlPlane
from harrow.cluster_model.zookeeper.controller.kafka_controller import KafkaController
from harrow.cluster_model.zookeeper.quorum.ensemble import ZooKeeperEnsemble
from harrow.cluster_model.zookeeper.service import protocol as zk

SECOND = 1_000_000
CONTROLLER = 3
RELEASES_WITH_REQUESTS = ("2.8", "3.6", "3.9")
by_request = pytest.mark.parametrize("release", RELEASES_WITH_REQUESTS)


class IsrCluster:
    """Brokers 0 to 3. Broker 3 is controller; t-0 is on 0, its leader, 1 and 2."""

    def __init__(self, release: str) -> None:
        spec = ClusterSpec(
            brokers=tuple(BrokerSpec(id=number) for number in range(4)),
            topics=(TopicSpec(name="t", assignment=((0, 1, 2),)),),
            controller=CONTROLLER,
            metadata=ZOOKEEPER,
            settings={"replica.lag.time.max.ms": 10_000, "zookeeper.session.timeout.ms": 60_000},
        )
        self.cluster = Cluster(spec, release, RELEASES[release].behaviours, Choices.from_seed(0))
        self.cluster.network.watch_messages()
        self.cluster.start()

    def run(self, seconds: float) -> None:
        self.cluster.simulator.run_until(self.cluster.simulator.now_us + int(seconds * SECOND))

    def restart(self, broker: int) -> None:
        self.cluster.crash_broker(broker, power_loss=False)
        self.run(80)
        assert broker not in self.isr()
        self.cluster.start_broker(broker)

    def isr(self) -> tuple[int, ...]:
        state = self.cluster.partition_state("t-0")
        assert state is not None
        return state.isr

    def request_count(self) -> int:
        return sum(
            message.api == "AlterPartition" and message.kind == "request"
            for message in select(self.cluster.trace.events, MessageDelivered)
        )

    def written_isrs(self) -> list[tuple[int, ...]]:
        return [written.isr for written in select(self.cluster.trace.events, IsrWritten)]

    def controller(self) -> KafkaController:
        lifecycle = self.cluster.brokers[CONTROLLER]._lifecycle
        assert isinstance(lifecycle, ZkBrokerLifecycle)
        return lifecycle._controller

    def zookeeper(self) -> ZooKeeperEnsemble:
        control_plane = self.cluster.control_plane
        assert isinstance(control_plane, ZkControlPlane)
        return control_plane._zookeeper

    def alter(self, **others: int) -> tuple[str, int] | str:
        """Request the present ISR or another one for broker 0, with these epochs."""
        state = self.cluster.partition_state("t-0")
        assert state is not None
        isr = (0, others["member"]) if "member" in others else state.isr
        alteration = AlterPartition(
            others.get("leader_epoch", state.leader_epoch),
            others.get("partition_epoch", state.partition_epoch),
            tuple((member, -1) for member in isr),
        )
        broker_epoch = self.controller()._context.live_brokers[0]
        request = AlterPartitionRequest(0, others.get("broker_epoch", broker_epoch), {"t-0": alteration})
        answers: list[AlterPartitionResponse] = []
        self.controller().alter_partitions(request, answers.append)
        while not answers:
            assert self.cluster.simulator.step(self.cluster.simulator.now_us + SECOND)
        return answers[0].error if answers[0].error != errors.NONE else answers[0].partitions["t-0"]


def reset(isr_cluster: IsrCluster, kind: str) -> None:
    isr_cluster.cluster.network.add_rule(
        MessageRule(name="lost", action="reset", api="AlterPartition", kind=kind, count=1)
    )


@by_request
def test_the_controller_writes_the_isr_that_a_leader_requests(release: str) -> None:
    isr_cluster = IsrCluster(release)
    isr_cluster.restart(1)
    isr_cluster.run(20)
    assert set(isr_cluster.isr()) == {0, 1, 2}
    assert isr_cluster.request_count() == 1
    assert isr_cluster.controller()._context.leadership["t-0"] == isr_cluster.cluster.partition_state("t-0")


def test_before_kip_497_a_leader_writes_the_isr_itself() -> None:
    isr_cluster = IsrCluster("2.4")
    isr_cluster.restart(1)
    isr_cluster.run(20)
    assert set(isr_cluster.isr()) == {0, 1, 2}
    assert isr_cluster.request_count() == 0


UNCHANGED_ISR = """
name: still
kafka: "{release}"
settings: {{acks: 1, replica.lag.time.max.ms: 10s, zookeeper.session.timeout.ms: 60s}}
cluster:
  brokers: 4
  controller: 3
  metadata: zookeeper
  topics: [{{name: t, assignment: [[0, 1, 2]]}}]
workload: {{duration: 60s, producers: [{{rate: 2/s}}]}}
script:
  - at: 1s
    do: [{{broker_pause: {{broker: 3}}}}, {{broker_pause: {{broker: 1}}}}]
  - after: 25s
    do: [{{expect: {{isr: {{t-0: {meanwhile}}}}}}}, {{broker_resume: {{broker: 3}}}}]
  - after: 2s
    do: {{expect: {{isr: {{t-0: [0, 2]}}}}}}
"""


@pytest.mark.parametrize(
    ("release", "meanwhile"), [("2.4", [0, 2]), *((release, [0, 1, 2]) for release in RELEASES_WITH_REQUESTS)]
)
def test_since_kip_497_a_paused_controller_keeps_a_leader_from_changing_its_isr(
    release: str, meanwhile: list[int]
) -> None:
    (plan,) = load_text(UNCHANGED_ISR.format(release=release, meanwhile=meanwhile), "still.yaml").plans
    assert not run_plan(plan, 0).missed


@by_request
@pytest.mark.parametrize("kind", ["request", "response"])
def test_a_leader_retries_a_lost_message_without_a_second_write(release: str, kind: str) -> None:
    isr_cluster = IsrCluster(release)
    isr_cluster.restart(1)
    reset(isr_cluster, kind)
    isr_cluster.run(20)
    assert set(isr_cluster.isr()) == {0, 1, 2}
    assert len(isr_cluster.written_isrs()) == 1
    assert [set(changed.isr) for changed in select(isr_cluster.cluster.trace.events, IsrChanged)][-1] == {
        0,
        1,
        2,
    }
    assert not list(select(isr_cluster.cluster.trace.events, IsrRefused))


@by_request
def test_outdated_epochs_are_refused(release: str) -> None:
    isr_cluster = IsrCluster(release)
    isr_cluster.restart(1)
    isr_cluster.run(20)
    state = isr_cluster.cluster.partition_state("t-0")
    assert state is not None
    epoch, version = state.leader_epoch, state.partition_epoch
    assert isr_cluster.alter() == (errors.NONE, version)
    assert isr_cluster.alter(broker_epoch=0) == errors.STALE_BROKER_EPOCH
    assert isr_cluster.alter(leader_epoch=epoch - 1) == (errors.FENCED_LEADER_EPOCH, -1)
    assert isr_cluster.alter(leader_epoch=epoch + 1) == (errors.NOT_CONTROLLER, -1)
    assert isr_cluster.alter(partition_epoch=version + 1) == (errors.NOT_CONTROLLER, -1)
    assert isr_cluster.alter(partition_epoch=version - 1, member=1) == (errors.INVALID_UPDATE_VERSION, -1)
    assert isr_cluster.alter(member=1) == (errors.NONE, version + 1)
    assert isr_cluster.isr() == (0, 1)


@pytest.mark.parametrize(("release", "error"), [("2.8", errors.NONE), ("3.6", errors.INELIGIBLE_REPLICA)])
def test_from_kip_841_on_an_unregistered_broker_cannot_join_an_isr(release: str, error: str) -> None:
    isr_cluster = IsrCluster(release)
    isr_cluster.cluster.crash_broker(1, power_loss=False)
    isr_cluster.run(80)
    answer = isr_cluster.alter(member=1)
    assert answer[0] == error


@by_request
def test_a_superseded_controller_writes_nothing(release: str) -> None:
    isr_cluster = IsrCluster(release)
    before = isr_cluster.isr()
    isr_cluster.zookeeper().write(zk.SetData(zk.CONTROLLER_EPOCH, 7))
    assert isr_cluster.alter(member=1) == errors.UNKNOWN_SERVER_ERROR
    assert isr_cluster.isr() == before
