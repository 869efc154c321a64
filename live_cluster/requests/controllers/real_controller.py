"""A real controller of KRaft, asked in the names of brokers that are not there, and a topic of its own for each sequence.

The one broker that is there leads nothing: it takes part in no sequence, and tells what the controller has decided.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from harrow.cluster_model import errors
from harrow.cluster_model.kraft import protocol
from harrow.live_cluster.errors import LiveError
from harrow.live_cluster.names import Names
from harrow.live_cluster.requests.answers import Answer, described
from harrow.live_cluster.requests.control_requests import ControlRequests
from harrow.live_cluster.requests.controllers.driver import PartitionsSeen, RequestToController
from harrow.live_cluster.requests.controllers.steps import ASSIGNMENT, BROKERS, TOPIC, partition_name
from harrow.live_cluster.requests.conversation import PATIENCE_S, Conversation, holds_in_time
from harrow.live_cluster.wire.administration import create_topic, elect_preferred_leaders
from harrow.live_cluster.wire.codec import Naming
from harrow.live_cluster.wire.connection import BrokerConnection
from harrow.live_cluster.wire.metadata import broker_metadata, eligible_leaders

SETTINGS: Final = {"broker.session.timeout.ms": 600_000, "broker.heartbeat.interval.ms": 20_000}
"""No broker is fenced because nothing is heard of it. A controller has half an interval to answer a heartbeat (`ControllerApis`), also on a
busy machine."""
VIEWER_SETTINGS: Final = {"broker.heartbeat.interval.ms": 10}
"""The broker that is there says soon what it has heard, for each step waits for that."""

_PATIENCE_S: Final = 5.0


class RealController:
    """A real controller with the topic of one sequence (`ControllerDriver`).

    *number* is that of the sequence: its brokers and its topic have ids and a name that no other has.
    """

    def __init__(
        self,
        controller: BrokerConnection,
        viewer: BrokerConnection,
        passing: ControlRequests,
        *,
        number: int,
        cluster_id: str,
    ) -> None:
        self._viewer = viewer
        self._passing = passing
        self._topic = f"{TOPIC}-{number}"
        names = Names({broker: number * 10 + broker for broker in BROKERS}, {TOPIC: self._topic})
        self._conversation = Conversation(controller, Naming(names, cluster_id=cluster_id))
        self._epochs: dict[int, int] = {}

    def ask(self, request: RequestToController) -> Answer:
        """Send a request, and wait for the answer."""
        answer = self._conversation.exchange(request)
        if isinstance(answer, protocol.BrokerRegistrationResponse) and answer.error == errors.NONE:
            assert isinstance(request, protocol.BrokerRegistrationRequest)
            self._epochs[request.broker] = answer.broker_epoch
        return described(answer)

    def create_topic(self) -> None:
        """Create the topic, and wait until the broker has heard of it.

        Raises:
            LiveError: it hears nothing of it.

        """
        brokers = self._conversation.naming.names.broker
        replicas = [[brokers(broker) for broker in of_partition] for of_partition in ASSIGNMENT]
        create_topic(self._viewer, self._topic, replicas, {})
        holds_in_time(lambda: len(self._told()) == len(ASSIGNMENT))
        ids = list(broker_metadata(self._viewer, [self._topic]).topics_by_id)
        if len(ids) != 1:
            raise LiveError(f"waited {PATIENCE_S:.0f} s in vain for a topic of the controller's")
        self._conversation.naming = replace(self._conversation.naming, ids={self._topic: ids[0]})

    def elect_preferred_leaders(self) -> None:
        names = (f"{self._topic}-{number}" for number in range(len(ASSIGNMENT)))
        elect_preferred_leaders(self._viewer, names)

    def partitions(self, expected: PartitionsSeen | None) -> PartitionsSeen:
        """Return what the broker tells that is there, once that has told the controller how much it has heard."""
        if not self._conversation.naming.ids:
            return {}
        if expected is not None:
            holds_in_time(lambda: self._told() == expected, _PATIENCE_S)
        sent = self._passing.heartbeats_sent
        holds_in_time(lambda: self._passing.heartbeat_answered > sent, _PATIENCE_S)
        return self._told()

    def fence_all(self) -> None:
        """Have the brokers fenced, so that nothing waits for them any more."""
        for broker, epoch in self._epochs.items():
            self.ask(protocol.BrokerHeartbeatRequest(broker, epoch, 0, want_fence=True, want_shut_down=False))

    def _told(self) -> PartitionsSeen:
        states = broker_metadata(self._viewer, [self._topic]).partitions
        eligible = eligible_leaders(self._viewer, [self._topic])
        return {
            partition_name(int(name.rpartition("-")[2])): [
                self._conversation.naming.own_broker(leader),
                epoch,
                self._own(isr),
                self._own(eligible.get(name, ())),
            ]
            for name, (leader, epoch, isr) in sorted(states.items())
        }

    def _own(self, brokers: Iterable[int]) -> list[int]:
        return sorted(map(self._conversation.naming.own_broker, brokers))
