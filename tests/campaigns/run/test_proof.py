"""A remedy is named only after it held in a trial with the same faults."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.plan_file import WrittenPlan
from harrow.campaigns.record.phrases import prevention_lines, preventions
from harrow.campaigns.run.proof import RUNS_MAX, proven
from harrow.campaigns.run.remedies import guarding
from harrow.campaigns.run.run_result import InjectedFault, RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.campaigns.run.workers.workers import Workers
from harrow.checks.causes.catalogue import acked_before_commit, last_in_isr_lost_disk, power_loss
from harrow.checks.finding import INCONCLUSIVE, Finding
from harrow.checks.prevention import (
    CLEAN_ELECTIONS,
    FLUSHING,
    IDEMPOTENCE,
    KIP_101,
    KIP_320,
    REFUTED,
    TRIED_HELD,
    Prevention,
    Refutation,
)
from harrow.cluster_model.topology import ProducerSpec
from harrow.faults.brokers import BrokerCrash
from tests.campaigns.record.run_results import CHAIN, lost_record, plan, run_result, verdict, with_trial
from tests.scenarios.library_plans import library_plans

POWER = "log.flush.interval.messages"


def lost_record_with(*ways: Prevention, value: str = "m1", permitted_by: str | None = None) -> Finding:
    return replace(lost_record(value, permitted_by), prevented_by=ways)


def finding_and_trials(first: RunResult, rerun: Callable[[Plan], RunResult]) -> tuple[Finding, list[Plan]]:
    """Return the first finding with its tried remedies, and the plans of the trials."""
    plans: list[Plan] = []

    def run(plan: Plan, seed: int, _: Workers) -> RunResult:
        assert seed == first.seed
        plans.append(plan)
        return rerun(plan)

    return proven(first, run=run).verdict.rules["lost-write"].findings[0], plans


def flushes_each_record(plan: Plan) -> bool:
    return plan.cluster.settings.get("log.flush.interval.messages") == 1


def elects_cleanly(plan: Plan) -> bool:
    return plan.cluster.settings.get("unclean.leader.election.enable") is False


def test_a_remedy_that_held_is_shown_with_its_command_line_options() -> None:
    first = run_result(lost_record_with(permitted_by=POWER))
    finding, _ = finding_and_trials(first, lambda plan: run_result() if flushes_each_record(plan) else first)
    assert list(preventions(finding)) == ["--set log.flush.interval.messages=1 (confirmed by a rerun)"]
    outcomes = {way.name: way.trial.outcome for way in finding.prevented_by if way.trial is not None}
    assert outcomes["log.flush.interval.messages"] == TRIED_HELD
    assert outcomes["min.insync.replicas"] == REFUTED


def test_only_remedies_that_guard_against_the_finding_are_tried() -> None:
    disk = replace(
        lost_record_with(permitted_by="disk failure"),
        chain=(last_in_isr_lost_disk.conclude(isr=(0,), value="m1", having=()),),
    )
    finding, _ = finding_and_trials(run_result(disk), lambda _: run_result(disk))
    names = {way.name for way in finding.prevented_by if way.kind != "release"}
    assert names == {"min.insync.replicas"}


def test_only_repairs_of_the_same_kind_are_tried() -> None:
    first = run_result(lost_record_with(KIP_101))
    finding, _ = finding_and_trials(first, lambda _: first)
    names = {way.name for way in finding.prevented_by if way.kind == "repair"}
    assert {"KIP-101", "KIP-320", "KIP-497"} <= names
    assert names.isdisjoint({"KIP-890", "KAFKA-14402", "KAFKA-17076", "KAFKA-13194"})


def test_no_remedy_is_named_without_a_trial() -> None:
    (line,) = prevention_lines(lost_record_with(FLUSHING))
    assert line.text == "may be prevented by log.flush.interval.messages=1"
    first, *_ = prevention_lines(lost_record_with(with_trial(FLUSHING, TRIED_HELD)))
    assert first.text == "prevented by this (confirmed by a rerun):"


def test_the_report_lists_remedies_that_were_tried_in_vain() -> None:
    (line,) = prevention_lines(lost_record_with(with_trial(FLUSHING, REFUTED)))
    assert line.text == "nothing that was tried prevents this: log.flush.interval.messages=1"
    assert not list(prevention_lines(lost_record_with()))


def test_a_loss_of_another_record_by_the_same_cause_is_no_proof() -> None:
    finding, _ = finding_and_trials(
        run_result(lost_record_with(FLUSHING)), lambda _: run_result(lost_record_with(value="m7"))
    )
    assert not list(preventions(finding))


def test_a_loss_of_the_same_record_by_another_cause_is_no_proof() -> None:
    rerun = replace(
        lost_record_with(), chain=(*CHAIN[:2], acked_before_commit.conclude(value="m1")), permitted_by="x"
    )
    finding, _ = finding_and_trials(run_result(lost_record_with(FLUSHING)), lambda _: run_result(rerun))
    assert not list(preventions(finding))


@pytest.mark.parametrize("permitted_by", [None, "acks=1"])
def test_a_remedy_does_not_hold_if_another_loss_replaces_the_finding(permitted_by: str | None) -> None:
    other = replace(
        lost_record_with(value="m7", permitted_by=permitted_by),
        chain=(*CHAIN[:2], acked_before_commit.conclude(value="m7")),
    )
    first = lost_record_with(FLUSHING, permitted_by=POWER)
    finding, _ = finding_and_trials(run_result(first), lambda _: run_result(other))
    assert not list(preventions(finding))
    # The remedy did not cause findings that the run had too.
    finding, _ = finding_and_trials(run_result(first, other), lambda _: run_result(other))
    assert list(preventions(finding))


def refutation(finding: Finding) -> Refutation | None:
    """Return the finding that refuted flushing."""
    (way,) = (way for way in finding.prevented_by if way.name == FLUSHING.name)
    assert way.trial is not None
    assert way.trial.outcome == REFUTED
    assert way.trial.reason == ""
    return way.trial.refuted_by


def test_the_finding_that_refutes_a_remedy_is_recorded_as_data() -> None:
    first = run_result(lost_record_with(FLUSHING))
    finding, _ = finding_and_trials(first, lambda _: first)
    assert refutation(finding) == Refutation(
        rule="lost-write", partition="t-0", offset=1, value="m1", causes=("committed-record-lost",)
    )
    other = replace(
        lost_record_with(value="m7"), chain=(*CHAIN[:2], acked_before_commit.conclude(value="m7"))
    )
    permitted = lost_record_with(FLUSHING, permitted_by=POWER)
    finding, _ = finding_and_trials(run_result(permitted), lambda _: run_result(other))
    assert refutation(finding) == Refutation(
        rule="lost-write",
        partition="t-0",
        offset=1,
        value="m7",
        causes=("acked-before-commit",),
        is_new=True,
    )


def test_a_trial_with_fewer_acked_records_proves_nothing() -> None:
    first, silent = run_result(lost_record_with(FLUSHING)), run_result().evidence
    incomplete = [
        run_result(evidence=less)
        for less in (
            replace(silent, read_back=frozenset()),
            replace(silent, operations=silent.operations[:1]),
            replace(silent, replicas={"t-0": {1: silent.replicas["t-0"][1]}}),
            replace(silent, unfinished=("the script waited in vain",)),
        )
    ]
    undecided = verdict(status=INCONCLUSIVE, reasons=("nothing was tried",))
    for rerun in [*incomplete, run_result(given_up="it went on and on"), run_result(verdict=undecided)]:
        finding, _ = finding_and_trials(first, lambda _, rerun=rerun: rerun)  # type: ignore[misc]  # mypy cannot infer a lambda with a default
        assert all("not tried" in way for way in preventions(finding))
        assert not any(way.held for way in finding.prevented_by)


def test_a_trial_in_which_a_fault_did_not_strike_proves_nothing() -> None:
    first = run_result(lost_record_with(FLUSHING))
    finding, _ = finding_and_trials(first, lambda _: run_result(faults=()))
    assert not any(way.held for way in finding.prevented_by)
    assert "broker_crash did not strike" in next(preventions(finding))


def test_a_fault_after_the_damage_need_not_strike() -> None:
    late = InjectedFault(at_us=8_000_000, fault="broker_crash", details=(), origin=BrokerCrash(broker=0))
    finding, _ = finding_and_trials(
        run_result(lost_record_with(FLUSHING), faults=(*run_result().faults, late)), lambda _: run_result()
    )
    assert any(way.held for way in finding.prevented_by)


def test_a_remedy_is_tried_once_for_any_number_of_findings() -> None:
    first = run_result(lost_record_with(FLUSHING), lost_record_with(FLUSHING, value="m2"))
    rules = {**first.verdict.rules, "unseen": first.verdict.rules["lost-write"]}
    first = replace(first, verdict=replace(first.verdict, rules=rules))
    held = verdict()
    held = replace(held, rules={**held.rules, "unseen": held.rules["lost-write"]})
    _, plans = finding_and_trials(first, lambda _: run_result(verdict=held))
    assert len(plans) == len({plan.digest() for plan in plans})


def test_the_number_of_trials_for_the_findings_of_a_run_is_limited() -> None:
    first = run_result(lost_record_with(FLUSHING))
    _, plans = finding_and_trials(first, lambda _: first)
    assert 1 < len(plans) <= RUNS_MAX


def test_the_first_later_release_that_holds_is_named() -> None:
    first = run_result(lost_record_with(permitted_by=POWER))
    finding, _ = finding_and_trials(
        first, lambda plan: run_result() if plan.kafka in ("2.0", "2.4") else first
    )
    assert list(preventions(finding)) == ["--set kafka=2.0 (confirmed by a rerun)"]


def test_a_later_repair_of_a_switch_is_not_tried_if_an_earlier_one_holds() -> None:
    finding, _ = finding_and_trials(run_result(lost_record_with(KIP_101, KIP_320)), lambda _: run_result())
    names = [way.name for way in finding.prevented_by if way.kind == "repair"]
    assert "KIP-101" in names
    assert "KIP-279" not in names


def test_if_no_remedy_holds_alone_the_fewest_that_hold_together_are_named() -> None:
    first = run_result(lost_record_with(FLUSHING, CLEAN_ELECTIONS, permitted_by=POWER))
    finding, _ = finding_and_trials(
        first, lambda plan: run_result() if elects_cleanly(plan) and flushes_each_record(plan) else first
    )
    assert list(preventions(finding)) == [
        "--set unclean.leader.election.enable=false --set log.flush.interval.messages=1 (confirmed by a rerun)"
    ]


def test_a_run_without_findings_has_no_trial() -> None:
    def run(plan: Plan, seed: int, _: Workers) -> RunResult:
        raise AssertionError((plan, seed))

    first = run_result()
    assert proven(first, run=run) is first


@pytest.mark.parametrize(
    ("release", "own", "settings"),
    [
        ("2.4", {"acks": "1"}, {"enable.idempotence": True, "acks": "all"}),
        (
            "0.11",
            {"acks": "all", "max.in.flight.requests.per.connection": 5},
            {"enable.idempotence": True, "acks": "all", "max.in.flight.requests.per.connection": 1},
        ),
    ],
)
def test_a_remedy_includes_the_settings_that_kafka_requires_with_it(
    release: str, own: dict[str, str | int], settings: dict[str, str | int]
) -> None:
    before = plan(kafka=release, producers=(ProducerSpec(name="p", settings=own),))
    way = next(
        way for way in guarding(before, frozenset(), [IDEMPOTENCE], ()) if way.name == "enable.idempotence"
    )
    assert {**own, **dict(way.remedy.settings)} == settings


def test_settings_already_in_the_plan_or_rejected_by_kafka_are_not_tried() -> None:
    written = WrittenPlan(plan())
    safe = written.with_options(["log.flush.interval.messages=1"])
    assert safe is not None
    assert WrittenPlan(safe).with_options(["log.flush.interval.messages=1"]) is None
    assert written.with_options(["enable.idempotence=true"]) is None  # 0.10.2 has no idempotence
    assert written.with_options(["no.such.setting=1"]) is None


def test_a_step_that_waits_for_a_prevented_event_runs_anyway_so_that_the_faults_strike() -> None:
    result = run_plan(library_plans()["acks-1-leader-crash[base]"], 0)
    rerun: list[RunResult] = []

    def run(plan: Plan, seed: int, _: Workers) -> RunResult:
        rerun.append(run_plan(plan, seed))
        return rerun[-1]

    finding = proven(result, run=run).verdict.rules["lost-write"].findings[0]
    assert next(preventions(finding)) == "--set acks=all --set limits.step=36s (confirmed by a rerun)"
    (safe,) = (each for each in rerun if dict(each.plan.producers[0].settings).get("acks") == "all")
    assert safe.timed_out_steps
    assert [fault.fault for fault in safe.faults] == [fault.fault for fault in result.faults]


def test_a_trial_in_which_a_fault_was_over_too_early_proves_nothing() -> None:
    # The followers are slow for six seconds. Once records are rejected, the script waits longer
    # than that.
    result = proven(run_plan(library_plans()["bit-rot[base]"], 0))
    finding = result.verdict.rules["lost-write"].findings[0]
    assert next(preventions(finding)).startswith(
        "min.insync.replicas=2 (not tried: the run waits in vain in step 5"
    )


def test_remedies_against_elections_are_not_tried_against_power_loss() -> None:
    finding = replace(
        lost_record_with(permitted_by=POWER), chain=(*CHAIN[:2], power_loss.conclude(lost=(0,)))
    )
    proven_finding, _ = finding_and_trials(run_result(finding), lambda _: run_result(finding))
    assert "unclean.leader.election.enable" not in {way.name for way in proven_finding.prevented_by}


def test_flushing_is_only_tried_in_a_run_that_lost_unflushed_records() -> None:
    loss = frozenset({"lost-write"})
    flushing = [
        {way.name for way in guarding(plan(), loss, [], occurred)} & {"log.flush.interval.messages"}
        for occurred in ((), ("appended",), ("unflushed_lost",))
    ]
    assert flushing == [set(), set(), {"log.flush.interval.messages"}]
