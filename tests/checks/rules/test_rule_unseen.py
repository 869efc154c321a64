"""unseen: acked, in a log, and never read."""

from harrow.campaigns.record.phrases import because
from tests.checks.evidence_builder import RunBuilder


def three_acked() -> RunBuilder:
    run = RunBuilder()
    producer = run.producer()
    for value in ("m0", "m1", "m2"):
        run.write(producer, value, 0, 1)
    return run


def test_held_when_everything_was_read() -> None:
    run = three_acked()
    run.read_to_end(0)
    result = run.judge("unseen")
    assert (result.status, result.promise) == ("held", "high watermark")


def test_held_when_it_was_read_by_anybody_at_any_time() -> None:
    run = three_acked()
    run.poll((1, "m1"))
    run.poll((0, "m0"), (2, "m2"))
    run.read_back.add("t-0")
    assert run.judge("unseen").status == "held"


def test_violated_when_no_poll_returned_it() -> None:
    run = three_acked()
    run.poll((0, "m0"), (2, "m2"))
    run.read_back.add("t-0")
    result = run.judge("unseen")
    assert result.status == "violated"
    (finding,) = result.findings
    assert (finding.partition, finding.offset, finding.value) == ("t-0", 1, "m1")
    assert "at offset 1 of broker 0 and at offset 1 of broker 1" in because(finding)


def test_violated_when_only_the_leader_has_it() -> None:
    run = three_acked()
    run.lead(0, 0, (0, 1))
    run.truncate(1, 2)
    run.read_to_end(1)
    (finding,) = run.judge("unseen").findings
    assert (finding.value, finding.offset) == ("m2", 2)
    assert "it is at offset 2 of broker 0, but" in because(finding)
    assert run.judge("lost-write").status == "held"


def test_a_record_that_the_leader_lacks_is_lost_not_unseen() -> None:
    run = three_acked()
    run.lead(0, 0, (0, 1))
    run.truncate(0, 2)
    run.read_to_end(0)
    assert run.judge("unseen").status == "held"
    assert [finding.value for finding in run.judge("lost-write").findings] == ["m2"]


def test_a_record_in_no_log_is_lost_not_unseen() -> None:
    run = three_acked()
    run.truncate(0, 2)
    run.truncate(1, 2)
    run.read_to_end(0)
    assert run.judge("unseen").status == "held"


def test_unacked_records_need_not_be_read() -> None:
    run = three_acked()
    run.send(0, "m3")
    run.unknown(0, "m3")
    run.read_to_end(0)
    run.append(0, "m3")
    assert run.judge("unseen").status == "held"


def test_inconclusive_when_the_partition_was_not_read_back() -> None:
    run = three_acked()
    run.poll((0, "m0"))
    result = run.judge("unseen")
    assert (result.status, result.findings) == ("inconclusive", ())
