"""A chain always shows its deciding links, however long it is."""

import pytest

from harrow.campaigns.record.phrases import because, shortened, timed_sentence
from harrow.checks.finding import Finding
from harrow.cluster_model.log.unified_log import LEADER_EPOCH_TRUNCATION
from tests.checks.evidence_builder import RunBuilder


def judge_loss(run: RunBuilder) -> Finding:
    (finding,) = run.judge("lost-write").findings
    return finding


def run_with_three_replicas(release: str) -> tuple[RunBuilder, int]:
    run = RunBuilder((0, 1, 2), release=release)
    producer = run.producer()
    run.elect(0, 0, (0, 1, 2))
    run.write(producer, "m0", 0, 1, 2)
    return run, producer


def test_a_chain_shows_the_truncation_of_every_replica_however_often_brokers_restart() -> None:
    """KIP-101: the record is lost only when the second follower truncates too."""
    run, producer = run_with_three_replicas("0.10.2")
    run.write(producer, "m1", 0, 1, 2)
    for _ in range(6):
        run.event("recover", broker=2, partition="t-0", leo=2, hw=1)
    run.truncate(1, 1)
    run.truncate(2, 1)
    for _ in range(6):
        run.event("recover", broker=0, partition="t-0", leo=2, hw=2)
    run.stop(0)
    run.elect(1, 1, (1, 2))
    run.truncate(0, 1)
    run.read_to_end(1)
    finding = judge_loss(run)
    deciding = [(link.kind.name, link.broker) for link in finding.chain if link.decides]
    assert deciding == [
        ("truncated", 1),
        ("truncated", 2),
        ("stopped", 0),
        ("elected", 1),
        ("truncated", 0),
    ]
    assert "more events)" not in because(finding)
    shown = list(shortened(finding.chain))
    assert sum(link.kind.name == "folded" for link in shown) == 2
    assert [link for link in shown if link.decides] == [link for link in finding.chain if link.decides]


@pytest.mark.parametrize(("release", "is_shown"), [("0.11", True), ("2.4", False)])
def test_a_chain_shows_an_unfenced_fetch(release: str, is_shown: bool) -> None:
    """KIP-320: the leader believes that a follower of an older epoch has records that it lacks."""
    run, producer = run_with_three_replicas(release)
    run.event("follower", broker=1, partition="t-0", leader_epoch=0, leader=0)
    run.elect(0, 1, (0, 1))
    run.send(producer, "m1")
    run.append(0, "m1")
    run.event("fetch", broker=0, partition="t-0", replica=1, offset=2)
    run.now_us -= 100_000
    run.raise_hw(2, 0)
    run.acknowledge(0, 1, "m1")
    run.ok(producer, "m1", 1)
    run.stop(0)
    run.elect(1, 2, (1,))
    run.truncate(0, 1, LEADER_EPOCH_TRUNCATION)
    run.read_to_end(1)
    fetches = [timed_sentence(link) for link in judge_loss(run).chain if link.kind.name == "unfenced-fetch"]
    expected = (
        "broker 0 accepted a fetch of broker 1 at offset 2, of epoch 0 instead of 1, and took it as having m1: "
        "fetches carry no leader epoch"
    )
    assert [text.partition(" ")[2] for text in fetches] == [expected] * is_shown


@pytest.mark.parametrize(("release", "is_shown"), [("0.11", True), ("2.4", False)])
def test_a_chain_shows_a_premature_isr_join(release: str, is_shown: bool) -> None:
    """KAFKA-7128: broker 2 has reached the high watermark, but not the leader's log end when its
    epoch began.
    """
    run, producer = run_with_three_replicas(release)
    run.write(producer, "m1", 0, 1)
    run.elect(1, 1, (0, 1))
    run.event("fetch", broker=1, partition="t-0", replica=2, offset=1)
    run.event("isr", broker=1, partition="t-0", leader_epoch=1, isr=(0, 1, 2), change="expand")
    run.stop(1)
    run.elect(2, 2, (0, 2))
    run.truncate(0, 1, LEADER_EPOCH_TRUNCATION)
    run.truncate(1, 1, LEADER_EPOCH_TRUNCATION)
    run.read_to_end(2)
    joins = [link for link in judge_loss(run).chain if link.kind.name == "joined-early"]
    assert [timed_sentence(link).partition(" ")[2] for link in joins] == [
        "broker 1 let broker 2 into the ISR with LEO 1, before it had reached offset 2, where epoch 1 begins"
    ] * is_shown
    assert all(link.decides and link.broker == 2 for link in joins)
