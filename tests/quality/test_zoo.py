"""The swarm finds the known flaws, and accuses the sound model of nothing."""

import os
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import pytest

from campaigns.library_index import resolve
from campaigns.loader import load_campaign
from campaigns.plan import Plan
from campaigns.run_result import RunResult
from campaigns.runner import run_plan
from checks.finding import VIOLATED
from cluster_model.mutants import MUTANTS

BUDGET = 2_000
"""Within so many seeds a flaw has to be found."""

SOUND_SEEDS = int(os.environ.get("HARROW_SWARM_SEEDS", "20000"))
CHUNKS = 20

# Flaws that take a coincidence which the swarm does not bring about; scripts show them (tests/scenarios).
BY_SCRIPT_ALONE = frozenset(
    {
        "bounce-unnoticed",
        "dead-replicas-stay-in-isr",
        "dedup-window-of-one",
        "early-isr-expansion",
        "min-isr-ignored",
        "requests-before-registration",
        "stale-controller-accepted",
        "stale-leader-epoch-accepted",
    }
)


@cache
def swarm() -> Plan:
    return load_campaign(resolve("swarm")[0]).plans[0]


def runs(plan: Plan, seeds: range) -> Iterator[RunResult]:
    return (run_plan(plan, seed) for seed in seeds)


@pytest.mark.parametrize("name", [name for name in MUTANTS if name not in BY_SCRIPT_ALONE])
def test_a_flaw_is_found(name: str) -> None:
    mutant = MUTANTS[name]
    plan = replace(swarm(), behaviours={**swarm().behaviours, mutant.switch: mutant.value})
    found = next((run for run in runs(plan, range(BUDGET)) if run.verdict.status == VIOLATED), None)
    assert found is not None


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_the_sound_model_is_not_accused(chunk: int) -> None:
    size = SOUND_SEEDS // CHUNKS
    accused = {
        run.seed: [rule for rule, judged in run.verdict.rules.items() if judged.status == VIOLATED]
        for run in runs(swarm(), range(chunk * size, (chunk + 1) * size))
        if run.verdict.status == VIOLATED
    }
    assert accused == {}
