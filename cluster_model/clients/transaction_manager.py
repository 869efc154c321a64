"""What a producer with a transactional id does beside sending batches (``TransactionManager.java``, KIP-98).

Requests to coordinators go one at a time, and no batch is sent while one of them is under way (``Sender.runOnce``). Applications
are given errors by their names in Kafka's protocol, and `CALL_TIMED_OUT` and `ILLEGAL_STATE` for what the client itself throws.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from harrow.cluster_model import errors
from harrow.cluster_model.clients.client_metadata import ClientMetadata
from harrow.cluster_model.clients.coordinator_lookup import CoordinatorLookup
from harrow.cluster_model.clients.exponential_backoff import ExponentialBackoff
from harrow.cluster_model.clients.producer_batch import ProducerBatch
from harrow.cluster_model.clients.producer_sequences import FATAL_SEQUENCE_ERRORS, ProducerSequences
from harrow.cluster_model.coordinators import protocol
from harrow.cluster_model.events import (
    ProducerInitialized,
    TransactionEnding,
    TransactionError,
    TransactionOpened,
)
from harrow.cluster_model.log.record_batch import NO_PRODUCER_ID
from harrow.cluster_model.protocol import NO_EPOCH, InitProducerIdRequest, InitProducerIdResponse
from harrow.cluster_model.release.profiles import Behaviours
from harrow.cluster_model.settings import ProducerConfig
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.sim.virtual_time import US_PER_MS
from harrow.cluster_model.topology import CONSUMER_OFFSETS, TRANSACTION_STATE

UNINITIALIZED: Final = "UNINITIALIZED"
INITIALIZING: Final = "INITIALIZING"
READY: Final = "READY"
IN_TRANSACTION: Final = "IN_TRANSACTION"
COMMITTING: Final = "COMMITTING_TRANSACTION"
ABORTING: Final = "ABORTING_TRANSACTION"
ABORTABLE_ERROR: Final = "ABORTABLE_ERROR"
FATAL_ERROR: Final = "FATAL_ERROR"

_FROM: Final[Mapping[str, frozenset[str]]] = {
    INITIALIZING: frozenset({UNINITIALIZED, ABORTING}),
    READY: frozenset({INITIALIZING, COMMITTING, ABORTING}),
    IN_TRANSACTION: frozenset({READY}),
    COMMITTING: frozenset({IN_TRANSACTION}),
    ABORTING: frozenset({IN_TRANSACTION, ABORTABLE_ERROR}),
    ABORTABLE_ERROR: frozenset({IN_TRANSACTION, COMMITTING, ABORTABLE_ERROR, INITIALIZING}),
}
"""From which states each one can be reached (``State.isTransitionValid``); a fatal error from all."""

CALL_TIMED_OUT: Final = "CALL_TIMED_OUT"
"""TimeoutException of a call: ``max.block.ms`` are over. The same call may be made again, and no other."""
ILLEGAL_STATE: Final = "ILLEGAL_STATE"
"""IllegalStateException: an application calls what it may not call now."""
TRANSACTION_ABORTED: Final = "TRANSACTION_ABORTED"
"""TransactionAbortedException: what was not sent yet is dropped when its transaction is aborted."""
UNRESOLVED_SEQUENCES: Final = "UNRESOLVED_SEQUENCES"
"""A batch was given up that may be in the log, and those behind it cannot be numbered (KafkaException)."""

_FIRST_PARTITIONS_BACKOFF_US: Final = 20 * US_PER_MS
"""How soon a transaction's first partitions are added again, while the one before is completed (KAFKA-5482)."""

_INIT: Final = 1
_ADD: Final = 2
_END: Final = 3
_BUMP: Final = 4
"""In which order requests are sent (``Priority``). That a coordinator is found first needs no place among them."""

_FENCED: Final = frozenset({errors.PRODUCER_FENCED, errors.INVALID_PRODUCER_EPOCH})
_NOT_THE_COORDINATOR: Final = frozenset({errors.NOT_COORDINATOR, errors.COORDINATOR_NOT_AVAILABLE})
_RETRIED: Final = errors.RETRIABLE | {errors.COORDINATOR_LOAD_IN_PROGRESS, errors.CONCURRENT_TRANSACTIONS}
_MAPPING_LOST: Final = frozenset({errors.UNKNOWN_PRODUCER_ID, errors.INVALID_PRODUCER_ID_MAPPING})
_GROUP_HAS_MOVED_ON: Final = frozenset(
    {
        errors.FENCED_INSTANCE_ID,
        errors.UNKNOWN_MEMBER_ID,
        errors.ILLEGAL_GENERATION,
        errors.GROUP_ID_NOT_FOUND,
        errors.STALE_MEMBER_EPOCH,
        errors.TRANSACTION_ABORTABLE,
    }
)
"""After which the offsets of a member of a group are not committed, but the transaction may be aborted."""

OnDone = Callable[[str], None]
"""What an application waits for; it is given the error."""


class Batches(Protocol):
    """The batches of a producer, as far as its transactions are concerned (``RecordAccumulator``)."""

    def has_incomplete(self) -> bool:
        """Return whether the outcome of a batch is not known yet."""

    def abort_undrained(self, error: str) -> None:
        """Give up what was never sent."""

    def abort_all(self, error: str) -> None:
        """Give up everything."""

    def wake(self) -> None:
        """Have the sender do what can be done now."""

    def transaction_ended(self, *, committed: bool) -> None:
        """A transaction has been committed or aborted."""

    def transaction_failed(self, error: str) -> None:
        """The producer can do no more, and so not end its transaction."""


class _Result:
    """What comes of a call, which an application may have stopped waiting for (``TransactionalRequestResult``)."""

    __slots__ = ("error", "on_done")

    def __init__(self, on_done: OnDone | None = None) -> None:
        self.error: str | None = None
        self.on_done = on_done

    @property
    def is_completed(self) -> bool:
        return self.error is not None

    def complete(self, error: str) -> None:
        if self.error is None:
            self.error = error
            on_done, self.on_done = self.on_done, None
            if on_done is not None:
                on_done(error)


@dataclass(slots=True, eq=False)
class _TransactionalRequest:
    """A request that is to be sent (``TxnRequestHandler``)."""

    priority: int
    body: Any
    coordinator: CoordinatorLookup
    handle: Callable[["_TransactionalRequest", Any], None]
    result: _Result
    is_retry: bool = False
    backoff_us: int = 0

    @property
    def is_end(self) -> bool:
        return self.priority == _END


@dataclass(frozen=True, slots=True)
class _Transition:
    """A call that changes the state for good, and may be made again when it has timed out (``PendingStateTransition``)."""

    result: _Result
    state: str


class TransactionManager:
    """The transactions of a producer, one after the other, and what their coordinator is asked.

    ``partitions`` are those that are part of the transaction: to no other a batch is sent. Once ``commit_sent`` is true
    only the coordinator knows what becomes of it.
    """

    def __init__(
        self,
        host: Host,
        metadata: ClientMetadata,
        config: ProducerConfig,
        behaviours: Behaviours,
        batches: Batches,
    ) -> None:
        self._host = host
        self._metadata = metadata
        self._config = config
        self._behaviours = behaviours
        self._switches = behaviours.transactions
        self._batches = batches
        self._backoff = ExponentialBackoff(
            config.retry_backoff_us, config.retry_backoff_us, host.choices.network
        )
        self._coordinator = self._lookup(TRANSACTION_STATE, config.transactional_id)
        self._group_coordinators: dict[str, CoordinatorLookup] = {}
        self.sequences = TransactionalSequences(
            self,
            bumps_epoch=behaviours.clients.producer_bumps_epoch,
            awaits_given_up=behaviours.clients.given_up_batch_unresolved,
        )
        self.state = UNINITIALIZED
        self.last_error = errors.NONE
        self.commit_sent = False
        self.partitions: dict[str, None] = {}
        self._new_partitions: dict[str, None] = {}
        self._pending_partitions: dict[str, None] = {}
        self._pending: list[_TransactionalRequest] = []
        self._is_busy = False
        self._is_started = False
        self._is_bump_required = False
        self._transition_pending: _Transition | None = None
        self._waiting: _Result | None = None
        self._waits_until_us = 0
        self._timer_set = False

    def _lookup(self, topic: str, key: str) -> CoordinatorLookup:
        return CoordinatorLookup(
            self._host, self._metadata, self._config, topic, key, self._backoff, self._coordinator_found
        )

    # The application's side

    def init_transactions(self, on_done: OnDone) -> None:
        """Get a producer id and an epoch: from then on no former session of the same transactional id can write."""
        self._call(
            INITIALIZING,
            on_done,
            self._begin_init,
            times_out=self._switches.init_transactions_times_out,
        )

    def begin_transaction(self) -> str:
        """Begin a transaction; no broker knows of it yet. Return the error."""
        error = self._refusal()
        if error == errors.NONE and self.state != READY:
            error = ILLEGAL_STATE
        if error == errors.NONE:
            self._move_to(IN_TRANSACTION)
            self.commit_sent = False
            sequences = self.sequences
            self._host.emit(
                TransactionOpened, self._host.name, sequences.producer_id, sequences.producer_epoch
            )
        return error

    def commit_transaction(self, on_done: OnDone) -> None:
        """Commit, when all batches are in the logs."""
        self._call(
            COMMITTING,
            on_done,
            self._begin_commit,
            times_out=self._switches.end_transaction_times_out,
        )

    def abort_transaction(self, on_done: OnDone) -> None:
        """Abort; what was not sent yet is dropped."""
        self._call(
            ABORTING,
            on_done,
            self._begin_abort,
            times_out=self._switches.end_transaction_times_out,
        )

    def send_offsets(
        self,
        offsets: Mapping[str, int],
        group: str,
        member: str,
        generation: int,
        instance: str,
        on_done: OnDone,
    ) -> None:
        """Commit offsets of a group with the transaction (``sendOffsetsToTransaction``)."""
        error = self._refusal()
        if error == errors.NONE and self.state != IN_TRANSACTION:
            error = ILLEGAL_STATE
        if error != errors.NONE:
            on_done(error)
            return
        result = _Result(on_done)
        if not self._switches.transactional_commits_fenced:
            generation, member, instance = protocol.NO_GENERATION, protocol.NO_MEMBER, protocol.NO_INSTANCE
        commit = protocol.TxnOffsetCommitRequest(
            self._config.transactional_id,
            group,
            self.sequences.producer_id,
            self.sequences.producer_epoch,
            dict(offsets),
            generation,
            member,
            instance,
        )
        if self._switches.transactions_v2:
            # The group's coordinator adds its partition to the transaction by itself (KIP-890).
            self._is_started = True
            self._enqueue_offset_commit(commit, result)
        else:
            add = protocol.AddOffsetsToTxnRequest(
                self._config.transactional_id,
                self.sequences.producer_id,
                self.sequences.producer_epoch,
                group,
            )
            self._enqueue(
                _TransactionalRequest(
                    _ADD,
                    add,
                    self._coordinator,
                    lambda request, answer: self._offsets_added(request, answer, commit),
                    result,
                )
            )
        self._wait_for(result, times_out=self._switches.end_transaction_times_out)
        self._batches.wake()

    def add_partition(self, partition: str) -> str:
        """Have a partition be a part of the transaction, before something is sent to it; return the error."""
        error = self._refusal()
        if error != errors.NONE:
            return error
        if self.state != IN_TRANSACTION:
            return ILLEGAL_STATE
        if self._switches.transactions_v2:
            # Its leader adds it by itself (KIP-890).
            self.partitions[partition] = None
            self._is_started = True
        elif partition not in self.partitions and partition not in self._pending_partitions:
            self._new_partitions[partition] = None
        return errors.NONE

    def is_completing(self) -> bool:
        """Return whether the transaction is being committed or aborted."""
        return self.state in (COMMITTING, ABORTING)

    def has_error(self) -> bool:
        return self.state in (ABORTABLE_ERROR, FATAL_ERROR)

    def _refusal(self) -> str:
        """Return why an application may not go on: an error, or a call that has timed out and is to be made again."""
        transition = self._transition_pending
        if transition is not None:
            if not transition.result.is_completed:
                return ILLEGAL_STATE
            self._transition_pending = None
        return self.last_error if self.has_error() else errors.NONE

    def _call(self, state: str, on_done: OnDone, begin: Callable[[_Result], str], *, times_out: bool) -> None:
        """Do what an application waits for; a call that has timed out before goes on (``handleCachedTransactionRequestResult``)."""
        transition = self._transition_pending
        if transition is not None and not transition.result.is_completed:
            if transition.state != state:
                on_done(ILLEGAL_STATE)
                return
            transition.result.on_done = on_done
            self._wait_for(transition.result, times_out=times_out)
            return
        self._transition_pending = None
        result = _Result(on_done)
        error = begin(result)
        if error != errors.NONE:
            on_done(error)
            return
        self._transition_pending = _Transition(result, state)
        self._wait_for(result, times_out=times_out)
        self._batches.wake()

    def _begin_init(self, result: _Result) -> str:
        if self.has_error():
            return self.last_error
        if self.state != UNINITIALIZED:
            return ILLEGAL_STATE
        self._move_to(INITIALIZING)
        self._enqueue_init(_INIT, result)
        return errors.NONE

    def _begin_commit(self, result: _Result) -> str:
        if self.has_error():
            return self.last_error
        if self.state != IN_TRANSACTION:
            return ILLEGAL_STATE
        self._move_to(COMMITTING)
        self._begin_completing(result, committed=True)
        return errors.NONE

    def _begin_abort(self, result: _Result) -> str:
        if self.state == FATAL_ERROR:
            return self.last_error
        if self.state not in (IN_TRANSACTION, ABORTABLE_ERROR):
            return ILLEGAL_STATE
        error = self.last_error
        self._move_to(ABORTING)
        self._new_partitions.clear()
        self._begin_completing(result, committed=False, after=error)
        return errors.NONE

    def _begin_completing(self, result: _Result, *, committed: bool, after: str = errors.NONE) -> None:
        """End the transaction. After INVALID_PRODUCER_ID_MAPPING the coordinator knows of none."""
        self._host.emit(TransactionEnding, self._host.name, committed)
        if self._new_partitions:
            self._enqueue_partitions()
        if after == errors.INVALID_PRODUCER_ID_MAPPING:
            self._enqueue_init(_BUMP, result)
            return
        body = protocol.EndTxnRequest(
            self._config.transactional_id,
            self.sequences.producer_id,
            self.sequences.producer_epoch,
            committed,
        )
        self._enqueue(_TransactionalRequest(_END, body, self._coordinator, self._end_answered, result))

    # Waiting

    def _wait_for(self, result: _Result, *, times_out: bool) -> None:
        """Have an application wait, for ``max.block.ms`` at the most."""
        if result.is_completed or not times_out:
            return
        self._waiting = result
        self._waits_until_us = self._host.clock.now_us + self._config.max_block_us
        self._set_timer()

    def _set_timer(self) -> None:
        """One timer for all calls: it looks at the last of them, and is set again for it."""
        if not self._timer_set and self._waiting is not None:
            self._timer_set = True
            self._host.set_timer(
                max(self._waits_until_us - self._host.clock.now_us, 0), self._look_for_timeout
            )

    def _look_for_timeout(self, _: None) -> None:
        self._timer_set = False
        waiting = self._waiting
        if waiting is None or waiting.is_completed:
            self._waiting = None
        elif self._waits_until_us <= self._host.clock.now_us:
            self._waiting = None
            on_done, waiting.on_done = waiting.on_done, None
            if on_done is not None:
                on_done(CALL_TIMED_OUT)
        self._set_timer()

    # The sender's side

    def run(self) -> bool:
        """Send the next request to a coordinator; return whether batches may be sent now."""
        if self.state == FATAL_ERROR:
            self._batches.abort_all(self.last_error)
            return False
        if self._is_busy:
            return False
        if self.state in (ABORTABLE_ERROR, ABORTING):
            error = self.last_error if self.last_error != errors.NONE else TRANSACTION_ABORTED
            self._batches.abort_undrained(error)
        request = self._next_request()
        if request is None:
            return self.sequences.producer_id != NO_PRODUCER_ID
        self._send(request)
        return False

    def _next_request(self) -> _TransactionalRequest | None:
        if self._new_partitions:
            self._enqueue_partitions()
        while self._pending:
            request = self._pending[0]
            if request.is_end and self._batches.has_incomplete():
                # All batches have to be in the logs first.
                return None
            del self._pending[0]
            if self.has_error():
                request.result.complete(self.last_error)
            elif request.is_end and not self._is_started:
                # The coordinator knows of no partition: there is nothing to end.
                self._end(request)
            else:
                return request
        return None

    def _send(self, request: _TransactionalRequest) -> None:
        self._is_busy = True
        if request.coordinator.connection() is None:
            self._retry(request)
            self._is_busy = True
            request.coordinator.find()
        elif request.is_retry:
            self._host.set_timer(request.backoff_us or self._config.retry_backoff_us, self._send_now, request)
        else:
            self._send_now(request)

    def _coordinator_found(self) -> None:
        self._is_busy = False
        self._batches.wake()

    def _send_now(self, request: _TransactionalRequest) -> None:
        connection = request.coordinator.connection()
        if connection is None or self.state == FATAL_ERROR:
            self._is_busy = False
            self._retry(request)
            self._batches.wake()
            return
        if request.is_end and request.body.committed:
            self.commit_sent = True
        connection.send(request.body, self._answered, request)

    def _answered(self, response: Any, request: _TransactionalRequest) -> None:
        self._is_busy = False
        if response is None:
            request.coordinator.forget()
            self._retry(request)
        else:
            request.backoff_us = 0
            request.handle(request, response)
        self._batches.wake()

    def _enqueue(self, request: _TransactionalRequest) -> None:
        place = 0
        while place < len(self._pending) and self._pending[place].priority <= request.priority:
            place += 1
        self._pending.insert(place, request)

    def _retry(self, request: _TransactionalRequest) -> None:
        request.is_retry = True
        self._enqueue(request)

    def _enqueue_init(self, priority: int, result: _Result) -> None:
        """Ask for an epoch: the first time, or after an error as the producer that has the one before (KIP-360)."""
        is_bump = priority == _BUMP
        body = InitProducerIdRequest(
            self._config.transactional_id,
            self._config.transaction_timeout_us,
            self.sequences.producer_id if is_bump else NO_PRODUCER_ID,
            self.sequences.producer_epoch if is_bump else NO_EPOCH,
        )
        self._enqueue(_TransactionalRequest(priority, body, self._coordinator, self._init_answered, result))

    def _enqueue_partitions(self) -> None:
        self._pending_partitions.update(self._new_partitions)
        self._new_partitions.clear()
        body = protocol.AddPartitionsToTxnRequest(
            self._config.transactional_id,
            self.sequences.producer_id,
            self.sequences.producer_epoch,
            tuple(self._pending_partitions),
        )
        self._enqueue(_TransactionalRequest(_ADD, body, self._coordinator, self._partitions_added, _Result()))

    def _enqueue_offset_commit(self, commit: protocol.TxnOffsetCommitRequest, result: _Result) -> None:
        lookup = self._group_coordinators.get(commit.group)
        if lookup is None:
            lookup = self._group_coordinators[commit.group] = self._lookup(CONSUMER_OFFSETS, commit.group)
        self._enqueue(_TransactionalRequest(_ADD, commit, lookup, self._offsets_committed, result))

    # Answers

    def _handle_error(self, request: _TransactionalRequest, error: str) -> None:
        """Do what an error of a coordinator asks for, whichever request has got it."""
        if error in _NOT_THE_COORDINATOR:
            request.coordinator.forget()
            self._retry(request)
        elif error in _RETRIED:
            self._retry(request)
        elif error in _FENCED:
            self._fatal(errors.PRODUCER_FENCED, request.result)
        elif error in _MAPPING_LOST:
            self._abortable_if_possible(error, request.result)
        elif error == errors.TRANSACTION_ABORTABLE:
            self._abortable(error, request.result)
        else:
            self._fatal(error, request.result)

    def _init_answered(self, request: _TransactionalRequest, response: InitProducerIdResponse) -> None:
        if response.error in _MAPPING_LOST:
            self._fatal(response.error, request.result)
        elif response.error != errors.NONE:
            self._handle_error(request, response.error)
        else:
            if self.state == ABORTING:
                self._complete_transaction(committed=False, bumps=True)
            self.sequences.begin(response.producer_id, response.producer_epoch)
            self._move_to(READY)
            self._host.emit(
                ProducerInitialized, self._host.name, response.producer_id, response.producer_epoch
            )
            request.result.complete(errors.NONE)

    def _partitions_added(
        self, request: _TransactionalRequest, response: protocol.AddPartitionsToTxnResponse
    ) -> None:
        failed = errors.NONE
        for error in response.partitions.values():
            if error in (errors.NONE, errors.OPERATION_NOT_ATTEMPTED):
                failed = error if failed == errors.NONE else failed
                continue
            if error == errors.CONCURRENT_TRANSACTIONS and not self.partitions:
                request.backoff_us = min(_FIRST_PARTITIONS_BACKOFF_US, self._config.retry_backoff_us)
            self._handle_error(request, error)
            return
        for partition in response.partitions:
            self._pending_partitions.pop(partition, None)
        if failed != errors.NONE:
            self._abortable(failed, request.result)
            return
        self.partitions.update(dict.fromkeys(response.partitions))
        self._is_started = True
        request.result.complete(errors.NONE)

    def _end_answered(self, request: _TransactionalRequest, response: protocol.EndTxnResponse) -> None:
        if response.error != errors.NONE:
            self._handle_error(request, response.error)
            return
        if self._switches.transactions_v2:
            # With transactions v2 each transaction has an epoch of its own (KIP-890).
            self.sequences.begin(response.producer_id, response.producer_epoch)
        self._end(request)

    def _offsets_added(
        self,
        request: _TransactionalRequest,
        response: protocol.AddOffsetsToTxnResponse,
        commit: protocol.TxnOffsetCommitRequest,
    ) -> None:
        if response.error != errors.NONE:
            self._handle_error(request, response.error)
            return
        self._is_started = True
        self._enqueue_offset_commit(commit, request.result)

    def _offsets_committed(
        self, request: _TransactionalRequest, response: protocol.TxnOffsetCommitResponse
    ) -> None:
        left: dict[str, int] = {}
        for partition, error in response.partitions.items():
            if error in _NOT_THE_COORDINATOR or error == errors.REQUEST_TIMED_OUT:
                request.coordinator.forget()
            elif error in _GROUP_HAS_MOVED_ON:
                self._abortable(error, request.result)
                return
            elif error != errors.NONE and error not in _RETRIED:
                self._fatal(errors.PRODUCER_FENCED if error in _FENCED else error, request.result)
                return
            if error != errors.NONE:
                left[partition] = request.body.offsets[partition]
        if left:
            request.body.offsets = left
            self._retry(request)
        else:
            request.result.complete(errors.NONE)

    # Errors

    def batch_failed(self, error: str) -> None:
        """A batch of the transaction was given up (``maybeTransitionToErrorState``)."""
        if self.state == FATAL_ERROR:
            return
        # Until KIP-588 a leader's INVALID_PRODUCER_EPOCH was an error that tells that another session has taken over.
        is_fenced = error == errors.PRODUCER_FENCED or (
            error == errors.INVALID_PRODUCER_EPOCH and not self._switches.producer_fenced_error
        )
        if is_fenced:
            self._fatal(errors.PRODUCER_FENCED)
            return
        if not self.is_completing():
            self._require_bump()
        self._abortable(error)

    def sequences_unresolved(self) -> None:
        """A sequence may have been used or not, and no answer will tell: what follows cannot be numbered (``maybeResolveSequences``)."""
        if self._can_bump():
            self._require_bump()
            self._abortable(UNRESOLVED_SEQUENCES)
        else:
            self._fatal(UNRESOLVED_SEQUENCES)

    def _can_bump(self) -> bool:
        return self._behaviours.clients.producer_bumps_epoch or self._switches.transactions_v2

    def _require_bump(self) -> None:
        """Have the epoch raised after the transaction (KIP-360); with transactions v2 its end does that."""
        if self._switches.transactions_v2 or not self._behaviours.clients.producer_bumps_epoch:
            return
        self._is_bump_required = True

    def _abortable_if_possible(self, error: str, result: _Result) -> None:
        if self._can_bump():
            self._require_bump()
            self._abortable(error, result)
        else:
            self._fatal(error, result)

    def _abortable(self, error: str, result: _Result | None = None) -> None:
        """Go no further than to an abort."""
        if self.state == FATAL_ERROR:
            return
        if self.state != ABORTING:
            self._move_to(ABORTABLE_ERROR)
            self.last_error = error
            self._host.emit(TransactionError, self._host.name, error, False)
        if result is not None:
            result.complete(error)

    def _fatal(self, error: str, result: _Result | None = None) -> None:
        """Do nothing any more: the application has to begin with another producer."""
        if self.state != FATAL_ERROR:
            self.state, self.last_error = FATAL_ERROR, error
            self._host.emit(TransactionError, self._host.name, error, True)
            self._batches.transaction_failed(error)
        if result is not None:
            result.complete(error)
        if self._transition_pending is not None:
            self._transition_pending.result.complete(error)
        pending, self._pending = self._pending, []
        for request in pending:
            request.result.complete(error)

    def _end(self, request: _TransactionalRequest) -> None:
        """The transaction has ended; the epoch is raised before the next one begins, where that is needed."""
        bumps = self._is_bump_required
        self._complete_transaction(committed=request.body.committed, bumps=bumps)
        if bumps:
            self._enqueue_init(_BUMP, request.result)
        else:
            request.result.complete(errors.NONE)

    def _complete_transaction(self, *, committed: bool, bumps: bool) -> None:
        self._move_to(INITIALIZING if bumps else READY)
        self._is_bump_required = False
        self._is_started = False
        for partitions in (self.partitions, self._new_partitions, self._pending_partitions):
            partitions.clear()
        self._batches.transaction_ended(committed=committed)

    def _move_to(self, state: str) -> None:
        assert self.state in _FROM[state], f"invalid transition from {self.state} to {state}"
        self.state = state
        self.last_error = errors.NONE


class TransactionalSequences(ProducerSequences):
    """Sequences of a producer with a transactional id, whose epoch the coordinator gives."""

    __slots__ = ("_bumps_epoch", "_manager", "producer_epoch")

    def __init__(self, manager: TransactionManager, *, bumps_epoch: bool, awaits_given_up: bool) -> None:
        super().__init__(awaits_given_up=awaits_given_up)
        self._manager = manager
        self._bumps_epoch = bumps_epoch
        self.producer_epoch = NO_EPOCH

    def begin(self, producer_id: int, producer_epoch: int) -> None:
        """Begin at 0 in every partition, in an epoch in which nothing was written."""
        self._reset()
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch

    def settle(self, outstanding: Callable[[str], list[ProducerBatch]]) -> None:
        """Go no further where a gap stays, before KIP-360 where there may be one."""
        if self._unresolved and (not self._bumps_epoch or any(self._gaps(outstanding))):
            self._unresolved.clear()
            self._manager.sequences_unresolved()

    def assign(self, batch: ProducerBatch) -> None:
        super().assign(batch)
        batch.producer_epoch = self.producer_epoch
        batch.is_transactional = True

    def is_current(self, batch: ProducerBatch) -> bool:
        return super().is_current(batch) and batch.producer_epoch == self.producer_epoch

    def may_send(self, batch: ProducerBatch, in_flight: list[ProducerBatch]) -> bool:
        """Nothing goes to a partition that is not a part of the transaction (``isSendToPartitionAllowed``)."""
        return batch.partition in self._manager.partitions and super().may_send(batch, in_flight)

    def failed(self, batch: ProducerBatch, error: str, *, retries_left: bool, others: Any) -> None:
        if error == errors.UNKNOWN_PRODUCER_ID:
            # The log has nothing of this producer, and takes it from 0 on.
            for known in (self._next, self._last_acked, self._unresolved):
                known.pop(batch.partition, None)
        elif error in FATAL_SEQUENCE_ERRORS and retries_left and self.is_current(batch):
            self._close_gap(batch, others)
        else:
            super().failed(batch, error, retries_left=retries_left, others=others)


def call_until_in_time(call: Callable[[OnDone], None], on_done: OnDone) -> None:
    """Make a call, and again where it times out, as an application may."""
    call(lambda error: call_until_in_time(call, on_done) if error == CALL_TIMED_OUT else on_done(error))
