"""The transactional ids of the partitions that a broker coordinates, and their log (``TransactionStateManager.scala``)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
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
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.sim.virtual_time import US_PER_MS, US_PER_SECOND

_LOAD_US: Final = 10 * US_PER_MS
"""How long a coordinator reads a partition that has something: until then it is loading, as in Kafka, where a thread does that."""

_COMMIT_WAIT_US: Final = 30 * US_PER_SECOND
"""How long a coordinator that loads what is committed alone waits for that before it asks again."""

_UNAVAILABLE: Final = (
    errors.UNKNOWN_TOPIC_OR_PARTITION,
    errors.NOT_ENOUGH_REPLICAS,
    errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    errors.REQUEST_TIMED_OUT,
)
_DEPOSED: Final = (errors.NOT_LEADER_FOR_PARTITION, errors.KAFKA_STORAGE_ERROR)


class CoordinatedId(NamedTuple):
    """What is known of a transactional id, in which coordinator epoch; None where there is nothing, or why it is not known."""

    error: str
    coordinator_epoch: int = -1
    metadata: TransactionMetadata | None = None


@dataclass(slots=True, eq=False)
class _Loaded:
    coordinator_epoch: int
    transactions: dict[str, TransactionMetadata]


class TransactionStateManager:
    """What this broker knows as coordinator.

    *on_ongoing* is told that there is a transaction that may have to be aborted one day, *on_prepared* of one that was prepared to
    end by a former coordinator. With *waits_for_commit* it loads a partition once all that the log has is committed.
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
        self._loaded: dict[int, _Loaded] = {}

    def partition_of(self, transactional_id: str) -> int:
        """Return the partition that has an id."""
        return partition_for(transactional_id, self._partitions)

    def find(self, transactional_id: str) -> CoordinatedId:
        """Return what is known of an id."""
        partition = self.partition_of(transactional_id)
        if partition in self._loading:
            return CoordinatedId(errors.COORDINATOR_LOAD_IN_PROGRESS)
        loaded = self._loaded.get(partition)
        if loaded is None:
            return CoordinatedId(errors.NOT_COORDINATOR)
        return CoordinatedId(errors.NONE, loaded.coordinator_epoch, loaded.transactions.get(transactional_id))

    def put_if_absent(self, metadata: TransactionMetadata) -> CoordinatedId:
        """Know of a new id, unless it is known already."""
        found = self.find(metadata.transactional_id)
        if found.error != errors.NONE or found.metadata is not None:
            return found
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
        """Read what a partition says; return whether it does not know that already.

        What the log has is what counts, also where it is not committed yet, unless this one waits for that.
        """
        loaded = self._loaded.get(partition)
        known = self._loading.get(partition, -1 if loaded is None else loaded.coordinator_epoch)
        if known == coordinator_epoch:
            return False
        self._loading[partition] = coordinator_epoch
        if self._waits_for_commit:
            self._await_commit((partition, coordinator_epoch))
        else:
            self._read((partition, coordinator_epoch))
        return True

    def _await_commit(self, what: tuple[int, int]) -> None:
        partition, coordinator_epoch = what
        if self._loading.get(partition) == coordinator_epoch:
            self._log.when_committed(partition, _COMMIT_WAIT_US, partial(self._waited, what))

    def _waited(self, what: tuple[int, int], error: str) -> None:
        if error == errors.NONE:
            self._read(what)
        else:
            self._host.set_timer(_LOAD_US, self._await_commit, what)

    def _read(self, what: tuple[int, int]) -> None:
        if any(True for _ in self._log.batches(what[0])):
            self._host.set_timer(_LOAD_US, self._load, what)
        else:
            self._load(what)

    def _load(self, what: tuple[int, int]) -> None:
        partition, coordinator_epoch = what
        if self._loading.get(partition) != coordinator_epoch:
            return
        transactions: dict[str, TransactionMetadata] = {}
        for batch in self._log.batches(partition):
            for record in records_of(batch):
                if record.value is None:
                    transactions.pop(record.key, None)
                else:
                    transactions[record.key] = TransactionMetadata.loaded(record.key, record.value)
        del self._loading[partition]
        self._loaded[partition] = _Loaded(coordinator_epoch, transactions)
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
        """Coordinate nothing any more."""
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
        """Write what an id is to become, and have it be that when it is committed; *on_complete* is given the error.

        With *is_retried* what could not be written stays pending, for the caller tries again.
        """
        found = self.find(transactional_id)
        if found.error != errors.NONE:
            on_complete(found.error)
        elif found.metadata is None or found.coordinator_epoch != coordinator_epoch:
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
                    self._appended, transactional_id, coordinator_epoch, transition, on_complete, is_retried
                ),
            )

    def _appended(
        self,
        transactional_id: str,
        coordinator_epoch: int,
        transition: Transition,
        on_complete: Callable[[str], None],
        is_retried: bool,
        status: str,
    ) -> None:
        error = _coordinator_error(status)
        found = self.find(transactional_id)
        is_current = found.metadata is not None and found.coordinator_epoch == coordinator_epoch
        if error != errors.NONE:
            stays_pending = is_retried and error == errors.COORDINATOR_NOT_AVAILABLE
            if found.metadata is not None and is_current and not stays_pending:
                found.metadata.pending_state = None
        elif found.metadata is None or not is_current:
            error = errors.NOT_COORDINATOR if found.error == errors.NONE else found.error
        else:
            self._complete(found.metadata, transition)
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
        """Forget ids that have not been used for long; return whether any are left."""
        is_any_left = False
        for coordinator_epoch, metadata in self.all():
            is_any_left = True
            expires_us = metadata.known.updated_us + expiration_us
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
    """Return what a client is told of an append that has failed."""
    if status in _UNAVAILABLE:
        return errors.COORDINATOR_NOT_AVAILABLE
    return errors.NOT_COORDINATOR if status in _DEPOSED else status
