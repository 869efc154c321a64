"""Keeps the transactional ids of a coordinator, in memory and in ``__transaction_state``.

Modelled on ``TransactionStateManager.scala``.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, final

from harrow.cluster_model import errors
from harrow.cluster_model.compiling import mypyc_attr
from harrow.cluster_model.coordinators.coordinator_log import CoordinatorLog, CoordinatorRecord, records_of
from harrow.cluster_model.coordinators.internal_topics import partition_for
from harrow.cluster_model.coordinators.transactions.transaction_metadata import (
    AT_REST,
    DEAD,
    ONGOING,
    PREPARED,
    TransactionMetadata,
    Transition,
)
from harrow.cluster_model.events import TransactionStateChanged
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.sim.virtual_time import US_PER_MS, US_PER_SECOND

_LOAD_US: Final = 10 * US_PER_MS
"""How long a coordinator takes to load a partition that has records. In Kafka a thread loads it."""

_COMMIT_WAIT_US: Final = 30 * US_PER_SECOND
"""The timeout of one wait for the log to be committed. After it the coordinator waits again."""

_UNAVAILABLE: Final = (
    errors.UNKNOWN_TOPIC_OR_PARTITION,
    errors.NOT_ENOUGH_REPLICAS,
    errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    errors.REQUEST_TIMED_OUT,
)
_DEPOSED: Final = (errors.NOT_LEADER_FOR_PARTITION, errors.KAFKA_STORAGE_ERROR)


@final
@mypyc_attr(free_list_len=1)
@dataclass(slots=True, eq=False)
class IdLookup:
    """The result of looking up a transactional id.

    It has an error, or the coordinator epoch and the state of the id. The state is None if the id
    does not exist.
    """

    error: str
    coordinator_epoch: int = -1
    metadata: TransactionMetadata | None = None


@dataclass(slots=True, eq=False)
class _LoadedPartition:
    coordinator_epoch: int
    transactions: dict[str, TransactionMetadata]


class TransactionStateManager:
    """Loads, changes and expires the transactional ids that this broker coordinates.

    *on_ongoing* is called when a transaction is open, because it may time out. When a partition is
    loaded, *on_prepared* is called with each transaction that a former coordinator has prepared to
    commit or abort. With *waits_for_commit* a partition is loaded only once all of it is committed.
    """

    def __init__(
        self,
        broker: int,
        host: Host,
        log: CoordinatorLog,
        partition_count: int,
        on_ongoing: Callable[[], None],
        on_prepared: Callable[[int, TransactionMetadata], None],
        *,
        waits_for_commit: bool,
    ) -> None:
        self._broker = broker
        self._host = host
        self._log = log
        self._partition_count = partition_count
        # Looked up for every request, so each id is hashed only once.
        self._partition_by_id: dict[str, int] = {}
        self._on_ongoing = on_ongoing
        self._on_prepared = on_prepared
        self._waits_for_commit = waits_for_commit
        self._loading: dict[int, int] = {}
        self._loaded: dict[int, _LoadedPartition] = {}

    def partition_of(self, transactional_id: str) -> int:
        """Return the partition of ``__transaction_state`` that has a transactional id."""
        partition = self._partition_by_id.get(transactional_id)
        if partition is None:
            partition = partition_for(transactional_id, self._partition_count)
            self._partition_by_id[transactional_id] = partition
        return partition

    def find(self, transactional_id: str) -> IdLookup:
        """Look up a transactional id."""
        partition = self.partition_of(transactional_id)
        if partition in self._loading:
            return IdLookup(errors.COORDINATOR_LOAD_IN_PROGRESS)
        loaded = self._loaded.get(partition)
        if loaded is None:
            return IdLookup(errors.NOT_COORDINATOR)
        return IdLookup(errors.NONE, loaded.coordinator_epoch, loaded.transactions.get(transactional_id))

    def put_if_absent(self, metadata: TransactionMetadata) -> IdLookup:
        """Add a transactional id unless it exists. Return the lookup of the new or existing id."""
        lookup = self.find(metadata.transactional_id)
        if lookup.error != errors.NONE or lookup.metadata is not None:
            return lookup
        loaded = self._loaded[self.partition_of(metadata.transactional_id)]
        loaded.transactions[metadata.transactional_id] = metadata
        return IdLookup(errors.NONE, loaded.coordinator_epoch, metadata)

    @property
    def is_loading(self) -> bool:
        """Whether the state of some partition is being loaded."""
        return bool(self._loading)

    def all(self) -> Iterator[tuple[int, TransactionMetadata]]:
        """Yield the ids that this broker coordinates, each with its coordinator epoch."""
        for loaded in tuple(self._loaded.values()):
            for metadata in tuple(loaded.transactions.values()):
                yield loaded.coordinator_epoch, metadata

    # Loading

    def load(self, partition: int, coordinator_epoch: int) -> bool:
        """Load a partition. Return False if it is already loaded, or being loaded, in this epoch.

        Uncommitted records are loaded, too, unless the manager waits until they are committed.
        """
        loaded = self._loaded.get(partition)
        current_epoch = self._loading.get(partition, -1 if loaded is None else loaded.coordinator_epoch)
        if current_epoch == coordinator_epoch:
            return False
        self._loading[partition] = coordinator_epoch
        if self._waits_for_commit:
            self._await_commit((partition, coordinator_epoch))
        else:
            self._read_log((partition, coordinator_epoch))
        return True

    def _await_commit(self, task: tuple[int, int]) -> None:
        partition, coordinator_epoch = task
        if self._loading.get(partition) == coordinator_epoch:
            self._log.when_committed(partition, _COMMIT_WAIT_US, partial(self._finish_wait, task))

    def _finish_wait(self, task: tuple[int, int], error: str) -> None:
        if error == errors.NONE:
            self._read_log(task)
        else:
            self._host.set_timer(_LOAD_US, self._await_commit, task)

    def _read_log(self, task: tuple[int, int]) -> None:
        if any(True for _ in self._log.batches(task[0])):
            self._host.set_timer(_LOAD_US, self._load, task)
        else:
            self._load(task)

    def _load(self, task: tuple[int, int]) -> None:
        partition, coordinator_epoch = task
        if self._loading.get(partition) != coordinator_epoch:
            return
        transactions: dict[str, TransactionMetadata] = {}
        for batch in self._log.batches(partition):
            for record in records_of(batch):
                if record.value is None:
                    transactions.pop(record.key, None)
                else:
                    transactions[record.key] = TransactionMetadata.from_record(record.key, record.value)
        del self._loading[partition]
        self._loaded[partition] = _LoadedPartition(coordinator_epoch, transactions)
        for metadata in transactions.values():
            if metadata.state in PREPARED:
                self._on_prepared(coordinator_epoch, metadata)
            elif metadata.state == ONGOING:
                self._on_ongoing()

    def unload(self, partition: int) -> None:
        """Forget a partition that another broker now coordinates."""
        self._loading.pop(partition, None)
        self._loaded.pop(partition, None)

    def unload_all(self) -> None:
        """Forget all partitions."""
        self._loading.clear()
        self._loaded.clear()

    # Writing

    def append(
        self,
        transactional_id: str,
        coordinator_epoch: int,
        transition: Transition,
        on_complete: Callable[[str], None],
        *,
        is_retried: bool = False,
    ) -> None:
        """Write a transition, and apply it once its record is committed.

        *on_complete* gets an error or `errors.NONE`. With *is_retried* the transition stays pending
        after COORDINATOR_NOT_AVAILABLE, because the caller tries again.
        """
        lookup = self.find(transactional_id)
        if lookup.error != errors.NONE:
            on_complete(lookup.error)
        elif lookup.metadata is None or lookup.coordinator_epoch != coordinator_epoch:
            on_complete(errors.NOT_COORDINATOR)
        else:
            self._log.append(
                self.partition_of(transactional_id),
                (
                    CoordinatorRecord(
                        transactional_id, None if transition.state == DEAD else transition.as_record()
                    ),
                ),
                transition.timeout_us,
                partial(
                    self._finish_append,
                    transactional_id,
                    coordinator_epoch,
                    transition,
                    on_complete,
                    is_retried,
                ),
            )

    def _finish_append(
        self,
        transactional_id: str,
        coordinator_epoch: int,
        transition: Transition,
        on_complete: Callable[[str], None],
        is_retried: bool,
        append_error: str,
    ) -> None:
        error = _coordinator_error(append_error)
        lookup = self.find(transactional_id)
        is_current = lookup.metadata is not None and lookup.coordinator_epoch == coordinator_epoch
        if error != errors.NONE:
            stays_pending = is_retried and error == errors.COORDINATOR_NOT_AVAILABLE
            if lookup.metadata is not None and is_current and not stays_pending:
                lookup.metadata.pending_state = None
        elif lookup.metadata is None or not is_current:
            error = errors.NOT_COORDINATOR if lookup.error == errors.NONE else lookup.error
        else:
            self._complete(lookup.metadata, transition)
        on_complete(error)

    def _complete(self, metadata: TransactionMetadata, transition: Transition) -> None:
        metadata.complete(transition)
        self._host.emit(
            TransactionStateChanged,
            self._broker,
            metadata.transactional_id,
            transition.producer_id,
            transition.producer_epoch,
            transition.state,
            transition.partitions,
        )
        if transition.state == ONGOING:
            self._on_ongoing()
        elif transition.state == DEAD:
            loaded = self._loaded[self.partition_of(metadata.transactional_id)]
            del loaded.transactions[metadata.transactional_id]

    def expire(self, expiration_us: int) -> bool:
        """Remove ids that were not used for *expiration_us*. Return whether there were any ids."""
        has_ids = False
        for coordinator_epoch, metadata in self.all():
            has_ids = True
            expires_us = metadata.current.updated_us + expiration_us
            if (
                metadata.pending_state is None
                and metadata.state in AT_REST
                and expires_us <= self._host.clock.now_us
            ):
                self.append(
                    metadata.transactional_id, coordinator_epoch, metadata.prepare_dead(), lambda _: None
                )
        return has_ids


def _coordinator_error(append_error: str) -> str:
    """Return the error that a client gets after the coordinator's append has ended this way."""
    if append_error in _UNAVAILABLE:
        return errors.COORDINATOR_NOT_AVAILABLE
    return errors.NOT_COORDINATOR if append_error in _DEPOSED else append_error
