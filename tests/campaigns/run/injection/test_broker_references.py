"""References to brokers resolve when a fault strikes."""

from collections.abc import Sequence

import pytest

from harrow.campaigns.run.injection.broker_references import BrokerReferences
from harrow.cluster_model.topology import BrokerSpec, ClusterSpec, TopicSpec
from harrow.faults.brokers import BrokerCrash
from harrow.faults.effects import (
    Kill,
)
from harrow.faults.injection import At, Injection
from tests.campaigns.run.cluster_harness import ClusterHarness
from tests.recorded_choices import recorded_choices

SECOND = 1_000_000
RACKS = ClusterSpec(
    brokers=tuple(BrokerSpec(id=number, rack=rack) for number, rack in enumerate("aba")),
    topics=(TopicSpec(name="t", replication_factor=3),),
)


def resolve(harness: ClusterHarness, reference: object, draws: Sequence[int] = ()) -> tuple[int, ...]:
    draw = recorded_choices({"schedule": draws}).schedule
    return BrokerReferences(harness.target, RACKS, draw).brokers(reference)


@pytest.mark.parametrize(
    ("reference", "draws", "brokers"),
    [
        (2, (), (2,)),
        ("any", (2,), (2,)),
        ("random 2", (2, 0), (2, 0)),
        ("random 9", (1, 1), (1, 2, 0)),
        ("34%", (1, 0), (1, 0)),
        ("1%", (0,), (0,)),
        ("100%", (0, 0), (0, 1, 2)),
        ("controller", (), (0,)),
        ("all", (), (0, 1, 2)),
        ("rack a", (), (0, 2)),
        ("rack any", (0,), (0, 2)),
        ("rack any", (1,), (1,)),
        ("leader of t-0", (), (0,)),
        ("leader of any", (), (0,)),
        ("followers of any", (), (1, 2)),
        ("leaders of t", (), (0,)),
        ("followers of t-0", (), (1, 2)),
        ("follower of t-0", (0,), (1,)),
        ("follower of t-0", (1,), (2,)),
        ((2, 1), (), (2, 1)),
        ((1, "rack b", "controller"), (), (1, 0)),
    ],
)
def test_a_reference_resolves_to_its_brokers(
    reference: object, draws: tuple[int, ...], brokers: tuple[int, ...]
) -> None:
    assert resolve(ClusterHarness(), reference, draws) == brokers


def test_a_reference_resolves_against_the_current_state_of_the_cluster() -> None:
    harness = ClusterHarness(brokers=2, replication_factor=1, controller=1)
    assert resolve(harness, "follower of t-0") == ()  # the partition has no followers
    harness.environment.perform(Kill(0))
    harness.cluster.simulator.run_until(30 * SECOND)
    assert resolve(harness, "leader of t-0") == resolve(harness, "leaders of t") == ()
    assert resolve(harness, "controller") == (1,)


def test_a_fault_strikes_each_of_the_brokers_that_it_names() -> None:
    harness = ClusterHarness()
    assert harness.injector.inject(BrokerCrash(broker=(2, 1), restart_after=(SECOND, SECOND)))
    assert [harness.environment.is_running(broker) for broker in range(3)] == [True, False, False]
    assert [struck.concrete for struck in harness.injector.injected] == [
        BrokerCrash(broker=broker, restart_after=(SECOND, SECOND)) for broker in (2, 1)
    ]
    # The fault strikes the broker that still runs.
    assert harness.injector.inject(BrokerCrash(broker=(1, 0)))
    assert not harness.injector.inject(BrokerCrash(broker=(1, 0)))


def test_a_time_is_drawn_from_a_range() -> None:
    harness = ClusterHarness(draws=(3_000,))
    harness.injector.schedule(
        Injection(timing=At(at_us=(5 * SECOND, 20 * SECOND)), faults=(BrokerCrash(broker=1),))
    )
    harness.run(30 * SECOND)
    assert [struck.at_us for struck in harness.injector.injected] == [8 * SECOND]
