"""A seed draws a plan from a campaign with open values."""

from dataclasses import replace
from typing import Any

import pytest

from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.loader import load_campaign, load_text
from harrow.campaigns.language.plan import Plan, Swarm, SwarmFaults
from harrow.campaigns.language.plan_file import campaign_text
from harrow.campaigns.run.runner import run_plan
from harrow.campaigns.run.swarm import draw_for_seed
from harrow.cluster_model.topology import BrokerSpec, ClusterSpec, ProducerSpec, TopicSpec
from harrow.faults.brokers import BrokerCrash, BrokerPause
from harrow.faults.control_plane import ControllerFailover
from harrow.faults.injection import Rate

KINDS = (
    BrokerCrash(broker="any", restart_after=(1_000_000, 2_000_000)),
    BrokerPause(broker="any", duration=(1_000_000, 2_000_000)),
    ControllerFailover(how="session_expiry"),
)


def open_plan(**swarm: Any) -> Plan:
    return Plan(
        campaign="open",
        cluster=ClusterSpec(
            brokers=tuple(BrokerSpec(id=number) for number in range(3)),
            topics=(TopicSpec(name="t", partitions=1, replication_factor=3),),
        ),
        producers=(ProducerSpec(name="p", interval_us=200_000, stop_us=5_000_000),),
        duration_us=5_000_000,
        swarm=Swarm(**swarm),
    )


def library_swarm() -> Plan:
    return load_campaign(resolve("swarm")[0]).plans[0]


def test_the_same_seed_draws_the_same_plan() -> None:
    plan = library_swarm()
    assert [draw_for_seed(plan, seed) for seed in range(20)] == [
        draw_for_seed(plan, seed) for seed in range(20)
    ]
    assert len({draw_for_seed(plan, seed).plan.digest() for seed in range(50)}) == 50


def test_a_plan_with_nothing_open_stays_as_it_is() -> None:
    plan = replace(open_plan(), swarm=None)
    assert draw_for_seed(plan, 1).plan is plan
    assert draw_for_seed(plan, 1).values == ()


def test_draws_from_a_range_reach_both_of_its_ends() -> None:
    plan = open_plan(
        brokers=(2, 4), partitions=(1, 3), replication_factor=(1, 3), duration_us=(2_000_000, 3_000_000)
    )
    seed_plans = [draw_for_seed(plan, seed).plan for seed in range(200)]
    assert {len(p.cluster.brokers) for p in seed_plans} == {2, 3, 4}
    assert {p.cluster.topics[0].partitions for p in seed_plans} == {1, 2, 3}
    assert {p.cluster.topics[0].replication_factor for p in seed_plans} == {1, 2, 3}
    assert all(p.cluster.topics[0].replication_factor <= len(p.cluster.brokers) for p in seed_plans)
    assert all(2_000_000 <= p.duration_us <= 3_000_000 for p in seed_plans)
    assert all(p.producers[0].stop_us == p.duration_us for p in seed_plans)


def test_drawn_settings_go_to_the_scopes_that_have_them() -> None:
    plan = open_plan(
        settings=(("acks", ("1",)), ("min.insync.replicas", (2,)), ("auto.offset.reset", ("latest",)))
    )
    seed_plan = draw_for_seed(plan, 0).plan
    assert seed_plan.producers[0].settings == {"acks": "1"}
    assert seed_plan.cluster.settings == {"min.insync.replicas": 2}
    assert seed_plan.cluster.topics[0].settings == {}


def test_a_seed_draws_and_lists_only_settings_of_its_release() -> None:
    plan = open_plan(releases=("0.10.2", "2.4"), settings=(("enable.idempotence", (True,)),))
    draws = [draw_for_seed(plan, seed) for seed in range(20)]
    assert {draw.plan.kafka for draw in draws} == {"0.10.2", "2.4"}
    for draw in draws:
        has_idempotence = draw.plan.kafka == "2.4"
        assert ("enable.idempotence" in dict(draw.values)) == has_idempotence
        assert ("enable.idempotence" in draw.plan.producers[0].settings) == has_idempotence


def test_settings_that_kafka_would_reject_together_are_reconciled() -> None:
    settings = (
        ("acks", ("0", "1", "all")),
        ("enable.idempotence", (True, False)),
        ("max.in.flight.requests.per.connection", (1, 5, 10)),
        ("min.insync.replicas", (1, 2, 3)),
    )
    plan = open_plan(releases=("0.10.2", "0.11", "2.4"), replication_factor=(1, 3), settings=settings)
    for seed in range(200):
        seed_plan = draw_for_seed(plan, seed).plan
        producer_settings = seed_plan.producers[0].settings
        if producer_settings.get("enable.idempotence"):
            assert producer_settings["acks"] == "all"
            assert int(producer_settings["max.in.flight.requests.per.connection"]) <= (
                1 if seed_plan.kafka == "0.11" else 5
            )
        assert "enable.idempotence" not in producer_settings or seed_plan.kafka != "0.10.2"
        least = int(seed_plan.cluster.settings["min.insync.replicas"])
        assert least <= seed_plan.cluster.topics[0].replication_factor


def test_each_seed_draws_which_faults_are_in_play() -> None:
    faults = SwarmFaults(kinds=KINDS, in_play=(0, 2), mean_us=(500_000, 5_000_000), together=(1, 2))
    fault_lists = [draw_for_seed(open_plan(faults=faults), seed).plan.faults for seed in range(100)]
    assert {len(injections[0].faults) if injections else 0 for injections in fault_lists} == {0, 1, 2}
    for (injection,) in (injections for injections in fault_lists if injections):
        assert isinstance(injection.timing, Rate)
        assert 500_000 <= injection.timing.mean_us <= 5_000_000
        assert injection.together in (1, 2)
        assert set(injection.faults) <= set(KINDS)


def test_every_drawn_plan_is_a_campaign_that_loads() -> None:
    plan = library_swarm()
    for seed in range(100):
        seed_plan = draw_for_seed(plan, seed).plan
        text = campaign_text(seed_plan)
        assert load_text(text, "drawn.yaml").plans[0].digest() == seed_plan.digest()


def test_a_run_lists_its_drawn_values_and_has_the_digest_of_the_campaign() -> None:
    plan = library_swarm()
    one, other = run_plan(plan, 1), run_plan(plan, 2)
    assert one.plan_digest() == other.plan_digest() == plan.digest()
    assert one.plan.swarm is None
    assert dict(one.drawn).keys() >= {"brokers", "acks", "latency", "faults"}
    repeated = run_plan(one.plan, 1)
    assert repeated.trace_digest == one.trace_digest


@pytest.mark.parametrize("survivable", [True, False])
def test_a_survivable_swarm_keeps_a_copy_of_every_record(survivable: bool) -> None:
    """Brokers lose power together, repeatedly. With three replicas only one can be spared."""
    power = BrokerCrash(broker="any", kind="power_loss", restart_after=(500_000, 1_000_000))
    faults = SwarmFaults(kinds=(power,), in_play=(1, 1), mean_us=(1_000_000, 1_000_000), together=(3, 3))
    settings = (
        ("acks", ("all",)),
        ("min.insync.replicas", (2,)),
        ("unclean.leader.election.enable", (False,)),
    )
    plan = replace(open_plan(faults=faults, settings=settings), survivable=survivable)
    most = 0
    for seed in range(15):
        # Before the first commit, every copy can be spared.
        struck = [fault.at_us for fault in run_plan(plan, seed).faults if fault.at_us > 2_000_000]
        most = max([most, *(struck.count(at_us) for at_us in struck)])
    assert most == (1 if survivable else 3)


@pytest.mark.parametrize(
    ("option", "closed"),
    [
        ("acks=1", "acks"),
        ("settings.acks=1", "acks"),
        ("settings={acks: 1, min.insync.replicas: 1}", "acks min.insync.replicas"),
        ("workload.producers.0.settings.acks=1", "acks"),
        ("kafka=2.0", "kafka"),
        ("cluster.brokers=3", "brokers"),
        ("cluster={brokers: 3, topics: [{name: t}]}", "brokers"),
        ("cluster.topics.0.name=other", ""),
        ("cluster.topics=[{name: other}]", "partitions replication_factor"),
        ("cluster.topics.0.replication_factor=1", "replication_factor"),
        ("cluster.topics.0.assignment=[[0]]", "brokers partitions replication_factor"),
        ("workload.producers.0.partitions=[t-0]", "rate"),
        ("workload.producers.0.record_bytes=10", ""),
        ("workload.producers.0.name=other", "producers"),
        ("workload.producers=[{name: other}]", "producers rate"),
        ("workload.consumers=[{name: other}]", "consumers"),
        ("core.within=9s", ""),
        ("core.order=[0]", "core"),
        ("cluster.topics.0.partitions=2", "partitions"),
        ("cluster.network.latency=1ms", "latency"),
        ("workload.duration=5s", "duration"),
        ("workload.producers.0.rate=1/s", "rate"),
    ],
)
def test_a_value_set_by_an_option_is_not_drawn(option: str, closed: str) -> None:
    text = """
kafka: "2.4"
cluster: {topics: [{name: t}]}
workload: {duration: 2s, producers: [{name: p, rate: 2/s}]}
swarm:
  kafka: ["2.0", "2.4"]
  brokers: 1..3
  partitions: 1..2
  replication_factor: 1..2
  settings: {acks: [all], min.insync.replicas: [1]}
  latency: [1ms, 2ms]
  duration: 1s..2s
  producers: 1..2
  rate: [1/s, 2/s]
  consumers: 0..1
  core: true
"""
    (open_plan,) = load_text(text, "open.yaml").plans
    (plan,) = load_text(text, "open.yaml", [option]).plans
    before, after = (dict(draw_for_seed(each, 1).values) for each in (open_plan, plan))
    assert before.keys() - after.keys() == set(closed.split())
    assert before.keys() >= after.keys()


def test_a_value_set_by_an_option_is_in_every_draw() -> None:
    text = "cluster: {topics: [{name: t}]}\nswarm: {brokers: 1..3, settings: {min.insync.replicas: [1]}, core: true}"
    options = [
        "core.order=[2]",
        "cluster={brokers: 3, topics: [{name: t, assignment: [[2, 0]]}]}",
        "settings={acks: '1'}",
    ]
    (plan,) = load_text(text, "open.yaml", options).plans
    decided = draw_for_seed(plan, 0).plan
    assert len(decided.cluster.brokers) == 3
    assert decided.cluster.topics[0].assignment == ((2, 0),)
    assert decided.core is not None
    assert decided.core.order == (2,)


@pytest.mark.parametrize(("option", "idempotent"), [("acks=1", False), ("acks=all", True)])
def test_idempotence_is_not_drawn_against_an_option(option: str, idempotent: bool) -> None:
    text = "workload: {producers: [{name: p}]}\nswarm: {settings: {enable.idempotence: [true]}}"
    (plan,) = load_text(text, "open.yaml", [option]).plans
    settings = draw_for_seed(plan, 0).plan.producers[0].settings
    assert settings["enable.idempotence"] is idempotent
    assert settings["acks"] == option.removeprefix("acks=")


def test_idempotence_set_by_an_option_implies_acks_all() -> None:
    text = "workload: {producers: [{name: p}]}\nswarm: {settings: {acks: ['1']}}"
    (plan,) = load_text(text, "open.yaml", ["enable.idempotence=true"]).plans
    assert draw_for_seed(plan, 0).plan.producers[0].settings["acks"] == "all"
