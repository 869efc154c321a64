"""Where logs of real brokers begin, as their traces tell it."""

from types import SimpleNamespace
from typing import Any, cast

from harrow.cluster_model.events import LogLost
from harrow.cluster_model.trace import Clock, Trace
from harrow.live_cluster.target.log_starts import LogStarts
from harrow.live_cluster.watches.metadata_seen import SeenPartition


class Replicas:
    """Two replicas of t-0, of which broker 1 leads, and what the trace has of them."""

    def __init__(self, deleted_below: int = 0) -> None:
        clock = Clock()
        clock.now_us = 0
        self.trace = Trace(clock)
        self.told: dict[int, dict[str, int]] = {1: {}, 2: {}}
        self.on_disk = {1: 0, 2: 0}
        logs = {
            broker: SimpleNamespace(
                begin=lambda _, broker=broker: self.on_disk[broker], size_bytes=lambda _: 70
            )
            for broker in (1, 2)
        }
        self.starts = LogStarts(
            self.trace,
            cast("Any", logs),
            lambda broker: self.told[broker],
            lambda _: SeenPartition(1, 3, (1, 2)),
            lambda _: deleted_below,
        )

    def look(self) -> list[tuple[Any, ...]]:
        """Look at both, and return what that has put into the trace."""
        before = len(self.trace.events)
        for broker in (1, 2):
            self.starts.look(broker, ["t-0"])
        return [event[1:] for event in self.trace.events[before:]]


def test_a_leader_obeys_before_any_log_begins_later() -> None:
    replicas = Replicas(deleted_below=2)
    replicas.told = {1: {"t-0": 2}, 2: {"t-0": 0}}
    assert replicas.look() == [
        ("delete_records_obeyed", 1, "t-0", 2),
        ("log_start", 1, "t-0", 2, "DeleteRecords", 70),
    ]
    replicas.told[2] = {"t-0": 2}
    assert replicas.look() == [("log_start", 2, "t-0", 2, "log start offset", 70)]
    assert replicas.look() == []
    assert (replicas.starts.of(1, "t-0"), replicas.starts.of(2, "t-0")) == (2, 2)


def test_a_follower_that_is_looked_at_first_shows_that_its_leader_has_obeyed() -> None:
    replicas = Replicas(deleted_below=2)
    replicas.told[2] = {"t-0": 2}
    assert [event[:2] for event in replicas.look()] == [("delete_records_obeyed", 1), ("log_start", 2)]
    replicas.told[1] = {"t-0": 2}
    assert replicas.look() == [("log_start", 1, "t-0", 2, "DeleteRecords", 70)]


def test_records_that_nobody_has_asked_to_delete_went_by_retention() -> None:
    replicas = Replicas(deleted_below=1)
    replicas.told[1] = {"t-0": 2}
    assert replicas.look() == [("log_start", 1, "t-0", 2, "retention.ms", 70)]


def test_segments_that_are_gone_tell_it_where_no_broker_does() -> None:
    replicas = Replicas()
    replicas.on_disk[1] = 4
    assert replicas.look() == [("log_start", 1, "t-0", 4, "retention.ms", 70)]
    # What a broker has told before they went is no return of them.
    replicas.told[1] = {"t-0": 0}
    assert replicas.look() == []


def test_a_log_that_begins_earlier_after_a_start_has_reverted() -> None:
    replicas = Replicas(deleted_below=2)
    replicas.told[1] = {"t-0": 2}
    replicas.look()
    # One that is down tells nothing.
    replicas.told[1] = {}
    assert replicas.look() == []
    replicas.told[1] = {"t-0": 0}
    assert replicas.look() == [("log_start_reverted", 1, "t-0", 2, 0)]
    assert replicas.starts.of(1, "t-0") == 0


def test_a_log_that_went_with_its_disk_begins_anew() -> None:
    replicas = Replicas(deleted_below=2)
    replicas.told[1] = {"t-0": 2}
    replicas.look()
    replicas.trace.emit(LogLost, 1, "t-0", 0, 3)
    replicas.told[1] = {"t-0": 0}
    assert replicas.look() == []
