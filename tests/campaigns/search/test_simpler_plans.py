"""A search tries simpler plans that should fail like the original."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.loader import load_campaign, load_text
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.plan_file import campaign_text
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.campaigns.search import shrink
from harrow.campaigns.search.fewer_records import with_few_records
from harrow.campaigns.search.simpler_cluster import (
    with_fewer_replicas,
    with_fewer_settings,
    with_fixed_latency,
    with_one_partition,
)
from harrow.campaigns.search.simpler_schedule import HEALED, with_crashes, with_end_in_script
from harrow.campaigns.search.timeline import timeline
from harrow.checks.causes.links import elected
from harrow.checks.finding import INCONCLUSIVE, Finding
from harrow.cluster_model.sim.virtual_time import US_PER_MS, US_PER_SECOND
from harrow.faults.actions import AddPartitions, Send
from harrow.faults.brokers import BrokerCrash, BrokerPause

_PAUSED = """
name: paused
settings: {acks: all, enable.idempotence: true}
cluster:
  brokers: 2
  topics: [{name: t, replication_factor: 2}]
  network: {latency: 200us..50ms}
workload: {duration: 20s, producers: [{name: p}]}
script:
  - {at: 1s, do: {send: {value: a}}}
  - {at: 2s, do: {send: {value: b}}}
  - {at: 3s, do: {send: {value: c}}}
  - {at: 4s, do: {send: {value: d}}}
  - {at: 5s, do: {broker_pause: {broker: 0, duration: 8s}}}
"""
_FINDING = Finding(partition="t-0", chain=(elected(11 * US_PER_SECOND, 0, leader_epoch=1),))


def paused_plan() -> Plan:
    return load_text(_PAUSED, "paused.yaml").plans[0]


def sent_at(plan: Plan) -> list[int]:
    return [moment.at_us for moment in timeline(plan) if isinstance(moment.action, Send)]


def fixed_networks(plans: list[Plan]) -> set[int]:
    networks = [plan.cluster.network for plan in plans]
    return {n.latency_min_us for n in networks if n.latency_min_us == n.latency_max_us}


def test_a_fixed_latency_leaves_the_rest_of_the_network_as_it_is() -> None:
    text = "cluster: {network: {latency: 1ms..5ms, bandwidth: 1MB/s}}"
    (plan,) = load_text(text, "narrow.yaml").plans
    networks = [simpler.cluster.network for simpler in with_fixed_latency(plan)]
    assert [network.latency_max_us for network in networks] == [1_000, 5_000, 3_000, 1_000]
    assert {network.bytes_per_second for network in networks} == {1_000_000}


def test_a_few_records_are_sent_between_events_or_just_before_a_fault() -> None:
    plans = list(with_few_records(paused_plan(), _FINDING))
    counts = [len(sent_at(plan)) for plan in plans]
    assert set(counts) == {0, 1, 2}
    # A few plans without records are enough.
    assert counts == sorted(counts)
    assert counts.count(0) == len(fixed_networks(plans)) + 1
    fixed = [p for p in plans if p.cluster.network.latency_min_us == p.cluster.network.latency_max_us]
    assert plans[: len(fixed)] != plans
    assert plans[0].cluster.network.latency_max_us == US_PER_MS
    single = [sent_at(plan)[0] for plan in fixed if len(sent_at(plan)) == 1]
    assert {5 * US_PER_SECOND - US_PER_MS, 8 * US_PER_SECOND, 12 * US_PER_SECOND} <= set(single)
    # Everything else stays.
    assert all([m for m in timeline(p) if m.is_fault()] == [timeline(paused_plan())[-1]] for p in plans)


def test_a_pause_becomes_a_crash_but_a_crash_stays() -> None:
    with_restart, without_restart = with_crashes(paused_plan())
    assert timeline(with_restart)[-1].action == BrokerCrash(
        broker=0, restart_after=(8 * US_PER_SECOND, 8 * US_PER_SECOND)
    )
    assert timeline(without_restart)[-1].action == BrokerCrash(broker=0)
    assert not list(with_crashes(without_restart))


def test_moving_the_end_into_the_script_does_not_change_the_run() -> None:
    (plan,) = with_end_in_script(paused_plan())
    assert (plan.duration_us, plan.script[-1].note) == (0, HEALED)
    assert run_plan(plan, 0).trace_digest == run_plan(paused_plan(), 0).trace_digest
    assert not list(with_end_in_script(plan))


def test_acks_is_removed_after_the_settings_that_imply_it() -> None:
    _, without_idempotence, without_acks, *_ = with_fewer_settings(paused_plan())
    assert "acks" in without_idempotence.producers[0].settings
    assert "acks" not in without_acks.producers[0].settings


_RAGGED = """
name: ragged
cluster:
  brokers: 3
  topics: [{name: t, assignment: [[0, 1], [1, 2]]}]
workload: {duration: 9s, producers: [{name: p}]}
script:
  - {at: 1s, do: {broker_pause: {broker: 0, duration: 8s}}}
  - {at: 2s, do: {broker_crash: {broker: 2}}}
"""


def test_all_partitions_keep_equally_many_replicas() -> None:
    for plan in with_fewer_replicas(load_text(_RAGGED, "ragged.yaml").plans[0]):
        for topic in plan.cluster.topics:
            assert {len(row) for row in topic.assignment} == {topic.replication_factor}


def test_keeping_one_partition_removes_actions_on_other_topics() -> None:
    plan = load_text(
        "name: c\ncluster: {brokers: 3, topics: [{name: t, partitions: 2}, {name: u}]}\n"
        "script: [{at: 1s, do: [{add_partitions: {topic: u, partitions: 3}}, {add_partitions: {topic: t, partitions: 3}}]}]\n",
        "c.yaml",
    ).plans[0]
    (alone,) = with_one_partition(plan, "t-1")
    assert alone.cluster.partition_names() == ("t-0",)
    assert [moment.action for moment in timeline(alone)] == [AddPartitions(topic="t", partitions=3)]


def test_removing_a_broker_removes_the_faults_that_name_it() -> None:
    plan = load_text(_RAGGED, "ragged.yaml").plans[0]
    plan = replace(
        plan, cluster=replace(plan.cluster, topics=(replace(plan.cluster.topics[0], assignment=((1,),)),))
    )
    struck = {
        tuple(broker.id for broker in smaller.cluster.brokers): [
            moment.action.broker
            for moment in timeline(smaller)
            if isinstance(moment.action, (BrokerCrash, BrokerPause))
        ]
        for smaller in with_fewer_replicas(plan)
        if len(smaller.cluster.brokers) == 2
    }
    assert struck == {(0, 1): [0], (0, 2): [0, 2], (1, 2): [2]}


@pytest.mark.parametrize("spoilt", ["events", "inconclusive", "unwritable"])
def test_an_inconclusive_run_is_no_smaller_failure(monkeypatch: pytest.MonkeyPatch, spoilt: str) -> None:
    """An endless run, an inconclusive one, and a plan that no file can express."""
    (plan, *_) = load_campaign(resolve("loss-by-hw-truncation")[0]).plans
    shrinker = shrink.Shrinker(plan, 0)

    def run_badly(candidate: Plan, seed: int, *, check: Callable[[], None]) -> RunResult:
        result = run_plan(candidate, seed, check=check)
        if spoilt == "events":
            return replace(result, events=candidate.events_limit)
        return replace(result, verdict=replace(result.verdict, status=INCONCLUSIVE))

    if spoilt == "unwritable":
        monkeypatch.setattr(shrink, "_is_writable", lambda _: False)
    else:
        monkeypatch.setattr(shrink, "run_plan", run_badly)
    assert shrinker.run() is shrinker.original
    assert shrinker.complete


def test_there_are_never_more_voters_than_brokers() -> None:
    text = 'name: x\nkafka: "4.0"\ncluster: {brokers: 5, kraft: {combined: true, voters: 5}}\n'
    fewer = next(with_fewer_replicas(load_text(text, "x.yaml").plans[0]))
    assert (len(fewer.cluster.brokers), fewer.cluster.voters) == (4, 4)
    assert load_text(campaign_text(fewer), "fewer.yaml").plans[0].cluster == fewer.cluster
