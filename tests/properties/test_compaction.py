"""Under random faults compaction keeps the latest record of each key without any finding."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import pytest

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.runner import run_plan
from harrow.checks.finding import VIOLATED
from harrow.cluster_model.events import BatchReplicated, LogCleaned
from harrow.cluster_model.settings import Value
from harrow.cluster_model.trace import select
from harrow.faults.brokers import BrokerCrash
from harrow.faults.disks import StaleCheckpoint
from harrow.faults.injection import Rate
from tests.scenarios.dense_plan import standard_plan

SECOND = 1_000_000

SETTINGS: Mapping[str, Value] = {
    "log.cleanup.policy": "compact",
    "log.segment.bytes": 700,
    "log.cleaner.backoff.ms": 400,
    "log.cleaner.min.cleanable.ratio": "0.2",
    "log.cleaner.delete.retention.ms": 3_000,
}


@cache
def compacted_plan(release: str) -> Plan:
    """Return standard.yaml with keys, tombstones, long outages and lost cleaner checkpoints."""
    plan = standard_plan()
    injection = plan.faults[0]
    assert isinstance(injection.timing, Rate)
    faults = (
        *injection.faults,
        BrokerCrash(broker="any", kind="process", restart_after=(5 * SECOND, 20 * SECOND)),
        StaleCheckpoint(broker="any", file="cleaner-offset-checkpoint", restart_after=(SECOND, 9 * SECOND)),
        StaleCheckpoint(broker="any", file="cleaner-offset-checkpoint", age=4 * SECOND),
    )
    return replace(
        plan,
        kafka=release,
        behaviours={"cleaner_waits_for_hw": True, "cleaner_retains_empty_last_batch": True},
        cluster=replace(plan.cluster, settings={**plan.cluster.settings, **SETTINGS}),
        producers=tuple(replace(spec, keys=5, tombstone_every=7) for spec in plan.producers),
        faults=(replace(injection, timing=replace(injection.timing, mean_us=3 * SECOND), faults=faults),),
    )


@pytest.mark.parametrize("release", ["0.11", "2.4", "3.9", "4.3"])
@pytest.mark.soak(size=3, rounds_in_test=1, rounds_in_soak=170)
def test_the_removal_of_records_by_compaction_is_no_violation(release: str, numbers: range) -> None:
    accused, removed, copied = {}, 0, 0
    for seed in numbers:
        result = run_plan(compacted_plan(release), seed)
        trace = result.evidence.trace
        removed += sum(len(cleaned.removed) for cleaned in select(trace, LogCleaned))
        copied += sum(1 for _ in select(trace, BatchReplicated))
        if result.verdict.status == VIOLATED:
            accused[seed] = [name for name, rule in result.verdict.rules.items() if rule.status == VIOLATED]
    assert not accused
    assert removed
    assert copied
