"""The verdict of a run is the worst of its rules, and a run that tried nothing does not pass."""

from dataclasses import replace

import pytest

from harrow.checks.evidence import ConsumerSettings
from harrow.checks.judge import judge
from harrow.checks.rules.catalogue import RULES, rules_for
from tests.checks.evidence_builder import RunBuilder


def run_without_findings(acks: str = "all") -> RunBuilder:
    run = RunBuilder()
    run.write(run.producer(acks=acks), "m0", 0, 1)
    run.read_to_end(0)
    return run


def lose_m0(run: RunBuilder) -> None:
    run.truncate(0, 0)
    run.truncate(1, 0)


def test_a_run_without_findings_has_held() -> None:
    verdict = judge(run_without_findings().evidence())
    assert (verdict.status, verdict.reasons) == ("held", ())
    assert {result.status for result in verdict.rules.values()} == {"held"}
    assert all(result.promise for result in verdict.rules.values())


def test_a_rule_about_groups_or_their_commits_is_not_judged_in_a_run_without_them() -> None:
    verdict = judge(run_without_findings().evidence())
    about_groups = {"unconsumed", "rebalance-skip", "offset-regression", "lost-effect", "doubled-effect"}
    assert about_groups.isdisjoint(verdict.rules)
    run = run_without_findings()
    member = run.history.new_process("c")
    run.consumers[member] = ConsumerSettings(name="c", read_committed=False, group="g")
    assert judge(run.evidence()).rules["rebalance-skip"].status == "held"


@pytest.mark.parametrize("rule", RULES)
def test_a_run_that_does_not_try_a_demanded_rule_is_inconclusive(rule: str) -> None:
    evidence = run_without_findings().evidence()
    is_tried = rule in judge(evidence).rules
    verdict = judge(replace(evidence, demanded=frozenset({rule})))
    assert verdict.status == ("held" if is_tried else "inconclusive")
    assert verdict.reasons == (() if is_tried else (f"{rule} is demanded, and nothing tried it",))


def test_a_demand_for_all_rules_means_those_that_a_run_tries() -> None:
    assert judge(replace(run_without_findings().evidence(), demanded=frozenset(RULES))).status == "held"


def test_a_run_with_only_permitted_findings_is_permitted() -> None:
    run = run_without_findings("0")
    lose_m0(run)
    verdict = judge(run.evidence())
    assert (verdict.status, verdict.rules["lost-write"].status) == ("permitted", "permitted")


def test_a_run_with_a_broken_promise_is_violated() -> None:
    run = run_without_findings()
    lose_m0(run)
    assert judge(run.evidence()).status == "violated"


def test_a_run_holds_no_promise_that_nothing_in_it_could_break() -> None:
    evidence = run_without_findings().evidence()
    verdict = judge(evidence)
    about_transactions = {
        *("torn-transaction", "fenced-write", "hanging-transaction", "lso-stands-still", "read-above-lso"),
        *("unasked-commit", "int-send-skip", "int-nonmonotonic-send", "precommitted-read", "G0", "G1c"),
    }
    assert about_transactions | {"G1a", "nonmonotonic-send"} <= set(verdict.not_tried)
    applying = rules_for(evidence.invariants, core=False)
    assert sorted([*verdict.rules, *verdict.not_tried]) == sorted(applying)


def test_a_run_tries_aborted_reads_once_a_send_fails() -> None:
    run = run_without_findings()
    run.transaction(0, "fail", "m1")
    assert judge(run.evidence()).rules["G1a"].status == "held"


def test_a_run_that_sent_nothing_is_inconclusive() -> None:
    verdict = judge(RunBuilder().evidence())
    assert verdict.status == "inconclusive"
    assert verdict.reasons == ("nothing was tried: no record was sent",)
    assert "lost-write" in verdict.not_tried


@pytest.mark.parametrize(("acks", "status"), [("0", "held"), ("1", "inconclusive"), ("all", "inconclusive")])
def test_a_run_without_acks_is_inconclusive_unless_no_producer_waits_for_acks(acks: str, status: str) -> None:
    run = RunBuilder()
    producer = run.producer(acks=acks)
    run.send(producer, "m0")
    run.unknown(producer, "m0")
    verdict = judge(run.evidence())
    assert verdict.status == status
    assert verdict.reasons == (() if status == "held" else ("nothing was tried: no send was acknowledged",))


def test_an_unfinished_run_is_inconclusive() -> None:
    verdict = judge(run_without_findings().evidence(unfinished=("t-0 has no leader",)))
    assert (verdict.status, verdict.reasons) == ("inconclusive", ("t-0 has no leader",))


def test_an_unfinished_run_with_permitted_findings_is_inconclusive() -> None:
    run = run_without_findings("0")
    lose_m0(run)
    assert judge(run.evidence(unfinished=("t-0 has no leader",))).status == "inconclusive"


def test_a_broken_promise_stays_broken_in_an_unfinished_run() -> None:
    run = run_without_findings()
    lose_m0(run)
    verdict = judge(run.evidence(unfinished=("t-0 has no leader",)))
    assert (verdict.status, verdict.reasons) == ("violated", ("t-0 has no leader",))


def test_a_partition_that_was_not_read_back_makes_a_run_inconclusive() -> None:
    run = run_without_findings()
    run.write(0, "n0", 0, 1, partition="t-1")
    verdict = judge(run.evidence())
    assert verdict.status == "inconclusive"
    assert verdict.reasons == ("t-1 was not read back to its end after healing",)
