"""What became of the records of transactions, as the markers in a log tell."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from harrow.checks.evidence import FinalLog
from harrow.checks.history.records import Value
from harrow.cluster_model.log.record_batch import ABORT, RecordBatch

COMMITTED: Final = "committed"
ABORTED: Final = "aborted"
OPEN: Final = "open"
"""Nothing in the log ends the transaction."""


@dataclass(frozen=True, slots=True)
class TransactionFate:
    """What became of a record: its transaction's producer and epoch, and the offset of the marker that decided (None while it is `OPEN`).

    ``leader_epoch`` is that of the leader that appended it.
    """

    state: str
    producer_id: int
    producer_epoch: int
    leader_epoch: int
    marker_offset: int | None = None


class TransactionPart(NamedTuple):
    """A record of a transaction: where it stands, and what became of it there."""

    partition: str
    offset: int
    value: Value
    fate: TransactionFate


def fate_of(parts: Sequence[TransactionPart]) -> str | None:
    """Return what became of what stands at several places: whether any of them counts; None of what stands nowhere in a transaction."""
    states = {part.fate.state for part in parts}
    return next((state for state in (COMMITTED, OPEN, ABORTED) if state in states), None)


def transaction_fates(log: FinalLog) -> Mapping[int, TransactionFate]:
    """Return the fates of the records of transactions by offset: of others there is nothing.

    A marker decides about everything of its producer that stands before it and has none yet (``ProducerStateManager.completeTxn``).
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
    fates.update(dict.fromkeys((offset for offset, _ in batch.records()), fate))
