"""The batches of real clients keep their bytes, and their records have names that tell retries."""

import struct

import pytest
from kafka.record import MemoryRecords, MemoryRecordsBuilder

from harrow.live_cluster.serve.client_batches import (
    CorruptBatchError,
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


def read(data: bytes, request: str = "r") -> tuple[str, ...]:
    return read_batch(data, request, lambda ms: ms * 1_000).values


@pytest.mark.parametrize("compression", COMPRESSIONS.values(), ids=COMPRESSIONS)
def test_a_reader_gets_the_bytes_that_a_producer_wrote(compression: int) -> None:
    data = batch_of(b"a", b"\x00\xfe", compression=compression)
    stored = read_batch(data, "r", lambda ms: ms * 1_000).stored_at(41, 7)
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
