"""Manages the transactions of a transactional producer (``TransactionManager.java``, KIP-98).

Requests to coordinators are sent one at a time, and no batch is sent while one of them is in flight
(``Sender.runOnce``). A call of the application returns an error of Kafka's protocol by its name.
For an exception that the client itself throws, it returns `CALL_TIMED_OUT`, `ILLEGAL_STATE` or one
of the other names below.
"""

from collections.abc import Callable, Mapping
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
from harrow.cluster_model.lazy_dataclass import dataclass
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

_VALID_ORIGINS: Final[Mapping[str, frozenset[str]]] = {
    INITIALIZING: frozenset({UNINITIALIZED, ABORTING}),
    READY: frozenset({INITIALIZING, COMMITTING, ABORTING}),
    IN_TRANSACTION: frozenset({READY}),
    COMMITTING: frozenset({IN_TRANSACTION}),
    ABORTING: frozenset({IN_TRANSACTION, ABORTABLE_ERROR}),
    ABORTABLE_ERROR: frozenset({IN_TRANSACTION, COMMITTING, ABORTABLE_ERROR, INITIALIZING}),
}
"""The states that can precede each state (``State.isTransitionValid``).

Every state can precede `FATAL_ERROR`.
"""

CALL_TIMED_OUT: Final = "CALL_TIMED_OUT"
"""TimeoutException: a call took longer than ``max.block.ms``. Only the same call may follow."""
ILLEGAL_STATE: Final = "ILLEGAL_STATE"
"""IllegalStateException: the call is not allowed in this state."""
TRANSACTION_ABORTED: Final = "TRANSACTION_ABORTED"
"""TransactionAbortedException: a batch was not sent before its transaction was aborted."""
UNRESOLVED_SEQUENCES: Final = "UNRESOLVED_SEQUENCES"
"""KafkaException: later batches are blocked, because one that may be in the log was given up."""

_FIRST_PARTITIONS_BACKOFF_US: Final = 20 * US_PER_MS
"""How long to wait before adding the first partitions again, while the previous transaction ends.

See KAFKA-5482.
"""

_INIT: Final = 1
_ADD: Final = 2
_END: Final = 3
_BUMP: Final = 4
"""The order of requests, lowest number first (``Priority``). Lookups are not in this queue."""

_FENCING_ERRORS: Final = frozenset({errors.PRODUCER_FENCED, errors.INVALID_PRODUCER_EPOCH})
_NOT_THE_COORDINATOR: Final = frozenset({errors.NOT_COORDINATOR, errors.COORDINATOR_NOT_AVAILABLE})
_RETRIED_ERRORS: Final = errors.RETRIABLE | {
    errors.COORDINATOR_LOAD_IN_PROGRESS,
    errors.CONCURRENT_TRANSACTIONS,
}
_MAPPING_LOST: Final = frozenset({errors.UNKNOWN_PRODUCER_ID, errors.INVALID_PRODUCER_ID_MAPPING})
"""Errors which show that the producer id is no longer known for the transactional id."""
_ABORTABLE_OFFSET_ERRORS: Final = frozenset(
    {
        errors.FENCED_INSTANCE_ID,
        errors.UNKNOWN_MEMBER_ID,
        errors.ILLEGAL_GENERATION,
        errors.GROUP_ID_NOT_FOUND,
        errors.STALE_MEMBER_EPOCH,
        errors.TRANSACTION_ABORTABLE,
    }
)
"""Errors of an offset commit after which the transaction must be aborted."""

OnDone = Callable[[str], None]
"""Called at the end of a call for which the application waits, with the error or `NONE`."""


class Batches(Protocol):
    """The batches of a producer, as its transaction manager sees them (``RecordAccumulator``)."""

    def has_incomplete(self) -> bool:
        """Return whether a batch has no outcome yet."""

    def abort_undrained(self, error: str) -> None:
        """Give up batches that were never sent."""

    def abort_all(self, error: str) -> None:
        """Give up all batches."""

    def wake(self) -> None:
        """Run the sender."""

    def transaction_ended(self, *, committed: bool) -> None:
        """Handle the end of a transaction."""

    def transaction_failed(self, error: str) -> None:
        """Handle a fatal error: the producer cannot end its transaction."""


class _Result:
    """The result of a call that is in progress or completed (``TransactionalRequestResult``)."""

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
    """A request to a coordinator, in the queue or in flight (``TxnRequestHandler``)."""

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
    """A call that changes the state; the application may repeat it (``PendingStateTransition``)."""

    result: _Result
    state: str


class TransactionManager:
    """The successive transactions of a producer, and the requests to their coordinator.

    ``partitions`` are those in the transaction; batches are sent only to them. Once ``commit_sent``
    is true, only the coordinator knows the outcome.
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
            keeps_abandoned_sequence=behaviours.clients.abandoned_batch_keeps_sequence,
        )
        self.state = UNINITIALIZED
        self.last_error = errors.NONE
        self.commit_sent = False
        self.partitions: dict[str, None] = {}
        self._new_partitions: dict[str, None] = {}
        self._pending_partitions: dict[str, None] = {}
        self._pending: list[_TransactionalRequest] = []
        self._is_busy = False
        # Whether the coordinator may know of the transaction.
        self._is_started = False
        self._is_bump_required = False
        self._transition_pending: _Transition | None = None
        self._awaited_result: _Result | None = None
        self._waits_until_us = 0
        self._is_timer_set = False

    def _lookup(self, topic: str, key: str) -> CoordinatorLookup:
        return CoordinatorLookup(
            self._host, self._metadata, self._config, topic, key, self._backoff, self._coordinator_found
        )

    # The application's side

    def init_transactions(self, on_done: OnDone) -> None:
        """Get a producer id and an epoch, which fences former sessions of the transactional id."""
        self._call(
            INITIALIZING,
            on_done,
            self._begin_init,
            times_out=self._switches.init_transactions_times_out,
        )

    def begin_transaction(self) -> str:
        """Begin a transaction, without telling a broker; return the error."""
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
        """Commit the transaction once all batches are in the logs."""
        self._call(
            COMMITTING,
            on_done,
            self._begin_commit,
            times_out=self._switches.end_transaction_times_out,
        )

    def abort_transaction(self, on_done: OnDone) -> None:
        """Abort the transaction, and drop unsent batches."""
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
            adds_partitions=self._switches.transactions_v2,
            knows_group_errors=self._switches.transactions_v2
            and self._behaviours.groups.specific_transactional_commit_errors,
        )
        if self._switches.transactions_v2:
            # The group coordinator adds its partition to the transaction by itself (KIP-890).
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
                    lambda request, answer: self._handle_added_offsets(request, answer, commit),
                    result,
                )
            )
        self._wait_for(result, times_out=self._switches.end_transaction_times_out)
        self._batches.wake()

    def add_partition(self, partition: str) -> str:
        """Add a partition to the transaction before a record is sent to it; return the error."""
        error = self._refusal()
        if error != errors.NONE:
            return error
        if self.state != IN_TRANSACTION:
            return ILLEGAL_STATE
        if self._switches.transactions_v2:
            # The leader adds the partition by itself (KIP-890).
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
        """Return the error with which to refuse a call, or `NONE`.

        A call is refused after an earlier error, and while another call that timed out must be
        repeated.
        """
        transition = self._transition_pending
        if transition is not None:
            if not transition.result.is_completed:
                return ILLEGAL_STATE
            self._transition_pending = None
        return self.last_error if self.has_error() else errors.NONE

    def _call(self, state: str, on_done: OnDone, begin: Callable[[_Result], str], *, times_out: bool) -> None:
        """Begin a call of the application, or continue the same call after a timeout.

        See ``handleCachedTransactionRequestResult``.
        """
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
        self._begin_completing(result, committed=False, last_error=error)
        return errors.NONE

    def _begin_completing(self, result: _Result, *, committed: bool, last_error: str = errors.NONE) -> None:
        """End the transaction.

        After INVALID_PRODUCER_ID_MAPPING the coordinator has no transaction of this producer, so
        the producer only requests another epoch.
        """
        self._host.emit(TransactionEnding, self._host.name, committed)
        if self._new_partitions:
            self._enqueue_partitions()
        if last_error == errors.INVALID_PRODUCER_ID_MAPPING:
            self._enqueue_init(_BUMP, result)
            return
        body = protocol.EndTxnRequest(
            self._config.transactional_id,
            self.sequences.producer_id,
            self.sequences.producer_epoch,
            committed,
            is_v2=self._switches.transactions_v2,
        )
        self._enqueue(_TransactionalRequest(_END, body, self._coordinator, self._handle_end_response, result))

    # Waiting

    def _wait_for(self, result: _Result, *, times_out: bool) -> None:
        """Make the application wait for *result*, at most for ``max.block.ms``."""
        if result.is_completed or not times_out:
            return
        self._awaited_result = result
        self._waits_until_us = self._host.clock.now_us + self._config.max_block_us
        self._set_timer()

    def _set_timer(self) -> None:
        """Set the timer for the call in progress. One timer serves all calls."""
        if not self._is_timer_set and self._awaited_result is not None:
            self._is_timer_set = True
            self._host.set_timer(max(self._waits_until_us - self._host.clock.now_us, 0), self._check_timeout)

    def _check_timeout(self, _: None) -> None:
        self._is_timer_set = False
        awaited = self._awaited_result
        if awaited is None or awaited.is_completed:
            self._awaited_result = None
        elif self._waits_until_us <= self._host.clock.now_us:
            self._awaited_result = None
            on_done, awaited.on_done = awaited.on_done, None
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
                # All batches must be in the logs first.
                return None
            del self._pending[0]
            if self.has_error():
                request.result.complete(self.last_error)
            elif request.is_end and not self._is_started:
                # No partition was added, so the coordinator has nothing to end.
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
        connection.send(request.body, self._handle_response, request)

    def _handle_response(self, response: Any, request: _TransactionalRequest) -> None:
        self._is_busy = False
        if response is None:
            request.coordinator.forget()
            self._retry(request)
        else:
            request.backoff_us = 0
            request.handle(request, response)
        self._batches.wake()

    def _enqueue(self, request: _TransactionalRequest) -> None:
        index = 0
        while index < len(self._pending) and self._pending[index].priority <= request.priority:
            index += 1
        self._pending.insert(index, request)

    def _retry(self, request: _TransactionalRequest) -> None:
        request.is_retry = True
        self._enqueue(request)

    def _enqueue_init(self, priority: int, result: _Result) -> None:
        """Request the first epoch, or with `_BUMP` the one after the current epoch (KIP-360)."""
        is_bump = priority == _BUMP
        body = InitProducerIdRequest(
            self._config.transactional_id,
            self._config.transaction_timeout_us,
            self.sequences.producer_id if is_bump else NO_PRODUCER_ID,
            self.sequences.producer_epoch if is_bump else NO_EPOCH,
        )
        self._enqueue(
            _TransactionalRequest(priority, body, self._coordinator, self._handle_init_response, result)
        )

    def _enqueue_partitions(self) -> None:
        self._pending_partitions.update(self._new_partitions)
        self._new_partitions.clear()
        body = protocol.AddPartitionsToTxnRequest(
            self._config.transactional_id,
            self.sequences.producer_id,
            self.sequences.producer_epoch,
            tuple(self._pending_partitions),
        )
        self._enqueue(
            _TransactionalRequest(_ADD, body, self._coordinator, self._handle_added_partitions, _Result())
        )

    def _enqueue_offset_commit(self, commit: protocol.TxnOffsetCommitRequest, result: _Result) -> None:
        lookup = self._group_coordinators.get(commit.group)
        if lookup is None:
            lookup = self._group_coordinators[commit.group] = self._lookup(CONSUMER_OFFSETS, commit.group)
        self._enqueue(
            _TransactionalRequest(_ADD, commit, lookup, self._handle_offset_commit_response, result)
        )

    # Answers

    def _handle_error(self, request: _TransactionalRequest, error: str) -> None:
        """Handle an error of a coordinator that means the same for every request."""
        if error in _NOT_THE_COORDINATOR:
            request.coordinator.forget()
            self._retry(request)
        elif error in _RETRIED_ERRORS:
            self._retry(request)
        elif error in _FENCING_ERRORS:
            self._enter_fatal_error(errors.PRODUCER_FENCED, request.result)
        elif error in _MAPPING_LOST:
            self._enter_abortable_error_if_possible(error, request.result)
        elif error == errors.TRANSACTION_ABORTABLE:
            self._enter_abortable_error(error, request.result)
        else:
            self._enter_fatal_error(error, request.result)

    def _handle_init_response(self, request: _TransactionalRequest, response: InitProducerIdResponse) -> None:
        if response.error in _MAPPING_LOST:
            self._enter_fatal_error(response.error, request.result)
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

    def _handle_added_partitions(
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
            self._enter_abortable_error(failed, request.result)
            return
        self.partitions.update(dict.fromkeys(response.partitions))
        self._is_started = True
        request.result.complete(errors.NONE)

    def _handle_end_response(self, request: _TransactionalRequest, response: protocol.EndTxnResponse) -> None:
        if response.error != errors.NONE:
            self._handle_error(request, response.error)
            return
        if self._switches.transactions_v2:
            # With transactions v2 each transaction has its own epoch (KIP-890).
            self.sequences.begin(response.producer_id, response.producer_epoch)
        self._end(request)

    def _handle_added_offsets(
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

    def _handle_offset_commit_response(
        self, request: _TransactionalRequest, response: protocol.TxnOffsetCommitResponse
    ) -> None:
        remaining: dict[str, int] = {}
        for partition, error in response.partitions.items():
            if error in _NOT_THE_COORDINATOR or error == errors.REQUEST_TIMED_OUT:
                request.coordinator.forget()
            elif error in _ABORTABLE_OFFSET_ERRORS:
                self._enter_abortable_error(error, request.result)
                return
            elif error != errors.NONE and error not in _RETRIED_ERRORS:
                self._enter_fatal_error(
                    errors.PRODUCER_FENCED if error in _FENCING_ERRORS else error, request.result
                )
                return
            if error != errors.NONE:
                remaining[partition] = request.body.offsets[partition]
        if remaining:
            request.body.offsets = remaining
            self._retry(request)
        else:
            request.result.complete(errors.NONE)

    # Errors

    def batch_failed(self, error: str) -> None:
        """Handle a batch that was given up (``maybeTransitionToErrorState``)."""
        if self.state == FATAL_ERROR:
            return
        # Before KIP-588 a leader's INVALID_PRODUCER_EPOCH meant that a successor has taken over.
        is_fenced = error == errors.PRODUCER_FENCED or (
            error == errors.INVALID_PRODUCER_EPOCH and not self._switches.producer_fenced_error
        )
        if is_fenced:
            self._enter_fatal_error(errors.PRODUCER_FENCED)
            return
        if not self.is_completing():
            self._require_bump()
        self._enter_abortable_error(error)

    def sequences_unresolved(self) -> None:
        """Handle a batch of which no answer will show whether it is in the log.

        Later batches cannot be numbered (``maybeResolveSequences``).
        """
        if self._can_bump():
            self._require_bump()
            self._enter_abortable_error(UNRESOLVED_SEQUENCES)
        else:
            self._enter_fatal_error(UNRESOLVED_SEQUENCES)

    def _can_bump(self) -> bool:
        return self._behaviours.clients.producer_bumps_epoch or self._switches.transactions_v2

    def _require_bump(self) -> None:
        """Raise the epoch after the transaction (KIP-360).

        With transactions v2 the end of every transaction raises it anyway.
        """
        if self._switches.transactions_v2 or not self._behaviours.clients.producer_bumps_epoch:
            return
        self._is_bump_required = True

    def _enter_abortable_error_if_possible(self, error: str, result: _Result) -> None:
        if self._can_bump():
            self._require_bump()
            self._enter_abortable_error(error, result)
        else:
            self._enter_fatal_error(error, result)

    def _enter_abortable_error(self, error: str, result: _Result | None = None) -> None:
        """Enter the error state that the application leaves by an abort."""
        if self.state == FATAL_ERROR:
            return
        if self.state != ABORTING:
            self._move_to(ABORTABLE_ERROR)
            self.last_error = error
            self._host.emit(TransactionError, self._host.name, error, False)
        if result is not None:
            result.complete(error)

    def _enter_fatal_error(self, error: str, result: _Result | None = None) -> None:
        """Enter the final error state: the application must create another producer."""
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
        """Complete the transaction, and raise the epoch before the next one if required."""
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
        assert self.state in _VALID_ORIGINS[state], f"invalid transition from {self.state} to {state}"
        self.state = state
        self.last_error = errors.NONE


class TransactionalSequences(ProducerSequences):
    """The sequences of a producer with a transactional id; the coordinator assigns its epochs."""

    __slots__ = ("_bumps_epoch", "_manager", "producer_epoch")

    def __init__(
        self, manager: TransactionManager, *, bumps_epoch: bool, keeps_abandoned_sequence: bool
    ) -> None:
        super().__init__(keeps_abandoned_sequence=keeps_abandoned_sequence)
        self._manager = manager
        self._bumps_epoch = bumps_epoch
        self.producer_epoch = NO_EPOCH

    def begin(self, producer_id: int, producer_epoch: int) -> None:
        """Start from 0 in every partition, with a new epoch."""
        self._reset()
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch

    def settle(self, outstanding: Callable[[str], list[ProducerBatch]]) -> None:
        """Fail the transaction on a permanent gap; before KIP-360 on a possible one too."""
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
        """Send nothing to partitions outside of the transaction (``isSendToPartitionAllowed``)."""
        return batch.partition in self._manager.partitions and super().may_send(batch, in_flight)

    def on_batch_failure(self, batch: ProducerBatch, error: str, *, retries_left: bool, others: Any) -> None:
        if error == errors.UNKNOWN_PRODUCER_ID:
            # The log has no state of this producer, so its sequence numbers start from 0.
            for sequences in (self._next, self._last_acked, self._unresolved):
                sequences.pop(batch.partition, None)
        elif error in FATAL_SEQUENCE_ERRORS and retries_left and self.is_current(batch):
            self._close_gap(batch, others)
        else:
            super().on_batch_failure(batch, error, retries_left=retries_left, others=others)


def retry_timeouts(call: Callable[[OnDone], None], on_done: OnDone) -> None:
    """Make a call, and repeat it after each timeout, as applications are allowed to."""
    call(lambda error: retry_timeouts(call, on_done) if error == CALL_TIMED_OUT else on_done(error))
