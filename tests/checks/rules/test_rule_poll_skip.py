"""poll-skip in a run: a consumer that skips the offset of a record, and what permits that."""

import pytest

from harrow.campaigns.record.phrases import because
from harrow.checks.finding import Finding
from harrow.cluster_model.history import FAIL, OK
from tests.checks.evidence_builder import PARTITION, RunBuilder

COMMITTED = "read_committed"


@pytest.mark.parametrize("unclean", [True, False])
def test_an_offset_may_be_skipped_if_an_unclean_leader_had_the_record_at_another_offset(
    *, unclean: bool
) -> None:
    """Broker 1 had b at offset 2. Broker 0 leads with b at offset 1 and a marker at offset 2."""
    run = RunBuilder(unclean_leader_election=True)
    producer = run.producer()
    run.elect(0, 0, (0, 1))
    run.write(producer, "a", 0, 1)
    run.append(0, "b")
    run.elect(1, 1, (1,))
    for value in ("c", "b"):
        run.write(producer, value, 1)
    run.elect(0, 2, (0,), unclean=unclean)
    run.append(0, "<commit>")
    run.write(producer, "d", 0)
    reader = run.history.new_process("consumer")
    run.history.record_poll(reader, {PARTITION: [(0, "a"), (1, "b"), (3, "d")]}, run.tick(), run.tick())
    run.read_to_end(0)
    result = run.judge("int-poll-skip")
    assert result.status == ("permitted" if unclean else "violated")
    assert {finding.value for finding in result.findings} == {"d"}


def lose_after_a(run: RunBuilder, *, in_power_loss: bool) -> None:
    """Make both brokers lose a record that a consumer has read, the one after ``a``: in a power
    loss, or because of a bug.
    """
    producer = run.producer()
    run.elect(0, 0, (0, 1))
    run.write(producer, "a", 0, 1)
    run.write(producer, "lost", 0, 1)
    run.poll((0, "a"), (1, "lost"), isolation_level=COMMITTED)
    for broker in (1, 0):
        if in_power_loss:
            run.lose_power(broker, 1)
        else:
            run.truncate(broker, 1)
    run.elect(0, 1, (0, 1))


def skip_aborted(run: RunBuilder, outcome: str, b_at: int) -> None:
    """Abort a transaction in the log, report *outcome* to its producer, and let a consumer skip
    the aborted record: it polls ``a`` and then ``b``.
    """
    producer = run.producer()
    run.in_transactions.add("aborted")
    run.transaction(producer, outcome, "aborted")
    for broker in (0, 1):
        run.append(broker, "<abort>")
    run.write(producer, "b", 0, 1)
    run.poll((0, "a"), (b_at, "b"), isolation_level=COMMITTED)


def finding_after_aborted_skip(run: RunBuilder, outcome: str) -> Finding:
    skip_aborted(run, outcome, 3)
    (finding,) = run.judge("int-poll-skip").findings
    return finding


@pytest.mark.parametrize("in_power_loss", [True, False])
def test_a_lost_record_is_not_excused_by_an_aborted_one_at_its_offset(*, in_power_loss: bool) -> None:
    run = RunBuilder()
    lose_after_a(run, in_power_loss=in_power_loss)
    finding = finding_after_aborted_skip(run, FAIL)
    assert finding.permitted_by == ("log.flush.interval.messages" if in_power_loss else None)
    assert "is aborted" not in because(finding)


def test_skipping_a_record_aborted_after_its_ack_is_a_violation() -> None:
    run = RunBuilder()
    run.elect(0, 0, (0, 1))
    run.write(run.producer(), "a", 0, 1)
    finding = finding_after_aborted_skip(run, OK)
    assert finding.permitted_by is None
    assert "was aborted, although the application was told that the transaction had committed" in because(
        finding
    )


def test_the_abort_of_one_record_does_not_permit_skipping_another_lost_one() -> None:
    """The loss of the transaction is permitted, but both brokers truncated the record "lost"
    because of a bug.
    """
    run = RunBuilder(unclean_leader_election=True)
    lose_after_a(run, in_power_loss=False)
    run.append(0, "other")
    run.replicate(1, "other", epoch=1)
    skip_aborted(run, OK, 4)
    run.elect(1, 2, (0, 1), unclean=True)
    assert run.judge("int-poll-skip").status == "violated"
