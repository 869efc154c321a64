"""Protection against two controllers: conditional writes, epochs in znodes, epochs at brokers."""

from typing import Any, cast

import pytest

from harrow.cluster_model import errors
from harrow.cluster_model.broker.broker import Broker
from harrow.cluster_model.controller.control_plane import ControlPlane
from harrow.cluster_model.controller.new_topics import ConfiguredTopics
from harrow.cluster_model.log.disk import Disk
from harrow.cluster_model.protocol import (
    ControlResponse,
    LeaderAndIsr,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    ReplicaAssignment,
    StopReplicaRequest,
    UpdateMetadataRequest,
)
from harrow.cluster_model.release.profiles import Behaviours
from harrow.cluster_model.settings import broker_config, topic_config
from harrow.cluster_model.sim.connection import Exchange, Reply
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.topic_settings import TopicConfigs
from harrow.cluster_model.zookeeper.broker_lifecycle import ZkBrokerLifecycle
from harrow.cluster_model.zookeeper.controller.controller_channel import (
    ControllerChannelManager,
    RequestBatch,
)
from harrow.cluster_model.zookeeper.controller.controller_context import ControllerContext
from harrow.cluster_model.zookeeper.controller.partition_state_machine import OFFLINE, PartitionStateMachine
from harrow.cluster_model.zookeeper.service import protocol as zk
from tests.cluster_model.fakes import FakeEndpoint, FakeHost

CONFIG = broker_config("2.4", {})
TOPIC = topic_config({}, CONFIG)


class Elections:
    """Controller 2, in controller epoch 5, of a partition on brokers 0 and 1; broker 0 is dead."""

    def __init__(self) -> None:
        self.host = FakeHost("broker-2")
        self.context = ControllerContext()
        self.context.epoch = 5
        self.context.live_brokers = {1: 1, 2: 1}
        self.context.add_topic("t", (ReplicaAssignment((0, 1)),))
        self.context.offline_partitions = {"t-0"}
        channels = ControllerChannelManager(self.host, 2, CONFIG.controller_socket_timeout_us)
        self.machine = PartitionStateMachine(
            2, self.host, self.context, channels, lambda _: TOPIC, Behaviours().replication
        )

    def elect(self, *answers: zk.ZooKeeperResult) -> list[zk.ZooKeeperOperation]:
        """Run an election with these answers of ZooKeeper, and return its operations."""
        processing = self.machine.elect_leaders(["t-0"], OFFLINE, "test")
        operations: list[zk.ZooKeeperOperation] = []
        response: Any = None
        remaining = list(answers)
        while True:
            try:
                (operation,) = processing.send(response).operations
            except StopIteration:
                assert not remaining
                return operations
            operations.append(operation)
            response = zk.ZooKeeperResponse(zk.OK, (remaining.pop(0),))


def stored_state(version: int, controller_epoch: int = 4) -> zk.ZooKeeperResult:
    state = zk.TopicPartitionState(0, version, (0, 1), controller_epoch)
    return zk.ZooKeeperResult(zk.OK, state, version)


def test_an_election_is_retried_after_a_concurrent_write_of_the_leader() -> None:
    elections = Elections()
    operations = elections.elect(
        stored_state(3),
        zk.ZooKeeperResult(zk.BAD_VERSION),
        stored_state(4),
        zk.ZooKeeperResult(zk.OK, None, 5),
    )
    writes = [operation for operation in operations if isinstance(operation, zk.SetData)]
    assert [write.version for write in writes] == [3, 4]
    assert elections.context.leadership["t-0"] == LeaderAndIsr(1, 5, (1,), 5)


def test_a_znode_of_a_newer_controller_stays_unchanged() -> None:
    elections = Elections()
    operations = elections.elect(stored_state(3, controller_epoch=6))
    assert all(isinstance(operation, zk.GetData) for operation in operations)
    assert elections.context.leadership == {}


class UnreachableControlPlane:
    """A control plane that the broker never reaches."""

    def join(self, broker: int, host: Host, *rest: Any) -> ZkBrokerLifecycle:
        config, topic_config, listener = rest
        return ZkBrokerLifecycle(
            broker,
            host,
            config,
            topic_config,
            Behaviours(),
            listener,
            ("zookeeper",),
            ConfiguredTopics("2.4", {}, {}),
        )


@pytest.mark.parametrize("first", ["UpdateMetadata", "StopReplica", "LeaderAndIsr"])
def test_a_broker_refuses_a_controller_after_a_request_of_the_next(first: str) -> None:
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
    state = {"t-0": LeaderAndIsrPartitionState(5, LeaderAndIsr(1, 1, (1,), 0), (0, 1))}
    requests: dict[str, Any] = {
        "UpdateMetadata": UpdateMetadataRequest(2, 5, 1, {}, (1, 2)),
        "StopReplica": StopReplicaRequest(2, 5, 1, ()),
        "LeaderAndIsr": LeaderAndIsrRequest(2, 5, 1, {}),
    }

    def answer(body: Any) -> str:
        connection = host.connect("broker-1", "control", FakeEndpoint(host.clock))
        broker.receive_request(Exchange(connection, 1, body))
        return str(host.responses[-1].body.error)

    assert answer(requests[first]) == errors.NONE
    assert answer(LeaderAndIsrRequest(0, 4, 1, state)) == errors.STALE_CONTROLLER_EPOCH
    assert broker.replicas.partitions == {}
    assert answer(LeaderAndIsrRequest(2, 5, 1, state)) == errors.NONE
    assert broker.replicas.partitions["t-0"].is_leader()


@pytest.mark.parametrize(("live", "requests"), [((1, 2), {"LeaderAndIsr", "StopReplica"}), ((2,), set())])
def test_a_restarted_broker_gets_no_stop_replica_for_its_earlier_incarnation(
    live: tuple[int, ...], requests: set[str]
) -> None:
    """It has a new channel.

    A StopReplica would end its fetching for good, as no newer epoch follows.
    """
    host = FakeHost("broker-2")
    channels = ControllerChannelManager(host, 2, CONFIG.controller_socket_timeout_us)
    channels.add_broker(1, 7)
    batch = RequestBatch(2, 5, channels)
    batch.add_leader_and_isr((1,), "t-0", LeaderAndIsrPartitionState(5, LeaderAndIsr(0, 1, (0,), 0), (0, 1)))
    batch.add_stop_replica(1, "t-0")
    batch.send(live)
    while len(host.sent) > len(host.responses):
        request = host.sent[-1]
        answer = Reply(
            request.connection, request.correlation_id, ControlResponse(request.body.api, errors.NONE)
        )
        host.responses.append(answer)
        request.connection.client_endpoint.receive_response(answer)
    assert {request.body.api for request in host.sent} - {"UpdateMetadata"} == requests
