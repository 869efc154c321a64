"""Sequence numbers of an idempotent producer without transactions (``TransactionManager.java``)."""

from collections.abc import Callable, Iterable
from typing import Final

from harrow.cluster_model import errors
from harrow.cluster_model.clients.producer_batch import ProducerBatch
from harrow.cluster_model.log.record_batch import NO_PRODUCER_ID

FATAL_SEQUENCE_ERRORS: Final = frozenset({errors.OUT_OF_ORDER_SEQUENCE_NUMBER, errors.UNKNOWN_PRODUCER_ID})
"""``OutOfOrderSequenceException`` and what extends it."""


class ProducerSequences:
    """The producer id, and for each partition the next and the last acknowledged sequence."""

    __slots__ = ("_last_acked", "_next", "_reset_wanted", "_unresolved", "producer_id")

    def __init__(self) -> None:
        self.producer_id = NO_PRODUCER_ID
        self._next: dict[str, int] = {}
        self._last_acked: dict[str, int] = {}
        self._unresolved: dict[str, None] = {}
        self._reset_wanted = False

    def reset(self) -> None:
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
        elif error == "TIMEOUT" or batch.maybe_appended or not retries_left:
            # Nobody knows whether the sequence was used: wait for the rest, then decide.
            self._unresolved[batch.partition] = None
        else:
            self._close_gap(batch, others)

    def _close_gap(self, batch: ProducerBatch, others: Iterable[ProducerBatch]) -> None:
        """The broker has surely refused the batch: those behind it move up."""
        size = len(batch.values)
        self._next[batch.partition] = self._next.get(batch.partition, size) - size
        for other in others:
            if other.producer_id == batch.producer_id and other.base_sequence > batch.base_sequence:
                other.base_sequence -= size
                other.sequence_was_reset = True

    def needs_new_producer_id(self, has_outstanding: Callable[[str], bool]) -> bool:
        """Return whether a gap is left for good, once the unresolved partitions are drained."""
        if self._reset_wanted:
            return True
        for partition in list(self._unresolved):
            if has_outstanding(partition):
                continue
            if self._next.get(partition, 0) == self._last_acked.get(partition, -1) + 1:
                del self._unresolved[partition]
            else:
                return True
        return False
