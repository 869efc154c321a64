"""unseen: acked records in a log that no consumer read."""

from harrow.campaigns.record.phrases import because
from tests.checks.evidence_builder import RunBuilder


def run_with_three_acked_records() -> RunBuilder:
    run = RunBuilder()
    producer = run.producer()
    for value in ("m0", "m1", "m2"):
        run.write(producer, value, 0, 1)
    return run


def test_a_record_that_was_read_is_not_unseen() -> None:
    run = run_with_three_acked_records()
    run.read_to_end(0)
    result = run.judge("unseen")
    assert (result.status, result.promise) == ("held", "high watermark")


def test_a_read_by_any_consumer_at_any_time_counts() -> None:
    run = run_with_three_acked_records()
    run.poll((1, "m1"))
    run.poll((0, "m0"), (2, "m2"))
    run.read_back.add("t-0")
    assert run.judge("unseen").status == "held"


def test_a_record_that_no_poll_returned_is_a_violation() -> None:
    run = run_with_three_acked_records()
    run.poll((0, "m0"), (2, "m2"))
    run.read_back.add("t-0")
    result = run.judge("unseen")
    assert result.status == "violated"
    (finding,) = result.findings
    assert (finding.partition, finding.offset, finding.value) == ("t-0", 1, "m1")
    assert "at offset 1 of broker 0 and at offset 1 of broker 1" in because(finding)


def test_an_unread_record_in_only_the_leaders_log_is_a_violation() -> None:
    run = run_with_three_acked_records()
    run.lead(0, 0, (0, 1))
    run.truncate(1, 2)
    run.read_to_end(1)
    (finding,) = run.judge("unseen").findings
    assert (finding.value, finding.offset) == ("m2", 2)
    assert "it is at offset 2 of broker 0, but" in because(finding)
    assert run.judge("lost-write").status == "held"


def test_a_record_that_the_leader_lacks_is_lost_not_unseen() -> None:
    run = run_with_three_acked_records()
    run.lead(0, 0, (0, 1))
    run.truncate(0, 2)
    run.read_to_end(0)
    assert run.judge("unseen").status == "held"
    assert [finding.value for finding in run.judge("lost-write").findings] == ["m2"]


def test_a_record_in_no_log_is_lost_not_unseen() -> None:
    run = run_with_three_acked_records()
    run.truncate(0, 2)
    run.truncate(1, 2)
    run.read_to_end(0)
    assert run.judge("unseen").status == "held"


def test_unacked_records_need_not_be_read() -> None:
    run = run_with_three_acked_records()
    run.send(0, "m3")
    run.unknown(0, "m3")
    run.read_to_end(0)
    run.append(0, "m3")
    assert run.judge("unseen").status == "held"


def test_a_partition_that_was_not_read_back_is_inconclusive() -> None:
    run = run_with_three_acked_records()
    run.poll((0, "m0"))
    result = run.judge("unseen")
    assert (result.status, result.findings) == ("inconclusive", ())
