"""A served cluster finds records by their timestamps."""

from dataclasses import replace

from kafka.record.default_records import DefaultRecordBatchBuilder

from harrow.cluster_model.log.record_batch import RecordBatch
from harrow.live_cluster.serve.contents.client_batches import read_batch
from harrow.live_cluster.serve.contents.record_times import find_by_time


def batch(base_offset: int, *records: tuple[int, bytes]) -> RecordBatch:
    """Return a batch of records with their times and keys."""
    builder = DefaultRecordBatchBuilder(2, 0, False, -1, -1, -1, 1_000_000)
    for delta, (timestamp_ms, key) in enumerate(records):
        builder.append(delta, timestamp_ms, key, b"value", [])
    read = read_batch(bytes(builder.build()), lambda ms: ms * 1_000)
    return replace(read.named("record", is_keyed=True), base_offset=base_offset)


def test_a_record_that_compaction_has_removed_is_not_found_by_its_time() -> None:
    whole, later = batch(0, (1_000, b"a"), (5_000, b"b")), batch(2, (6_000, b"b"))
    assert find_by_time([whole, later], 4_000) == (5_000, 1)
    assert whole.keyed is not None
    kept = replace(whole.keyed, keys=("a",), tombstones=(False,), offset_deltas=(0,))
    compacted = replace(whole, values=whole.values[:1], keyed=kept)
    assert find_by_time([compacted, later], 4_000) == (6_000, 2)
