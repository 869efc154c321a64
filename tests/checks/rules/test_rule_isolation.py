"""Aborted records: which consumers may read or skip them, and records behind an endless
transaction.
"""

import json

import pytest

from harrow.campaigns.record.phrases import because
from harrow.cluster_model.history import FAIL, INFO, INVOKE, OK, SEND, TXN
from tests.checks.evidence_builder import PARTITION, RunBuilder

STATE = "__transaction_state-0"
COMMITTED, UNCOMMITTED = "read_committed", "read_uncommitted"


def run_with_aborted_and_committed_record() -> RunBuilder:
    """Return a run with an aborted record at offset 0 and a committed one at offset 1."""
    run = RunBuilder()
    producer = run.producer()
    run.transaction(producer, FAIL, "a")
    run.transaction(producer, OK, "b")
    return run


@pytest.mark.parametrize(
    ("isolation_level", "status"), [(COMMITTED, "violated"), (UNCOMMITTED, "permitted"), (None, "held")]
)
def test_only_read_uncommitted_may_return_an_aborted_record(isolation_level: str | None, status: str) -> None:
    run = run_with_aborted_and_committed_record()
    run.poll((0, "a"), (1, "b"), isolation_level=isolation_level)
    assert run.judge("G1a").status == status


def test_a_read_committed_read_is_a_violation_beside_other_reads() -> None:
    run = run_with_aborted_and_committed_record()
    run.poll((0, "a"), isolation_level=COMMITTED)
    run.poll((0, "a"), (1, "b"), isolation_level=UNCOMMITTED)
    (finding,) = run.judge("G1a").findings
    assert finding.permitted_by is None
    assert "of process 1" in because(finding)


def run_with_transaction_reported_as_aborted(fate: str, *, unclean: bool = False) -> RunBuilder:
    """Return a run in which a transaction is committed and read, and then reported as aborted.
    *fate* is the fate of the coordinator's decision in its log.
    """
    run = RunBuilder(unclean_leader_election=unclean)
    producer = run.producer()
    for partition in (PARTITION, STATE):
        run.elect(0, 0, (0, 1), partition=partition)
    of_producer = {"producer_id": -1, "producer_epoch": 1}
    sent = ((SEND, PARTITION, "a"),)
    run.history.add(producer, INVOKE, TXN, sent, run.tick())
    run.append(0, "a")
    state = {"transactional_id": "app", "state": "PrepareCommit"}
    decision = f"app {json.dumps({**of_producer, 'state': state['state']})}"
    if fate != "never written":
        run.append(0, decision, partition=STATE)
    if fate not in ("never written", "not copied"):
        run.replicate(1, decision, partition=STATE)
    run.event("transaction_state", broker=0, **of_producer, **state, partitions=(PARTITION,))
    run.append(0, "<commit>")
    run.event(
        "transaction_marker",
        **{"broker": 0, "partition": PARTITION, **of_producer, "first_offset": 0, "offset": 1},
        committed=True,
        coordinator_epoch=0,
    )
    run.poll((0, "a"), isolation_level=COMMITTED)
    for broker in {"lost by all": (1, 0), "lost by a follower": (1,)}.get(fate, ()):
        run.lose_power(broker, 0, STATE)
    for broker in (1, 0) if fate == "cut off" else ():
        run.truncate(broker, 0, partition=STATE)
    leader = 1 if fate == "not copied" else 0
    run.elect(leader, 1, (leader,), unclean=fate == "not copied", partition=STATE)
    run.history.add(producer, FAIL, TXN, sent, run.tick())
    return run


@pytest.mark.parametrize(
    ("fate", "unclean", "permitted_by"),
    [
        ("lost by all", False, "log.flush.interval.messages"),
        ("not copied", True, "unclean.leader.election.enable=true"),
        ("not copied", False, None),
        ("lost by a follower", False, None),
        ("cut off", False, None),
        ("kept", True, None),
        ("never written", True, None),
    ],
)
def test_a_committed_record_may_be_reported_as_aborted_if_its_coordinator_lost_the_decision(
    fate: str, permitted_by: str | None, *, unclean: bool
) -> None:
    """A producer can only abort once the coordinator has lost its id
    (``INVALID_PRODUCER_ID_MAPPING``).
    """
    (finding,) = run_with_transaction_reported_as_aborted(fate, unclean=unclean).judge("G1a").findings
    assert finding.permitted_by == permitted_by
    assert (f"{STATE} lost the commit of the transaction of app" in because(finding)) == (
        permitted_by is not None
    )


@pytest.mark.parametrize(
    ("unclean", "cut", "permitted_by"),
    [
        (True, True, "unclean.leader.election.enable=true"),
        (True, False, None),
        (False, True, None),
    ],
)
def test_an_aborted_record_may_commit_with_the_next_transaction_if_its_marker_is_lost(
    permitted_by: str | None, *, unclean: bool, cut: bool
) -> None:
    """Only broker 0 has the record, and only broker 1 its abort marker.

    Broker 0 leads again, and the transaction continues in its log.
    """
    run = RunBuilder(unclean_leader_election=True)
    producer = run.producer(idempotence=True)
    run.elect(0, 0, (0, 1))
    sent = ((SEND, PARTITION, "a"),)
    run.history.add(producer, INVOKE, TXN, sent, run.tick())
    run.append(0, "a")
    run.history.add(producer, FAIL, TXN, sent, run.tick())
    run.elect(1, 1, (1,))
    of_producer = {"producer_id": -1, "producer_epoch": 0}
    place = {"partition": PARTITION, **of_producer, "coordinator_epoch": 0}
    for broker in (1,) if cut else (1, 0):
        run.append(broker, "<abort>")
        run.event("transaction_marker", broker=broker, committed=False, first_offset=-1, offset=1, **place)
    run.elect(0, 2, (0,), unclean=unclean)
    run.append(0, "b", "<commit>")
    run.event("transaction_marker", broker=0, committed=True, first_offset=0, offset=2, **place)
    run.poll((0, "a"), (1, "b"), isolation_level=COMMITTED)
    run.elect(1, 3, (0, 1), unclean=True)  # Too late to be the cause.
    (finding,) = run.judge("G1a").findings
    assert finding.permitted_by == permitted_by


def test_a_failed_send_without_a_transaction_may_be_read_by_no_consumer() -> None:
    run = RunBuilder()
    producer = run.producer()
    run.send(producer, "a")
    run.history.record_failure(producer, "t-0", "a", run.tick(), "REFUSED", definite=True)
    run.poll((0, "a"), isolation_level=UNCOMMITTED)
    assert run.judge("G1a").status == "violated"


def test_aborted_records_need_not_be_read() -> None:
    run = RunBuilder()
    producer = run.producer()
    run.transaction(producer, OK, "a")
    run.transaction(producer, FAIL, "b")
    run.transaction(producer, OK, "c")
    run.poll((0, "a"), (2, "c"), isolation_level=COMMITTED)
    run.poll((0, "a"), (1, "b"), (2, "c"), isolation_level=UNCOMMITTED)
    assert run.judge("int-poll-skip").status == "held"


@pytest.mark.parametrize(("other", "status"), [(UNCOMMITTED, "held"), (COMMITTED, "violated")])
def test_a_record_that_read_committed_returned_may_not_be_skipped(other: str, status: str) -> None:
    run = RunBuilder()
    producer = run.producer()
    run.transaction(producer, OK, "a")
    run.transaction(producer, INFO, "b")
    run.transaction(producer, OK, "c")
    run.poll((0, "a"), (2, "c"), isolation_level=COMMITTED)
    run.poll((0, "a"), (1, "b"), (2, "c"), isolation_level=other)
    assert run.judge("int-poll-skip").status == status


def test_records_behind_an_endless_transaction_are_unseen_by_read_committed() -> None:
    run = RunBuilder()
    producer = run.producer()
    run.transaction(producer, OK, "a", "b")
    run.poll((0, "a"), (1, "b"), isolation_level=UNCOMMITTED)
    run.read_back.add("t-0")
    assert run.judge("unseen").status == "held"
    run.held_up["t-0"] = 1
    (finding,) = run.judge("unseen").findings
    assert finding.value == "b"
    assert "read_committed ends at offset 1" in because(finding)


def test_a_skip_over_a_record_replaced_by_a_marker_needs_the_permission_of_its_loss() -> None:
    run = RunBuilder()
    producer = run.producer()
    run.elect(0, 0, (0, 1))
    run.write(producer, "a", 0, 1)
    run.write(producer, "lost", 0, 1)
    run.poll((0, "a"), (1, "lost"), isolation_level=COMMITTED)
    run.lose_power(1, 1)
    run.lose_power(0, 1)
    run.elect(0, 1, (0, 1))
    for broker in (0, 1):
        run.append(broker, "<commit>")
    run.write(producer, "b", 0, 1)
    run.poll((0, "a"), (2, "b"), isolation_level=COMMITTED)
    judged = run.judge("int-poll-skip")
    assert [finding.permitted_by for finding in judged.findings] == ["log.flush.interval.messages"]
