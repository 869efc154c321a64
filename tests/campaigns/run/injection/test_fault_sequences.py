"""Sequences of faults, their repetition and end, and the limits of the blast radius."""

from itertools import pairwise
from typing import Any

import pytest

from harrow.campaigns.language.loader import CampaignError, load_text
from harrow.campaigns.language.plan import BlastRadius, Plan
from harrow.campaigns.language.plan_file import campaign_text
from harrow.campaigns.run.injection.blast_radius import allows
from harrow.campaigns.run.injection.fault_injector import FaultInjector
from harrow.campaigns.run.runner import run_plan
from harrow.campaigns.run.targets.model_target import ModelTarget
from harrow.cluster_model.sim.choices import Choices
from harrow.cluster_model.topology import BrokerSpec, ClusterSpec, TopicSpec
from harrow.faults.brokers import (
    BrokerBounce,
    BrokerCrash,
    BrokerIsolation,
    BrokerPause,
    BrokerRestart,
    BrokerStop,
    RollingRestart,
)
from harrow.faults.control_plane import SessionExpiry
from harrow.faults.fault import Fault
from harrow.faults.links import LinkReset, NetworkPartition, NetworkSplit
from tests.campaigns.run.cluster_harness import ClusterHarness
from tests.recorded_choices import recorded_choices

SECOND = 1_000_000
CAMPAIGN = """
name: sequence
cluster: {brokers: 3, topics: [{name: t, replication_factor: 3}]}
workload: {duration: 60s, producers: [{rate: 2/s}]}
faults:
  - at: 2s
    ENTRY
"""


def plan_of(entry: str) -> Plan:
    (plan,) = load_text(CAMPAIGN.replace("ENTRY", entry), "sequence.yaml").plans
    return plan


def strikes_of(entry: str) -> list[tuple[float, str]]:
    return [(fault.at_us / SECOND, fault.fault) for fault in run_plan(plan_of(entry), 0).faults]


def test_each_fault_of_a_series_strikes_when_the_previous_one_is_over() -> None:
    entry = "serial: [broker_crash: {broker: 0, for: 3s}, link_reset: {between: 1}, broker_pause: {broker: 1, for: 2s}]"
    crash, reset, pause = (2.0, "broker_crash"), (5.0, "link_reset"), (5.0, "broker_pause")
    assert strikes_of(entry) == [crash, reset, pause]
    again = [(7.5, "broker_crash"), (11.0, "link_reset"), (11.5, "broker_pause")]
    paused = [crash, (5.5, "link_reset"), (6.0, "broker_pause")]
    assert strikes_of(f"{entry}\n    pause: 500ms\n    repeat: 2") == [
        *paused,
        *((at_s + 1.0, fault) for at_s, fault in again),
    ]


def test_a_series_waits_for_the_last_step_of_a_rolling_restart() -> None:
    restart, crash = strikes_of("serial: [rolling_restart: {down_for: 2s}, broker_crash: {broker: 0}]")
    assert restart == (2.0, "rolling_restart")
    assert crash[0] > 2.0 + 3 * 2.0


def test_a_fault_that_lasts_until_healing_does_not_block_a_series() -> None:
    assert strikes_of("serial: [broker_crash: {broker: 0}, broker_restart: {broker: 0}]") == [
        (2.0, "broker_crash"),
        (2.0, "broker_restart"),
    ]


def test_each_repetition_of_a_fault_draws_its_own_values() -> None:
    times = strikes_of(
        "any_of: [broker_pause: {broker: any, for: 1s}, broker_pause: {broker: 0, for: 2s}]\n    repeat: 4"
    )
    assert len(times) == 4
    assert {later - earlier for (earlier, _), (later, _) in pairwise(times)} <= {1.0, 2.0}


def test_an_entry_stops_striking_after_its_stop_condition_held() -> None:
    entry = (
        'do: {broker_pause: {broker: 1, for: 1s}}\n    repeat: 20\n    stop_when: {acked: ["producer-0:10"]}'
    )
    times = strikes_of(entry)
    assert 1 < len(times) < 20
    every = CAMPAIGN.replace("at: 2s", "every: 1s").replace("ENTRY", entry.replace("repeat: 20\n    ", ""))
    (plan,) = load_text(every, "every.yaml").plans
    assert 1 < len(run_plan(plan, 0).faults) < 20


def test_a_sequence_is_equal_after_it_is_written_and_read() -> None:
    plan = plan_of(
        "serial: [broker_crash: {broker: 0, for: 3s}, link_reset: {between: 1}]\n    pause: 1s..2s\n    repeat: 3"
    )
    assert plan_of(campaign_text(plan).partition("at: 2s\n")[2].strip()).digest() == plan.digest()
    text = CAMPAIGN.replace("ENTRY", "do: {broker_crash: {broker: 0}}")
    (limited,) = load_text(f"{text}blast_radius: {{brokers: 1, keep_in_sync: 2}}\n", "c.yaml").plans
    (again,) = load_text(campaign_text(limited), "c.yaml").plans
    assert again.blast_radius == BlastRadius(brokers=1, keep_in_sync=2)
    assert again.digest() == limited.digest()


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("do: {broker_crash: {broker: 0}}\n    pause: 1s", "`pause` goes with `serial` or `repeat`"),
        ("serial: [broker_crash: {broker: 0}]\n    together: 2", "leave `together` out"),
        ("serial: [broker_crash: {broker: 0}]\n    do: {broker_crash: {broker: 0}}", "give one of `do`"),
    ],
)
def test_keys_of_a_sequence_that_contradict_each_other_are_rejected(entry: str, message: str) -> None:
    with pytest.raises(CampaignError, match=message):
        plan_of(entry)


# Blast radius


def injector(harness: ClusterHarness, **limits: Any) -> FaultInjector:
    draw = recorded_choices({"schedule": (0,) * 9}).schedule
    return FaultInjector(harness.target, harness.cluster.spec, draw, BlastRadius(**limits))


FAULTS_THAT_STOP_ONE: list[Fault] = [
    BrokerCrash(broker=1),
    BrokerCrash(broker=1, kind="power_loss"),
    BrokerStop(broker=1),
    BrokerBounce(broker=1),
    BrokerPause(broker=1),
    SessionExpiry(broker=1),
    BrokerIsolation(broker=1),
    BrokerIsolation(broker=1, from_="zookeeper"),
    NetworkPartition(between=(1,), and_=("others",)),
    RollingRestart(),
]


@pytest.mark.parametrize("fault", FAULTS_THAT_STOP_ONE)
@pytest.mark.parametrize("first", [BrokerCrash(broker=2), BrokerPause(broker=2), BrokerIsolation(broker=2)])
def test_the_number_of_brokers_out_of_service_stays_within_its_limit(first: Fault, fault: Fault) -> None:
    assert injector(ClusterHarness(), brokers=1).inject(fault)
    harness = ClusterHarness()
    limited = injector(harness, brokers=1)
    assert limited.inject(first)
    assert not limited.inject(fault)
    assert injector(harness, brokers=2).inject(fault)


def test_no_fault_strikes_the_last_broker_in_sync() -> None:
    harness = ClusterHarness()
    limited = injector(harness)
    assert limited.inject(BrokerCrash(broker=0))
    assert limited.inject(BrokerCrash(broker=1))
    assert not limited.inject(BrokerCrash(broker=2))
    assert injector(harness, keep_in_sync=0).inject(BrokerCrash(broker=2))


def test_the_required_number_of_isr_members_stays_in_service() -> None:
    limited = injector(ClusterHarness(), keep_in_sync=2)
    assert limited.inject(BrokerCrash(broker=0))
    assert not limited.inject(BrokerPause(broker=1))


def test_a_fault_may_strike_a_broker_outside_every_isr() -> None:
    assert injector(ClusterHarness(replication_factor=1), keep_in_sync=1).inject(BrokerCrash(broker=2))
    assert not injector(ClusterHarness(replication_factor=1), keep_in_sync=1).inject(BrokerCrash(broker=0))


def test_a_majority_stays_in_service() -> None:
    limited = injector(ClusterHarness(), keep_majority=True, keep_in_sync=0)
    assert limited.inject(BrokerCrash(broker=0))
    assert not limited.inject(BrokerCrash(broker=1))
    assert not injector(ClusterHarness(brokers=4), keep_majority=True).inject(
        NetworkSplit(nodes=(0, 1, 2, 3))
    )


def quorum_of_three(kafka: str) -> tuple[ModelTarget, tuple[int, ...]]:
    """Return a cluster with three ZooKeeper servers or controllers; the first is down."""
    spec = ClusterSpec(
        brokers=tuple(BrokerSpec(id=number) for number in range(3)),
        topics=(TopicSpec(name="t", replication_factor=3),),
        voters=3,
        zookeeper_servers=3,
    )
    target = ModelTarget(Plan(campaign="quorum", cluster=spec, kafka=kafka), Choices.from_seed(0), ())
    target.start()
    nodes = target.observer.quorum()
    target.cluster.crash_broker(nodes[0], power_loss=False)
    return target, nodes


@pytest.mark.parametrize("kafka", ["2.4", "4.3"])
def test_a_majority_of_the_control_plane_stays_in_service(kafka: str) -> None:
    target, (_, second, third) = quorum_of_three(kafka)
    limits = BlastRadius(keep_majority=True)
    faults: tuple[tuple[Fault, bool], ...] = (
        (BrokerCrash(broker=second), False),
        (BrokerPause(broker=third), False),
        (BrokerStop(broker=third), False),
        (NetworkPartition(between=(second,), and_=(third,)), False),
        (BrokerCrash(broker=0), True),
        (NetworkPartition(between=(0,), and_=(second, third)), True),
        (NetworkPartition(between=(0, 1), and_=(second, third)), False),
    )
    permissions = [allows(limits, fault, target, is_alone=True) for fault, _ in faults]
    assert permissions == [expected for _, expected in faults]
    assert all(allows(BlastRadius(), fault, target, is_alone=True) for fault, _ in faults)


def test_a_broker_cut_off_from_most_of_the_quorum_is_out_of_service() -> None:
    target, (_, second, third) = quorum_of_three("4.3")
    limits = BlastRadius(brokers=1)
    target.cluster.crash_broker(1, power_loss=False)
    assert allows(limits, NetworkPartition(between=(0,), and_=(second,)), target, is_alone=True)
    assert not allows(limits, NetworkPartition(between=(0,), and_=(second, third)), target, is_alone=True)


@pytest.mark.parametrize("kafka", ["2.4", "4.3"])
def test_a_single_controller_is_not_struck_if_a_majority_has_to_stay(kafka: str) -> None:
    harness = ClusterHarness(kafka=kafka)
    (alone,) = harness.target.observer.quorum()
    assert not injector(harness, keep_majority=True).inject(BrokerCrash(broker=alone))
    assert injector(harness).inject(BrokerCrash(broker=alone))


def test_a_fault_that_takes_no_broker_out_of_service_is_always_allowed() -> None:
    harness = ClusterHarness()
    limited = injector(harness, brokers=1)
    assert limited.inject(BrokerCrash(broker=2))
    assert limited.inject(LinkReset(between=(0,), and_=(1,)))
    assert limited.inject(BrokerRestart(broker=2))
    assert limited.inject(NetworkPartition(between=("producer-0",), and_=(0,)))


def test_no_other_broker_is_taken_out_during_a_rolling_restart() -> None:
    limited = injector(ClusterHarness(), brokers=2)
    assert limited.inject(RollingRestart(down_for=(SECOND, SECOND)))
    assert not limited.inject(BrokerPause(broker=2))


def test_with_an_empty_isr_the_last_eligible_leader_is_not_struck() -> None:
    """KIP-966: a broker that left the ISR with every committed record can lead after its return."""
    harness = ClusterHarness(kafka="4.3", min_isr=2)
    for broker in (2, 1):
        harness.cluster.crash_broker(broker, power_loss=False)
        harness.run(harness.now_us + 12_000_000)
    harness.cluster.pause_broker(0)
    harness.run(harness.now_us + 12_000_000)
    assert harness.target.observer.partition_state("t-0") == (-1, 1, ())
    harness.cluster.resume_broker(0)
    assert harness.target.observer.electable("t-0") == (1, 0)
    assert not injector(harness, keep_in_sync=1).inject(BrokerPause(broker=0))
    assert injector(harness, keep_in_sync=0).inject(BrokerPause(broker=0))
