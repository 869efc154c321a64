"""What is named as having prevented a finding was tried, and held."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.record.phrases import prevention_label, preventions
from harrow.campaigns.run.proof import proven, with_prevention
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.checks.causes.catalogue import acked_before_commit
from harrow.checks.finding import INCONCLUSIVE, Finding
from harrow.checks.prevention import (
    CLEAN_ELECTIONS,
    COMMITTED_READS,
    FLUSHING,
    IDEMPOTENCE,
    KIP_101,
    KIP_320,
    SAFE_ACKS,
    TRANSACTIONS,
    TWO_IN_SYNC,
    Prevention,
)
from harrow.cluster_model.topology import ProducerSpec
from tests.campaigns.record.run_results import CHAIN, lost, plan, run_result, verdict
from tests.scenarios.library_plans import library_plans


def losing(*ways: Prevention, value: str = "m1", permitted_by: str | None = None) -> Finding:
    return replace(lost(value, permitted_by), prevented_by=ways)


def tried(first: RunResult, again: Callable[[Plan], RunResult]) -> tuple[Finding, list[Plan]]:
    """Return the first finding with what came of its candidates, and the plans that were run for that."""
    plans: list[Plan] = []

    def run(plan: Plan, seed: int) -> RunResult:
        assert seed == first.seed
        plans.append(plan)
        return again(plan)

    return proven(first, run).verdict.rules["lost-write"].findings[0], plans


def flushed(plan: Plan) -> bool:
    return plan.cluster.settings.get("log.flush.interval.messages") == 1


def test_what_held_is_named_and_what_did_not_is_not() -> None:
    first = run_result(losing(FLUSHING, CLEAN_ELECTIONS))
    finding, _ = tried(first, lambda plan: run_result() if flushed(plan) else first)
    assert list(preventions(finding)) == ["log.flush.interval.messages=1 (tried: held)"]
    assert [(way.name, way.held) for way in finding.prevented_by] == [
        ("log.flush.interval.messages", True),
        ("unclean.leader.election.enable", False),
    ]


def test_without_a_trial_nothing_is_said_to_prevent_it() -> None:
    assert prevention_label(losing(FLUSHING)) == "may be prevented by"
    assert prevention_label(losing(replace(FLUSHING, held=True))) == "prevented by"


def test_a_loss_of_another_record_by_the_same_cause_is_no_proof() -> None:
    finding, _ = tried(run_result(losing(FLUSHING)), lambda _: run_result(losing(value="m7")))
    assert not list(preventions(finding))


def test_a_loss_of_the_same_record_by_another_cause_is_no_proof() -> None:
    again = replace(losing(), chain=(*CHAIN[:2], acked_before_commit.conclude(value="m1")), permitted_by="x")
    finding, _ = tried(run_result(losing(FLUSHING)), lambda _: run_result(again))
    assert not list(preventions(finding))


def test_a_worse_finding_must_not_take_its_place() -> None:
    worse = replace(losing(value="m7"), chain=(*CHAIN[:2], acked_before_commit.conclude(value="m7")))
    first = losing(FLUSHING, permitted_by="log.flush.interval.messages")
    finding, _ = tried(run_result(first), lambda _: run_result(worse))
    assert not list(preventions(finding))
    # What the run had as well is not the candidate's fault.
    finding, _ = tried(run_result(first, worse), lambda _: run_result(worse))
    assert list(preventions(finding))


def test_a_run_that_judged_on_less_proves_nothing() -> None:
    first, silent = run_result(losing(FLUSHING)), run_result().evidence
    lesser = [
        run_result(evidence=less)
        for less in (
            replace(silent, read_back=frozenset()),
            replace(silent, operations=silent.operations[:1]),
            replace(silent, replicas={"t-0": {1: silent.replicas["t-0"][1]}}),
        )
    ]
    for again in [*lesser, run_result(given_up="it went on and on")]:
        assert not list(preventions(tried(first, lambda _, again=again: again)[0]))  # type: ignore[misc]  # mypy cannot infer a lambda with a default
    undecided = verdict(status=INCONCLUSIVE)
    rules = {"lost-write": replace(undecided.rules["lost-write"], status=INCONCLUSIVE)}
    finding, _ = tried(first, lambda _: run_result(verdict=replace(undecided, rules=rules)))
    assert not list(preventions(finding))


def test_a_candidate_is_run_once_however_many_findings_propose_it() -> None:
    first = run_result(losing(FLUSHING), losing(FLUSHING, value="m2"))
    rules = {**first.verdict.rules, "unseen": first.verdict.rules["lost-write"]}
    first = replace(first, verdict=replace(first.verdict, rules=rules))
    held = verdict()
    held = replace(held, rules={**held.rules, "unseen": held.rules["lost-write"]})
    _, plans = tried(first, lambda _: run_result(verdict=held))
    assert len(plans) == 1


def test_repairs_are_tried_until_one_has_held() -> None:
    finding, plans = tried(run_result(losing(KIP_101, KIP_320)), lambda _: run_result())
    assert [way.name for way in finding.prevented_by] == ["KIP-101"]
    assert len(plans) == 1
    finding, _ = tried(
        run_result(losing(KIP_101, KIP_320)),
        lambda plan: (
            run_result() if "fetch_leader_epoch_fencing" in plan.behaviours else run_result(lost("m1"))
        ),
    )
    assert [way.name for way in finding.prevented_by if way.held] == ["KIP-320"]


def test_what_none_prevents_alone_all_may_prevent_together() -> None:
    first = run_result(losing(FLUSHING, CLEAN_ELECTIONS))

    def again(plan: Plan) -> RunResult:
        clean = plan.cluster.settings.get("unclean.leader.election.enable") is False
        return run_result() if clean and flushed(plan) else first

    finding, _ = tried(first, again)
    assert list(preventions(finding)) == [
        "log.flush.interval.messages=1; unclean.leader.election.enable=false, all together (tried: held)"
    ]


def test_what_cannot_be_tried_is_not_named() -> None:
    finding, plans = tried(
        run_result(losing(TRANSACTIONS, COMMITTED_READS)), lambda _: run_result(lost("m1"))
    )
    assert not list(preventions(finding))
    assert plans
    assert not {way.name for way in finding.prevented_by} & {"transactional.id", "isolation.level"}


def test_a_run_without_findings_costs_no_other() -> None:
    def run(plan: Plan, seed: int) -> RunResult:
        raise AssertionError((plan, seed))

    first = run_result()
    assert proven(first, run) is first


@pytest.mark.parametrize(
    ("way", "release", "own", "settings"),
    [
        (SAFE_ACKS, "2.4", {"acks": "1"}, {"acks": "all"}),
        (IDEMPOTENCE, "2.4", {"acks": "1", "retries": 0}, {"enable.idempotence": True, "acks": "all"}),
        (
            IDEMPOTENCE,
            "0.11",
            {"max.in.flight.requests.per.connection": 5},
            {"enable.idempotence": True, "max.in.flight.requests.per.connection": 1},
        ),
        (IDEMPOTENCE, "0.10.2", {}, None),
    ],
)
def test_a_producer_gets_what_kafka_takes_beside_it(
    way: Prevention, release: str, own: dict[str, str | int], settings: dict[str, str | int] | None
) -> None:
    before = plan(kafka=release, producers=(ProducerSpec(name="p", settings=own),))
    after = with_prevention(before, way)
    if settings is None:
        assert after is None
    else:
        assert after is not None
        assert dict(after.producers[0].settings) == settings


def test_a_topic_needs_no_more_replicas_in_sync_than_it_has() -> None:
    before = plan()
    (topic,) = before.cluster.topics
    alone = replace(before, cluster=replace(before.cluster, topics=(replace(topic, replication_factor=1),)))
    after = with_prevention(alone, TWO_IN_SYNC)
    assert after is not None
    assert after.cluster.topics[0].settings["min.insync.replicas"] == 1


def test_what_a_plan_has_already_is_not_tried() -> None:
    safe = with_prevention(plan(), FLUSHING)
    assert safe is not None
    assert with_prevention(safe, FLUSHING) is None


def test_a_script_that_waits_for_what_is_prevented_ends_soon() -> None:
    result = run_plan(library_plans()["acks-1-leader-crash[base]"], 0)
    waited: list[int] = []

    def run(plan: Plan, seed: int) -> RunResult:
        again = run_plan(plan, seed)
        waited.append(again.simulated_us)
        return again

    finding = proven(result, run).verdict.rules["lost-write"].findings[0]
    assert next(preventions(finding)) == "acks=all with min.insync.replicas=2 (tried: held)"
    assert max(waited) < result.plan.script_limit_us
