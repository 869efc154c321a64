"""The replay of a trace tracks every copy of a record that was ever in a log."""

import pytest

from harrow.checks.causes.story import Story
from harrow.checks.index import Index
from harrow.checks.replay.partition_state import POWER_LOSS, RETENTION, TRUNCATED, LogEntry, ReplicaState
from tests.checks.evidence_builder import RunBuilder


def replay(run: RunBuilder) -> Story:
    return Story(Index(run.evidence()), "t-0")


def run_with_empty_log() -> RunBuilder:
    """Return a run where broker 0 has opened an empty log."""
    run = RunBuilder()
    run.event("recover", broker=0, partition="t-0", leo=0, hw=0)
    return run


def copy_state(copy: LogEntry) -> tuple[int, int, bool, bool, bool]:
    return (copy.broker, copy.offset, copy.is_copy, copy.is_committed, copy.removed is not None)


def test_a_record_has_a_copy_for_each_broker_and_offset() -> None:
    run = RunBuilder()
    run.append(0, "m0", "m1")
    run.replicate(1, "m0", "m1")
    run.raise_hw(1, 0)
    copies = replay(run)
    assert [copy_state(copy) for copy in copies.copies("m0")] == [
        (0, 0, False, True, False),
        (1, 0, True, False, False),
    ]
    assert [copy_state(copy) for copy in copies.copies("m1")] == [
        (0, 1, False, False, False),
        (1, 1, True, False, False),
    ]


def test_a_removed_copy_keeps_the_cause_of_its_removal() -> None:
    run = RunBuilder()
    run.append(0, "m0", "m1", "m2", "m3")
    run.lose_power(0, 3)
    run.truncate(0, 2)
    run.event("recover", broker=0, partition="t-0", leo=1, hw=0)
    (m0,), (m1,), (m2,), (m3,) = [replay(run).copies(f"m{n}") for n in range(4)]
    assert m0.removed is None
    assert [
        (removal.number, removal.cause, removal.to_offset)
        for removal in (m1.removed, m2.removed, m3.removed)
        if removal
    ] == [
        (6, TRUNCATED, 1),
        (5, TRUNCATED, 2),
        (3, POWER_LOSS, 3),
    ]
    assert [copy.lost_with_power for copy in (m0, m1, m2, m3)] == [False, False, False, True]


def test_an_append_below_the_log_end_replaces_the_record_there() -> None:
    """The append proves the truncation even if the trace lacks it."""
    run = RunBuilder()
    run.append(0, "m0", "m1")
    run.logs["t-0"][0].pop()
    run.append(0, "x")
    copies = replay(run)
    assert copies.copies("m1")[0].removed is not None
    assert copies.copies("m0")[0].removed is None


def test_truncation_lowers_the_high_watermark() -> None:
    run = run_with_empty_log()
    run.append(0, "m0", "m1")
    run.raise_hw(2, 0)
    run.truncate(0, 1)
    run.append(0, "m2")
    assert not replay(run).copies("m2")[0].is_committed
    run.raise_hw(2, 0)
    assert replay(run).copies("m2")[0].is_committed


def test_a_lower_recovered_high_watermark_keeps_records_committed() -> None:
    run = RunBuilder()
    run.append(0, "m0", "m1")
    run.raise_hw(1, 0)
    run.event("recover", broker=0, partition="t-0", leo=2, hw=0)
    copies = replay(run)
    assert copies.copies("m0")[0].is_committed
    assert not copies.copies("m1")[0].is_committed


def run_with_reopened_log(offset: int) -> RunBuilder:
    """Return a run where broker 0 loses m1 with its power, appends m2 at its offset, and opens
    its log with an old checkpoint.
    """
    run = run_with_empty_log()
    run.append(0, "m0", "m1")
    run.raise_hw(2, 0)
    kind = "replication-offset-checkpoint"
    run.event("checkpoint", broker=0, kind=kind, offsets=(("t-0", offset),))
    run.lose_power(0, 1)
    run.append(0, "m2")
    run.event("recover", broker=0, partition="t-0", leo=2, hw=offset)
    return run


def test_a_checkpoint_commits_no_record_appended_after_it() -> None:
    run = run_with_reopened_log(2)
    run.append(0, "m3")
    copies = replay(run)
    assert [copies.copies(f"m{n}")[0].is_committed for n in range(4)] == [True, True, False, False]


@pytest.mark.parametrize(("event", "is_committed"), [("checkpoint", True), ("checkpoint_reverted", False)])
def test_a_checkpoint_commits_earlier_records_unless_it_was_reverted(
    event: str, *, is_committed: bool
) -> None:
    run = run_with_empty_log()
    run.append(0, "m0")
    run.event(event, broker=0, kind="replication-offset-checkpoint", offsets=(("t-0", 1),))
    run.event("recover", broker=0, partition="t-0", leo=1, hw=1)
    assert replay(run).copies("m0")[0].is_committed is is_committed


def test_a_leaders_high_watermark_commits_records_above_an_old_checkpoint() -> None:
    elected, reported = run_with_reopened_log(2), run_with_reopened_log(2)
    elected.elect(0, 1, (0,))
    reported.raise_hw(2, 0)
    for run in (elected, reported):
        assert replay(run).copies("m2")[0].is_committed


def test_a_reported_high_watermark_does_not_commit_truncated_records() -> None:
    run = run_with_reopened_log(2)
    run.truncate(0, 1)
    run.append(0, "m3")
    run.raise_hw(2, 0)
    copies = replay(run)
    assert [copies.copies(f"m{n}")[0].is_committed for n in (2, 3)] == [False, True]


def run_with_a_deposed_leader() -> RunBuilder:
    """Return a run where broker 0 was deposed with its own records x and y.

    Leader 1 deletes the records at their offsets, and broker 0 fetches m2.
    """
    run = RunBuilder()
    run.append(0, "x", "y")
    run.elect(1, 1, (1,))
    run.append(1, "m0", "m1", "m2")
    run.raise_hw(3, 1)
    run.event("follower", broker=0, partition="t-0", leader_epoch=1, leader=1)
    run.event("log_start", broker=1, partition="t-0", offset=2, reason="retention.ms", bytes_left=0)
    run.replicate(0, "m2", epoch=1)
    run.raise_hw(3, 0)
    return run


def test_a_reported_high_watermark_commits_no_record_below_the_leaders_log_start() -> None:
    run = run_with_a_deposed_leader()
    run.raise_hw(3, 0)
    story = replay(run)
    assert [story.copies(value)[0].is_committed for value in ("x", "y", "m0", "m1")] == [
        False,
        False,
        True,
        True,
    ]
    assert all(copy.is_committed for copy in story.copies("m2"))


def test_a_new_leader_commits_its_records_below_the_former_leaders_log_start() -> None:
    run = run_with_a_deposed_leader()
    run.elect(0, 2, (0,))
    story = replay(run)
    assert all(story.copies(value)[0].is_committed for value in ("x", "y", "m2"))


def test_restored_records_are_committed_once_their_replica_leads() -> None:
    run = run_with_a_deposed_leader()
    run.event("log_start", broker=0, partition="t-0", offset=2, reason="log start offset", bytes_left=0)
    run.stop(0)
    run.event("log_start_reverted", broker=0, partition="t-0", from_offset=2, to_offset=0)
    run.event("recover", broker=0, partition="t-0", leo=3, hw=0)
    assert not any(replay(run).copies(value)[-1].is_committed for value in ("x", "y"))
    run.elect(0, 2, (0,))
    run.raise_hw(1, 0)
    assert [replay(run).copies(value)[-1].is_committed for value in ("x", "y")] == [True, False]
    run.raise_hw(3, 0)
    assert all(replay(run).copies(value)[-1].is_committed for value in ("x", "y"))


def test_a_copy_exists_from_its_append_to_its_removal() -> None:
    run = RunBuilder()
    run.stop(1)
    run.append(0, "m0")
    run.stop(1)
    run.truncate(0, 0)
    run.stop(1)
    (copy,) = replay(run).copies("m0")
    assert [copy.is_there(number) for number in (1, 3, 5)] == [False, True, False]


def test_the_replayed_isr_is_the_leaders_latest_one() -> None:
    run = RunBuilder()
    run.elect(0, 0, (0, 1))
    run.event("isr", broker=0, partition="t-0", leader_epoch=0, isr=(0,), change="shrink")
    run.elect(1, 1, (1, 0))
    copies = replay(run)
    assert copies.isr_at(0, 2) is None
    assert copies.isr_at(0, 3) == (0, 1)
    assert copies.isr_at(0, 9) == (0,)
    assert copies.isr_at(1, 9) == (1, 0)


def test_damage_affects_exactly_the_records_of_its_batch() -> None:
    run = RunBuilder()
    run.append(0, "m0")
    run.append(0, "m1", "m2")
    run.replicate(1, "m0")
    run.replicate(1, "m1", "m2")
    run.event("batch_damaged", broker=0, partition="t-0", offset=2)
    run.event("batch_damaged", broker=0, partition="t-0", offset=1)
    story = replay(run)
    damaged = {value: [copy.damaged for copy in story.copies(value)] for value in ("m0", "m1", "m2")}
    assert damaged == {"m0": [None, None], "m1": [5, None], "m2": [5, None]}


def test_a_later_log_start_removes_earlier_records() -> None:
    run = RunBuilder()
    run.append(0, "m0", "m1", "m2")
    run.raise_hw(2, 0)
    run.event("log_start", broker=0, partition="t-0", offset=2, reason="retention.ms", bytes_left=0)
    run.raise_hw(3, 0)
    story = replay(run)
    (m0,), (m1,), (m2,) = [story.copies(f"m{n}") for n in range(3)]
    assert [copy.removed and (copy.removed.cause, copy.removed.to_offset) for copy in (m0, m1, m2)] == [
        (RETENTION, 2),
        (RETENTION, 2),
        None,
    ]
    assert m2.is_committed


def test_a_follower_that_restarts_its_log_has_no_earlier_records() -> None:
    run = RunBuilder()
    run.append(0, "m0", "m1")
    run.replicate(1, "m0")
    run.event("log_started_anew", broker=1, partition="t-0", leo=1, offset=5)
    replica = Index(run.evidence()).partition("t-0").replica(1)
    assert (replica.log, replica.log_start, replica.leo, replica.high_watermark) == ([], 5, 5, 5)


def replica_after_deletion_and(*events: dict[str, int | str]) -> ReplicaState:
    """Return a replica that deleted three of its four records before further events."""
    run = RunBuilder()
    run.append(0, "m0", "m1", "m2", "m3")
    run.raise_hw(4, 0)
    run.event("log_start", broker=0, partition="t-0", offset=3, reason="log start offset", bytes_left=56)
    for fields in events:
        run.event(
            str(fields["name"]), broker=0, partition="t-0", **{k: fields[k] for k in fields if k != "name"}
        )
    return Index(run.evidence()).partition("t-0").replica(0)


REVERTED: dict[str, int | str] = {"name": "log_start_reverted", "from_offset": 3, "to_offset": 1}


def test_a_reverted_log_start_restores_deleted_records() -> None:
    replica = replica_after_deletion_and(REVERTED)
    assert [entry.value for entry in replica.log] == ["m1", "m2", "m3"]
    assert [removal.entry.value for removal in replica.removed] == ["m0", "m1", "m2"]
    assert [entry.number for entry in replica.log] == [4, 4, 1]
    assert replica.log_start == 1
    replica.raise_high_watermark(4, 1)
    assert all(entry.is_committed for entry in replica.log)


def test_a_reverted_log_start_does_not_restore_truncated_records() -> None:
    truncated: dict[str, int | str] = {
        "name": "truncate",
        "from_offset": 4,
        "to_offset": 2,
        "reason": "leader epoch",
    }
    replica = replica_after_deletion_and(truncated, {**REVERTED, "from_offset": 2})
    assert ([entry.value for entry in replica.log], replica.leo, replica.log_start) == (["m1"], 2, 1)


def test_a_log_start_checkpoint_beyond_the_log_end_empties_the_log() -> None:
    by_checkpoint: dict[str, int | str] = {
        "name": "log_start",
        "offset": 9,
        "reason": "log-start-offset-checkpoint",
        "bytes_left": 0,
    }
    replica = replica_after_deletion_and(by_checkpoint)
    assert (replica.log, replica.log_start, replica.leo, replica.flushed) == ([], 9, 9, 9)
