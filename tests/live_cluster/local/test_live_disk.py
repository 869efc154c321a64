"""A broker's log folder yields trace events and can lose its power or its disk."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harrow.cluster_model import events
from harrow.cluster_model.trace import Clock, Trace
from harrow.live_cluster.local.live_disk import LiveDisk
from harrow.live_cluster.local.storage.checkpoint_file import HIGH_WATERMARKS, LEADER_EPOCHS, RECOVERY_POINTS
from harrow.live_cluster.local.storage.segments import stored_log
from tests.live_cluster.local.storage.test_segments import stored_batch

NO_PARTITIONS: frozenset[str] = frozenset()
WRITEBACK_US = 1_000
ABC = (stored_batch(0, "a"), stored_batch(1, "b"), stored_batch(2, "c"))


class Folder:
    """The log folder of broker 1 with two watched partitions."""

    def __init__(self, root: Path, **options: Any) -> None:
        self.root = root
        clock = Clock()
        clock.now_us = 0
        self.trace = Trace(clock)
        self.reasons: dict[tuple[str, int], str] = {}
        arguments: dict[str, Any] = {
            "writeback_us": None,
            "flushed_at_once": NO_PARTITIONS,
            "truncation_reason": lambda *cut: self.reasons.get(cut, ""),
            **options,
        }
        self.owned = ["t-0", "t-1"]
        self.disk = LiveDisk(1, (root,), lambda: self.owned, emit=self.trace.emit, **arguments)

    def write(self, *batches: bytes, partition: str = "t-0", segment: int = 0) -> None:
        folder = self.root / partition
        folder.mkdir(exist_ok=True)
        (folder / f"{segment:020}.log").write_bytes(b"".join(batches))

    def checkpoint(self, name: str, at: int = 1, **offsets: int) -> None:
        """Write a checkpoint with its own time, because the files of a test are equally old."""
        lines = [f"{partition.replace('_', ' ')} {offset}" for partition, offset in offsets.items()]
        file = self.root / name
        file.write_text("\n".join(["0", str(len(lines)), *lines]) + "\n")
        os.utime(file, ns=(at, at))

    def traced(self, *kinds: Any) -> list[tuple[Any, ...]]:
        """Return the events of some kinds, without their times and brokers."""
        names = {kind.name for kind in kinds}
        matching = [event for event in self.trace.events if not kinds or event[1] in names]
        assert all(event[2] == 1 for event in matching)
        return [(event[1], *event[3:]) for event in matching]


@pytest.fixture
def make_folder(tmp_path: Path) -> Callable[..., Folder]:
    return lambda **options: Folder(tmp_path, **options)


def test_a_leader_appends_and_a_follower_replicates(make_folder: Callable[..., Folder]) -> None:
    folder = make_folder()
    folder.write(stored_batch(0, "a", "b", epoch=3, id=7, producer_epoch=0, sequence=5))
    folder.write(stored_batch(0, "x"), partition="t-1")
    folder.disk.observe(0, frozenset({"t-0"}))
    assert folder.traced() == [
        ("append", "t-0", 0, 3, 7, 5, ("a", "b")),
        ("replicate", "t-1", 0, 0, -1, -1, ("x",)),
    ]
    assert (folder.disk.leo("t-0"), folder.disk.leo("t-1")) == (2, 1)
    assert [batch.values for batch in folder.disk.batches("t-0")] == [("a", "b")]


def test_a_shortened_log_is_truncated(make_folder: Callable[..., Folder]) -> None:
    folder = make_folder()
    folder.reasons["t-0", 1] = "leader epoch"
    folder.write(*ABC)
    folder.disk.observe(0, NO_PARTITIONS)
    folder.write(ABC[0])
    folder.disk.observe(0, NO_PARTITIONS)
    assert folder.traced(events.LogTruncated) == [("truncate", "t-0", 3, 1, "leader epoch")]


def test_old_records_are_written_back(make_folder: Callable[..., Folder]) -> None:
    folder = make_folder(writeback_us=WRITEBACK_US)
    folder.write(ABC[0])
    folder.disk.observe(0, NO_PARTITIONS)
    folder.write(*ABC[:2])
    folder.disk.observe(500, NO_PARTITIONS)
    folder.disk.observe(WRITEBACK_US - 1, NO_PARTITIONS)
    assert (folder.traced(events.LogFlushed), folder.disk.flushed("t-0")) == ([], 0)
    folder.disk.observe(WRITEBACK_US, NO_PARTITIONS)
    folder.disk.observe(WRITEBACK_US + 1, NO_PARTITIONS)
    assert (folder.traced(events.LogFlushed), folder.disk.flushed("t-0")) == ([("flush", "t-0", 1)], 1)
    folder.disk.observe(WRITEBACK_US + 500, NO_PARTITIONS)
    assert folder.traced(events.LogFlushed)[1:] == [("flush", "t-0", 2)]


def test_without_writeback_the_system_flushes_no_record(make_folder: Callable[..., Folder]) -> None:
    folder = make_folder()
    folder.write(*ABC)
    for now_us in (0, 10**12):
        folder.disk.observe(now_us, NO_PARTITIONS)
    assert (folder.traced(events.LogFlushed), folder.disk.flushed("t-0")) == ([], 0)


def test_a_lost_disk_keeps_only_the_ids(make_folder: Callable[..., Folder]) -> None:
    folder = make_folder(writeback_us=WRITEBACK_US)
    folder.write(*ABC)
    folder.checkpoint(HIGH_WATERMARKS, t_0_0=3)
    (folder.root / "meta.properties").write_text("broker.id=1")
    (folder.root / "__cluster_metadata-0").mkdir()
    folder.disk.observe(0, NO_PARTITIONS)
    folder.disk.lose_disk()
    assert [file.name for file in folder.root.iterdir()] == ["meta.properties"]
    assert folder.traced(events.LogLost) == [("log_lost", "t-0", 0, 3)]
    assert folder.disk.leo("t-0") == 0
    folder.disk.observe(2 * WRITEBACK_US, NO_PARTITIONS)
    assert folder.traced(events.LogTruncated, events.LogFlushed) == []
    folder.write(stored_batch(0, "x"))
    folder.disk.observe(3 * WRITEBACK_US, NO_PARTITIONS)
    assert [batch.values for batch in folder.disk.batches("t-0")] == [("x",)]


def test_a_truncation_lowers_the_flushed_offset(make_folder: Callable[..., Folder]) -> None:
    folder = make_folder(writeback_us=WRITEBACK_US)
    folder.write(*ABC)
    folder.disk.observe(0, NO_PARTITIONS)
    folder.disk.observe(WRITEBACK_US, NO_PARTITIONS)
    folder.write(ABC[0])
    folder.disk.observe(WRITEBACK_US, NO_PARTITIONS)
    assert folder.disk.flushed("t-0") == 1
    folder.write(ABC[0], stored_batch(1, "d", epoch=1))
    folder.disk.observe(WRITEBACK_US, NO_PARTITIONS)
    assert folder.disk.flushed("t-0") == 1


def lost(folder: Folder) -> list[tuple[Any, ...]]:
    return folder.traced(events.UnflushedLost)


def test_the_age_of_a_rewritten_record_counts_from_its_last_write(make_folder: Callable[..., Folder]) -> None:
    folder = make_folder(writeback_us=WRITEBACK_US)
    folder.write(*ABC)
    folder.disk.observe(0, NO_PARTITIONS)
    folder.write(ABC[0])
    folder.disk.observe(500, NO_PARTITIONS)
    folder.write(*ABC)
    folder.disk.observe(900, NO_PARTITIONS)
    folder.disk.observe(WRITEBACK_US, NO_PARTITIONS)
    assert folder.disk.flushed("t-0") == 1
    folder.disk.observe(WRITEBACK_US + 900, NO_PARTITIONS)
    assert folder.disk.flushed("t-0") == 3


def test_a_power_loss_removes_unflushed_records(make_folder: Callable[..., Folder]) -> None:
    folder = make_folder()
    folder.write(*ABC)
    folder.disk.lose_power(0)
    assert lost(folder) == [("unflushed_lost", "t-0", 0, 3)]
    assert (stored_log(folder.root / "t-0").leo, folder.disk.leo("t-0")) == (0, 0)
    # The loss is not a truncation by the broker.
    assert folder.traced(events.LogTruncated) == []
    folder.disk.observe(0, NO_PARTITIONS)
    assert folder.traced(events.LogTruncated) == []


def test_a_power_loss_keeps_records_below_the_recovery_point(make_folder: Callable[..., Folder]) -> None:
    folder = make_folder()
    folder.write(*ABC)
    folder.checkpoint(RECOVERY_POINTS, t_0=2)
    folder.disk.observe(0, NO_PARTITIONS)
    assert folder.disk.flushed("t-0") == 2
    folder.disk.lose_power(0)
    assert lost(folder) == [("unflushed_lost", "t-0", 2, 3)]
    assert (stored_log(folder.root / "t-0").leo, folder.disk.leo("t-0")) == (2, 2)


def test_a_power_loss_keeps_records_written_back(make_folder: Callable[..., Folder]) -> None:
    folder = make_folder(writeback_us=WRITEBACK_US)
    folder.write(ABC[0])
    folder.checkpoint(RECOVERY_POINTS, t_0=0)
    folder.disk.observe(0, NO_PARTITIONS)
    folder.write(*ABC)
    folder.disk.lose_power(WRITEBACK_US)
    assert lost(folder) == [("unflushed_lost", "t-0", 1, 3)]
    assert stored_log(folder.root / "t-0").leo == 1


def test_a_power_loss_removes_no_record_that_is_flushed_at_once(make_folder: Callable[..., Folder]) -> None:
    folder = make_folder(flushed_at_once=frozenset({"t"}))
    folder.owned.append("u-0")
    folder.write(*ABC)
    folder.write(stored_batch(0, "x"), partition="u-0")
    folder.disk.lose_power(0)
    assert folder.disk.flushed("t-0") == 3
    assert lost(folder) == [("unflushed_lost", "u-0", 0, 1)]
    assert [stored_log(folder.root / partition).leo for partition in ("t-0", "u-0")] == [3, 0]


def test_an_added_partition_is_followed(
    make_folder: Callable[..., Folder],
) -> None:
    folder = make_folder()
    folder.disk.observe(0, NO_PARTITIONS)
    assert not folder.disk.has_log("t-2")
    assert folder.disk.leo("t-2") == 0
    folder.write(stored_batch(0, "a"), partition="t-2")
    folder.owned.append("t-2")
    folder.disk.observe(0, frozenset({"t-2"}))
    assert folder.traced(events.BatchAppended) == [("append", "t-2", 0, 0, -1, -1, ("a",))]


def test_a_replica_moved_to_another_broker_is_deleted_and_may_return(
    make_folder: Callable[..., Folder],
) -> None:
    folder = make_folder()
    folder.write(*ABC)
    folder.disk.observe(0, NO_PARTITIONS)
    (folder.root / "t-0").rename(folder.root / "t-0.0123-delete")
    folder.disk.observe(0, NO_PARTITIONS)
    folder.disk.observe(0, NO_PARTITIONS)
    assert folder.traced(events.LogDeleted, events.LogTruncated) == [("log_deleted", "t-0", 3)]
    assert (folder.disk.leo("t-0"), folder.disk.batches("t-0")) == (0, ())
    folder.write(ABC[0])
    folder.disk.observe(0, NO_PARTITIONS)
    assert folder.disk.leo("t-0") == 1


def test_lost_records_are_not_written_back(make_folder: Callable[..., Folder]) -> None:
    folder = make_folder(writeback_us=WRITEBACK_US)
    folder.write(*ABC)
    folder.disk.lose_power(0)
    folder.write(stored_batch(0, "d", epoch=1))
    folder.disk.observe(500, NO_PARTITIONS)
    folder.disk.observe(WRITEBACK_US, NO_PARTITIONS)
    assert folder.disk.flushed("t-0") == 0
    folder.disk.observe(WRITEBACK_US + 500, NO_PARTITIONS)
    assert folder.disk.flushed("t-0") == 1


def test_a_power_loss_cuts_unwatched_partitions_at_their_recovery_points(
    make_folder: Callable[..., Folder],
) -> None:
    folder = make_folder(flushed_at_once=frozenset({"t"}))
    folder.write(*ABC)
    folder.write(*ABC, partition="known-7")
    folder.write(*ABC, partition="unknown-0")
    (folder.root / "empty-0").mkdir()
    folder.checkpoint(RECOVERY_POINTS, known_7=1)
    folder.disk.lose_power(0)
    assert [stored_log(folder.root / name).leo for name in ("t-0", "known-7", "unknown-0")] == [3, 1, 0]
    assert lost(folder) == []


def test_a_damaged_recovery_checkpoint_is_ignored(make_folder: Callable[..., Folder]) -> None:
    folder = make_folder()
    folder.write(*ABC)
    (folder.root / RECOVERY_POINTS).write_text("0\n2\nt 0 3\n")
    folder.disk.observe(0, NO_PARTITIONS)
    assert folder.disk.flushed("t-0") == 0


def test_a_checkpoint_reports_only_changed_offsets(make_folder: Callable[..., Folder]) -> None:
    folder = make_folder()
    folder.disk.observe(0, NO_PARTITIONS)
    assert folder.traced() == []
    folder.checkpoint(HIGH_WATERMARKS, 1, t_0=0, t_1=4, other_0=9)
    folder.disk.observe(0, NO_PARTITIONS)
    folder.disk.observe(0, NO_PARTITIONS)
    folder.checkpoint(HIGH_WATERMARKS, 2, t_0=0, t_1=5, other_0=10)
    folder.disk.observe(0, NO_PARTITIONS)
    assert folder.traced() == [
        ("checkpoint", HIGH_WATERMARKS, (("t-0", 0), ("t-1", 4))),
        ("checkpoint", HIGH_WATERMARKS, (("t-1", 5),)),
    ]


def test_an_incomplete_checkpoint_is_read_again(make_folder: Callable[..., Folder]) -> None:
    folder = make_folder()
    file = folder.root / HIGH_WATERMARKS
    file.write_text("0\n2\nt 0 3\n")
    os.utime(file, ns=(1, 1))
    folder.disk.observe(0, NO_PARTITIONS)
    assert folder.traced() == []
    folder.checkpoint(HIGH_WATERMARKS, 1, t_0=3, t_1=0)
    folder.disk.observe(0, NO_PARTITIONS)
    assert folder.traced() == [("checkpoint", HIGH_WATERMARKS, (("t-0", 3), ("t-1", 0)))]


def test_a_starting_broker_opens_its_logs(make_folder: Callable[..., Folder]) -> None:
    folder = make_folder()
    folder.write(*ABC)
    folder.checkpoint(HIGH_WATERMARKS, t_0=2, t_1=8)
    folder.disk.observe(0, NO_PARTITIONS)
    folder.disk.open()
    assert folder.traced(events.LogOpened) == [("recover", "t-0", 3, 2)]


@pytest.mark.parametrize("checkpoint", [None, "0\n2\nt 0 3\n"], ids=["none", "damaged"])
def test_a_log_without_a_checkpointed_high_watermark_opens_with_0(
    make_folder: Callable[..., Folder], checkpoint: str | None
) -> None:
    folder = make_folder()
    folder.write(*ABC)
    if checkpoint is not None:
        (folder.root / HIGH_WATERMARKS).write_text(checkpoint)
    folder.disk.observe(0, NO_PARTITIONS)
    folder.disk.open()
    assert folder.traced(events.LogOpened) == [("recover", "t-0", 3, 0)]


def test_leader_epochs_come_from_the_checkpoint(make_folder: Callable[..., Folder]) -> None:
    folder = make_folder()
    assert folder.disk.epochs("t-0") == ()
    folder.write(*ABC)
    checkpoint = folder.root / "t-0" / "leader-epoch-checkpoint"
    checkpoint.write_text("0\n2\n0 0\n4 2\n")
    assert folder.disk.epochs("t-0") == ((0, 0), (4, 2))
    checkpoint.write_text("0\n3\n0 0\n")
    assert folder.disk.epochs("t-0") == ()


def test_each_log_is_in_one_of_several_log_directories(tmp_path: Path) -> None:
    roots = [tmp_path / "a", tmp_path / "b"]
    for root in roots:
        root.mkdir()
    first, second = map(Folder, roots)
    both = LiveDisk(
        1,
        (first.root, second.root),
        lambda: ("t-0", "t-1"),
        writeback_us=None,
        flushed_at_once=NO_PARTITIONS,
        truncation_reason=lambda *_: "",
        emit=first.trace.emit,
    )
    first.write(*ABC)
    second.write(stored_batch(0, "x"), stored_batch(1, "y"), partition="t-1")
    first.checkpoint(HIGH_WATERMARKS, t_0=3)
    second.checkpoint(HIGH_WATERMARKS, t_1=2)
    second.checkpoint(RECOVERY_POINTS, t_1=1)
    both.observe(0, NO_PARTITIONS)
    assert (both.leo("t-0"), both.leo("t-1"), both.flushed("t-1")) == (3, 2, 1)
    assert first.traced(events.CheckpointWritten) == [
        ("checkpoint", HIGH_WATERMARKS, (("t-0", 3),)),
        ("checkpoint", HIGH_WATERMARKS, (("t-1", 2),)),
    ]
    both.lose_power(0)
    assert (both.leo("t-0"), both.leo("t-1")) == (0, 1)
    both.lose_disk()
    assert list(first.root.iterdir()) == list(second.root.iterdir()) == []


def test_a_removed_checkpoint_is_traced_with_the_offsets_that_it_had(
    make_folder: Callable[..., Folder],
) -> None:
    folder = make_folder()
    folder.write(*ABC)
    folder.checkpoint(HIGH_WATERMARKS, t_0=3, t_1=0, other_0=4)
    folder.checkpoint("t-0/leader-epoch-checkpoint", **{"0": 1, "2": 2})
    folder.disk.observe(0, NO_PARTITIONS)
    folder.disk.remove_checkpoint(HIGH_WATERMARKS)
    folder.disk.remove_checkpoint(LEADER_EPOCHS)
    assert folder.traced(events.CheckpointReverted) == [
        ("checkpoint_reverted", HIGH_WATERMARKS, (("t-0", 0),)),
        ("checkpoint_reverted", LEADER_EPOCHS, (("t-0", 1),)),
    ]
    assert not (folder.root / HIGH_WATERMARKS).exists()
    assert folder.disk.epochs("t-0") == ()
