"""read-above-hw: consumers get only records below the current high watermark."""

from harrow.campaigns.record.phrases import because
from tests.checks.evidence_builder import RunBuilder


def serve(
    run: RunBuilder, end_offset: int, *, broker: int = 0, partition: str = "t-0", offset: int = 0
) -> None:
    run.event(
        "served",
        broker=broker,
        partition=partition,
        client="consumer-0",
        offset=offset,
        end_offset=end_offset,
        hw=end_offset,
    )


def test_a_read_up_to_the_high_watermark_keeps_the_promise() -> None:
    run = RunBuilder()
    serve(run, 0)
    run.raise_hw(2, 0)
    serve(run, 2)
    run.raise_hw(3, 0)
    serve(run, 3, offset=2)
    result = run.judge("read-above-hw")
    assert (result.status, result.promise) == ("held", "high watermark")


def test_a_read_above_the_high_watermark_is_a_violation() -> None:
    run = RunBuilder()
    run.raise_hw(2, 0)
    serve(run, 4, offset=1)
    result = run.judge("read-above-hw")
    assert result.status == "violated"
    (finding,) = result.findings
    assert (finding.partition, finding.offset) == ("t-0", 2)
    assert because(finding) == (
        "0.200s broker 0 served consumer-0 up to offset 4 (exclusive), when its high watermark was 2; "
        "offset 2 was not committed"
    )


def test_a_later_high_watermark_does_not_permit_an_earlier_read() -> None:
    run = RunBuilder()
    serve(run, 1)
    run.raise_hw(1, 0)
    assert run.judge("read-above-hw").status == "violated"


def test_each_broker_and_partition_has_its_own_high_watermark() -> None:
    run = RunBuilder()
    run.raise_hw(5, 0)
    serve(run, 5, broker=1)
    serve(run, 5, partition="t-1")
    assert len(run.judge("read-above-hw").findings) == 2


def test_a_restarted_broker_has_its_recovered_high_watermark() -> None:
    run = RunBuilder()
    run.raise_hw(5, 0)
    run.event("recover", broker=0, partition="t-0", leo=5, hw=3)
    serve(run, 3)
    assert run.judge("read-above-hw").status == "held"
    serve(run, 5)
    assert run.judge("read-above-hw").status == "violated"
