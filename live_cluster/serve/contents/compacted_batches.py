"""Reads the keys of real records, and removes records that compaction has removed."""

import struct
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from kafka.record.util import calc_crc32c, decode_varint

from harrow.cluster_model.log.record_batch import KeyedRecords, Payload
from harrow.live_cluster.serve.contents.record_identity import plain_batch, records_of

_LENGTH, _LENGTH_AT, _LENGTH_COUNTED_FROM = struct.Struct(">i"), 8, 12
_CHECKSUM, _CHECKSUM_AT, _CHECKED_FROM = struct.Struct(">I"), 17, 21
_BASE_TIMESTAMP_AT, _MAX_TIMESTAMP_AT = 27, 35
_TIMESTAMP: Final = struct.Struct(">q")
_COUNT, _COUNT_AT, _RECORDS_AT = struct.Struct(">i"), 57, 61
_NO_TIMESTAMP: Final = -1
_BASE_OFFSET: Final = struct.Struct(">q")
_HEX: Final = "0x"


def keyed_records(data: bytes, names: Sequence[str]) -> KeyedRecords:
    """Return the keys of a client's batch, whose records are called *names*.

    harrow cannot read the keys of records in some codecs. Such records count as the only ones of
    their keys, so compaction keeps them.

    Offsets that do not ascend by 1 are refused, because the model has no such logs. Kafka stores an
    uncompressed batch with them as it is, and numbers the records of a compressed batch again
    (``LogValidator``).

    Raises:
        ValueError: The records are not as the batch says.

    """
    records, count = records_of(data), len(names)
    deltas = tuple(range(count))
    if records is None:
        return _with_unique_keys(names)
    if len(records) != count:
        raise ValueError("the batch has another number of records")
    (base_offset,) = _BASE_OFFSET.unpack_from(data)
    if any(record.offset != base_offset + delta for record, delta in zip(records, deltas, strict=True)):
        raise ValueError("the offsets of the batch do not ascend by 1")
    return KeyedRecords(
        tuple([_key_text(record.key) for record in records]),
        tuple([record.value is None for record in records]),
        deltas,
        count,
    )


class ClientPayload(Payload):
    """The bytes of a client's batch. Compaction keeps their records if it cannot read them."""

    def keyed(self, values: Sequence[str]) -> KeyedRecords:
        try:
            return keyed_records(self.data, values)
        except ValueError:
            return _with_unique_keys(values)


def _with_unique_keys(names: Sequence[str]) -> KeyedRecords:
    count = len(names)
    return KeyedRecords(tuple(names), (False,) * count, tuple(range(count)), count)


def _key_text(key: bytes | None) -> str | None:
    """Return a key as text, so that different keys have different texts."""
    if key is None:
        return None
    try:
        text = bytes(key).decode()
    except UnicodeDecodeError:
        text = _HEX
    return f"{_HEX}{bytes(key).hex()}" if text.startswith(_HEX) else text


def with_records(data: bytes, offset_deltas: Collection[int]) -> bytes:
    """Return a batch with only the records at these offsets, relative to its base offset.

    The offsets and sequence numbers of the batch stay the same (``MemoryRecords.filterTo``).
    Unlike Kafka, harrow does not compress the remaining records.
    """
    plain = plain_batch(data) or data
    deltas = set(offset_deltas)
    kept = [each for each in _raw_records(plain) if each[1] in deltas] if deltas else []
    (first_timestamp,) = _TIMESTAMP.unpack_from(plain, _BASE_TIMESTAMP_AT)
    timestamps = (first_timestamp + timestamp_delta for _, _, timestamp_delta in kept)
    batch = bytearray(plain[:_RECORDS_AT]) + b"".join(raw for raw, _, _ in kept)
    _TIMESTAMP.pack_into(batch, _MAX_TIMESTAMP_AT, max(timestamps, default=_NO_TIMESTAMP))
    _COUNT.pack_into(batch, _COUNT_AT, len(kept))
    _LENGTH.pack_into(batch, _LENGTH_AT, len(batch) - _LENGTH_COUNTED_FROM)
    _CHECKSUM.pack_into(batch, _CHECKSUM_AT, calc_crc32c(bytes(batch[_CHECKED_FROM:])))
    return bytes(batch)


def _raw_records(batch: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Yield the bytes of each record, its offset delta and its timestamp delta."""
    position = _RECORDS_AT
    while position < len(batch):
        length, begin = decode_varint(batch, position)
        end = begin + length
        timestamp_delta, after = decode_varint(batch, begin + 1)
        offset_delta, _ = decode_varint(batch, after)
        yield batch[position:end], offset_delta, timestamp_delta
        position = end
