"""nonmonotonic-poll in a run: a consumer that a leader sends back, and what permits it."""

from tests.unit.checks.evidence_builder import PARTITION, RunBuilder


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
    assert "broker 0 led without b (log.flush.interval.messages)" in finding.because


def test_a_leader_that_has_lost_nothing_sends_nobody_back() -> None:
    assert sent_back(power_loss=False).judge("nonmonotonic-poll").status == "violated"
