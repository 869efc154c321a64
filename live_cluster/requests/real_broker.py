"""A real broker, alone with its control plane, and a topic of its own for each sequence.

Only the driver is the follower: a broker is registered in ZooKeeper at whose address nothing listens. The controller takes it
for alive, puts it into ISRs and elects it; the broker takes fetches in its name for its own.
"""

import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from kafka.errors import for_code
from kafka.protocol.consumer import FetchRequest, ListOffsetsRequest, OffsetForLeaderEpochRequest
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.producer import InitProducerIdRequest, ProduceRequest
from kafka.record import MemoryRecordsBuilder

from harrow.cluster_model import errors, protocol
from harrow.cluster_model.log.record_batch import RecordBatch
from harrow.cluster_model.release import value_in
from harrow.cluster_model.settings import Value
from harrow.cluster_model.sim.choices import SeededStream
from harrow.cluster_model.sim.virtual_time import US_PER_MS
from harrow.cluster_model.topology import BrokerSpec, ClusterSpec
from harrow.live_cluster.errors import LiveError
from harrow.live_cluster.links.link_faults import LinkFaults
from harrow.live_cluster.links.proxy import Proxies
from harrow.live_cluster.local.kraft_control_plane import KRaftControlPlane
from harrow.live_cluster.local.local_cluster import LocalCluster
from harrow.live_cluster.local.started_brokers import StartedBrokers
from harrow.live_cluster.local.zookeeper_control_plane import ZooKeeperControlPlane
from harrow.live_cluster.local.zookeeper_state import ZooKeeperState
from harrow.live_cluster.releases.kafka_release import ZOOKEEPER, KafkaRelease
from harrow.live_cluster.requests.answers import NO_ANSWER, Answer, described_batch, fetched
from harrow.live_cluster.requests.broker_driver import (
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
from harrow.live_cluster.watches.activity import Activity
from harrow.live_cluster.watches.metadata_seen import MetadataSeen
from harrow.live_cluster.wire.connection import BrokerConnection, ConnectionLostError
from harrow.live_cluster.wire.stored_batches import as_batches, whole_batches
from harrow.live_cluster.wire.topics import create_topic

_PRODUCE: Final = range(3, 10)
_FETCH: Final = range(5, 11)
_FETCH_WITH_RACK: Final = range(5, 12)
_LIST_OFFSETS: Final = range(2, 6)
_EPOCH_END: Final = range(4)
_METADATA: Final = range(4, 10)
_WITH_EPOCHS: Final = 7
"""The versions that are spoken: of Fetch those in which a consumer is answered by a leader alone, and with the one that names a rack
(KIP-392); of Metadata the first with leader epochs.
"""
_LATEST: Final = -1
_PATIENCE_S: Final = 30.0
_LOOK_S: Final = 0.005
_ISR_WRITTEN_S: Final = 5.0
"""How long the controller may take to write an ISR on a busy machine, where a leader has to be in sync with somebody."""
_LARGE: Final = 1_000_000
_FIRST_WITH_ALTER_PARTITION: Final = (2, 7)
"""From then on a leader goes on while the controller writes an ISR (KIP-497)."""
_LOADING: Final = "COORDINATOR_LOAD_IN_PROGRESS"
_NAMES: Final = {0: errors.NONE, -1: errors.UNKNOWN_SERVER_ERROR}
"""What kafka-python calls otherwise."""


class NotSettledError(LiveError):
    """An election has not come about as the control plane's state makes one expect."""


class RealBrokers:
    """A broker that is started for it, with ZooKeeper or KRaft, for one sequence after the other; with this context it ends."""

    def __init__(self, started: StartedBrokers, folder: Path, settings: dict[str, Value]) -> None:
        self._release = started.release
        self._sequences = 0
        self._last: RealBroker | None = None
        self._last_controller: RealController | None = None
        self.is_followed = started.metadata == ZOOKEEPER
        with ExitStack() as opened:
            faults = LinkFaults(SeededStream(0, "network"), lambda *_: None)
            self._control_requests = ControlRequests()
            proxies = opened.enter_context(Proxies(faults, self._control_requests))
            self._cluster = opened.enter_context(
                LocalCluster(
                    ClusterSpec(
                        brokers=(
                            BrokerSpec(id=BROKER, settings={} if self.is_followed else {**VIEWER_SETTINGS}),
                        ),
                        topics=(),
                        voters=1,
                        settings=settings if self.is_followed else {**settings, **CONTROLLER_SETTINGS},
                    ),
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
            self._connection = opened.enter_context(self._cluster.connect(BROKER, _PATIENCE_S))
            self._zookeeper = None
            self._controller: BrokerConnection | None = None
            control = self._cluster.control
            if isinstance(control, KRaftControlPlane):
                self._controller = opened.enter_context(
                    BrokerConnection(*control.addresses.values(), timeout_s=_PATIENCE_S)
                )
                self._cluster_id = control.cluster_id
            if isinstance(control, ZooKeeperControlPlane):
                self._zookeeper = ZooKeeperState(control.address)
                opened.callback(self._zookeeper.close)
                self._zookeeper.start()
            self._open = opened.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._open.close()

    def next_broker(self) -> "RealBroker":
        """Return the broker with a new topic, and a follower that is new, for another sequence."""
        if self._last is not None and self.is_followed:
            self._last.unregister_follower()
        self._sequences += 1
        # Where there is no follower, it must not be called as a broker of a sequence for controllers is.
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
        """Return the controller with a new topic, and brokers that are new, for another sequence; None with ZooKeeper."""
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
    """A real broker with the topic of one sequence (`BrokerDriver`); *topic* and *follower* are called so there."""

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
        self._connection = connection
        self._is_running = is_running
        self._control_requests = control_requests
        self._zookeeper = zookeeper
        self._topic = topic
        self._follower = follower
        self._is_async = release.version >= _FIRST_WITH_ALTER_PARTITION
        self._elects_once_more = value_in(release.name, "preferred_leader_elected_once_more")
        self._is_registered = False
        self._asks: dict[str, Callable[[Any], Answer]] = {
            protocol.ProduceRequest.api: self._produce,
            protocol.FetchRequest.api: self._fetch,
            protocol.ListOffsetsRequest.api: self._list_offsets,
            protocol.OffsetsForLeaderEpochRequest.api: self._epoch_ends,
            protocol.InitProducerIdRequest.api: self._producer_id,
            protocol.MetadataRequest.api: self._metadata,
        }

    def ask(self, request: SingleRequest) -> Answer:
        """Send a request, and wait for the answer; that the broker closes the connection is one.

        Raises:
            LiveError: the broker has ended.

        """
        try:
            return self._asks[request.api](request)
        except ConnectionLostError:
            if not self._is_running():
                raise LiveError(
                    f"the broker has ended; {request.api} was the last that it was asked"
                ) from None
            return dict(NO_ANSWER)

    def create_topic(self, replicas: tuple[int, ...]) -> None:
        """Create the topic, and wait until the broker leads it."""
        create_topic(self._connection, self._topic, [replicas] * len(PARTITIONS), {})
        self._until("a topic", lambda: self._leaders() == [BROKER] * len(PARTITIONS))
        names = [partition_name(number) for number in PARTITIONS]
        leads = protocol.ListOffsetsRequest(protocol.CONSUMER_REPLICA_ID, dict.fromkeys(names, -1))
        self._until(
            "logs", lambda: all(t[0] == "NONE" for t in self._list_offsets(leads)["partitions"].values())
        )

    # Requests

    def _produce(self, request: protocol.ProduceRequest) -> Answer:
        kind = ProduceRequest
        topic = kind.TopicProduceData
        answer = self._connection.ask(
            kind[self._version(kind, _PRODUCE)](
                transactional_id=None,
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
        )
        return _partitions(
            (told.index, [_error(told.error_code), told.base_offset])
            for topic in answer.responses
            for told in topic.partition_responses
        )

    def _fetch(self, request: protocol.FetchRequest) -> Answer:
        kind = FetchRequest
        topic, forgotten = kind.FetchTopic, kind.ForgottenTopic
        version = self._version(kind, _FETCH if request.rack is None else _FETCH_WITH_RACK)
        fetches = [
            topic.FetchPartition(
                partition=_number(name),
                current_leader_epoch=epoch,
                fetch_offset=offset,
                log_start_offset=0 if request.replica_id >= 0 else -1,
                partition_max_bytes=request.max_bytes,
            )
            for name, (offset, epoch) in request.partitions.items()
        ]
        left_out = [_number(name) for name in request.forgotten]
        answer = self._connection.ask(
            kind[version](
                replica_id=self._follower if request.replica_id == FOLLOWER else request.replica_id,
                max_wait_ms=request.max_wait_us // US_PER_MS,
                min_bytes=1,
                max_bytes=_LARGE,
                isolation_level=request.isolation_level,
                session_id=request.session_id,
                session_epoch=request.session_epoch,
                topics=[topic(topic=self._topic, partitions=fetches)] if fetches else [],
                forgotten_topics_data=[forgotten(topic=self._topic, partitions=left_out)] if left_out else [],
                rack_id=request.rack or "",
            )
        )
        return {
            "error": _error(answer.error_code),
            "session": answer.session_id,
            **_partitions(
                (
                    told.partition_index,
                    fetched(
                        _error(told.error_code),
                        told.high_watermark,
                        told.log_start_offset,
                        [
                            described_batch(batch)
                            for stored, _ in whole_batches(bytes(told.records or b""))
                            for batch in as_batches(stored)
                        ],
                    ),
                )
                for topic in answer.responses
                for told in topic.partitions
            ),
        }

    def _list_offsets(self, request: protocol.ListOffsetsRequest) -> Answer:
        kind = ListOffsetsRequest
        topic = kind.ListOffsetsTopic
        answer = self._connection.ask(
            kind[self._version(kind, _LIST_OFFSETS)](
                replica_id=self._follower if request.replica_id == FOLLOWER else request.replica_id,
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
        )
        return _partitions(
            (told.partition_index, [_error(told.error_code), told.offset])
            for topic in answer.topics
            for told in topic.partitions
        )

    def _epoch_ends(self, request: protocol.OffsetsForLeaderEpochRequest) -> Answer:
        kind = OffsetForLeaderEpochRequest
        topic = kind.OffsetForLeaderTopic
        answer = self._connection.ask(
            kind[self._version(kind, _EPOCH_END)](
                replica_id=self._follower if request.replica_id == FOLLOWER else request.replica_id,
                topics=[
                    topic(
                        topic=self._topic,
                        partitions=[
                            topic.OffsetForLeaderPartition(
                                partition=_number(name), current_leader_epoch=current, leader_epoch=requested
                            )
                            for name, (current, requested) in request.partitions.items()
                        ],
                    )
                ],
            )
        )
        return _partitions(
            (told.partition, [_error(told.error_code), told.leader_epoch, told.end_offset])
            for topic in answer.topics
            for told in topic.partitions
        )

    def _producer_id(self, _: protocol.InitProducerIdRequest) -> Answer:
        request = InitProducerIdRequest[0]
        answers: list[Any] = []

        def is_loaded() -> bool:
            # The next block of ids is on its way; a client asks again, too.
            answers[:] = [self._connection.ask(request(transactional_id=None, transaction_timeout_ms=_LARGE))]
            return _error(answers[0].error_code) != _LOADING

        self._until("a block of producer ids", is_loaded)
        [answer] = answers
        return {
            "error": _error(answer.error_code),
            "producer_id": answer.producer_id,
            "producer_epoch": answer.producer_epoch,
        }

    def _metadata(self, _: protocol.MetadataRequest) -> Answer:
        version = self._version(MetadataRequest, _METADATA)
        answer = self._connection.ask(
            MetadataRequest[version](
                topics=[MetadataRequest.MetadataRequestTopic(name=self._topic)],
                allow_auto_topic_creation=False,
            )
        )
        return {
            # Those of a sequence for controllers are none of this one.
            "brokers": sorted(
                self._known_as(broker.node_id)
                for broker in answer.brokers
                if broker.node_id in (BROKER, self._follower)
            ),
            **_partitions(
                (
                    told.partition_index,
                    [
                        self._known_as(told.leader_id),
                        *([told.leader_epoch] if version >= _WITH_EPOCHS else []),
                    ],
                )
                for topic in answer.topics
                for told in topic.partitions
            ),
        }

    def _version(self, kind: Any, known: Iterable[int]) -> int:
        return self._connection.version_of(kind, *known)

    def _known_as(self, broker: int) -> int:
        return FOLLOWER if broker == self._follower else broker

    # The follower

    def register_follower(self) -> None:
        """Register it as the broker is, at an address where nothing listens.

        Raises:
            NotSettledError: the broker hears nothing of it.

        """
        assert self._zookeeper is not None
        if self._is_registered:
            return
        self._is_registered = True
        self._zookeeper.register_beside(BROKER, self._follower)
        self._until("a registration", lambda: FOLLOWER in self._brokers())

    def unregister_follower(self) -> None:
        """Take the registration back; the follower leaves the ISRs, and a leader epoch begins where it was in one.

        Raises:
            NotSettledError: that does not come about, or the broker hears nothing of it.

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
        """Ask for preferred leader election; the follower leads what it is in sync with.

        Raises:
            NotSettledError: that does not come about, or the broker hears nothing of it.

        """
        assert self._zookeeper is not None
        before = self._states()
        expected = {
            name: [FOLLOWER, epoch + 1, isr]
            if self._is_registered and FOLLOWER in isr and (self._elects_once_more or leader != FOLLOWER)
            else [leader, epoch, isr]
            for name, (leader, epoch, isr) in before.items()
        }
        self._zookeeper.ask_for_preferred_leaders(f"{self._topic}-{number}" for number in PARTITIONS)
        self._until("the end of an election", self._zookeeper.has_no_preferred_election)
        self._until("an election", lambda: self._states() == expected)
        self._await_metadata(expected)

    def partition_states(self, expected: PartitionStates | None) -> PartitionStates:
        """Return what ZooKeeper has.

        Where the controller writes ISRs (KIP-497), a fetch is answered before that: what is *expected* is waited for, and that every
        leader which has asked for another ISR has been answered. What is not expected, and comes later, shows in the next states.
        """
        until_s = time.monotonic() + _ISR_WRITTEN_S
        while True:
            is_over = not self._is_async or time.monotonic() > until_s
            settled = not self._control_requests.are_under_way()
            states = {name: list(state) for name, state in self._states().items()}
            if is_over or (settled and expected in (None, states)):
                return states
            time.sleep(_LOOK_S)

    def _states(self) -> dict[str, list[Any]]:
        assert self._zookeeper is not None
        found = {}
        for number in PARTITIONS:
            state = self._zookeeper.partition_state(f"{self._topic}-{number}")
            if state is not None:
                leader, epoch, isr = state
                found[partition_name(number)] = [
                    self._known_as(leader),
                    epoch,
                    sorted(self._known_as(broker) for broker in isr),
                ]
        return found

    def _await_metadata(self, expected: dict[str, list[Any]]) -> None:
        """Wait until the broker has obeyed the controller: UpdateMetadata comes after LeaderAndIsr."""
        version = self._version(MetadataRequest, _METADATA)
        told = {
            name: [leader, epoch] if version >= _WITH_EPOCHS else [leader]
            for name, (leader, epoch, _) in expected.items()
        }
        self._until("metadata", lambda: self._metadata(protocol.MetadataRequest())["partitions"] == told)

    def _leaders(self) -> list[int]:
        told = self._metadata(protocol.MetadataRequest())["partitions"]
        return [leader for leader, *_ in told.values()]

    def _brokers(self) -> list[int]:
        return list(self._metadata(protocol.MetadataRequest())["brokers"])

    def _until(self, what: str, holds: Callable[[], bool]) -> None:
        until_s = time.monotonic() + _PATIENCE_S
        while not holds():
            if time.monotonic() > until_s:
                states = "" if self._zookeeper is None else f"; {self._topic} is {self._states()}"
                raise NotSettledError(f"waited {_PATIENCE_S:.0f} s in vain for {what}{states}")
            time.sleep(_LOOK_S)


def _number(partition: str) -> int:
    return int(partition.rpartition("-")[2])


def _error(code: int) -> str:
    return _NAMES.get(code) or str(for_code(code).message)


def _partitions(told: Iterable[tuple[int, Any]]) -> Answer:
    return {"partitions": {partition_name(number): said for number, said in sorted(told, key=_first)}}


def _first(told: tuple[int, Any]) -> int:
    return told[0]


def _encoded(batch: RecordBatch) -> bytes:
    builder = MemoryRecordsBuilder(
        2,
        0,
        _LARGE,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
    )
    for value in batch.values:
        builder.append(timestamp=int(time.time() * 1_000), key=None, value=value.encode())
    builder.close()
    return bytes(builder.buffer())
