"""Coordinates transactions on one broker (``TransactionCoordinator.scala``)."""

from collections.abc import Callable
from functools import partial
from typing import Final

from harrow.cluster_model import errors
from harrow.cluster_model.broker.metadata_cache import MetadataCache
from harrow.cluster_model.broker.replica_manager import ReplicaManager
from harrow.cluster_model.coordinators.coordinator_log import CoordinatorLog
from harrow.cluster_model.coordinators.internal_topics import partition_for
from harrow.cluster_model.coordinators.protocol import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    DescribedTransaction,
    EndTxnRequest,
    EndTxnResponse,
    ListedTransaction,
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from harrow.cluster_model.coordinators.transactions.transaction_marker_channel import TransactionMarkerChannel
from harrow.cluster_model.coordinators.transactions.transaction_metadata import (
    AT_REST,
    COMPLETE,
    COMPLETE_COMMIT,
    DEAD,
    EPOCH_MAX,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    PREPARE_EPOCH_FENCE,
    PREPARED,
    STATES,
    TransactionMetadata,
    Transition,
    is_epoch_exhausted,
)
from harrow.cluster_model.coordinators.transactions.transaction_state_manager import (
    IdLookup,
    TransactionStateManager,
)
from harrow.cluster_model.events import OpenTransactionFenced
from harrow.cluster_model.log.record_batch import NO_PRODUCER_ID
from harrow.cluster_model.protocol import NO_EPOCH, InitProducerIdRequest, InitProducerIdResponse
from harrow.cluster_model.release.transactions import TransactionSwitches
from harrow.cluster_model.settings import BrokerConfig
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.sim.periodic_task import PeriodicTask
from harrow.cluster_model.topology import CONSUMER_OFFSETS, TRANSACTION_STATE

GenerateProducerId = Callable[[Callable[[InitProducerIdResponse], None]], None]
EndTxnCallback = Callable[[EndTxnResponse], None]

_ANSWERED: Final = "ANSWERED"


class TransactionCoordinator:
    """Coordinates the partitions of ``__transaction_state`` that its broker leads."""

    def __init__(
        self,
        broker: int,
        host: Host,
        config: BrokerConfig,
        switches: TransactionSwitches,
        replicas: ReplicaManager,
        metadata: MetadataCache,
        generate_producer_id: GenerateProducerId,
    ) -> None:
        self._broker = broker
        self._host = host
        self._config = config
        self._switches = switches
        self._metadata = metadata
        self._generate_producer_id = generate_producer_id
        self._states = TransactionStateManager(
            broker,
            host,
            CoordinatorLog(TRANSACTION_STATE, host, replicas),
            config.transaction_topic_partitions,
            self._schedule_timeout_check,
            self._complete_prepared,
            waits_for_commit=switches.coordinator_load_waits_for_commit,
        )
        self._markers = TransactionMarkerChannel(host, metadata, self._states, switches)
        self._timeout_task = PeriodicTask(host, config.transaction_abort_interval_us, self._abort_timed_out)
        self._expiry_task = PeriodicTask(host, config.transactional_id_cleanup_interval_us, self._expire)

    def start(self) -> None:
        """Start the tasks that abort timed-out transactions and expire transactional ids."""
        self._timeout_task.start()
        self._expiry_task.start()

    def close(self) -> None:
        """Forget all transactional ids, and send no more markers."""
        self._states.unload_all()
        self._markers.close()

    # Elections

    def on_election(self, partition: int, leader_epoch: int) -> None:
        """Load a partition, and complete the transactions that its former coordinator prepared."""
        if self._states.load(partition, leader_epoch):
            self._markers.forget(partition)

    def on_resignation(self, partition: int) -> None:
        self._states.unload(partition)
        self._markers.forget(partition)

    def _complete_prepared(self, coordinator_epoch: int, metadata: TransactionMetadata) -> None:
        if metadata.state == PREPARE_COMMIT and not self._switches.new_coordinator_completes_commit:
            metadata.current = metadata.current.copy(PREPARE_ABORT)
        transition = metadata.prepare_complete(self._host.clock.now_us)
        self._markers.end(coordinator_epoch, metadata, transition)

    # InitProducerId

    # Administrators

    def describe(self, transactional_id: str) -> DescribedTransaction:
        """Describe a transactional id (``handleDescribeTransactions``, KIP-664)."""
        lookup = self._states.find(transactional_id)
        metadata = lookup.metadata
        if lookup.error != errors.NONE:
            return DescribedTransaction(transactional_id, lookup.error)
        if metadata is None or metadata.state == DEAD:
            return DescribedTransaction(transactional_id, errors.TRANSACTIONAL_ID_NOT_FOUND)
        current = metadata.current
        return DescribedTransaction(
            *(transactional_id, errors.NONE, metadata.state, current.timeout_us),
            *(current.producer_id, current.producer_epoch, tuple(metadata.partitions)),
        )

    def list_transactions(self, request: ListTransactionsRequest) -> ListTransactionsResponse:
        """List transactional ids (``handleListTransactions``)."""
        if self._states.is_loading:
            return ListTransactionsResponse(errors.COORDINATOR_LOAD_IN_PROGRESS)
        unknown = tuple([state for state in request.states if state not in STATES])
        listed = [
            ListedTransaction(metadata.transactional_id, metadata.current.producer_id, metadata.state)
            for _, metadata in self._states.all()
            if self._is_wanted(metadata, request)
        ]
        return ListTransactionsResponse(errors.NONE, unknown, tuple(listed))

    def _is_wanted(self, metadata: TransactionMetadata, request: ListTransactionsRequest) -> bool:
        current, now_us = metadata.current, self._host.clock.now_us
        if metadata.state == DEAD or (request.states and metadata.state not in request.states):
            return False
        if request.duration_us is not None and not (
            0 <= current.start_us <= now_us - request.duration_us or request.duration_us < 0
        ):
            return False
        return not request.producer_ids or current.producer_id in request.producer_ids

    def init_producer_id(
        self, request: InitProducerIdRequest, respond: Callable[[InitProducerIdResponse], None]
    ) -> None:
        """Give a producer its id and epoch, once no transaction of its predecessor is open."""
        if not 0 < request.transaction_timeout_us <= self._config.transaction_max_timeout_us:
            respond(_no_producer(errors.INVALID_TRANSACTION_TIMEOUT))
        else:
            self._init(request, respond, NO_PRODUCER_ID)

    def _init(
        self,
        request: InitProducerIdRequest,
        respond: Callable[[InitProducerIdResponse], None],
        new_producer_id: int,
    ) -> None:
        """Handle an InitProducerId request.

        At first *new_producer_id* is `NO_PRODUCER_ID`. If the request needs a new producer id, this
        method is called again with the new id.
        """
        now_us = self._host.clock.now_us
        lookup = self._states.find(request.transactional_id)
        if lookup.error == errors.NONE and lookup.metadata is None and new_producer_id != NO_PRODUCER_ID:
            created = TransactionMetadata.new(
                request.transactional_id, new_producer_id, request.transaction_timeout_us, now_us
            )
            lookup = self._states.put_if_absent(created)
            self._expiry_task.request()
        if lookup.error != errors.NONE:
            respond(_no_producer(lookup.error))
            return
        metadata = lookup.metadata
        if metadata is None:
            self._init_with_new_id(request, respond)
            return
        error = self._init_error(request, metadata)
        if error != errors.NONE:
            respond(_no_producer(error))
            return
        if metadata.state == ONGOING:
            self._fence(metadata, partial(_answer_after_fence, respond), is_timed_out=False)
            return
        expected_epoch = request.producer_epoch if request.producer_id != NO_PRODUCER_ID else None
        transition: Transition | str
        if is_epoch_exhausted(metadata.producer_epoch) and expected_epoch in (None, metadata.producer_epoch):
            if new_producer_id == NO_PRODUCER_ID:
                self._init_with_new_id(request, respond)
                return
            transition = metadata.prepare_rotation(
                new_producer_id,
                request.transaction_timeout_us,
                now_us,
                keeps_last_epoch=expected_epoch is not None,
            )
        else:
            transition = metadata.prepare_new_epoch(request.transaction_timeout_us, expected_epoch, now_us)
        if isinstance(transition, str):
            respond(_no_producer(self._fenced_error()))
        else:
            self._states.append(
                request.transactional_id,
                lookup.coordinator_epoch,
                transition,
                partial(_answer_init, respond, transition),
            )

    def _init_with_new_id(
        self, request: InitProducerIdRequest, respond: Callable[[InitProducerIdResponse], None]
    ) -> None:
        def on_generated(answer: InitProducerIdResponse) -> None:
            if answer.error != errors.NONE:
                respond(_no_producer(answer.error))
            else:
                self._init(request, respond, answer.producer_id)

        self._generate_producer_id(on_generated)

    def _init_error(self, request: InitProducerIdRequest, metadata: TransactionMetadata) -> str:
        if metadata.pending_state is not None:
            return errors.CONCURRENT_TRANSACTIONS
        current = metadata.current
        if (
            request.producer_id not in (NO_PRODUCER_ID, current.producer_id)
            and current.producer_epoch != NO_EPOCH
            and not (
                request.producer_id == current.previous_producer_id
                and is_epoch_exhausted(request.producer_epoch)
            )
        ):
            return self._fenced_error()
        return errors.CONCURRENT_TRANSACTIONS if metadata.state in PREPARED else errors.NONE

    # Partitions

    def add_partitions(
        self, request: AddPartitionsToTxnRequest, respond: Callable[[AddPartitionsToTxnResponse], None]
    ) -> None:
        """Add partitions to a transaction, or check whether they are in it."""
        unknown = [name for name in request.partitions if self._metadata.leader_and_epoch(name) is None]
        if unknown:
            respond(
                AddPartitionsToTxnResponse(
                    {
                        name: errors.UNKNOWN_TOPIC_OR_PARTITION
                        if name in unknown
                        else errors.OPERATION_NOT_ATTEMPTED
                        for name in request.partitions
                    }
                )
            )
            return
        if request.verify_only:
            respond(AddPartitionsToTxnResponse(self._verify(request)))
            return
        self._add(
            *(request.transactional_id, request.producer_id, request.producer_epoch, request.partitions),
            lambda error: respond(AddPartitionsToTxnResponse(dict.fromkeys(request.partitions, error))),
            is_v2=request.is_v2,
        )

    def add_offsets(
        self, request: AddOffsetsToTxnRequest, respond: Callable[[AddOffsetsToTxnResponse], None]
    ) -> None:
        """Add the partition of ``__consumer_offsets`` that has the offsets of a group."""
        number = partition_for(request.group, self._config.offsets_topic_partitions)
        self._add(
            *(request.transactional_id, request.producer_id, request.producer_epoch),
            (f"{CONSUMER_OFFSETS}-{number}",),
            lambda error: respond(AddOffsetsToTxnResponse(error)),
            is_v2=False,
        )

    def _add(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: tuple[str, ...],
        on_complete: Callable[[str], None],
        *,
        is_v2: bool,
    ) -> None:
        lookup = self._states.find(transactional_id)
        metadata = lookup.metadata
        error = self._producer_error(lookup, producer_id, producer_epoch)
        if metadata is None or error != errors.NONE:
            on_complete(error)
        elif metadata.pending_state is not None or metadata.state in PREPARED:
            on_complete(errors.CONCURRENT_TRANSACTIONS)
        elif metadata.state == ONGOING and all(name in metadata.partitions for name in partitions):
            on_complete(errors.NONE)
        else:
            transition = metadata.prepare_add(partitions, self._host.clock.now_us, is_v2=is_v2)
            self._states.append(transactional_id, lookup.coordinator_epoch, transition, on_complete)

    def _verify(self, request: AddPartitionsToTxnRequest) -> dict[str, str]:
        """Check if partitions are in a transaction (``handleVerifyPartitionsInTransaction``)."""
        lookup = self._states.find(request.transactional_id)
        metadata = lookup.metadata
        error = self._producer_error(lookup, request.producer_id, request.producer_epoch)
        if metadata is None or error != errors.NONE:
            return dict.fromkeys(request.partitions, error)
        if metadata.state in PREPARED:
            return dict.fromkeys(request.partitions, errors.CONCURRENT_TRANSACTIONS)
        is_abortable = self._switches.transaction_abortable_error
        missing = errors.TRANSACTION_ABORTABLE if is_abortable else errors.INVALID_TXN_STATE
        return {name: errors.NONE if name in metadata.partitions else missing for name in request.partitions}

    def _producer_error(self, lookup: IdLookup, producer_id: int, producer_epoch: int) -> str:
        """Return why a producer may not use its transactional id here, or `errors.NONE`."""
        if lookup.error != errors.NONE:
            return lookup.error
        if lookup.metadata is None or lookup.metadata.producer_id != producer_id:
            return errors.INVALID_PRODUCER_ID_MAPPING
        if self._is_fenced(lookup.metadata, producer_epoch):
            return self._fenced_error()
        return errors.NONE

    def _is_fenced(self, metadata: TransactionMetadata, producer_epoch: int) -> bool:
        if not self._switches.transactional_producer_epoch_checked:
            return producer_epoch > metadata.producer_epoch
        return producer_epoch != metadata.producer_epoch

    def _fenced_error(self) -> str:
        has_own_error = self._switches.producer_fenced_error
        return errors.PRODUCER_FENCED if has_own_error else errors.INVALID_PRODUCER_EPOCH

    # EndTxn

    def end_transaction(self, request: EndTxnRequest, respond: EndTxnCallback) -> None:
        """Commit or abort a transaction.

        The decision is final once it is in the log. Then the producer gets its answer, although the
        partitions do not have their markers yet.
        """
        self._end(request, respond, is_from_client=True)

    def _fence(self, metadata: TransactionMetadata, respond: EndTxnCallback, *, is_timed_out: bool) -> None:
        """Abort an open transaction in a newer epoch, which fences its producer.

        The transaction ends as the cluster's ``transaction.version`` says, whatever version its
        producer uses.
        """

        def on_prepared(response: EndTxnResponse) -> None:
            if response.error == errors.NONE:
                self._host.publish(
                    OpenTransactionFenced, self._broker, metadata.transactional_id, is_timed_out
                )
            respond(response)

        fence = metadata.prepare_fence()
        request = EndTxnRequest(
            *(metadata.transactional_id, fence.producer_id, fence.producer_epoch),
            committed=False,
            is_v2=self._switches.transactions_v2,
        )
        self._end(request, on_prepared, is_from_client=False)

    def _end(
        self,
        request: EndTxnRequest,
        respond: EndTxnCallback,
        *,
        is_from_client: bool,
        next_producer_id: int = NO_PRODUCER_ID,
    ) -> None:
        lookup = self._states.find(request.transactional_id)
        metadata = lookup.metadata
        if metadata is None:
            respond(
                EndTxnResponse(
                    lookup.error if lookup.error != errors.NONE else errors.INVALID_PRODUCER_ID_MAPPING
                )
            )
            return
        error = self._end_error(metadata, request, is_from_client=is_from_client)
        if error == _ANSWERED:
            respond(_end_txn_response(request, metadata.producer_id, metadata.producer_epoch))
            return
        if error != errors.NONE:
            respond(EndTxnResponse(error))
            return
        is_v2 = request.is_v2
        is_fence = metadata.pending_state == PREPARE_EPOCH_FENCE
        if (
            is_v2
            and not is_fence
            and is_epoch_exhausted(metadata.producer_epoch)
            and next_producer_id == NO_PRODUCER_ID
        ):
            self._end_with_new_id(request, respond)
            return
        if is_fence:
            metadata.begin_abort_of_fenced(request.producer_epoch, is_v2=is_v2)
        transition = metadata.prepare_end(
            PREPARE_COMMIT if request.committed else PREPARE_ABORT,
            next_producer_id,
            self._host.clock.now_us,
            is_v2=is_v2,
        )
        self._states.append(
            request.transactional_id,
            lookup.coordinator_epoch,
            transition,
            partial(self._finish_prepare, request, respond, lookup.coordinator_epoch, metadata, is_fence),
        )

    def _end_with_new_id(self, request: EndTxnRequest, respond: EndTxnCallback) -> None:
        def on_generated(answer: InitProducerIdResponse) -> None:
            if answer.error != errors.NONE:
                respond(EndTxnResponse(answer.error))
            else:
                self._end(request, respond, is_from_client=True, next_producer_id=answer.producer_id)

        self._generate_producer_id(on_generated)

    def _end_error(
        self, metadata: TransactionMetadata, request: EndTxnRequest, *, is_from_client: bool
    ) -> str:
        """Return why a transaction cannot end as requested, or `errors.NONE`.

        Return `_ANSWERED` if it has already ended as requested.
        """
        current, epoch = metadata.current, request.producer_epoch
        is_v2 = request.is_v2 and metadata.pending_state != PREPARE_EPOCH_FENCE
        is_repeated = is_v2 and (
            (current.producer_id == request.producer_id and current.producer_epoch == epoch + 1)
            or (
                current.previous_producer_id == request.producer_id
                and epoch == EPOCH_MAX - 1
                and current.producer_epoch == 0
            )
        )
        if current.producer_id != request.producer_id and not is_repeated:
            return errors.INVALID_PRODUCER_ID_MAPPING
        is_changing = metadata.pending_state not in (None, PREPARE_EPOCH_FENCE)
        if is_changing and is_v2:
            # Otherwise an abort right after a commit would fence its own producer (KAFKA-18464).
            return errors.CONCURRENT_TRANSACTIONS
        if self._is_end_fenced(
            metadata, epoch, is_from_client=is_from_client, is_repeated=is_repeated, is_v2=is_v2
        ):
            return self._fenced_error()
        if is_changing:
            return errors.CONCURRENT_TRANSACTIONS
        return self._state_error(metadata, committed=request.committed, is_repeated=is_repeated, is_v2=is_v2)

    def _is_end_fenced(
        self,
        metadata: TransactionMetadata,
        epoch: int,
        *,
        is_from_client: bool,
        is_repeated: bool,
        is_v2: bool,
    ) -> bool:
        """Return whether the producer that sent an EndTxn request is fenced.

        With transactions v2 each transaction has its own epoch. A late request for an earlier
        transaction of the same producer is therefore fenced, too.
        """
        if not self._switches.transactional_producer_epoch_checked:
            return False
        if not is_v2:
            if is_from_client and self._switches.end_txn_with_later_epoch_refused:
                return epoch != metadata.producer_epoch
            return epoch < metadata.producer_epoch
        if metadata.state in PREPARED:
            return not is_repeated
        return epoch != metadata.producer_epoch and not (metadata.state in COMPLETE and is_repeated)

    def _state_error(
        self, metadata: TransactionMetadata, *, committed: bool, is_repeated: bool, is_v2: bool
    ) -> str:
        """Return the error if a transaction in its current state cannot end as requested."""
        state = metadata.state
        if state == ONGOING:
            return errors.NONE
        if state in PREPARED:
            is_same = committed == (state == PREPARE_COMMIT)
            return errors.CONCURRENT_TRANSACTIONS if is_same else errors.INVALID_TXN_STATE
        if state in COMPLETE and (is_repeated or not is_v2):
            is_same = committed == (state == COMPLETE_COMMIT)
            return _ANSWERED if is_same else errors.INVALID_TXN_STATE
        # With transactions v2 a producer may abort a transaction without knowing that it is empty.
        may_abort = is_v2 and state in AT_REST and not committed
        return errors.NONE if may_abort else errors.INVALID_TXN_STATE

    def _finish_prepare(
        self,
        request: EndTxnRequest,
        respond: EndTxnCallback,
        coordinator_epoch: int,
        metadata: TransactionMetadata,
        is_fence: bool,
        error: str,
    ) -> None:
        """Answer, and send the markers if the decision is in the log."""
        lookup = self._states.find(request.transactional_id)
        is_current = lookup.metadata is metadata and lookup.coordinator_epoch == coordinator_epoch
        if error != errors.NONE:
            if is_fence and is_current:
                metadata.has_failed_epoch_fence = True
            respond(EndTxnResponse(error))
            return
        assert is_current, "a transition of another coordinator epoch"
        if (
            not self._switches.end_txn_with_later_epoch_refused
            and metadata.producer_epoch < request.producer_epoch
        ):
            # The transaction stays prepared, in an epoch older than the producer's.
            respond(EndTxnResponse(self._fenced_error()))
            return
        completion = metadata.prepare_complete(self._host.clock.now_us)
        respond(_end_txn_response(request, completion.producer_id, completion.producer_epoch))
        self._markers.end(coordinator_epoch, metadata, completion)

    # Time

    def _schedule_timeout_check(self) -> None:
        self._timeout_task.request()

    def _abort_timed_out(self) -> bool:
        """Abort transactions that have been open for too long. Return whether any are open."""
        is_any_open = False
        for _, metadata in self._states.all():
            if metadata.state == ONGOING:
                is_any_open = True
                if metadata.pending_state is None and metadata.is_timed_out(self._host.clock.now_us):
                    self._fence(metadata, lambda _: None, is_timed_out=True)
        return is_any_open

    def _expire(self) -> bool:
        return self._states.expire(self._config.transactional_id_expiration_us)


def _end_txn_response(request: EndTxnRequest, producer_id: int, producer_epoch: int) -> EndTxnResponse:
    """Return the answer to EndTxn, with the next producer id and epoch in v2."""
    if request.is_v2:
        return EndTxnResponse(errors.NONE, producer_id, producer_epoch)
    return EndTxnResponse(errors.NONE)


def _no_producer(error: str) -> InitProducerIdResponse:
    return InitProducerIdResponse(error, NO_PRODUCER_ID, NO_EPOCH)


def _answer_init(
    respond: Callable[[InitProducerIdResponse], None], transition: Transition, error: str
) -> None:
    if error == errors.NONE:
        respond(InitProducerIdResponse(errors.NONE, transition.producer_id, transition.producer_epoch))
    else:
        respond(_no_producer(error))


def _answer_after_fence(respond: Callable[[InitProducerIdResponse], None], answer: EndTxnResponse) -> None:
    """Ask a producer to retry once the open transaction is aborted. The retry raises its epoch."""
    error = errors.CONCURRENT_TRANSACTIONS if answer.error == errors.NONE else answer.error
    respond(_no_producer(error))
