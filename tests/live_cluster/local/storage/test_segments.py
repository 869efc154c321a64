"""Logs and checkpoints are read as brokers write them."""

import struct
from pathlib import Path

import pytest
from kafka.record.memory_records import MemoryRecordsBuilder

from harrow.cluster_model.log.record_batch import RecordBatch
from harrow.live_cluster.local.storage.checkpoint_file import (
    HIGH_WATERMARKS,
    CheckpointError,
    checkpointed_epochs,
    checkpointed_offsets,
)
from harrow.live_cluster.local.storage.segments import StoredLog, cut, stored_log

GZIP = 1


def stored_batch(
    base_offset: int, *values: str, epoch: int = 0, compression: int = 0, **producer: int
) -> bytes:
    """Return a batch as a broker of 0.11 or later stores it."""
    builder = MemoryRecordsBuilder(2, compression, 1_000_000)
    if producer:
        builder.set_producer_state(producer["id"], producer["producer_epoch"], producer["sequence"], False)
    for value in values:
        builder.append(timestamp=1, key=None, value=value.encode())
    builder.close()
    data = bytearray(builder.buffer())
    # The checksum covers neither field.
    struct.pack_into(">q", data, 0, base_offset)
    struct.pack_into(">i", data, 12, epoch)
    return bytes(data)


def written_before_0_11(base_offset: int, *values: str, compression: int = 0) -> bytes:
    data = b""
    for number, value in enumerate(values):
        builder = MemoryRecordsBuilder(1, compression, 1_000_000)
        builder.append(timestamp=1, key=None, value=value.encode())
        builder.close()
        one = bytearray(builder.buffer())
        struct.pack_into(">q", one, 0, base_offset + number)
        data += one
    return data


def comparable(stored: StoredLog) -> object:
    """Return a comparable form of a log, because batches compare by identity."""
    return [batch.__reduce__()[1] for batch in stored.batches], stored.leo, stored.epochs


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    folder = tmp_path / "t-0"
    folder.mkdir()
    return folder


def write(partition: Path, base_offset: int, data: bytes) -> Path:
    segment = partition / f"{base_offset:020}.log"
    segment.write_bytes(data)
    return segment


def test_a_log_has_the_batches_of_all_segments(partition: Path) -> None:
    one, two = (
        stored_batch(0, "a", "b", id=7, producer_epoch=2, sequence=0),
        stored_batch(2, "c", epoch=1, compression=GZIP),
    )
    write(partition, 0, one + two)
    write(partition, 3, stored_batch(3, "d", "é", epoch=4))
    (partition / "leader-epoch-checkpoint").write_text("0\n3\n0 0\n1 2\n4 3\n")
    assert comparable(stored_log(partition)) == comparable(
        StoredLog(
            (
                RecordBatch(("a", "b"), 7, 2, 0, 0, 0, len(one)),
                RecordBatch(("c",), base_offset=2, leader_epoch=1, size_bytes=len(two)),
                RecordBatch(
                    ("d", "é"), base_offset=3, leader_epoch=4, size_bytes=len(stored_batch(3, "d", "é"))
                ),
            ),
            5,
            ((0, 0), (1, 2), (4, 3)),
        )
    )


@pytest.mark.parametrize("compression", [0, GZIP])
def test_each_message_from_before_0_11_is_a_batch(partition: Path, compression: int) -> None:
    write(partition, 0, written_before_0_11(0, "a", "b", compression=compression))
    stored = stored_log(partition)
    assert [(b.base_offset, b.values, b.leader_epoch) for b in stored.batches] == [
        (0, ("a",), -1),
        (1, ("b",), -1),
    ]
    assert (stored.leo, stored.epochs) == (2, ())


def test_a_log_without_records_ends_at_its_start(partition: Path) -> None:
    write(partition, 0, b"")
    assert stored_log(partition) == StoredLog((), 0, ())
    write(partition, 17, b"")
    assert stored_log(partition).leo == 17


@pytest.mark.parametrize("torn", [5, 20, 60, -1])
def test_a_log_ends_before_a_torn_batch(partition: Path, torn: int) -> None:
    whole = stored_batch(0, "a")
    write(partition, 0, whole + stored_batch(1, "b" * 50)[:torn])
    stored = stored_log(partition)
    assert ([b.values for b in stored.batches], stored.leo) == ([("a",)], 1)


def test_a_log_ends_before_a_batch_with_a_wrong_checksum(partition: Path) -> None:
    spoilt = bytearray(stored_batch(1, "b"))
    spoilt[-2] ^= 1
    write(partition, 0, stored_batch(0, "a") + bytes(spoilt) + stored_batch(2, "c"))
    assert stored_log(partition).leo == 1


@pytest.mark.parametrize(("offset", "left"), [(9, 6), (6, 6), (5, 4), (4, 4), (3, 3), (2, 2), (1, 0), (0, 0)])
def test_a_power_loss_leaves_the_batches_below_the_recovery_point(
    partition: Path, offset: int, left: int
) -> None:
    write(partition, 0, stored_batch(0, "a", "b") + stored_batch(2, "c"))
    write(partition, 3, stored_batch(3, "d") + stored_batch(4, "e", "f")).with_suffix(".index").touch()
    before = stored_log(partition)
    cut(partition, offset)
    after = stored_log(partition)
    assert after.leo == left
    assert [b.values for b in after.batches] == [b.values for b in before.batches if b.next_offset <= left]
    # No index stays without its segment.
    assert (partition / f"{3:020}.index").exists() == (partition / f"{3:020}.log").exists() == (offset > 3)


def test_checkpoints_are_read_as_kafka_writes_them(tmp_path: Path) -> None:
    assert checkpointed_offsets(tmp_path, HIGH_WATERMARKS) == {}
    assert checkpointed_epochs(tmp_path) == ()
    file = tmp_path / HIGH_WATERMARKS
    file.write_text("0\n2\nt 0 17\nwith-dash 11 3\n")
    assert checkpointed_offsets(tmp_path, HIGH_WATERMARKS) == {"t-0": 17, "with-dash-11": 3}
    for damaged in ("", "0\n", "1\n0\n", "0\n2\nt 0 17\n"):
        file.write_text(damaged)
        with pytest.raises(CheckpointError):
            checkpointed_offsets(tmp_path, HIGH_WATERMARKS)
