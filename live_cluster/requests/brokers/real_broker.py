"""A real broker with its control plane and nothing else, and a new topic for each sequence.

The driver plays the follower: it registers a second broker in ZooKeeper, at an address where
nothing listens. The controller believes that the follower is alive, adds it to ISRs and elects it.
The driver sends fetches in the follower's name, and the real broker answers them.
"""

import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, Self

from kafka.protocol.metadata import MetadataRequest

from harrow.cluster_model import errors, protocol
from harrow.cluster_model.release.profiles import behaviours_in
from harrow.cluster_model.settings import Value
from harrow.cluster_model.topology import BrokerSpec, ClusterSpec
from harrow.live_cluster.errors import LiveError
from harrow.live_cluster.local.kraft_control_plane import KRaftControlPlane
from harrow.live_cluster.local.started_brokers import StartedBrokers
from harrow.live_cluster.local.zookeeper_control_plane import ZooKeeperControlPlane
from harrow.live_cluster.local.zookeeper_state import ZooKeeperState
from harrow.live_cluster.names import Names
from harrow.live_cluster.releases.kafka_release import ZOOKEEPER, KafkaRelease
from harrow.live_cluster.requests.answers import Answer, plain_answer
from harrow.live_cluster.requests.brokers.broker_driver import (
    BROKER,
    FOLLOWER,
    PARTITIONS,
    TOPIC,
    PartitionStates,
    SingleRequest,
    partition_name,
)
from harrow.live_cluster.requests.control_requests import ControlRequests
from harrow.live_cluster.requests.controllers.real_controller import (
    SETTINGS as CONTROLLER_SETTINGS,
)
from harrow.live_cluster.requests.controllers.real_controller import (
    VIEWER_SETTINGS,
    RealController,
)
from harrow.live_cluster.requests.conversation import (
    PATIENCE_S,
    POLL_INTERVAL_S,
    Conversation,
    holds_in_time,
    lone_cluster,
)
from harrow.live_cluster.wire.administration import create_topic
from harrow.live_cluster.wire.codec import Naming
from harrow.live_cluster.wire.connection import BrokerConnection

_METADATA_WITH_EPOCHS: Final = 7
"""The first version of Metadata with leader epochs (KIP-320)."""
_ISR_CHANGE_MAX_S: Final = 5.0
"""How long the controller may take to write an ISR on a busy machine."""
_FIRST_WITH_ALTER_PARTITION: Final = (2, 7)
"""Since then a leader continues while the controller writes an ISR (KIP-497)."""


class NotSettledError(LiveError):
    """The cluster does not reach the state that the control plane's state implies."""


class RealBrokers:
    """A broker with ZooKeeper or KRaft, which gets one sequence after the other, until exit."""

    def __init__(self, started: StartedBrokers, folder: Path, settings: dict[str, Value]) -> None:
        self._release = started.release
        self._sequences = 0
        self._last: RealBroker | None = None
        self._last_controller: RealController | None = None
        self.is_followed = started.metadata == ZOOKEEPER
        with ExitStack() as opened:
            self._control_requests = ControlRequests()
            spec = ClusterSpec(
                brokers=(BrokerSpec(id=BROKER, settings={} if self.is_followed else {**VIEWER_SETTINGS}),),
                topics=(),
                voters=1,
                settings=settings if self.is_followed else {**settings, **CONTROLLER_SETTINGS},
            )
            self._cluster = opened.enter_context(lone_cluster(started, folder, spec, self._control_requests))
            self._connection = opened.enter_context(self._cluster.connect(BROKER, PATIENCE_S))
            self._zookeeper = None
            self._controller: BrokerConnection | None = None
            control = self._cluster.control
            if isinstance(control, KRaftControlPlane):
                self._controller = opened.enter_context(
                    BrokerConnection(*control.addresses.values(), timeout_s=PATIENCE_S)
                )
                self._cluster_id = control.cluster_id
            if isinstance(control, ZooKeeperControlPlane):
                self._zookeeper = ZooKeeperState(control.address)
                opened.callback(self._zookeeper.close)
                self._zookeeper.start()
            self._open = opened.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def next_broker(self) -> "RealBroker":
        """Return the broker for another sequence, with a new topic and a new follower."""
        if self._last is not None and self.is_followed:
            self._last.unregister_follower()
        self._sequences += 1
        # With KRaft there is no follower; its id must not be that of a broker in a controller
        # sequence.
        follower = BROKER + self._sequences if self.is_followed else FOLLOWER
        broker = RealBroker(
            self._connection,
            self._zookeeper,
            topic=f"{TOPIC}{self._sequences}",
            follower=follower,
            release=self._release,
            is_running=lambda: self._cluster.brokers[BROKER].is_running,
            control_requests=self._control_requests,
        )
        broker.create_topic((follower, BROKER) if self.is_followed else (BROKER,))
        self._last = broker
        return broker

    def next_controller(self) -> RealController | None:
        """Return the controller for another sequence, with a new topic and new brokers.

        Return None with ZooKeeper.
        """
        if self._controller is None:
            return None
        if self._last_controller is not None:
            self._last_controller.fence_all()
        self._sequences += 1
        self._last_controller = RealController(
            self._controller,
            self._connection,
            self._control_requests,
            number=self._sequences,
            cluster_id=self._cluster_id,
        )
        return self._last_controller


class RealBroker:
    """A `BrokerDriver` for a real broker; *topic* and *follower* are the names of one sequence."""

    def __init__(
        self,
        connection: BrokerConnection,
        zookeeper: ZooKeeperState | None,
        *,
        topic: str,
        follower: int,
        release: KafkaRelease,
        is_running: Callable[[], bool],
        control_requests: ControlRequests,
    ) -> None:
        self._naming = Naming(Names({BROKER: BROKER, FOLLOWER: follower}, {TOPIC: topic}))
        self._conversation = Conversation(connection, self._naming, is_running)
        self._control_requests = control_requests
        self._zookeeper = zookeeper
        self._topic = topic
        self._follower = follower
        self._is_async = release.version >= _FIRST_WITH_ALTER_PARTITION
        self._reelects = behaviours_in(release.name).replication.preferred_leader_reelected
        self._knows_epochs = connection.speaks(MetadataRequest, _METADATA_WITH_EPOCHS)
        self._is_registered = False

    def ask(self, request: SingleRequest) -> Answer:
        """Send a request, and wait for the answer; a closed connection counts as an answer.

        Raise `LiveError` if the broker has ended.
        """
        if isinstance(request, protocol.InitProducerIdRequest):
            # The broker may be waiting for its next block of ids. Clients retry, too.
            answers: list[Answer] = []

            def is_loaded() -> bool:
                answers[:] = [self._conversation.ask(request)]
                return bool(answers[0]["error"] != errors.COORDINATOR_LOAD_IN_PROGRESS)

            self._until("a block of producer ids", is_loaded)
            return answers[0]
        return self._conversation.ask(request, with_leader_epochs=self._knows_epochs)

    def create_topic(self, replicas: tuple[int, ...]) -> None:
        """Create the topic, and wait until the broker leads it."""
        create_topic(self._conversation.connection, self._topic, [replicas] * len(PARTITIONS), {})
        self._until(
            "a topic",
            lambda: (
                [leader for leader, *_ in self._metadata()["partitions"].values()]
                == [BROKER] * len(PARTITIONS)
            ),
        )
        names = [partition_name(number) for number in PARTITIONS]
        ends = protocol.ListOffsetsRequest(protocol.CONSUMER_REPLICA_ID, dict.fromkeys(names, -1))
        self._until(
            "logs",
            lambda: all(
                error == errors.NONE for error, _ in self._conversation.exchange(ends).partitions.values()
            ),
        )

    def _metadata(self) -> Answer:
        # A closed connection is not an answer here: there are no partitions to wait for.
        response = self._conversation.exchange(protocol.MetadataRequest())
        return plain_answer(response, with_leader_epochs=self._knows_epochs)

    # The follower

    def register_follower(self) -> None:
        """Register the follower like the broker, at an address where nothing listens."""
        assert self._zookeeper is not None
        if self._is_registered:
            return
        self._is_registered = True
        self._zookeeper.register_beside(BROKER, self._follower)
        self._until("a registration", lambda: FOLLOWER in self._brokers())

    def unregister_follower(self) -> None:
        """Unregister the follower.

        The follower leaves its ISRs, and the partitions get a new leader epoch.
        """
        assert self._zookeeper is not None
        if not self._is_registered:
            return
        self._is_registered = False
        expected = {
            name: [BROKER, epoch + (FOLLOWER in isr), [BROKER]] if FOLLOWER in isr else [leader, epoch, isr]
            for name, (leader, epoch, isr) in self._states().items()
        }
        self._zookeeper.unregister(self._follower)
        self._until("an election", lambda: self._states() == expected)
        self._await_metadata(expected)
        self._until("the end of a registration", lambda: FOLLOWER not in self._brokers())

    def elect_follower(self) -> None:
        """Ask for a preferred leader election; the follower leads where it is in the ISR."""
        assert self._zookeeper is not None
        before = self._states()
        expected = {
            name: [FOLLOWER, epoch + 1, isr]
            if self._is_registered and FOLLOWER in isr and (self._reelects or leader != FOLLOWER)
            else [leader, epoch, isr]
            for name, (leader, epoch, isr) in before.items()
        }
        self._zookeeper.request_preferred_leaders(f"{self._topic}-{number}" for number in PARTITIONS)
        self._until("the end of an election", self._zookeeper.has_no_preferred_election)
        self._until("an election", lambda: self._states() == expected)
        self._await_metadata(expected)

    def partition_states(self, expected: PartitionStates | None) -> PartitionStates:
        """Return ZooKeeper's states.

        If the controller writes ISRs (KIP-497), the broker answers a fetch before the ISR changes.
        So wait until the states are the *expected* ones and all AlterPartition requests are
        answered. An unexpected change that comes later shows up in the next states.
        """
        until_s = time.monotonic() + _ISR_CHANGE_MAX_S
        while True:
            is_over = not self._is_async or time.monotonic() > until_s
            settled = not self._control_requests.are_pending()
            states = {name: list(state) for name, state in self._states().items()}
            if is_over or (settled and expected in (None, states)):
                return states
            time.sleep(POLL_INTERVAL_S)

    def _states(self) -> dict[str, list[Any]]:
        assert self._zookeeper is not None
        states = {}
        for number in PARTITIONS:
            state = self._zookeeper.partition_state(f"{self._topic}-{number}")
            if state is not None:
                leader, epoch, isr = state
                states[partition_name(number)] = [
                    self._naming.campaign_broker(leader),
                    epoch,
                    sorted(self._naming.campaign_broker(broker) for broker in isr),
                ]
        return states

    def _await_metadata(self, expected: dict[str, list[Any]]) -> None:
        """Wait until the broker has handled the controller's requests.

        UpdateMetadata is the last one.
        """
        partitions = {
            name: [leader, epoch] if self._knows_epochs else [leader]
            for name, (leader, epoch, _) in expected.items()
        }
        self._until("metadata", lambda: self._metadata()["partitions"] == partitions)

    def _brokers(self) -> list[int]:
        return list(self._metadata()["brokers"])

    def _until(self, what: str, condition: Callable[[], bool]) -> None:
        """Wait until something holds; raise `NotSettledError` if it takes too long."""
        if not holds_in_time(condition):
            states = "" if self._zookeeper is None else f"; {self._topic} is {self._states()}"
            raise NotSettledError(f"waited {PATIENCE_S:.0f} s in vain for {what}{states}")
