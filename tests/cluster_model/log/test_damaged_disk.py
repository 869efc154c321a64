"""A log survives torn and damaged batches, power losses, failed directories and old checkpoints.

It is also flushed after a time.
"""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from harrow.cluster_model.events import (
    BatchAppended,
    BatchReplicated,
    BecameLeader,
    CheckpointReverted,
    CheckpointWritten,
    Event,
    LogLost,
    LogTruncated,
)
from harrow.cluster_model.log.disk import (
    NO_DIR,
    RECOVERY_POINT_OFFSET_CHECKPOINT,
    REPLICATION_OFFSET_CHECKPOINT,
    ROTTEN,
    TORN,
    Disk,
)
from harrow.cluster_model.log.log_manager import LogManager
from harrow.cluster_model.log.old_checkpoints import checkpoint_at, epochs_at
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.settings import Value, broker_config, topic_config
from harrow.cluster_model.trace import Clock, Trace
from tests.cluster_model.fakes import SECOND, FakeHost, batch, disk_with

V2_4 = RELEASES["2.4"].behaviours
PARTITION = "t-0"
ABCD = ((0, "a"), (0, "b"), (0, "c"), (0, "d"))


def manager_on(
    disk: Disk, topic: Mapping[str, Value] | None = None, **settings: int
) -> tuple[LogManager, FakeHost]:
    host = FakeHost()
    config = broker_config("2.4", {name.replace("_", "."): value for name, value in settings.items()})
    of_topic = topic_config(topic or {}, config)
    manager = LogManager(1, host, disk, config, lambda _: of_topic, V2_4)
    manager.start()
    return manager, host


def values(disk: Disk) -> str:
    return "".join(value for stored in disk.log_file(PARTITION).batches for value in stored.values)


# Power loss


@pytest.mark.parametrize(
    ("torn_after", "remaining", "torn"),
    [(None, "a", {}), (0, "ab", {1: TORN}), (1, "abc", {2: TORN}), (2, "abcd", {3: TORN}), (3, "abcd", {})],
)
def test_a_torn_write_keeps_a_prefix_of_the_unflushed_batches(
    torn_after: int | None, remaining: str, torn: dict[int, str]
) -> None:
    disk = disk_with(PARTITION, *ABCD, flushed=1)
    disk.log_file(PARTITION).lose_power(torn_after)
    assert (values(disk), disk.log_file(PARTITION).damaged) == (remaining, torn)


def test_recovery_cuts_off_the_torn_batch() -> None:
    disk = disk_with(PARTITION, *ABCD, flushed=1)
    disk.log_file(PARTITION).lose_power(1)
    manager, host = manager_on(disk)
    log = manager.open(PARTITION)
    assert (values(disk), log.log_end_offset) == ("ab", 2)
    assert host.events_named("corruption_cut") == [(1, PARTITION, 2, 3, True)]


# Damage


def disk_with_damage(*, segment_bytes: int = 1 << 30, recovery_point: int = 0, at: int = 1) -> Disk:
    """Return a disk with batches a to d of 50 bytes each, one of them damaged."""
    disk = Disk()
    file = disk.log_file(PARTITION)
    file.segment_bytes = segment_bytes
    for offset, value in enumerate("abcd"):
        file.append(batch(value, at=offset, leader_epoch=0, size=50))
    disk.write_checkpoint(RECOVERY_POINT_OFFSET_CHECKPOINT, {PARTITION: recovery_point})
    file.damage(at)
    return disk


def test_recovery_cuts_at_damage_and_drops_good_batches_after_it() -> None:
    disk = disk_with_damage()
    manager, host = manager_on(disk)
    manager.open(PARTITION)
    assert values(disk) == "a"
    assert host.events_named("corruption_cut") == [(1, PARTITION, 1, 4, False)]


def test_a_log_is_not_recovered_after_a_clean_shutdown() -> None:
    disk = disk_with_damage()
    disk.clean_shutdown_file = True
    manager, host = manager_on(disk)
    manager.open(PARTITION)
    assert (values(disk), disk.log_file(PARTITION).damaged) == ("abcd", {1: ROTTEN})
    assert host.events_named("corruption_cut") == []


@pytest.mark.parametrize(
    ("recovery_point", "remaining"),
    [(0, "a"), (1, "a"), (2, "abcd"), (4, "abcd")],  # two batches in each segment
)
def test_recovery_begins_with_the_segment_of_the_recovery_point(recovery_point: int, remaining: str) -> None:
    disk = disk_with_damage(segment_bytes=100, recovery_point=recovery_point)
    manager_on(disk)[0].open(PARTITION)
    assert values(disk) == remaining


def test_a_log_cut_below_its_recovery_point_gets_a_new_one() -> None:
    disk = disk_with_damage(recovery_point=4)
    manager_on(disk)[0].open(PARTITION)
    assert (
        disk.checkpoint(RECOVERY_POINT_OFFSET_CHECKPOINT, PARTITION)
        <= disk.log_file(PARTITION).log_end_offset
    )


def test_a_read_ends_before_damage_and_reports_it() -> None:
    disk = disk_with_damage(at=2)
    disk.clean_shutdown_file = True
    log = manager_on(disk)[0].open(PARTITION)
    assert [stored.values[0] for stored in log.read(0, 4, 1000)] == ["a", "b"]
    assert log.corrupt_offset(0, 4, 1000) == 2
    assert log.corrupt_offset(0, 4, 100) == -1  # the read ends before the damaged batch
    assert log.corrupt_offset(0, 2, 1000) == -1
    assert log.corrupt_offset(3, 4, 1000) == -1
    assert log.read(2, 4, 1000) == ()
    assert log.corrupt_offset(2, 4, 1000) == 2


def test_truncation_removes_damaged_batches_that_it_cuts_off() -> None:
    disk = disk_with_damage(at=2)
    disk.clean_shutdown_file = True
    log = manager_on(disk)[0].open(PARTITION)
    log.truncate_to(2)
    log.append_as_leader(batch("x"), 1)
    assert disk.log_file(PARTITION).damaged == {}
    assert log.corrupt_offset(0, 3, 1000) == -1


# Segments


def test_a_segment_rolls_when_the_next_batch_would_exceed_its_size() -> None:
    file = Disk().log_file(PARTITION)
    file.segment_bytes = 100
    for offset in range(5):
        file.append(batch("a", at=offset, size=40))
    assert [(segment.base_offset, segment.size_bytes) for segment in file.segments] == [
        (0, 80),
        (2, 80),
        (4, 40),
    ]
    file.truncate_to(3)
    assert [(segment.base_offset, segment.size_bytes) for segment in file.segments] == [(0, 80), (2, 40)]
    file.truncate_to(2)
    assert [(segment.base_offset, segment.size_bytes) for segment in file.segments] == [(0, 80)]


def test_a_complete_segment_is_flushed() -> None:
    manager, host = manager_on(Disk(), {"segment.bytes": 100})
    log = manager.open(PARTITION)
    for _ in range(3):
        log.append_as_leader(batch("a", size=40), 0)
        manager.on_append(manager.log(PARTITION))
    assert log.flushed_offset == 0  # the flush runs in another thread
    host.advance(1)
    assert log.flushed_offset == 2
    assert host.events_named("flush") == [(1, PARTITION, 2)]


# Flushing by time


def test_a_log_is_flushed_after_flush_ms() -> None:
    manager, host = manager_on(Disk(), log_flush_scheduler_interval_ms=1_000, log_flush_interval_ms=3_000)
    log = manager.open(PARTITION)
    host.advance(30 * SECOND)  # the first check comes 30 s after the start
    log.append_as_leader(batch("a"), 0)
    manager.on_append(manager.log(PARTITION))
    host.advance(SECOND)
    assert log.flushed_offset == 1  # the log was not flushed since it was opened
    log.append_as_leader(batch("b"), 0)
    manager.on_append(manager.log(PARTITION))
    host.advance(3 * SECOND - 1)
    assert log.flushed_offset == 1
    host.advance(1)
    assert log.flushed_offset == 2


def test_without_a_scheduler_flush_ms_flushes_at_most_once() -> None:
    manager, host = manager_on(Disk(), {"flush.ms": 1_000})
    log = manager.open(PARTITION)
    log.append_as_leader(batch("a"), 0)
    manager.on_append(manager.log(PARTITION))
    host.advance(30 * SECOND - 1)
    assert log.flushed_offset == 0
    host.advance(1)
    assert log.flushed_offset == 1
    log.append_as_leader(batch("b"), 0)
    manager.on_append(manager.log(PARTITION))
    host.advance(1_000 * SECOND)
    assert log.flushed_offset == 1


def _delays_of(host: FakeHost) -> list[int]:
    """Return the list that will collect the delays of further timers."""
    delays: list[int] = []
    set_timer = host.set_timer

    def noted(delay_us: int, callback: Callable[[Any], None], argument: Any = None) -> None:
        delays.append(delay_us)
        set_timer(delay_us, callback, argument)

    host.set_timer = noted  # type: ignore[method-assign]  # only this object
    return delays


def test_a_quiet_log_costs_no_flush_checks() -> None:
    manager, host = manager_on(Disk(), log_flush_scheduler_interval_ms=1_000)
    log = manager.open(PARTITION)
    host.advance(30 * SECOND)
    delays = _delays_of(host)
    host.advance(4 * SECOND)
    assert SECOND not in delays  # the checkpoints have other periods
    log.append_as_leader(batch("a"), 0)
    manager.on_append(manager.log(PARTITION))
    assert SECOND in delays


# An empty disk


def test_a_lost_disk_keeps_nothing() -> None:
    disk = disk_with(PARTITION, (0, "a"), (1, "b"), flushed=2)
    disk.write_checkpoint(REPLICATION_OFFSET_CHECKPOINT, {PARTITION: 2})
    disk.clean_shutdown_file = True
    disk.lose()
    log = manager_on(disk)[0].open(PARTITION)
    assert (log.log_end_offset, log.high_watermark, log.flushed_offset, log.epochs.entries) == (0, 0, 0, [])
    assert disk.log_file(PARTITION).segments[0].size_bytes == 0


# Old checkpoint files


def traced_checkpoints(*happened: tuple[int, type[Event], tuple[object, ...]]) -> Trace:
    clock = Clock()
    clock.now_us = 0
    trace = Trace(clock)
    for at_us, kind, fields in happened:
        clock.now_us = at_us
        trace.emit(kind, *fields)
    return trace


HW = REPLICATION_OFFSET_CHECKPOINT
HISTORY = (
    (10, CheckpointWritten, (1, HW, ((PARTITION, 2),))),
    (20, CheckpointWritten, (1, HW, ((PARTITION, 4), ("t-1", 1)))),
    (20, CheckpointWritten, (2, HW, ((PARTITION, 9),))),
    (20, CheckpointWritten, (1, RECOVERY_POINT_OFFSET_CHECKPOINT, ((PARTITION, 3),))),
    (30, CheckpointReverted, (1, HW, ((PARTITION, 2), ("t-1", 0)))),
    (40, LogLost, (1, PARTITION, 0, 4)),
)


@pytest.mark.parametrize(
    ("at_us", "expected"),
    [
        (9, {}),
        (10, {PARTITION: 2}),
        (25, {PARTITION: 4, "t-1": 1}),
        (30, {PARTITION: 2, "t-1": 0}),
        (40, {}),
    ],
)
def test_the_trace_has_the_offsets_of_a_checkpoint_at_any_time(at_us: int, expected: dict[str, int]) -> None:
    assert checkpoint_at(traced_checkpoints(*HISTORY).events, 1, HW, at_us) == expected


EPOCHS = (
    (10, BecameLeader, (1, PARTITION, 0, 0, (1,))),
    (20, BatchAppended, (1, PARTITION, 0, 0, -1, -1, ("a", "b"))),
    (30, BatchReplicated, (1, PARTITION, 2, 3, -1, -1, ("c",))),
    (30, BatchReplicated, (2, PARTITION, 0, 7, -1, -1, ("x",))),
    (40, LogTruncated, (1, PARTITION, 3, 2, "leader epoch")),
    (50, BecameLeader, (1, PARTITION, 5, 2, (1,))),
)


@pytest.mark.parametrize(
    ("at_us", "expected"), [(10, [(0, 0)]), (35, [(0, 0), (3, 2)]), (40, [(0, 0)]), (50, [(0, 0), (5, 2)])]
)
def test_the_trace_has_the_leader_epochs_of_a_checkpoint_at_any_time(
    at_us: int, expected: list[tuple[int, int]]
) -> None:
    assert epochs_at(traced_checkpoints(*EPOCHS).events, 1, at_us, from_elections=True) == {
        PARTITION: expected
    }


def test_before_kip_279_an_election_adds_no_entry() -> None:
    assert epochs_at(traced_checkpoints(*EPOCHS).events, 1, 50, from_elections=False) == {PARTITION: [(0, 0)]}


@pytest.mark.parametrize(
    ("was_shut_down", "entries"),
    [(True, []), (False, [(1, 1), (2, 3)])],  # recovery adds no entry for epoch 0
)
def test_recovery_completes_the_leader_epochs(was_shut_down: bool, entries: list[tuple[int, int]]) -> None:
    disk = disk_with(PARTITION, (0, "a"), (1, "b"), (1, "c"), (2, "d"))
    disk.epoch_checkpoint(PARTITION).clear()
    disk.stale_epochs[PARTITION] = None
    disk.clean_shutdown_file = was_shut_down
    log = manager_on(disk)[0].open(PARTITION)
    assert log.epochs.entries == entries


# Log directories


def test_a_new_log_goes_to_the_directory_with_the_fewest_logs_and_stays_there() -> None:
    disk = Disk(log_dirs=2)
    assert [disk.place(name) for name in ("t-0", "t-1", "t-2", "t-0")] == [0, 1, 0, 0]
    disk.failed_dirs[1] = None
    assert [disk.place(name) for name in ("t-3", "t-1")] == [0, 1]


def failing(*, log_dirs: int = 2) -> tuple[LogManager, FakeHost, Disk, list[int]]:
    """Return a manager with t-0 in a failed directory and t-1 in another, and the failures."""
    disk = Disk(log_dirs=log_dirs)
    manager, host = manager_on(disk)
    failed: list[int] = []
    manager.on_dir_failure = failed.append
    for name in ("t-0", "t-1"):
        manager.open(name).append_as_leader(batch("a"), 0)
    disk.failed_dirs[0] = None
    return manager, host, disk, failed


def test_a_lookup_assigns_no_log_directory() -> None:
    disk = Disk(log_dirs=2)
    assert [disk.dir_of("t-0"), disk.dir_of("t-0"), disk.is_writable("t-0")] == [NO_DIR, NO_DIR, True]
    assert not disk.dir_by_partition


def test_a_failed_directory_goes_offline_with_the_next_write() -> None:
    manager, host, _, failed = failing()
    assert (manager.can_write("t-1"), manager.is_offline("t-0")) == (True, False)
    assert not manager.can_write("t-0")
    assert failed == []  # another thread handles the failure
    host.advance(1)
    assert not manager.can_write("t-0")
    host.advance(10 * SECOND)
    assert failed == [0]
    assert (manager.is_offline("t-0"), manager.is_offline("t-1"), manager.is_halting) == (True, False, False)
    assert manager.close_dir(0) == ("t-0",)


def test_a_quiet_broker_notices_a_failed_directory_at_its_next_checkpoint() -> None:
    _, host, _, failed = failing()
    host.advance(5 * SECOND)
    assert failed == [0]


def test_nothing_is_flushed_to_a_directory_that_has_failed() -> None:
    manager, host, disk, failed = failing()
    manager.flush_all()
    host.advance(1)
    assert [disk.log_file(name).flushed_offset for name in ("t-0", "t-1")] == [0, 1]
    assert failed == [0]


def test_a_broker_without_another_directory_halts() -> None:
    manager, _, _, _ = failing(log_dirs=1)
    assert not manager.can_write("t-0")
    assert manager.is_halting


def test_a_failed_directory_is_offline_from_the_start_until_a_repair() -> None:
    _, _, disk, _ = failing()
    manager, _ = manager_on(disk)
    assert (manager.is_offline("t-0"), manager.is_offline("t-1")) == (True, False)
    disk.failed_dirs.clear()
    assert manager.is_offline("t-0")  # until the broker restarts
    manager, _ = manager_on(disk)
    assert not manager.is_offline("t-0")


def test_a_log_in_a_failed_directory_is_recovered_after_a_shutdown() -> None:
    manager, _, disk, _ = failing()
    manager.shutdown()
    disk.failed_dirs.clear()
    for name in ("t-0", "t-1"):
        disk.log_file(name).damage(0)
    manager, host = manager_on(disk)
    for name in ("t-0", "t-1"):
        manager.open(name)
    assert host.events_named("corruption_cut") == [(1, "t-0", 0, 1, False)]
