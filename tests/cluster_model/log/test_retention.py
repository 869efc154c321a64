"""Retention deletes old segments, raises the log start, and keeps epochs and producer states."""

from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harrow.cluster_model.log.disk import LOG_START_OFFSET_CHECKPOINT, Disk, LogFile
from harrow.cluster_model.log.leader_epoch_cache import LeaderEpochCache
from harrow.cluster_model.log.log_manager import LogManager
from harrow.cluster_model.log.producer_state import ProducerStates
from harrow.cluster_model.log.record_batch import RecordBatch
from harrow.cluster_model.log.unified_log import (
    LEADER_LOG_START,
    RETENTION_BYTES,
    RETENTION_MS,
    UnifiedLog,
)
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.settings import TopicConfig, Value, broker_config, topic_config
from tests.cluster_model.fakes import SECOND, FakeHost
from tests.plain_model import patches_the_model

V2_4 = RELEASES["2.4"].behaviours
PARTITION = "t-0"
MS = 1_000
BROKER_2_4 = broker_config("2.4", {})


def topic(**settings: Value) -> TopicConfig:
    """Return a topic's settings. By default retention deletes nothing."""
    options = {"retention.ms": -1, **{name.replace("_", "."): value for name, value in settings.items()}}
    return topic_config(options, BROKER_2_4)


def batch_of_size(
    value: str, size: int, at_us: int, sequence: int = -1, producer_id: int = -1
) -> RecordBatch:
    epoch = 0 if producer_id >= 0 else -1
    return RecordBatch((value,), producer_id, epoch, sequence, size_bytes=size, max_timestamp_us=at_us)


def log_of(*batches: tuple[int, int], config: TopicConfig, hw: int | None = None) -> UnifiedLog:
    """Return a log of one-record batches, each as (size, time)."""
    disk = Disk()
    file = disk.log_file(PARTITION)
    file.segment_bytes, file.segment_us = config.segment_bytes, config.segment_us
    log = UnifiedLog(PARTITION, disk, V2_4)
    for number, (size, at_us) in enumerate(batches):
        log.append_as_leader(batch_of_size(f"m{number}", size, at_us), 0)
    log.update_high_watermark(len(batches) if hw is None else hw)
    return log


def base_offsets(file: LogFile) -> list[int]:
    return [segment.base_offset for segment in file.segments]


# Segments


@pytest.mark.parametrize(
    ("times_us", "expected"),
    [
        ((0, 1, 2), [0]),
        ((0, 10, 11, 12), [0, 2]),
        ((0, 11, 12, 30), [0, 1, 3]),
        ((0, 100, 50), [0, 1]),  # an older batch joins the segment
    ],
)
def test_a_segment_rolls_segment_ms_after_its_first_batch(
    times_us: tuple[int, ...], expected: list[int]
) -> None:
    """`LogSegment.timeWaitedForRoll` uses timestamps, not the clock."""
    disk = Disk()
    file = disk.log_file(PARTITION)
    file.segment_us = 10
    log = UnifiedLog(PARTITION, disk, V2_4)
    for number, at_us in enumerate(times_us):
        log.append_as_leader(batch_of_size(f"m{number}", 10, at_us), 0)
    assert base_offsets(file) == expected


def test_an_emptied_segment_takes_its_age_from_the_next_batch() -> None:
    disk = Disk()
    disk.log_file(PARTITION).segment_us = 10
    log = UnifiedLog(PARTITION, disk, V2_4)
    log.append_as_leader(batch_of_size("a", 10, 0), 0)
    log.truncate_to(0)
    log.append_as_leader(batch_of_size("b", 10, 100), 0)
    log.append_as_leader(batch_of_size("c", 10, 105), 0)
    assert base_offsets(disk.log_file(PARTITION)) == [0]


def test_truncating_to_a_log_start_inside_a_batch_empties_the_log() -> None:
    """The log start does not fall: a follower then takes the leader's whole batch (KAFKA-6975)."""
    disk = Disk()
    log = UnifiedLog(PARTITION, disk, V2_4)
    for values in (("a", "b"), ("c", "d", "e")):
        log.append_as_leader(RecordBatch(values, -1, -1, size_bytes=20), 0)
    log.update_high_watermark(5)
    assert log.increment_log_start_offset(3)
    log.truncate_to(3)
    assert (log.log_start_offset, log.log_end_offset) == (3, 3)
    disk.write_checkpoint(LOG_START_OFFSET_CHECKPOINT, {PARTITION: 3})
    reopened = UnifiedLog(PARTITION, disk, V2_4)
    assert (reopened.log_start_offset, reopened.log_end_offset, reopened.batches) == (3, 3, [])


# Deleted segments

ONE_EACH = {"segment_bytes": 14}


@pytest.mark.parametrize(
    ("now_us", "expected_start"), [(10 * MS, 0), (10 * MS + 1, 1), (12 * MS + 1, 3), (99 * MS, 3)]
)
def test_retention_ms_deletes_segments_whose_latest_record_is_older(now_us: int, expected_start: int) -> None:
    config = topic(retention_ms=10, **ONE_EACH)
    log = log_of((14, 0), (14, MS), (14, 2 * MS), config=config)
    log.delete_old_segments(now_us, config)
    assert log.log_start_offset == expected_start
    assert log.read(expected_start, 3, 100) == tuple(log.batches)


@pytest.mark.parametrize(
    ("limit", "expected_start"), [(42, 0), (41, 0), (28, 1), (27, 1), (14, 2), (0, 3), (-1, 0)]
)
def test_retention_bytes_deletes_while_the_rest_reaches_the_limit(limit: int, expected_start: int) -> None:
    config = topic(retention_bytes=limit, **ONE_EACH)
    log = log_of((14, 0), (14, 0), (14, 0), config=config)
    deleted = log.delete_old_segments(10**12, config)
    assert log.log_start_offset == expected_start
    assert deleted == (
        [(RETENTION_BYTES, expected_start, 42 - 14 * expected_start)] if expected_start else []
    )


@pytest.mark.parametrize(("waits", "expected_start"), [(True, 1), (False, 3)])
def test_since_kafka_5634_retention_keeps_uncommitted_records(waits: bool, expected_start: int) -> None:
    config = topic(retention_ms=10, **ONE_EACH)
    log = log_of((14, 0), (14, 0), (14, 0), config=config, hw=1)
    log._switches = V2_4.with_switches(retention_waits_for_hw=waits).log
    log.delete_old_segments(99 * MS, config)
    assert (log.log_start_offset, log.high_watermark) == (expected_start, expected_start)


def test_retention_keeps_an_old_record_after_a_recent_one() -> None:
    config = topic(retention_ms=10)
    log = log_of((14, 90 * MS), (14, 0), config=config)
    log.delete_old_segments(99 * MS, config)
    assert log.log_start_offset == 0


def test_a_log_whose_segments_were_all_deleted_continues_at_its_end() -> None:
    config = topic(retention_ms=10)
    log = log_of((14, 0), (14, 0), config=config)
    assert log.delete_old_segments(99 * MS, config) == [(RETENTION_MS, 2, 0)]
    assert (log.log_start_offset, log.log_end_offset, list(log.batches)) == (2, 2, [])
    assert log.delete_old_segments(99 * MS, config) == []  # an empty active segment is not deleted again
    assert log.append_as_leader(batch_of_size("x", 14, 99 * MS), 3).base_offset == 2
    assert log.epochs.entries == [(0, 2), (3, 2)][1:]


def test_a_raised_log_start_deletes_only_whole_segments() -> None:
    config = topic(segment_bytes=28)
    log = log_of((14, 0), (14, 0), (14, 0), (14, 0), config=config)
    assert log.increment_log_start_offset(3)
    assert not log.increment_log_start_offset(3)
    assert [stored.base_offset for stored in log.batches] == [0, 1, 2, 3]
    assert log.delete_old_segments(0, config) == []  # the log start was higher before
    assert [stored.base_offset for stored in log.batches] == [2, 3]
    assert log.log_start_offset == 3


def test_a_log_start_does_not_exceed_the_high_watermark() -> None:
    log = log_of((14, 0), (14, 0), config=topic(), hw=1)
    assert not log.increment_log_start_offset(2)
    assert log.log_start_offset == 0


def test_a_truncation_below_the_first_segment_drops_everything() -> None:
    """`Log.truncateTo`: the log restarts at that offset."""
    config = topic(retention_ms=10, **ONE_EACH)
    log = log_of((14, 0), (14, 0), (14, 98 * MS), config=config)
    log.delete_old_segments(99 * MS, config)
    assert log.log_start_offset == 2
    assert log.truncate_to(1)
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (1, 1, 1)
    assert (list(log.batches), log.epochs.entries) == ([], [])


# Properties


@dataclass(frozen=True, slots=True)
class Step:
    """An append of a producer after a gap, with or without a retention check after it."""

    size: int
    gap_ms: int
    producer_id: int
    checks_retention: bool


STEPS = st.lists(
    st.builds(Step, st.integers(1, 60), st.integers(0, 30), st.integers(0, 2), st.booleans()), max_size=40
)
LIMITS = st.sampled_from([-1, 0, 20, 50])


@given(STEPS, LIMITS, st.sampled_from([-1, 0, 30, 100]), st.integers(14, 120), st.integers(0, 3))
def test_retention_deletes_exactly_the_due_and_committed_prefix(
    steps: list[Step], retention_ms: int, retention_bytes: int, segment_bytes: int, hw_lag: int
) -> None:
    config = topic(retention_ms=retention_ms, retention_bytes=retention_bytes, segment_bytes=segment_bytes)
    log = log_of(config=config)
    log._file.segment_bytes = config.segment_bytes
    appended: list[RecordBatch] = []
    sequences = {0: 0, 1: 0, 2: 0}
    now_us = 0
    for number, step in enumerate(steps):
        now_us += step.gap_ms * MS
        sent = batch_of_size(f"m{number}", step.size, now_us, sequences[step.producer_id], step.producer_id)
        sequences[step.producer_id] += 1
        result = log.append_as_leader(sent, number // 5)
        assert result.batch is not None
        appended.append(result.batch)
        log.update_high_watermark(max(log.high_watermark, log.log_end_offset - hw_lag))
        if step.checks_retention:
            now_us += 25 * MS
            before = list(log.batches)
            log.delete_old_segments(now_us, config)
            deleted, remaining = before[: len(before) - len(log.batches)], list(log.batches)
            size = sum(batch.size_bytes for batch in remaining)
            assert remaining == before[len(deleted) :]
            for batch in deleted:
                assert batch.next_offset <= log.high_watermark
                is_old = 0 <= retention_ms * MS < now_us - batch.max_timestamp_us
                assert is_old or 0 <= retention_bytes <= size
        # The log is a suffix of the appends, with the epochs and producers of all of them.
        assert log.log_start_offset == (log.batches[0].base_offset if log.batches else log.log_end_offset)
        assert list(log.batches) == appended[log.log_start_offset :]
        assert log.log_start_offset <= log.high_watermark <= log.log_end_offset
        assert log.epochs.latest_epoch() == number // 5
        assert all(start >= log.log_start_offset for _, start in log.epochs.entries[1:])
    # A restart still knows the producers of deleted records (KAFKA-7190).
    expected = {number: list(entry.batches) for number, entry in log.producers.entries.items()}
    log.producers.rebuild(log._file.batches, log._file.producer_snapshots)
    assert {number: list(entry.batches) for number, entry in log.producers.entries.items()} == expected


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(1, 6)), max_size=8), st.integers(0, 40))
def test_truncation_from_the_start_keeps_the_answers_that_replicas_can_ask_for(
    gaps: list[tuple[int, int]], start: int
) -> None:
    cache, epoch, offset = LeaderEpochCache(), 0, 0
    for skipped, records in gaps:
        cache.assign(epoch, offset)
        epoch, offset = epoch + skipped, offset + records
    end = max(offset, start)
    epochs = range(epoch + 1)
    before = {requested: cache.end_offset_for(requested, end) for requested in epochs}
    cache.truncate_from_start(start)
    for requested in epochs:
        answered, end_offset = before[requested]
        if end_offset > start:  # epochs that a replica with records after the log start may request
            assert cache.end_offset_for(requested, end) in ((answered, end_offset), (requested, end_offset))


def test_a_producer_snapshot_outlives_its_records() -> None:
    states = ProducerStates(V2_4)
    batches = [batch_of_size(f"m{n}", 10, 0, n, 7).stored_at(n, 0) for n in range(4)]
    snapshot = states.snapshot_at(2, batches, [])
    assert snapshot.offset == 2
    states.rebuild(batches[2:], [snapshot])
    assert list(states.entries[7].batches) == [(n, n, n) for n in range(4)]


# The broker's task


def manager_of(disk: Disk, settings: Mapping[str, Value]) -> tuple[LogManager, FakeHost]:
    host = FakeHost()
    config = broker_config("2.4", settings)
    manager = LogManager(1, host, disk, config, lambda _: topic_config({}, config), V2_4)
    manager.start()
    return manager, host


def append(manager: LogManager, name: str, value: str, at_us: int) -> None:
    log = manager.log(name)
    log.append_as_leader(batch_of_size(value, 14, at_us), 0)
    log.update_high_watermark(log.log_end_offset)
    manager.on_append(manager.log(name))


SHORT_RETENTION: Mapping[str, Value] = {
    "log.retention.ms": 5_000,
    "log.segment.bytes": 14,
    "log.retention.check.interval.ms": 10_000,
}


def test_a_broker_checks_retention_30_s_after_its_start_and_then_periodically() -> None:
    manager, host = manager_of(Disk(), SHORT_RETENTION)
    manager.open(PARTITION)
    append(manager, PARTITION, "a", 0)
    host.advance(30 * SECOND - 1)
    assert host.events_named("log_start") == []
    host.advance(1)
    assert host.events_named("log_start") == [(1, PARTITION, 1, RETENTION_MS, 0)]
    append(manager, PARTITION, "b", 30 * SECOND)
    append(manager, PARTITION, "c", 36 * SECOND)
    host.advance(10 * SECOND)
    assert host.events_named("log_start")[1:] == [(1, PARTITION, 2, RETENTION_MS, 14)]


def test_uncommitted_segments_are_deleted_by_a_later_check() -> None:
    manager, host = manager_of(Disk(), {**SHORT_RETENTION, "log.retention.ms": -1, "log.retention.bytes": 0})
    log = manager.open(PARTITION)
    log.append_as_leader(batch_of_size("a", 14, 0), 0)
    manager.on_append(manager.log(PARTITION))
    host.advance(35 * SECOND)
    assert host.events_named("log_start") == []
    log.update_high_watermark(1)
    host.advance(5 * SECOND)
    assert host.events_named("log_start") == [(1, PARTITION, 1, RETENTION_BYTES, 0)]


@patches_the_model
def test_a_retention_check_skips_logs_without_due_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    """With 500 partitions and a week of retention, checks cost nothing until a segment is due."""
    never = 10**12
    manager, host = manager_of(
        Disk(),
        {
            "log.retention.check.interval.ms": 1,
            "replica.high.watermark.checkpoint.interval.ms": never,
            "log.flush.offset.checkpoint.interval.ms": never,
        },
    )
    for number in range(500):
        manager.open(f"t-{number}")
        append(manager, f"t-{number}", "a", 0)
    checked: list[str] = []
    monkeypatch.setattr(manager, "_delete_segments_of", lambda name, _: checked.append(name))
    host.advance(3_600 * SECOND)
    assert checked == []
    host.advance(7 * 24 * 3_600 * SECOND)
    assert len(checked) == 500


def test_a_log_start_within_a_segment_survives_a_restart_thanks_to_its_checkpoint() -> None:
    disk = Disk()
    manager, host = manager_of(disk, {})
    manager.open(PARTITION)
    for number in range(3):
        append(manager, PARTITION, f"m{number}", 0)
    manager.increment_log_start(PARTITION, 2)
    assert host.events_named("log_start") == [(1, PARTITION, 2, LEADER_LOG_START, 42)]
    assert disk.checkpoint(LOG_START_OFFSET_CHECKPOINT, PARTITION) == 0
    host.advance(60 * SECOND)
    assert disk.checkpoint(LOG_START_OFFSET_CHECKPOINT, PARTITION) == 2
    assert UnifiedLog(PARTITION, disk, V2_4).log_start_offset == 2


def test_a_log_that_ends_before_its_checkpointed_start_restarts_at_that_start() -> None:
    disk = Disk()
    disk.write_checkpoint(LOG_START_OFFSET_CHECKPOINT, {PARTITION: 5})
    log = UnifiedLog(PARTITION, disk, V2_4)
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (5, 5, 5)


def test_nothing_is_deleted_from_an_unwritable_log_directory() -> None:
    disk = Disk()
    manager, host = manager_of(disk, SHORT_RETENTION)
    manager.open(PARTITION)
    append(manager, PARTITION, "a", 0)
    disk.failed_dirs[0] = None
    host.advance(31 * SECOND)
    assert (host.events_named("log_start"), disk.log_file(PARTITION).segments[0].base_offset) == ([], 0)
    assert list(manager.offline_dirs) == [0]


def reopen(disk: Disk) -> tuple[FakeHost, LogManager]:
    """Return the logs of a restarted broker with t-0 open."""
    manager, host = manager_of(disk, {})
    manager.open(PARTITION)
    return host, manager


def manager_with_log_start(offset: int, *, checkpointed: bool = True) -> tuple[LogManager, FakeHost, Disk]:
    """Return the logs of a broker with four records in t-0 that adopted its leader's log start."""
    disk = Disk()
    manager, host = manager_of(disk, {})
    manager.open(PARTITION)
    for number in range(4):
        append(manager, PARTITION, f"m{number}", 0)
    manager.increment_log_start(PARTITION, offset)
    if checkpointed:
        host.advance(60 * SECOND)
    return manager, host, disk


def test_a_log_start_without_a_checkpoint_is_lost_and_traced() -> None:
    _, _, disk = manager_with_log_start(3, checkpointed=False)
    host, manager = reopen(disk)
    assert manager.log(PARTITION).log_start_offset == 0
    assert host.events_named("log_start_reverted") == [(1, PARTITION, 3, 0)]
    host, _ = reopen(disk)
    assert host.events_named("log_start_reverted") == []


ALL_EPOCH_ENTRIES = [(0, 0), (1, 1), (2, 5)]


def disk_with_raised_log_start(offset: int, *, checkpointed: bool = False) -> Disk:
    """Return the disk of a broker that raised its log start, by default without a checkpoint of it.

    Its batches have the offsets 0, 1 to 3, 4, 5 and 6, and the epochs 0, 1, 1, 2 and 2.
    """
    disk = Disk()
    log = UnifiedLog(PARTITION, disk, V2_4)
    for values, epoch in (("a", 0), ("bcd", 1), ("e", 1), ("f", 2), ("g", 2)):
        log.append_as_leader(RecordBatch(tuple(values), size_bytes=len(values)), epoch)
    log.update_high_watermark(7)
    assert log.epochs.entries == ALL_EPOCH_ENTRIES
    assert log.increment_log_start_offset(offset)
    if checkpointed:
        disk.write_checkpoint(LOG_START_OFFSET_CHECKPOINT, {PARTITION: offset})
    return disk


RECOVERS_EPOCHS = V2_4.with_switches(recovery_restores_earlier_epochs=True)


@pytest.mark.parametrize(
    ("offset", "entries"),
    [
        (1, [(1, 1), (2, 5)]),
        (3, [(1, 3), (2, 5)]),
        (4, [(1, 4), (2, 5)]),
        (5, [(2, 5)]),
        (6, [(2, 6)]),
        (7, []),
    ],
)
def test_a_log_with_a_lost_log_start_lacks_epochs_unless_they_are_recovered(
    offset: int, entries: list[tuple[int, int]]
) -> None:
    as_released = UnifiedLog(PARTITION, disk_with_raised_log_start(offset), V2_4)
    assert (as_released.log_start_offset, as_released.epochs.entries) == (0, entries)
    disk = disk_with_raised_log_start(offset)
    recovered = UnifiedLog(PARTITION, disk, RECOVERS_EPOCHS)
    assert (recovered.log_start_offset, recovered.epochs.entries) == (0, ALL_EPOCH_ENTRIES)
    assert disk.epoch_checkpoint(PARTITION) == ALL_EPOCH_ENTRIES


def test_recovered_epochs_give_followers_the_right_end_of_an_epoch() -> None:
    answers = [
        UnifiedLog(PARTITION, disk_with_raised_log_start(5), behaviours).epochs.end_offset_for(0, 7)
        for behaviours in (V2_4, RECOVERS_EPOCHS)
    ]
    assert answers == [(0, 5), (0, 1)]


@pytest.mark.parametrize("offset", range(1, 7))
def test_a_checkpointed_log_start_needs_no_epoch_recovery(offset: int) -> None:
    as_released = UnifiedLog(PARTITION, disk_with_raised_log_start(offset, checkpointed=True), V2_4)
    recovered = UnifiedLog(PARTITION, disk_with_raised_log_start(offset, checkpointed=True), RECOVERS_EPOCHS)
    assert recovered.log_start_offset == offset
    assert recovered.epochs.entries == as_released.epochs.entries
    assert recovered.epochs.entries[0][1] == offset


def test_epochs_lost_for_another_reason_are_not_recovered() -> None:
    disk = disk_with_raised_log_start(1, checkpointed=True)
    disk.epoch_checkpoint(PARTITION).clear()
    assert UnifiedLog(PARTITION, disk, RECOVERS_EPOCHS).epochs.entries == []


def test_a_log_start_checkpoint_beyond_the_log_end_is_reported_before_the_log_opens() -> None:
    _, _, disk = manager_with_log_start(3)
    disk.log_file(PARTITION).flushed_offset = 2
    assert disk.lose_power() == [(PARTITION, 2, 4)]
    host, manager = reopen(disk)
    log = manager.log(PARTITION)
    assert (log.log_start_offset, log.log_end_offset) == (3, 3)
    assert host.events_named("log_start") == [(1, PARTITION, 3, "log-start-offset-checkpoint", 0)]
    kinds = [event[1] for event in host.events]
    assert kinds.index("log_start") < kinds.index("recover")


def test_a_log_start_undone_by_a_truncation_is_removed_from_the_checkpoint_within_a_minute() -> None:
    manager, host, disk = manager_with_log_start(3)
    manager.log(PARTITION).high_watermark = 1
    manager.truncate(PARTITION, 1, "leader epoch")
    assert disk.checkpoint(LOG_START_OFFSET_CHECKPOINT, PARTITION) == 3
    host.advance(60 * SECOND)
    assert disk.checkpoint(LOG_START_OFFSET_CHECKPOINT, PARTITION) == 1
