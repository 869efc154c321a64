"""An explicit plan repeats a run without random choices of faults."""

from dataclasses import replace

import pytest

from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.loader import load_campaign, load_text
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.plan_file import campaign_text
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.campaigns.search.explicit_plan import explicit_plans
from harrow.campaigns.search.timeline import timeline, with_timeline
from harrow.cluster_model.events import TransactionOpened
from harrow.cluster_model.trace import select
from harrow.faults.actions import Send, TransactionAction
from harrow.faults.injection import At

_OPERATED = """
name: operated
cluster: {brokers: 2, topics: [{name: t, replication_factor: 2}]}
workload: {producers: [{name: producer-0}]}
script:
  - do: {send: m0}
  - when: {acked: m0}
    do: [{restart_producer: producer-0}, elect_preferred_leaders, {broker_crash: {broker: leader of t-0}}]
  - after: 1s
    do: {send: m1}
"""


def sent(result: RunResult) -> list[tuple[int, object]]:
    return [
        (op.time_us, op.value) for op in result.evidence.operations if (op.type, op.f) == ("invoke", "send")
    ]


def swarm() -> Plan:
    return load_campaign(resolve("swarm")[0]).plans[0]


@pytest.mark.parametrize("seed", [2, 3, 5])
def test_the_explicit_plan_of_a_swarm_repeats_its_run(seed: int) -> None:
    result = run_plan(swarm(), seed)
    scripted, struck, *_ = explicit_plans(result)
    assert result.faults
    for plan in (scripted, struck):
        rerun = run_plan(plan, seed)
        assert [fault.concrete for fault in rerun.faults] == [fault.concrete for fault in result.faults]
        assert [fault.at_us for fault in rerun.faults] == [fault.at_us for fault in result.faults]
        assert sent(rerun) == sent(result)
        # Another seed changes only the network.
        assert sent(run_plan(plan, seed + 1)) == sent(result)
    assert not scripted.faults
    assert all(isinstance(injection.timing, At) for injection in struck.faults)
    assert load_text(campaign_text(scripted), "x.yaml").plans[0].digest() == scripted.digest()


def test_an_explicit_plan_leaves_transactions_of_applications_to_them() -> None:
    plan = load_campaign(resolve("consume-transform-produce")[0]).plans[0]
    result = run_plan(plan, 0)
    applications = {application.name for application in plan.applications}
    assert applications & {opened.client for opened in select(result.evidence.trace, TransactionOpened)}
    written = next(explicit_plans(result))
    scripted = [action for step in written.script for action in step.actions]
    assert not [each for each in scripted if isinstance(each, TransactionAction)]
    rerun = run_plan(written, 0)
    assert len(list(select(rerun.evidence.trace, TransactionOpened))) >= 1


def test_an_explicit_plan_has_times_for_conditional_and_operator_actions() -> None:
    (plan,) = load_text(_OPERATED, "operated.yaml").plans
    result = run_plan(plan, 0)
    explicit = next(explicit_plans(result))
    assert all(step.at_us is not None and step.when is None for step in explicit.script)
    names = [type(moment.action).__name__ for moment in timeline(explicit)]
    assert sorted(names) == ["BrokerCrash", "ElectPreferredLeaders", "RestartProducer", "Send", "Send"]
    assert sent(run_plan(explicit, 0)) == sent(result)


def test_a_timeline_can_be_extracted_from_a_plan_and_put_back() -> None:
    explicit = next(explicit_plans(run_plan(swarm(), 2)))
    moments = timeline(explicit)
    assert with_timeline(explicit, moments) == explicit
    without = with_timeline(explicit, [m for m in moments if not isinstance(m.action, Send)])
    assert timeline(without) == tuple(m for m in moments if m.is_fault())


def test_every_send_of_a_transaction_is_in_the_plan() -> None:
    result = run_plan(load_text(_OPERATED, "operated.yaml").plans[0], 0)
    operations = list(result.evidence.operations)
    (first, *_) = (op for op in operations if op.f == "send")
    first.f, first.value = "txn", (("poll",), ("send", "t-0", "m0"), ("send", "t-0", "also"))
    result = replace(result, evidence=replace(result.evidence, operations=operations))
    plan = next(iter(explicit_plans(result)))
    values = [moment.action.value for moment in timeline(plan) if isinstance(moment.action, Send)]
    assert values == ["m0", "also", "m1"]
