"""With `survivable: true` and settings that promise durability no loss of power, or of a disk, costs an acked record."""

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
"""Seeds in which a broker was elected that had come back, still in the ISR, with less than was committed."""

TORN: Final = {"swarm-disks": (86,)}
"""Seeds in which a torn batch counted as a copy."""


def strict(swarm: str) -> Plan:
    return load_campaign(resolve(swarm)[0], STRICT).plans[0]


def lost(swarm: str, seed: int) -> list[object]:
    """Return the acked records that a run lost with power or with disks."""
    found = run_plan(strict(swarm), seed).verdict.rules["lost-write"].findings
    return [finding.value for finding in found if finding.permitted_by in (FLUSH_INTERVAL, DISK_FAILURE)]


@pytest.mark.parametrize(
    ("swarm", "seed"),
    [
        (swarm, seed)
        for seeds in (RETURNED_TOO_SOON, TORN)
        for swarm, known in seeds.items()
        for seed in known
    ],
)
def test_what_was_lost_before_is_kept(swarm: str, seed: int) -> None:
    assert lost(swarm, seed) == []


@pytest.mark.parametrize("swarm", ["swarm", "swarm-kraft", "swarm-disks", "swarm-eos"])
@pytest.mark.soak(size=10, test=1, soak=40)
def test_a_copy_stays_from_which_a_leader_comes(swarm: str, numbers: range) -> None:
    assert {seed: values for seed in numbers if (values := lost(swarm, seed))} == {}


def test_faults_still_strike_where_a_copy_stays() -> None:
    wanted = {"disk_loss", "torn_write"}
    for seed in range(10, 40):
        wanted -= {fault.fault for fault in run_plan(strict("swarm-disks"), seed).faults}
        if not wanted:
            break
    assert not wanted
