"""Converts between batches of the model and batches as brokers store them."""

import struct
from collections.abc import Iterator
from typing import Any, Final

from kafka.errors import CorruptRecordError
from kafka.record import MemoryRecords, MemoryRecordsBuilder
from kafka.record.default_records import DefaultRecordBatch
from kafka.record.util import calc_crc32c

from harrow.cluster_model.log.record_batch import ABORT, COMMIT, ControlBatch, RecordBatch

_MARKER: Final = struct.Struct(">hi")
_MARKER_KEY: Final = struct.Struct(">hh")
_BASE_OFFSET, _INT, _CRC = struct.Struct(">q"), struct.Struct(">i"), struct.Struct(">I")
_LEADER_EPOCH_AT, _CRC_AT, _CHECKED_FROM, _ATTRIBUTES_AT, _SEQUENCE_AT = 12, 17, 21, 22, 53
"""Positions of the fields that kafka-python's builder does not set, and of the first byte that the
checksum covers (``DefaultRecordBatch.java``)."""
_CONTROL: Final = 0x20
_BYTES_MAX: Final = 1_000_000


def whole_batches(data: bytes, position: int = 0) -> Iterator[tuple[Any, int]]:
    """Yield kafka-python's batches up to the first torn one, each with the position after it.

    *position* is the position of the first byte of *data*.
    """
    records = MemoryRecords(data)
    try:
        while (batch := records.next_batch()) is not None and batch.validate_crc():
            position += batch.size_in_bytes
            yield batch, position
    except CorruptRecordError:
        return


def next_offset(batch: Any) -> int:
    """Return the offset after a batch of kafka-python."""
    return (
        int(batch.next_offset) if isinstance(batch, DefaultRecordBatch) else max(r.offset for r in batch) + 1
    )


def as_batches(stored: Any) -> Iterator[RecordBatch]:
    """Yield a stored batch as the model has it; before 0.11 each message becomes a batch."""
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
    """Return a transaction marker, whose value has the coordinator's epoch (``EndTxnMarker``)."""
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


def encoded(batch: RecordBatch, created_ms: int) -> bytes:
    """Return a batch of the model in the format in which producers send it and leaders store it."""
    is_control = isinstance(batch, ControlBatch)
    builder = MemoryRecordsBuilder(
        2,
        0,
        _BYTES_MAX,
        transactional=batch.is_transactional,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=0 if is_control else batch.base_sequence,
    )
    if isinstance(batch, ControlBatch):
        key = _MARKER_KEY.pack(0, int(batch.control_type == COMMIT))
        builder.append(timestamp=created_ms, key=key, value=_MARKER.pack(0, batch.coordinator_epoch))
    for value in batch.values:
        builder.append(timestamp=created_ms, key=None, value=value.encode())
    builder.close()
    data = bytearray(builder.buffer())
    _BASE_OFFSET.pack_into(data, 0, max(0, batch.base_offset))
    _INT.pack_into(data, _LEADER_EPOCH_AT, batch.leader_epoch)
    if is_control:
        data[_ATTRIBUTES_AT] |= _CONTROL
        _INT.pack_into(data, _SEQUENCE_AT, batch.base_sequence)
        _CRC.pack_into(data, _CRC_AT, calc_crc32c(bytes(data[_CHECKED_FROM:])))
    return bytes(data)
