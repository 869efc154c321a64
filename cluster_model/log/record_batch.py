"""Record batches (record batch v2, KIP-98): the unit that is sent, stored and deduplicated."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

NO_PRODUCER_ID: Final = -1
NO_SEQUENCE: Final = -1
RECORD_OVERHEAD_BYTES: Final = 70
"""Bytes counted for a record beside its payload; a batch's header is spread over its records."""

EMPTY_BATCH_BYTES: Final = 61
"""The size of a batch's header, which is what is left of one without records (``DefaultRecordBatch.RECORD_BATCH_OVERHEAD``)."""

COMMIT: Final = "commit"
ABORT: Final = "abort"
"""The types of control records: how a transaction has ended (``ControlRecordType.java``)."""


NO_COORDINATOR_EPOCH: Final = -1
MARKER_BYTES: Final = 78
"""The size of a batch with the marker of a transaction's end and nothing else (``EndTransactionMarker``)."""


def record_count(values: Sequence[str]) -> int:
    """Return how many offsets a batch with these values takes.

    A control batch has one record, which takes an offset and has no value of a client.
    """
    return len(values) or 1


NO_TIME: Final = -1


@dataclass(frozen=True, slots=True)
class KeyedRecords:
    """The keys of a batch's records, and what compaction has left of it. Batches without keys have none.

    ``keys``, ``tombstones`` and ``offset_deltas`` go with the batch's values, one for each: the key (None for a record
    without), whether its value is null, and how far its offset is from the base offset. ``offset_count`` is how many offsets
    the batch takes: compaction leaves its first and its last offset as they were, whatever it removes, and so the sequence
    numbers, too (``MemoryRecords.filterTo``). From ``delete_horizon_us`` on its tombstones may go (KIP-534).
    """

    keys: tuple[str | None, ...]
    tombstones: tuple[bool, ...]
    offset_deltas: tuple[int, ...]
    offset_count: int
    delete_horizon_us: int = NO_TIME

    @property
    def is_compacted(self) -> bool:
        """Whether records of the batch are gone."""
        return len(self.keys) < self.offset_count


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
    keyed: KeyedRecords | None = None
    next_offset: int = field(init=False)
    """The offset after the batch's last record."""
    last_sequence: int = field(init=False)
    """The sequence number of the last record."""

    def __post_init__(self) -> None:
        """Count once: logs, leaders and readers ask again and again."""
        if self.keyed is None:
            self.next_offset = self.base_offset + (len(self.values) or 1)
            self.last_sequence = self.base_sequence + len(self.values) - 1
        else:
            self.next_offset = self.base_offset + self.keyed.offset_count
            self.last_sequence = self.base_sequence + self.keyed.offset_count - 1

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
            self.keyed,
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
            self.keyed,
        )

    @property
    def is_compacted(self) -> bool:
        """Whether compaction has removed records of the batch."""
        return self.keyed is not None and self.keyed.is_compacted

    def records(self) -> Iterator[tuple[int, str]]:
        """Return the offsets and values of its records."""
        if self.keyed is None:
            return enumerate(self.values, self.base_offset)
        offsets = [self.base_offset + delta for delta in self.keyed.offset_deltas]
        return zip(offsets, self.values, strict=True)

    def runs(self) -> list[tuple[int, tuple[str, ...]]]:
        """Return the records in runs without a hole, as base offset and values; the batch itself where nothing is gone.

        A control batch, or one of which nothing is left, is no run of records: the former is returned as it is.
        """
        keyed = self.keyed
        if keyed is None or not keyed.is_compacted:
            return [(self.base_offset, self.values)]
        runs: list[tuple[int, tuple[str, ...]]] = []
        for offset, value in self.records():
            if runs and runs[-1][0] + len(runs[-1][1]) == offset:
                runs[-1] = runs[-1][0], (*runs[-1][1], value)
            else:
                runs.append((offset, (value,)))
        return runs

    def with_records(self, kept: Sequence[int], delete_horizon_us: int) -> "RecordBatch":
        """Return the batch with some of its records alone, by their places among its values.

        Its offsets, sequence numbers and timestamp stay. Raises `AssertionError` for a batch without keys.
        """
        keyed = self.keyed
        assert keyed is not None
        remaining = KeyedRecords(
            tuple([keyed.keys[place] for place in kept]),
            tuple([keyed.tombstones[place] for place in kept]),
            tuple([keyed.offset_deltas[place] for place in kept]),
            keyed.offset_count,
            delete_horizon_us,
        )
        return RecordBatch(
            tuple([self.values[place] for place in kept]),
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.base_offset,
            self.leader_epoch,
            max(EMPTY_BATCH_BYTES, self.size_bytes * len(kept) // max(1, len(self.values))),
            self.is_transactional,
            self.control_type,
            self.max_timestamp_us,
            remaining,
        )

    @property
    def is_control(self) -> bool:
        """Whether this is a transaction's end, and nothing that a client sent."""
        return self.control_type is not None


@dataclass(slots=True, eq=False)
class ControlBatch(RecordBatch):
    """The marker of a transaction's end, as a coordinator of an epoch has had it written (``EndTransactionMarker.java``)."""

    coordinator_epoch: int = NO_COORDINATOR_EPOCH

    def __post_init__(self) -> None:
        """Count once, as for any batch."""
        RecordBatch.__post_init__(self)

    def stored_at(self, base_offset: int, leader_epoch: int) -> RecordBatch:
        return ControlBatch(
            (),
            self.producer_id,
            self.producer_epoch,
            base_offset=base_offset,
            leader_epoch=leader_epoch,
            size_bytes=self.size_bytes,
            is_transactional=True,
            control_type=self.control_type,
            max_timestamp_us=self.max_timestamp_us,
            coordinator_epoch=self.coordinator_epoch,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Be pickled by its fields, as any batch."""
        return ControlBatch, (
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
            self.keyed,
            self.coordinator_epoch,
        )
