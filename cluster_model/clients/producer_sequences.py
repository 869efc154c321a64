"""Sequence numbers of an idempotent producer without transactions (``TransactionManager.java``)."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from harrow.cluster_model import errors
from harrow.cluster_model.clients.producer_batch import ProducerBatch
from harrow.cluster_model.log.record_batch import NO_PRODUCER_ID

FATAL_SEQUENCE_ERRORS: Final = frozenset({errors.OUT_OF_ORDER_SEQUENCE_NUMBER, errors.UNKNOWN_PRODUCER_ID})
"""``OutOfOrderSequenceException`` and what extends it."""
EXPIRED: Final = "TIMEOUT"
"""A batch ends with this when its time is over, whatever has become of its requests."""


class ProducerSequences:
    """The producer id, and for each partition the next and the last acknowledged sequence.

    ``_unresolved`` has the partitions of which a batch was given up that may be in the log, with the sequence behind it.
    """

    __slots__ = ("_awaits_given_up", "_last_acked", "_next", "_reset_wanted", "_unresolved", "producer_id")

    def __init__(self, *, awaits_given_up: bool) -> None:
        """With *awaits_given_up*, a batch that may be in the log keeps its sequence numbers when an error ends it (KAFKA-14397)."""
        self._awaits_given_up = awaits_given_up
        self.producer_id = NO_PRODUCER_ID
        self._next: dict[str, int] = {}
        self._last_acked: dict[str, int] = {}
        self._unresolved: dict[str, int] = {}
        self._reset_wanted = False

    def settle(self, outstanding: Callable[[str], list[ProducerBatch]]) -> None:
        """Begin again, if there is a gap that stays.

        *outstanding* are the batches of a partition that have a sequence of this producer id and no answer.
        """
        if self._reset_wanted or (self._unresolved and any(self._gaps(outstanding))):
            self._reset()

    def _reset(self) -> None:
        """Give the producer id up; all sequences start again with the next one (``resetProducerId``)."""
        self.producer_id = NO_PRODUCER_ID
        self._next.clear()
        self._last_acked.clear()
        self._unresolved.clear()
        self._reset_wanted = False

    def assign(self, batch: ProducerBatch) -> None:
        """Give a batch that is sent for the first time its sequence numbers."""
        if batch.has_sequence():
            batch.sequence_was_reset = False
            return
        next_sequence = self._next.get(batch.partition, 0)
        batch.producer_id = self.producer_id
        batch.base_sequence = next_sequence
        self._next[batch.partition] = next_sequence + len(batch.values)

    def is_current(self, batch: ProducerBatch) -> bool:
        """Return whether a batch has the producer id of now; one of a former id is not sent again."""
        return batch.producer_id == self.producer_id

    def may_send(self, batch: ProducerBatch, in_flight: list[ProducerBatch]) -> bool:
        """Return whether a batch may be sent beside those in flight (``shouldStopDrainBatches``).

        A new one not while earlier sequences are unresolved; one that is sent again only
        when it is the first that is not answered.
        """
        if not batch.has_sequence():
            return batch.partition not in self._unresolved
        if batch.producer_id != self.producer_id:
            return True
        return all(other.base_sequence > batch.base_sequence for other in in_flight if other.has_sequence())

    def acked(self, batch: ProducerBatch) -> None:
        if batch.has_sequence() and batch.producer_id == self.producer_id:
            last = self._last_acked.get(batch.partition, -1)
            self._last_acked[batch.partition] = max(last, batch.last_sequence)

    def may_retry(self, batch: ProducerBatch, error: str) -> bool:
        """Return whether a sequence error is only the echo of an earlier batch's failure."""
        last_acked = self._last_acked.get(batch.partition, -1)
        if error == errors.UNKNOWN_PRODUCER_ID:
            # The log has nothing of this producer. If nothing was acknowledged either, an
            # earlier batch is still to be appended, and this one follows it.
            return batch.sequence_was_reset or last_acked == -1
        if batch.partition in self._unresolved:
            return False
        return batch.sequence_was_reset or batch.base_sequence != last_acked + 1

    def failed(
        self, batch: ProducerBatch, error: str, *, retries_left: bool, others: Iterable[ProducerBatch]
    ) -> None:
        """A batch with a sequence has been given up (``handleFailedBatch``)."""
        if batch.producer_id != self.producer_id:
            return
        if error in FATAL_SEQUENCE_ERRORS:
            self._reset_wanted = True
        elif self._is_unresolved(batch, error):
            self._mark_unresolved(batch)
        elif error != EXPIRED and retries_left:
            self._close_gap(batch, others)

    def _is_unresolved(self, batch: ProducerBatch, error: str) -> bool:
        """Return whether the sequence may have been used, so that the answers to the other batches have to decide.

        Kafka's sender asks this only about a batch that expires (``Sender.sendProducerData``), and there only whether it had
        been sent again. A batch that an error ends with a retry left counts as refused, although a connection that breaks
        after ``delivery.timeout.ms`` says nothing about the log (KAFKA-14397).
        """
        if error == EXPIRED:
            return batch.in_retry
        return self._awaits_given_up and batch.maybe_appended

    def _close_gap(self, batch: ProducerBatch, others: Iterable[ProducerBatch]) -> None:
        """The batch counts as refused: those behind it move up (``adjustSequencesDueToFailedBatch``)."""
        size = len(batch.values)
        self._next[batch.partition] = self._next.get(batch.partition, size) - size
        for other in others:
            if other.producer_id == batch.producer_id and other.base_sequence > batch.base_sequence:
                other.base_sequence -= size
                other.sequence_was_reset = True

    def _mark_unresolved(self, batch: ProducerBatch) -> None:
        following = batch.last_sequence + 1
        self._unresolved[batch.partition] = max(self._unresolved.get(batch.partition, 0), following)

    def _gaps(self, outstanding: Callable[[str], list[ProducerBatch]]) -> Iterator[str]:
        """Yield the partitions of which a gap is left for good, of the unresolved ones that are drained."""
        for partition in list(self._unresolved):
            if outstanding(partition):
                continue
            if self._next.get(partition, 0) == self._last_acked.get(partition, -1) + 1:
                del self._unresolved[partition]
            else:
                yield partition


class EpochBumps(ProducerSequences):
    """Those of a producer that raises its epoch where it has a gap, and keeps its id (KIP-360).

    Only the partition with the gap begins again at once. Another one goes on in the epoch of before until all is answered
    that it has under way.
    """

    __slots__ = ("_epochs", "_producer_epoch", "_with_gap")

    def __init__(self, *, awaits_given_up: bool) -> None:
        super().__init__(awaits_given_up=awaits_given_up)
        self._producer_epoch = 0
        # The epoch that each partition is in.
        self._epochs: dict[str, int] = {}
        self._with_gap: dict[str, None] = {}

    def settle(self, outstanding: Callable[[str], list[ProducerBatch]]) -> None:
        """Raise the epoch, if there is a gap that stays (``bumpIdempotentProducerEpoch``)."""
        if self._unresolved:
            self._with_gap.update(dict.fromkeys(self._gaps(outstanding)))
        if not self._with_gap:
            return
        self._producer_epoch += 1
        for partition in self._with_gap:
            self._begin(partition, outstanding(partition))
        self._with_gap.clear()

    def _begin(self, partition: str, outstanding: Iterable[ProducerBatch]) -> None:
        """Number what a partition has under way from 0 in the new epoch (``startSequencesAtBeginning``)."""
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
        """A new batch waits, too, until its partition has an answer to all that it has sent in an older epoch."""
        if not batch.has_sequence() and in_flight and self._is_in_older_epoch(batch.partition):
            return False
        return super().may_send(batch, in_flight)

    def _is_in_older_epoch(self, partition: str) -> bool:
        return self._epochs.get(partition, 0) != self._producer_epoch

    def acked(self, batch: ProducerBatch) -> None:
        if batch.producer_epoch == self._epochs.get(batch.partition, 0):
            super().acked(batch)

    def may_retry(self, batch: ProducerBatch, error: str) -> bool:
        """Every sequence error is worth another try; where it is no echo of an earlier batch's, in a new epoch."""
        if error == errors.UNKNOWN_PRODUCER_ID:
            has_gap = not batch.sequence_was_reset
        else:
            # Behind an unresolved one only the very next tells whether that is in the log.
            unresolved = self._unresolved.get(batch.partition, batch.base_sequence)
            has_gap = not super().may_retry(batch, error) and unresolved == batch.base_sequence
        if has_gap:
            self._with_gap[batch.partition] = None
        return True

    def failed(
        self,
        batch: ProducerBatch,
        error: str,
        *,
        retries_left: bool,
        others: Iterable[ProducerBatch],
    ) -> None:
        if error in FATAL_SEQUENCE_ERRORS:
            self._with_gap[batch.partition] = None
        elif self._is_unresolved(batch, error):
            if batch.producer_epoch == self._epochs.get(batch.partition, 0):
                self._mark_unresolved(batch)
        elif error != EXPIRED and retries_left:
            self._with_gap[batch.partition] = None
