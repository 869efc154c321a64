"""Assigns the sequence numbers of an idempotent producer (``TransactionManager.java``)."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from harrow.cluster_model import errors
from harrow.cluster_model.clients.producer_batch import ProducerBatch
from harrow.cluster_model.log.record_batch import NO_PRODUCER_ID

FATAL_SEQUENCE_ERRORS: Final = frozenset({errors.OUT_OF_ORDER_SEQUENCE_NUMBER, errors.UNKNOWN_PRODUCER_ID})
"""``OutOfOrderSequenceException`` and its subclass ``UnknownProducerIdException``."""
EXPIRED: Final = "TIMEOUT"
"""The error of a batch whose time is over, whether or not a request with it was answered."""


class ProducerSequences:
    """The producer id, and for each partition the next and the last acknowledged sequence number.

    ``_unresolved`` has the partitions in which the producer gave up a batch that may be in the log,
    each with the sequence number after that batch. If the batch is not in the log, the partition
    has a gap: the log refuses all later batches.
    """

    __slots__ = (
        "_keeps_abandoned_sequence",
        "_last_acked",
        "_needs_reset",
        "_next",
        "_unresolved",
        "producer_id",
    )

    def __init__(self, *, keeps_abandoned_sequence: bool) -> None:
        """Create sequences without a producer id.

        With *keeps_abandoned_sequence*, a batch that may be in the log keeps its sequence numbers
        when an error ends it (KAFKA-14397).
        """
        self._keeps_abandoned_sequence = keeps_abandoned_sequence
        self.producer_id = NO_PRODUCER_ID
        self._next: dict[str, int] = {}
        self._last_acked: dict[str, int] = {}
        self._unresolved: dict[str, int] = {}
        self._needs_reset = False

    def settle(self, outstanding: Callable[[str], list[ProducerBatch]]) -> None:
        """Give up the producer id if a partition has a permanent gap.

        *outstanding* returns the batches of a partition that have a sequence number of this
        producer id but no answer yet.
        """
        if self._needs_reset or (self._unresolved and any(self._gaps(outstanding))):
            self._reset()

    def _reset(self) -> None:
        """Give up the producer id, and with it all sequence numbers (``resetProducerId``)."""
        self.producer_id = NO_PRODUCER_ID
        self._next.clear()
        self._last_acked.clear()
        self._unresolved.clear()
        self._needs_reset = False

    def assign(self, batch: ProducerBatch) -> None:
        """Give a batch its sequence number when it is first sent."""
        if batch.has_sequence():
            batch.sequence_was_reset = False
            return
        next_sequence = self._next.get(batch.partition, 0)
        batch.producer_id = self.producer_id
        batch.base_sequence = next_sequence
        self._next[batch.partition] = next_sequence + len(batch.values)

    def is_current(self, batch: ProducerBatch) -> bool:
        """Return whether a batch has the current producer id.

        A batch with a former id is not sent again.
        """
        return batch.producer_id == self.producer_id

    def may_send(self, batch: ProducerBatch, in_flight: list[ProducerBatch]) -> bool:
        """Return whether to send a batch beside those *in_flight* (``shouldStopDrainBatches``).

        A new batch waits while an earlier sequence number is unresolved. A retried batch waits
        until no earlier batch is in flight.
        """
        if not batch.has_sequence():
            return batch.partition not in self._unresolved
        if batch.producer_id != self.producer_id:
            return True
        return all(other.base_sequence > batch.base_sequence for other in in_flight if other.has_sequence())

    def on_ack(self, batch: ProducerBatch) -> None:
        if batch.has_sequence() and batch.producer_id == self.producer_id:
            last = self._last_acked.get(batch.partition, -1)
            self._last_acked[batch.partition] = max(last, batch.last_sequence)

    def may_retry(self, batch: ProducerBatch, error: str) -> bool:
        """Return whether a sequence error only follows from the failure of an earlier batch.

        If so, the batch may be sent again.
        """
        last_acked = self._last_acked.get(batch.partition, -1)
        if error == errors.UNKNOWN_PRODUCER_ID:
            # The log has no state of this producer. If no batch was acknowledged yet, an earlier
            # batch is still to be appended, and then the log will accept this one.
            return batch.sequence_was_reset or last_acked == -1
        if batch.partition in self._unresolved:
            return False
        return batch.sequence_was_reset or batch.base_sequence != last_acked + 1

    def on_batch_failure(
        self, batch: ProducerBatch, error: str, *, retries_left: bool, others: Iterable[ProducerBatch]
    ) -> None:
        """Settle the sequence numbers of a batch that was given up (``handleFailedBatch``)."""
        if batch.producer_id != self.producer_id:
            return
        if error in FATAL_SEQUENCE_ERRORS:
            self._needs_reset = True
        elif self._is_unresolved(batch, error):
            self._mark_unresolved(batch)
        elif error != EXPIRED and retries_left:
            self._close_gap(batch, others)

    def _is_unresolved(self, batch: ProducerBatch, error: str) -> bool:
        """Return whether only the answers to other batches can show whether the log has a batch.

        Kafka's sender asks this only about a batch that expires (``Sender.sendProducerData``), and
        then it only asks whether the batch was retried. If an error ends a batch while retries are
        left, the sender treats the batch as refused. But a connection that breaks after
        ``delivery.timeout.ms`` does not show whether the batch is in the log (KAFKA-14397).
        """
        if error == EXPIRED:
            return batch.in_retry
        return self._keeps_abandoned_sequence and batch.maybe_appended

    def _close_gap(self, batch: ProducerBatch, others: Iterable[ProducerBatch]) -> None:
        """Treat a batch as refused, and give its sequence numbers to the next batches.

        See ``adjustSequencesDueToFailedBatch``.
        """
        size = len(batch.values)
        self._next[batch.partition] = self._next.get(batch.partition, size) - size
        for other in others:
            if other.producer_id == batch.producer_id and other.base_sequence > batch.base_sequence:
                other.base_sequence -= size
                other.sequence_was_reset = True

    def _mark_unresolved(self, batch: ProducerBatch) -> None:
        next_sequence = batch.last_sequence + 1
        self._unresolved[batch.partition] = max(self._unresolved.get(batch.partition, 0), next_sequence)

    def _gaps(self, outstanding: Callable[[str], list[ProducerBatch]]) -> Iterator[str]:
        """Yield partitions with a permanent gap; forget those that turn out to have none.

        A partition with *outstanding* batches is undecided.
        """
        for partition in list(self._unresolved):
            if outstanding(partition):
                continue
            if self._next.get(partition, 0) == self._last_acked.get(partition, -1) + 1:
                del self._unresolved[partition]
            else:
                yield partition


class EpochBumps(ProducerSequences):
    """The sequences of a producer that raises its epoch after a gap, and keeps its id (KIP-360).

    Only the partition with the gap moves to the new epoch at once, and numbers its batches from 0.
    Another partition stays in its old epoch until all of its batches in flight are answered.
    """

    __slots__ = ("_epochs", "_partitions_with_gap", "_producer_epoch")

    def __init__(self, *, keeps_abandoned_sequence: bool) -> None:
        super().__init__(keeps_abandoned_sequence=keeps_abandoned_sequence)
        self._producer_epoch = 0
        # The epoch of each partition, which may be older than `_producer_epoch`.
        self._epochs: dict[str, int] = {}
        self._partitions_with_gap: dict[str, None] = {}

    def settle(self, outstanding: Callable[[str], list[ProducerBatch]]) -> None:
        """Raise the epoch if a partition has a permanent gap (``bumpIdempotentProducerEpoch``)."""
        if self._unresolved:
            self._partitions_with_gap.update(dict.fromkeys(self._gaps(outstanding)))
        if not self._partitions_with_gap:
            return
        self._producer_epoch += 1
        for partition in self._partitions_with_gap:
            self._begin(partition, outstanding(partition))
        self._partitions_with_gap.clear()

    def _begin(self, partition: str, outstanding: Iterable[ProducerBatch]) -> None:
        """Move a partition to the new epoch, and number its *outstanding* batches from 0.

        Modelled on ``startSequencesAtBeginning``.
        """
        sequence = 0
        for batch in outstanding:
            batch.producer_epoch, batch.base_sequence = self._producer_epoch, sequence
            batch.sequence_was_reset = True
            sequence += len(batch.values)
        self._next[partition] = sequence
        self._last_acked.pop(partition, None)
        self._unresolved.pop(partition, None)
        self._epochs[partition] = self._producer_epoch

    def assign(self, batch: ProducerBatch) -> None:
        if not batch.has_sequence():
            if self._is_in_older_epoch(batch.partition):
                self._begin(batch.partition, ())
            batch.producer_epoch = self._producer_epoch
        super().assign(batch)

    def may_send(self, batch: ProducerBatch, in_flight: list[ProducerBatch]) -> bool:
        """Also hold back a new batch while batches of an older epoch are in flight."""
        if not batch.has_sequence() and in_flight and self._is_in_older_epoch(batch.partition):
            return False
        return super().may_send(batch, in_flight)

    def _is_in_older_epoch(self, partition: str) -> bool:
        return self._epochs.get(partition, 0) != self._producer_epoch

    def on_ack(self, batch: ProducerBatch) -> None:
        if batch.producer_epoch == self._epochs.get(batch.partition, 0):
            super().on_ack(batch)

    def may_retry(self, batch: ProducerBatch, error: str) -> bool:
        """Retry after every sequence error.

        The retry has a new epoch, unless the failure of an earlier batch explains the error.
        """
        if error == errors.UNKNOWN_PRODUCER_ID:
            has_gap = not batch.sequence_was_reset
        else:
            # The answer to the very next batch shows whether the unresolved batch is in the log.
            unresolved = self._unresolved.get(batch.partition, batch.base_sequence)
            has_gap = not super().may_retry(batch, error) and unresolved == batch.base_sequence
        if has_gap:
            self._partitions_with_gap[batch.partition] = None
        return True

    def on_batch_failure(
        self,
        batch: ProducerBatch,
        error: str,
        *,
        retries_left: bool,
        others: Iterable[ProducerBatch],
    ) -> None:
        if error in FATAL_SEQUENCE_ERRORS:
            self._partitions_with_gap[batch.partition] = None
        elif self._is_unresolved(batch, error):
            if batch.producer_epoch == self._epochs.get(batch.partition, 0):
                self._mark_unresolved(batch)
        elif error != EXPIRED and retries_left:
            self._partitions_with_gap[batch.partition] = None
