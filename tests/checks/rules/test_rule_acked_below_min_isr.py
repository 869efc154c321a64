"""acked-below-min-isr: the ISR is large enough when an acks=all send is appended and acked."""

import pytest

from harrow.campaigns.record.phrases import because
from harrow.checks.finding import RuleResult
from tests.checks.evidence_builder import PARTITION, RunBuilder


def run_with_two_replicas() -> RunBuilder:
    """Return a run with min.insync.replicas 2, in which broker 0 leads and both brokers are in the
    ISR.
    """
    run = RunBuilder(min_insync_replicas=2)
    run.elect(0, 0, (0, 1))
    return run


def report_isr(run: RunBuilder, *members: int, change: str = "shrink") -> None:
    run.event("isr", broker=0, partition=PARTITION, leader_epoch=0, isr=members, change=change)


def report_pending_isr(run: RunBuilder, *members: int) -> None:
    run.event("isr_pending", broker=0, partition=PARTITION, leader_epoch=0, isr=members)


def judge(run: RunBuilder) -> RuleResult:
    return run.judge("acked-below-min-isr")


def test_an_ack_with_a_large_enough_isr_keeps_the_promise() -> None:
    run = run_with_two_replicas()
    run.append(0, "a")
    run.raise_hw(1, 0)
    run.acknowledge(0, 0, "a")
    assert (judge(run).status, judge(run).promise) == ("held", "acks=all with min.insync.replicas")


def test_an_append_below_min_isr_is_a_violation() -> None:
    run = run_with_two_replicas()
    report_isr(run, 0)
    run.append(0, "a")
    run.raise_hw(1, 0)
    run.acknowledge(0, 0, "a")
    (finding,) = judge(run).findings
    assert (finding.partition, finding.offset, finding.value) == (PARTITION, 0, "a")
    assert because(finding) == (
        "0.300s broker 0 led with the ISR [0]; 0.600s broker 0 acknowledged a at offset 0 to acks=all; "
        "min.insync.replicas is 2, the ISR had 1"
    )
    assert judge(run).status == "violated"


def test_an_append_below_min_isr_stays_a_violation_if_the_isr_grows_before_the_ack() -> None:
    run = run_with_two_replicas()
    report_isr(run, 0)
    run.append(0, "a")
    report_isr(run, 0, 1, change="expand")
    run.raise_hw(1, 0)
    run.acknowledge(0, 0, "a")
    assert judge(run).status == "violated"


def test_a_commit_and_ack_below_min_isr_are_a_violation() -> None:
    run = run_with_two_replicas()
    run.append(0, "a")
    report_isr(run, 0)
    run.raise_hw(1, 0)
    run.acknowledge(0, 0, "a")
    assert judge(run).status == "violated"


def test_an_isr_that_shrinks_after_the_commit_does_not_matter() -> None:
    run = run_with_two_replicas()
    run.append(0, "a")
    run.raise_hw(1, 0)
    report_isr(run, 0)
    run.acknowledge(0, 0, "a")
    assert judge(run).status == "held"


def test_an_isr_that_grows_between_commit_and_ack_keeps_the_promise() -> None:
    run = run_with_two_replicas()
    run.append(0, "a")
    report_isr(run, 0)
    run.raise_hw(1, 0)
    report_isr(run, 0, 1, change="expand")
    run.acknowledge(0, 0, "a")
    assert judge(run).status == "held"


def test_an_election_with_a_small_isr_is_a_violation() -> None:
    run = run_with_two_replicas()
    run.elect(1, 1, (1,))
    run.append(1, "a")
    run.raise_hw(1, 1)
    run.acknowledge(1, 0, "a")
    assert [finding.details for finding in judge(run).findings] == [
        (("isr", [1]), ("min_insync_replicas", 2))
    ]


def test_an_ack_of_a_duplicate_batch_counts_the_isr_at_its_arrival() -> None:
    run = run_with_two_replicas()
    run.append(0, "a")
    run.raise_hw(1, 0)
    report_isr(run, 0)
    run.event("duplicate_batch", broker=0, partition=PARTITION, producer_id=7, base_sequence=0, base_offset=0)
    run.acknowledge(0, 0, "a")
    assert judge(run).status == "violated"


def test_an_acks_1_send_may_be_acked_below_min_isr() -> None:
    run = run_with_two_replicas()
    report_isr(run, 0)
    run.append(0, "a")
    run.event("acknowledged", broker=0, partition=PARTITION, base_offset=0, acks=1, values=("a",))
    assert judge(run).status == "held"


@pytest.mark.parametrize(("release", "status"), [("3.6", "violated"), ("3.9", "held"), ("4.3", "held")])
def test_since_kafka_15583_min_isr_is_at_most_the_number_of_replicas(release: str, status: str) -> None:
    run = RunBuilder((0, 1), min_insync_replicas=3, release=release)
    run.elect(0, 0, (0, 1))
    run.append(0, "a")
    run.raise_hw(1, 0)
    run.acknowledge(0, 0, "a")
    assert judge(run).status == status


def test_one_of_two_replicas_is_too_few_for_a_min_isr_of_three() -> None:
    run = RunBuilder((0, 1), min_insync_replicas=3, release="4.3")
    run.elect(0, 0, (0, 1))
    report_isr(run, 0)
    run.append(0, "a")
    run.raise_hw(1, 0)
    run.acknowledge(0, 0, "a")
    (finding,) = judge(run).findings
    assert because(finding).endswith("min.insync.replicas is 2, the ISR had 1")


def test_the_replicas_at_the_time_of_the_ack_limit_min_isr() -> None:
    run = RunBuilder((0, 1, 2), min_insync_replicas=3, release="4.3")
    run.elect(0, 0, (0, 1))
    run.append(0, "a")
    run.raise_hw(1, 0)
    run.acknowledge(0, 0, "a")
    run.event("assignment", partition=PARTITION, replicas=(0, 1, 2), adding=(2,), removing=())
    assert judge(run).status == "held"


def test_each_topic_has_its_own_minimum() -> None:
    run = RunBuilder(min_insync_replicas=1)
    run.elect(0, 0, (0,))
    run.append(0, "a")
    run.raise_hw(1, 0)
    run.acknowledge(0, 0, "a")
    assert judge(run).status == "held"


def test_a_finding_names_the_first_report_of_a_repeated_small_isr() -> None:
    run = run_with_two_replicas()
    run.append(0, "a")
    report_isr(run, 0)
    run.raise_hw(1, 0)
    report_isr(run, 0)
    run.acknowledge(0, 0, "a")
    (finding,) = judge(run).findings
    assert because(finding).startswith("0.400s broker 0 led with the ISR [0]; ")


def test_a_pending_isr_member_counts_for_the_ack() -> None:
    run = run_with_two_replicas()
    run.append(0, "a")
    report_isr(run, 0)
    report_pending_isr(run, 0, 1)
    run.raise_hw(1, 0)
    run.acknowledge(0, 0, "a")
    assert judge(run).status == "held"


def test_a_pending_isr_member_does_not_count_for_the_append() -> None:
    run = run_with_two_replicas()
    report_isr(run, 0)
    report_pending_isr(run, 0, 1)
    run.append(0, "a")
    report_isr(run, 0, 1, change="expand")
    run.raise_hw(1, 0)
    run.acknowledge(0, 0, "a")
    assert judge(run).status == "violated"


def test_a_rejected_isr_member_counts_until_the_leader_learns_of_it() -> None:
    run = run_with_two_replicas()
    run.append(0, "a")
    run.append(0, "b")
    report_isr(run, 0)
    report_pending_isr(run, 0, 1)
    run.raise_hw(1, 0)
    report_isr(run, 0)
    run.acknowledge(0, 0, "a")
    run.raise_hw(2, 0)
    run.acknowledge(0, 1, "b")
    (finding,) = judge(run).findings
    assert (finding.value, finding.offset) == ("b", 1)


def test_one_pending_member_is_too_few_for_a_min_isr_of_three() -> None:
    run = RunBuilder((0, 1, 2), min_insync_replicas=3)
    run.elect(0, 0, (0, 1, 2))
    run.append(0, "a")
    report_isr(run, 0)
    report_pending_isr(run, 0, 1)
    run.raise_hw(1, 0)
    run.acknowledge(0, 0, "a")
    assert judge(run).status == "violated"
