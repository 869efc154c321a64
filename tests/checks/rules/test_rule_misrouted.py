"""misrouted: what stands in a partition that it was not sent to, in a run."""

from harrow.campaigns.record.phrases import sentence
from harrow.checks.finding import HELD, VIOLATED
from tests.checks.evidence_builder import RunBuilder

OTHER = "u-0"


def two_topics() -> tuple[RunBuilder, int]:
    run = RunBuilder()
    producer = run.producer()
    run.elect(0, 0, (0, 1))
    run.elect(0, 0, (0, 1), partition=OTHER)
    run.write(producer, "a", 0, 1)
    return run, producer


def test_a_partition_may_have_the_records_that_were_sent_to_it() -> None:
    run, producer = two_topics()
    run.write(producer, "a", 0, 1, partition=OTHER)
    run.write(producer, "b", 0, 1, partition=OTHER)
    for partition in ("t-0", OTHER):
        run.read_to_end(0, partition)
    assert run.judge("misrouted").status == HELD


def test_a_record_in_the_log_of_another_topic_is_misrouted_before_anybody_reads_it() -> None:
    run, producer = two_topics()
    run.write(producer, "b", 0, 1, partition=OTHER)
    run.append(0, "a", partition=OTHER)
    result = run.judge("misrouted")
    (finding,) = result.findings
    assert (result.status, finding.partition, finding.offset, finding.value) == (VIOLATED, OTHER, 1, "a")
    assert [sentence(link) for link in finding.chain] == [
        "producer-0 sent a",
        "broker 0 appended a at offset 1 (epoch 0)",
        "a was sent to t-0, not to u-0",
    ]


def test_a_misrouted_record_is_one_finding() -> None:
    run, producer = two_topics()
    run.write(producer, "b", 0, 1, partition=OTHER)
    for broker in (0, 1):
        run.append(broker, "a", partition=OTHER)
    run.read_to_end(0, OTHER)
    result = run.judge("misrouted")
    assert [(finding.partition, finding.offset) for finding in result.findings] == [(OTHER, 1)]


def test_a_value_that_others_send_twice_still_tells_where_a_record_belongs_in_a_run() -> None:
    run, producer = two_topics()
    run.write(producer, "twice", 0, 1)
    run.write(producer, "twice", 0, 1, partition=OTHER)
    run.poll((1, "a"), partition=OTHER)
    assert run.judge("misrouted").status == VIOLATED
