"""A real broker as coordinator; each sequence has a new group, topic and transactional ids."""

import time
from collections.abc import Callable, Collection
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Self

from kafka.protocol.metadata import ApiVersionsRequest

from harrow.cluster_model import errors, protocol
from harrow.cluster_model.coordinators import protocol as messages
from harrow.cluster_model.coordinators.transactions.transaction_metadata import DEAD
from harrow.cluster_model.lazy_dataclass import replace
from harrow.cluster_model.settings import Value
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from harrow.cluster_model.topology import CONSUMER_OFFSETS, TRANSACTION_STATE, BrokerSpec, ClusterSpec
from harrow.live_cluster.errors import LiveError
from harrow.live_cluster.local.started_brokers import StartedBrokers
from harrow.live_cluster.names import Names
from harrow.live_cluster.requests.answers import NO_ANSWER, Answer
from harrow.live_cluster.requests.brokers.broker_driver import BROKER, PARTITIONS, partition_name
from harrow.live_cluster.requests.control_requests import ControlRequests
from harrow.live_cluster.requests.conversation import (
    PATIENCE_S,
    POLL_INTERVAL_S,
    Conversation,
    holds_in_time,
    lone_cluster,
)
from harrow.live_cluster.requests.coordinators.driver import (
    Answers,
    CoordinatorRequest,
    TransactionStates,
)
from harrow.live_cluster.requests.coordinators.model_coordinator import plain_client_answer
from harrow.live_cluster.requests.coordinators.steps import TOPIC
from harrow.live_cluster.wire.administration import create_topic
from harrow.live_cluster.wire.codec import Naming, Sent, exchange, fetched_batches, to_wire
from harrow.live_cluster.wire.connection import BrokerConnection, ConnectionLostError
from harrow.live_cluster.wire.coordinator_messages import transaction_records
from harrow.live_cluster.wire.metadata import broker_metadata
from harrow.live_cluster.wire.schemas import CONSUMER_GROUP_HEARTBEAT
from harrow.live_cluster.wire.stored_batches import next_offset

_SETTLED_S: Final = 10.0
"""How long the effects of a request may take on a busy machine."""
_LATE_S: Final = 5.0
"""How long to wait for an expected answer, and again after another answer has shown that the broker
is alive."""
_BYTES_MAX: Final = 1_000_000
_OUTSIDE: Final = "outside"
"""A group, and a transactional id, that no sequence uses."""
_OFFSETS_PARTITION: Final = f"{CONSUMER_OFFSETS}-0"
_TRANSACTIONS_PARTITION: Final = f"{TRANSACTION_STATE}-0"
_TRANSACTION_US: Final = 60 * US_PER_SECOND
_PROBE: Final = "probe"
_REBALANCE_TIMEOUT_US: Final = 60 * US_PER_SECOND


class RealCoordinators:
    """A broker with its control plane, which gets one sequence after the other, until exit."""

    def __init__(self, started: StartedBrokers, folder: Path, settings: dict[str, Value]) -> None:
        self._sequences = 0
        with ExitStack() as opened:
            spec = ClusterSpec(brokers=(BrokerSpec(id=BROKER),), topics=(), voters=1, settings=settings)
            self._cluster = opened.enter_context(lone_cluster(started, folder, spec, ControlRequests()))
            self._connections = _Connections(lambda: self._cluster.connect(BROKER, PATIENCE_S))
            opened.callback(self._connections.close)
            self._states = _TransactionLog(self._connections.own)
            self._await_coordinators()
            self._open = opened.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def _await_coordinators(self) -> None:
        """Wait until the broker acts as coordinator.

        The first FindCoordinator creates the internal topics.
        """
        outside = RealCoordinator(self._connections, self._states, 0, lambda: True)
        topics = (CONSUMER_OFFSETS, TRANSACTION_STATE)
        requests: list[CoordinatorRequest] = [
            *(messages.FindCoordinatorRequest(topic, _OUTSIDE) for topic in topics),
            protocol.InitProducerIdRequest(_OUTSIDE, _TRANSACTION_US),
        ]

        def coordinates() -> bool:
            has_answered = all(outside.again(0, request)["error"] == errors.NONE for request in requests)
            return has_answered and self._connections.commit_outside() == errors.NONE

        if not holds_in_time(coordinates, 2 * PATIENCE_S):
            raise LiveError("the broker does not coordinate")

    def next_coordinator(self) -> "RealCoordinator":
        """Return the broker for another sequence, with new names."""
        self._sequences += 1
        self._connections.forget()
        coordinator = RealCoordinator(
            self._connections,
            self._states,
            self._sequences,
            lambda: self._cluster.brokers[BROKER].is_running,
        )
        coordinator.create_topic()
        return coordinator


class _Connections:
    """Connections to the broker: one for each pending request."""

    def __init__(self, connect: Callable[[], BrokerConnection]) -> None:
        self._connect = connect
        self._free: list[BrokerConnection] = []
        self._waiting: dict[int, tuple[BrokerConnection, Sent]] = {}
        self.own = connect()

    def close(self) -> None:
        self.forget()
        for connection in (*self._free, self.own):
            connection.close()

    def forget(self) -> None:
        """Give up all pending requests."""
        for connection, _ in self._waiting.values():
            connection.close()
        self._waiting.clear()

    def begin(self, number: int, sent: Sent) -> None:
        connection = self._free.pop() if self._free else self._accepted()
        self._waiting[number] = connection, sent
        connection.send(sent.wire)

    def _accepted(self) -> BrokerConnection:
        """Return a connection that the broker has accepted: earlier requests could be overtaken."""
        connection = self._connect()
        connection.ask(ApiVersionsRequest[0]())
        return connection

    def answers(self, expected: Collection[int]) -> Answers:
        """Wait for the expected answers, and return all that have arrived."""
        answers: Answers = {}
        for number in sorted(self._waiting):
            if number in expected:
                answers.update(self._answer(number, _LATE_S) or self._late_answer(number))
        if self._waiting:
            # The broker handles one request after the other, so earlier answers have arrived when
            # this one is answered. Two are sent, because the first may be read together with the
            # request before it, and be handled first.
            self.commit_outside()
            self.commit_outside()
            for number in sorted(self._waiting):
                answers.update(self._answer(number, 0.0))
        return answers

    def _late_answer(self, number: int) -> Answers:
        """Return a late answer: it comes soon after the broker answers anything, or never."""
        self.commit_outside()
        return self._answer(number, _LATE_S)

    def _answer(self, number: int, timeout_s: float) -> Answers:
        connection, sent = self._waiting[number]
        if not connection.has_answered(timeout_s):
            return {}
        del self._waiting[number]
        self._free.append(connection)
        return {number: plain_client_answer(sent.answer(connection.receive(sent.wire)), sent.request)}

    def commit_outside(self) -> str:
        """Commit an offset for a group without members, in the partition of all groups."""
        commit = messages.OffsetCommitRequest(
            _OUTSIDE,
            messages.NO_GENERATION,
            messages.NO_MEMBER,
            messages.NO_INSTANCE,
            {_OFFSETS_PARTITION: 0},
        )
        answer: messages.OffsetCommitResponse = exchange(self.own, commit)
        return answer.partitions[_OFFSETS_PARTITION]


class _TransactionLog:
    """The states of transactional ids in their coordinator's log."""

    def __init__(self, connection: BrokerConnection) -> None:
        self._connection = connection
        self._offset = 0
        self._states: TransactionStates = {}

    def read(self) -> TransactionStates:
        """Read new records, and return the last state of each transactional id."""
        positions = {_TRANSACTIONS_PARTITION: protocol.PartitionData(self._offset, protocol.NO_EPOCH)}
        fetch = protocol.FetchRequest(protocol.CONSUMER_REPLICA_ID, 0, _BYTES_MAX, positions)
        for _, batches in fetched_batches(self._connection, fetch).values():
            for batch in batches:
                self._offset = next_offset(batch)
                for record in transaction_records(batch):
                    has_producer = record.state != DEAD
                    self._states[record.transactional_id] = [
                        record.state,
                        *([record.producer_id, record.producer_epoch] if has_producer else []),
                    ]
        return self._states


class RealCoordinator:
    """A `CoordinatorDriver` for a real broker, with the names of one sequence."""

    def __init__(
        self,
        connections: _Connections,
        states: _TransactionLog,
        sequence: int,
        is_running: Callable[[], bool],
    ) -> None:
        self.sequence = sequence
        self._connections = connections
        self._states = states
        self._suffix = str(sequence) if sequence else ""
        self._topic = TOPIC + self._suffix
        naming = Naming(Names(topics={TOPIC: self._topic}), self._suffix)
        self._conversation = Conversation(connections.own, naming, is_running)

    def ask(self, number: int, request: CoordinatorRequest, expected: Collection[int] | None) -> Answers:
        """Send a request, and return all new answers; a closed connection counts as an answer.

        Raise `LiveError` if the broker has ended.
        """
        sent = to_wire(request, self._connections.own, self._conversation.naming)
        try:
            self._connections.begin(number, sent)
            return self._connections.answers((number,) if expected is None else expected)
        except ConnectionLostError:
            self._connections.forget()
            return {number: self._conversation.no_answer(request)}

    def again(self, number: int, request: CoordinatorRequest) -> Answer:
        time.sleep(POLL_INTERVAL_S)
        answer = self.ask(number, request, None)
        return answer.get(number, dict(NO_ANSWER))

    def transactions(self, expected: TransactionStates | None) -> TransactionStates:
        if expected is not None:
            holds_in_time(lambda: self._own_states() == expected, _SETTLED_S)
        return self._own_states()

    def _own_states(self) -> TransactionStates:
        # A transactional id consists of letters and the number of its sequence.
        return {
            name.removesuffix(self._suffix): state
            for name, state in self._states.read().items()
            if name.endswith(self._suffix) and name.removesuffix(self._suffix).isalpha()
        }

    def create_topic(self) -> None:
        """Create the topic, and wait until the broker leads it and the group coordinator knows it.

        Raise `LiveError` if it takes too long.
        """
        own = self._connections.own
        create_topic(own, self._topic, [(BROKER,)] * len(PARTITIONS), {})
        names = [partition_name(number) for number in PARTITIONS]
        ends = protocol.ListOffsetsRequest(protocol.CONSUMER_REPLICA_ID, dict.fromkeys(names, -1))
        probe = TopicProbe(own, self._topic, len(PARTITIONS))

        def is_there() -> bool:
            leaders = self._conversation.exchange(protocol.MetadataRequest()).partitions
            return (
                [leader for leader, _ in leaders.values()] == [BROKER] * len(PARTITIONS)
                and all(error == errors.NONE for error, _ in self.again(0, ends)["partitions"].values())
                and probe.is_known()
            )

        if not holds_in_time(is_there):
            raise LiveError(f"waited {PATIENCE_S:.0f} s in vain for {self._topic}")
        ids = {name: id_ for id_, name in broker_metadata(own, [self._topic]).topics_by_id.items()}
        self._conversation.naming = replace(self._conversation.naming, ids=ids)


class TopicProbe:
    """Finds out whether the group coordinator knows a new topic, with a group of its own.

    A broker leads the partitions of a topic, and reports so to clients, before its group
    coordinator knows the topic: the coordinator gets the metadata last, in a thread of its own
    (``BrokerMetadataPublisher``, ``CoordinatorRuntime.onMetadataUpdate``). Until then a group is
    assigned nothing (KIP-848), which is not a difference from the model. All groups are in one
    partition, whose groups know the same topics.
    """

    def __init__(self, connection: BrokerConnection, topic: str, partitions: int) -> None:
        self._connection = connection
        self._topic = topic
        self._partitions = partitions

    def is_known(self) -> bool:
        """Return whether a joining member is assigned the whole topic.

        Return True if the broker has no consumer groups.
        """
        if not self._connection.speaks(CONSUMER_GROUP_HEARTBEAT, 0):
            return True
        answer = self._heartbeat(messages.JOIN_EPOCH, _REBALANCE_TIMEOUT_US, (self._topic,), ())
        if answer.error == errors.UNSUPPORTED_VERSION:
            return True
        self._heartbeat(messages.LEAVE_EPOCH)
        return len(answer.assignment or ()) == self._partitions

    def _heartbeat(
        self,
        epoch: int,
        timeout_us: int | None = None,
        topics: tuple[str, ...] | None = None,
        owned: tuple[str, ...] | None = None,
    ) -> messages.ConsumerGroupHeartbeatResponse:
        group = f"{_PROBE}-{self._topic}"
        request = messages.ConsumerGroupHeartbeatRequest(
            group, _PROBE, epoch, messages.NO_INSTANCE, timeout_us, topics, None, owned
        )
        answer: messages.ConsumerGroupHeartbeatResponse = exchange(self._connection, request)
        return answer
