"""The story of a loss names the append that was acked and the broker that acked it."""

from harrow.campaigns.record.phrases import because
from harrow.cluster_model.events import REGISTRATION
from harrow.cluster_model.log.unified_log import LEADER_EPOCH_TRUNCATION
from tests.checks.evidence_builder import RunBuilder


def test_a_loss_story_skips_appends_before_the_acked_one() -> None:
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


def test_min_insync_replicas_is_named_only_if_it_allowed_a_smaller_isr() -> None:
    run = RunBuilder(min_insync_replicas=2)
    producer = run.producer()
    run.elect(0, 0, (0,))
    run.write(producer, "m0", 0)
    run.truncate(0, 0)
    run.read_to_end(0)
    (finding,) = run.judge("lost-write").findings
    assert "broker 0 acked m0 when the ISR had shrunk to [0];" in because(finding)


def test_the_last_ack_counts_if_a_retry_is_acked_again() -> None:
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


def test_each_session_that_sends_a_value_has_its_own_ack() -> None:
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


def test_the_acked_offset_identifies_the_append_if_no_broker_reported_the_ack() -> None:
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
        "1.000s broker 1 truncated to its own high watermark, 1, removing m0; "
        "m0 was acked although it was never committed"
    )


def test_an_ack_refers_to_the_append_of_the_leader_that_sent_it() -> None:
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


def test_a_fault_that_starts_a_broker_is_not_what_cut_it_off() -> None:
    run = RunBuilder()
    producer = run.producer()
    run.elect(0, 0, (0, 1))
    run.write(producer, "m0", 0, 1)
    run.event("fault", fault="broker_crash", phase="", strike=1, details=(("broker", 0),))
    run.stop(0)
    run.event("fault", fault="broker_start", phase="", strike=2, details=(("broker", 0),))
    run.event("broker_started", broker=0)
    run.event("broker_registered", broker=0, broker_epoch=1)
    run.at(run.now_us / 1_000_000 - 0.299)
    run.event("session_expired", broker=0, ephemerals=(REGISTRATION,))
    run.elect(1, 1, (1,))
    run.truncate(0, 0, LEADER_EPOCH_TRUNCATION)
    run.truncate(1, 0, LEADER_EPOCH_TRUNCATION)
    run.read_to_end(0)
    (finding,) = run.judge("lost-write").findings
    assert [link.strike for link in finding.chain if link.kind.is_fault] == [1]
