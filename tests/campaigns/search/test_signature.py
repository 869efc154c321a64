"""Two failures are the same if their signatures are equal."""

from dataclasses import replace

import pytest

from harrow.campaigns.search.signature import Signature, signatures
from harrow.checks.causes.catalogue import (
    acked_before_commit,
    acked_by_deposed_leader,
    committed_record_lost,
    resumed_epoch,
)
from harrow.checks.finding import VIOLATED, Finding, RuleResult, Verdict
from harrow.checks.link import Link
from harrow.checks.rules.inconsistent_offsets import claimed
from harrow.checks.rules.unavailable import hw_stuck, leader_not_replaced
from harrow.checks.rules.unseen import stands_unread
from tests.campaigns.record.run_results import lost_record, run_result

LOST_M1 = Signature(rule="lost-write", cause=frozenset({("committed-record-lost",)}))


def concluding(value: str, *conclusions: Link) -> Finding:
    return replace(lost_record(value), chain=conclusions)


def committed_loss(value: str) -> Link:
    return committed_record_lost.conclude(value=value)


def records_behind(records: int, *isr: int) -> Link:
    return hw_stuck.conclude(
        after_us=1, partition="t-0", records=records, acked=records, hw=3, leader=0, isr=isr
    )


def standing_link(*places: tuple[str, int]) -> Link:
    return stands_unread.conclude(places=places)


def leader_is(state: str) -> Link:
    return leader_not_replaced.conclude(after_us=1, partition="t-0", leader=0, state=state)


def value_source(offset: int, value: str) -> Link:
    return claimed.conclude(offset_claimed=offset, claims=((value, (), True, False),))


DEPOSED = acked_by_deposed_leader.conclude(value="m1")


def test_a_signature_has_the_rule_and_the_cause() -> None:
    first, second = lost_record("m1"), lost_record("m2", offset=2)
    assert signatures(run_result(first, second)) == {LOST_M1: first}


def test_a_signature_has_the_promise_to_the_records_producer() -> None:
    # The run in these tests sends m0 and waits for all replicas.
    (signature,) = signatures(run_result(lost_record("m0")))
    assert signature == replace(LOST_M1, promise="acks=all")
    assert not signature.covers(replace(signature, promise="acks=1 (once committed)"))


def test_a_signature_has_the_promise_to_the_sender_of_a_transaction() -> None:
    result = run_result(lost_record("m9"))
    operations = list(result.evidence.operations)
    sent = next(operation for operation in operations if operation.type == "invoke")
    sent.f, sent.value = "txn", (("poll",), *sent.value, ("send", "t-0", "m9"))
    result = replace(result, evidence=replace(result.evidence, operations=operations))
    (signature,) = signatures(result)
    assert signature == replace(LOST_M1, promise="acks=all")


def test_a_permitted_anomaly_is_a_failure_only_on_request() -> None:
    allowed, broken = lost_record("m1", permitted_by="acks=1"), lost_record("m2")
    assert not signatures(run_result())
    assert not signatures(run_result(allowed))
    assert list(signatures(run_result(allowed, broken)).values()) == [broken]
    assert list(signatures(run_result(allowed, broken), permitted=True).values()) == [broken, allowed]
    permitted = replace(LOST_M1, permitted_by="acks=1")
    assert permitted.shown_by(run_result(allowed, broken)) is allowed
    assert LOST_M1.shown_by(run_result(allowed, broken)) is broken
    assert LOST_M1.shown_by(run_result(allowed)) is None


def test_anomalies_that_clients_saw_come_first_and_invariants_last() -> None:
    broken = RuleResult(status=VIOLATED, promise="", findings=(lost_record("m1"),))
    rules = ("isr-holds-committed", "log-divergence", "poll-skip", "duplicate", "lost-write")
    all_signatures = signatures(
        run_result(verdict=Verdict(status=VIOLATED, rules=dict.fromkeys(rules, broken)))
    )
    assert [signature.rule for signature in all_signatures] == [
        "lost-write",
        "duplicate",
        "poll-skip",
        "log-divergence",
        "isr-holds-committed",
    ]


@pytest.mark.parametrize(
    ("first_cause", "other", "same"),
    [
        ((committed_loss("producer-0:17"),), (committed_loss("m0"),), True),
        ((committed_loss("m0"),), (acked_before_commit.conclude(value="m0"),), False),
        ((committed_loss("m0"), DEPOSED), (committed_loss("m0"),), True),
        ((committed_loss("m0"),), (committed_loss("m0"), DEPOSED), False),
        ((committed_loss("m0"),), (), False),
        ((), (committed_loss("m0"),), False),
        # Names of brokers are no part of the cause.
        ((committed_loss("m0"), value_source(3, "m0")), (committed_loss("m2"), value_source(0, "m2")), True),
        # Neither are their numbers.
        ((records_behind(2, 0, 1),), (records_behind(1, 0),), True),
        ((standing_link(("0", 3), ("1", 3)),), (standing_link(("2", 0)),), True),
        # The fate of a process and its consequences are kinds, not names.
        ((leader_is("down"),), (leader_is("paused"),), False),
        ((resumed_epoch.conclude(logs_parted=True),), (resumed_epoch.conclude(),), False),
    ],
)
def test_the_cause_in_a_signature_has_kinds_but_no_names(
    first_cause: tuple[Link, ...], other: tuple[Link, ...], same: bool
) -> None:
    (wanted,) = signatures(run_result(concluding("m0", *first_cause)))
    assert (wanted.shown_by(run_result(concluding("m0", *other))) is not None) is same
