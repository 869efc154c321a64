"""With `survivable: true` and durable settings no power loss or disk fault loses a record."""

from typing import Final

import pytest

from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.loader import load_campaign
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.runner import run_plan
from harrow.checks.promise import DISK_FAILURE, FLUSH_INTERVAL

STRICT: Final = (
    "survivable=true",
    "settings.acks=all",
    "settings.min.insync.replicas=2",
    "settings.unclean.leader.election.enable=false",
    "settings.enable.idempotence=true",
)

RETURNED_TOO_SOON: Final = {"swarm": (5, 79), "swarm-disks": (15, 167)}
"""Seeds that once lost records: a restarted ISR member without committed records was elected."""

TORN: Final = {"swarm-disks": (86,)}
"""Seeds that once lost records, because a torn batch counted as a copy."""


def strict_plan(swarm: str) -> Plan:
    return load_campaign(resolve(swarm)[0], STRICT).plans[0]


def lost_records(swarm: str, seed: int) -> list[object]:
    """Return the acked records that a run lost with unflushed data or with a disk."""
    verdict = run_plan(strict_plan(swarm), seed).verdict
    if "lost-write" in verdict.not_tried:
        return []
    findings = verdict.rules["lost-write"].findings
    return [finding.value for finding in findings if finding.permitted_by in (FLUSH_INTERVAL, DISK_FAILURE)]


@pytest.mark.parametrize(
    ("swarm", "seed"),
    [
        (swarm, seed)
        for seeds in (RETURNED_TOO_SOON, TORN)
        for swarm, numbers in seeds.items()
        for seed in numbers
    ],
)
def test_seeds_that_once_lost_records_lose_nothing(swarm: str, seed: int) -> None:
    assert lost_records(swarm, seed) == []


@pytest.mark.parametrize("swarm", ["swarm", "swarm-kraft", "swarm-disks", "swarm-eos"])
@pytest.mark.soak(size=10, rounds_in_test=1, rounds_in_soak=40)
def test_survivable_runs_lose_no_acked_record(swarm: str, numbers: range) -> None:
    assert {seed: values for seed in numbers if (values := lost_records(swarm, seed))} == {}


def test_survivable_runs_still_have_disk_faults() -> None:
    missing = {"disk_loss", "torn_write"}
    for seed in range(10, 40):
        missing -= {fault.fault for fault in run_plan(strict_plan("swarm-disks"), seed).faults}
        if not missing:
            break
    assert not missing
