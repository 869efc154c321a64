"""lost-write: lost acked records and the causes that permit their loss."""

from collections.abc import Callable

import pytest

from harrow.campaigns.record.phrases import because, preventions, shortened
from harrow.cluster_model.log.unified_log import LEADER_EPOCH_TRUNCATION, LEADER_LOG_START
from tests.checks.evidence_builder import RunBuilder


def run_with_two_acked_records(acks: str = "all", *, unclean: bool = False) -> tuple[RunBuilder, int]:
    """Return a run with m0 and m1 in both logs and below both high watermarks."""
    run = RunBuilder(unclean_leader_election=unclean)
    producer = run.producer(acks=acks)
    run.elect(0, 0, (0, 1))
    run.write(producer, "m0", 0, 1)
    run.write(producer, "m1", 0, 1)
    return run, producer


def truncate_to_high_watermark(run: RunBuilder) -> None:
    """Truncate both replicas to a high watermark of 1, one after the other."""
    run.at(8.3)
    run.truncate(1, 1)
    run.at(9)
    run.stop(0)
    run.elect(1, 1, (1,))
    run.at(15)
    run.truncate(0, 1)
    run.read_to_end(1)


def test_an_acked_record_in_every_log_is_not_lost() -> None:
    run, _ = run_with_two_acked_records()
    run.read_to_end(0)
    result = run.judge("lost-write")
    assert (result.status, result.promise, result.findings) == ("held", "acks=all", ())


def test_an_acked_record_in_only_the_leaders_log_is_not_lost() -> None:
    run, _ = run_with_two_acked_records()
    run.truncate(1, 1)
    run.read_to_end(0)
    assert run.judge("lost-write").status == "held"


def test_a_record_that_only_a_diverged_follower_kept_is_lost_to_consumers() -> None:
    run, producer = run_with_two_acked_records()
    run.truncate(1, 1)
    run.elect(1, 1, (1,))
    run.write(producer, "m2", 1)
    run.read_to_end(1)
    (finding,) = run.judge("lost-write").findings
    assert (finding.value, finding.permitted_by) == ("m1", None)
    assert because(finding).endswith(
        "broker 1 was elected from the ISR [0, 1], without m1 (epoch 1); broker 0 still has m1, which the leader lacks; "
        "m1 was committed, and no setting permits its loss"
    )
    assert run.judge("unseen").status == "held"


def test_an_unclean_election_permits_the_loss_of_a_record_that_a_follower_kept() -> None:
    run, producer = run_with_two_acked_records(unclean=True)
    run.write(producer, "m2", 0)
    run.elect(1, 1, (1,), unclean=True)
    run.read_to_end(1)
    (finding,) = run.judge("lost-write").findings
    assert (finding.value, finding.permitted_by) == ("m2", "unclean.leader.election.enable=true")


def test_an_unclean_election_permits_a_loss_while_any_copy_exists() -> None:
    run, _ = run_with_two_acked_records(unclean=True)
    run.truncate(1, 1)
    run.elect(1, 1, (1,), unclean=True)
    run.read_to_end(1)
    (finding,) = run.judge("lost-write").findings
    assert finding.permitted_by == "unclean.leader.election.enable=true"


def test_a_record_in_any_log_is_not_lost_without_a_known_leader() -> None:
    run, _ = run_with_two_acked_records()
    run.truncate(1, 1)
    run.read_to_end(1)
    run.trace.clear()
    assert run.judge("lost-write").status == "held"


def test_an_unacked_send_is_not_lost() -> None:
    run, producer = run_with_two_acked_records()
    run.send(producer, "m2")
    run.unknown(producer, "m2")
    run.read_to_end(0)
    assert run.judge("lost-write").status == "held"


def test_a_truncation_to_the_high_watermark_is_a_violation() -> None:
    run, _ = run_with_two_acked_records()
    truncate_to_high_watermark(run)
    result = run.judge("lost-write")
    assert result.status == "violated"
    (finding,) = result.findings
    assert (finding.partition, finding.offset, finding.value) == ("t-0", 1, "m1")
    assert finding.permitted_by is None
    assert because(finding).endswith(
        "1.100s broker 0 appended m1 at offset 1 (epoch 0); 1.200s broker 1 copied m1; "
        "1.500s broker 0 acked m1: all of the ISR [0, 1] had it; "
        "8.400s broker 1 truncated to its own high watermark, 1, removing m1; "
        "9.100s broker 0 crashed before broker 1 had fetched m1 again; "
        "9.200s broker 1 was elected from the ISR [0, 1], without m1 (epoch 1); "
        "15.100s broker 0 truncated to its own high watermark, 1, removing m1; "
        "m1 was committed, and no setting permits its loss"
    )


def test_acks_1_promises_that_committed_records_stay() -> None:
    run, _ = run_with_two_acked_records("1")
    truncate_to_high_watermark(run)
    result = run.judge("lost-write")
    assert (result.status, result.promise) == ("violated", "acks=1 (once committed)")


def test_a_record_is_committed_even_if_the_high_watermark_is_reported_before_the_append() -> None:
    run = RunBuilder()
    producer = run.producer(acks="1")
    run.elect(0, 0, (0,))
    run.send(producer, "m0")
    run.raise_hw(1, 0)
    run.append(0, "m0")
    run.ok(producer, "m0", 0)
    run.truncate(0, 0)
    run.read_to_end(0)
    assert run.judge("lost-write").status == "violated"


def test_acks_1_permits_the_loss_of_a_record_committed_only_by_an_old_checkpoint() -> None:
    """Broker 0 loses x with its power, appends m0 at its offset, and opens its log with the old
    high watermark.
    """
    run = RunBuilder()
    producer = run.producer(acks="1")
    run.elect(0, 0, (0, 1))
    run.append(0, "x")
    run.raise_hw(1, 0)
    run.event("checkpoint", broker=0, kind="replication-offset-checkpoint", offsets=(("t-0", 1),))
    run.lose_power(0, 0)
    run.elect(0, 1, (0, 1))
    run.send(producer, "m0")
    run.append(0, "m0")
    run.acknowledge(0, 0, "m0")
    run.ok(producer, "m0", 0)
    run.elect(1, 2, (1,))
    run.event("recover", broker=0, partition="t-0", leo=1, hw=1)
    run.truncate(0, 0)
    run.read_to_end(1)
    result = run.judge("lost-write")
    assert [(finding.value, finding.permitted_by) for finding in result.findings] == [("m0", "acks=1")]


def test_acks_1_permits_the_loss_of_a_deposed_leaders_record_below_the_new_log_start() -> None:
    """Broker 0 keeps m0 below the high watermark of broker 1 until it adopts the log start of
    broker 1.
    """
    run = RunBuilder()
    producer = run.producer(acks="1")
    run.elect(0, 0, (0, 1))
    run.send(producer, "m0")
    run.elect(1, 1, (1,))
    run.epochs["t-0"] = 0
    run.append(0, "m0")
    run.acknowledge(0, 0, "m0")
    run.ok(producer, "m0", 0)
    run.epochs["t-0"] = 1
    run.append(1, "x", "y")
    run.raise_hw(2, 1)
    run.event("follower", broker=0, partition="t-0", leader_epoch=1, leader=1)
    run.event("log_start", broker=1, partition="t-0", offset=1, reason="retention.ms", bytes_left=0)
    run.replicate(0, "y", epoch=1)
    run.raise_hw(2, 0)
    run.event("log_start", broker=0, partition="t-0", offset=1, reason="log start offset", bytes_left=0)
    run.read_to_end(1)
    result = run.judge("lost-write")
    assert [(finding.value, finding.permitted_by) for finding in result.findings] == [("m0", "acks=1")]


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_the_loss_of_an_unreplicated_record_is_permitted_unless_acks_is_all(acks: str) -> None:
    run = RunBuilder()
    producer = run.producer(acks=acks)
    run.elect(0, 0, (0, 1))
    run.send(producer, "m0")
    run.append(0, "m0")
    if acks != "0":
        run.acknowledge(0, 0, "m0")
    run.ok(producer, "m0", None if acks == "0" else 0)
    run.stop(0)
    run.elect(1, 1, (1,))
    run.truncate(0, 0, LEADER_EPOCH_TRUNCATION)
    run.read_to_end(1)
    result = run.judge("lost-write")
    (finding,) = result.findings
    if acks == "all":
        assert (result.status, finding.permitted_by) == ("violated", None)
    else:
        assert (result.status, finding.permitted_by) == ("permitted", f"acks={acks}")
        assert f"acks={acks}" in result.promise


def test_acks_0_permits_even_the_loss_of_a_committed_record() -> None:
    run, _ = run_with_two_acked_records("0")
    truncate_to_high_watermark(run)
    result = run.judge("lost-write")
    assert (result.status, result.promise) == ("permitted", "nothing (acks=0)")
    assert result.findings[0].permitted_by == "acks=0"


def test_acks_0_permits_the_loss_of_a_record_that_no_broker_appended() -> None:
    run = RunBuilder()
    producer = run.producer(acks="0")
    run.send(producer, "m0")
    run.ok(producer, "m0", None)
    run.read_to_end(0)
    (finding,) = run.judge("lost-write").findings
    assert because(finding).endswith(
        "0.100s producer-0 sent m0; 0.200s m0 counted as sent; no broker appended it; acks=0 waits for no answer"
    )
    assert tuple(preventions(finding)) == ("acks=1 or acks=all, with retries",)


def lose_by_unclean_election(run: RunBuilder, producer: int) -> None:
    """Elect broker 1, which is out of the ISR, after broker 0 acks m2 alone and stops."""
    run.event("isr", broker=0, partition="t-0", leader_epoch=0, isr=(0,), change="shrink")
    run.write(producer, "m2", 0)
    run.stop(0)
    run.elect(1, 1, (1,), unclean=True)
    run.truncate(0, 2, LEADER_EPOCH_TRUNCATION)
    run.read_to_end(1)


@pytest.mark.parametrize("acks", ["1", "all"])
def test_an_unclean_election_permits_a_loss(acks: str) -> None:
    run, producer = run_with_two_acked_records(acks, unclean=True)
    lose_by_unclean_election(run, producer)
    result = run.judge("lost-write")
    assert result.status == "permitted"
    (finding,) = result.findings
    assert (finding.value, finding.permitted_by) == ("m2", "unclean.leader.election.enable=true")
    assert "when the ISR had shrunk to [0] (min.insync.replicas=1)" in because(finding)
    assert "broker 1 was elected uncleanly, from outside the ISR [0], without m2 (epoch 1)" in because(
        finding
    )
    assert because(finding).endswith("did not have m2")
    assert tuple(preventions(finding)) == ("unclean.leader.election.enable=false", "min.insync.replicas=2")


def test_a_disabled_unclean_election_permits_no_loss() -> None:
    run, producer = run_with_two_acked_records(unclean=False)
    lose_by_unclean_election(run, producer)
    assert run.judge("lost-write").status == "violated"


def test_an_unclean_election_of_a_broker_that_has_the_record_is_not_the_cause() -> None:
    run, _ = run_with_two_acked_records(unclean=True)
    run.elect(1, 1, (1,), unclean=True)
    run.truncate(1, 1)
    run.truncate(0, 1)
    run.read_to_end(1)
    assert run.judge("lost-write").status == "violated"


def test_an_unclean_election_before_the_append_is_not_the_cause() -> None:
    run = RunBuilder(unclean_leader_election=True)
    producer = run.producer()
    run.elect(0, 0, (0, 1), unclean=True)
    run.write(producer, "m0", 0, 1)
    run.write(producer, "m1", 0, 1)
    truncate_to_high_watermark(run)
    assert run.judge("lost-write").status == "violated"


def test_a_power_loss_of_every_replica_permits_a_loss() -> None:
    run, _ = run_with_two_acked_records()
    run.lose_power(1, 1)
    run.lose_power(0, 0)
    run.elect(1, 1, (1,))
    run.read_to_end(1)
    result = run.judge("lost-write")
    assert result.status == "permitted"
    assert {(finding.value, finding.permitted_by) for finding in result.findings} == {
        ("m1", "log.flush.interval.messages"),
    }
    (finding,) = result.findings
    assert (
        "1.800s broker 1 lost power, and all that it had not flushed, from offset 1 on, with m1"
        in because(finding)
    )
    assert next(preventions(finding)).startswith("log.flush.interval.messages=1")
    assert "keeps its power" in because(finding)


def test_a_power_loss_of_the_new_leader_permits_a_loss() -> None:
    run, _ = run_with_two_acked_records()
    run.lose_power(1, 1)
    run.elect(1, 1, (1,))
    run.truncate(0, 1, LEADER_EPOCH_TRUNCATION)
    run.read_to_end(1)
    assert run.judge("lost-write").findings[0].permitted_by == "log.flush.interval.messages"


def causes(run: RunBuilder) -> set[tuple[str, str | None]]:
    (finding,) = run.judge("lost-write").findings
    return {(cause.kind.name, finding.permitted_by) for cause in finding.causes}


def run_led_by_the_last_isr_member_after(lose: Callable[[RunBuilder], None]) -> RunBuilder:
    """KIP-966: broker 1 has m1 but is not in the ISR, so broker 0 leads without m1."""
    run, _ = run_with_two_acked_records()
    run.event("isr", broker=0, partition="t-0", leader_epoch=0, isr=(0,), change="shrink")
    lose(run)
    run.elect(0, 1, (0,))
    run.truncate(1, 1, LEADER_EPOCH_TRUNCATION)
    run.read_to_end(0)
    return run


def test_a_power_loss_of_the_last_isr_member_permits_a_loss_despite_other_copies() -> None:
    run = run_led_by_the_last_isr_member_after(lambda run: run.lose_power(0, 1))
    assert causes(run) == {("last-in-isr-lost-power", "log.flush.interval.messages")}
    (finding,) = run.judge("lost-write").findings
    assert because(finding).endswith(
        "every member of the ISR [0] lost m1 in a power loss, and broker 1, which had it, could not be elected from outside the ISR "
        "(KIP-966)"
    )


def test_a_leader_still_in_the_isr_after_its_power_loss_permits_a_loss() -> None:
    """KIP-966: broker 1 restarts unnoticed without m1, and broker 0, which has m1, stops."""
    run, _ = run_with_two_acked_records()
    run.lose_power(1, 1)
    run.stop(0)
    run.elect(1, 1, (1,))
    run.truncate(0, 1, LEADER_EPOCH_TRUNCATION)
    run.read_to_end(1)
    assert causes(run) == {("in-isr-after-power-loss", "log.flush.interval.messages")}
    (finding,) = run.judge("lost-write").findings
    assert because(finding).endswith(
        "broker 1 lost m1 in a power loss and was still in the ISR when it came back, although broker 0 had it (KIP-966)"
    )


def test_a_leader_that_rejoined_the_isr_without_the_record_permits_a_loss() -> None:
    """KIP-903: broker 1 leaves the ISR at its power loss and rejoins before it has m1."""
    run, _ = run_with_two_acked_records()
    run.lose_power(1, 1)
    run.event("isr", broker=0, partition="t-0", leader_epoch=0, isr=(0,), change="shrink")
    run.event("isr", broker=0, partition="t-0", leader_epoch=0, isr=(0, 1), change="expand")
    run.stop(0)
    run.elect(1, 1, (1,))
    run.truncate(0, 1, LEADER_EPOCH_TRUNCATION)
    run.read_to_end(1)
    (finding,) = run.judge("lost-write").findings
    assert finding.permitted_by == "log.flush.interval.messages"
    assert because(finding).endswith(
        "was let into the ISR again without it, although broker 0 had it (KIP-903)"
    )


def test_a_power_loss_of_every_replica_is_the_cause() -> None:
    run, _ = run_with_two_acked_records()
    run.lose_power(1, 1)
    run.lose_power(0, 1)
    run.elect(1, 1, (1,))
    run.read_to_end(1)
    assert causes(run) == {("power-loss", "log.flush.interval.messages")}


def test_a_disk_failure_of_every_replica_permits_a_loss() -> None:
    run, _ = run_with_two_acked_records()
    run.lose_disk(1)
    run.lose_disk(0)
    run.elect(1, 1, (1,))
    run.write(run.producer(), "m0", 1, 0)
    run.read_to_end(1)
    assert causes(run) == {("disk-failure", "disk failure")}


@pytest.mark.parametrize(
    ("lost_at", "is_kept", "permitted_by"), [(8, False, "disk failure"), (8, True, None), (15.2, False, None)]
)
def test_a_loss_after_the_quorum_lost_its_metadata_is_permitted(
    lost_at: float, is_kept: bool, permitted_by: str | None
) -> None:
    """A majority of the controllers loses its disks before the loss, keeps its metadata, or loses
    its disks after.
    """
    run, _ = run_with_two_acked_records()
    if lost_at < 10:
        run.at(lost_at)
        run.event("metadata_log_lost", node=3000, end_offset=9, is_kept=is_kept)
    truncate_to_high_watermark(run)
    if lost_at > 10:
        run.at(lost_at)
        run.event("metadata_log_lost", node=3000, end_offset=9, is_kept=is_kept)
    (finding,) = run.judge("lost-write").findings
    assert finding.permitted_by == permitted_by
    assert ("the quorum lost committed metadata" in because(finding)) == (permitted_by is not None)
    assert run.judge("lost-write").status == ("permitted" if permitted_by else "violated")


def test_a_disk_failure_of_the_last_isr_member_permits_a_loss_despite_other_copies() -> None:
    run = run_led_by_the_last_isr_member_after(lambda run: run.recover_with_corruption(0, 1))
    assert causes(run) == {("last-in-isr-lost-disk", "disk failure")}
    (finding,) = run.judge("lost-write").findings
    assert (
        "found a batch with a bad CRC when it recovered, and truncated its log to 1, removing m1"
        in because(finding)
    )


def test_a_leader_still_in_the_isr_after_its_disk_failure_permits_a_loss() -> None:
    run, _ = run_with_two_acked_records()
    run.recover_with_corruption(1, 1)
    run.stop(0)
    run.elect(1, 1, (1,))
    run.truncate(0, 1, LEADER_EPOCH_TRUNCATION)
    run.read_to_end(1)
    assert causes(run) == {("in-isr-after-disk-loss", "disk failure")}


def test_a_disk_failure_of_a_follower_excuses_no_loss_on_the_leader() -> None:
    """Broker 1 has lost m1 with its disk but never leads.

    Broker 0 leads with m1 and truncates it.
    """
    run, _ = run_with_two_acked_records()
    run.recover_with_corruption(1, 1)
    run.elect(0, 1, (0, 1))
    run.truncate(0, 1)
    run.read_to_end(0)
    assert run.judge("lost-write").status == "violated"


def test_a_torn_write_counts_as_power_loss() -> None:
    run, _ = run_with_two_acked_records()
    run.lose_power(0, 1)
    run.recover_with_corruption(1, 1, torn=True)
    run.elect(1, 1, (1,))
    run.read_to_end(1)
    assert causes(run) == {("power-loss", "log.flush.interval.messages")}


def test_a_power_loss_is_not_the_cause_if_the_record_was_fetched_again() -> None:
    run, _ = run_with_two_acked_records()
    run.lose_power(1, 1)
    run.replicate(1, "m1")
    truncate_to_high_watermark(run)
    assert run.judge("lost-write").status == "violated"


def test_a_power_loss_of_other_records_is_not_the_cause() -> None:
    run, producer = run_with_two_acked_records()
    run.write(producer, "m2", 0, 1)
    run.lose_power(1, 2)
    truncate_to_high_watermark(run)
    permitted_by = {finding.value: finding.permitted_by for finding in run.judge("lost-write").findings}
    assert permitted_by == {"m1": None, "m2": "log.flush.interval.messages"}


def test_a_record_is_judged_by_the_settings_of_its_producer() -> None:
    run = RunBuilder()
    acks_all, acks_0 = run.producer("careful"), run.producer("careless", acks="0")
    run.write(acks_all, "m0", 0, 1)
    run.write(acks_0, "m1", 0, 1)
    run.truncate(0, 0)
    run.truncate(1, 0)
    run.read_to_end(0)
    result = run.judge("lost-write")
    assert result.status == "violated"
    assert result.promise == "acks=all; nothing (acks=0)"
    assert {finding.value: finding.permitted_by for finding in result.findings} == {
        "m0": None,
        "m1": "acks=0",
    }


def test_a_value_acked_to_two_sessions_is_judged_by_the_stronger_promise() -> None:
    run = RunBuilder()
    acks_0, acks_all = run.producer("careless", acks="0"), run.producer("careful")
    run.write(acks_0, "m0", 0, 1)
    run.send(acks_all, "m0")
    run.ok(acks_all, "m0", 0)
    run.truncate(0, 0)
    run.truncate(1, 0)
    run.read_to_end(0)
    (finding,) = run.judge("lost-write").findings
    assert finding.permitted_by is None


def test_a_partition_that_was_not_read_back_is_inconclusive() -> None:
    run, _ = run_with_two_acked_records()
    truncate_to_high_watermark(run)
    run.read_back.clear()
    result = run.judge("lost-write")
    assert (result.status, result.findings) == ("inconclusive", ())


def test_a_violation_elsewhere_outweighs_a_partition_that_was_not_read_back() -> None:
    run, producer = run_with_two_acked_records()
    run.write(producer, "n0", 0, 1, partition="t-1")
    truncate_to_high_watermark(run)
    assert run.judge("lost-write").status == "violated"


def test_without_logs_a_polled_record_is_not_lost() -> None:
    run, _ = run_with_two_acked_records()
    run.poll((0, "m0"))
    run.read_back.add("t-0")
    run.logs.clear()
    result = run.judge("lost-write")
    assert [finding.value for finding in result.findings] == ["m1"]


def test_a_long_chain_keeps_every_election() -> None:
    run, _ = run_with_two_acked_records()
    for epoch in range(1, 30):
        run.elect(epoch % 2, epoch, (0, 1))
    truncate_to_high_watermark(run)
    chain = run.judge("lost-write").findings[0].chain
    assert sum(link.kind.name == "elected" for link in chain) == 30
    assert list(shortened(chain)) == list(chain)


def test_a_permitted_loss_does_not_decide_a_partition_that_was_not_read_back() -> None:
    run = RunBuilder()
    producer = run.producer(acks="0")
    run.write(producer, "m0", 0, 1)
    run.write(producer, "n0", 0, 1, partition="t-1")
    run.truncate(0, 0)
    run.truncate(1, 0)
    run.read_to_end(0)
    result = run.judge("lost-write")
    assert (result.status, len(result.findings)) == ("inconclusive", 1)


def test_an_unclean_election_permits_the_loss_of_a_zombie_leaders_records() -> None:
    """A zombie leader, alone in its ISR, commits a record that no other broker has."""
    run = RunBuilder(unclean_leader_election=True)
    producer = run.producer()
    run.elect(0, 0, (0,))
    run.elect(1, 1, (1,), unclean=True)
    run.epochs["t-0"] = 0
    run.write(producer, "m0", 0)
    run.truncate(0, 0, LEADER_EPOCH_TRUNCATION)
    run.read_to_end(1)
    (finding,) = run.judge("lost-write").findings
    assert finding.permitted_by == "unclean.leader.election.enable=true"


def test_an_unclean_election_after_the_loss_is_not_the_cause() -> None:
    run, _ = run_with_two_acked_records(unclean=True)
    truncate_to_high_watermark(run)
    run.elect(1, 2, (1,), unclean=True)
    assert run.judge("lost-write").status == "violated"


@pytest.mark.parametrize(
    ("unclean", "permitted_by"), [(True, "unclean.leader.election.enable=true"), (False, None)]
)
def test_a_loss_below_an_older_log_start_needs_an_unclean_election(
    unclean: bool, permitted_by: str | None
) -> None:
    """Broker 0 has deleted offset 0 when broker 1 appends m1 there, so it leads without m1."""
    run = RunBuilder(unclean_leader_election=True)
    producer = run.producer()
    run.elect(0, 0, (0, 1))
    run.write(producer, "m0", 0, 1)
    run.event("log_start", broker=0, partition="t-0", offset=1, reason="retention.ms", bytes_left=0)
    run.truncate(1, 0)
    run.elect(1, 1, (1,), unclean=unclean)
    run.write(producer, "m1", 1)
    run.elect(0, 2, (0,))
    run.event("log_start", broker=1, partition="t-0", offset=1, reason=LEADER_LOG_START, bytes_left=0)
    run.logs["t-0"] = {0: [("<commit>", 0)], 1: [("<commit>", 0)]}
    run.read_to_end(0)
    (finding,) = (each for each in run.judge("lost-write").findings if each.value == "m1")
    assert finding.permitted_by == permitted_by
    if unclean:
        assert because(finding).endswith(
            "; broker 1, elected uncleanly (unclean.leader.election.enable=true), gave m1 an offset below 1, "
            "where the log of broker 0 already began: that replica never fetched m1"
        )
        kinds = [link.kind.name for link in finding.chain]
        assert kinds.index("retention-deleted") < kinds.index("elected-uncleanly") < kinds.index("appended")
