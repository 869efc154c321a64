"""A full disk fails the append that does not fit, until deletions make room."""

from collections.abc import Mapping

import pytest

from harrow.cluster_model.log.disk import NO_DIR, Disk
from harrow.cluster_model.log.log_manager import LogManager
from harrow.cluster_model.log.record_batch import RecordBatch
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.settings import Value, broker_config, topic_config
from tests.cluster_model.fakes import SECOND, FakeHost

P, Q = "t-0", "t-1"


def manager_on(disk: Disk, settings: Mapping[str, Value] | None = None) -> tuple[LogManager, FakeHost]:
    host = FakeHost()
    config = broker_config("2.4", settings or {})
    manager = LogManager(
        1, host, disk, config, lambda _: topic_config({}, config), RELEASES["2.4"].behaviours
    )
    manager.start()
    return manager, host


def append(manager: LogManager, name: str, size: int) -> bool:
    """Append a batch as a leader does, if there is room."""
    batch = RecordBatch(("x",), size_bytes=size)
    if not manager.can_append(name, (batch,)):
        return False
    log = manager.log(name)
    log.append_as_leader(batch, 0)
    log.update_high_watermark(log.log_end_offset)
    manager.on_append(log)
    return True


@pytest.mark.parametrize(
    ("room", "sizes", "fitting"),
    [
        (0, [1], [False]),
        (10, [10, 1], [True, False]),
        (10, [11, 1], [False, False]),  # a directory that failed once is not tried again
        (10, [4, 4, 4], [True, True, False]),
    ],
)
def test_a_disk_accepts_appends_while_it_has_room(room: int, sizes: list[int], fitting: list[bool]) -> None:
    disk = Disk()
    manager, _ = manager_on(disk)
    manager.open(P)
    disk.limit_room(0, room)
    assert [append(manager, P, size) for size in sizes] == fitting
    assert list(manager.offline_dirs) == [0]


def test_the_logs_of_a_directory_share_its_room() -> None:
    disk = Disk(log_dirs=2)
    manager, _ = manager_on(disk)
    names = [P, Q, "t-2"]  # a new log goes to the directory with the fewest logs
    for name in names:
        manager.open(name)
    assert [disk.dir_of(name) for name in (*names, "another-0")] == [0, 1, 0, NO_DIR]
    disk.limit_room(0, 10)
    assert append(manager, P, 6)
    assert append(manager, Q, 100)
    assert not append(manager, "t-2", 6)
    assert append(manager, Q, 100)
    assert list(manager.offline_dirs) == [0]


@pytest.mark.parametrize(("room", "place"), [(5, 0), (6, 1)])
def test_a_log_moves_only_to_a_directory_with_room_and_makes_room_where_it_was(room: int, place: int) -> None:
    disk = Disk(log_dirs=2)
    manager, _ = manager_on(disk)
    manager.open(P)
    disk.limit_room(0, 10)
    disk.limit_room(1, room)
    assert append(manager, P, 6)
    disk.move(P, 1)
    assert disk.dir_of(P) == place
    assert [*disk.failed_dirs] == [1] * (place == 0)
    assert [limit.free_bytes for limit in disk.room_limits[0]] == [10 if place else 4]


def test_a_truncation_makes_room() -> None:
    disk = Disk()
    manager, _ = manager_on(disk)
    manager.open(P)
    disk.limit_room(0, 10)
    assert append(manager, P, 6)
    manager.truncate(P, 0, "leader epoch")
    assert append(manager, P, 10)


def test_retention_makes_room() -> None:
    disk = Disk()
    settings = {"log.retention.bytes": 0, "log.segment.bytes": 14, "log.retention.check.interval.ms": 1_000}
    manager, host = manager_on(disk, settings)
    manager.open(P)
    disk.limit_room(0, 20)
    assert append(manager, P, 14)
    host.advance(31 * SECOND)
    assert [limit.free_bytes for limit in disk.room_limits[0]] == [20]
    assert append(manager, P, 14)


def test_a_repair_makes_room() -> None:
    disk = Disk()
    disk.limit_room(0, 5)
    disk.limit_room(1, 0)
    disk.repair()
    assert (disk.room_limits, disk.failed_dirs) == ({}, {})


def test_a_deleted_log_makes_room_on_its_own_disk() -> None:
    disk = Disk(log_dirs=2)
    manager, _ = manager_on(disk)
    for name in (P, Q):
        manager.open(name)
    for log_dir in range(2):
        disk.limit_room(log_dir, 10)
    assert append(manager, P, 6)
    assert append(manager, Q, 6)
    manager.delete(P)
    manager.open("t-2")
    assert append(manager, "t-2", 10)
    assert not append(manager, Q, 10)


def test_a_power_loss_makes_room() -> None:
    disk = Disk()
    manager, _ = manager_on(disk)
    manager.open(P)
    disk.limit_room(0, 10)
    assert append(manager, P, 6)
    assert disk.lose_power() == [(P, 0, 1)]
    manager, _ = manager_on(disk)
    manager.open(P)
    assert append(manager, P, 10)


def test_a_cut_by_recovery_makes_room() -> None:
    disk = Disk()
    manager, _ = manager_on(disk)
    manager.open(P)
    disk.limit_room(0, 10)
    assert append(manager, P, 6)
    disk.log_file(P).damage(0)
    manager, host = manager_on(disk)
    manager.open(P)
    assert host.events_named("corruption_cut")
    assert append(manager, P, 10)


@pytest.mark.parametrize(
    ("limits", "lifted", "failed"),
    [
        ([0, 0], 0, True),
        ([0, 100], 100, True),
        ([0, 100], 0, False),
        ([0, 5], 0, False),
    ],
)
def test_lifting_one_limit_leaves_the_others_in_force(limits: list[int], lifted: int, failed: bool) -> None:
    disk = Disk()
    disk.place(P)
    for room in limits:
        disk.limit_room(0, room)
    disk.take_room(P, 4)
    disk.lift_limit(0, lifted)
    assert disk.is_writable(P) != failed
    disk.take_room(P, 2)
    assert disk.is_writable(P) == (not failed and 5 not in limits)


def test_lifting_a_limit_after_a_repair_changes_nothing() -> None:
    disk = Disk()
    disk.limit_room(0, 0)
    disk.repair()
    disk.lift_limit(0, 0)
    disk.slow_down(7)
    disk.repair()
    disk.speed_up(7)
    assert (disk.failed_dirs, disk.write_us) == ({}, 0)


def test_delays_of_a_disk_add_up_and_end_one_by_one() -> None:
    disk = Disk()
    waits = []
    for change in (disk.slow_down, disk.slow_down, disk.speed_up, disk.speed_up):
        change(5)
        waits.append(disk.write_us)
    assert waits == [5, 10, 5, 0]
