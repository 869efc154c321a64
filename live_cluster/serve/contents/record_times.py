"""Finds records by their timestamps, which only the bytes of real clients' batches have."""

import struct
from collections.abc import Sequence
from typing import Final

from harrow.cluster_model.log.record_batch import RecordBatch
from harrow.cluster_model.protocol import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, MAX_TIMESTAMP
from harrow.live_cluster.serve.contents.client_batches import batch_bytes
from harrow.live_cluster.wire.stored_batches import whole_batches

NOT_FOUND: Final = (-1, -1)
EARLIEST_LOCAL_TIMESTAMP, _LATEST_TIERED_TIMESTAMP, _EARLIEST_PENDING_UPLOAD = -4, -5, -6
"""The bounds of what brokers store themselves, and elsewhere (KIP-405, KIP-1005, KIP-1023)."""
_SINCE: Final = {
    EARLIEST_TIMESTAMP: 1,
    LATEST_TIMESTAMP: 1,
    MAX_TIMESTAMP: 7,
    _LATEST_TIERED_TIMESTAMP: 9,
    _EARLIEST_PENDING_UPLOAD: 11,
}
"""The first version of ListOffsets with each special timestamp (``KafkaApis``)."""
_MAX_TIMESTAMP: Final = struct.Struct(">q")
_MAX_TIMESTAMP_AT: Final = 35
"""The position of the largest timestamp in a batch (``DefaultRecordBatch.java``)."""


def supports_timestamp(timestamp_ms: int, version: int) -> bool:
    """Return whether a version of ListOffsets has a timestamp."""
    return timestamp_ms >= 0 or _SINCE.get(timestamp_ms, version + 1) <= version


def find_by_time(batches: Sequence[RecordBatch], timestamp_ms: int) -> tuple[int, int]:
    """Return the timestamp and the offset of the first record with at least a timestamp.

    With `MAX_TIMESTAMP`, it is the first record with the largest timestamp (KIP-734). Without such
    a record, return `NOT_FOUND`: brokers store no records elsewhere. Modelled on
    ``UnifiedLog.fetchOffsetByTimestamp``.
    """
    if timestamp_ms == MAX_TIMESTAMP:
        largest = [_largest_ms(batch) for batch in batches if batch.payload is not None]
        if not largest:
            return NOT_FOUND
        timestamp_ms = max(largest)
    elif timestamp_ms < 0:
        return NOT_FOUND
    for batch in batches:
        if batch.payload is not None and _largest_ms(batch) >= timestamp_ms:
            return _find_in(batch, timestamp_ms)
    return NOT_FOUND


def _largest_ms(batch: RecordBatch) -> int:
    """Return the largest timestamp of the records that compaction has left in a batch."""
    assert batch.payload is not None
    data = batch_bytes(batch) if batch.is_compacted else batch.payload.data
    (timestamp_ms,) = _MAX_TIMESTAMP.unpack_from(data, _MAX_TIMESTAMP_AT)
    return int(timestamp_ms)


def _find_in(batch: RecordBatch, timestamp_ms: int) -> tuple[int, int]:
    """Return the first such record of a batch.

    The result is the batch's first offset if harrow cannot decompress the records.
    """
    try:
        for stored, _ in whole_batches(batch_bytes(batch)):
            for record in stored:
                if record.timestamp >= timestamp_ms:
                    return record.timestamp, record.offset
    except Exception:  # noqa: BLE001, S110 - a client's records may be compressed or hold anything
        pass
    return _largest_ms(batch), batch.base_offset
