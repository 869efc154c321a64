"""Compaction removes replaced records from logs, and readers and followers pass the holes."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harrow.cluster_model import errors
from harrow.cluster_model.log.disk import CLEANER_OFFSET_CHECKPOINT, Disk, LogFile
from harrow.cluster_model.log.log_cleaner import Cleaner, cleanable
from harrow.cluster_model.log.log_manager import LogManager
from harrow.cluster_model.log.record_batch import ABORT, COMMIT, KeyedRecords, RecordBatch
from harrow.cluster_model.log.unified_log import UnexpectedAppendOffset, UnifiedLog
from harrow.cluster_model.release.profiles import RELEASES, Behaviours
from harrow.cluster_model.settings import TopicConfig, Value, broker_config, topic_config
from tests.cluster_model.fakes import SECOND, FakeHost

V3_9 = RELEASES["3.9"].behaviours
V2_4 = RELEASES["2.4"].behaviours
PARTITION = "t-0"
BROKER = broker_config("3.9", {})

Record = tuple[str, str | None]
"""A key and its value, None for a tombstone."""


def topic(**settings: Value) -> TopicConfig:
    """Return the settings of a topic with a segment for each batch."""
    options: dict[str, Value] = {"cleanup.policy": "compact", "segment.bytes": 14}
    options.update({name.replace("_", "."): value for name, value in settings.items()})
    return topic_config(options, BROKER)


def keyed_batch(*records: Record, at_us: int = 0, producer_id: int = -1, sequence: int = -1) -> RecordBatch:
    """Return a batch. The value of a tombstone is its key."""
    values = tuple(f"{key} gone" if value is None else value for key, value in records)
    keys = KeyedRecords(
        tuple(key for key, _ in records),
        tuple(value is None for _, value in records),
        tuple(range(len(records))),
        len(records),
    )
    epoch = -1 if producer_id < 0 else 0
    size = 100 * len(records)
    return RecordBatch(
        values, producer_id, epoch, sequence, size_bytes=size, max_timestamp_us=at_us, keyed=keys
    )


def log_of(
    *batches: RecordBatch,
    config: TopicConfig | None = None,
    hw: int | None = None,
    behaviours: Behaviours = V3_9,
) -> tuple[UnifiedLog, LogFile]:
    config = topic() if config is None else config
    disk = Disk()
    file = disk.log_file(PARTITION)
    file.segment_bytes, file.segment_us, file.compacts = config.segment_bytes, config.segment_us, True
    log = UnifiedLog(PARTITION, disk, behaviours)
    for batch in batches:
        assert log.append_as_leader(batch, 0).error == errors.NONE
        file.segments[-1].modified_us = max(1, batch.max_timestamp_us)
    log.update_high_watermark(log.log_end_offset if hw is None else hw)
    return log, file


def clean_log(
    log: UnifiedLog,
    file: LogFile,
    *,
    checkpoint: int | None = None,
    config: TopicConfig | None = None,
    now_us: int = 0,
    behaviours: Behaviours = V3_9,
) -> list[int]:
    """Clean the cleanable part of a log, and return the removed offsets."""
    config = topic() if config is None else config
    dirty = cleanable(log, file, checkpoint, config, now_us, behaviours)
    cleaner = Cleaner(log, file, dirty, config, now_us, behaviours)
    cleaner.clean()
    return cleaner.removed


def records(file: LogFile) -> dict[int, str]:
    return {offset: value for batch in file.batches for offset, value in batch.records()}


A1, A2, A3, B1 = ("a", "a1"), ("a", "a2"), ("a", "a3"), ("b", "b1")
C1, D1, E1 = ("c", "c1"), ("d", "d1"), ("e", "e1")


def test_the_latest_record_of_each_key_stays_at_its_offset() -> None:
    log, file = log_of(keyed_batch(A1), keyed_batch(B1), keyed_batch(A2), keyed_batch(C1))
    assert clean_log(log, file) == [0]
    assert records(file) == {1: "b1", 2: "a2", 3: "c1"}
    assert log.log_end_offset == 4


def test_the_active_segment_is_not_cleaned_and_its_keys_do_not_count() -> None:
    log, file = log_of(keyed_batch(A1), keyed_batch(A2))
    assert clean_log(log, file) == []
    assert records(file) == {0: "a1", 1: "a2"}


@pytest.mark.parametrize(("behaviours", "removed"), [(V2_4, [0]), (V3_9, [])])
def test_since_3_1_uncommitted_records_replace_nothing(behaviours: Behaviours, removed: list[int]) -> None:
    """KAFKA-13194."""
    log, file = log_of(keyed_batch(A1), keyed_batch(A2), keyed_batch(B1), hw=1, behaviours=behaviours)
    assert clean_log(log, file, behaviours=behaviours) == removed


def test_records_younger_than_the_compaction_lag_are_not_removed() -> None:
    log, file = log_of(
        keyed_batch(A1),
        keyed_batch(A2, at_us=SECOND),
        keyed_batch(A3, at_us=SECOND),
        keyed_batch(B1, at_us=SECOND),
    )
    config = topic(min_compaction_lag_ms=500)
    assert clean_log(log, file, config=config, now_us=SECOND) == []
    assert clean_log(log, file, config=config, now_us=2 * SECOND) == [0, 1]


@pytest.mark.parametrize(("max_lag_ms", "is_due"), [(1_000, True), (3_000, False)])
def test_a_log_must_be_cleaned_when_a_dirty_record_exceeds_the_maximum_lag(
    max_lag_ms: int, is_due: bool
) -> None:
    log, file = log_of(keyed_batch(A1), keyed_batch(B1, at_us=SECOND))
    config = topic(max_compaction_lag_ms=max_lag_ms, segment_ms=1)
    assert cleanable(log, file, None, config, 2 * SECOND, V3_9).must_be_compacted is is_due


def test_dirty_records_replace_records_of_the_clean_part() -> None:
    log, file = log_of(keyed_batch(A1), keyed_batch(B1), keyed_batch(A2), keyed_batch(C1))
    assert clean_log(log, file, checkpoint=2) == [0]


@pytest.mark.parametrize("checkpoint", [9, -1])
def test_a_cleaner_checkpoint_outside_the_log_is_ignored(checkpoint: int) -> None:
    """KAFKA-6266, KAFKA-8764: the log was truncated, or its log start has moved."""
    log, file = log_of(keyed_batch(A1), keyed_batch(B1), keyed_batch(C1))
    assert cleanable(log, file, checkpoint, topic(), 0, V3_9).first_dirty_offset == 0


def test_a_log_whose_cleanable_part_is_clean_has_nothing_dirty() -> None:
    """KAFKA-8764: otherwise the cleaner would never finish."""
    log, file = log_of(keyed_batch(A1, B1), keyed_batch(A2), hw=1, config=topic(segment_bytes=10_000))
    assert cleanable(log, file, 1, topic(), 0, V3_9).cleanable_bytes == 0


def test_cleaning_merges_segments_that_fit_into_one() -> None:
    log, file = log_of(keyed_batch(A1), keyed_batch(A2), keyed_batch(A3), keyed_batch(B1))
    file.segment_bytes = 200
    clean_log(log, file)
    assert [segment.base_offset for segment in file.segments] == [0, 2, 3]


# Tombstones


def test_a_tombstone_stays_until_its_delete_horizon() -> None:
    """KIP-534: the first cleaning sets it."""
    config = topic(delete_retention_ms=1_000)
    log, file = log_of(keyed_batch(A1), keyed_batch(("a", None)), keyed_batch(B1))
    assert clean_log(log, file, config=config, now_us=SECOND) == [0]
    assert clean_log(log, file, config=config, now_us=2 * SECOND - 1) == []
    assert clean_log(log, file, config=config, now_us=2 * SECOND) == [1]
    assert records(file) == {2: "b1"}


def test_before_kip_534_a_tombstone_waits_for_a_later_clean_segment() -> None:
    config = topic(delete_retention_ms=1_000)
    log, file = log_of(
        keyed_batch(("a", None)),
        keyed_batch(B1, at_us=3 * SECOND),
        keyed_batch(("c", "c1"), at_us=3 * SECOND),
        behaviours=V2_4,
    )
    assert clean_log(log, file, config=config, now_us=90 * SECOND, behaviours=V2_4) == []
    assert clean_log(log, file, checkpoint=2, config=config, now_us=90 * SECOND, behaviours=V2_4) == [0]


# Remaining batches


def test_a_cleaned_batch_keeps_its_offsets_and_sequence_numbers() -> None:
    log, file = log_of(keyed_batch(A1, B1, A2, producer_id=7, sequence=4), keyed_batch(C1), keyed_batch(D1))
    clean_log(log, file)
    batch = file.batches[0]
    assert (batch.base_offset, batch.next_offset, batch.base_sequence, batch.last_sequence) == (0, 3, 4, 6)
    assert batch.runs() == [(1, ("b1", "a2"))]


def test_the_last_batch_of_a_producer_stays_even_when_empty() -> None:
    """KAFKA-5490: it holds the sequence number."""
    log, file = log_of(
        keyed_batch(A1, producer_id=7, sequence=0),
        keyed_batch(A2, producer_id=7, sequence=1),
        keyed_batch(A3),
        keyed_batch(B1),
    )
    assert clean_log(log, file) == [0, 1]
    assert [batch.base_offset for batch in file.batches] == [1, 2, 3]
    recreated = UnifiedLog(PARTITION, _disk_of(file), V3_9)
    assert recreated.producers.entries[7].last_sequence == 1


@pytest.mark.parametrize(("release", "remaining"), [("3.9", [0, 2]), ("4.0", [0, 1, 2])])
def test_since_4_0_the_last_cleaned_batch_stays_even_when_empty(release: str, remaining: list[int]) -> None:
    """KAFKA-17076: it is the only record of the log end."""
    behaviours = RELEASES[release].behaviours
    config = topic(delete_retention_ms=0)
    log, file = log_of(
        keyed_batch(B1), keyed_batch(("a", None)), keyed_batch(C1), config=config, behaviours=behaviours
    )
    for now_us in (1, 2):
        clean_log(log, file, config=config, behaviours=behaviours, now_us=now_us)
    assert file.base_offsets == remaining


@pytest.mark.parametrize(
    ("release", "high_watermark", "remaining"),
    [("4.3", 3, [0, 1, 2]), ("4.4", 3, [0, 2]), ("4.4", 2, [0, 1, 2])],
)
def test_since_4_4_an_empty_batch_stays_only_if_it_ends_at_the_high_watermark(
    release: str, high_watermark: int, remaining: list[int]
) -> None:
    """KAFKA-20452."""
    behaviours = RELEASES[release].behaviours
    config = topic(delete_retention_ms=0)
    log, file = log_of(
        keyed_batch(B1), keyed_batch(("a", None)), keyed_batch(C1), config=config, behaviours=behaviours
    )
    log.high_watermark = high_watermark
    for now_us in (1, 2):
        clean_log(log, file, config=config, behaviours=behaviours, now_us=now_us)
    assert file.base_offsets == remaining


def test_a_log_truncated_into_a_hole_ends_at_its_last_batch_after_a_restart() -> None:
    config = topic(segment_bytes=350)
    log, file = log_of(*map(keyed_batch, (B1, A1, A2, A3, C1, D1, E1)), config=config)
    clean_log(log, file, config=config)
    log.truncate_to(2)
    assert log.log_end_offset == 2
    assert UnifiedLog(PARTITION, _disk_of(file), V3_9).log_end_offset == 1


def _disk_of(file: LogFile) -> Disk:
    disk = Disk()
    disk.log_files[PARTITION] = file
    return disk


# Readers and followers


def test_a_read_within_a_hole_begins_with_the_next_batch() -> None:
    log, file = log_of(keyed_batch(A1), keyed_batch(A2), keyed_batch(A3), keyed_batch(B1))
    clean_log(log, file)
    assert [batch.values for batch in log.read(0, 4, 1_000)] == [("a3",), ("b1",)]


def test_a_hole_up_to_the_end_is_not_readable() -> None:
    log, file = log_of(keyed_batch(A1), keyed_batch(A2), keyed_batch(A3), keyed_batch(B1))
    clean_log(log, file)
    assert log.is_hole(0, 2)
    assert not log.is_hole(0, 3)


def test_a_follower_appends_after_a_hole_but_not_below_its_end() -> None:
    log, file = log_of(keyed_batch(A1), keyed_batch(A2), keyed_batch(A3), keyed_batch(B1))
    clean_log(log, file)
    follower = UnifiedLog(PARTITION, Disk(), V3_9)
    for batch in log.read(0, 4, 1_000):
        follower.append_as_follower(batch)
    assert follower.log_end_offset == 4
    with pytest.raises(UnexpectedAppendOffset):
        follower.append_as_follower(file.batches[0])


@pytest.mark.parametrize(("offset", "leo", "remaining"), [(1, 1, []), (2, 2, []), (3, 3, ["a3"])])
def test_a_truncation_into_a_hole_ends_there(offset: int, leo: int, remaining: list[str]) -> None:
    log, file = log_of(keyed_batch(A1), keyed_batch(A2), keyed_batch(A3), keyed_batch(B1))
    clean_log(log, file)
    log.truncate_to(offset)
    assert log.log_end_offset == leo
    assert list(records(file).values()) == remaining


def test_a_compacted_log_rejects_records_without_a_key() -> None:
    log, _ = log_of()
    plain = RecordBatch(("m0",))
    assert log.append_as_leader(plain, 0).error == errors.INVALID_RECORD


# The broker's cleaner


class Broker:
    """The logs of a broker with its clock and its cleanings."""

    def __init__(self, behaviours: Behaviours = V3_9, **settings: Value) -> None:
        self.disk = Disk()
        self.host = FakeHost()
        config = broker_config("3.9", {"log.cleaner.backoff.ms": 1_000})
        of_topic = topic(**settings)
        self.logs = LogManager(1, self.host, self.disk, config, lambda _: of_topic, behaviours)
        self.logs.start()
        self.log = self.logs.open(PARTITION)

    def append(self, *batches: RecordBatch, hw: int | None = None) -> None:
        for batch in batches:
            self.log.append_as_leader(batch, 0)
            self.logs.on_append(self.log)
        self.log.update_high_watermark(self.log.log_end_offset if hw is None else hw)

    def cleaned(self) -> list[tuple[object, ...]]:
        """Return the cleanings: begin, end and removed offsets."""
        return [fields[2:5] for fields in self.host.events_named("log_cleaned")]

    def checkpoint(self) -> int:
        return self.disk.checkpoint(CLEANER_OFFSET_CHECKPOINT, PARTITION)


def test_a_broker_cleans_a_dirty_log_and_checkpoints_the_end() -> None:
    broker = Broker()
    broker.append(keyed_batch(A1), keyed_batch(A2), keyed_batch(B1))
    broker.host.advance(1 * SECOND)
    assert broker.cleaned() == [(0, 2, (0,))]
    assert broker.checkpoint() == 2
    # The dirty part is then less than half of the bytes to read.
    broker.append(keyed_batch(C1))
    broker.host.advance(8 * SECOND)
    assert len(broker.cleaned()) == 1


def test_every_segment_that_gets_records_of_an_append_is_modified() -> None:
    """Before KIP-534 that decides about tombstones.

    A follower that copies much at once fills one segment and begins others.
    """
    broker = Broker(segment_bytes=200)
    broker.host.advance(1 * SECOND)
    broker.append(keyed_batch(A1))
    broker.host.advance(5 * SECOND)
    for batch in (keyed_batch(A2), keyed_batch(B1), keyed_batch(C1), keyed_batch(A1)):
        broker.log.append_as_leader(batch, 0)
    broker.logs.on_append(broker.log)
    segments = broker.disk.log_file(PARTITION).segments
    assert len(segments) > 1
    assert {segment.modified_us for segment in segments} == {6 * SECOND}


def test_a_segment_that_was_full_before_an_append_keeps_its_age() -> None:
    broker = Broker(segment_bytes=14)
    for batch in (keyed_batch(A1), keyed_batch(A2), keyed_batch(B1)):
        broker.host.advance(1 * SECOND)
        broker.append(batch)
    segments = broker.disk.log_file(PARTITION).segments
    assert [segment.modified_us for segment in segments] == [1 * SECOND, 2 * SECOND, 3 * SECOND]


def test_a_segment_keeps_the_age_that_it_had_before_its_topic_was_compacted() -> None:
    broker = Broker(cleanup_policy="delete", segment_bytes=14)
    for batch in (keyed_batch(A1), keyed_batch(A2), keyed_batch(B1)):
        broker.host.advance(1 * SECOND)
        broker.append(batch)
    broker.logs.configure(PARTITION, topic(segment_bytes=14))
    broker.host.advance(5 * SECOND)
    broker.append(keyed_batch(C1))
    segments = broker.disk.log_file(PARTITION).segments
    assert [segment.modified_us // SECOND for segment in segments] == [1, 2, 3, 8]


def test_records_above_the_high_watermark_are_cleaned_once_it_rises() -> None:
    broker = Broker()
    broker.append(keyed_batch(A1), keyed_batch(A2), keyed_batch(B1), hw=0)
    broker.host.advance(3 * SECOND)
    assert broker.cleaned() == []
    broker.log.update_high_watermark(3)
    broker.host.advance(1 * SECOND)
    assert broker.cleaned() == [(0, 2, (0,))]


def test_a_truncation_lowers_the_cleaner_checkpoint() -> None:
    """`LogCleanerManager.maybeTruncateCheckpoint`."""
    broker = Broker()
    broker.append(keyed_batch(A1), keyed_batch(A2), keyed_batch(B1), keyed_batch(C1))
    broker.host.advance(1 * SECOND)
    broker.logs.truncate(PARTITION, 2, "leader epoch")
    assert broker.checkpoint() == 1


def test_a_log_without_complete_segments_costs_no_checks() -> None:
    broker = Broker(segment_bytes=10_000)
    timers = broker.host.timers()
    broker.append(keyed_batch(A1), keyed_batch(A2))
    assert broker.host.timers() == timers


def test_a_cleaned_segment_is_flushed_before_it_replaces_others() -> None:
    broker = Broker()
    broker.append(keyed_batch(A1), keyed_batch(A2), keyed_batch(B1))
    broker.host.advance(1 * SECOND)
    assert broker.log.flushed_offset >= 2


# Against a simple model of a log


@st.composite
def _batches(draw: st.DrawFn) -> Sequence[RecordBatch]:
    names = iter(range(10_000))
    record = st.sampled_from("abc").flatmap(
        lambda key: st.booleans().map(lambda is_tombstone: (key, None if is_tombstone else f"v{next(names)}"))
    )
    batches = draw(st.lists(st.lists(record, min_size=1, max_size=4), min_size=1, max_size=12))
    return [keyed_batch(*records) for records in batches]


@given(batches=_batches(), segment_bytes=st.sampled_from([14, 350, 1_000]), rounds=st.integers(1, 4))
def test_a_reader_of_a_compacted_log_gets_the_same_table(
    batches: Sequence[RecordBatch], segment_bytes: int, rounds: int
) -> None:
    config = topic(segment_bytes=segment_bytes, delete_retention_ms=0)
    log, file = log_of(*batches, config=config)
    table, end = _table(file), log.log_end_offset
    checkpoint = None
    for number in range(rounds):
        dirty = cleanable(log, file, checkpoint, config, number, V3_9)
        Cleaner(log, file, dirty, config, number, V3_9).clean()
        checkpoint = dirty.first_uncleanable_offset
        assert _table(file) == table
        assert log.log_end_offset == end
        assert file.base_offsets == [batch.base_offset for batch in file.batches]
        assert file.size_bytes == sum(batch.size_bytes for batch in file.batches)


def _table(file: LogFile) -> dict[str, str]:
    """Return the value of each key after reading the whole log."""
    table: dict[str, str] = {}
    for batch in file.batches:
        assert batch.keyed is not None
        for key, is_tombstone, value in zip(
            batch.keyed.keys, batch.keyed.tombstones, batch.values, strict=True
        ):
            assert key is not None
            table.pop(key, None)
            if not is_tombstone:
                table[key] = value
    return table


def test_aborted_records_are_removed_and_replace_nothing() -> None:
    def ended(control_type: str) -> RecordBatch:
        return RecordBatch((), 9, 0, size_bytes=78, is_transactional=True, control_type=control_type)

    def transactional_batch(record: Record) -> RecordBatch:
        batch = keyed_batch(record, producer_id=9)
        return RecordBatch(
            batch.values, 9, 0, size_bytes=batch.size_bytes, is_transactional=True, keyed=batch.keyed
        )

    log, file = log_of(
        keyed_batch(A1),
        transactional_batch(A2),
        ended(ABORT),
        transactional_batch(B1),
        ended(COMMIT),
        keyed_batch(C1),
    )
    assert clean_log(log, file) == [1]
    assert records(file) == {0: "a1", 3: "b1", 5: "c1"}
    assert [batch.base_offset for batch in file.batches if batch.is_control] == [2, 4]
