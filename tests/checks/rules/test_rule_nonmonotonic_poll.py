"""nonmonotonic-poll in a run: a consumer that a broker sends back, and the permissions."""

import pytest

from harrow.campaigns.record.phrases import because, preventions
from tests.checks.evidence_builder import PARTITION, RunBuilder


def run_reset_by_restarted_leader(*, power_loss: bool) -> RunBuilder:
    """Return a run in which broker 0 restarts unnoticed and leads in a new epoch.

    Broker 1 is elected later.
    """
    run = RunBuilder()
    producer = run.producer()
    run.elect(0, 0, (0, 1))
    for value in ("a", "b"):
        run.write(producer, value, 0, 1)
    reader = run.history.new_process("consumer")
    run.history.record_poll(reader, {PARTITION: [(0, "a"), (1, "b")]}, run.tick(), run.tick())
    if power_loss:
        run.lose_power(0, flushed=0)
    run.lead(0, 1, (0, 1))
    run.history.record_poll(reader, {PARTITION: [(0, "a")]}, run.tick(), run.tick())
    run.elect(1, 2, (1,))
    if power_loss:
        for value in ("a", "b"):
            run.replicate(0, value)
    run.read_to_end(1)
    return run


def test_a_leader_that_lost_records_with_its_power_may_reset_a_consumer() -> None:
    result = run_reset_by_restarted_leader(power_loss=True).judge("nonmonotonic-poll")
    assert result.status == "permitted"
    (finding,) = result.findings
    assert finding.permitted_by == "log.flush.interval.messages"
    assert "broker 0 led without b (log.flush.interval.messages)" in because(finding)


def test_a_leader_that_lost_no_record_may_not_reset_a_consumer() -> None:
    assert run_reset_by_restarted_leader(power_loss=False).judge("nonmonotonic-poll").status == "violated"


def run_reset_by_former_leader(leads_in_epoch: int, *, sender: str = "consumer") -> RunBuilder:
    """Return a run in which former leader 1, or leader 1 of a later epoch, resets a consumer."""
    run = RunBuilder()
    producer = run.producer()
    run.elect(1, 0, (0, 1))
    run.write(producer, "a", 1, 0)
    run.elect(0, 1, (0,))
    if leads_in_epoch:
        run.lead(1, leads_in_epoch, (0, 1))
    run.write(producer, "b", 0)
    reader = run.history.new_process("consumer")
    run.history.record_poll(reader, {PARTITION: [(0, "a"), (1, "b")]}, run.tick(), run.tick())
    run.event(
        "rejected", broker=1, api="Fetch", partition=PARTITION, sender=sender, error="OFFSET_OUT_OF_RANGE"
    )
    run.history.record_poll(reader, {PARTITION: [(1, "b")]}, run.tick(), run.tick())
    run.read_to_end(0)
    return run


def test_a_former_leader_may_reset_a_consumer() -> None:
    result = run_reset_by_former_leader(0).judge("nonmonotonic-poll")
    assert result.status == "permitted"
    (finding,) = result.findings
    assert finding.permitted_by == "auto.offset.reset"
    assert tuple(preventions(finding)) == ("auto.offset.reset=none",)
    assert [link.event for link in finding.chain] == ["elected", "polled", "out-of-range", "polled"]
    assert "broker 1 told consumer that its position was out of range: it still took itself" in because(
        finding
    )


def test_the_leader_of_the_latest_epoch_may_not_reset_a_consumer() -> None:
    assert run_reset_by_former_leader(1).judge("nonmonotonic-poll").status == "violated"


def run_reset_by_follower(*, left: bool) -> RunBuilder:
    """Return a run in which follower 1 resets a consumer, which may have *left* it before."""
    run = RunBuilder()
    producer = run.producer()
    run.elect(0, 0, (0, 1))
    run.write(producer, "a", 0, 1)
    run.write(producer, "b", 0, 1)
    run.event("follower", broker=1, partition=PARTITION, leader_epoch=0, leader=0)
    reader = run.history.new_process("consumer")
    run.event("read_replica", broker=0, partition=PARTITION, client="consumer", replica=1)
    run.history.record_poll(reader, {PARTITION: [(0, "a"), (1, "b")]}, run.tick(), run.tick())
    if left:
        run.event(
            "read_replica_cleared", client="consumer", partition=PARTITION, replica=1, reason="new leader"
        )
    run.event(
        "rejected",
        broker=1,
        api="Fetch",
        partition=PARTITION,
        sender="consumer",
        error="OFFSET_OUT_OF_RANGE",
    )
    run.event("offset_reset", client="consumer", partition=PARTITION, position=2, offset=1, policy="latest")
    run.history.record_poll(reader, {PARTITION: [(1, "b")]}, run.tick(), run.tick())
    run.read_to_end(0)
    return run


def test_a_follower_may_reset_a_consumer_that_no_longer_reads_from_it() -> None:
    result = run_reset_by_follower(left=True).judge("nonmonotonic-poll")
    assert result.status == "permitted"
    (finding,) = result.findings
    assert finding.permitted_by == "auto.offset.reset"
    assert (
        "broker 1 told consumer, which no longer read from it, that its position was out of range"
        in because(finding)
    )


def test_a_follower_may_not_reset_a_consumer_that_still_reads_from_it() -> None:
    """The consumer has to ask the leader first (KIP-392)."""
    assert run_reset_by_follower(left=False).judge("nonmonotonic-poll").status == "violated"


def test_an_answer_to_another_consumer_does_not_explain_a_reset() -> None:
    assert run_reset_by_former_leader(0, sender="another").judge("nonmonotonic-poll").status == "violated"


def test_an_answer_before_the_append_does_not_explain_a_reset() -> None:
    run = RunBuilder()
    producer = run.producer()
    run.elect(1, 0, (0, 1))
    run.write(producer, "a", 1, 0)
    run.elect(0, 1, (0,))
    run.event(
        "rejected", broker=1, api="Fetch", partition=PARTITION, sender="consumer", error="OFFSET_OUT_OF_RANGE"
    )
    run.write(producer, "b", 0)
    reader = run.history.new_process("consumer")
    run.history.record_poll(reader, {PARTITION: [(0, "a"), (1, "b")]}, run.tick(), run.tick())
    run.history.record_poll(reader, {PARTITION: [(1, "b")]}, run.tick(), run.tick())
    run.read_to_end(0)
    assert run.judge("nonmonotonic-poll").status == "violated"


@pytest.mark.parametrize(
    ("position", "unclean", "permitted_by"),
    [(3, True, "unclean.leader.election.enable=true"), (3, False, None), (1, True, None)],
)
def test_a_consumer_beyond_a_lost_abort_marker_may_be_reset(
    position: int, permitted_by: str | None, *, unclean: bool
) -> None:
    """The consumer has read a at offset 0 and skipped the aborted b.

    Broker 1 lacks the abort marker.
    """
    run = RunBuilder(unclean_leader_election=True)
    producer = run.producer()
    run.elect(0, 0, (0, 1))
    run.write(producer, "a", 0, 1)
    run.append(0, "b")
    run.replicate(1, "b")
    run.append(0, "<abort>")
    ids = {"producer_id": 0, "producer_epoch": 0, "coordinator_epoch": 0}
    place = {"broker": 0, "partition": PARTITION, "first_offset": 1, "offset": 2}
    run.event("transaction_marker", committed=False, **place, **ids)
    reader = run.history.new_process("consumer")
    run.history.record_poll(reader, {PARTITION: [(0, "a")]}, run.tick(), run.tick())
    run.elect(1, 1, (1,), unclean=unclean)
    reset = {"client": "consumer", "partition": PARTITION, "offset": 0, "policy": "earliest"}
    run.event("offset_reset", position=position, **reset)
    run.append(1, "c")
    run.history.record_poll(reader, {PARTITION: [(0, "a")]}, run.tick(), run.tick())
    run.elect(1, 2, (0, 1), unclean=True)  # Too late to be the cause.
    run.read_to_end(1)
    (finding, *_) = run.judge("nonmonotonic-poll").findings
    assert finding.permitted_by == permitted_by
