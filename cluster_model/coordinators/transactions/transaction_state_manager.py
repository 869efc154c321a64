"""Keeps a coordinator's transactional ids and their log (``TransactionStateManager.scala``)."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, NamedTuple

from harrow.cluster_model import errors
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
"""How long a coordinator takes to load a partition with records, which a thread does in Kafka."""

_COMMIT_WAIT_US: Final = 30 * US_PER_SECOND
"""The timeout of a wait for the commit of the log. The coordinator then waits again."""

_UNAVAILABLE: Final = (
    errors.UNKNOWN_TOPIC_OR_PARTITION,
    errors.NOT_ENOUGH_REPLICAS,
    errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    errors.REQUEST_TIMED_OUT,
)
_DEPOSED: Final = (errors.NOT_LEADER_FOR_PARTITION, errors.KAFKA_STORAGE_ERROR)


class CoordinatedId(NamedTuple):
    """The state of a transactional id and the coordinator epoch, or the error of the lookup."""

    error: str
    coordinator_epoch: int = -1
    metadata: TransactionMetadata | None = None


@dataclass(slots=True, eq=False)
class _LoadedPartition:
    coordinator_epoch: int
    transactions: dict[str, TransactionMetadata]


class TransactionStateManager:
    """The transactional ids in the loaded partitions of this broker, and their log.

    *on_ongoing* is called if there is a transaction that may have to be aborted later,
    *on_prepared* with a transaction whose end a former coordinator has prepared. With
    *waits_for_commit* it loads a partition only once the whole log is committed.
    """

    def __init__(
        self,
        broker: int,
        host: Host,
        log: CoordinatorLog,
        partitions: int,
        on_ongoing: Callable[[], None],
        on_prepared: Callable[[int, TransactionMetadata], None],
        *,
        waits_for_commit: bool,
    ) -> None:
        self._broker = broker
        self._host = host
        self._log = log
        self._partitions = partitions
        self._on_ongoing = on_ongoing
        self._on_prepared = on_prepared
        self._waits_for_commit = waits_for_commit
        self._loading: dict[int, int] = {}
        self._loaded: dict[int, _LoadedPartition] = {}

    def partition_of(self, transactional_id: str) -> int:
        """Return the partition of a transactional id."""
        return partition_for(transactional_id, self._partitions)

    def find(self, transactional_id: str) -> CoordinatedId:
        """Look up a transactional id."""
        partition = self.partition_of(transactional_id)
        if partition in self._loading:
            return CoordinatedId(errors.COORDINATOR_LOAD_IN_PROGRESS)
        loaded = self._loaded.get(partition)
        if loaded is None:
            return CoordinatedId(errors.NOT_COORDINATOR)
        return CoordinatedId(errors.NONE, loaded.coordinator_epoch, loaded.transactions.get(transactional_id))

    def put_if_absent(self, metadata: TransactionMetadata) -> CoordinatedId:
        """Add a transactional id unless it exists; return its state."""
        lookup = self.find(metadata.transactional_id)
        if lookup.error != errors.NONE or lookup.metadata is not None:
            return lookup
        loaded = self._loaded[self.partition_of(metadata.transactional_id)]
        loaded.transactions[metadata.transactional_id] = metadata
        return CoordinatedId(errors.NONE, loaded.coordinator_epoch, metadata)

    def all(self) -> Iterator[tuple[int, TransactionMetadata]]:
        """Yield the ids that this broker coordinates, each with its coordinator epoch."""
        for loaded in tuple(self._loaded.values()):
            for metadata in tuple(loaded.transactions.values()):
                yield loaded.coordinator_epoch, metadata

    # Loading

    def load(self, partition: int, coordinator_epoch: int) -> bool:
        """Load a partition; return False if that has been done or begun in this epoch.

        Uncommitted records of the log count, too, unless the coordinator waits for their commit.
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
        """Forget a partition that another broker coordinates."""
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
        """Write a transition, and complete it once it is committed; *on_complete* gets the error.

        With *is_retried* a transition that could not be written stays pending, because the caller
        retries it.
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
        status: str,
    ) -> None:
        error = _coordinator_error(status)
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
        """Remove ids that have not been used for *expiration_us*; return whether any were left."""
        is_any_left = False
        for coordinator_epoch, metadata in self.all():
            is_any_left = True
            expires_us = metadata.current.updated_us + expiration_us
            if (
                metadata.pending_state is None
                and metadata.state in AT_REST
                and expires_us <= self._host.clock.now_us
            ):
                self.append(
                    metadata.transactional_id, coordinator_epoch, metadata.prepare_dead(), lambda _: None
                )
        return is_any_left


def _coordinator_error(status: str) -> str:
    """Return the error that a client gets for the error of an append."""
    if status in _UNAVAILABLE:
        return errors.COORDINATOR_NOT_AVAILABLE
    return errors.NOT_COORDINATOR if status in _DEPOSED else status
