"""Control records occupy offsets, and no rule treats one as a record of a client."""

from dataclasses import replace

import pytest

from harrow.campaigns.record.phrases import because
from harrow.checks.index import Index
from harrow.checks.rules.catalogue import RULES
from tests.checks.evidence_builder import MARKERS, RunBuilder


def run_with_markers() -> RunBuilder:
    """Return a run with two acked records on two brokers, each followed by a transaction marker."""
    run = RunBuilder()
    producer = run.producer()
    run.elect(0, 0, (0, 1))
    for value in ("m0", "m1"):
        run.write(producer, value, 0, 1)
        run.append(0, "<commit>")
        run.replicate(1, "<commit>")
        run.raise_hw(len(run.logs["t-0"][0]), 0, 1)
    run.read_to_end(0)
    return run


@pytest.mark.parametrize("rule", RULES)
def test_control_records_alone_cause_no_finding(rule: str) -> None:
    assert not run_with_markers().judge(rule).findings


def test_control_records_do_not_shift_the_offsets_of_values() -> None:
    evidence = run_with_markers().evidence()
    assert evidence.replicas["t-0"][0].values() == ["m0", None, "m1", None]
    index = Index(evidence)
    assert [index.standing_at("t-0", offset) for offset in range(5)] == ["m0", None, "m1", None, None]
    assert index.readable("t-0") == {"m0", "m1"}


@pytest.mark.parametrize("other", [*MARKERS, "m9"])
def test_replicas_with_different_control_records_have_diverged(other: str) -> None:
    run = run_with_markers()
    run.logs["t-0"][1][1] = (other, 0)
    result = run.judge("log-divergence")
    if other == "<commit>":
        assert result.status == "held"
    else:
        (finding,) = result.findings
        named = "the marker of abort" if other == "<abort>" else other
        assert (
            because(finding)
            == f"offset 1 is the marker of commit (epoch 0) on broker 0 and {named} (epoch 0) on broker 1"
        )


def test_a_damaged_control_batch_still_occupies_its_offset() -> None:
    log = run_with_markers().evidence().replicas["t-0"][0]
    damaged = replace(log, damaged=frozenset({0, 1}))
    assert damaged.values() == [None, None, "m1", None]


def test_records_below_the_log_start_are_no_values() -> None:
    log = run_with_markers().evidence().replicas["t-0"][0]
    assert (log.log_start, log.first_offset) == (0, 0)
    later_start = replace(log, begins_at=1)
    assert (later_start.log_start, later_start.values()) == (1, [None, None, "m1", None])
    assert replace(log, begins_at=9).values() == [None] * 4
