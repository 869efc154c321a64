"""Which append was acked, by whom, and how the story of its loss tells it."""

from harrow.campaigns.record.phrases import because
from harrow.cluster_model.log.unified_log import LEADER_EPOCH_TRUNCATION
from tests.checks.evidence_builder import RunBuilder


def test_an_earlier_append_of_the_record_is_not_the_one_that_was_acked() -> None:
    """Appended in epoch 0 and lost uncleanly, the record was acked in epoch 1 and lost again."""
    run = RunBuilder(unclean_leader_election=True)
    producer = run.producer()
    run.elect(0, 0, (0,))
    run.send(producer, "m0")
    run.append(0, "m0")
    run.elect(1, 1, (1,), unclean=True)
    run.truncate(0, 0, LEADER_EPOCH_TRUNCATION)
    run.append(1, "m0")
    run.replicate(0, "m0", epoch=1)
    run.raise_hw(1, 1, 0)
    run.acknowledge(1, 0, "m0")
    run.ok(producer, "m0", 0)
    run.truncate(0, 0)
    run.truncate(1, 0)
    run.read_to_end(1)
    result = run.judge("lost-write")
    assert result.status == "violated"
    assert "broker 1 appended m0 at offset 0 (epoch 1)" in because(result.findings[0])


def test_the_setting_is_named_only_when_it_let_the_isr_shrink() -> None:
    run = RunBuilder(min_insync_replicas=2)
    producer = run.producer()
    run.elect(0, 0, (0,))
    run.write(producer, "m0", 0)
    run.truncate(0, 0)
    run.read_to_end(0)
    (finding,) = run.judge("lost-write").findings
    assert "broker 0 acked m0 when the ISR had shrunk to [0];" in because(finding)


def test_the_last_ack_counts_for_a_retry_that_was_answered_again() -> None:
    run = RunBuilder()
    producer = run.producer(idempotence=True)
    run.send(producer, "m0")
    run.append(0, "m0")
    run.replicate(1, "m0")
    run.acknowledge(0, 0, "m0")
    run.elect(1, 1, (0, 1))
    run.acknowledge(1, 0, "m0")
    run.ok(producer, "m0", 0)
    run.truncate(0, 0)
    run.truncate(1, 0)
    run.read_to_end(0)
    (finding,) = run.judge("lost-write").findings
    assert [(link.broker, link.at_us) for link in finding.chain if link.event == "acked"] == [(1, 700_000)]


def test_two_sessions_with_one_value_have_their_own_acks() -> None:
    run = RunBuilder()
    first, second = run.producer(), run.producer(acks="1")
    run.write(first, "m0", 0, 1)
    run.write(second, "m0", 0)
    run.truncate(0, 0)
    run.truncate(1, 0)
    run.read_to_end(0)
    (finding,) = run.judge("lost-write").findings
    assert finding.offset == 0
    assert [(link.broker, link.at_us) for link in finding.chain if link.event == "acked"] == [(0, 600_000)]


def test_without_the_brokers_ack_the_acked_offset_tells_which_append_it_was() -> None:
    run = RunBuilder(unclean_leader_election=True)
    producer = run.producer()
    run.elect(0, 0, (0,))
    run.send(producer, "m0")
    run.append(0, "m0")
    run.elect(1, 1, (1,), unclean=True)
    run.append(1, "x", "m0")
    run.truncate(0, 0, LEADER_EPOCH_TRUNCATION)
    run.ok(producer, "m0", 1)
    run.truncate(1, 1)
    run.read_to_end(1)
    (finding,) = run.judge("lost-write").findings
    assert finding.permitted_by is None
    assert because(finding) == (
        "0.700s broker 1 appended m0 at offset 1 (epoch 1); 0.900s m0 was acked at offset 1; "
        "1.000s broker 1 truncated to its own high watermark, 1, and cut off m0; "
        "m0 was acked although it was never committed"
    )


def test_the_ack_of_a_leader_is_about_its_own_append() -> None:
    """A zombie leader appended the same record at the same offset in an older epoch."""
    run = RunBuilder()
    producer = run.producer()
    run.elect(1, 1, (1,))
    run.send(producer, "m0")
    run.append(1, "m0")
    run.epochs["t-0"] = 0
    run.append(0, "m0")
    run.acknowledge(1, 0, "m0")
    run.ok(producer, "m0", 0)
    run.truncate(0, 0)
    run.truncate(1, 0)
    run.read_to_end(1)
    (finding,) = run.judge("lost-write").findings
    assert "broker 1 appended m0 at offset 0 (epoch 1)" in because(finding)
