"""inconsistent-offsets: two values at one offset, and whether the loss of one was permitted."""

import pytest

from harrow.campaigns.record.phrases import because
from harrow.cluster_model.log.unified_log import LEADER_EPOCH_TRUNCATION
from tests.checks.evidence_builder import RunBuilder


def run_with_reassigned_offset(
    *, acks: str = "all", unclean: bool = False, copied: bool = True, polled: bool = False
) -> RunBuilder:
    """Return a run in which m2 is acked at offset 1 and lost, and m3 gets its offset."""
    run = RunBuilder(unclean_leader_election=unclean)
    producer = run.producer(acks=acks)
    run.elect(0, 0, (0, 1))
    run.write(producer, "m1", 0, 1)
    if copied:
        run.write(producer, "m2", 0, 1)
        run.truncate(1, 1)
    else:
        run.send(producer, "m2")
        run.append(0, "m2")
        run.acknowledge(0, 1, "m2")
        run.ok(producer, "m2", 1)
    if polled:
        run.poll((0, "m1"), (1, "m2"))
    run.elect(1, 1, (1,), unclean=unclean)
    run.truncate(0, 1, LEADER_EPOCH_TRUNCATION)
    run.write(producer, "m3", 1, 0)
    run.read_to_end(1)
    return run


def test_one_value_at_each_offset_is_consistent() -> None:
    run = RunBuilder()
    producer = run.producer()
    run.write(producer, "m0", 0, 1)
    run.poll((0, "m0"))
    run.write(producer, "m1", 0, 1)
    run.read_to_end(1)
    result = run.judge("inconsistent-offsets")
    assert (result.status, result.promise) == ("held", "high watermark")


def test_an_offset_reassigned_after_a_truncation_is_a_violation() -> None:
    result = run_with_reassigned_offset().judge("inconsistent-offsets")
    assert result.status == "violated"
    (finding,) = result.findings
    assert (finding.partition, finding.offset, finding.value) == ("t-0", 1, "m2")
    assert because(finding).endswith(
        "; offset 1 is m2 (acked) and m3 (broker 0's log, broker 1's log, polled, acked)"
    )
    assert "broker 1 truncated to" in because(finding)


def test_the_permission_of_the_loss_permits_the_reassigned_offset() -> None:
    result = run_with_reassigned_offset(acks="1", copied=False).judge("inconsistent-offsets")
    assert result.status == "permitted"
    assert result.findings[0].permitted_by == "acks=1"


def test_acks_do_not_excuse_the_loss_of_read_records() -> None:
    result = run_with_reassigned_offset(acks="1", copied=False, polled=True).judge("inconsistent-offsets")
    assert result.status == "violated"


@pytest.mark.parametrize("polled", [False, True])
def test_an_unclean_election_permits_a_reassigned_offset(polled: bool) -> None:
    result = run_with_reassigned_offset(unclean=True, copied=True, polled=polled).judge(
        "inconsistent-offsets"
    )
    assert result.status == "permitted"
    assert result.promise == (
        "high watermark, until an unclean election (unclean.leader.election.enable=true)"
    )
    assert result.findings[0].permitted_by == "unclean.leader.election.enable=true"


def test_a_power_loss_permits_a_reassigned_offset() -> None:
    run = RunBuilder()
    producer = run.producer()
    run.elect(0, 0, (0,))
    run.write(producer, "m0", 0)
    run.poll((0, "m0"))
    run.lose_power(0, 0)
    run.write(producer, "m1", 0)
    run.read_to_end(0)
    result = run.judge("inconsistent-offsets")
    assert result.status == "permitted"
    assert result.findings[0].permitted_by == "log.flush.interval.messages"


def test_two_polls_with_different_values_are_a_violation() -> None:
    run = RunBuilder()
    producer = run.producer()
    run.write(producer, "m0", 0, 1)
    run.poll((0, "m0"))
    run.poll((0, "x"))
    assert run.judge("inconsistent-offsets").status == "violated"


@pytest.mark.parametrize("high_watermark", [1, 0])
def test_final_logs_that_differ_below_the_high_watermark_are_a_violation(
    high_watermark: int,
) -> None:
    run = RunBuilder(unclean_leader_election=True)
    run.append(0, "m2")
    run.elect(1, 1, (1,), unclean=True)
    run.append(1, "m3")
    run.raise_hw(1, 1)
    run.raise_hw(high_watermark, 0)
    run.read_back.add("t-0")
    result = run.judge("inconsistent-offsets")
    assert result.status == ("violated" if high_watermark else "held")


def test_the_value_that_was_read_stands_if_no_log_has_the_offset() -> None:
    """Both m0 and m1 were acked at offset 0 and lost; consumers read m1."""
    run = RunBuilder()
    acks_0, acks_all = run.producer(acks="0"), run.producer()
    run.append(0, "m0")
    run.history.record_send(acks_0, "t-0", "m0", run.tick())
    run.ok(acks_0, "m0", 0)
    run.truncate(0, 0)
    run.write(acks_all, "m1", 0)
    run.poll((0, "m1"))
    run.truncate(0, 0)
    run.read_back.add("t-0")
    (finding,) = run.judge("inconsistent-offsets").findings
    assert (finding.value, finding.permitted_by) == ("m0", "acks=0")


def test_two_acks_of_one_offset_are_inconclusive_while_the_partition_has_not_healed() -> None:
    """One of the two acks of offset 0 is from a zombie leader, whose record may come back."""
    run = RunBuilder()
    producer = run.producer(acks="1")
    run.write(producer, "m0", 0)
    run.truncate(0, 0)
    run.write(producer, "m1", 0)
    result = run.judge("inconsistent-offsets")
    assert (result.status, result.findings) == ("inconclusive", ())


def test_the_loss_of_every_value_needs_a_permission() -> None:
    run = RunBuilder()
    acks_0, acks_all = run.producer(acks="0"), run.producer()
    run.send(acks_0, "m0")
    run.append(0, "m0")
    run.ok(acks_0, "m0", 0)
    run.truncate(0, 0)
    run.write(acks_all, "m1", 0)
    run.truncate(0, 0)
    run.write(acks_all, "m2", 0)
    run.read_to_end(0)
    (finding,) = run.judge("inconsistent-offsets").findings
    assert "broker 0 appended m0 at offset 0" in because(finding)
    assert "broker 0 appended m1 at offset 0" in because(finding)
    assert finding.permitted_by is None


def test_a_value_in_the_leaders_log_is_not_lost_in_an_unfinished_run() -> None:
    """A power loss took m0, and m1 got its offset.

    The run ended before the partition was read back.
    """
    run = RunBuilder()
    producer = run.producer()
    run.elect(0, 0, (0, 1))
    run.write(producer, "m0", 0, 1)
    run.poll((0, "m0"))
    run.lose_power(0, 0)
    run.lose_power(1, 0)
    run.elect(0, 1, (0,))
    run.write(producer, "m1", 0)
    run.poll((0, "m1"))
    (finding,) = run.judge("inconsistent-offsets").findings
    assert (finding.value, finding.permitted_by) == ("m0", "log.flush.interval.messages")


def test_a_value_at_another_offset_of_the_leader_is_lost_at_its_own() -> None:
    """Two leaders appended m0 at two offsets; the last leader has only its own copy."""
    run = RunBuilder()
    producer = run.producer()
    run.elect(0, 0, (0, 1))
    run.write(producer, "m", 0, 1)
    run.append(0, "m0")
    run.poll((0, "m"), (1, "m0"))
    run.elect(1, 1, (1,))
    run.write(producer, "m1", 1)
    run.write(producer, "m0", 1)
    run.poll((1, "m1"), (2, "m0"))
    (finding,) = run.judge("inconsistent-offsets").findings
    assert (finding.value, finding.offset, finding.permitted_by) == ("m0", 1, None)


def test_two_values_at_one_offset_are_inconsistent_without_a_known_leader() -> None:
    run = RunBuilder()
    for broker, value in enumerate(("m0", "m1")):
        run.append(broker, value)
        run.poll((0, value))
    (finding,) = run.judge("inconsistent-offsets").findings
    assert because(finding).endswith("offset 0 is m0 (polled) and m1 (polled)")
