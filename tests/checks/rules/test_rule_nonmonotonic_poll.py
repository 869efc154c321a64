"""nonmonotonic-poll in a run: a consumer that a leader sends back, and what permits it."""

import pytest

from harrow.campaigns.record.phrases import because, preventions
from tests.checks.evidence_builder import PARTITION, RunBuilder


def sent_back(*, power_loss: bool) -> RunBuilder:
    """Broker 0 leads, is not missed while it restarts, and leads on in a new epoch; broker 1 is elected later."""
    run = RunBuilder()
    producer = run.producer()
    run.elect(0, 0, (0, 1))
    for value in ("a", "b"):
        run.write(producer, value, 0, 1)
    reader = run.history.new_process("consumer")
    run.history.polled(reader, {PARTITION: [(0, "a"), (1, "b")]}, run.tick(), run.tick())
    if power_loss:
        run.lose_power(0, flushed=0)
    run.lead(0, 1, (0, 1))
    run.history.polled(reader, {PARTITION: [(0, "a")]}, run.tick(), run.tick())
    run.elect(1, 2, (1,))
    if power_loss:
        for value in ("a", "b"):
            run.replicate(0, value)
    run.read_to_end(1)
    return run


def test_a_leader_that_leads_on_without_what_it_lost_with_its_power() -> None:
    result = sent_back(power_loss=True).judge("nonmonotonic-poll")
    assert result.status == "permitted"
    (finding,) = result.findings
    assert finding.permitted_by == "log.flush.interval.messages"
    assert "broker 0 led without b (log.flush.interval.messages)" in because(finding)


def test_a_leader_that_has_lost_nothing_resets_no_consumer() -> None:
    assert sent_back(power_loss=False).judge("nonmonotonic-poll").status == "violated"


def told_by(told_by_epoch: int, *, sender: str = "consumer") -> RunBuilder:
    """Broker 1 was succeeded by broker 0; then a consumer asks broker 1, as leader of an epoch, and falls back."""
    run = RunBuilder()
    producer = run.producer()
    run.elect(1, 0, (0, 1))
    run.write(producer, "a", 1, 0)
    run.elect(0, 1, (0,))
    if told_by_epoch:
        run.lead(1, told_by_epoch, (0, 1))
    run.write(producer, "b", 0)
    reader = run.history.new_process("consumer")
    run.history.polled(reader, {PARTITION: [(0, "a"), (1, "b")]}, run.tick(), run.tick())
    run.event(
        "rejected", broker=1, api="Fetch", partition=PARTITION, sender=sender, error="OFFSET_OUT_OF_RANGE"
    )
    run.history.polled(reader, {PARTITION: [(1, "b")]}, run.tick(), run.tick())
    run.read_to_end(0)
    return run


def test_a_leader_of_the_past_sends_a_consumer_back() -> None:
    result = told_by(0).judge("nonmonotonic-poll")
    assert result.status == "permitted"
    (finding,) = result.findings
    assert finding.permitted_by == "auto.offset.reset"
    assert tuple(preventions(finding)) == ("auto.offset.reset=none",)
    assert [link.event for link in finding.chain] == ["elected", "polled", "out-of-range", "polled"]
    assert "broker 1 told consumer that its position was out of range: it still took itself" in because(
        finding
    )


def test_the_leader_of_the_latest_epoch_may_not_reset_a_consumer() -> None:
    assert told_by(1).judge("nonmonotonic-poll").status == "violated"


def told_by_follower(*, left: bool) -> RunBuilder:
    """A consumer reads from broker 1, which follows and calls its position out of range; it resets that, having *left* the follower or not."""
    run = RunBuilder()
    producer = run.producer()
    run.elect(0, 0, (0, 1))
    run.write(producer, "a", 0, 1)
    run.write(producer, "b", 0, 1)
    run.event("follower", broker=1, partition=PARTITION, leader_epoch=0, leader=0)
    reader = run.history.new_process("consumer")
    run.event("read_replica", broker=0, partition=PARTITION, client="consumer", replica=1)
    run.history.polled(reader, {PARTITION: [(0, "a"), (1, "b")]}, run.tick(), run.tick())
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
    run.history.polled(reader, {PARTITION: [(1, "b")]}, run.tick(), run.tick())
    run.read_to_end(0)
    return run


def test_a_follower_that_a_consumer_has_left_sends_it_back() -> None:
    result = told_by_follower(left=True).judge("nonmonotonic-poll")
    assert result.status == "permitted"
    (finding,) = result.findings
    assert finding.permitted_by == "auto.offset.reset"
    assert (
        "broker 1 told consumer, which no longer read from it, that its position was out of range"
        in because(finding)
    )


def test_a_follower_resets_no_consumer_that_still_reads_from_it() -> None:
    """Such a consumer has to ask its leader first (KIP-392)."""
    assert told_by_follower(left=False).judge("nonmonotonic-poll").status == "violated"


def test_an_answer_to_another_consumer_does_not_explain_a_reset() -> None:
    assert told_by(0, sender="another").judge("nonmonotonic-poll").status == "violated"


def test_an_answer_from_before_the_record_does_not_explain_a_reset() -> None:
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
    run.history.polled(reader, {PARTITION: [(0, "a"), (1, "b")]}, run.tick(), run.tick())
    run.history.polled(reader, {PARTITION: [(1, "b")]}, run.tick(), run.tick())
    run.read_to_end(0)
    assert run.judge("nonmonotonic-poll").status == "violated"


@pytest.mark.parametrize(
    ("position", "unclean", "permitted_by"),
    [(3, True, "unclean.leader.election.enable=true"), (3, False, None), (1, True, None)],
)
def test_a_consumer_beyond_the_marker_of_an_aborted_record_may_be_sent_back(
    position: int, permitted_by: str | None, *, unclean: bool
) -> None:
    """It has read a at offset 0, and nothing of b at 1, which was aborted; broker 1 has no marker of that."""
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
    run.history.polled(reader, {PARTITION: [(0, "a")]}, run.tick(), run.tick())
    run.elect(1, 1, (1,), unclean=unclean)
    reset = {"client": "consumer", "partition": PARTITION, "offset": 0, "policy": "earliest"}
    run.event("offset_reset", position=position, **reset)
    run.append(1, "c")
    run.history.polled(reader, {PARTITION: [(0, "a")]}, run.tick(), run.tick())
    run.elect(1, 2, (0, 1), unclean=True)  # That comes too late to have done it.
    run.read_to_end(1)
    (finding, *_) = run.judge("nonmonotonic-poll").findings
    assert finding.permitted_by == permitted_by
