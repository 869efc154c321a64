"""log-divergence: final logs are compared offset by offset below every high watermark."""

from dataclasses import replace

from harrow.campaigns.record.phrases import because
from harrow.checks.index import Index
from harrow.checks.rules.catalogue import RULES
from tests.checks.evidence_builder import REMOVED, RunBuilder

Records = list[tuple[str, int]]


def healed_run(hw: tuple[int, ...], *logs: Records) -> RunBuilder:
    run = RunBuilder(tuple(range(len(logs))))
    run.logs["t-0"] = dict(enumerate(logs))
    run.high_watermarks = {("t-0", broker): offset for broker, offset in enumerate(hw)}
    return run


def test_equal_logs_have_not_diverged() -> None:
    records = [("m0", 0), ("m1", 1)]
    result = healed_run((2, 2, 2), records, list(records), list(records)).judge("log-divergence")
    assert (result.status, result.promise) == ("held", "high watermark")


def test_logs_of_different_length_have_not_diverged() -> None:
    assert healed_run((1, 1), [("m0", 0), ("m1", 0)], [("m0", 0)]).judge("log-divergence").status == "held"


def test_logs_may_differ_above_the_smallest_high_watermark() -> None:
    run = healed_run((2, 1), [("m0", 0), ("m1", 0)], [("m0", 0), ("x", 0)])
    assert run.judge("log-divergence").status == "held"


def test_a_single_replica_cannot_diverge() -> None:
    assert healed_run((1,), [("m0", 0)]).judge("log-divergence").status == "held"


def test_different_values_at_one_offset_are_a_violation() -> None:
    run = healed_run((2, 2, 2), [("m1", 0), ("m2", 0)], [("m1", 0), ("m3", 1)], [("m1", 0), ("m2", 0)])
    result = run.judge("log-divergence")
    assert result.status == "violated"
    (finding,) = result.findings
    assert (finding.partition, finding.offset) == ("t-0", 1)
    assert because(finding) == "offset 1 is m2 (epoch 0) on brokers 0 and 2 and m3 (epoch 1) on broker 1"


def test_different_leader_epochs_at_one_offset_are_a_violation() -> None:
    result = healed_run((1, 1), [("m1", 0)], [("m1", 1)]).judge("log-divergence")
    assert result.status == "violated"


def test_each_range_of_differing_offsets_is_one_finding() -> None:
    run = healed_run(
        (6, 6),
        [(value, 0) for value in "abcdef"],
        [(value, 0) for value in "aXYdeZ"],
    )
    findings = run.judge("log-divergence").findings
    assert [finding.offset for finding in findings] == [1, 5]
    assert because(findings[0]).endswith("the logs differ up to offset 2")
    assert "up to" not in because(findings[1])


def test_a_replica_may_have_removed_what_lies_between_two_batches_that_it_keeps() -> None:
    marker, kept = ("<commit>", 0), ("b", 0)
    run = healed_run((3, 3), [marker, ("a", 0), kept], [marker, (REMOVED, 0), kept])
    assert run.judge("log-divergence").status == "held"


def test_a_replica_outside_the_isr_may_differ() -> None:
    run = healed_run((2, 2), [("m1", 0), ("m2", 0)], [("m1", 0), ("m3", 1)])
    evidence = run.evidence()
    logs = evidence.replicas["t-0"]
    outside = {**logs, 1: replace(logs[1], in_sync=False)}
    evidence = replace(evidence, replicas={"t-0": outside})
    assert RULES["log-divergence"].judge(Index(evidence)).status == "held"
