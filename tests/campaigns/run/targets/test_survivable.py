"""With `survivable: true` a power loss leaves copies that can be elected."""

from dataclasses import replace

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.run.runner import run_plan
from harrow.campaigns.run.targets.model_target import ModelTarget
from harrow.cluster_model.sim.choices import Choices
from harrow.faults.effects import (
    Kill,
    LosePower,
    Start,
)

CAMPAIGN = """
settings: {acks: all, min.insync.replicas: 1, replica.lag.time.max.ms: 1s}
cluster: {brokers: 3, controller: 2, topics: [{name: t, assignment: [[0, 1]]}]}
workload: {duration: 10s, producers: [{rate: 10/s, stop: 2s}]}
survivable: true
"""


@pytest.mark.parametrize("survivable", [True, False])
def test_the_only_isr_member_does_not_lose_power_even_if_a_broker_outside_the_isr_has_a_copy(
    survivable: bool,
) -> None:
    (plan,) = load_text(CAMPAIGN, "survivable.yaml").plans
    target = ModelTarget(replace(plan, survivable=survivable), Choices.from_seed(0), frozenset())
    target.start()
    target.clients.start()
    target.advance(5_000_000)
    assert target.environment.may_lose_power(0)
    # The follower stops with every committed record, and leaves the ISR.
    target.environment.perform(Kill(1))
    target.advance(15_000_000)
    state = target.observer.partition_state("t-0")
    assert state is not None
    assert state[2] == (0,)
    assert target.environment.may_lose_power(0) is not survivable


@pytest.mark.parametrize("survivable", [True, False])
def test_a_broker_that_lost_committed_records_restarts_after_it_has_left_the_isr(
    survivable: bool,
) -> None:
    (plan,) = load_text(CAMPAIGN, "survivable.yaml").plans
    target = ModelTarget(replace(plan, survivable=survivable), Choices.from_seed(0), frozenset())
    target.start()
    target.clients.start()
    target.advance(5_000_000)
    target.environment.perform(LosePower(1))
    assert target.environment.is_held_back(1) is survivable
    target.environment.perform(Start(1))
    assert target.environment.is_running(1) is not survivable
    target.advance(20_000_000)
    assert target.environment.is_running(1)
    assert not target.environment.is_held_back(1)


def test_healing_starts_a_broker_that_lost_committed_records_after_it_has_left_the_isr() -> None:
    (plan,) = load_text(CAMPAIGN, "survivable.yaml").plans
    target = ModelTarget(plan, Choices.from_seed(0), frozenset())
    target.start()
    target.clients.start()
    target.advance(5_000_000)
    target.environment.perform(LosePower(1))
    target.heal()
    assert not target.environment.is_running(1)
    target.advance(25_000_000)
    assert target.environment.is_running(1)
    view = target.observer.replica("t-0", 1)
    assert view is not None
    assert view.leo > 0


FAULTS = """
settings: {acks: all, min.insync.replicas: 1}
cluster: {brokers: 4, controller: 3, topics: [{name: t, assignment: [[0, 1, 2]]}]}
workload: {duration: 10s, producers: [{rate: 10/s, stop: 4s}]}
survivable: %s
faults:
  - {at: 5s, do: {broker_crash: {broker: 1, kind: power_loss}}}
  - {at: 5100ms, do: {broker_crash: {broker: 0}}}
  - {at: 5200ms, do: {broker_crash: {broker: 2}}}
"""


@pytest.mark.parametrize(("survivable", "struck"), [("true", [1, 0]), ("false", [1, 0, 2])])
def test_no_fault_strikes_the_last_broker_with_records_while_an_emptied_broker_is_in_the_isr(
    survivable: str, struck: list[int]
) -> None:
    (plan,) = load_text(FAULTS % survivable, "survivable.yaml").plans
    assert [dict(fault.details)["broker"] for fault in run_plan(plan, 0).faults] == struck


def test_a_copy_on_a_broker_out_of_service_does_not_count() -> None:
    text = (
        (FAULTS % "true")
        .replace("broker: 1, kind: power_loss", "broker: 1")
        .replace("{broker_crash: {broker: 0}}", "{broker_pause: {broker: 0, duration: 3s}}")
    )
    (plan,) = load_text(text.replace("broker: 2}", "broker: 2, kind: power_loss}"), "survivable.yaml").plans
    assert [dict(fault.details)["broker"] for fault in run_plan(plan, 0).faults] == [1, 0]
