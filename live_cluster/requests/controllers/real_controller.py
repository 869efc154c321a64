"""A real KRaft controller, to which harrow sends the requests of brokers that are not running.

Each sequence uses a new topic. One broker runs, but it leads no partition and takes part in no
sequence. Its metadata shows what the controller has decided.
"""

from collections.abc import Iterable
from typing import Final

from harrow.cluster_model import errors
from harrow.cluster_model.kraft import protocol
from harrow.cluster_model.lazy_dataclass import replace
from harrow.live_cluster.errors import LiveError
from harrow.live_cluster.names import Names
from harrow.live_cluster.requests.answers import Answer, plain_answer
from harrow.live_cluster.requests.control_requests import ControlRequests
from harrow.live_cluster.requests.controllers.driver import ControllerPartitions, RequestToController
from harrow.live_cluster.requests.controllers.steps import ASSIGNMENT, BROKERS, TOPIC, partition_name
from harrow.live_cluster.requests.conversation import PATIENCE_S, Conversation, holds_in_time
from harrow.live_cluster.wire.administration import create_topic, elect_preferred_leaders
from harrow.live_cluster.wire.codec import Naming
from harrow.live_cluster.wire.connection import BrokerConnection
from harrow.live_cluster.wire.metadata import broker_metadata, eligible_leaders

SETTINGS: Final = {"broker.session.timeout.ms": 600_000, "broker.heartbeat.interval.ms": 20_000}
"""The session is long, so the controller never fences a silent broker. The controller has to answer
a heartbeat within half an interval (`ControllerApis`), so the interval is long enough for a busy
machine."""
VIEWER_SETTINGS: Final = {"broker.heartbeat.interval.ms": 10}
"""The running broker sends heartbeats often, because each step waits for its metadata offset."""

_WAIT_MAX_S: Final = 5.0


class RealController:
    """A `ControllerDriver` for a real controller.

    *number* is the sequence's number. It makes the topic's name and the brokers' ids unique.
    """

    def __init__(
        self,
        controller: BrokerConnection,
        viewer: BrokerConnection,
        control_requests: ControlRequests,
        *,
        number: int,
        cluster_id: str,
    ) -> None:
        self._viewer = viewer
        self._control_requests = control_requests
        self._topic = f"{TOPIC}-{number}"
        names = Names({broker: number * 10 + broker for broker in BROKERS}, {TOPIC: self._topic})
        self._conversation = Conversation(controller, Naming(names, cluster_id=cluster_id))
        self._epochs: dict[int, int] = {}

    def ask(self, request: RequestToController) -> Answer:
        answer = self._conversation.exchange(request)
        if isinstance(answer, protocol.BrokerRegistrationResponse) and answer.error == errors.NONE:
            assert isinstance(request, protocol.BrokerRegistrationRequest)
            self._epochs[request.broker] = answer.broker_epoch
        return plain_answer(answer)

    def create_topic(self) -> None:
        """Create the topic, and wait until the broker has it.

        Raise `LiveError` if it takes too long.
        """
        brokers = self._conversation.naming.names.cluster_broker
        assignment = [[brokers(broker) for broker in replicas] for replicas in ASSIGNMENT]
        create_topic(self._viewer, self._topic, assignment, {})
        holds_in_time(lambda: len(self._view()) == len(ASSIGNMENT))
        ids = list(broker_metadata(self._viewer, [self._topic]).topics_by_id)
        if len(ids) != 1:
            raise LiveError(f"the topic {self._topic} did not appear within {PATIENCE_S:.0f} s")
        self._conversation.naming = replace(self._conversation.naming, ids={self._topic: ids[0]})

    def elect_preferred_leaders(self) -> None:
        names = (f"{self._topic}-{number}" for number in range(len(ASSIGNMENT)))
        elect_preferred_leaders(self._viewer, names)

    def partitions(self, expected: ControllerPartitions | None) -> ControllerPartitions:
        """Return the running broker's view, once it has reported its metadata offset."""
        if not self._conversation.naming.ids:
            return {}
        if expected is not None:
            holds_in_time(lambda: self._view() == expected, _WAIT_MAX_S)
        sent = self._control_requests.heartbeats_sent
        holds_in_time(lambda: self._control_requests.heartbeat_answered > sent, _WAIT_MAX_S)
        return self._view()

    def fence_all(self) -> None:
        """Fence all brokers of the sequence, so that nothing waits for them."""
        for broker, epoch in self._epochs.items():
            self.ask(protocol.BrokerHeartbeatRequest(broker, epoch, 0, want_fence=True, want_shut_down=False))

    def _view(self) -> ControllerPartitions:
        states = broker_metadata(self._viewer, [self._topic]).partitions
        eligible = eligible_leaders(self._viewer, [self._topic])
        return {
            partition_name(int(name.rpartition("-")[2])): [
                self._conversation.naming.campaign_broker(leader),
                epoch,
                self._model_ids(isr),
                self._model_ids(eligible.get(name, ())),
            ]
            for name, (leader, epoch, isr) in sorted(states.items())
        }

    def _model_ids(self, brokers: Iterable[int]) -> list[int]:
        return sorted(map(self._conversation.naming.campaign_broker, brokers))
