"""A sound configuration has no findings, and known flaws are found within a budget of seeds."""

from dataclasses import replace
from functools import cache

import pytest

from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.loader import load_campaign
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.runner import run_plan
from harrow.cluster_model.release.profiles import MUTANTS
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from harrow.faults.brokers import BrokerCrash
from harrow.faults.disks import BitRot, DiskFull, DiskLoss, LogDirFailure, StaleCheckpoint, TornWrite
from harrow.faults.fault import Fault
from harrow.faults.injection import Rate

# Mutants that a few seeds of `standard` find, with the rule that notices each, and its budget of
# seeds.
FOUND_WITHIN = {
    "hw-truncation": ("lost-write", 60),
    "no-truncation": ("log-divergence", 10),
    "no-dedup": ("duplicate", 5),
    "no-sequence-check": ("nonmonotonic-send", 20),
    "hw-ignores-followers": ("lost-write", 5),
    "ack-before-replication": ("lost-write", 5),
    "uncommitted-reads": ("read-above-hw", 5),
}


@cache
def standard_plan() -> Plan:
    return load_campaign(resolve("standard")[0]).plans[0]


@pytest.mark.soak(size=15, rounds_in_test=1, rounds_in_soak=200)
def test_a_sound_configuration_has_no_findings(numbers: range) -> None:
    accused = {}
    for seed in numbers:
        result = run_plan(standard_plan(), seed)
        if not result.expected:
            accused[seed] = (result.verdict.status, result.verdict.reasons, result.missed)
    assert not accused


@pytest.mark.parametrize("name", FOUND_WITHIN)
def test_a_mutant_is_found_within_its_budget(name: str) -> None:
    rule, budget = FOUND_WITHIN[name]
    mutant = MUTANTS[name]
    plan = replace(standard_plan(), behaviours={**standard_plan().behaviours, mutant.switch: mutant.value})
    assert any(run_plan(plan, seed).verdict.rules[rule].status == "violated" for seed in range(budget)), (
        f"{name} was not found by {rule} within {budget} seeds"
    )


@pytest.mark.parametrize("release", ["2.0", "2.4"])
@pytest.mark.soak(size=10, rounds_in_test=1, rounds_in_soak=100)
def test_power_loss_is_never_a_violation(release: str, numbers: range) -> None:
    injection = standard_plan().faults[0]
    power_loss = BrokerCrash(
        broker="any", kind="power_loss", restart_after=(US_PER_SECOND, 10 * US_PER_SECOND)
    )
    assert isinstance(injection.timing, Rate)
    faults = replace(
        injection,
        timing=replace(injection.timing, mean_us=2 * US_PER_SECOND),
        faults=(*injection.faults, power_loss, power_loss, power_loss),
    )
    # Without KIP-320 a follower of 2.0 keeps fetching from a leader that returned with another log,
    # and the judge takes that for a flaw. In any release it takes commits of a re-elected leader
    # that missed its deposition for a flaw, too.
    repaired = {"fetch_leader_epoch_fencing": True, "reelected_leader_forgets_positions": True}
    behaviours = {**standard_plan().behaviours, **repaired}
    plan = replace(standard_plan(), faults=(faults,), kafka=release, behaviours=behaviours)
    statuses = [run_plan(plan, seed).verdict.status for seed in numbers]
    assert "violated" not in statuses
    # Power losses must lose records, otherwise the test shows nothing.
    assert statuses.count("permitted") > len(numbers) / 5


_RESTART_AFTER = (US_PER_SECOND, 10 * US_PER_SECOND)
_DISK_FAULTS: tuple[tuple[Fault, ...], ...] = (
    (DiskLoss(broker="any", restart_after=_RESTART_AFTER),),
    (TornWrite(broker="any", after=1, restart_after=_RESTART_AFTER),),
    (BitRot(broker="any", partition="t-0"),),
    (
        StaleCheckpoint(broker="any", restart_after=_RESTART_AFTER),
        StaleCheckpoint(broker="any", file="recovery-point-offset-checkpoint", restart_after=_RESTART_AFTER),
        StaleCheckpoint(broker="any", file="leader-epoch-checkpoint", restart_after=_RESTART_AFTER),
    ),
    tuple(LogDirFailure(broker="any", log_dir=number, duration=_RESTART_AFTER) for number in (0, 1)),
    tuple(DiskFull(broker="any", log_dir=number, room=2_000, duration=_RESTART_AFTER) for number in (0, 1)),
)


@pytest.mark.parametrize("disk_faults", _DISK_FAULTS, ids=lambda faults: faults[0].name)
@pytest.mark.soak(size=5, rounds_in_test=1, rounds_in_soak=50)
def test_a_disk_fault_is_never_a_violation(disk_faults: tuple[Fault, ...], numbers: range) -> None:
    injection = standard_plan().faults[0]
    assert isinstance(injection.timing, Rate)
    faults = replace(
        injection,
        timing=replace(injection.timing, mean_us=2 * US_PER_SECOND),
        faults=(*injection.faults, *disk_faults * 3),
    )
    cluster = standard_plan().cluster
    cluster = replace(cluster, disk=replace(cluster.disk, log_dirs=2))
    plan = replace(standard_plan(), faults=(faults,), cluster=cluster)
    verdicts = {seed: run_plan(plan, seed).verdict for seed in numbers}
    assert [seed for seed, verdict in verdicts.items() if verdict.status == "violated"] == []
    if disk_faults[0].name == BitRot.name:
        # Consumers still read the records after a damaged batch.
        assert [seed for seed, verdict in verdicts.items() if verdict.status == "inconclusive"] == []
