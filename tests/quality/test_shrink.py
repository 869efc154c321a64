"""What a swarm finds becomes small enough to read, and still fails for the same reason."""

import pytest

from campaigns.loader import load_text
from campaigns.runner import run_plan
from campaigns.shrink import NothingToShrinkError, Shrinker
from campaigns.shrunk_campaign import shrunk_text
from campaigns.signature import signatures
from cluster_model.mutants import MUTANTS
from tests.library_swarm import first_failing_seed, first_held_seed, library_swarm, swarm_with_mutant

FAULTS_MAX = 4
RECORDS_MAX = 3


@pytest.mark.parametrize(
    ("mutant", "rule"),
    [
        ("hw-truncation", "lost-write"),
        ("no-dedup", "duplicate"),
        ("ack-before-replication", "lost-write"),
        ("silent-unclean-election", "lost-write"),
    ],
)
def test_a_failure_becomes_small(mutant: str, rule: str) -> None:
    shrinker = Shrinker(swarm_with_mutant(mutant), first_failing_seed(mutant, rule), time_max_s=120)
    assert shrinker.signature.rule == rule
    best = shrinker.run()
    assert shrinker.complete
    faults, records = best.size()
    assert 1 <= faults <= FAULTS_MAX
    assert 1 <= records <= RECORDS_MAX
    assert list(best.plan.behaviours) == [MUTANTS[mutant].switch]
    # The file fails by itself, for the same reason, and says so.
    (written,) = load_text(shrunk_text(shrinker, "harrow run swarm"), "shrunk.yaml").plans
    again = run_plan(written, best.seed)
    assert shrinker.signature in signatures(again.verdict)
    assert not again.expected


def test_the_same_run_shrinks_to_the_same_campaign() -> None:
    texts = []
    for _ in range(2):
        shrinker = Shrinker(swarm_with_mutant("no-dedup"), first_failing_seed("no-dedup", "duplicate"))
        shrinker.run()
        texts.append(shrunk_text(shrinker, "harrow run swarm"))
    assert texts[0] == texts[1]


@pytest.mark.parametrize("runs_max", [1, 2, 20])
def test_what_the_budget_allows_is_a_failure_too(runs_max: int) -> None:
    shrinker = Shrinker(
        swarm_with_mutant("no-dedup"), first_failing_seed("no-dedup", "duplicate"), runs_max=runs_max
    )
    best = shrinker.run()
    assert not shrinker.complete
    assert shrinker.runs <= runs_max
    text = shrunk_text(shrinker, "harrow run swarm")
    assert "stopped before" in text
    (written,) = load_text(text, "shrunk.yaml").plans
    assert shrinker.signature in signatures(run_plan(written, best.seed).verdict)


def test_a_run_that_breaks_nothing_cannot_be_shrunk() -> None:
    with pytest.raises(NothingToShrinkError, match="held"):
        Shrinker(library_swarm(), first_held_seed())
