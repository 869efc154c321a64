"""Implements a transactional producer: all records of a transaction take effect, or none does."""

from collections.abc import Collection, Mapping
from dataclasses import field

from harrow.cluster_model import errors
from harrow.cluster_model.clients.producer import PartitionBatches, Producer
from harrow.cluster_model.clients.producer_batch import ProducerBatch
from harrow.cluster_model.clients.transaction_manager import OnDone, TransactionManager
from harrow.cluster_model.events import TransactionReported
from harrow.cluster_model.history import FAIL, INFO, OK, SEND, TXN, History, MicroOperation
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.log.record_batch import NO_PRODUCER_ID
from harrow.cluster_model.release.profiles import Behaviours
from harrow.cluster_model.settings import ProducerConfig
from harrow.cluster_model.sim.host import Host


@dataclass(slots=True, eq=False)
class _Transaction:
    """The records that an application has sent in a transaction, with offsets once acknowledged."""

    sends: list[tuple[str, str]] = field(default_factory=list)
    offsets: dict[tuple[str, str], int] = field(default_factory=dict)


class TransactionalProducer(Producer):
    """One session of a producer with a transactional id.

    In the history a transaction is one operation. Each send is invoked when the application sends
    the record, and all sends complete together. The operation fails if the transaction is aborted.
    It also fails if the producer fails before it requests a commit, because no producer can commit
    the transaction after that. If a commit was requested but not answered, the outcome is unknown.
    """

    def __init__(
        self,
        host: Host,
        process: int,
        brokers: tuple[int, ...],
        partitions: tuple[str, ...],
        config: ProducerConfig,
        behaviours: Behaviours,
        history: History,
        record_bytes: int,
        topics: Collection[str] = (),
        later: Collection[int] = (),
    ) -> None:
        super().__init__(
            host, process, brokers, partitions, config, behaviours, history, record_bytes, topics, later
        )
        self.transactions = TransactionManager(
            self._host, self._metadata, self._config, self._behaviours, self
        )
        self._sequences = self.transactions.sequences
        self._operation = TXN
        self._transaction: _Transaction | None = None

    # The application's side

    def init_transactions(self, on_done: OnDone) -> None:
        """Fence former sessions and get an epoch. An application calls this first."""
        self.transactions.init_transactions(on_done)

    def begin_transaction(self) -> str:
        """Begin a transaction; return the error."""
        error = self.transactions.begin_transaction()
        if error == errors.NONE:
            self._transaction = _Transaction()
        return error

    def commit_transaction(self, on_done: OnDone) -> None:
        self.transactions.commit_transaction(on_done)

    def abort_transaction(self, on_done: OnDone) -> None:
        self.transactions.abort_transaction(on_done)

    def send_offsets(
        self,
        offsets: Mapping[str, int],
        group: str,
        member: str,
        generation: int,
        instance: str,
        on_done: OnDone,
    ) -> None:
        """Commit offsets of a group with the transaction."""
        self.transactions.send_offsets(offsets, group, member, generation, instance, on_done)

    def send(
        self, value: str, partition: str | None = None, key: str | None = None, *, tombstone: bool = False
    ) -> None:
        """Add a record to the transaction.

        Without an open transaction, or after an error, the send fails at once.
        """
        name = partition
        if name is None:
            name = self._partitioner.partition() if key is None else self._partitioner.partition_of(key)
        error = self.transactions.add_partition(name)
        transaction = self._transaction
        if error != errors.NONE or transaction is None:
            now_us = self._host.clock.now_us
            self._history.record_send(self._process, name, value, now_us)
            self._history.record_failure(self._process, name, value, now_us, error, definite=True)
            return
        transaction.sends.append((name, value))
        super().send(value, name, key, tombstone=tombstone)

    def abandon(self) -> None:
        """Report a crash of the application: the transaction failed if no commit was requested."""
        self.abort_all("CRASHED")
        self._report("CRASHED", is_certain=not self.transactions.commit_sent)

    # Batches, for the transaction manager

    def has_incomplete(self) -> bool:
        return any(partition.queue or partition.in_flight for partition in self._partitions.values())

    def abort_undrained(self, error: str) -> None:
        for partition in self._partitions.values():
            for batch in [batch for batch in partition.queue if not batch.has_sequence()]:
                partition.queue.remove(batch)
                self._drop(batch)

    def abort_all(self, error: str) -> None:
        for partition in self._partitions.values():
            for batch in (*partition.queue, *partition.in_flight):
                self._drop(batch)
            partition.queue.clear()
            partition.in_flight.clear()

    def _drop(self, batch: ProducerBatch) -> None:
        if not batch.is_done:
            batch.is_done = True
            self.unfinished -= len(batch.values)

    def wake(self) -> None:
        self._run()

    def transaction_ended(self, *, committed: bool) -> None:
        self._host.emit(TransactionReported, self._host.name, committed)
        transaction, self._transaction = self._transaction, None
        if transaction is None or not transaction.sends:
            return
        if not committed:
            self._complete_operation(transaction, FAIL, "ABORTED")
            return
        operations: list[MicroOperation] = []
        for name, value in transaction.sends:
            offset = transaction.offsets.get((name, value))
            operations.append((SEND, name, value if offset is None else (offset, value)))
        self._history.add(self._process, OK, TXN, tuple(operations), self._host.clock.now_us)

    def transaction_failed(self, error: str) -> None:
        self._report(error, is_certain=not self.transactions.commit_sent)

    def _report(self, error: str, *, is_certain: bool) -> None:
        transaction, self._transaction = self._transaction, None
        if transaction is not None and transaction.sends:
            self._complete_operation(transaction, FAIL if is_certain else INFO, error)

    def _complete_operation(self, transaction: _Transaction, type_: str, error: str) -> None:
        operations = tuple([(SEND, name, value) for name, value in transaction.sends])
        self._history.add(self._process, type_, TXN, operations, self._host.clock.now_us, error)

    # The sender's side

    def _run_once(self) -> None:
        """Let the transaction manager send its requests first.

        When the transaction is being ended, batches do not linger.
        """
        self._sequences.settle(self._outstanding_batches)
        if self.transactions.run():
            self._skips_linger = self.transactions.is_completing()
            super()._run_once()

    def _ready_at_us(self, partition: PartitionBatches, now_us: int) -> int | None:
        """Return None for a partition that is not in the transaction yet; look up no leader."""
        if partition.name not in self.transactions.partitions:
            return None
        return super()._ready_at_us(partition, now_us)

    def _can_retry(self, batch: ProducerBatch, error: str) -> bool:
        """Retry after CONCURRENT_TRANSACTIONS too.

        With transactions v2 the previous transaction may not be complete yet when a leader adds its
        partition to the next one (KIP-890).
        """
        if error == errors.CONCURRENT_TRANSACTIONS:
            error = errors.NOT_ENOUGH_REPLICAS
        return super()._can_retry(batch, error)

    def _report_acks(self, batch: ProducerBatch, offset: int | None) -> None:
        batch.is_done = True
        self.unfinished -= len(batch.values)
        transaction = self._transaction
        if transaction is not None and offset is not None and offset >= 0:
            for index, value in enumerate(batch.values):
                transaction.offsets[batch.partition, value] = offset + index

    def _fail(self, batch: ProducerBatch, error: str) -> None:
        self._drop(batch)
        self.transactions.batch_failed(error)
        if batch.has_sequence() and self._sequences.producer_id != NO_PRODUCER_ID:
            self._free_sequence(batch, error)
