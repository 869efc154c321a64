"""The targets declare which faults they can do."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.cluster_model.fields import described
from harrow.faults.catalogue import FAULTS
from harrow.faults.effects import ExpireSession, FaultEffect, Pause
from harrow.faults.fault import Environment, Fault
from harrow.live_cluster.local.started_effects import started_reach
from harrow.live_cluster.reach.feasible import obstacles_within
from harrow.live_cluster.releases.kafka_release import KRAFT, ZOOKEEPER, release_of
from harrow.live_cluster.users.fault_reach import targets_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Oddity(Fault):
    """A fault from outside the catalogue."""

    name: ClassVar[str] = "oddity"

    how: Literal["pause", "expire"] = described("What it does.", default="pause")

    def effects(self, environment: Environment) -> Iterable[FaultEffect]:
        return [Pause(0) if self.how == "pause" else ExpireSession(0)]


def words(fault: type[Fault]) -> list[str]:
    return [str(reach) for reach in targets_of(fault).values()]


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_states_what_each_target_can_do(name: str) -> None:
    model, *others = words(FAULTS[name])
    assert model == "yes"
    assert set(others) <= {"yes", "in part", "no"}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("broker_crash", ["yes", "yes", "yes", "in part"]),  # no command cuts the power
        ("partition", ["yes", "yes", "yes", "in part"]),  # no command cuts off a client
        ("link_slow", ["yes", "yes", "yes", "no"]),
        ("session_expiry", ["yes", "yes", "no", "no"]),
        ("controller_failover", ["yes", "yes", "yes", "in part"]),
        ("broker_pause", ["yes", "yes", "yes", "yes"]),
        ("application_pause", ["yes", "yes", "yes", "yes"]),
        ("client_zombie", ["yes", "in part", "in part", "in part"]),  # only applications
    ],
)
def test_each_target_can_do_a_fault_wholly_partly_or_not(name: str, expected: list[str]) -> None:
    assert words(FAULTS[name]) == expected


def test_the_targets_of_a_new_fault_follow_from_its_effects() -> None:
    targets = targets_of(Oddity)
    assert words(Oddity) == ["yes", "yes", "in part", "in part"]
    assert targets["yours"].obstacles == ("oddity: harrow has no access to ZooKeeper",)


@pytest.mark.parametrize(
    "text", ["partition: {between: controller}", "broker_pause: {broker: [1, controller]}"]
)
def test_a_separate_controller_is_an_obstacle_for_any_reference_to_the_controller(text: str) -> None:
    plan = load_text(f"name: c\nscript: [{{do: {{{text}}}}}]\n", "c.yaml").plans[0]
    started = started_reach(release_of("4.3.1"), KRAFT)
    kraft = list(obstacles_within(plan, replace(started, has_controllers=False)))
    assert any("the controller is not a broker" in obstacle for obstacle in kraft)
    assert not list(obstacles_within(plan, started))
    assert not list(obstacles_within(plan, started_reach(release_of("2.4.1"), ZOOKEEPER)))
