"""duplicate: a record at two offsets, by a retry, by the application, or after a loss."""

import pytest

from harrow.campaigns.record.phrases import because, preventions
from harrow.checks.finding import Finding
from harrow.cluster_model.history import FAIL, OK
from harrow.cluster_model.log.unified_log import LEADER_EPOCH_TRUNCATION
from tests.checks.evidence_builder import RunBuilder


def run_with_lost_ack(*, idempotence: bool) -> RunBuilder:
    """Return a run in which the first ack is lost and the retry is appended again."""
    run = RunBuilder()
    producer = run.producer(idempotence=idempotence)
    run.elect(0, 0, (0, 1))
    run.send(producer, "m0")
    for _ in range(2):
        run.append(0, "m0")
        run.replicate(1, "m0")
    run.raise_hw(2, 0, 1)
    run.acknowledge(0, 1, "m0")
    run.ok(producer, "m0", 1)
    run.read_to_end(0)
    return run


def test_a_record_at_one_offset_is_no_duplicate() -> None:
    run = RunBuilder()
    producer = run.producer(idempotence=True)
    run.write(producer, "m0", 0, 1)
    run.write(producer, "m1", 0, 1)
    run.poll((0, "m0"))
    run.read_to_end(0)
    result = run.judge("duplicate")
    assert (result.status, result.promise) == ("held", "enable.idempotence=true")


def test_the_same_value_in_two_partitions_is_no_duplicate() -> None:
    run = RunBuilder()
    producer = run.producer(idempotence=True)
    run.write(producer, "m0", 0, 1, partition="t-0")
    run.write(producer, "m0", 0, 1, partition="t-1")
    run.read_to_end(0, "t-0")
    run.read_to_end(0, "t-1")
    assert run.judge("duplicate").status == "held"


def test_a_retry_appended_twice_is_permitted_without_idempotence() -> None:
    result = run_with_lost_ack(idempotence=False).judge("duplicate")
    assert (result.status, result.promise) == ("permitted", "nothing (enable.idempotence=false)")
    (finding,) = result.findings
    assert (finding.partition, finding.offset, finding.value) == ("t-0", 1, "m0")
    assert finding.permitted_by == "enable.idempotence=false"
    assert because(finding) == (
        "0.300s producer-0 sent m0; 0.400s broker 0 appended m0 at offset 0 (epoch 0); "
        "0.600s broker 0 appended m0 again at offset 1 (epoch 0); "
        "with enable.idempotence=false the leader cannot tell a retry from a new record"
    )


def test_a_retry_appended_twice_is_a_violation_with_idempotence() -> None:
    result = run_with_lost_ack(idempotence=True).judge("duplicate")
    assert result.status == "violated"
    assert result.findings[0].permitted_by is None


def test_a_duplicate_in_only_one_replica_is_a_violation() -> None:
    run = RunBuilder()
    producer = run.producer(idempotence=True)
    run.write(producer, "m0", 0, 1)
    run.replicate(1, "m0")
    assert run.judge("duplicate").status == "violated"


def test_a_record_polled_at_two_offsets_is_a_violation() -> None:
    run = RunBuilder()
    producer = run.producer(idempotence=True)
    run.write(producer, "m0", 0, 1)
    run.poll((0, "m0"))
    run.poll((1, "m0"))
    assert run.judge("duplicate").status == "violated"


def test_a_record_that_the_application_sent_twice_may_be_duplicated() -> None:
    run = RunBuilder()
    first, second = run.producer("producer-0", idempotence=True), run.producer("producer-0", idempotence=True)
    run.write(first, "m0", 0, 1)
    run.write(second, "m0", 0, 1)
    run.read_to_end(0)
    result = run.judge("duplicate")
    assert result.status == "permitted"
    (finding,) = result.findings
    assert finding.permitted_by == "no transactional.id"
    assert tuple(preventions(finding)) == ("transactional.id",)
    assert [(link.event, link.at_us) for link in finding.chain] == [
        ("sent", 100_000),
        ("appended", 200_000),
        ("sent", 800_000),
        ("appended", 900_000),
        ("conclusion", None),
    ]
    assert "producer-0 sent m0 again; " in because(finding), "no event shows another session"


@pytest.mark.parametrize(
    ("ids", "permission"),
    [(("x", "y"), "the application's own transactions"), (("x", ""), "no transactional.id")],
)
def test_a_record_that_the_application_committed_twice_is_its_own_duplicate(
    ids: tuple[str, str], permission: str
) -> None:
    run = RunBuilder()
    for transactional_id in ids:
        producer = run.producer(idempotence=True, transactional_id=transactional_id)
        run.write(producer, "m0", 0, 1)
    run.read_to_end(0)
    (finding,) = run.judge("duplicate").findings
    assert finding.permitted_by == permission


def append_everywhere(run: RunBuilder, *values: str) -> None:
    for value in values:
        run.append(0, value)
        run.replicate(1, value)


def test_an_aborted_transaction_excuses_no_second_copy_in_a_committed_one() -> None:
    run = RunBuilder()
    run.in_transactions.add("m0")
    producer = run.producer(idempotence=True, transactional_id="x")
    run.transaction(producer, FAIL, "m0")
    append_everywhere(run, "<abort>")
    run.transaction(producer, OK, "m0")
    append_everywhere(run, "m0", "<commit>")
    run.poll((2, "m0"), (3, "m0"))
    assert run.judge("duplicate").status == "violated"


def test_a_finding_says_that_an_aborted_copy_was_committed() -> None:
    run = RunBuilder()
    run.in_transactions.add("m0")
    producer = run.producer(idempotence=True, transactional_id="x")
    run.transaction(producer, FAIL, "m0")
    append_everywhere(run, "<commit>")
    run.transaction(producer, OK, "m0")
    append_everywhere(run, "<commit>")
    run.poll((0, "m0"), (2, "m0"))
    (finding,) = run.judge("duplicate").findings
    assert finding.permitted_by is None
    assert because(finding).endswith(
        "the transaction with the first copy of m0 was aborted, but consumers can read that copy, too"
    )


def test_a_finding_names_the_new_session_after_a_crash_of_the_application() -> None:
    run = RunBuilder()
    first, second = run.producer("producer-0", idempotence=True), run.producer("producer-0", idempotence=True)
    run.write(first, "m0", 0, 1)
    run.event("client_stopped", client="producer-0")
    run.write(second, "m0", 0, 1)
    run.read_to_end(0)
    (finding,) = run.judge("duplicate").findings
    assert "producer-0 sent m0 again, in a new session; " in because(finding)


def test_a_record_with_more_copies_than_sends_is_a_violation() -> None:
    run = RunBuilder()
    first, second = run.producer(idempotence=True), run.producer(idempotence=True)
    run.write(first, "m0", 0, 1)
    run.write(second, "m0", 0, 1)
    run.append(0, "m0")
    run.read_to_end(0)
    assert run.judge("duplicate").findings[0].permitted_by is None


def commit_m1_without_its_ack(run: RunBuilder) -> None:
    run.write(run.producer(idempotence=True), "m0", 0, 1)
    run.send(1, "m1")
    run.append(0, "m1")
    run.raise_hw(2, 0)
    run.poll((0, "m0"), (1, "m1"))


def test_a_duplicate_is_permitted_if_an_unclean_election_lost_the_first_copy() -> None:
    run = RunBuilder(unclean_leader_election=True)
    other = run.producer("other", idempotence=True)
    run.producer("producer-0", idempotence=True)
    run.elect(0, 0, (0,))
    commit_m1_without_its_ack(run)
    run.elect(1, 1, (1,), unclean=True)
    run.truncate(0, 1, LEADER_EPOCH_TRUNCATION)
    run.write(other, "n0", 1, 0)
    run.append(1, "m1")
    run.replicate(0, "m1", epoch=1)
    run.read_to_end(1)
    (finding,) = run.judge("duplicate").findings
    assert (finding.value, finding.permitted_by) == ("m1", "unclean.leader.election.enable=true")


def test_a_duplicate_is_a_violation_if_a_truncation_lost_the_first_copy() -> None:
    run = RunBuilder()
    other = run.producer("other", idempotence=True)
    run.producer("producer-0", idempotence=True)
    run.elect(0, 0, (0, 1))
    commit_m1_without_its_ack(run)
    run.elect(1, 1, (1,))
    run.truncate(0, 1)
    run.write(other, "n0", 1, 0)
    run.append(1, "m1")
    run.read_to_end(1)
    (finding,) = run.judge("duplicate").findings
    assert (finding.value, finding.permitted_by) == ("m1", None)


def run_with_unclean_election(*again: str) -> RunBuilder:
    run = RunBuilder(unclean_leader_election=True)
    run.producer("other", idempotence=True)
    run.producer("producer-0", idempotence=True)
    run.elect(0, 0, (0,))
    commit_m1_without_its_ack(run)
    run.truncate(1, 0)
    run.elect(1, 1, (1,), unclean=True)
    run.truncate(0, 0, LEADER_EPOCH_TRUNCATION)
    run.append(1, *again)
    run.raise_hw(len(again), 1)
    return run


def test_two_remaining_copies_are_a_violation_even_if_a_third_was_lost() -> None:
    run = run_with_unclean_election("m1", "m0", "m1")
    run.poll((0, "m1"), (1, "m0"), (2, "m1"))
    run.append(1, "m1")
    run.read_to_end(1)
    findings = {finding.value: finding.permitted_by for finding in run.judge("duplicate").findings}
    assert findings["m1"] is None


def test_a_duplicate_is_a_violation_unless_every_lost_copy_was_permitted() -> None:
    run = run_with_unclean_election("x", "y", "m1")
    run.poll((0, "x"), (1, "y"), (2, "m1"))
    run.truncate(1, 0)
    run.append(1, "x", "y", "z", "m1")
    run.read_to_end(1)
    (finding,) = run.judge("duplicate").findings
    assert (finding.value, finding.permitted_by) == ("m1", None)


def report_batch(run: RunBuilder, broker: int, value: str, sequence: int, *, name: str = "append") -> None:
    log = run.logs.setdefault("t-0", {0: [], 1: []})[broker]
    epoch = run.epochs.get("t-0", 0) if name == "append" else 0
    run.event(
        name,
        broker=broker,
        partition="t-0",
        base_offset=len(log),
        leader_epoch=epoch,
        producer_id=7,
        base_sequence=sequence,
        values=(value,),
    )
    log.append((value, epoch))


def permission_of_a_renumbered_copy(
    *,
    sequence: int = 0,
    error: str = "OUT_OF_ORDER_SEQUENCE_NUMBER",
    has_m0: bool = False,
    copies_m0: bool = False,
    unclean: bool = True,
    refused_by: int = 1,
) -> str | None:
    """Return the permission of a second copy of m1.

    Broker 0 has m1, broker 1 leads for a while and refuses it, and broker 0 appends it again.
    """
    run = RunBuilder(unclean_leader_election=True)
    producer = run.producer(idempotence=True)
    run.elect(0, 0, (0,))
    run.send(producer, "m0")
    report_batch(run, 0, "m0", 0)
    if has_m0:
        report_batch(run, 1, "m0", 0, name="replicate")
    run.ok(producer, "m0", 0)
    run.send(producer, "m1")
    report_batch(run, 0, "m1", 1)
    run.elect(1, 1, (1,), unclean=unclean)
    run.elect(0, 2, (0,), unclean=unclean)
    run.event("rejected", broker=refused_by, api="Produce", partition="t-0", sender="producer-0", error=error)
    if copies_m0:
        report_batch(run, 1, "m0", 0, name="replicate")
    failed = {
        "client": "producer-0",
        "partition": "t-0",
        "leader": refused_by,
        "attempt": 1,
        "values": ("m1",),
    }
    run.event("send_failed", **failed, error=error)
    run.event("sent_again", client="producer-0", partition="t-0", leader=0, attempt=2, values=("m1",))
    report_batch(run, 0, "m1", sequence)
    run.ok(producer, "m1", 2)
    run.read_to_end(0)
    (finding,) = run.judge("duplicate").findings
    assert finding.value == "m1"
    return finding.permitted_by


@pytest.mark.parametrize("copies_m0", [False, True])
def test_a_producer_may_renumber_records_that_an_unclean_leader_lacked(*, copies_m0: bool) -> None:
    """It does not matter whether that leader replicates m0 before the producer gets its answer."""
    assert permission_of_a_renumbered_copy(copies_m0=copies_m0) == "unclean.leader.election.enable=true"


def test_a_duplicate_with_unchanged_sequence_numbers_is_a_violation() -> None:
    assert permission_of_a_renumbered_copy(sequence=1) is None


def test_a_duplicate_is_a_violation_if_the_refusing_leader_lacked_no_record() -> None:
    assert permission_of_a_renumbered_copy(has_m0=True) is None
    assert permission_of_a_renumbered_copy(refused_by=0) is None
    assert permission_of_a_renumbered_copy(error="NOT_LEADER_FOR_PARTITION") is None


def test_a_duplicate_is_a_violation_if_the_refusing_leader_came_from_the_isr() -> None:
    assert permission_of_a_renumbered_copy(unclean=False) is None


@pytest.mark.parametrize(("given_up", "permitted_by"), [(True, "delivery.timeout.ms"), (False, None)])
def test_a_producer_may_renumber_records_after_it_gave_one_up_in_flight(
    permitted_by: str | None, *, given_up: bool
) -> None:
    """m1 overtakes m0, which its producer has given up.

    The leader then appends m0, the first m1 and its retry.
    """
    run = RunBuilder()
    producer = run.producer(idempotence=True)
    run.elect(0, 0, (0,))
    run.send(producer, "m0")
    run.send(producer, "m1")
    if given_up:
        run.unknown(producer, "m0")
    error = "OUT_OF_ORDER_SEQUENCE_NUMBER"
    run.event("rejected", broker=0, api="Produce", partition="t-0", sender="producer-0", error=error)
    to_leader = {"client": "producer-0", "partition": "t-0", "leader": 0, "values": ("m1",)}
    run.event("send_failed", **to_leader, attempt=1, error=error)
    run.event("sent_again", **to_leader, attempt=2)
    report_batch(run, 0, "m0", 0)
    report_batch(run, 0, "m1", 1)
    report_batch(run, 0, "m1", 0)
    if not given_up:
        run.ok(producer, "m0", 0)
    run.ok(producer, "m1", 2)
    run.read_to_end(0)
    (finding,) = run.judge("duplicate").findings
    assert (finding.value, finding.permitted_by) == ("m1", permitted_by)


def test_a_committed_record_is_not_in_flight_even_if_its_producer_gave_it_up() -> None:
    """Broker 1 truncates the committed m0 by a flaw, is elected, and therefore refuses m1."""
    run = RunBuilder()
    producer = run.producer(idempotence=True)
    run.elect(0, 0, (0, 1))
    run.send(producer, "m0")
    report_batch(run, 0, "m0", 0)
    report_batch(run, 1, "m0", 0, name="replicate")
    run.raise_hw(1, 0, 1)
    run.send(producer, "m1")
    report_batch(run, 0, "m1", 1)
    run.unknown(producer, "m0")
    run.truncate(1, 0)
    run.elect(1, 1, (1,))
    error = "OUT_OF_ORDER_SEQUENCE_NUMBER"
    run.event("rejected", broker=1, api="Produce", partition="t-0", sender="producer-0", error=error)
    to_leader = {"client": "producer-0", "partition": "t-0", "leader": 1, "values": ("m1",)}
    run.event("send_failed", **to_leader, attempt=1, error=error)
    run.elect(0, 2, (0,))
    report_batch(run, 0, "m1", 0)
    run.ok(producer, "m1", 2)
    run.read_to_end(0)
    (finding,) = run.judge("duplicate").findings
    assert finding.permitted_by is None


RECORDED = (
    # t-1 on two brokers of Kafka 4.4.0, with a producer of librdkafka 2.16.0. Two messages were
    # dropped: a request for t-0, so that broker 0 refused the next request, and the ack of n1.
    ("append", 1, 0, 0, "n0"),
    ("replicate", 0, 0, 0, "n0"),
    ("append", 1, 1, 1, "n1"),
    ("replicate", 0, 1, 1, "n1"),
    ("append", 1, 2, 0, "n1"),
    ("replicate", 0, 2, 0, "n1"),
)
"""Batches with their broker, base offset, base sequence and value."""


def finding_of_librdkafka_run(*, sees_requests: bool = True, sequence: int = 0) -> Finding:
    """Return the finding of a recorded run; *sequence* is the base sequence of the second batch
    with n1.
    """
    run = RunBuilder(release="4.4")
    producer = run.producer(idempotence=True)
    run.elect(1, 0, (1, 0), partition="t-1")
    run.send(producer, "n0", "t-1")
    run.send(producer, "n1", "t-1")
    refused = {"api": "Produce", "partition": "t-0", "sender": "producer-0"}
    for name, broker, offset, base_sequence, value in RECORDED:
        if (name, offset) == ("append", 2) and sees_requests:
            run.event("rejected", broker=0, error="OUT_OF_ORDER_SEQUENCE_NUMBER", **refused)
        run.event(
            name,
            broker=broker,
            partition="t-1",
            base_offset=offset,
            leader_epoch=0,
            producer_id=0,
            base_sequence=sequence if offset == 2 else base_sequence,
            values=(value,),
        )
        run.logs.setdefault("t-1", {}).setdefault(broker, []).append((value, 0))
    run.ok(producer, "n0", 0, "t-1")
    run.ok(producer, "n1", 2, "t-1")
    run.read_to_end(1, "t-1")
    (finding,) = run.judge("duplicate").findings
    assert (finding.value, finding.permitted_by) == ("n1", None)
    return finding


def test_a_finding_names_the_producer_that_renumbered_its_records() -> None:
    assert because(finding_of_librdkafka_run()).endswith(
        "broker 0 had refused a batch for t-0 (OUT_OF_ORDER_SEQUENCE_NUMBER); after that producer-0 sent n1 with a different sequence "
        "number than before, so no leader recognises it as a retry (for librdkafka, see its issue 4953)"
    )
    assert list(preventions(finding_of_librdkafka_run())) == ["max.in.flight.requests.per.connection=1"]


def test_renumbered_records_are_recognised_without_the_requests_of_the_producer() -> None:
    assert because(finding_of_librdkafka_run(sees_requests=False)).endswith(
        "producer-0 sent n1 with a different sequence number than before, so no leader recognises it as a retry; "
        "librdkafka does so once a leader refuses a batch of any partition as out of order (its issue 4953)"
    )


def test_a_finding_names_the_leader_that_appended_the_same_sequence_numbers_again() -> None:
    assert because(finding_of_librdkafka_run(sequence=1)).endswith("the leader did not recognise the retry")
