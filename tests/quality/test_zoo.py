"""The swarm finds the known flaws, and accuses the sound model of nothing."""

import os
from collections.abc import Iterator

import pytest

from campaigns.plan import Plan
from campaigns.run_result import RunResult
from campaigns.runner import run_plan
from checks.finding import VIOLATED
from cluster_model.mutants import MUTANTS
from tests.library_swarm import library_swarm, swarm_with_mutant

BUDGET = 2_000
"""Within so many seeds a flaw has to be found."""

SOUND_SEEDS = int(os.environ.get("HARROW_SWARM_SEEDS", "20000"))
CHUNKS = 20


def runs(plan: Plan, seeds: range) -> Iterator[RunResult]:
    return (run_plan(plan, seed) for seed in seeds)


@pytest.mark.parametrize("name", MUTANTS)
def test_a_flaw_is_found(name: str) -> None:
    broken = (run for run in runs(swarm_with_mutant(name), range(BUDGET)) if run.verdict.status == VIOLATED)
    assert next(broken, None) is not None


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_the_sound_model_is_not_accused(chunk: int) -> None:
    size = SOUND_SEEDS // CHUNKS
    accused = {
        run.seed: [rule for rule, judged in run.verdict.rules.items() if judged.status == VIOLATED]
        for run in runs(library_swarm(), range(chunk * size, (chunk + 1) * size))
        if run.verdict.status == VIOLATED
    }
    assert accused == {}
