"""read-above-lso: markers and the high watermark limit the records of read_committed."""

from typing import Any

from tests.checks.evidence_builder import PARTITION, RunBuilder

OF_PRODUCER = {"partition": PARTITION, "producer_id": 7, "producer_epoch": 0, "first_offset": 0}


def run_with_ended_transaction(*high_watermarks: int) -> RunBuilder:
    """Return a run in which broker 0 has a record at offset 0 and the marker of its transaction at
    1.
    """
    run = RunBuilder()
    run.elect(0, 0, (0, 1))
    run.append(0, "a")
    run.event("transaction_begun", broker=0, **OF_PRODUCER)
    run.append(0, "<commit>")
    run.event("transaction_marker", broker=0, **OF_PRODUCER, offset=1, committed=True, coordinator_epoch=0)
    for high_watermark in high_watermarks:
        run.raise_hw(high_watermark, 0)
    return run


def status_of_serving(run: RunBuilder) -> str:
    """Return the status of a run in which broker 0 serves offset 0 to read_committed."""
    place: dict[str, Any] = {"broker": 0, "partition": PARTITION, "client": "consumer"}
    run.event("served", **place, offset=0, end_offset=1, hw=1)
    run.poll((0, "a"), isolation_level="read_committed")
    return run.judge("read-above-lso").status


def test_a_transaction_with_an_uncommitted_marker_is_above_the_last_stable_offset() -> None:
    assert status_of_serving(run_with_ended_transaction(1)) == "violated"


def test_a_transaction_stays_readable_if_the_high_watermark_falls_below_its_marker() -> None:
    """A follower adopts a lower high watermark of its leader after it has seen the marker
    committed.
    """
    assert status_of_serving(run_with_ended_transaction(2, 1)) == "held"


def test_a_truncated_marker_reopens_its_transaction() -> None:
    run = run_with_ended_transaction(2)
    run.truncate(0, 1)
    assert status_of_serving(run) == "violated"


def test_a_restarted_broker_treats_markers_above_its_high_watermark_as_uncommitted() -> None:
    run = run_with_ended_transaction(2, 1)
    run.event("recover", broker=0, partition=PARTITION, leo=2, hw=1)
    assert status_of_serving(run) == "violated"
