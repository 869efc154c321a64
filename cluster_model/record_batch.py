"""Record batches (record batch v2, KIP-98): the unit that is sent, stored and deduplicated."""

from dataclasses import dataclass
from typing import Final

NO_PRODUCER_ID: Final = -1
NO_SEQUENCE: Final = -1
RECORD_OVERHEAD_BYTES: Final = 70
"""Bytes counted for a record beside its payload; a batch's header is spread over its records."""


@dataclass(slots=True, eq=False)
class RecordBatch:
    """A batch as a producer makes it (``base_offset`` -1) and as a log stores it.

    Never changed once made, so that replicas can share it (not ``frozen``: that would make
    each one three times as dear). ``values`` are the records'
    values; they are unique within a partition unless an application sends one twice.
    """

    values: tuple[str, ...]
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = -1
    base_sequence: int = NO_SEQUENCE
    base_offset: int = -1
    leader_epoch: int = -1
    size_bytes: int = 0

    def stored_at(self, base_offset: int, leader_epoch: int) -> "RecordBatch":
        """Return the batch as a leader stores it."""
        return RecordBatch(
            self.values,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            base_offset,
            leader_epoch,
            self.size_bytes,
        )

    @property
    def next_offset(self) -> int:
        """The offset after the batch's last record."""
        return self.base_offset + len(self.values)

    @property
    def last_sequence(self) -> int:
        """The sequence number of the last record."""
        return self.base_sequence + len(self.values) - 1
