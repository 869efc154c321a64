"""A real controller of KRaft, asked in the names of brokers that are not there, and a topic of its own for each sequence.

The one broker that is there leads nothing: it takes part in no sequence, and tells what the controller has decided.
"""

import time
import uuid
from collections.abc import Callable, Iterable
from typing import Any, Final

from kafka.errors import for_code

from harrow.cluster_model import errors
from harrow.cluster_model.kraft import protocol
from harrow.cluster_model.protocol import AlterPartitionRequest
from harrow.live_cluster.errors import LiveError
from harrow.live_cluster.requests.answers import Answer
from harrow.live_cluster.requests.control_requests import ControlRequests
from harrow.live_cluster.requests.controllers.driver import PartitionsSeen, RequestToController
from harrow.live_cluster.requests.controllers.model_controller import altered, heard, registered
from harrow.live_cluster.requests.controllers.steps import ASSIGNMENT, BROKERS, TOPIC, partition_name
from harrow.live_cluster.wire.connection import BrokerConnection
from harrow.live_cluster.wire.controller_requests import ALTER_PARTITION, HEARTBEAT, REGISTRATION
from harrow.live_cluster.wire.metadata import broker_metadata, elect_preferred_leaders, eligible_leaders
from harrow.live_cluster.wire.topics import create_topic

SETTINGS: Final = {"broker.session.timeout.ms": 600_000, "broker.heartbeat.interval.ms": 20_000}
"""No broker is fenced because nothing is heard of it. A controller has half an interval to answer a heartbeat (`ControllerApis`), also on a
busy machine."""
VIEWER_SETTINGS: Final = {"broker.heartbeat.interval.ms": 10}
"""The broker that is there says soon what it has heard, for each step waits for that."""

_REGISTRATION_VERSIONS: Final = range(5)
"""3.6 knows no directory of logs, nor a broker's epoch in its former life; 4.0 speaks all."""
_ALTER_PARTITION_VERSION: Final = 3
_PATIENCE_S: Final = 5.0
_TOPIC_PATIENCE_S: Final = 30.0
_LOOK_S: Final = 0.005
_PLAINTEXT: Final = 0
_NOWHERE: Final = 1
"""A port at which nothing listens."""
_FEATURES: Final = (
    *("metadata.version", "kraft.version", "transaction.version", "group.version"),
    *("eligible.leader.replicas.version", "share.version", "streams.version"),
)
_LEVEL_MAX: Final = 10_000
_NAMES: Final = {
    0: errors.NONE,
    77: errors.STALE_BROKER_EPOCH,
    101: errors.DUPLICATE_BROKER_REGISTRATION,
    102: errors.BROKER_ID_NOT_REGISTERED,
    107: errors.INELIGIBLE_REPLICA,
    # NEW_LEADER_ELECTED (KIP-841): what leaders make of it is the same.
    108: errors.FENCED_LEADER_EPOCH,
}
"""What kafka-python does not know, or calls otherwise."""


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
        self._controller = controller
        self._viewer = viewer
        self._passing = passing
        self._cluster_id = cluster_id
        self._topic = f"{TOPIC}-{number}"
        self._ids = {broker: number * 10 + broker for broker in BROKERS}
        self._names = {there: broker for broker, there in self._ids.items()}
        self._dirs = {broker: uuid.uuid4() for broker in BROKERS}
        self._lives: dict[tuple[int, int], uuid.UUID] = {}
        self._epochs: dict[int, int] = {}
        self._topic_id: uuid.UUID | None = None

    def ask(self, request: RequestToController) -> Answer:
        """Send a request, and wait for the answer."""
        if isinstance(request, protocol.BrokerRegistrationRequest):
            return self._register(request)
        if isinstance(request, protocol.BrokerHeartbeatRequest):
            return self._heartbeat(request)
        return self._alter_partition(request)

    def create_topic(self) -> None:
        """Create the topic, and wait until the broker has heard of it.

        Raises:
            LiveError: it hears nothing of it.

        """
        replicas = [[self._ids[broker] for broker in of_partition] for of_partition in ASSIGNMENT]
        create_topic(self._viewer, self._topic, replicas, {})
        self._until(lambda: len(self._told()) == len(ASSIGNMENT), _TOPIC_PATIENCE_S)
        ids = list(broker_metadata(self._viewer, [self._topic]).topics_by_id)
        if len(ids) != 1:
            raise LiveError(f"waited {_TOPIC_PATIENCE_S:.0f} s in vain for a topic of the controller's")
        self._topic_id = ids[0]

    def elect_preferred_leaders(self) -> None:
        names = (f"{self._topic}-{number}" for number in range(len(ASSIGNMENT)))
        elect_preferred_leaders(self._viewer, names)

    def partitions(self, expected: PartitionsSeen | None) -> PartitionsSeen:
        """Return what the broker tells that is there, once that has told the controller how much it has heard."""
        if self._topic_id is None:
            return {}
        if expected is not None:
            self._until(lambda: self._told() == expected)
        sent = self._passing.heartbeats_sent
        self._until(lambda: self._passing.heartbeat_answered > sent)
        return self._told()

    def fence_all(self) -> None:
        """Have the brokers fenced, so that nothing waits for them any more."""
        for broker, epoch in self._epochs.items():
            self._heartbeat(
                protocol.BrokerHeartbeatRequest(broker, epoch, 0, want_fence=True, want_shut_down=False)
            )

    def _register(self, request: protocol.BrokerRegistrationRequest) -> Answer:
        broker = request.broker
        life = self._lives.setdefault((broker, request.incarnation), uuid.uuid4())
        kind = REGISTRATION
        answer = self._controller.ask(
            kind[self._controller.version_of(kind, *_REGISTRATION_VERSIONS)](
                broker_id=self._ids[broker],
                cluster_id=self._cluster_id,
                incarnation_id=life,
                listeners=[
                    kind.Listener(
                        name="PLAINTEXT", host="127.0.0.1", port=_NOWHERE, security_protocol=_PLAINTEXT
                    )
                ],
                features=[
                    kind.Feature(name=name, min_supported_version=0, max_supported_version=_LEVEL_MAX)
                    for name in _FEATURES
                ],
                rack=None,
                is_migrating_zk_broker=False,
                log_dirs=[self._dirs[broker]],
                previous_broker_epoch=request.previous_broker_epoch,
            )
        )
        if not answer.error_code:
            self._epochs[broker] = answer.broker_epoch
        return registered(_error(answer.error_code), answer.broker_epoch)

    def _heartbeat(self, request: protocol.BrokerHeartbeatRequest) -> Answer:
        answer = self._controller.ask(
            HEARTBEAT[0](
                broker_id=self._ids[request.broker],
                broker_epoch=request.broker_epoch,
                current_metadata_offset=request.metadata_offset,
                want_fence=request.want_fence,
                want_shut_down=request.want_shut_down,
            )
        )
        return heard(
            _error(answer.error_code),
            is_caught_up=answer.is_caught_up,
            is_fenced=answer.is_fenced,
            should_shut_down=answer.should_shut_down,
        )

    def _alter_partition(self, request: AlterPartitionRequest) -> Answer:
        kind = ALTER_PARTITION
        topic = kind.TopicData
        partitions = [
            topic.PartitionData(
                partition_index=int(name.rpartition("-")[2]),
                leader_epoch=wanted.leader_epoch,
                new_isr_with_epochs=[
                    topic.PartitionData.BrokerState(broker_id=self._ids[member], broker_epoch=epoch)
                    for member, epoch in wanted.isr
                ],
                leader_recovery_state=0,
                partition_epoch=wanted.partition_epoch,
            )
            for name, wanted in request.partitions.items()
        ]
        answer = self._controller.ask(
            kind[_ALTER_PARTITION_VERSION](
                broker_id=self._ids[request.broker],
                broker_epoch=request.broker_epoch,
                topics=[topic(topic_id=self._topic_id, partitions=partitions)],
            )
        )
        return {
            "error": _error(answer.error_code),
            "partitions": {
                partition_name(told.partition_index): altered(_error(told.error_code), told.partition_epoch)
                for topic in answer.topics
                for told in topic.partitions
            },
        }

    def _told(self) -> PartitionsSeen:
        states = broker_metadata(self._viewer, [self._topic]).partitions
        eligible = eligible_leaders(self._viewer, [self._topic])
        return {
            partition_name(int(name.rpartition("-")[2])): [
                self._names.get(leader, leader),
                epoch,
                self._own(isr),
                self._own(eligible.get(name, ())),
            ]
            for name, (leader, epoch, isr) in sorted(states.items())
        }

    def _own(self, brokers: Iterable[int]) -> list[int]:
        return sorted(self._names.get(broker, broker) for broker in brokers)

    def _until(self, holds: Callable[[], bool], patience_s: float = _PATIENCE_S) -> None:
        """Wait until something holds; what does not in time shows in what is told then."""
        until_s = time.monotonic() + patience_s
        while not holds() and time.monotonic() < until_s:
            time.sleep(_LOOK_S)


def _error(code: int) -> str:
    known: Any = for_code(code)
    return _NAMES.get(code) or str(known.message)
