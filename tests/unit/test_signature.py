"""When two failures are the same."""

from campaigns.signature import Signature, signatures
from checks.finding import VIOLATED, RuleResult, Verdict
from tests.unit.run_results import lost, verdict


def test_a_failure_is_its_rule_and_its_cause() -> None:
    first, second = lost("m1"), lost("m2", offset=2)
    assert signatures(verdict(first, second)) == {
        Signature(rule="lost-write", prevented_by=("KIP-101, from 0.11 on",)): first
    }


def test_what_is_permitted_is_no_failure() -> None:
    assert not signatures(verdict())
    assert not signatures(verdict(lost("m1", permitted_by="acks=1")))
    broken = lost("m2")
    assert list(signatures(verdict(lost("m1", permitted_by="acks=1"), broken)).values()) == [broken]


def test_what_clients_saw_comes_first_and_invariants_last() -> None:
    broken = RuleResult(status=VIOLATED, promise="", findings=(lost("m1"),))
    rules = ("isr-holds-committed", "log-divergence", "poll-skip", "duplicate", "lost-write")
    found = signatures(Verdict(status=VIOLATED, rules=dict.fromkeys(rules, broken)))
    assert [signature.rule for signature in found] == [
        "lost-write",
        "duplicate",
        "poll-skip",
        "log-divergence",
        "isr-holds-committed",
    ]
