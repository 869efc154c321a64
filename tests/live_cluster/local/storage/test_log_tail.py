"""A log tail reports the changes of a log since the last look."""

import os
from pathlib import Path
from typing import Any

import pytest

from harrow.live_cluster.local.storage import log_tail
from harrow.live_cluster.local.storage.log_tail import LogTail, Truncation
from harrow.live_cluster.local.storage.segments import batches_from
from tests.live_cluster.local.storage.test_segments import stored_batch

Changes = list[tuple[int, tuple[str, ...]] | Truncation]


class Log:
    """A log on disk with its tail."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self.tail = LogTail(lambda: folder)
        self._written_ns = 1

    def write(self, *batches: bytes, segment: int = 0) -> None:
        (self.folder / f"{segment:020}.log").write_bytes(b"".join(batches))

    def touch(self) -> None:
        """Give the segment a later time stamp, because the files of a test are equally old."""
        self._written_ns += 1
        os.utime(self.folder / f"{0:020}.log", ns=(self._written_ns, self._written_ns))

    def look(self) -> Changes:
        return [
            change if isinstance(change, Truncation) else (change.base_offset, change.values)
            for change in self.tail.poll()
        ]

    def values(self) -> list[tuple[str, ...]]:
        return [batch.values for batch in self.tail.batches]


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path / "t-0")


A, B, C = stored_batch(0, "a"), stored_batch(1, "b", "c"), stored_batch(3, "d")


def test_each_batch_is_reported_once(log: Log) -> None:
    log.write(A)
    assert log.look() == [(0, ("a",))]
    assert log.look() == []
    log.write(A, B, C)
    assert log.look() == [(1, ("b", "c")), (3, ("d",))]
    assert log.look() == []
    assert (log.values(), log.tail.leo) == ([("a",), ("b", "c"), ("d",)], 4)


@pytest.mark.parametrize("torn", [1, 16, 60, -1])
def test_a_torn_batch_is_reported_when_it_is_complete(log: Log, torn: int) -> None:
    log.write(A, B[:torn])
    assert (log.look(), log.tail.leo) == ([(0, ("a",))], 1)
    log.write(A, B)
    assert (log.look(), log.tail.leo) == ([(1, ("b", "c"))], 3)


def test_a_truncation_has_the_old_and_the_new_log_end(log: Log) -> None:
    log.write(A, B, C)
    log.look()
    log.write(A)
    assert log.look() == [Truncation(from_offset=4, to_offset=1)]
    assert (log.values(), log.tail.leo) == ([("a",)], 1)
    log.write(b"")
    assert log.look() == [Truncation(from_offset=1, to_offset=0)]
    assert (log.values(), log.tail.leo) == ([], 0)


def test_records_appended_after_a_truncation_are_reported_after_it(log: Log) -> None:
    log.write(A, B, C)
    log.look()
    log.write(A, B[:-7])
    assert log.look() == [Truncation(4, 1)]
    log.write(A, stored_batch(1, "e", epoch=1))
    assert log.look() == [(1, ("e",))]
    assert log.values() == [("a",), ("e",)]


@pytest.mark.parametrize("size", [-20, 0, 300], ids=["shorter", "as long", "longer"])
@pytest.mark.parametrize("more", [0, 1])
def test_a_log_truncated_and_refilled_between_looks_reports_both(log: Log, size: int, more: int) -> None:
    b = stored_batch(1, "b" * 50)
    log.write(A, b)
    log.look()
    log.write(A, stored_batch(1, "x" * (50 + size), epoch=1), *[stored_batch(2, "f", epoch=1)] * more)
    log.touch()
    changes = [(1, ("x" * (50 + size),)), (2, ("f",))]
    assert log.look() == [Truncation(2, 1), *changes[: 1 + more]]
    assert (log.values()[0], log.tail.leo) == (("a",), 2 + more)


def test_a_change_before_the_last_batch_needs_a_full_read(log: Log) -> None:
    log.write(A, B, C)
    log.look()
    other = stored_batch(0, "z", epoch=1)
    log.write(other, B, C)
    log.touch()
    assert log.look() == []
    assert [change.values for change in log.tail.reread() if not isinstance(change, Truncation)] == [
        ("z",),
        ("b", "c"),
        ("d",),
    ]
    assert log.tail.reread() == []


@pytest.mark.parametrize(
    "other",
    [stored_batch(1, "z", "c"), stored_batch(1, "b", "c", epoch=1), stored_batch(1, "b", "c", id=7, producer_epoch=0, sequence=3)],
    ids=["values", "leader epoch", "producer"],
)  # fmt: skip
def test_batches_differ_by_values_leader_epoch_and_producer(log: Log, other: bytes) -> None:
    log.write(A, B, C)
    log.look()
    log.write(A, other)
    changes = log.look()
    assert changes[0] == Truncation(4, 1)
    assert [change[0] for change in changes[1:] if not isinstance(change, Truncation)] == [1]


def test_an_unchanged_log_is_not_read(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[Path] = []

    def counted(segment: Path, position: int) -> Any:
        reads.append(segment)
        return batches_from(segment, position)

    monkeypatch.setattr(log_tail, "batches_from", counted)
    log.write(A)
    log.look()
    assert reads
    reads.clear()
    log.look()
    assert reads == []


def test_a_look_reads_from_the_last_known_batch_on(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    log.write(A, B)
    log.look()
    positions: list[int] = []

    def noted(segment: Path, position: int) -> Any:
        positions.append(position)
        return batches_from(segment, position)

    monkeypatch.setattr(log_tail, "batches_from", noted)
    log.write(A, B, C)
    assert log.look() == [(3, ("d",))]
    assert min(positions) == len(A)


def test_a_missing_folder_is_an_empty_log(tmp_path: Path) -> None:
    tail = LogTail(lambda: tmp_path / "t-0")
    assert (list(tail.poll()), tail.leo, tail.batches) == ([], 0, [])
    folder = tmp_path / "t-0"
    folder.mkdir()
    (folder / f"{0:020}.log").write_bytes(A)
    assert [batch.values for batch in tail.poll() if not isinstance(batch, Truncation)] == [("a",)]


def test_a_log_continues_in_a_new_segment(log: Log) -> None:
    log.write(A)
    log.look()
    log.write(A, B)  # the last batch of the old segment comes with the new one
    log.write(C, segment=3)
    assert log.look() == [(1, ("b", "c")), (3, ("d",))]
    log.write(C, stored_batch(4, "e"), segment=3)
    assert log.look() == [(4, ("e",))]
    assert (log.values(), log.tail.leo) == ([("a",), ("b", "c"), ("d",), ("e",)], 5)


def test_a_truncation_may_remove_whole_segments(log: Log) -> None:
    log.write(A, B)
    log.write(C, segment=3)
    log.look()
    (log.folder / f"{3:020}.log").unlink()
    assert log.look() == [Truncation(4, 3)]
    log.write(A)
    assert log.look() == [Truncation(3, 1)]


def test_an_empty_new_segment_is_not_a_change(log: Log) -> None:
    log.write(A)
    log.look()
    log.write(b"", segment=1)
    assert (log.look(), log.tail.leo) == ([], 1)
    log.write(stored_batch(1, "b"), segment=1)
    assert log.look() == [(1, ("b",))]
