"""misrouted: records of a run in a partition that they were not sent to."""

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


def test_records_in_their_own_partitions_are_not_misrouted() -> None:
    run, producer = two_topics()
    run.write(producer, "a", 0, 1, partition=OTHER)
    run.write(producer, "b", 0, 1, partition=OTHER)
    for partition in ("t-0", OTHER):
        run.read_to_end(0, partition)
    assert run.judge("misrouted").status == HELD


def test_an_unread_record_in_the_log_of_another_topic_is_misrouted() -> None:
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


def test_a_misrouted_record_in_several_logs_is_one_finding() -> None:
    run, producer = two_topics()
    run.write(producer, "b", 0, 1, partition=OTHER)
    for broker in (0, 1):
        run.append(broker, "a", partition=OTHER)
    run.read_to_end(0, OTHER)
    result = run.judge("misrouted")
    assert [(finding.partition, finding.offset) for finding in result.findings] == [(OTHER, 1)]


def test_another_value_sent_to_two_partitions_does_not_hide_a_misrouted_record() -> None:
    run, producer = two_topics()
    run.write(producer, "twice", 0, 1)
    run.write(producer, "twice", 0, 1, partition=OTHER)
    run.poll((1, "a"), partition=OTHER)
    assert run.judge("misrouted").status == VIOLATED
