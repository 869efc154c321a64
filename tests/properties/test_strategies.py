"""The public strategies: what they draw can be run and written, and what they find is small."""

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, find, given, settings
from hypothesis import strategies as st

from campaigns.library_index import resolve
from campaigns.loader import load_campaign, load_text
from campaigns.plan import Plan
from campaigns.plan_file import campaign_text
from campaigns.runner import run_plan
from campaigns.strategies import clusters, drawn_from, faults, plans, producers, schedules, search, workloads
from cluster_model.settings import SETTINGS
from faults.broker_crash import BrokerCrash
from faults.catalogue import FAULTS
from faults.injection import At

MUTANT = {"epoch_cache_cut_at_log_end": True, "ack_waits_for_hw": False}
DISASTERS = ("broker_crash", "partition", "slow_follower")
LOOSE = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def open_plan() -> Plan:
    return load_campaign(resolve("swarm")[0]).plans[0]


@LOOSE
@given(plan=plans())
def test_a_drawn_plan_is_a_campaign_file_and_keeps_its_promises(plan: Plan) -> None:
    again = load_text(campaign_text(plan), "drawn.yaml").plans[0]
    assert again.digest() == plan.digest()
    assert run_plan(plan, 0).verdict.status != "violated"


@LOOSE
@given(plan=drawn_from(open_plan()))
def test_an_open_campaign_is_decided_to_the_last_fault(plan: Plan) -> None:
    assert plan.swarm is None
    brokers = {broker.id for broker in plan.cluster.brokers}
    for injection in plan.faults:
        assert isinstance(injection.timing, At)
        (fault,) = injection.faults
        assert getattr(fault, "broker", None) != "any"
        for name in ("duration", "restart_after"):
            low_us, high_us = getattr(fault, name, None) or (0, 0)
            assert low_us == high_us
        if isinstance(getattr(fault, "broker", None), int):
            assert getattr(fault, "broker", None) in brokers
    assert load_text(campaign_text(plan), "drawn.yaml").plans[0].digest() == plan.digest()


@pytest.mark.parametrize("name", [name for name in FAULTS if name != "release"])
def test_every_kind_of_fault_is_drawn(name: str) -> None:
    fault = find(faults(kinds=[name]), lambda fault: True, settings=settings(database=None))
    assert fault.name == name


def test_a_fault_that_nobody_knows() -> None:
    with pytest.raises(ValueError, match="there is no fault `meteor`"):
        faults(kinds=["meteor"])


def test_what_shrinks_is_plain() -> None:
    quiet = settings(database=None)
    cluster = find(clusters(), lambda _: True, settings=quiet)
    assert (len(cluster.brokers), cluster.partition_names()) == (1, ("t-0",))
    assert find(producers(), lambda _: True, settings=quiet).settings["enable.idempotence"] is False
    assert find(schedules(), lambda schedule: len(schedule) > 1, settings=quiet)[0].timing == At(at_us=0)
    assert find(workloads(), lambda _: True, settings=quiet).names() == ("producer-0",)


@LOOSE
@given(producer=producers(options=None))
def test_settings_come_from_the_catalogue(producer: object) -> None:
    for name in getattr(producer, "settings"):  # noqa: B009
        assert ("producer", name) in SETTINGS


@LOOSE
@given(data=st.data())
def test_what_is_given_stays(data: st.DataObject) -> None:
    base = replace(open_plan(), swarm=None)
    plan = data.draw(plans(base=base, kinds=[BrokerCrash(broker="any")], size=(1, 2)))
    assert (plan.cluster, plan.producers) == (base.cluster, base.producers)
    assert 1 <= len(plan.faults) <= 2


def test_a_mutant_is_found_and_made_small() -> None:
    pair = clusters(brokers=(2, 3), partitions=(1, 1), replication_factor=(2, 3))
    flawed = plans(behaviours=MUTANT, cluster=pair, kinds=DISASTERS)
    done = search(flawed, examples_max=500)
    assert done.found is not None
    assert done.found.verdict.status == "violated"
    assert len(done.found.plan.faults) <= 3


def test_a_mutant_of_an_open_campaign_is_found_again_and_the_same() -> None:
    flawed = replace(open_plan(), behaviours=MUTANT)
    found = [search(drawn_from(flawed), seed=1, examples_max=100).found for _ in range(2)]
    first, second = found
    assert first is not None
    assert second is not None
    assert first.plan.digest() == second.plan.digest()
    assert first.trace_digest == second.trace_digest
    assert len(first.plan.faults) <= 3
    written = load_text(campaign_text(first.plan), "found.yaml").plans[0]
    assert run_plan(written, 1).trace_digest == first.trace_digest


def test_a_sound_campaign_holds() -> None:
    told: list[tuple[int, int]] = []
    done = search(
        drawn_from(open_plan()),
        examples_max=15,
        told=lambda examples, shrinks: told.append((examples, shrinks)),
    )
    assert done.found is None
    assert (done.examples, done.shrinks) == (15, 0)
    assert told[-1] == (15, 0)
