"""The batches of real clients keep their bytes, and their records have names that tell retries."""

import struct

import pytest
from kafka.record import MemoryRecords, MemoryRecordsBuilder
from kafka.record.util import calc_crc32c

from harrow.live_cluster.serve.contents.client_batches import (
    CorruptBatchError,
    InvalidRecordError,
    RecordNames,
    UnknownFormatError,
    batch_bytes,
    read_batch,
)

COMPRESSIONS = {"none": 0, "gzip": 1}


def batch_of(*values: bytes, compression: int = 0, **producer: int) -> bytes:
    builder = MemoryRecordsBuilder(2, compression, 100_000, **producer)
    for value in values:
        builder.append(timestamp=1_700_000_000_000, key=b"key", value=value, headers=[("name", b"\x00\xff")])
    builder.close()
    return bytes(builder.buffer())


def read(
    data: bytes, request: str = "r", names: RecordNames | None = None, partition: str = "t-0"
) -> tuple[str, ...]:
    batch = read_batch(data, lambda ms: ms * 1_000)
    return (names or RecordNames()).named(partition, batch, request).values


def with_checksum(data: bytes) -> bytes:
    return data[:17] + struct.pack(">I", calc_crc32c(data[21:])) + data[21:]


@pytest.mark.parametrize("compression", COMPRESSIONS.values(), ids=COMPRESSIONS)
def test_a_reader_gets_the_bytes_that_a_producer_wrote(compression: int) -> None:
    data = batch_of(b"a", b"\x00\xfe", compression=compression)
    stored = RecordNames().named("t-0", read_batch(data, lambda ms: ms * 1_000), "r").stored_at(41, 7)
    assert (stored.next_offset, stored.size_bytes) == (43, len(data))
    records = list(MemoryRecords(batch_bytes(stored)).next_batch())
    assert [(record.offset, record.key, record.value) for record in records] == [
        (41, b"key", b"a"),
        (42, b"key", b"\x00\xfe"),
    ]
    assert {tuple(record.headers) for record in records} == {(("name", b"\x00\xff"),)}
    # Only the offset and the leader epoch differ, which the checksum does not cover.
    assert batch_bytes(stored)[16:] == data[16:]


def test_a_retried_batch_has_the_same_names_and_any_other_batch_has_others() -> None:
    first = batch_of(b"a", b"b", producer_id=5, producer_epoch=0, base_sequence=0)
    next_ = batch_of(b"a", b"b", producer_id=5, producer_epoch=0, base_sequence=2)
    later = batch_of(b"a", b"b", producer_id=5, producer_epoch=1, base_sequence=0)
    assert read(first, "r1") == read(first, "r2")
    assert len({*read(first), *read(next_), *read(later)}) == 6


def test_records_without_a_producer_id_are_named_by_their_request() -> None:
    data = batch_of(b"same", b"same")
    assert len({*read(data, "r1"), *read(data, "r2")}) == 4


def test_a_batch_of_an_older_format_is_refused() -> None:
    data = bytearray(batch_of(b"a"))
    data[16] = 1
    with pytest.raises(UnknownFormatError, match="magic 1"):
        read(bytes(data))


@pytest.mark.parametrize(
    ("place", "value"), [(70, b"\xff"), (8, struct.pack(">i", 5)), (57, struct.pack(">i", 9))]
)
def test_a_corrupt_batch_is_refused(place: int, value: bytes) -> None:
    data = batch_of(b"a")
    with pytest.raises(CorruptBatchError):
        read(data[:place] + value + data[place + len(value) :])


def test_a_torn_batch_is_refused() -> None:
    data = batch_of(b"a")
    for length in range(len(data)):
        with pytest.raises(CorruptBatchError):
            read(data[:length])


def test_a_header_cannot_claim_more_records_than_the_batch_has_bytes_for() -> None:
    data = batch_of(b"a")
    claimed = data[:23] + struct.pack(">i", 999_999) + data[27:57] + struct.pack(">i", 1_000_000) + data[61:]
    with pytest.raises(InvalidRecordError, match="number of records"):
        read(with_checksum(claimed))
    compressed = batch_of(b"a", compression=1)
    claimed = compressed[:23] + struct.pack(">i", 2**31 - 2) + compressed[27:57]
    claimed += struct.pack(">i", 2**31 - 1) + compressed[61:]
    with pytest.raises(InvalidRecordError, match="number of records"):
        read(with_checksum(claimed))


def test_a_client_may_not_write_transaction_markers() -> None:
    data = bytearray(batch_of(b"a", producer_id=5, producer_epoch=0, base_sequence=0))
    data[22] |= 0x20
    with pytest.raises(InvalidRecordError):
        read(with_checksum(bytes(data)))


def test_an_idempotent_batch_has_a_sequence_number() -> None:
    data = bytearray(batch_of(b"a", producer_id=5, producer_epoch=0, base_sequence=0))
    struct.pack_into(">i", data, 53, -1)
    with pytest.raises(InvalidRecordError, match="no sequence number"):
        read(with_checksum(bytes(data)))


def test_records_of_two_partitions_have_different_names() -> None:
    data = batch_of(b"a", producer_id=5, producer_epoch=0, base_sequence=0)
    assert read(data, partition="t-0") != read(data, partition="t-1")


def test_a_producer_that_starts_again_at_sequence_0_sends_other_records() -> None:
    names = RecordNames()
    producer = {"producer_id": 5, "producer_epoch": 0}
    first = batch_of(b"a", **producer, base_sequence=0)
    second = batch_of(b"b", **producer, base_sequence=1)
    again = batch_of(b"c", **producer, base_sequence=0)
    read_values = [read(data, "r", names) for data in (first, first, second, again, second)]
    assert read_values[0] == read_values[1]
    assert len({*read_values}) == 4
