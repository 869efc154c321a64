"""A controller of the model, which is the only voter of its quorum."""

from typing import Final, cast

from harrow.cluster_model import errors
from harrow.cluster_model.controller.new_topics import ConfiguredTopics
from harrow.cluster_model.kraft import protocol
from harrow.cluster_model.kraft.metadata_log import MetadataLog
from harrow.cluster_model.kraft.quorum_controller import QuorumController
from harrow.cluster_model.kraft.raft import QuorumConfig
from harrow.cluster_model.kraft.records import PartitionRecord
from harrow.cluster_model.release.profiles import Behaviours
from harrow.cluster_model.settings import Value, broker_config, topic_config
from harrow.cluster_model.sim.choices import Choices
from harrow.cluster_model.sim.host import SimulatedHost
from harrow.cluster_model.sim.network import Network
from harrow.cluster_model.sim.process import Process
from harrow.cluster_model.sim.simulator import Simulator
from harrow.cluster_model.sim.virtual_time import US_PER_MS, US_PER_SECOND
from harrow.cluster_model.topology import FIRST_CONTROLLER_ID, NetworkSpec, process_name
from harrow.cluster_model.trace import Trace
from harrow.live_cluster.requests.answers import Answer, ReceivedAnswers, plain_answer
from harrow.live_cluster.requests.controllers.driver import (
    ControllerPartitions,
    RequestToController,
)
from harrow.live_cluster.requests.controllers.steps import ASSIGNMENT, TOPIC

VIEWER: Final = 0
"""A broker that leads nothing and always has all metadata. A real controller is observed through
it."""
ALL_METADATA: Final = 1 << 40
"""An offset beyond the end of every log."""
_ELECTION_US: Final = 10 * US_PER_SECOND
_ANSWER_US: Final = US_PER_SECOND


class ModelController:
    """A `ControllerDriver` for a controller of the model with the given behaviours."""

    def __init__(self, release: str, behaviours: Behaviours, settings: dict[str, Value]) -> None:
        config = broker_config(release, settings)
        self._simulator = Simulator()
        choices = Choices.from_seed(0)
        trace = Trace(self._simulator)
        spec = NetworkSpec(latency_min_us=US_PER_MS, latency_max_us=US_PER_MS)
        network = Network(self._simulator, choices, spec, trace)
        process = Process(process_name(FIRST_CONTROLLER_ID))
        self._controller = QuorumController(
            FIRST_CONTROLLER_ID,
            SimulatedHost(process, self._simulator, network, choices, trace),
            (FIRST_CONTROLLER_ID,),
            MetadataLog(),
            config,
            QuorumConfig.from_settings(config, behaviours.kraft),
            lambda _: topic_config({}, config),
            behaviours,
            lambda _node, _epoch: None,
            lambda _node, _epoch: None,
            lambda _node, _log, _high_watermark: None,
            ConfiguredTopics(release, {}, {}),
        )
        network.listen(process, self._controller, protocol.server_name(FIRST_CONTROLLER_ID))
        self._controller.start()
        self._simulator.run_until(_ELECTION_US)
        driver = Process("driver")
        self._host = SimulatedHost(driver, self._simulator, network, choices, trace)
        self._answers = ReceivedAnswers()
        self._connection = self._host.connect(
            process.name, protocol.server_name(FIRST_CONTROLLER_ID), self._answers
        )
        self._correlation_id = 0
        response = self._exchange(protocol.BrokerRegistrationRequest(VIEWER, 0, -1))
        assert isinstance(response, protocol.BrokerRegistrationResponse)
        self._viewer_epoch = response.broker_epoch
        self._view()

    def ask(self, request: RequestToController) -> Answer:
        """Send a request, and advance the time until the viewer knows its effects."""
        answer = plain_answer(self._exchange(request))
        self._view()
        return answer

    def create_topic(self) -> None:
        is_created = self._controller.create_topic(TOPIC, ASSIGNMENT)
        assert is_created, "all of its brokers are alive"
        self._view()

    def elect_preferred_leaders(self) -> None:
        self._controller.elect_preferred_leaders()
        self._view()

    def partitions(self, expected: ControllerPartitions | None) -> ControllerPartitions:
        return {
            name: [record.leader, record.leader_epoch, sorted(record.isr), sorted(record.elr)]
            for name, record in self._controller.image.partitions.items()
        }

    def partition(self, name: str) -> PartitionRecord:
        return self._controller.image.partitions[name]

    def _view(self) -> None:
        """Send a heartbeat of the viewer, which says that it has all metadata."""
        heartbeat = protocol.BrokerHeartbeatRequest(
            VIEWER, self._viewer_epoch, ALL_METADATA, want_fence=False, want_shut_down=False
        )
        response = self._exchange(heartbeat)
        assert response.error == errors.NONE

    def _exchange(self, request: RequestToController) -> protocol.ControllerResponse:
        self._correlation_id += 1
        self._host.send_request(self._connection, self._correlation_id, request)
        self._simulator.run_until(self._simulator.now_us + _ANSWER_US)
        reply = self._answers.received.pop()
        assert reply.correlation_id == self._correlation_id
        return cast("protocol.ControllerResponse", reply.body)
