"""Records the history of real clients from their requests and the answers to them.

A process of the history is an idempotent producer, or else a connection. A send is acknowledged
when the broker has answered, and a poll returns what a broker has sent.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from harrow.checks.evidence import ConsumerSettings, ProducerSettings
from harrow.checks.promise import MISROUTED, NONMONOTONIC_SEND
from harrow.cluster_model import errors
from harrow.cluster_model.coordinators.protocol import EndTxnRequest, EndTxnResponse
from harrow.cluster_model.history import FAIL, INFO, INVOKE, OK, SEND, TXN, History, MicroOperation, Operation
from harrow.cluster_model.lazy_dataclass import dataclass, replace
from harrow.cluster_model.log.record_batch import NO_PRODUCER_ID, RecordBatch
from harrow.cluster_model.protocol import (
    CONSUMER_REPLICA_ID,
    INITIAL_SESSION_EPOCH,
    READ_COMMITTED,
    FetchedPartition,
    FetchRequest,
    FetchResponse,
    InitProducerIdRequest,
    ProduceRequest,
    ProduceResponse,
)
from harrow.cluster_model.trace import Clock
from harrow.live_cluster.serve.contents.client_batches import RecordNames
from harrow.live_cluster.serve.history.group_history import Emit, GroupHistory

_ACKS_ALL: Final = -1
_IN_FLIGHT_MAX: Final = 5
"""The limit for idempotent producers (``max.in.flight.requests.per.connection``), unless the
campaign states another. A broker does not see the settings of a producer."""
_RETRIES_MAX: Final = 2**31 - 1


@dataclass(slots=True, eq=False)
class _SentTransaction:
    """The records of an open transaction, by whether they are acknowledged.

    An acknowledged record has its offset if the broker named it. Several records may have one name.
    """

    unanswered: Counter[tuple[str, str]] = field(default_factory=Counter)
    acked_sends: list[MicroOperation] = field(default_factory=list)
    is_commit_sent: bool = False

    def acknowledge(self, partition: str, value: str, offset: int | None) -> bool:
        """Note that a record is acknowledged. Return False if none of this name is unanswered."""
        if not self.unanswered[partition, value]:
            return False
        self.unanswered[partition, value] -= 1
        self.acked_sends.append((SEND, partition, value if offset is None else (offset, value)))
        return True

    def unanswered_sends(self) -> tuple[MicroOperation, ...]:
        return tuple([(SEND, partition, value) for partition, value in self.unanswered.elements()])

    def sends(self) -> tuple[MicroOperation, ...]:
        """Return all sends without their offsets."""
        acked = [
            (SEND, partition, sent[1] if isinstance(sent, tuple) else sent)
            for _, partition, sent in self.acked_sends
        ]
        return (*acked, *self.unanswered_sends())


@dataclass(slots=True, eq=False)
class _OpenSends:
    """The sends of a record that have no outcome yet, and how often the wire carried them.

    ``attempts`` counts the requests that may have appended the record: those without an answer, and
    those whose answer leaves it open. ``error`` is the latest reason why another one has not.
    """

    sends: int = 0
    attempts: int = 0
    error: str = ""


_Attempts = Sequence[_OpenSends | None]
"""For each record of a batch the sends of it that were open when a request brought the batch."""


class WireHistory:
    """The operations of all connections.

    *configured_producers* has the settings of producers in the campaign, by the clients' names.
    *names* names the records.

    The wire does not show whether a program or its client library sends a record again, or to
    another partition. If the user says what identifies a record, the rules that the campaign
    demands decide: with ``misrouted`` the first partition of a record is the right one, and with
    ``nonmonotonic-send`` a record that was refused keeps its place when it is sent again.
    """

    def __init__(
        self,
        history: History,
        clock: Clock,
        has_partition: Callable[[str], bool],
        configured_producers: Mapping[str, ProducerSettings] = MappingProxyType({}),
        names: RecordNames | None = None,
        demanded: Collection[str] = (),
    ) -> None:
        self._history = history
        self.names = names or RecordNames()
        self.configured_producers = configured_producers
        self.has_partition = has_partition
        self._clock = clock
        self._producers: dict[tuple[int, int], int] = {}
        self._plain_processes: dict[str, int] = {}
        # By process, partition and record, in the order of the sends.
        self._open: dict[tuple[int, str, str], _OpenSends] = {}
        self._has_identity = self.names.identity is not None
        self._has_one_partition = self._has_identity and MISROUTED in demanded
        self._keeps_place = self._has_identity and NONMONOTONIC_SEND in demanded
        # By process and record: the first partition it was sent to and that may have it.
        self._partitions: dict[tuple[int, str], str] = {}
        self._transactions: dict[int, _SentTransaction] = {}
        # By the names of records without their sequence number: the next sequence number.
        self._sent: dict[str, int] = {}
        self.transactions_us = 0
        """The longest timeout of a transactional producer; 0 if there is none."""
        self.producers: dict[int, ProducerSettings] = {}
        self.groups = GroupHistory(history, clock, has_partition)
        # By process: the client's name, and whether it reads only committed transactions.
        self._consumers: dict[int, tuple[str, bool]] = {}

    def connection(self, name: str, emit: Emit) -> "ConnectionHistory":
        """Return the history of a new connection, whose client is called *name*.

        *emit* adds an event of the client to the trace.
        """
        return ConnectionHistory(self, name, emit)

    def consumers(self) -> dict[int, ConsumerSettings]:
        """Return the settings of all consumers, as far as their requests show them."""
        fetching = {
            process: self.groups.settings_of(name, read_committed=read_committed)
            for process, (name, read_committed) in self._consumers.items()
        }
        return {**self.groups.consumers(), **fetching}

    def new_process(self, name: str) -> int:
        return self._history.new_process(name)

    def idempotent_process(self, batch: RecordBatch, name: str) -> int:
        key = batch.producer_id, batch.producer_epoch
        if key not in self._producers:
            self._producers[key] = self.new_process(name)
        return self._producers[key]

    def plain_process(self, name: str) -> int | None:
        """Return the process of a producer without idempotence, None if each connection is one.

        If the campaign states the settings of a client, or the user says what identifies a record,
        all connections of the client are one process.
        """
        if name not in self.configured_producers and not self._has_identity:
            return None
        if name not in self._plain_processes:
            self._plain_processes[name] = self.new_process(name)
        return self._plain_processes[name]

    def send(self, process: int, partition: str, batch: RecordBatch) -> "_Attempts":
        """Record that the records of a batch are sent, but not those of a retried batch.

        Return the open sends to which the answer belongs.
        """
        transaction = None
        if batch.is_transactional:
            transaction = self._transactions.setdefault(process, _SentTransaction())
        for value in self._new_values(process, partition, batch):
            if not self._belongs(process, partition, value):
                continue
            if transaction is not None:
                transaction.unanswered[partition, value] += 1
                self._history.add(process, INVOKE, TXN, ((SEND, partition, value),), self._clock.now_us)
            else:
                sent = self._open.setdefault((process, partition, value), _OpenSends())
                sent.sends += 1
                sent.attempts += 1
                self._history.record_send(process, partition, value, self._clock.now_us)
        return [self._open.get((process, partition, value)) for value in batch.values]

    def _new_values(self, process: int, partition: str, batch: RecordBatch) -> Sequence[str]:
        """Return the values of a batch without those that its producer has sent before.

        A producer without idempotence sends a value again if it has no answer yet.
        """
        if batch.producer_id == NO_PRODUCER_ID:
            new = []
            for value in batch.values:
                if (open_sends := self._open.get((process, partition, value))) is None:
                    new.append(value)
                else:
                    open_sends.attempts += 1
                    self._belongs(process, partition, value)
            return new
        prefix = self.names.sequence_of(partition, batch.producer_id, batch.producer_epoch)
        sent = max(0, self._sent.get(prefix, batch.base_sequence) - batch.base_sequence)
        self._sent[prefix] = batch.base_sequence + max(sent, len(batch.values))
        return batch.values[sent:]

    def _belongs(self, process: int, partition: str, value: str) -> bool:
        """Return whether a partition is the first one to which a record is sent."""
        if not self._has_one_partition:
            return True
        return self._partitions.setdefault((process, value), partition) == partition

    def _free(self, process: int, values: Iterable[str]) -> None:
        """Let records belong to the next partition they are sent to, because no log has them."""
        for value in values:
            self._partitions.pop((process, value), None)

    def acknowledge(
        self,
        process: int,
        partition: str,
        batch: RecordBatch,
        attempts: "_Attempts",
        base_offset: int | None,
    ) -> None:
        transaction = self._transactions.get(process)
        for place, (value, sent) in enumerate(zip(batch.values, attempts, strict=True)):
            offset = None if base_offset is None else base_offset + place
            if transaction is not None and transaction.acknowledge(partition, value, offset):
                continue
            if self._close(process, partition, value, sent):
                self._history.record_ack(process, partition, offset, value, self._clock.now_us)

    def end_transaction(self, request: EndTxnRequest) -> None:
        """Record that a producer wants to end its transaction."""
        transaction = self._transactions.get(self._process_of(request))
        if transaction is not None and request.committed:
            transaction.is_commit_sent = True

    def transaction_ended(self, request: EndTxnRequest, answer: EndTxnResponse) -> None:
        """Record that the coordinator has decided as requested.

        With transactions v2 the producer goes on in the epoch of the answer (KIP-890).
        """
        self.groups.end_transaction(request)
        process = self._process_of(request)
        if request.is_v2 and process >= 0:
            self._producers[answer.producer_id, answer.producer_epoch] = process
        transaction = self._transactions.pop(process, None)
        if transaction is None:
            return
        now_us = self._clock.now_us
        if not request.committed:
            self._free(process, [value for _, _, value in transaction.sends()])
            self._history.add(process, FAIL, TXN, transaction.sends(), now_us, "ABORTED")
            return
        if transaction.acked_sends:
            self._history.add(process, OK, TXN, tuple(transaction.acked_sends), now_us)
        if unanswered := transaction.unanswered_sends():
            # The client has committed without them, as after an error that it ignores.
            self._history.add(process, INFO, TXN, unanswered, now_us, "no ack")

    def _process_of(self, request: EndTxnRequest) -> int:
        return self._producers.get((request.producer_id, request.producer_epoch), -1)

    def refuse(
        self, process: int, partition: str, batch: RecordBatch, attempts: "_Attempts", error: str
    ) -> None:
        """Record that a producer got an error for a batch.

        An idempotent producer may retry the same batch, so its records have no outcome yet.
        """
        definite = error not in errors.MAYBE_APPENDED
        if batch.producer_id != NO_PRODUCER_ID:
            if definite and error not in errors.RETRIABLE:
                self._free(process, batch.values)
            return
        if self._has_identity and not definite:
            return  # A record that is sent again is known.
        for value, sent in zip(batch.values, attempts, strict=True):
            # The record may have been acknowledged by another request, and sent anew since.
            if sent is None or self._open.get((process, partition, value)) is not sent:
                continue
            sent.attempts -= 1
            if sent.attempts > 0:
                continue  # Another request may have appended it.
            sent.error = error
            self._free(process, [value])
            if self._keeps_place and error in errors.RETRIABLE:
                continue
            while self._close(process, partition, value, sent):
                self._history.record_failure(
                    process, partition, value, self._clock.now_us, error, definite=definite
                )

    def _close(self, process: int, partition: str, value: str, sent: _OpenSends | None) -> bool:
        """Note that a send has an outcome. Return False if it had one already."""
        key = process, partition, value
        if sent is None or self._open.get(key) is not sent:
            return False
        sent.sends -= 1
        if not sent.sends:
            del self._open[key]
        return True

    def note_consumer(self, process: int, name: str, *, read_committed: bool) -> None:
        self._consumers.setdefault(process, (name, read_committed))

    def poll(self, process: int, records: dict[str, list[tuple[int, str]]], invoked_us: int) -> None:
        self._history.record_poll(process, records, invoked_us, self._clock.now_us)

    def assign(self, process: int, partitions: list[str]) -> None:
        self._history.record_assignment(process, partitions, self._clock.now_us)

    def close(self) -> None:
        """Record that the outcomes that are still open stay unknown."""
        for key, sent in self._open.items():
            is_refused = sent.attempts <= 0
            error = sent.error if is_refused else "no answer"
            for _ in range(sent.sends):
                self._history.record_failure(*key, self._clock.now_us, error, definite=is_refused)
        self._open.clear()
        for process, transaction in self._transactions.items():
            # Nobody can commit a transaction whose producer has not asked for it.
            outcome = INFO if transaction.is_commit_sent else FAIL
            self._history.add(process, outcome, TXN, transaction.sends(), self._clock.now_us, "no answer")
        self._transactions.clear()
        self.groups.close()


def without_partitions(
    operations: Iterable[Operation], is_deleted: Callable[[str], bool]
) -> Iterator[Operation]:
    """Yield operations without what they say about deleted partitions, whose records are gone."""
    for operation in operations:
        value = tuple(_remaining(operation.value, is_deleted))
        if value or not operation.value:
            yield replace(operation, value=value)


def _remaining(value: Iterable[Any], is_deleted: Callable[[str], bool]) -> Iterator[Any]:
    for micro in value:
        if isinstance(micro, str):
            if not is_deleted(micro):
                yield micro
        elif len(micro) == 1:
            yield micro
        elif isinstance(micro[1], dict):
            yield micro[0], {name: read for name, read in micro[1].items() if not is_deleted(name)}
        elif not is_deleted(micro[1]):
            yield micro


class ConnectionHistory:
    """The operations of one connection."""

    def __init__(self, shared: WireHistory, name: str, emit: Emit) -> None:
        self._shared = shared
        self._name = name
        self._emit = emit
        self._process: int | None = None
        self._positions: dict[str, int] = {}
        self._fetch = _Fetch(0, {})

    def request(self, request: object, now_us: int) -> "_OpenOperation | None":
        """Record a request that arrives. Return its operation, for `answer`."""
        self._shared.groups.request(self._name, request)
        if isinstance(request, ProduceRequest):
            attempts = {}
            for partition, batch in self._written(request):
                process = self._sender(batch, request)
                attempts[partition] = self._shared.send(process, partition, batch)
                if request.acks == 0:
                    self._shared.acknowledge(process, partition, batch, attempts[partition], None)
            return attempts
        if isinstance(request, FetchRequest) and request.replica_id == CONSUMER_REPLICA_ID:
            self._fetch = self._fetch.followed_by(request, now_us)
            return self._fetch
        if isinstance(request, EndTxnRequest):
            self._shared.end_transaction(request)
        elif isinstance(request, InitProducerIdRequest) and request.transactional_id:
            self._shared.transactions_us = max(self._shared.transactions_us, request.transaction_timeout_us)
        return None

    def answer(self, request: object, answer: object, operation: "_OpenOperation | None") -> None:
        """Record an answer that the client gets."""
        self._shared.groups.answer(self._name, request, answer, self._emit)
        if isinstance(request, ProduceRequest) and isinstance(answer, ProduceResponse):
            assert isinstance(operation, dict)
            for partition, batch in self._written(request):
                attempts = operation.get(partition, (None,) * len(batch.values))
                error, base_offset = answer.partitions[partition]
                process = self._sender(batch, request)
                if error == errors.NONE:
                    known = base_offset if base_offset >= 0 else None
                    self._shared.acknowledge(process, partition, batch, attempts, known)
                else:
                    self._shared.refuse(process, partition, batch, attempts, error)
        elif (
            isinstance(request, FetchRequest)
            and isinstance(answer, FetchResponse)
            and isinstance(operation, _Fetch)
        ):
            self._poll(request, answer, operation)
        elif (
            isinstance(request, EndTxnRequest)
            and isinstance(answer, EndTxnResponse)
            and answer.error == errors.NONE
        ):
            self._shared.transaction_ended(request, answer)

    def _written(self, request: ProduceRequest) -> Iterator[tuple[str, RecordBatch]]:
        """Yield the batches of a request for partitions that exist."""
        return ((name, batch) for name, batch in request.batches.items() if self._shared.has_partition(name))

    def _sender(self, batch: RecordBatch, request: ProduceRequest) -> int:
        if batch.producer_id != NO_PRODUCER_ID:
            process = self._shared.idempotent_process(batch, self._name)
        else:
            process = self._plain_process()
        if process not in self._shared.producers:
            configured = self._shared.configured_producers.get(self._name)
            self._shared.producers[process] = ProducerSettings(
                name=self._name,
                acks="all" if request.acks == _ACKS_ALL else str(request.acks),
                idempotence=batch.producer_id != NO_PRODUCER_ID,
                max_in_flight=_IN_FLIGHT_MAX if configured is None else configured.max_in_flight,
                retries=_RETRIES_MAX if configured is None else configured.retries,
                transactional_id=request.transactional_id,
            )
        return process

    def _plain_process(self) -> int:
        """Return the process of a producer without idempotence."""
        process = self._shared.plain_process(self._name)
        return self._own_process() if process is None else process

    def _own_process(self) -> int:
        if self._process is None:
            self._process = self._shared.new_process(self._name)
        return self._process

    def _poll(self, request: FetchRequest, answer: FetchResponse, fetch: "_Fetch") -> None:
        process = self._own_process()
        self._shared.note_consumer(
            process, self._name, read_committed=request.isolation_level == READ_COMMITTED
        )
        records: dict[str, list[tuple[int, str]]] = {}
        moved: list[str] = []
        is_new = True
        for partition, fetched in answer.partitions.items():
            begin = fetch.offsets.get(partition)
            if begin is None or not fetched.batches:
                continue
            if self._positions.get(partition) != begin:
                moved.append(partition)
                is_new = is_new and partition not in self._positions
            read = list(_delivered(fetched, begin, request.isolation_level == READ_COMMITTED))
            end = self._positions[partition] = fetched.batches[-1].next_offset
            self._shared.groups.fetched(self._name, partition, begin, end)
            if read:
                records[partition] = read
        # The client chose other offsets than the next ones, as after a seek. A history has no
        # seeks, so the client gives up these partitions and gets them again.
        if not is_new:
            self._shared.assign(process, [name for name in self._positions if name not in moved])
        if moved:
            self._shared.assign(process, [*self._positions])
        if records:
            self._shared.poll(process, records, fetch.sent_us)


class _Fetch(NamedTuple):
    """When a fetch arrived, and from which offset it reads each partition.

    In a session it names only the partitions that have changed since the previous fetch (KIP-227).
    """

    sent_us: int
    offsets: Mapping[str, int]

    def followed_by(self, request: FetchRequest, now_us: int) -> "_Fetch":
        is_whole = request.session_epoch <= INITIAL_SESSION_EPOCH
        if not (is_whole or request.partitions or request.forgotten):
            return _Fetch(now_us, self.offsets)
        offsets = {} if is_whole else dict(self.offsets)
        for partition in request.forgotten:
            offsets.pop(partition, None)
        offsets.update({partition: data.offset for partition, data in request.partitions.items()})
        return _Fetch(now_us, offsets)


_OpenOperation = _Fetch | dict[str, _Attempts]


def _delivered(fetched: FetchedPartition, begin: int, read_committed: bool) -> Iterator[tuple[int, str]]:
    """Yield the records that a consumer hands to its application (``CompletedFetch.java``)."""
    aborted = sorted(fetched.aborted, key=lambda each: each[1]) if read_committed else []
    open_aborts: set[int] = set()
    for batch in fetched.batches:
        while aborted and aborted[0][1] <= batch.next_offset - 1:
            open_aborts.add(aborted.pop(0)[0])
        if batch.is_control:
            open_aborts.discard(batch.producer_id)
        elif not (batch.is_transactional and batch.producer_id in open_aborts):
            yield from ((offset, value) for offset, value in batch.records() if offset >= begin)
