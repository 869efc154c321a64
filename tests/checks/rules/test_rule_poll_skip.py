"""poll-skip in a run: a consumer that passed over a place where a record had stood, and what permits it."""

import pytest

from harrow.campaigns.record.phrases import because
from harrow.checks.finding import Finding
from harrow.cluster_model.history import FAIL, OK
from tests.checks.evidence_builder import PARTITION, RunBuilder

COMMITTED = "read_committed"


@pytest.mark.parametrize("unclean", [True, False])
def test_a_place_may_be_passed_over_whose_record_an_unclean_leader_had_elsewhere(*, unclean: bool) -> None:
    """Broker 1 had b at offset 2; broker 0 leads with it at 1, and with the end of a transaction at 2."""
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
    run.history.polled(reader, {PARTITION: [(0, "a"), (1, "b"), (3, "d")]}, run.tick(), run.tick())
    run.read_to_end(0)
    result = run.judge("int-poll-skip")
    assert result.status == ("permitted" if unclean else "violated")
    assert {finding.value for finding in result.findings} == {"d"}


def lose_after_a(run: RunBuilder, *, with_power: bool) -> None:
    """Both brokers lose what stands behind a, which a consumer has read: with their power, or by a flaw."""
    producer = run.producer()
    run.elect(0, 0, (0, 1))
    run.write(producer, "a", 0, 1)
    run.write(producer, "lost", 0, 1)
    run.poll((0, "a"), (1, "lost"), isolation_level=COMMITTED)
    for broker in (1, 0):
        if with_power:
            run.lose_power(broker, 1)
        else:
            run.truncate(broker, 1)
    run.elect(0, 1, (0, 1))


def pass_over_aborted(run: RunBuilder, outcome: str, b_at: int) -> None:
    """A transaction is aborted in the log, and a consumer goes over it from a to b; its application was told *outcome*."""
    producer = run.producer()
    run.in_transactions.add("aborted")
    run.transaction(producer, outcome, "aborted")
    for broker in (0, 1):
        run.append(broker, "<abort>")
    run.write(producer, "b", 0, 1)
    run.poll((0, "a"), (b_at, "b"), isolation_level=COMMITTED)


def passed_over_aborted(run: RunBuilder, outcome: str) -> Finding:
    pass_over_aborted(run, outcome, 3)
    (finding,) = run.judge("int-poll-skip").findings
    return finding


@pytest.mark.parametrize("with_power", [True, False])
def test_what_was_lost_where_an_aborted_record_stands_now_is_not_what_was_aborted(
    *, with_power: bool
) -> None:
    run = RunBuilder()
    lose_after_a(run, with_power=with_power)
    finding = passed_over_aborted(run, FAIL)
    assert finding.permitted_by == ("log.flush.interval.messages" if with_power else None)
    assert "is aborted" not in because(finding)


def test_a_skipped_record_was_aborted_although_it_was_acked() -> None:
    run = RunBuilder()
    run.elect(0, 0, (0, 1))
    run.write(run.producer(), "a", 0, 1)
    finding = passed_over_aborted(run, OK)
    assert finding.permitted_by is None
    assert "was aborted, although the application was told that the transaction had committed" in because(
        finding
    )


def test_who_aborted_one_record_speaks_for_no_other_that_a_flaw_has_lost() -> None:
    """The transaction is permitted to be lost with its log, and "lost" before it was cut off by both brokers."""
    run = RunBuilder(unclean_leader_election=True)
    lose_after_a(run, with_power=False)
    run.append(0, "other")
    run.replicate(1, "other", epoch=1)
    pass_over_aborted(run, OK, 4)
    run.elect(1, 2, (0, 1), unclean=True)
    assert run.judge("int-poll-skip").status == "violated"
