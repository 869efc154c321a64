"""Under random faults retention deletes only expired records, and no rule accuses the model."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import pytest

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.runner import run_plan
from harrow.checks.finding import VIOLATED
from harrow.cluster_model.events import LogStartedAnew, LogStartRaised
from harrow.cluster_model.settings import Value
from harrow.cluster_model.trace import select
from harrow.faults.brokers import BrokerCrash
from harrow.faults.disks import StaleCheckpoint
from harrow.faults.injection import Rate
from tests.scenarios.dense_plan import standard_plan

SECOND = 1_000_000

BY_AGE: Mapping[str, Value] = {"log.retention.ms": 4_000, "log.roll.ms": 700}
BY_SIZE: Mapping[str, Value] = {"log.retention.bytes": 900, "log.segment.bytes": 300}


@cache
def retention_plan(by: str, release: str) -> Plan:
    """Return standard.yaml with outages beyond the retention time and lost start checkpoints."""
    plan = standard_plan()
    injection = plan.faults[0]
    assert isinstance(injection.timing, Rate)
    faults = (
        *injection.faults,
        BrokerCrash(broker="any", kind="process", restart_after=(5 * SECOND, 20 * SECOND)),
        StaleCheckpoint(broker="any", file="log-start-offset-checkpoint", restart_after=(SECOND, 9 * SECOND)),
    )
    settings = {
        **plan.cluster.settings,
        **(BY_AGE if by == "age" else BY_SIZE),
        "log.retention.check.interval.ms": 300,
        "log.flush.start.offset.checkpoint.interval.ms": 500,
    }
    if release == "0.10.2":
        del settings["log.flush.start.offset.checkpoint.interval.ms"]
    return replace(
        plan,
        kafka=release,
        cluster=replace(plan.cluster, settings=settings),
        faults=(replace(injection, timing=replace(injection.timing, mean_us=3 * SECOND), faults=faults),),
    )


@pytest.mark.parametrize("release", ["2.4", "4.3"])
@pytest.mark.parametrize("by", ["age", "size"])
@pytest.mark.soak(size=10, rounds_in_test=1, rounds_in_soak=50)
def test_the_deletion_of_records_by_retention_is_no_violation(by: str, release: str, numbers: range) -> None:
    accused, deleted, restarts = {}, 0, 0
    for seed in numbers:
        result = run_plan(retention_plan(by, release), seed)
        deleted += sum(1 for _ in select(result.evidence.trace, LogStartRaised))
        restarts += sum(1 for _ in select(result.evidence.trace, LogStartedAnew))
        if result.verdict.status == VIOLATED:
            accused[seed] = [name for name, rule in result.verdict.rules.items() if rule.status == VIOLATED]
    assert not accused
    assert deleted
    assert restarts


def test_a_leader_with_a_restarted_log_may_accept_a_duplicate_of_a_deleted_record() -> None:
    """KAFKA-7190: the leader has no state of producers whose records retention has deleted."""
    assert run_plan(retention_plan("age", "2.4"), 16).verdict.status != VIOLATED
