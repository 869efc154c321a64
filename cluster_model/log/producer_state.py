"""Tracks the last batches and the transaction of each producer in a log (KIP-98).

Modelled on ``ProducerStateManager.scala`` and ``ProducerAppendInfo``.
"""

from bisect import bisect_left
from collections.abc import Sequence
from operator import attrgetter
from typing import Final, NamedTuple

from harrow.cluster_model import errors
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.log.record_batch import (
    ABORT,
    NO_COORDINATOR_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    ControlBatch,
    RecordBatch,
)
from harrow.cluster_model.release.profiles import Behaviours

SNAPSHOTS_RETAINED: Final = 8
_base_offset: Final = attrgetter("base_offset")


class AbortedTransaction(NamedTuple):
    """A transaction that was aborted in a log (``AbortedTxn.java``).

    ``last_offset`` is the offset of the transaction's marker. ``last_stable_offset`` is the last
    stable offset of the log right after the marker was appended.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class ProducerStateEntry:
    """The epoch and the last batches of a producer.

    ``batches`` has (first sequence number, last sequence number, base offset), of the last
    ``batches_retained`` batches.
    ``coordinator_epoch`` comes from the last marker: a coordinator with an older epoch can no
    longer end transactions of this producer.
    """

    __slots__ = ("batches", "batches_retained", "coordinator_epoch", "last_sequence", "producer_epoch")

    def __init__(self, producer_epoch: int, batches_retained: int) -> None:
        self.producer_epoch = producer_epoch
        self.batches_retained = batches_retained
        self.batches: list[tuple[int, int, int]] = []
        self.last_sequence = NO_SEQUENCE
        self.coordinator_epoch = NO_COORDINATOR_EPOCH

    def copy(self) -> "ProducerStateEntry":
        copy = ProducerStateEntry(self.producer_epoch, self.batches_retained)
        copy.batches = self.batches.copy()
        copy.last_sequence = self.last_sequence
        copy.coordinator_epoch = self.coordinator_epoch
        return copy

    def add(self, batch: RecordBatch) -> None:
        """Remember a batch (``ProducerStateEntry.addBatch``)."""
        if len(self.batches) == self.batches_retained:
            self.batches.pop(0)
        self.batches.append((batch.base_sequence, batch.last_sequence, batch.base_offset))
        self.last_sequence = batch.last_sequence


@dataclass(slots=True)
class Verification:
    """The verification of a producer's transaction with its coordinator (KIP-890).

    Modelled on ``VerificationStateEntry.java``. The entry stays until the log has a batch of the
    transaction. ``lowest_sequence`` is the lowest sequence number among the producer's batches of
    its latest epoch. A batch with a higher sequence number cannot begin the transaction. ``is_v2``
    says whether the producer uses transactions v2 (``supportsEpochBump``).
    """

    guard: int
    producer_epoch: int
    lowest_sequence: int
    is_v2: bool

    def add(self, batch: RecordBatch) -> None:
        """Add another batch that waits for the answer (``maybeUpdateLowestSequenceAndEpoch``)."""
        if batch.producer_epoch > self.producer_epoch:
            self.producer_epoch, self.lowest_sequence = batch.producer_epoch, batch.base_sequence
        elif batch.producer_epoch == self.producer_epoch:
            self.lowest_sequence = min(self.lowest_sequence, batch.base_sequence)


@dataclass(frozen=True, slots=True)
class ProducerSnapshot:
    """The producer state of a log below ``offset`` (Kafka's ``.snapshot`` files)."""

    offset: int
    entries: dict[int, ProducerStateEntry]
    ongoing_transactions: dict[int, int]
    unreplicated_transactions: tuple[tuple[int, int], ...]


class ProducerStates:
    """The states of the producers of one log: ``entries``, by producer id.

    ``ongoing_transactions`` has the first offset of each open transaction, by producer id.
    ``unreplicated_transactions`` has (first offset, offset of the control batch) of the
    transactions that have ended, until the high watermark passes their control batch. Both are in
    the order of appends. Aborted transactions are added to *aborted*, an index that belongs to the
    log. ``verifications`` has the pending verifications of transactions, by producer id.
    """

    __slots__ = (
        "_aborted",
        "_behaviours",
        "_switches",
        "_transaction_switches",
        "_verifications_begun",
        "batches_retained",
        "entries",
        "in_flight_max",
        "ongoing_transactions",
        "unreplicated_transactions",
        "verifications",
    )

    def __init__(self, behaviours: Behaviours, aborted: list[AbortedTransaction] | None = None) -> None:
        self._behaviours = behaviours
        self._switches = behaviours.log
        self._transaction_switches = behaviours.transactions
        self.in_flight_max = behaviours.log.idempotent_in_flight_max
        """How many requests of an idempotent producer may be in flight, and so may be retried."""
        self.batches_retained = behaviours.log.producer_batches_retained
        """How many batches of each producer the log remembers.

        With 0 it has no producer states at all.
        """
        self._aborted: list[AbortedTransaction] = [] if aborted is None else aborted
        self.entries: dict[int, ProducerStateEntry] = {}
        self.ongoing_transactions: dict[int, int] = {}
        self.unreplicated_transactions: list[tuple[int, int]] = []
        self.verifications: dict[int, Verification] = {}
        self._verifications_begun = 0

    @property
    def accepts_any_first_sequence(self) -> bool:
        """Whether the first batch of a producer may have any sequence number (KIP-360)."""
        return self._switches.unknown_producer_sequence_accepted

    def find_duplicate(self, batch: RecordBatch) -> int | None:
        """Return the base offset of a remembered batch with the same epoch and sequence numbers."""
        entry = self.entries.get(batch.producer_id)
        if entry is None or entry.producer_epoch != batch.producer_epoch:
            return None
        first, last = batch.base_sequence, batch.last_sequence
        for retained_first, retained_last, base_offset in entry.batches:
            if retained_first == first and retained_last == last:
                return base_offset
        return None

    def check(self, batch: RecordBatch, *, is_first: bool = False, has_all_records: bool = False) -> str:
        """Return the error of a leader for a batch that cannot follow the producer's last batch.

        *is_first* says that the log has never had a record, *has_all_records* that none of its
        records was deleted. A batch that a coordinator appends for a producer has no sequence
        number, so only its epoch is checked (``AppendOrigin.COORDINATOR``).
        """
        if not self.batches_retained:
            return errors.NONE  # The broker keeps no producer state at all, as before KIP-98.
        entry = self.entries.get(batch.producer_id)
        if batch.control_type is not None:
            return _check_marker(batch, entry)
        if entry is not None and batch.producer_epoch < entry.producer_epoch and self._is_fenced(batch):
            return errors.INVALID_PRODUCER_EPOCH
        if self.verifications and not self._may_begin_transaction(batch, entry):
            return errors.OUT_OF_ORDER_SEQUENCE_NUMBER
        if entry is None:
            return self._check_first(batch, is_first=is_first, has_all_records=has_all_records)
        error = self._sequence_error(batch, entry)
        if (
            error == errors.NONE
            and not batch.is_transactional
            and batch.producer_id in self.ongoing_transactions
        ):
            return errors.INVALID_TXN_STATE
        return error

    def _sequence_error(self, batch: RecordBatch, entry: ProducerStateEntry) -> str:
        if batch.base_sequence == NO_SEQUENCE or not self._switches.sequence_check:
            return errors.NONE
        new_epoch = batch.producer_epoch != entry.producer_epoch
        expected = 0 if new_epoch else entry.last_sequence + 1
        if batch.base_sequence == expected:
            return errors.NONE
        if entry.last_sequence == NO_SEQUENCE and not new_epoch and not self.accepts_any_first_sequence:
            return self._unknown_producer_error()  # This epoch has no batch but a marker.
        return errors.OUT_OF_ORDER_SEQUENCE_NUMBER

    def _may_begin_transaction(self, batch: RecordBatch, entry: ProducerStateEntry | None) -> bool:
        """Return whether a batch may be the first of a transaction that is being verified.

        If an earlier batch could not be verified, later batches are refused until the producer
        retries that batch (KAFKA-14920). A producer without state in this log must begin with
        sequence number 0 (KAFKA-18202).
        """
        verification = self.verifications.get(batch.producer_id)
        if verification is None or not self._switches.sequence_check:
            return True
        if (
            batch.base_sequence > 0
            and (entry is None or entry.last_sequence == NO_SEQUENCE)
            and verification.is_v2
            and self._transaction_switches.transaction_sequence_starts_at_zero
        ):
            return False
        return batch.base_sequence <= verification.lowest_sequence

    def _check_first(self, batch: RecordBatch, *, is_first: bool, has_all_records: bool) -> str:
        if batch.base_sequence in (0, NO_SEQUENCE) or not self._switches.sequence_check:
            return errors.NONE
        if not self.accepts_any_first_sequence:
            return self._unknown_producer_error()
        behaviours = self._behaviours
        requires_zero = (
            behaviours.log.empty_log_requires_sequence_zero
            if is_first
            else has_all_records and behaviours.log.unknown_producer_sequence_is_zero
        )
        return errors.OUT_OF_ORDER_SEQUENCE_NUMBER if requires_zero else errors.NONE

    def _unknown_producer_error(self) -> str:
        has_error = self._switches.unknown_producer_id_error
        return errors.UNKNOWN_PRODUCER_ID if has_error else errors.OUT_OF_ORDER_SEQUENCE_NUMBER

    def _is_fenced(self, batch: RecordBatch) -> bool:
        """Return whether a batch with an older epoch is refused.

        With a known flaw, leaders accept it from a transactional producer.
        """
        return self._transaction_switches.transactional_producer_epoch_checked or not batch.is_transactional

    def append(self, batch: RecordBatch) -> None:
        if batch.producer_id == NO_PRODUCER_ID or not self.batches_retained:
            return
        entry = self.entries.get(batch.producer_id)
        if entry is None or entry.producer_epoch != batch.producer_epoch:
            previous = entry
            entry = ProducerStateEntry(batch.producer_epoch, self.batches_retained)
            if previous is not None:
                entry.coordinator_epoch = previous.coordinator_epoch
            self.entries[batch.producer_id] = entry
        if batch.is_transactional:
            self._track_transaction(batch, entry)
        if batch.base_sequence == NO_SEQUENCE:
            return  # This is a marker, or a batch that a coordinator wrote.
        entry.add(batch)

    def is_in_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Return whether the log has an open transaction of a producer.

        With the switch `ongoing_transaction_checks_epoch` the transaction must also have
        *producer_epoch*, because since KIP-890 each transaction may have an epoch of its own.
        """
        return producer_id in self.ongoing_transactions and (
            not self._transaction_switches.ongoing_transaction_checks_epoch
            or self.entries[producer_id].producer_epoch == producer_epoch
        )

    def is_stale(self, producer_id: int, producer_epoch: int) -> bool:
        """Return whether a transactional producer has used a later epoch than *producer_epoch*.

        With a known flaw, leaders do not check this.
        """
        entry = self.entries.get(producer_id)
        return (
            entry is not None
            and producer_epoch < entry.producer_epoch
            and self._transaction_switches.transactional_producer_epoch_checked
        )

    def begin_verification(self, batch: RecordBatch, *, is_v2: bool) -> int:
        """Return a guard that must still be current when the coordinator answers.

        Modelled on ``VerificationGuard.java``. If a transaction of the producer begins or ends in
        between, the answer is stale.
        """
        verification = self.verifications.get(batch.producer_id)
        if verification is None:
            self._verifications_begun += 1
            verification = Verification(
                self._verifications_begun, batch.producer_epoch, batch.base_sequence, is_v2
            )
            self.verifications[batch.producer_id] = verification
        else:
            verification.add(batch)
        return verification.guard

    def verification_guard(self, producer_id: int) -> int | None:
        """Return the guard of a producer's pending verification; None if none is pending."""
        verification = self.verifications.get(producer_id)
        return None if verification is None else verification.guard

    def _track_transaction(self, batch: RecordBatch, entry: ProducerStateEntry) -> None:
        if self.verifications:
            self.verifications.pop(batch.producer_id, None)
        if batch.control_type is None:
            self.ongoing_transactions.setdefault(batch.producer_id, batch.base_offset)
            return
        if isinstance(batch, ControlBatch):
            entry.coordinator_epoch = batch.coordinator_epoch
        first_offset = self.ongoing_transactions.pop(batch.producer_id, None)
        if first_offset is None:
            if not self._transaction_switches.empty_transactions_tracked:
                return
            first_offset = batch.base_offset
        self.unreplicated_transactions.append((first_offset, batch.base_offset))
        # Markers that are read again after a truncation may already be in the index.
        if batch.control_type == ABORT and (
            not self._aborted or self._aborted[-1].last_offset < batch.base_offset
        ):
            stable = next(iter(self.ongoing_transactions.values()), batch.next_offset)
            self._aborted.append(
                AbortedTransaction(batch.producer_id, first_offset, batch.base_offset, stable)
            )

    def on_high_watermark_update(self, high_watermark: int) -> None:
        """Forget transactions that ended below the high watermark (``onHighWatermarkUpdated``)."""
        ended = self.unreplicated_transactions
        count = 0
        while count < len(ended) and ended[count][1] < high_watermark:
            count += 1
        del ended[:count]

    def first_unstable_offset(self, high_watermark: int) -> int | None:
        """Return the first offset of the earliest undecided transaction; None if all are decided.

        A transaction is decided once its control batch is below the high watermark. Before that,
        its end may be lost with the leader.
        """
        undecided: int | None = None
        for begin in self.ongoing_transactions.values():
            undecided = begin  # The transactions are in the order of appends.
            break
        if not self.unreplicated_transactions:
            return undecided
        self.on_high_watermark_update(high_watermark)
        unreplicated = min([first for first, _ in self.unreplicated_transactions], default=None)
        if unreplicated is None or undecided is None:
            return undecided if unreplicated is None else unreplicated
        return min(undecided, unreplicated)

    def rebuild(self, batches: Sequence[RecordBatch], snapshots: list[ProducerSnapshot]) -> None:
        """Rebuild the states from the newest of the *snapshots* and the *batches* after it.

        Add a snapshot at the end, so that later rebuilds need not read the same batches again. Only
        the newest snapshots are kept.
        """
        read = self._load(snapshots[-1] if snapshots else None, batches)
        if read == len(batches):
            return
        for batch in batches[read:]:
            self.append(batch)
        snapshots.append(self._snapshot(batches[-1].next_offset))
        del snapshots[:-SNAPSHOTS_RETAINED]

    def snapshot_at(
        self, offset: int, batches: Sequence[RecordBatch], snapshots: Sequence[ProducerSnapshot]
    ) -> ProducerSnapshot:
        """Return the producer states below *offset*, as Kafka saves them for each new segment.

        The snapshot stays when the records below *offset* are deleted. This method overwrites its
        object, so call it on a new object that belongs to no open log.
        """
        newest = next((snapshot for snapshot in reversed(snapshots) if snapshot.offset <= offset), None)
        for batch in batches[self._load(newest, batches) :]:
            if batch.base_offset >= offset:
                break
            self.append(batch)
        return self._snapshot(offset)

    def _load(self, snapshot: ProducerSnapshot | None, batches: Sequence[RecordBatch]) -> int:
        """Load a snapshot, or empty states. Return how many of the batches the snapshot covers."""
        self.entries, self.ongoing_transactions, self.unreplicated_transactions = {}, {}, []
        if snapshot is None:
            return 0
        self.entries = _copies(snapshot.entries)
        self.ongoing_transactions = dict(snapshot.ongoing_transactions)
        self.unreplicated_transactions = list(snapshot.unreplicated_transactions)
        return bisect_left(batches, snapshot.offset, key=_base_offset)

    def _snapshot(self, offset: int) -> ProducerSnapshot:
        return ProducerSnapshot(
            offset,
            _copies(self.entries),
            dict(self.ongoing_transactions),
            tuple(self.unreplicated_transactions),
        )


def _check_marker(batch: RecordBatch, entry: ProducerStateEntry | None) -> str:
    """Return the error for a marker with an old producer epoch or an old coordinator epoch."""
    if entry is None:
        return errors.NONE
    if batch.producer_epoch < entry.producer_epoch:
        return errors.INVALID_PRODUCER_EPOCH
    if isinstance(batch, ControlBatch) and batch.coordinator_epoch < entry.coordinator_epoch:
        return errors.TRANSACTION_COORDINATOR_FENCED
    return errors.NONE


def _copies(entries: dict[int, ProducerStateEntry]) -> dict[int, ProducerStateEntry]:
    return {producer_id: entry.copy() for producer_id, entry in entries.items()}
