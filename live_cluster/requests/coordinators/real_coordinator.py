"""A real broker as coordinator of groups and transactions, with a group, transactional ids and a topic of its own for each sequence."""

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from kafka.errors import for_code
from kafka.protocol.consumer import (
    FetchRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListOffsetsRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
)
from kafka.protocol.metadata import ApiVersionsRequest, FindCoordinatorRequest, MetadataRequest
from kafka.protocol.producer import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    ProduceRequest,
)
from kafka.record import MemoryRecordsBuilder

from harrow.cluster_model import errors, protocol
from harrow.cluster_model.coordinators import protocol as messages
from harrow.cluster_model.coordinators.transactions.transaction_metadata import DEAD
from harrow.cluster_model.log.record_batch import RecordBatch
from harrow.cluster_model.settings import Value
from harrow.cluster_model.sim.choices import SeededStream
from harrow.cluster_model.sim.virtual_time import US_PER_MS
from harrow.cluster_model.topology import CONSUMER_OFFSETS, TRANSACTION_STATE, BrokerSpec, ClusterSpec
from harrow.live_cluster.errors import LiveError
from harrow.live_cluster.links.link_faults import LinkFaults
from harrow.live_cluster.links.proxy import Proxies
from harrow.live_cluster.local.local_cluster import LocalCluster
from harrow.live_cluster.local.started_brokers import StartedBrokers
from harrow.live_cluster.requests.answers import NO_ANSWER, Answer
from harrow.live_cluster.requests.broker_driver import BROKER, PARTITIONS, partition_name
from harrow.live_cluster.requests.control_requests import ControlRequests
from harrow.live_cluster.requests.coordinators.driver import (
    Answers,
    CoordinatorRequest,
    TransactionStates,
)
from harrow.live_cluster.requests.coordinators.model_coordinator import (
    described_batch,
    heard,
    is_committed,
    joined,
    read,
)
from harrow.live_cluster.requests.coordinators.steps import TOPIC
from harrow.live_cluster.requests.coordinators.topic_probe import TopicProbe
from harrow.live_cluster.watches.activity import Activity
from harrow.live_cluster.watches.metadata_seen import MetadataSeen
from harrow.live_cluster.wire.connection import BrokerConnection, ConnectionLostError
from harrow.live_cluster.wire.coordinator_messages import (
    assigned_partitions,
    assignment,
    subscribed_topics,
    subscription,
    transaction_records,
)
from harrow.live_cluster.wire.group_requests import CONSUMER_GROUP_HEARTBEAT, TXN_OFFSET_COMMIT
from harrow.live_cluster.wire.metadata import WITH_TOPIC_IDS
from harrow.live_cluster.wire.stored_batches import as_batches, next_offset, whole_batches
from harrow.live_cluster.wire.topics import create_topic

_PATIENCE_S: Final = 30.0
_SETTLED_S: Final = 10.0
"""How long what comes of a request may take on a busy machine, where something else is expected than is seen."""
_LATE_S: Final = 5.0
"""How long is waited for an answer that is expected, before and after the broker has shown that it answers."""
_LOOK_S: Final = 0.005
_LATEST: Final = -1
_LARGE: Final = 1_000_000
_GROUPS, _TRANSACTIONAL_IDS = 0, 1
_PROTOCOL_TYPE: Final = "consumer"
_BESIDE: Final = "beside"
"""A group, and a transactional id, of no sequence."""
_FIRST_WITH_VERIFICATION: Final = 4
_OFFSET_FETCH_WITH_MEMBER: Final = 9
_TRANSACTION_MS: Final = 60_000
_NOT_COMPARED: Final = -1
_NAMES: Final = {0: errors.NONE, -1: errors.UNKNOWN_SERVER_ERROR}


class RealCoordinators:
    """A broker that is started for it, alone with its control plane, for one sequence after the other; with this context it ends."""

    def __init__(self, started: StartedBrokers, folder: Path, settings: dict[str, Value]) -> None:
        self._sequences = 0
        with ExitStack() as opened:
            faults = LinkFaults(SeededStream(0, "network"), lambda *_: None)
            proxies = opened.enter_context(Proxies(faults, ControlRequests()))
            self._cluster = opened.enter_context(
                LocalCluster(
                    ClusterSpec(brokers=(BrokerSpec(id=BROKER),), topics=(), voters=1, settings=settings),
                    release=started.release,
                    java=started.java,
                    jars=started.jars,
                    folder=folder,
                    proxies=proxies,
                    seen=MetadataSeen(lambda *_: None),
                    metadata=started.metadata,
                    activity=Activity(),
                    shared=started.shared_classes(),
                )
            )
            self._cluster.start()
            self._connections = _Connections(lambda: self._cluster.connect(BROKER, _PATIENCE_S))
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
        until_s = time.monotonic() + 2 * _PATIENCE_S
        init = protocol.InitProducerIdRequest(_BESIDE, _TRANSACTION_MS * US_PER_MS)
        while not (
            all(beside.again(0, each)["error"] == errors.NONE for each in find)
            and self._connections.commit_beside() == errors.NONE
            and beside.again(0, init)["error"] == errors.NONE
        ):
            if time.monotonic() > until_s:
                raise LiveError("the broker does not coordinate")
            time.sleep(_LOOK_S)

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
        self._waiting: dict[int, tuple[BrokerConnection, Any, Callable[[Any], Answer]]] = {}
        self.own = connect()

    def close(self) -> None:
        self.forget()
        for connection in (*self._free, self.own):
            connection.close()

    def forget(self) -> None:
        """Wait for no answers any more."""
        for connection, *_ in self._waiting.values():
            connection.close()
        self._waiting.clear()

    def begin(self, number: int, request: Any, described: Callable[[Any], Answer]) -> None:
        """Send a request, whose answer is described so."""
        connection = self._free.pop() if self._free else self._accepted()
        self._waiting[number] = connection, request, described
        connection.send(request)

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
        connection, request, described = self._waiting[number]
        if not connection.has_answered(timeout_s):
            return {}
        del self._waiting[number]
        self._free.append(connection)
        return {number: described(connection.receive(request))}

    def commit_beside(self) -> str:
        """Commit an offset for a group without members, in the partition that has all groups."""
        kind = OffsetCommitRequest
        topic = kind.OffsetCommitRequestTopic
        partition = topic.OffsetCommitRequestPartition(
            partition_index=0, committed_offset=0, committed_leader_epoch=-1, committed_metadata=""
        )
        answer = self.own.ask(
            kind[self.own.version_of(kind, *range(2, 9))](
                group_id=_BESIDE,
                generation_id_or_member_epoch=messages.NO_GENERATION,
                member_id="",
                group_instance_id=None,
                retention_time_ms=-1,
                topics=[topic(name=CONSUMER_OFFSETS, partitions=[partition])],
            )
        )
        return _error(answer.topics[0].partitions[0].error_code)


class _TransactionLog:
    """What transactional ids are, by the log of their coordinator."""

    def __init__(self, connection: BrokerConnection) -> None:
        self._connection = connection
        self._offset = 0
        self._known: TransactionStates = {}

    def read(self) -> TransactionStates:
        """Return what the log has last of each id."""
        topic = FetchRequest.FetchTopic
        asked = topic.FetchPartition(
            partition=0, fetch_offset=self._offset, partition_max_bytes=_LARGE, log_start_offset=-1
        )
        answer = self._connection.ask(
            FetchRequest[self._connection.version_of(FetchRequest, *range(5, 11))](
                replica_id=-1,
                max_wait_ms=0,
                min_bytes=0,
                max_bytes=_LARGE,
                isolation_level=0,
                topics=[topic(topic=TRANSACTION_STATE, partitions=[asked])],
            )
        )
        for told in (each for response in answer.responses for each in response.partitions):
            for batch, _ in whole_batches(bytes(told.records or b"")):
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
        self._is_running = is_running
        self._topic = TOPIC + self._suffix
        self._topic_id: Any = None
        self._made: Mapping[str, Callable[[Any], tuple[Any, Callable[[Any], Answer]]]] = {
            messages.JoinGroupRequest.api: self._join,
            messages.SyncGroupRequest.api: self._sync,
            messages.HeartbeatRequest.api: self._heartbeat,
            messages.LeaveGroupRequest.api: self._leave,
            messages.ConsumerGroupHeartbeatRequest.api: self._consumer_heartbeat,
            messages.OffsetCommitRequest.api: self._commit,
            messages.OffsetFetchRequest.api: self._committed,
            messages.FindCoordinatorRequest.api: self._find,
            protocol.InitProducerIdRequest.api: self._init,
            messages.AddPartitionsToTxnRequest.api: self._add_partitions,
            messages.AddOffsetsToTxnRequest.api: self._add_offsets,
            messages.TxnOffsetCommitRequest.api: self._txn_commit,
            messages.EndTxnRequest.api: self._end_txn,
            protocol.ProduceRequest.api: self._produce,
            protocol.FetchRequest.api: self._fetch,
            protocol.ListOffsetsRequest.api: self._list_offsets,
        }

    def ask(self, number: int, request: CoordinatorRequest, expected: Collection[int] | None) -> Answers:
        """Send a request, and return what has been answered; that the broker closes the connection is an answer.

        Raises:
            LiveError: the broker has ended.

        """
        sent, described = self._made[request.api](request)
        try:
            self._connections.begin(number, sent, described)
            return self._connections.ended((number,) if expected is None else expected)
        except ConnectionLostError:
            if not self._is_running():
                raise LiveError(
                    f"the broker has ended; {request.api} was the last that it was asked"
                ) from None
            self._connections.forget()
            return {number: dict(NO_ANSWER)}

    def again(self, number: int, request: CoordinatorRequest) -> Answer:
        time.sleep(_LOOK_S)
        answer = self.ask(number, request, None)
        return answer.get(number, dict(NO_ANSWER))

    def transactions(self, expected: TransactionStates | None) -> TransactionStates:
        until_s = time.monotonic() + _SETTLED_S
        while True:
            found = self._own_states()
            if expected is None or found == expected or time.monotonic() > until_s:
                return found
            time.sleep(_LOOK_S)

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
        version = own.version_of(MetadataRequest, *range(4, 10), WITH_TOPIC_IDS)
        names = [partition_name(number) for number in PARTITIONS]
        ends = protocol.ListOffsetsRequest(protocol.CONSUMER_REPLICA_ID, dict.fromkeys(names, -1))
        probe = TopicProbe(own, self._topic, len(PARTITIONS))
        until_s = time.monotonic() + _PATIENCE_S
        while True:
            answer = own.ask(
                MetadataRequest[version](
                    topics=[MetadataRequest.MetadataRequestTopic(name=self._topic)],
                    allow_auto_topic_creation=False,
                )
            )
            leaders = [told.leader_id for topic in answer.topics for told in topic.partitions]
            if leaders == [BROKER] * len(PARTITIONS):
                told = self.again(0, ends)["partitions"]
                if all(error == errors.NONE for error, _ in told.values()) and probe.is_known():
                    self._topic_id = next(topic.topic_id for topic in answer.topics)
                    return
            if time.monotonic() > until_s:
                raise LiveError(f"waited {_PATIENCE_S:.0f} s in vain for {self._topic}")
            time.sleep(_LOOK_S)

    # Requests: what they are by the protocol, and what of the answers is compared

    def _version(self, kind: Any, *known: int) -> Any:
        return kind[self._connections.own.version_of(kind, *known)]

    def _own(self, name: str) -> str:
        return name + self._suffix

    def _join(self, request: messages.JoinGroupRequest) -> tuple[Any, Callable[[Any], Answer]]:
        kind = JoinGroupRequest
        sent = self._version(kind, *range(4, 10))(
            group_id=self._own(request.group),
            session_timeout_ms=request.session_timeout_us // US_PER_MS,
            rebalance_timeout_ms=request.rebalance_timeout_us // US_PER_MS,
            member_id=request.member,
            group_instance_id=request.instance or None,
            protocol_type=_PROTOCOL_TYPE,
            protocols=[
                kind.JoinGroupRequestProtocol(name=name, metadata=subscription(told.topics))
                for name, told in request.protocols
            ],
            reason=None,
        )

        def described(answer: Any) -> Answer:
            return joined(
                _error(answer.error_code),
                answer.generation_id,
                answer.protocol_name or "",
                answer.leader,
                answer.member_id,
                [
                    [each.member_id, each.group_instance_id or "", subscribed_topics(each.metadata)]
                    for each in answer.members
                ],
                skips=bool(answer.skip_assignment),
            )

        return sent, described

    def _sync(self, request: messages.SyncGroupRequest) -> tuple[Any, Callable[[Any], Answer]]:
        kind = SyncGroupRequest
        sent = self._version(kind, 3, 4)(
            group_id=self._own(request.group),
            generation_id=request.generation,
            member_id=request.member,
            group_instance_id=request.instance or None,
            assignments=[
                kind.SyncGroupRequestAssignment(member_id=member, assignment=assignment(partitions))
                for member, partitions in request.assignments.items()
            ],
        )
        return sent, lambda answer: {
            "error": _error(answer.error_code),
            "partitions": assigned_partitions(answer.assignment),
        }

    def _heartbeat(self, request: messages.HeartbeatRequest) -> tuple[Any, Callable[[Any], Answer]]:
        sent = self._version(HeartbeatRequest, 3, 4)(
            group_id=self._own(request.group),
            generation_id=request.generation,
            member_id=request.member,
            group_instance_id=request.instance or None,
        )
        return sent, _only_error

    def _leave(self, request: messages.LeaveGroupRequest) -> tuple[Any, Callable[[Any], Answer]]:
        kind = LeaveGroupRequest
        member = kind.MemberIdentity(
            member_id=request.member, group_instance_id=request.instance or None, reason=None
        )
        sent = self._version(kind, 3, 4, 5)(group_id=self._own(request.group), members=[member])

        def described(answer: Any) -> Answer:
            codes = [answer.error_code, *(each.error_code for each in answer.members)]
            return {"error": _error(next((code for code in codes if code), 0))}

        return sent, described

    def _consumer_heartbeat(
        self, request: messages.ConsumerGroupHeartbeatRequest
    ) -> tuple[Any, Callable[[Any], Answer]]:
        kind = CONSUMER_GROUP_HEARTBEAT
        timeout_us, topics = request.rebalance_timeout_us, request.topics
        sent = self._version(kind, 0, 1)(
            group_id=self._own(request.group),
            member_id=request.member,
            member_epoch=request.epoch,
            instance_id=request.instance or None,
            rebalance_timeout_ms=-1 if timeout_us is None else timeout_us // US_PER_MS,
            subscribed_topic_names=None if topics is None else [self._own(topic) for topic in topics],
            server_assignor=request.assignor,
            topic_partitions=None if request.owned is None else self._owned(kind, request.owned),
        )

        def described(answer: Any) -> Answer:
            given = None if answer.assignment is None else answer.assignment.topic_partitions
            return heard(
                _error(answer.error_code),
                answer.member_id or "",
                answer.member_epoch,
                answer.heartbeat_interval_ms * US_PER_MS,
                None
                if given is None
                else [partition_name(number) for topic in given for number in topic.partitions],
            )

        return sent, described

    def _owned(self, kind: Any, owned: Collection[str]) -> list[Any]:
        numbers = [_number(name) for name in owned]
        return [kind.TopicPartitions(topic_id=self._topic_id, partitions=numbers)] if numbers else []

    @staticmethod
    def _offsets(partition: Any, offsets: Mapping[str, int]) -> list[Any]:
        """Return what a commit says of the topic's partitions, in the kind of its request."""
        return [
            partition(
                partition_index=_number(name),
                committed_offset=offset,
                committed_leader_epoch=-1,
                committed_metadata="",
            )
            for name, offset in offsets.items()
        ]

    def _commit(self, request: messages.OffsetCommitRequest) -> tuple[Any, Callable[[Any], Answer]]:
        kind = OffsetCommitRequest
        topic = kind.OffsetCommitRequestTopic
        sent = self._version(kind, 7, 8, 9)(
            group_id=self._own(request.group),
            generation_id_or_member_epoch=request.generation,
            member_id=request.member,
            group_instance_id=request.instance or None,
            topics=[
                topic(
                    name=self._topic,
                    partitions=self._offsets(topic.OffsetCommitRequestPartition, request.offsets),
                )
            ],
        )
        return sent, _errors_of_partitions

    def _committed(self, request: messages.OffsetFetchRequest) -> tuple[Any, Callable[[Any], Answer]]:
        kind = OffsetFetchRequest
        if request.member != messages.NO_MEMBER or request.epoch != messages.NO_GENERATION:
            return self._committed_to_member(request)
        topic = kind.OffsetFetchRequestTopic
        sent = self._version(kind, *range(5, 8))(
            group_id=self._own(request.group),
            topics=[
                topic(name=self._topic, partition_indexes=[_number(name) for name in request.partitions])
            ],
            require_stable=request.require_stable,
        )
        return sent, lambda answer: {
            "error": _error(answer.error_code),
            **_partitions(
                (told.partition_index, [_error(told.error_code), told.committed_offset])
                for topic in answer.topics
                for told in topic.partitions
            ),
        }

    def _committed_to_member(
        self, request: messages.OffsetFetchRequest
    ) -> tuple[Any, Callable[[Any], Answer]]:
        """Return it as members send it whose coordinator assigns."""
        kind = OffsetFetchRequest
        group = kind.OffsetFetchRequestGroup
        topic = group.OffsetFetchRequestTopics
        numbers = [_number(name) for name in request.partitions]
        asked = group(
            group_id=self._own(request.group),
            member_id=request.member,
            member_epoch=request.epoch,
            topics=[topic(name=self._topic, partition_indexes=numbers)],
        )
        sent = kind[_OFFSET_FETCH_WITH_MEMBER](groups=[asked], require_stable=request.require_stable)

        def described(answer: Any) -> Answer:
            (told,) = answer.groups
            error = _error(told.error_code)
            known = {
                each.partition_index: [_error(each.error_code), each.committed_offset]
                for topic in told.topics
                for each in topic.partitions
            }
            # Of a group that tells nothing there are no partitions.
            nothing = [error, messages.NO_OFFSET_COMMITTED]
            return {"error": error, **_partitions((number, known.get(number, nothing)) for number in numbers)}

        return sent, described

    def _find(self, request: messages.FindCoordinatorRequest) -> tuple[Any, Callable[[Any], Answer]]:
        of_group = request.topic == CONSUMER_OFFSETS
        sent = self._version(FindCoordinatorRequest, 1, 2, 3)(
            key=self._own(request.key), key_type=_GROUPS if of_group else _TRANSACTIONAL_IDS
        )
        return sent, lambda answer: {"error": _error(answer.error_code), "node": answer.node_id}

    def _init(self, request: protocol.InitProducerIdRequest) -> tuple[Any, Callable[[Any], Answer]]:
        sent = self._version(InitProducerIdRequest, *range(6))(
            transactional_id=self._own(request.transactional_id),
            transaction_timeout_ms=request.transaction_timeout_us // US_PER_MS,
            producer_id=request.producer_id,
            producer_epoch=request.producer_epoch,
        )
        return sent, _producer

    def _add_partitions(
        self, request: messages.AddPartitionsToTxnRequest
    ) -> tuple[Any, Callable[[Any], Answer]]:
        """Return it as a client sends it, or as a leader does: to verify, and with transactions v2."""
        kind = AddPartitionsToTxnRequest
        topics = [
            kind.AddPartitionsToTxnTopic(
                name=self._topic, partitions=[_number(name) for name in request.partitions]
            )
        ]
        own = self._own(request.transactional_id)
        if request.verify_only or self.adds_by_leaders:
            transaction = kind.AddPartitionsToTxnTransaction(
                transactional_id=own,
                producer_id=request.producer_id,
                producer_epoch=request.producer_epoch,
                verify_only=request.verify_only,
                topics=topics,
            )
            sent = self._version(kind, _FIRST_WITH_VERIFICATION, _FIRST_WITH_VERIFICATION + 1)(
                transactions=[transaction]
            )
            return sent, lambda answer: _partitions(
                (told.partition_index, _error(told.partition_error_code))
                for result in answer.results_by_transaction
                for topic in result.topic_results
                for told in topic.results_by_partition
            )
        sent = self._version(kind, *range(_FIRST_WITH_VERIFICATION))(
            v3_and_below_transactional_id=own,
            v3_and_below_producer_id=request.producer_id,
            v3_and_below_producer_epoch=request.producer_epoch,
            v3_and_below_topics=topics,
        )
        return sent, lambda answer: _partitions(
            (told.partition_index, _error(told.partition_error_code))
            for topic in answer.results_by_topic_v3_and_below
            for told in topic.results_by_partition
        )

    @property
    def adds_by_leaders(self) -> bool:
        """Whether leaders add their partitions to transactions, and not clients (transactions v2, KIP-890)."""
        return self._connections.own.speaks(EndTxnRequest, 5)

    def _add_offsets(self, request: messages.AddOffsetsToTxnRequest) -> tuple[Any, Callable[[Any], Answer]]:
        sent = self._version(AddOffsetsToTxnRequest, *range(5))(
            transactional_id=self._own(request.transactional_id),
            producer_id=request.producer_id,
            producer_epoch=request.producer_epoch,
            group_id=self._own(request.group),
        )
        return sent, _only_error

    def _txn_commit(self, request: messages.TxnOffsetCommitRequest) -> tuple[Any, Callable[[Any], Answer]]:
        kind = TXN_OFFSET_COMMIT
        topic = kind.TxnOffsetCommitRequestTopic
        sent = self._version(kind, *range(7))(
            transactional_id=self._own(request.transactional_id),
            group_id=self._own(request.group),
            producer_id=request.producer_id,
            producer_epoch=request.producer_epoch,
            generation_id_or_member_epoch=request.generation,
            member_id=request.member,
            group_instance_id=request.instance or None,
            topics=[
                topic(
                    topic_id=self._topic_id,
                    name=self._topic,
                    partitions=self._offsets(topic.TxnOffsetCommitRequestPartition, request.offsets),
                )
            ],
        )
        return sent, _errors_of_partitions

    def _end_txn(self, request: messages.EndTxnRequest) -> tuple[Any, Callable[[Any], Answer]]:
        sent = self._version(EndTxnRequest, *range(6))(
            transactional_id=self._own(request.transactional_id),
            producer_id=request.producer_id,
            producer_epoch=request.producer_epoch,
            committed=request.committed,
        )
        return sent, _producer

    def _produce(self, request: protocol.ProduceRequest) -> tuple[Any, Callable[[Any], Answer]]:
        topic = ProduceRequest.TopicProduceData
        sent = self._version(ProduceRequest, *range(3, 13))(
            transactional_id=self._own(request.transactional_id) if request.transactional_id else None,
            acks=request.acks,
            timeout_ms=request.timeout_us // US_PER_MS,
            topic_data=[
                topic(
                    name=self._topic,
                    partition_data=[
                        topic.PartitionProduceData(index=_number(name), records=_encoded(batch))
                        for name, batch in request.batches.items()
                    ],
                )
            ],
        )
        return sent, lambda answer: _partitions(
            (told.index, [_error(told.error_code), told.base_offset])
            for topic in answer.responses
            for told in topic.partition_responses
        )

    def _fetch(self, request: protocol.FetchRequest) -> tuple[Any, Callable[[Any], Answer]]:
        topic = FetchRequest.FetchTopic
        sent = self._version(FetchRequest, *range(5, 11))(
            replica_id=request.replica_id,
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=_LARGE,
            isolation_level=request.isolation_level,
            topics=[
                topic(
                    topic=self._topic,
                    partitions=[
                        topic.FetchPartition(
                            partition=_number(name),
                            current_leader_epoch=epoch,
                            fetch_offset=offset,
                            log_start_offset=-1,
                            partition_max_bytes=request.max_bytes,
                        )
                        for name, (offset, epoch) in request.partitions.items()
                    ],
                )
            ],
        )

        def described(answer: Any) -> Answer:
            return {
                "error": _error(answer.error_code),
                "fetched": {
                    partition_name(told.partition_index): read(
                        _error(told.error_code),
                        told.high_watermark,
                        told.last_stable_offset if is_committed(request) else _NOT_COMPARED,
                        [
                            described_batch(batch)
                            for stored, _ in whole_batches(bytes(told.records or b""))
                            for batch in as_batches(stored)
                        ],
                        [[each.producer_id, each.first_offset] for each in told.aborted_transactions or ()],
                    )
                    for topic in answer.responses
                    for told in topic.partitions
                },
            }

        return sent, described

    def _list_offsets(self, request: protocol.ListOffsetsRequest) -> tuple[Any, Callable[[Any], Answer]]:
        topic = ListOffsetsRequest.ListOffsetsTopic
        sent = self._version(ListOffsetsRequest, *range(2, 6))(
            replica_id=request.replica_id,
            isolation_level=request.isolation_level,
            topics=[
                topic(
                    name=self._topic,
                    partitions=[
                        topic.ListOffsetsPartition(
                            partition_index=_number(name), current_leader_epoch=epoch, timestamp=_LATEST
                        )
                        for name, epoch in request.partitions.items()
                    ],
                )
            ],
        )
        return sent, lambda answer: _partitions(
            (told.partition_index, [_error(told.error_code), told.offset])
            for topic in answer.topics
            for told in topic.partitions
        )


def _only_error(answer: Any) -> Answer:
    return {"error": _error(answer.error_code)}


def _producer(answer: Any) -> Answer:
    # Before 4.0 EndTxn told no producer.
    return {
        "error": _error(answer.error_code),
        "producer_id": getattr(answer, "producer_id", -1),
        "producer_epoch": getattr(answer, "producer_epoch", -1),
    }


def _errors_of_partitions(answer: Any) -> Answer:
    return _partitions(
        (told.partition_index, _error(told.error_code))
        for topic in answer.topics
        for told in topic.partitions
    )


def _number(partition: str) -> int:
    return int(partition.rpartition("-")[2])


def _error(code: int) -> str:
    return _NAMES.get(code) or str(for_code(code).message)


def _partitions(told: Iterable[tuple[int, Any]]) -> Answer:
    return {
        "partitions": {
            partition_name(number): said for number, said in sorted(told, key=lambda each: each[0])
        }
    }


def _encoded(batch: RecordBatch) -> bytes:
    builder = MemoryRecordsBuilder(
        2,
        0,
        _LARGE,
        transactional=batch.is_transactional,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
    )
    for value in batch.values:
        builder.append(timestamp=int(time.time() * 1_000), key=None, value=value.encode())
    builder.close()
    return bytes(builder.buffer())
