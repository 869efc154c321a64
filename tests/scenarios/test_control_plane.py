"""A cluster, its clients and its observers work with another control plane."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import pytest

from harrow.campaigns.clients.clients import MODEL, Clients
from harrow.campaigns.run.targets.model_observer import ClusterObserver
from harrow.cluster_model.cluster import Cluster
from harrow.cluster_model.controller.administration import AdministrationRequest, NewTopic
from harrow.cluster_model.controller.control_plane import ControlPlane, LifecycleListener
from harrow.cluster_model.events import BrokerRegistered, IsrChanged
from harrow.cluster_model.protocol import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    InitProducerIdResponse,
    LeaderAndIsr,
    LeaderAndIsrPartitionState,
    ReplicaAssignment,
)
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.settings import BrokerConfig, TopicConfig
from harrow.cluster_model.sim.choices import Choices
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.sim.process import Process
from harrow.cluster_model.topology import BrokerSpec, ClusterSpec, ProducerSpec, TopicSpec
from harrow.cluster_model.trace import select
from harrow.cluster_model.zookeeper.controller.controller_channel import (
    ControllerChannelManager,
    RequestBatch,
)

SECOND = 1_000_000
CONTROLLER_EPOCH = 1


class Oracle:
    """A control plane in one process of its own. It is always up to date, and elects no leaders."""

    process_names: tuple[str, ...] = ("oracle",)
    servers: Mapping[int, Process] = MappingProxyType({})

    def __init__(self, cluster: Cluster) -> None:
        self.host = cluster.host(Process("oracle"))
        self.channels = ControllerChannelManager(self.host, 0, 30 * SECOND)
        self.states: dict[str, LeaderAndIsr] = {}
        self.registered: dict[int, int] = {}
        self.producer_ids = 0
        self.actions: list[str] = []

    def start(self) -> None:
        """Do nothing: there are no processes to start."""

    def dismantle(self) -> None:
        """Do nothing: the test collects its garbage."""

    def lose_disk(self, broker: int) -> None:
        """Do nothing: the oracle needs no disk."""

    def has_metadata_log(self, node: int) -> bool:
        return False

    def keeps_metadata_without(self, node: int) -> bool:
        return True

    def start_server(self, node: int) -> None:
        raise AssertionError(f"there is no controller {node}")

    def stop_server(self, node: int, on_ended: Callable[[], None]) -> None:
        raise AssertionError(f"there is no controller {node}")

    def join(
        self,
        broker: int,
        host: Host,
        config: BrokerConfig,
        topic_config: Callable[[str], TopicConfig],
        listener: LifecycleListener,
    ) -> "OracleBrokerLifecycle":
        return OracleBrokerLifecycle(self, broker, host, listener)

    def register(self, broker: int) -> None:
        """Register a broker, and send the list of live brokers to all of them."""
        self.registered[broker] = 1
        self.channels.add_broker(broker, 1)
        live = tuple(self.registered)
        RequestBatch(0, CONTROLLER_EPOCH, self.channels).send_update_metadata(live, {}, live)

    def create_topic(self, topic: str, assignment: tuple[tuple[int, ...], ...]) -> None:
        batch = RequestBatch(0, CONTROLLER_EPOCH, self.channels)
        for number, replicas in enumerate(assignment):
            state = self.states[f"{topic}-{number}"] = LeaderAndIsr(replicas[0], 0, replicas, 0)
            batch.add_leader_and_isr(
                replicas, f"{topic}-{number}", LeaderAndIsrPartitionState(CONTROLLER_EPOCH, state, replicas)
            )
        batch.send(tuple(self.registered))

    def alter_partition_reassignment(self, partition: str, target: tuple[int, ...] | None) -> None:
        raise NotImplementedError

    def create_partitions(self, topic: str, total: int, racks: Mapping[int, str]) -> None:
        raise NotImplementedError

    def assignment(self, partition: str) -> ReplicaAssignment | None:
        return None

    def elect_preferred_leaders(self) -> None:
        self.actions.append("elect")

    def expire_session(self, broker: int) -> None:
        self.actions.append(f"expire {broker}")
        del self.registered[broker]

    def remove_controller(self) -> None:
        self.actions.append("remove controller")

    def controller(self) -> int | None:
        return 0

    def quorum(self) -> tuple[int, ...]:
        return ()

    def quorum_leader(self) -> None:
        return None

    def partition_state(self, partition: str) -> LeaderAndIsr | None:
        return self.states.get(partition)

    def electable(self, partition: str) -> tuple[int, ...]:
        state = self.states.get(partition)
        return () if state is None else state.isr

    def recovery_sets(self, partition: str) -> tuple[tuple[int, ...], ...]:
        return (self.electable(partition),)

    def is_registered(self, broker: int) -> bool:
        return broker in self.registered

    def registration_time_max_us(self, config: BrokerConfig) -> int:
        return 0


class OracleBrokerLifecycle:
    """A broker's side of the oracle. It registers at once, and gets every ISR that it requests."""

    def __init__(self, oracle: Oracle, broker: int, host: Host, listener: LifecycleListener) -> None:
        self.oracle = oracle
        self.broker = broker
        self.host = host
        self.listener = listener

    @property
    def alter_partition_manager(self) -> "OracleBrokerLifecycle":
        return self

    @property
    def exit_us(self) -> int | None:
        return None

    @property
    def is_active_controller(self) -> bool:
        return self.broker == 0

    def start(self) -> None:
        if self.broker not in self.oracle.registered:
            self.oracle.register(self.broker)
            self.host.emit(BrokerRegistered, self.broker, 1)
            self.listener.on_registration(1)
            self.listener.on_unfencing()

    def generate_producer_id(self, on_generated: Callable[[InitProducerIdResponse], None]) -> None:
        self.oracle.producer_ids += 1
        on_generated(InitProducerIdResponse("NONE", self.oracle.producer_ids, 0))

    def request_controlled_shutdown(self, on_ended: Callable[[], None]) -> None:
        on_ended()

    def handle_controlled_shutdown(
        self,
        request: ControlledShutdownRequest,
        on_handled: Callable[[ControlledShutdownResponse], None],
    ) -> None:
        """Do nothing: no broker sends this request."""

    def handle_alter_partition(
        self, request: AlterPartitionRequest, on_handled: Callable[[AlterPartitionResponse], None]
    ) -> None:
        raise NotImplementedError

    def create_topics(
        self,
        topics: tuple[NewTopic, ...],
        on_answer: Callable[[Mapping[str, str]], None],
        on_end: Callable[[], None],
    ) -> None:
        raise NotImplementedError

    def administer(self, request: AdministrationRequest, on_handled: Callable[[Any], None]) -> None:
        raise NotImplementedError

    def propagate_log_dir_failure(self, partitions: tuple[str, ...]) -> None:
        """Do nothing: here no disk fails."""

    def close(self, on_closed: Callable[[], None]) -> None:
        del self.oracle.registered[self.broker]
        on_closed()

    def submit(
        self,
        partition: str,
        state: LeaderAndIsr,
        controller_epoch: int,
        on_altered: Callable[[int | None], None],
        broker_epochs: Mapping[int, int],
    ) -> None:
        assert controller_epoch == CONTROLLER_EPOCH
        current = self.oracle.states[partition]
        if current.partition_epoch != state.partition_epoch:
            self.host.set_timer(1, on_altered, None)
            return
        epoch = current.partition_epoch + 1
        self.oracle.states[partition] = LeaderAndIsr(state.leader, state.leader_epoch, state.isr, epoch)
        self.host.set_timer(1, on_altered, epoch)


class OracleCluster:
    """Two brokers with an oracle, and an idempotent producer with acks=all."""

    def __init__(self) -> None:
        spec = ClusterSpec(
            brokers=(BrokerSpec(id=0), BrokerSpec(id=1)), topics=(TopicSpec(name="t", replication_factor=2),)
        )
        self.planes: list[Oracle] = []
        behaviours = RELEASES["2.4"].behaviours
        self.cluster = Cluster(
            spec, "2.4", behaviours, Choices.from_seed(0), make_control_plane=self.make_control_plane
        )
        producers = (ProducerSpec(name="p", settings={"enable.idempotence": True}),)
        self.clients = Clients(producers, MODEL, self.cluster)
        self.observer = ClusterObserver(self.cluster, self.clients)
        self.cluster.start()
        self.clients.start()

    def make_control_plane(self, cluster: Cluster) -> ControlPlane:
        self.planes.append(Oracle(cluster))
        return self.planes[0]

    def run(self, seconds: int) -> None:
        self.cluster.simulator.run_until(self.cluster.simulator.now_us + seconds * SECOND)


@pytest.fixture
def oracle_cluster() -> OracleCluster:
    return OracleCluster()


def test_brokers_serve_with_any_control_plane(oracle_cluster: OracleCluster) -> None:
    oracle_cluster.clients.sender("p").send("m0", "t-0")
    oracle_cluster.run(2)
    assert oracle_cluster.observer.is_acked("m0")
    leader, _, isr = oracle_cluster.observer.partition_state("t-0") or (None, None, ())
    assert (leader, set(isr)) == (oracle_cluster.cluster.replicas_of("t-0")[0], {0, 1})
    assert (oracle_cluster.observer.controller(), oracle_cluster.observer.is_registered(1)) == (0, True)


def test_a_leader_shrinks_and_expands_its_isr_with_any_control_plane(oracle_cluster: OracleCluster) -> None:
    leader, follower = oracle_cluster.cluster.replicas_of("t-0")
    oracle_cluster.cluster.network.cut(f"broker-{leader}", f"broker-{follower}")
    oracle_cluster.clients.sender("p").send("m0", "t-0")
    oracle_cluster.run(20)
    assert oracle_cluster.observer.is_acked("m0")
    assert oracle_cluster.planes[0].states["t-0"].isr == (leader,)
    oracle_cluster.cluster.heal()
    oracle_cluster.run(40)
    assert set(oracle_cluster.planes[0].states["t-0"].isr) == {leader, follower}
    changes = [event.change for event in select(oracle_cluster.cluster.trace.events, IsrChanged)]
    assert changes == ["shrink", "expand"]


def test_faults_and_administrators_act_through_the_control_plane(oracle_cluster: OracleCluster) -> None:
    oracle_cluster.cluster.expire_session(1)
    oracle_cluster.cluster.delete_controller_znode()
    oracle_cluster.cluster.elect_preferred_leaders()
    assert oracle_cluster.planes[0].actions == ["expire 1", "remove controller", "elect"]
    assert not oracle_cluster.observer.is_registered(1)
