"""The trace shows changes of log starts on real brokers."""

from types import SimpleNamespace
from typing import Any, cast

from harrow.cluster_model.events import LogLost
from harrow.cluster_model.trace import Clock, Trace
from harrow.live_cluster.target.log_starts import LogStarts
from harrow.live_cluster.watches.observed_metadata import ObservedPartition


class Replicas:
    """Two replicas of t-0, led by broker 1, with their trace."""

    def __init__(self, deleted_below: int = 0) -> None:
        clock = Clock()
        clock.now_us = 0
        self.trace = Trace(clock)
        self.reported: dict[int, dict[str, int]] = {1: {}, 2: {}}
        self.on_disk = {1: 0, 2: 0}
        logs = {
            broker: SimpleNamespace(
                log_start=lambda _, broker=broker: self.on_disk[broker], size_bytes=lambda _: 70
            )
            for broker in (1, 2)
        }
        self.starts = LogStarts(
            self.trace,
            cast("Any", logs),
            lambda broker: self.reported[broker],
            lambda _: ObservedPartition(1, 3, (1, 2)),
            lambda _: deleted_below,
        )

    def look(self) -> list[tuple[Any, ...]]:
        """Look at both replicas and return the new events of the trace."""
        before = len(self.trace.events)
        for broker in (1, 2):
            self.starts.observe(broker, ["t-0"])
        return [event[1:] for event in self.trace.events[before:]]


def test_a_leader_obeys_a_deletion_before_any_log_start_advances() -> None:
    replicas = Replicas(deleted_below=2)
    replicas.reported = {1: {"t-0": 2}, 2: {"t-0": 0}}
    assert replicas.look() == [
        ("delete_records_obeyed", 1, "t-0", 2),
        ("log_start", 1, "t-0", 2, "DeleteRecords", 70),
    ]
    replicas.reported[2] = {"t-0": 2}
    assert replicas.look() == [("log_start", 2, "t-0", 2, "log start offset", 70)]
    assert replicas.look() == []
    assert (replicas.starts.log_start_of(1, "t-0"), replicas.starts.log_start_of(2, "t-0")) == (2, 2)


def test_a_follower_observed_first_shows_that_its_leader_obeyed_a_deletion() -> None:
    replicas = Replicas(deleted_below=2)
    replicas.reported[2] = {"t-0": 2}
    assert [event[:2] for event in replicas.look()] == [("delete_records_obeyed", 1), ("log_start", 2)]
    replicas.reported[1] = {"t-0": 2}
    assert replicas.look() == [("log_start", 1, "t-0", 2, "DeleteRecords", 70)]


def test_records_deleted_without_a_request_were_deleted_by_retention() -> None:
    replicas = Replicas(deleted_below=1)
    replicas.reported[1] = {"t-0": 2}
    assert replicas.look() == [("log_start", 1, "t-0", 2, "retention.ms", 70)]


def test_missing_segments_show_a_log_start_that_no_broker_reports() -> None:
    replicas = Replicas()
    replicas.on_disk[1] = 4
    assert replicas.look() == [("log_start", 1, "t-0", 4, "retention.ms", 70)]
    # A report from before the deletion does not revert it.
    replicas.reported[1] = {"t-0": 0}
    assert replicas.look() == []


def test_an_earlier_log_start_after_a_restart_has_reverted() -> None:
    replicas = Replicas(deleted_below=2)
    replicas.reported[1] = {"t-0": 2}
    replicas.look()
    # A broker that is down reports no log start.
    replicas.reported[1] = {}
    assert replicas.look() == []
    replicas.reported[1] = {"t-0": 0}
    assert replicas.look() == [("log_start_reverted", 1, "t-0", 2, 0)]
    assert replicas.starts.log_start_of(1, "t-0") == 0


def test_a_log_lost_with_its_disk_starts_at_0_without_an_event() -> None:
    replicas = Replicas(deleted_below=2)
    replicas.reported[1] = {"t-0": 2}
    replicas.look()
    replicas.trace.emit(LogLost, 1, "t-0", 0, 3)
    replicas.reported[1] = {"t-0": 0}
    assert replicas.look() == []
