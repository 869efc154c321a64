"""A disk that fills up: what fits, what fails, and what makes room."""

from collections.abc import Mapping

import pytest

from harrow.cluster_model.log.disk import Disk
from harrow.cluster_model.log.log_manager import LogManager
from harrow.cluster_model.log.record_batch import RecordBatch
from harrow.cluster_model.release import RELEASES
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
    """Append a batch as a leader does, if there is room for it."""
    if not manager.can_append(name, size):
        return False
    log = manager.log(name)
    log.append_as_leader(RecordBatch(("x",), size_bytes=size), 0)
    log.update_high_watermark(log.log_end_offset)
    manager.appended(name)
    return True


@pytest.mark.parametrize(
    ("room", "sizes", "fit"),
    [
        (0, [1], [False]),
        (10, [10, 1], [True, False]),
        (10, [11, 1], [False, False]),  # who has failed once is not tried again
        (10, [4, 4, 4], [True, True, False]),
    ],
)
def test_a_disk_takes_what_it_has_room_for(room: int, sizes: list[int], fit: list[bool]) -> None:
    disk = Disk()
    manager, _ = manager_on(disk)
    manager.open(P)
    disk.limit_room(0, room)
    assert [append(manager, P, size) for size in sizes] == fit
    assert list(manager.offline_dirs) == [0]


def test_the_logs_of_a_directory_share_its_room() -> None:
    disk = Disk(log_dirs=2)
    manager, _ = manager_on(disk)
    names = [P, Q, "t-2"]  # a new log goes where there are the fewest
    for name in names:
        manager.open(name)
    assert [disk.dir_of(name) for name in names] == [0, 1, 0]
    disk.limit_room(0, 10)
    assert append(manager, P, 6)
    assert append(manager, Q, 100)
    assert not append(manager, "t-2", 6)
    assert append(manager, Q, 100)
    assert list(manager.offline_dirs) == [0]


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
    assert disk.room_bytes == {0: 20}
    assert append(manager, P, 14)


def test_room_is_made_by_whoever_repairs_the_disk() -> None:
    disk = Disk()
    disk.limit_room(0, 5)
    disk.limit_room(1, 0)
    disk.repair()
    assert (disk.room_bytes, disk.failed_dirs) == ({}, {})
