"""Under random faults a consumer that reads from followers reads what is committed, in order, and skips nothing."""

from collections import Counter
from dataclasses import replace
from functools import cache

import pytest

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.checks.finding import VIOLATED
from harrow.cluster_model.events import (
    BecameFollower,
    BecameLeader,
    HighWatermarkSet,
    ReadReplicaCleared,
    RecordsServed,
)
from harrow.cluster_model.settings import RACK_AWARE_SELECTOR
from harrow.cluster_model.trace import select
from harrow.faults.injection import Rate
from harrow.faults.links import NetworkPartition
from tests.properties.test_idle_fetches import compare
from tests.scenarios.dense_plan import yardstick

SECOND = 1_000_000
RELEASES = ("2.4", "2.8", "3.9", "4.3")


@cache
def reading_nearby(release: str) -> Plan:
    """Return standard.yaml with brokers in racks, consumers in each of them, and more links that break."""
    plan = yardstick()
    injection = plan.faults[0]
    assert isinstance(injection.timing, Rate)
    brokers = tuple(replace(broker, rack=f"rack-{broker.id % 3}") for broker in plan.cluster.brokers)
    first = plan.consumers[0]
    faults = (*injection.faults, NetworkPartition(between=("any",), duration=(SECOND, 8 * SECOND)))
    return replace(
        plan,
        kafka=release,
        cluster=replace(
            plan.cluster,
            brokers=brokers,
            settings={**plan.cluster.settings, "replica.selector.class": RACK_AWARE_SELECTOR},
        ),
        consumers=tuple(
            replace(
                first,
                name=f"near-{rack}",
                settings={**first.settings, "client.rack": f"rack-{rack}", "metadata.max.age.ms": 4_000},
            )
            for rack in range(3)
        ),
        faults=(replace(injection, timing=replace(injection.timing, mean_us=3 * SECOND), faults=faults),),
    )


def committed_and_served(result: RunResult) -> tuple[list[RecordsServed], int]:
    """Return what was served above what any leader had committed by then, and how often a follower served something."""
    roles: dict[tuple[int, str], type] = {}
    committed: Counter[str] = Counter()
    early, by_followers = [], 0
    for event in select(result.evidence.trace, BecameLeader, BecameFollower, HighWatermarkSet, RecordsServed):
        assert isinstance(event, BecameLeader | BecameFollower | HighWatermarkSet | RecordsServed)
        key = event.broker, event.partition
        if isinstance(event, HighWatermarkSet):
            if roles.get(key) is BecameLeader:
                committed[event.partition] = max(committed[event.partition], event.hw)
        elif isinstance(event, RecordsServed):
            by_followers += roles.get(key) is BecameFollower
            if event.end_offset > committed[event.partition]:
                early.append(event)
        else:
            roles[key] = type(event)
    return early, by_followers


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.soak(size=3, test=1, soak=80)
def test_what_followers_serve_is_committed_and_nothing_is_skipped(release: str, numbers: range) -> None:
    accused, followers_served, left = {}, 0, 0
    for seed in numbers:
        result = run_plan(reading_nearby(release), seed)
        early, by_followers = committed_and_served(result)
        assert not early, f"seed {seed}"
        followers_served += by_followers
        left += sum(1 for _ in select(result.evidence.trace, ReadReplicaCleared))
        if result.verdict.status == VIOLATED:
            accused[seed] = [name for name, rule in result.verdict.rules.items() if rule.status == VIOLATED]
    assert not accused
    assert followers_served
    assert left


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.soak(size=1, test=1, soak=40)
def test_idle_fetches_of_followers_are_of_the_same_run(release: str, numbers: range) -> None:
    for seed in numbers:
        compare(reading_nearby(release), seed)


@pytest.mark.parametrize("release", RELEASES)
def test_a_consumer_that_has_read_everything_costs_nothing_at_a_follower(release: str) -> None:
    plan = replace(reading_nearby(release), faults=(), producers=(), script=(), duration_us=60 * SECOND)
    nobody = replace(plan, consumers=())
    assert run_plan(plan, 0).events < run_plan(nobody, 0).events + 1_000
