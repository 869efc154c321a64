"""A draw keeps the campaign's faults and order, and rounds numbers."""

from dataclasses import replace

import pytest

from harrow.campaigns.language.plan import Plan, Swarm, SwarmFaults
from harrow.campaigns.run.swarm import draw_for_seed
from harrow.cluster_model.topology import BrokerSpec, ClusterSpec, ProducerSpec, TopicSpec
from harrow.faults.brokers import BrokerCrash, BrokerPause
from harrow.faults.control_plane import ControllerFailover
from harrow.faults.injection import At, Injection
from tests.library_swarm import library_swarm

KINDS = (BrokerCrash(broker="any"), BrokerPause(broker="any"), ControllerFailover(how="session_expiry"))
ALWAYS = Injection(timing=At(at_us=(1_000_000, 1_000_000)), faults=(BrokerCrash(broker=0),))


def open_plan(swarm: Swarm) -> Plan:
    return Plan(
        campaign="open",
        cluster=ClusterSpec(brokers=(BrokerSpec(id=0),), topics=(TopicSpec(name="t"),)),
        producers=(ProducerSpec(name="p"),),
        duration_us=5_000_000,
        swarm=swarm,
    )


def test_the_faults_of_the_campaign_stay_before_those_of_the_swarm() -> None:
    faults = SwarmFaults(kinds=KINDS, in_play=(1, 2), mean_us=(500_000, 5_000_000))
    plan = replace(open_plan(Swarm(faults=faults)), faults=(ALWAYS,))
    assert draw_for_seed(plan, 0).plan.faults[0] == ALWAYS
    assert len(draw_for_seed(plan, 0).plan.faults) == 2


def test_faults_in_play_keep_the_order_of_the_campaign() -> None:
    faults = SwarmFaults(kinds=KINDS, in_play=(2, 3), mean_us=(500_000, 500_000))
    for seed in range(40):
        (injection,) = draw_for_seed(open_plan(Swarm(faults=faults)), seed).plan.faults
        places = [KINDS.index(fault) for fault in injection.faults]
        assert places == sorted(places)


@pytest.mark.parametrize("bounds", [(1_234_567, 1_234_569), (1_060_000, 1_094_999)])
def test_a_drawn_number_is_rounded_only_within_its_bounds(bounds: tuple[int, int]) -> None:
    low, high = bounds
    durations = {
        draw_for_seed(open_plan(Swarm(duration_us=bounds)), seed).plan.duration_us for seed in range(60)
    }
    assert all(low <= duration_us <= high for duration_us in durations)


def test_a_drawn_number_is_rounded_if_possible() -> None:
    durations = {
        draw_for_seed(open_plan(Swarm(duration_us=(1_000_000, 9_000_000))), s).plan.duration_us
        for s in range(60)
    }
    assert all(duration_us % 100_000 == 0 for duration_us in durations)


def test_applications_get_drawn_settings_as_other_clients_do() -> None:
    plans = [draw_for_seed(library_swarm("swarm-eos"), seed).plan for seed in range(20)]
    protocols = set()
    for plan in plans:
        member = next(consumer for consumer in plan.consumers if consumer.name == "first")
        for application in plan.applications:
            drawn_settings = dict(application.consumer)
            assert drawn_settings.pop("group.id") == "made"
            assert {**drawn_settings, "group.id": "g"} == {**drawn_settings, **member.settings}
            assert (
                application.producer["transaction.timeout.ms"]
                == plan.producers[0].settings["transaction.timeout.ms"]
            )
            protocols.add(drawn_settings["group.protocol"])
    assert protocols == {"classic", "consumer"}
