"""Under random faults consumers that fetch from followers read committed records without skips."""

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
from tests.scenarios.dense_plan import standard_plan

SECOND = 1_000_000
RELEASES = ("2.4", "2.8", "3.9", "4.3")


@cache
def nearby_plan(release: str) -> Plan:
    """Return standard.yaml with brokers and a consumer in each rack, and with more broken links."""
    plan = standard_plan()
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


def uncommitted_and_follower_reads(result: RunResult) -> tuple[list[RecordsServed], int]:
    """Return responses with uncommitted records, and the number of responses from followers."""
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
@pytest.mark.soak(size=3, rounds_in_test=1, rounds_in_soak=80)
def test_followers_serve_only_committed_records_and_consumers_skip_nothing(
    release: str, numbers: range
) -> None:
    accused, followers_served, cleared = {}, 0, 0
    for seed in numbers:
        result = run_plan(nearby_plan(release), seed)
        early, by_followers = uncommitted_and_follower_reads(result)
        assert not early, f"seed {seed}"
        followers_served += by_followers
        cleared += sum(1 for _ in select(result.evidence.trace, ReadReplicaCleared))
        if result.verdict.status == VIOLATED:
            accused[seed] = [name for name, rule in result.verdict.rules.items() if rule.status == VIOLATED]
    assert not accused
    assert followers_served
    assert cleared


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.soak(size=1, rounds_in_test=1, rounds_in_soak=40)
def test_idle_fetches_from_followers_do_not_change_the_run(release: str, numbers: range) -> None:
    for seed in numbers:
        compare(nearby_plan(release), seed)


@pytest.mark.parametrize("release", RELEASES)
def test_an_idle_consumer_costs_nothing_at_a_follower(release: str) -> None:
    plan = replace(nearby_plan(release), faults=(), producers=(), script=(), duration_us=60 * SECOND)
    without_consumers = replace(plan, consumers=())
    assert run_plan(plan, 0).events < run_plan(without_consumers, 0).events + 1_000
