"""Record batches (record batch v2, KIP-98): the unit that is sent, stored and deduplicated."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

NO_PRODUCER_ID: Final = -1
NO_SEQUENCE: Final = -1
RECORD_OVERHEAD_BYTES: Final = 70
"""Bytes counted for a record beside its payload; a batch's header is spread over its records."""

COMMIT: Final = "commit"
ABORT: Final = "abort"
"""The types of control records: how a transaction has ended (``ControlRecordType.java``)."""


def record_count(values: Sequence[str]) -> int:
    """Return how many offsets a batch with these values takes.

    A control batch has one record, which takes an offset and has no value of a client.
    """
    return len(values) or 1


@dataclass(slots=True, eq=False)
class RecordBatch:
    """A batch as a producer makes it (``base_offset`` -1) and as a log stores it.

    Never changed once made, so that replicas can share it (not ``frozen``: that would make
    each one three times as dear). ``values`` are the records'
    values; they are unique within a partition unless an application sends one twice.

    A control batch ends a transaction of its producer: ``control_type`` is `COMMIT` or `ABORT`, and there are no
    values. It takes one offset, clients pass over it.
    """

    values: tuple[str, ...]
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = -1
    base_sequence: int = NO_SEQUENCE
    base_offset: int = -1
    leader_epoch: int = -1
    size_bytes: int = 0
    is_transactional: bool = False
    control_type: str | None = None
    max_timestamp_us: int = 0
    """When the last of its records was handed to the producer (``CreateTime``, KIP-32)."""
    next_offset: int = field(init=False)
    """The offset after the batch's last record."""
    last_sequence: int = field(init=False)
    """The sequence number of the last record."""

    def __post_init__(self) -> None:
        """Count once: logs, leaders and readers ask again and again."""
        self.next_offset = self.base_offset + (len(self.values) or 1)
        self.last_sequence = self.base_sequence + len(self.values) - 1

    def stored_at(self, base_offset: int, leader_epoch: int) -> "RecordBatch":
        return RecordBatch(
            self.values,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            base_offset,
            leader_epoch,
            self.size_bytes,
            self.is_transactional,
            self.control_type,
            self.max_timestamp_us,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Be pickled by its fields: compiled, it has no other way to be."""
        return RecordBatch, (
            self.values,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.base_offset,
            self.leader_epoch,
            self.size_bytes,
            self.is_transactional,
            self.control_type,
            self.max_timestamp_us,
        )

    @property
    def is_control(self) -> bool:
        """Whether this is a transaction's end, and nothing that a client sent."""
        return self.control_type is not None
