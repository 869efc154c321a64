"""Batches as brokers store them and clients send them, in the model's words."""

import struct
from collections.abc import Iterator
from typing import Any, Final

from kafka.errors import CorruptRecordError
from kafka.record import MemoryRecords
from kafka.record.default_records import DefaultRecordBatch

from harrow.cluster_model.log.record_batch import ABORT, COMMIT, ControlBatch, RecordBatch

_MARKER: Final = struct.Struct(">hi")


def whole_batches(data: bytes, position: int = 0) -> Iterator[tuple[Any, int]]:
    """Yield the batches of kafka-python up to the first that is torn, each with the place behind it; *data* begins at a place."""
    records = MemoryRecords(data)
    try:
        while (batch := records.next_batch()) is not None and batch.validate_crc():
            position += batch.size_in_bytes
            yield batch, position
    except CorruptRecordError:
        return


def next_offset(batch: Any) -> int:
    """Return the offset behind a batch of kafka-python."""
    return (
        int(batch.next_offset) if isinstance(batch, DefaultRecordBatch) else max(r.offset for r in batch) + 1
    )


def as_batches(stored: Any) -> Iterator[RecordBatch]:
    """Yield what the model calls batches: of messages before 0.11, which have no producers, each one."""
    if not isinstance(stored, DefaultRecordBatch):
        for record in stored:
            yield RecordBatch((_text(record.value),), base_offset=record.offset)
        return
    records = list(stored)
    if stored.is_control_batch:
        yield _control_batch(stored, records[0])
        return
    yield RecordBatch(
        tuple(_text(record.value) for record in records),
        stored.producer_id,
        stored.producer_epoch,
        stored.base_sequence,
        stored.base_offset,
        stored.leader_epoch,
        stored.size_in_bytes,
        stored.is_transactional,
    )


def _control_batch(stored: Any, marker: Any) -> ControlBatch:
    """Return the end of a transaction; its value has the epoch of the coordinator that has had it written (``EndTxnMarker.json``)."""
    _, coordinator_epoch = _MARKER.unpack_from(marker.value)
    return ControlBatch(
        (),
        stored.producer_id,
        stored.producer_epoch,
        stored.base_sequence,
        stored.base_offset,
        stored.leader_epoch,
        stored.size_in_bytes,
        is_transactional=True,
        control_type=COMMIT if marker.commit else ABORT,
        coordinator_epoch=coordinator_epoch,
    )


def _text(value: bytes | None) -> str:
    return "" if value is None else value.decode("utf-8", "backslashreplace")
