"""Real runs are compared with runs of the model, which also plays the real cluster here."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.checks.finding import HELD, INCONCLUSIVE, PERMITTED, SKIPPED, VIOLATED, Verdict
from harrow.live_cluster.target import conformity
from harrow.live_cluster.target.conformity import (
    AGREED,
    DIFFERS,
    NOT_COMPARED,
    Comparison,
    comparable_part,
    outcome_of,
)

LOST = """
name: lost
kafka: "2.4"
settings: {acks: 1}
cluster: {brokers: 2, topics: [{name: t, assignment: [[0, 1]]}]}
script:
  - do: {message: {action: hold, api: Fetch, kind: request, from: 1, to: 0, id: held}}
  - when: {event: {message_rule: {rule: held}}}
    do: {send: m0}
  - when: {acked: m0}
    do: {broker_crash: {broker: 0}}
  - when: {leader: {t-0: 1}}
"""
KEPT = LOST.replace("do: {send: m0}", "do: [{release: {id: held}}, {send: m0}]").replace(
    "acks: 1", "acks: all"
)
GENERATED = """
name: generated
cluster: {brokers: 1, topics: [{name: t}]}
workload: {duration: 2s, producers: [{rate: 20/s}]}
"""


def runs(text: str, seeds: range) -> list[RunResult]:
    (plan,) = load_text(text, "test.yaml").plans
    return [run_plan(plan, seed) for seed in seeds]


def compare_runs(plan: Plan, real: Sequence[RunResult], model: Iterable[RunResult]) -> Comparison:
    return conformity.compare_runs(plan, real, map(comparable_part, model))


def test_model_runs_equal_to_a_real_run_are_counted() -> None:
    (real,) = runs(LOST, range(1))
    comparison = compare_runs(real.plan, [real], [*runs(LOST, range(3)), *runs(KEPT, range(2))])
    assert comparison.count_equal_runs(real) == 3


def test_a_run_with_an_outcome_of_the_model_agrees() -> None:
    model = runs(LOST, range(3))
    comparison = compare_runs(model[0].plan, runs(LOST, range(7, 8)), model)
    assert (comparison.status, comparison.reasons) == (AGREED, ())
    assert [count for _, count in comparison.modelled] == [3]
    assert outcome_of(model[0]).lost == ("m0",)


def test_a_record_that_only_the_brokers_kept_is_described_as_a_difference() -> None:
    model = runs(LOST, range(2))
    kept = runs(KEPT, range(1))
    comparison = compare_runs(model[0].plan, kept, model)
    assert comparison.status == DIFFERS
    assert "lost: nothing, and m0" in comparison.reasons
    assert "lost-write: held, and permitted" in comparison.reasons
    assert "t-0 on broker 0: ['m0'], and []" in comparison.reasons


def test_a_different_final_isr_is_a_difference() -> None:
    model = runs(LOST, range(1))
    evidence = model[0].evidence
    logs = {broker: replace(log, in_sync=broker == 1) for broker, log in evidence.replicas["t-0"].items()}
    real = replace(model[0], evidence=replace(evidence, replicas={"t-0": logs}))
    assert compare_runs(real.plan, [real], model).reasons == ("ISR of t-0: [1], and [0, 1]",)


def test_runs_of_generated_records_are_compared_by_verdict_only() -> None:
    model = runs(GENERATED, range(2))
    assert outcome_of(model[0]).logs == ()
    assert outcome_of(model[0]) == outcome_of(model[1])


def without(run: RunResult, *rules: str) -> RunResult:
    """Return a run that did not try these rules."""
    verdict = run.verdict
    tried = {name: result for name, result in verdict.rules.items() if name not in rules}
    return replace(run, verdict=replace(verdict, rules=tried, not_tried=(*verdict.not_tried, *rules)))


def test_a_rule_is_not_compared_unless_both_sides_tried_it() -> None:
    real, model = runs(GENERATED, range(2))
    assert "lost-write" not in compare_runs(real.plan, [real], [model]).not_tried
    for one, other in ((without(real, "lost-write"), model), (real, without(model, "lost-write"))):
        comparison = compare_runs(real.plan, [one], [other])
        assert (comparison.status, comparison.reasons) == (AGREED, ())
        assert "lost-write" in comparison.not_tried


def test_a_broken_rule_differs_from_one_that_the_other_side_did_not_try() -> None:
    (lost,) = runs(LOST, range(1))
    untried = without(lost, "lost-write")
    reasons = compare_runs(lost.plan, [untried], [lost]).reasons
    assert "lost-write: not tried, and permitted" in reasons


def test_an_outcome_that_tried_more_of_the_rules_is_nearer() -> None:
    real, model = runs(GENERATED, range(2))
    comparison = compare_runs(real.plan, [real], [*[without(model, "lost-write")] * 2, model])
    assert "lost-write" not in comparison.not_tried


def test_runs_that_tried_no_rule_on_both_sides_do_not_agree() -> None:
    real, model = runs(GENERATED, range(2))
    comparison = compare_runs(real.plan, [without(real, *real.verdict.rules)], [model])
    assert comparison.status == NOT_COMPARED
    assert comparison.reasons == ("no rule was tried both on brokers and on the model",)


def test_one_differing_run_is_a_difference() -> None:
    model = runs(LOST, range(2))
    kept = runs(KEPT, range(1))
    assert compare_runs(model[0].plan, [*model, *kept], model).status == DIFFERS


def test_a_skipped_run_is_not_compared() -> None:
    (run,) = runs(LOST, range(1))
    skipped = replace(run, verdict=Verdict(status=SKIPPED, rules={}, reasons=("it cannot be seen",)))
    comparison = compare_runs(run.plan, [skipped], [run])
    assert (comparison.status, comparison.reasons) == (NOT_COMPARED, ("it cannot be seen",))
    assert comparison.count_equal_runs(skipped) == 0
    comparison = compare_runs(run.plan, [run], [])
    assert (comparison.status, comparison.reasons) == (NOT_COMPARED, ("the model reached no verdict",))


@pytest.mark.parametrize("status", [SKIPPED, INCONCLUSIVE])
def test_the_model_does_not_run_without_a_decided_run_on_brokers(status: str) -> None:
    (run,) = runs(LOST, range(1))
    undecided = replace(run, verdict=Verdict(status=status, rules={}, reasons=("unknown",)))
    model = iter(runs(LOST, range(2)))
    assert compare_runs(run.plan, [undecided], model).reasons == ("unknown",)
    assert len(list(model)) == 2


def test_service_levels_of_workloads_are_shown_but_are_no_difference() -> None:
    real, *model = runs(GENERATED, range(4))
    comparison = compare_runs(real.plan, [real], model)
    assert (comparison.status, len(comparison.modelled_service)) == (AGREED, 3)
    (service,) = comparison.service
    assert service.sent == service.acked == real.service.total.sent > 0
    assert 0 < service.ack_p50_us <= service.ack_p99_us <= service.without_ack_us


def test_a_script_has_no_service_levels() -> None:
    (real,) = runs(LOST, range(1))
    comparison = compare_runs(real.plan, [real], runs(LOST, range(1)))
    assert (comparison.service, comparison.modelled_service) == ((), ())


REORDERED = """
name: reordered
kafka: "2.4"
settings: {{acks: all, retries: 100}}
cluster: {{brokers: 3, topics: [{{name: t, replication_factor: 3}}]}}
workload: {{duration: 8s, producers: [{{rate: 50/s, settings: {{max.in.flight.requests.per.connection: {in_flight}}}}}]}}
faults: [{{at: 2s, do: {{broker_crash: {{broker: leader of t-0, restart_after: 2s}}}}}}]
"""


def test_a_different_order_of_retries_is_no_difference_if_order_is_not_promised() -> None:
    (java,), (kept,) = (runs(REORDERED.format(in_flight=number), range(1)) for number in (5, 1))
    assert [run.verdict.rules["nonmonotonic-send"].status for run in (java, kept)] == [PERMITTED, HELD]
    assert compare_runs(java.plan, [kept], [java]).status == AGREED
    broken = replace(kept.verdict.rules["nonmonotonic-send"], status=VIOLATED)
    verdict = replace(kept.verdict, rules={**kept.verdict.rules, "nonmonotonic-send": broken})
    assert compare_runs(java.plan, [replace(kept, verdict=verdict)], [java]).status == DIFFERS


WORKERS = """
name: workers
kafka: "3.9"
settings: {auto.offset.reset: earliest}
cluster: {brokers: 3, topics: [{name: jobs}, {name: results}]}
workload:
  producers: [{}]
  applications: [{name: app, from: jobs, to: results, delivery: DELIVERY, workers: 4, work: 100ms}]
script: [{at: 5s, do: {send: {value: job, count: 20, partition: jobs-0}}}, {after: 5s}]
"""


@pytest.mark.parametrize("delivery", ["watermark", "highest_finished"])
def test_the_order_of_parallel_workers_is_not_compared(delivery: str) -> None:
    one, *others = runs(WORKERS.replace("DELIVERY", delivery), range(3))
    logs = [list(next(iter(run.evidence.replicas["results-0"].values())).values()) for run in (one, *others)]
    assert len({tuple(log) for log in logs}) == len(logs)
    compared_with = compare_runs(one.plan, [one], others)
    assert (compared_with.status, compared_with.reasons) == (AGREED, ())
    # The input that they read is compared.
    assert {partition for partition, _, _ in outcome_of(one).logs} == {"jobs-0"}
