"""When two failures are the same."""

from dataclasses import replace

import pytest

from campaigns.signature import Signature, same_failure, signatures
from checks.finding import VIOLATED, Finding, Link, RuleResult, Verdict
from tests.unit.run_results import lost, run_result

LOST_M1 = Signature(
    rule="lost-write", cause=frozenset({"_ was committed"}), prevented_by=("KIP-101, from 0.11 on",)
)


def concluding(value: str, *conclusions: str) -> Finding:
    return replace(lost(value), chain=tuple(Link(event="conclusion", text=text) for text in conclusions))


def test_a_failure_is_its_rule_its_cause_and_what_would_have_prevented_it() -> None:
    first, second = lost("m1"), lost("m2", offset=2)
    assert signatures(run_result(first, second)) == {LOST_M1: first}


def test_what_its_producer_was_promised_is_a_part_of_it() -> None:
    # The run of these tests sends m0, and waits for all replicas.
    (signature,) = signatures(run_result(lost("m0")))
    assert signature == replace(LOST_M1, promise="acks=all")
    assert not signature.covers(replace(signature, promise="acks=1 (once committed)"))


def test_what_is_permitted_is_no_failure_unless_it_is_asked_for() -> None:
    allowed, broken = lost("m1", permitted_by="acks=1"), lost("m2")
    assert not signatures(run_result())
    assert not signatures(run_result(allowed))
    assert list(signatures(run_result(allowed, broken)).values()) == [broken]
    assert list(signatures(run_result(allowed, broken), permitted=True).values()) == [broken, allowed]
    permitted = replace(LOST_M1, permitted_by="acks=1")
    assert same_failure(run_result(allowed, broken), permitted) is allowed
    assert same_failure(run_result(allowed, broken), LOST_M1) is broken
    assert same_failure(run_result(allowed), LOST_M1) is None


def test_what_clients_saw_comes_first_and_invariants_last() -> None:
    broken = RuleResult(status=VIOLATED, promise="", findings=(lost("m1"),))
    rules = ("isr-holds-committed", "log-divergence", "poll-skip", "duplicate", "lost-write")
    found = signatures(run_result(verdict=Verdict(status=VIOLATED, rules=dict.fromkeys(rules, broken))))
    assert [signature.rule for signature in found] == [
        "lost-write",
        "duplicate",
        "poll-skip",
        "log-divergence",
        "isr-holds-committed",
    ]


@pytest.mark.parametrize(
    ("given", "other", "same"),
    [
        (("producer-0:17 was committed",), ("m0 was committed",), True),
        (("m0 was committed",), ("m0 was acked although it was never committed",), False),
        (("m0 was committed", "m1 was acked by a leader of the past"), ("m0 was committed",), True),
        (("m0 was committed",), ("m0 was committed", "m1 was acked by a leader of the past"), False),
        (("m0 was committed",), (), False),
        ((), ("m0 was committed",), False),
        # Who has what says nothing of the cause.
        (
            ("m0 was committed", "offset 3 is m0 (polled) and m1"),
            ("m2 was committed", "offset 0 is m2"),
            True,
        ),
        # Nor does whether it was one or several.
        (
            ("2 records of t-0, 2 of them acked, could not be read (leader 0, ISR [0, 1])",),
            ("1 record of t-0, 1 of them acked, could not be read (leader 0, ISR [0])",),
            True,
        ),
        (
            ("it stands at offset 3 of broker 0 and at offset 3 of broker 1, but no poll returned it",),
            ("it stands at offset 0 of broker 2, but no poll returned it",),
            True,
        ),
        # A setting is no name.
        (("with enable.idempotence=false",), ("with max.in.flight=5",), False),
    ],
)
def test_the_cause_is_what_the_rule_concludes(
    given: tuple[str, ...], other: tuple[str, ...], same: bool
) -> None:
    (wanted,) = signatures(run_result(concluding("m0", *given)))
    assert (same_failure(run_result(concluding("m0", *other)), wanted) is not None) is same
