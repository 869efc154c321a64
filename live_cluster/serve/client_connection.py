"""Connects a client with a broker of the model: requests come as bytes, and so do responses."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import partial
from itertools import islice
from typing import Any, Final, Protocol

from harrow.cluster_model.errors import NONE
from harrow.cluster_model.events import KeyedRecordSent
from harrow.cluster_model.lazy_dataclass import dataclass, replace
from harrow.cluster_model.log.record_batch import KeyedRecords, RecordBatch
from harrow.cluster_model.protocol import (
    CONSUMER_REPLICA_ID,
    EARLIEST_TIMESTAMP,
    ListOffsetsRequest,
    OffsetsForLeaderEpochRequest,
    ProduceRequest,
    ProduceResponse,
)
from harrow.cluster_model.sim.connection import ClientEndpoint, Connection, Reply
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.topology import is_internal, process_name
from harrow.live_cluster.serve.answers.own_answers import OwnAnswers
from harrow.live_cluster.serve.answers.plain_login import PlainLogin, Users
from harrow.live_cluster.serve.contents.client_batches import (
    ClientBatch,
    InternalTopicError,
    LargeBatchError,
    RefusedBatchError,
)
from harrow.live_cluster.serve.contents.record_times import EARLIEST_LOCAL_TIMESTAMP
from harrow.live_cluster.serve.history.wire_history import ConnectionHistory, WireHistory
from harrow.live_cluster.serve.recording.recorder import Recorder
from harrow.live_cluster.serve.without_secrets import without_secrets
from harrow.live_cluster.wire.client_requests import (
    BadRequestError,
    ClientRequest,
    joined_response,
    parts_of,
    read_request,
    response_bytes,
)
from harrow.live_cluster.wire.codec import Naming, answer_to_wire, request_from_wire

_NO_OFFSET: Final = -1
_PENDING_MAX: Final = 1_000
"""With more requests that wait, a connection is not read (the mute of a channel bounds them in
Kafka)."""
_PARTS_AT_ONCE: Final = 100
_BETWEEN_PARTS_US: Final = 10_000
CLIENT_LISTENER: Final = "client"


@dataclass(slots=True, eq=False)
class _UnansweredRequest:
    """A request whose response is not written yet, and the response once it is known.

    ``operation`` is its operation in the history. ``answer`` is the answer of the model, if a
    broker gives it. A request may be a part of the client's, whose other parts follow if it is not
    the last. ``refused`` has the errors of those batches of a Produce that no log gets. If it
    ``ends_connection``, the connection ends instead of a response, after all earlier responses.
    """

    request: ClientRequest
    is_last_part: bool = True
    model: Any = None
    refused: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    answer: Any = None
    operation: Any = None
    response: Any = None
    ends_connection: bool = False

    @property
    def is_answered(self) -> bool:
        """Whether the client gets an answer. With ``acks=0`` a producer gets none."""
        return not (isinstance(self.model, ProduceRequest) and self.model.acks == 0)


class _ModelEnd(ClientEndpoint):
    """The model's view of a client: it hands over what the broker sends."""

    def __init__(self, receive: Callable[[Reply], None], lose: Callable[[], None]) -> None:
        self._receive = receive
        self._lose = lose

    def receive_response(self, reply: Reply) -> None:
        self._receive(reply)

    def connection_lost(self, connection: Connection) -> None:
        self._lose()


class ClientServer(Protocol):
    """What the connections of all clients have in common."""

    history: WireHistory
    own_answers: OwnAnswers
    naming: Naming
    recorder: Recorder
    users: Users | None
    """Who may log in; None if clients need not."""
    blocked: dict["ClientConnection", None]
    """The connections with answers of the server that a fault holds up."""

    def host_of(self, client_id: str) -> Host:
        """Return the machine of a client in the model."""

    def are_connected(self, client: str, broker: int) -> bool:
        """Return whether packets pass between a client and a live broker that is not paused."""

    def is_compacted(self, partition: str, broker: int) -> bool:
        """Return whether a broker compacts the log of a partition."""

    def message_bytes_max(self, partition: str, broker: int) -> int:
        """Return how large a batch for a partition may be on a broker."""

    def forget(self, connection: "ClientConnection") -> None:
        """Forget a connection that has ended."""


class ClientConnection:
    """A connection of a real client to a broker.

    Responses are sent in the order of the requests, as a broker does. *note_change* is called when
    the connection has ended, or may take more requests although it has sent nothing.
    """

    def __init__(
        self,
        number: int,
        broker: int,
        server: ClientServer,
        send: Callable[[bytes], None],
        note_change: Callable[[], None],
    ) -> None:
        self.number = number
        self.broker = broker
        self.is_open = True
        self._server = server
        self._send = send
        self._note_change = note_change
        self._naming = server.naming
        self._history: ConnectionHistory | None = None
        self._pending: deque[_UnansweredRequest] = deque()
        # The first parts of a request whose other parts have no responses yet.
        self._answered: list[_UnansweredRequest] = []
        # The parts of a request that no broker has got yet, and the requests that wait for them.
        self._parts: Iterator[tuple[ClientRequest, bool]] | None = None
        self._waiting: list[bytes] = []
        self._by_number: dict[int, _UnansweredRequest] = {}
        self._own_answers: list[tuple[_UnansweredRequest, Callable[[], Any]]] = []
        self._count = 0
        self._host: Host | None = None
        self._connection: Connection | None = None
        self._login = None if server.users is None else PlainLogin(server.users)

    @property
    def may_send(self) -> bool:
        """Whether the client may send more before it reads its answers."""
        return self._parts is None and len(self._pending) <= _PENDING_MAX and not self.is_refused

    @property
    def client_name(self) -> str | None:
        """The name of the client, which its first request tells."""
        return None if self._host is None else self._host.name

    @property
    def is_refused(self) -> bool:
        """Whether the client could not log in. The connection then ends with the answer."""
        return self._login is not None and self._login.has_failed

    def close(self) -> None:
        """End the connection; the server then closes its socket."""
        if self.is_open:
            self.is_open = False
            self._server.forget(self)
            self._note_change()
            if self._connection is not None and self._host is not None:
                self._host.close(self._connection)

    def receive(self, frame: bytes) -> None:
        """Take a request, or other bytes, which end the connection."""
        if not self._is_ending():
            self._server.recorder.received(self.number, without_secrets(frame, self._login))
            self._take(frame)

    def _is_ending(self) -> bool:
        """Return whether the connection has ended, or ends with the responses to its requests."""
        ends_later = self._pending and self._pending[-1].ends_connection
        return not self.is_open or self.is_refused or bool(ends_later)

    def _take(self, frame: bytes) -> None:
        """Handle a request once all parts of earlier ones are with the broker."""
        if self._parts is not None:
            self._waiting.append(frame)
            return
        try:
            self._handle(read_request(frame))
        except BadRequestError:
            self.close()

    def _handle(self, request: ClientRequest) -> None:
        if self._host is None:
            self._host = self._server.host_of(request.client_id)
            # A crash of the broker ends it, whatever the client has sent.
            self._connection = self._host.connect(
                process_name(self.broker), CLIENT_LISTENER, _ModelEnd(self._receive, self.close)
            )
        login = None if self._login is None else self._login.answer(request)
        own = self._server.own_answers.answer(request, self.broker) if login is None else lambda: login
        if own is not None:
            pending = _UnansweredRequest(request)
            self._pending.append(pending)
            self._own_answers.append((pending, own))
            self.send_own_answers()
            return
        self._hand_over_parts(parts_of(request))

    def _hand_over_parts(self, parts: Iterator[tuple[ClientRequest, bool]]) -> None:
        """Hand over the next parts of a request, and the others a moment later.

        A request can have thousands of parts, and other clients are served in between.
        """
        for part, is_last in islice(parts, _PARTS_AT_ONCE):
            self._hand_over(_UnansweredRequest(part, is_last))
            if is_last:
                return
        assert self._host is not None
        self._parts = parts
        self._host.set_timer(_BETWEEN_PARTS_US, self._continue)

    def _continue(self, _: None) -> None:
        """Hand over more parts of a request, then the requests that have come after it."""
        parts, self._parts = self._parts, None
        if not self.is_open or parts is None:
            return
        try:
            self._hand_over_parts(parts)
        except BadRequestError:
            self.close()
        waiting, self._waiting = self._waiting, []
        for frame in waiting:
            if not self._is_ending():
                self._take(frame)
        self._note_change()

    def _hand_over(self, pending: _UnansweredRequest) -> None:
        """Send a request to the broker of the model."""
        assert self._host is not None
        request = pending.request
        self._count += 1
        number = self._count
        pending.model = self._translated(request)
        if isinstance(pending.model, ProduceRequest):
            pending.refused = self._name_records(pending.model, f"c{self.number}.{number}")
            if pending.refused and not pending.model.batches:
                self._refuse(pending)
                return
        if isinstance(pending.model, ListOffsetsRequest):
            pending.model.timestamps = _timestamps(request.body, self._naming)
        self._by_number[number] = pending
        if pending.is_answered:
            self._pending.append(pending)
        if self._history is None:
            self._history = self._server.history.connection(self._host.name, self._host.emit)
        assert self._connection is not None
        pending.operation = self._history.request(pending.model, self._host.clock.now_us)
        self._host.send_request(self._connection, number, pending.model)

    def _translated(self, request: ClientRequest) -> Any:
        """Return the model's request.

        Raises:
            BadRequestError: The request is unknown, malformed or only for brokers.

        """
        what = f"API {request.api_key} version {request.version}"
        if request.body is None or not self._server.own_answers.supports(request):
            raise BadRequestError(f"{what} is unknown")
        try:
            model = request_from_wire(self._server.own_answers.without_refused(request), self._naming)
        except Exception as error:  # Hostile bytes may raise anything.
            raise BadRequestError(f"{what}: {error}") from error
        model = self._server.own_answers.without_refused_offsets(model, request)
        if isinstance(model, ListOffsetsRequest | OffsetsForLeaderEpochRequest):
            # kafka-python names broker 0 in ListOffsets. As in Kafka, the end is then the log's.
            # Before version 3, OffsetForLeaderEpoch has no id.
            return model
        if getattr(model, "replica_id", CONSUMER_REPLICA_ID) != CONSUMER_REPLICA_ID:
            raise BadRequestError(f"{what} has the id of a broker")
        return model

    def _name_records(self, produce: ProduceRequest, request: str) -> Mapping[str, tuple[str, int]]:
        """Name the records of the batches; remove the refused batches, and return their errors.

        A broker appends the other batches (``KafkaApis.handleProduceRequest``,
        ``ReplicaManager.appendToLocalLog``).
        """
        batches: Mapping[str, Any] = produce.batches
        produce.batches, refused = {}, {}
        for partition, batch in batches.items():
            try:
                produce.batches[partition] = self._named(partition, batch, request)
            except RefusedBatchError as error:
                refused[partition] = error.error, _NO_OFFSET
        for partition, named in produce.batches.items():
            if named.keyed is not None:
                self._note_keys(partition, named.values, named.keyed)
        return refused

    def _named(self, partition: str, batch: ClientBatch | RefusedBatchError, request: str) -> RecordBatch:
        if is_internal(partition):
            raise InternalTopicError("clients do not write internal topics")
        if isinstance(batch, RefusedBatchError):
            raise batch
        if len(batch.data) > self._server.message_bytes_max(partition, self.broker):
            raise LargeBatchError(f"the batch has {len(batch.data)} bytes")
        is_keyed = self._server.is_compacted(partition, self.broker)
        return self._server.history.names.named(partition, batch, request, is_keyed=is_keyed)

    def _note_keys(self, partition: str, values: Sequence[str], keyed: KeyedRecords) -> None:
        """Record the keys, by which the judge knows what compaction may remove."""
        assert self._host is not None
        for value, key, tombstone in zip(values, keyed.keys, keyed.tombstones, strict=True):
            if key is not None:
                self._host.emit(KeyedRecordSent, self._host.name, partition, value, key, tombstone)

    def _refuse(self, pending: _UnansweredRequest) -> None:
        """Answer a Produce request that no broker gets, because all its batches are refused."""
        self._pending.append(pending)
        if not pending.is_answered:
            pending.ends_connection = True
            self._send_ready()
        else:
            self._own_answers.append((pending, partial(self._wire_answer, pending, ProduceResponse({}))))
            self.send_own_answers()

    def _wire_answer(self, pending: _UnansweredRequest, answer: Any) -> Any:
        """Return the answer of the model on the wire, with the errors of refused batches."""
        if pending.refused:
            answer = replace(answer, partitions={**answer.partitions, **pending.refused})
        return answer_to_wire(pending.request.body, answer, self._naming)

    def send_own_answers(self) -> None:
        """Send the answers that no broker gives, unless a fault separates client and broker."""
        if self._host is None or not self._own_answers:
            return
        if not self._server.are_connected(self._host.name, self.broker):
            self._server.blocked[self] = None
            return
        self._server.blocked.pop(self, None)
        for pending, answer in self._own_answers:
            pending.response = answer()
        self._own_answers.clear()
        self._send_ready()

    def _receive(self, reply: Reply) -> None:
        pending = self._by_number.pop(reply.correlation_id, None)
        if pending is None or not self.is_open:
            return
        if not pending.is_answered:
            # A client learns of an error by the end of its connection (``handleProduceRequest``).
            assert isinstance(reply.body, ProduceResponse)
            if pending.refused or any(error != NONE for error, _ in reply.body.partitions.values()):
                self.close()
            return
        request = pending.request
        answer = self._wire_answer(pending, reply.body)
        self._server.own_answers.complete(answer, request, pending.model, reply.body)
        pending.response, pending.answer = answer, reply.body
        self._send_ready()

    def _send_ready(self) -> None:
        """Send the responses that are known, up to the first that is not.

        A response that a fault has lost holds up all later ones, as a lost segment of TCP does. The
        client then ends the connection after ``request.timeout.ms``.
        """
        to_send = bytearray()
        while parts := self._answered_parts():
            response = joined_response(parts[0].request, [part.response for part in parts])
            correlation_id = parts[0].request.correlation_id
            data = response_bytes(correlation_id, response)
            self._server.recorder.answered(self.number, correlation_id, data)
            to_send += data
            for part in parts:
                if part.answer is not None and self._history is not None:
                    self._history.answer(part.model, part.answer, part.operation)
        if to_send and self.is_open:
            self._send(bytes(to_send))
        if self._pending and self._pending[0].ends_connection:
            self.close()

    def _answered_parts(self) -> list[_UnansweredRequest]:
        """Return the parts of the first request once they all have responses, and forget them."""
        while self._pending and self._pending[0].response is not None:
            part = self._pending.popleft()
            self._answered.append(part)
            if part.is_last_part:
                parts, self._answered = self._answered, []
                return parts
        return []


def _timestamps(body: Any, naming: Naming) -> dict[str, int]:
    """Return what a ListOffsets request asks for, by partition.

    All records are local, so the first local record is the earliest one.
    """
    return {
        f"{naming.topic_of(topic)}-{partition.partition_index}": EARLIEST_TIMESTAMP
        if partition.timestamp == EARLIEST_LOCAL_TIMESTAMP
        else partition.timestamp
        for topic in body.topics
        for partition in topic.partitions
    }
