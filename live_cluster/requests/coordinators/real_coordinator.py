"""A real broker as coordinator of groups and transactions, with a group, transactional ids and a topic of its own for each sequence."""

import time
from collections.abc import Callable, Collection
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from kafka.protocol.metadata import ApiVersionsRequest

from harrow.cluster_model import errors, protocol
from harrow.cluster_model.coordinators import protocol as messages
from harrow.cluster_model.coordinators.transactions.transaction_metadata import DEAD
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
    LOOK_S,
    PATIENCE_S,
    Conversation,
    holds_in_time,
    lone_cluster,
)
from harrow.live_cluster.requests.coordinators.driver import (
    Answers,
    CoordinatorRequest,
    TransactionStates,
)
from harrow.live_cluster.requests.coordinators.model_coordinator import described_to_client
from harrow.live_cluster.requests.coordinators.steps import TOPIC
from harrow.live_cluster.wire.administration import create_topic
from harrow.live_cluster.wire.codec import Naming, Sent, exchange, fetched_batches, to_wire
from harrow.live_cluster.wire.connection import BrokerConnection, ConnectionLostError
from harrow.live_cluster.wire.coordinator_messages import transaction_records
from harrow.live_cluster.wire.metadata import broker_metadata
from harrow.live_cluster.wire.schemas import CONSUMER_GROUP_HEARTBEAT
from harrow.live_cluster.wire.stored_batches import next_offset

_SETTLED_S: Final = 10.0
"""How long what comes of a request may take on a busy machine, where something else is expected than is seen."""
_LATE_S: Final = 5.0
"""How long is waited for an answer that is expected, before and after the broker has shown that it answers."""
_BYTES_MAX: Final = 1_000_000
_BESIDE: Final = "beside"
"""A group, and a transactional id, of no sequence."""
_OFFSETS_PARTITION: Final = f"{CONSUMER_OFFSETS}-0"
_TRANSACTIONS_PARTITION: Final = f"{TRANSACTION_STATE}-0"
_TRANSACTION_US: Final = 60 * US_PER_SECOND
_PROBE: Final = "probe"
_REBALANCE_TIMEOUT_US: Final = 60 * US_PER_SECOND


class RealCoordinators:
    """A broker that is started for it, alone with its control plane, for one sequence after the other; with this context it ends."""

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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._open.close()

    def _await_coordinators(self) -> None:
        """Wait until the broker coordinates: the topics for that are created when somebody first looks for it."""
        beside = RealCoordinator(self._connections, self._states, 0, lambda: True)
        find = [
            messages.FindCoordinatorRequest(topic, _BESIDE) for topic in (CONSUMER_OFFSETS, TRANSACTION_STATE)
        ]
        init = protocol.InitProducerIdRequest(_BESIDE, _TRANSACTION_US)

        def coordinates() -> bool:
            return (
                all(beside.again(0, each)["error"] == errors.NONE for each in find)
                and self._connections.commit_beside() == errors.NONE
                and beside.again(0, init)["error"] == errors.NONE
            )

        if not holds_in_time(coordinates, 2 * PATIENCE_S):
            raise LiveError("the broker does not coordinate")

    def next_coordinator(self) -> "RealCoordinator":
        """Return the broker with a group and transactional ids that are new to it, for another sequence."""
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
    """Connections to the broker: one for each request that waits for its answer."""

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
        """Wait for no answers any more."""
        for connection, _ in self._waiting.values():
            connection.close()
        self._waiting.clear()

    def begin(self, number: int, sent: Sent) -> None:
        """Send a request."""
        connection = self._free.pop() if self._free else self._accepted()
        self._waiting[number] = connection, sent
        connection.send(sent.wire)

    def _accepted(self) -> BrokerConnection:
        """Return a connection over which the broker has answered: what goes over one that it has not accepted yet may be overtaken."""
        connection = self._connect()
        connection.ask(ApiVersionsRequest[0]())
        return connection

    def ended(self, expected: Collection[int]) -> Answers:
        """Return what has been answered, after what is expected to be."""
        found: Answers = {}
        for number in sorted(self._waiting):
            if number in expected:
                found.update(self._end(number, _LATE_S) or self._late_end(number))
        if self._waiting:
            # The broker handles one request after the other: what it has answered before this one is on its way. The first of them
            # may be read together with the request that was sent before, and be handled first.
            self.commit_beside()
            self.commit_beside()
            for number in sorted(self._waiting):
                found.update(self._end(number, 0.0))
        return found

    def _late_end(self, number: int) -> Answers:
        """Return an answer that has not come in time: it comes soon after the broker answers at all, or never."""
        self.commit_beside()
        return self._end(number, _LATE_S)

    def _end(self, number: int, timeout_s: float) -> Answers:
        connection, sent = self._waiting[number]
        if not connection.has_answered(timeout_s):
            return {}
        del self._waiting[number]
        self._free.append(connection)
        return {number: described_to_client(sent.answer(connection.receive(sent.wire)), sent.request)}

    def commit_beside(self) -> str:
        """Commit an offset for a group without members, in the partition that has all groups."""
        commit = messages.OffsetCommitRequest(
            _BESIDE, messages.NO_GENERATION, messages.NO_MEMBER, messages.NO_INSTANCE, {_OFFSETS_PARTITION: 0}
        )
        answer: messages.OffsetCommitResponse = exchange(self.own, commit)
        return answer.partitions[_OFFSETS_PARTITION]


class _TransactionLog:
    """What transactional ids are, by the log of their coordinator."""

    def __init__(self, connection: BrokerConnection) -> None:
        self._connection = connection
        self._offset = 0
        self._known: TransactionStates = {}

    def read(self) -> TransactionStates:
        """Return what the log has last of each id."""
        places = {_TRANSACTIONS_PARTITION: (self._offset, protocol.NO_EPOCH)}
        fetch = protocol.FetchRequest(protocol.CONSUMER_REPLICA_ID, 0, _BYTES_MAX, places)
        for _, batches in fetched_batches(self._connection, fetch).values():
            for batch in batches:
                self._offset = next_offset(batch)
                for record in transaction_records(batch):
                    has_producer = record.state != DEAD
                    self._known[record.transactional_id] = [
                        record.state,
                        *([record.producer_id, record.producer_epoch] if has_producer else []),
                    ]
        return self._known


class RealCoordinator:
    """A real broker as coordinator, with what a sequence calls group, transactional ids and topic (`CoordinatorDriver`)."""

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
        """Send a request, and return what has been answered; that the broker closes the connection is an answer.

        Raises:
            LiveError: the broker has ended.

        """
        sent = to_wire(request, self._connections.own, self._conversation.naming)
        try:
            self._connections.begin(number, sent)
            return self._connections.ended((number,) if expected is None else expected)
        except ConnectionLostError:
            self._connections.forget()
            return {number: self._conversation.no_answer(request)}

    def again(self, number: int, request: CoordinatorRequest) -> Answer:
        time.sleep(LOOK_S)
        answer = self.ask(number, request, None)
        return answer.get(number, dict(NO_ANSWER))

    def transactions(self, expected: TransactionStates | None) -> TransactionStates:
        if expected is not None:
            holds_in_time(lambda: self._own_states() == expected, _SETTLED_S)
        return self._own_states()

    def _own_states(self) -> TransactionStates:
        # Behind its letters a transactional id has the number of its sequence.
        return {
            name.removesuffix(self._suffix): state
            for name, state in self._states.read().items()
            if name.endswith(self._suffix) and name.removesuffix(self._suffix).isalpha()
        }

    def create_topic(self) -> None:
        """Create the topic, and wait until the broker leads it and its group coordinator has heard of it.

        Raises:
            LiveError: it does not.

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
    """Whether a group coordinator has heard of a topic that was just created, asked by a group of no sequence.

    A broker leads a topic's partitions, and tells clients so, before its group coordinator has the metadata with the
    topic: that is handed on last, and taken by a thread of the coordinator's own (``BrokerMetadataPublisher``,
    ``CoordinatorRuntime.onMetadataUpdate``). A group that asks meanwhile is assigned nothing (KIP-848), which is no
    difference to the model. All groups are in one partition, whose groups know the same topics.
    """

    def __init__(self, connection: BrokerConnection, topic: str, partitions: int) -> None:
        self._connection = connection
        self._topic = topic
        self._partitions = partitions

    def is_known(self) -> bool:
        """Return whether a member that joins is assigned the whole topic; where no coordinator assigns there is nothing to know."""
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
