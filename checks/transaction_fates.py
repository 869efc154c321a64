"""Reads the fates of transactional records from the markers in a log."""

from collections.abc import Mapping, Sequence
from typing import Final

from harrow.checks.evidence import FinalLog
from harrow.checks.history.records import Value
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.log.record_batch import ABORT, RecordBatch

COMMITTED: Final = "committed"
ABORTED: Final = "aborted"
OPEN: Final = "open"
"""No marker in the log ends the transaction."""


@dataclass(frozen=True, slots=True)
class TransactionFate:
    """The fate of a record in a transaction: its state, its producer, and the marker that decided.

    ``marker_offset`` is None while the transaction is `OPEN`. ``leader_epoch`` is the epoch of the
    leader that appended the record.
    """

    state: str
    producer_id: int
    producer_epoch: int
    leader_epoch: int
    marker_offset: int | None = None


@dataclass(frozen=True, slots=True)
class TransactionPart:
    """A record of a transaction in a log, with its fate in this log."""

    partition: str
    offset: int
    value: Value
    fate: TransactionFate


def fate_of(parts: Sequence[TransactionPart]) -> str | None:
    """Return the best fate of a record with several copies, None if it is in no transaction."""
    if len(parts) <= 1:
        return parts[0].fate.state if parts else None
    states = {part.fate.state for part in parts}
    return next((state for state in (COMMITTED, OPEN, ABORTED) if state in states), None)


def transaction_fates(log: FinalLog) -> Mapping[int, TransactionFate]:
    """Return the fates of transactional records by offset.

    A marker decides all undecided records of its producer that precede it in the log
    (``ProducerStateManager.completeTxn``).
    """
    fates: dict[int, TransactionFate] = {}
    undecided: dict[int, list[RecordBatch]] = {}
    for batch in log.batches:
        if batch.control_type is not None:
            state = ABORTED if batch.control_type == ABORT else COMMITTED
            for part in undecided.pop(batch.producer_id, ()):
                _note(fates, part, state, batch.base_offset)
        elif batch.is_transactional:
            undecided.setdefault(batch.producer_id, []).append(batch)
    for parts in undecided.values():
        for part in parts:
            _note(fates, part, OPEN, None)
    return fates


def _note(
    fates: dict[int, TransactionFate], batch: RecordBatch, state: str, marker_offset: int | None
) -> None:
    fate = TransactionFate(state, batch.producer_id, batch.producer_epoch, batch.leader_epoch, marker_offset)
    for offset, _ in batch.records():
        fates[offset] = fate
