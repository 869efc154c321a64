"""The swarm finds every mutant, and has no findings in the sound model."""

import re
from collections.abc import Iterable, Iterator

import pytest

from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.loader import load_campaign
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.checks.finding import VIOLATED
from harrow.cluster_model.release.profiles import MUTANTS
from tests.library_swarm import library_swarm, swarm_with_mutant
from tests.plain_environment import ROOT

BUDGET = 4_000
"""The number of seeds within which a mutant must be found."""

TABLE = (ROOT / "docs" / "evidence" / "runs-with-a-known-flaw.md").read_text(encoding="utf-8")
MEASURED = {name: int(seeds) - 1 for name, seeds in re.findall(r"(?m)^\| `([\w-]+)` \| (\d+) \|", TABLE)}
MEASURED |= {name: int(seed) for name, seed in re.findall(r"(?m)^\| `([\w-]+)` \| seed (\d+) \|", TABLE)}
"""The seeds that found mutants when the table was made.

They are tried first. Other seeds follow, because changes of the model may move a failure.
"""


def runs(plan: Plan, seeds: Iterable[int]) -> Iterator[RunResult]:
    return (run_plan(plan, seed) for seed in seeds)


@pytest.mark.parametrize("name", MUTANTS)
def test_the_swarm_finds_the_mutant(name: str) -> None:
    seeds = (MEASURED.get(name, 0), *range(BUDGET))
    assert any(run.verdict.status == VIOLATED for run in runs(swarm_with_mutant(name), seeds))


def test_in_2_8_the_transactional_swarm_finds_a_hanging_transaction() -> None:
    """KAFKA-12671 ended when leaders began to verify transactions (KIP-890, 3.6)."""
    (plan,) = load_campaign(resolve("swarm-eos")[0], ("kafka=2.8",)).plans
    results = (run.verdict.rules["hanging-transaction"] for run in runs(plan, (501, *range(BUDGET))))
    assert any(rule_result.status == VIOLATED for rule_result in results)


@pytest.mark.parametrize(
    ("swarm", "variant"),
    [("swarm", None), ("swarm-kraft", None), ("swarm-eos", None), ("swarm-disks", None), ("swarm-disks", "kraft")],
)  # fmt: skip
@pytest.mark.soak(size=50, rounds_in_test=1, rounds_in_soak=400)
def test_the_sound_model_has_no_findings(swarm: str, variant: str | None, numbers: range) -> None:
    accused = {
        run.seed: [rule for rule, result in run.verdict.rules.items() if result.status == VIOLATED]
        for run in runs(library_swarm(swarm, variant), numbers)
        if run.verdict.status == VIOLATED
    }
    assert accused == {}
