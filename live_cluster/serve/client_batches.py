"""Reads the batches that real clients write, and keeps their bytes."""

import struct
from collections.abc import Callable
from typing import Final

from kafka.record.util import calc_crc32c

from harrow.cluster_model.log.record_batch import NO_PRODUCER_ID, RecordBatch
from harrow.live_cluster.wire.stored_batches import encoded

_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
"""The header of a batch of magic 2 (``DefaultRecordBatch.java``)."""
_BASE_OFFSET, _LEADER_EPOCH, _LEADER_EPOCH_AT = struct.Struct(">q"), struct.Struct(">i"), 12
_CHECKED_FROM: Final = 21
_MAGIC: Final = 2
_LENGTH_COUNTED_FROM: Final = 12
_TRANSACTIONAL: Final = 0x10


class RefusedBatchError(ValueError):
    """A broker refuses a batch; *error* is the name of Kafka's error."""

    error: str


class UnknownFormatError(RefusedBatchError):
    """A batch has a format before magic 2, which Kafka 4 does not accept either."""

    error = "UNSUPPORTED_FOR_MESSAGE_FORMAT"


class CorruptBatchError(RefusedBatchError):
    """A batch is torn or has a wrong checksum."""

    error = "CORRUPT_MESSAGE"


def read_batch(data: bytes, request: str, model_time: Callable[[int], int]) -> RecordBatch:
    """Return a client's batch as the model has it; *request* names the request.

    The values of the batch name its records. A record of an idempotent producer is named by
    producer id, producer epoch and sequence number, so a retried batch has the same names. Any
    other record is named by the request that brought it.

    *model_time* converts the milliseconds of a client's clock to the model's time in microseconds.

    Raises:
        UnknownFormatError: The batch has an older format.
        CorruptBatchError: The batch is torn, or its checksum is wrong.

    """
    if len(data) < _HEADER.size:
        raise CorruptBatchError("the batch has no whole header")
    (_, length, _, magic, checksum, attributes, last_delta, _, max_timestamp_ms, *rest) = _HEADER.unpack_from(
        data
    )
    producer_id, producer_epoch, base_sequence, count = rest
    if magic != _MAGIC:
        raise UnknownFormatError(f"the batch has magic {magic}")
    if length + _LENGTH_COUNTED_FROM != len(data) or count != last_delta + 1 or count < 1:
        raise CorruptBatchError("the batch has a wrong length or number of records")
    if calc_crc32c(data[_CHECKED_FROM:]) != checksum:
        raise CorruptBatchError("the batch has a wrong checksum")
    is_idempotent = producer_id != NO_PRODUCER_ID
    first = base_sequence if is_idempotent else 0
    name = f"{producer_id}.{producer_epoch}" if is_idempotent else request
    values = tuple([f"{name}.{number}" for number in range(first, first + count)])
    return RecordBatch(
        values,
        producer_id,
        producer_epoch,
        base_sequence,
        size_bytes=len(data),
        is_transactional=bool(attributes & _TRANSACTIONAL),
        max_timestamp_us=0 if max_timestamp_ms < 0 else max(0, model_time(max_timestamp_ms)),
        payload=data,
    )


def batch_bytes(batch: RecordBatch) -> bytes:
    """Return the bytes of a batch in a log: the client's, with its offset and leader epoch.

    A transaction marker is as Kafka writes it. Records of internal topics are the model's own.
    """
    if batch.payload is None:
        return encoded(batch)
    data = bytearray(batch.payload)
    _BASE_OFFSET.pack_into(data, 0, batch.base_offset)
    _LEADER_EPOCH.pack_into(data, _LEADER_EPOCH_AT, batch.leader_epoch)
    return bytes(data)
