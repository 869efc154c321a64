"""Defines record batches (v2, KIP-98), which producers send and logs store and deduplicate."""

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any, Final

from harrow.cluster_model.compiling import mypyc_attr
from harrow.cluster_model.lazy_dataclass import dataclass

NO_PRODUCER_ID: Final = -1
NO_SEQUENCE: Final = -1
RECORD_OVERHEAD_BYTES: Final = 70
"""The bytes of a record in addition to its payload, with a share of the batch's header."""

EMPTY_BATCH_BYTES: Final = 61
"""The size of a batch without records (``DefaultRecordBatch.RECORD_BATCH_OVERHEAD``)."""

COMMIT: Final = "commit"
ABORT: Final = "abort"
"""The types of the control records that end transactions (``ControlRecordType.java``)."""

NO_COORDINATOR_EPOCH: Final = -1
MARKER_BYTES: Final = 78
"""The size of a control batch (``EndTransactionMarker``)."""

NO_TIME: Final = -1


def record_count(values: Sequence[str]) -> int:
    """Return how many offsets a batch with these values takes.

    A control batch has no values and takes one offset.
    """
    return len(values) or 1


@dataclass(frozen=True, slots=True)
class KeyedRecords:
    """The keys of the records that a batch still has after compaction.

    A batch without keys has no such object. ``keys``, ``tombstones`` and ``offset_deltas`` have one
    entry for each value of the batch: its key (or None), whether it is null in Kafka, and its
    offset relative to the base offset. ``offset_count`` is the number of offsets that the batch
    takes. Compaction never changes that number, nor the first and the last sequence number
    (``MemoryRecords.filterTo``). From the time ``delete_horizon_us`` on, compaction may remove the
    batch's tombstones (KIP-534).
    """

    keys: tuple[str | None, ...]
    tombstones: tuple[bool, ...]
    offset_deltas: tuple[int, ...]
    offset_count: int
    delete_horizon_us: int = NO_TIME

    @property
    def is_compacted(self) -> bool:
        """Whether compaction has removed records of the batch."""
        return len(self.keys) < self.offset_count


@mypyc_attr(allow_interpreted_subclasses=True)
class Payload:
    """The bytes of a batch that a real client has sent."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def keyed(self, values: Sequence[str]) -> KeyedRecords:
        """Read the keys of the records, which have these *values* in the model."""
        raise NotImplementedError


@dataclass(slots=True, eq=False)
class RecordBatch:
    """A batch as a producer creates it (``base_offset`` -1) and as a log stores it.

    A batch never changes, so replicas share it. The class is not ``frozen``, because making an
    object would then take three times as long. ``values`` are unique within a partition unless an
    application sends the same value twice.

    A control batch ends a transaction of its producer. Its ``control_type`` is `COMMIT` or `ABORT`,
    and it has no values. It takes one offset, which clients skip.
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
    """When the application sent the last record of the batch (``CreateTime``, KIP-32)."""
    keyed: KeyedRecords | None = None
    payload: Payload | None = None
    """The batch as a real client sent it; None if a modelled client made it."""
    next_offset: int = field(init=False)
    """The offset after the batch's last record."""
    last_sequence: int = field(init=False)
    """The sequence number of the batch's last record."""

    def __post_init__(self) -> None:
        """Compute the last two fields once, because logs, leaders and readers need them often."""
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
            self.payload,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the fields, because compiled classes have no default pickling."""
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
            self.payload,
        )

    @property
    def is_compacted(self) -> bool:
        """Whether compaction has removed records of the batch."""
        return self.keyed is not None and self.keyed.is_compacted

    def known_keys(self) -> KeyedRecords:
        """Return the keys of the records, also of a batch for a log without compaction."""
        if self.keyed is not None:
            return self.keyed
        if self.payload is not None:
            return self.payload.keyed(self.values)
        count = len(self.values)
        return KeyedRecords((None,) * count, (False,) * count, tuple(range(count)), count)

    def with_known_keys(self) -> "RecordBatch":
        """Return the batch with the keys of its records, which compaction needs."""
        return RecordBatch(
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
            self.known_keys(),
            self.payload,
        )

    def records(self) -> Iterator[tuple[int, str]]:
        """Return the offset and the value of each record."""
        if self.keyed is None:
            return enumerate(self.values, self.base_offset)
        offsets = [self.base_offset + delta for delta in self.keyed.offset_deltas]
        return zip(offsets, self.values, strict=True)

    def runs(self) -> list[tuple[int, tuple[str, ...]]]:
        """Return the runs of records that have no hole between them, as (first offset, values).

        A batch that was not compacted is one run. So is a control batch, although it has no values.
        A batch that has no records left has no runs.
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

    def with_records(self, places: Sequence[int], delete_horizon_us: int) -> "RecordBatch":
        """Return the batch with only the records at these *places* of its values.

        The offsets, sequence numbers and timestamp stay the same. The batch must have keys.
        """
        keyed = self.keyed
        assert keyed is not None
        remaining = KeyedRecords(
            tuple([keyed.keys[place] for place in places]),
            tuple([keyed.tombstones[place] for place in places]),
            tuple([keyed.offset_deltas[place] for place in places]),
            keyed.offset_count,
            delete_horizon_us,
        )
        return RecordBatch(
            tuple([self.values[place] for place in places]),
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.base_offset,
            self.leader_epoch,
            max(EMPTY_BATCH_BYTES, self.size_bytes * len(places) // max(1, len(self.values))),
            self.is_transactional,
            self.control_type,
            self.max_timestamp_us,
            remaining,
            self.payload,
        )

    @property
    def is_control(self) -> bool:
        """Whether the batch is a transaction marker, and not data from a client."""
        return self.control_type is not None


@dataclass(slots=True, eq=False)
class ControlBatch(RecordBatch):
    """A marker that ends a transaction, with the epoch of the coordinator that wrote it.

    Modelled on ``EndTransactionMarker.java``.
    """

    coordinator_epoch: int = NO_COORDINATOR_EPOCH

    def __post_init__(self) -> None:
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
            self.payload,
            self.coordinator_epoch,
        )
