"""Failures of a swarm shrink to a readable size, and still fail for the same reason."""

from dataclasses import replace
from itertools import islice

import pytest

from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.loader import load_campaign, load_text
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.runner import run_plan
from harrow.campaigns.search.shrink import RUNS_MAX, NothingToShrinkError, Shrinker
from harrow.campaigns.search.shrunk_campaign import shrunk_text
from harrow.campaigns.search.signature import Signature, signatures
from harrow.checks.finding import PERMITTED
from harrow.cluster_model.release.profiles import MUTANTS
from tests.library_swarm import (
    SEEDS_MAX,
    first_failing_seed,
    first_held_seed,
    library_swarm,
    swarm_with_mutant,
)

DATA_RULES = ("lost-write", "duplicate", "inconsistent-offsets")
FAULTS_MAX = 4
RECORDS_MAX = 3
SEARCH_RUNS_MAX = 5_000
"""The limit of runs of a search that fails. Most searches need a few hundred runs."""


def data_failure(plan: Plan, number: int) -> int:
    """Return the seed of the failure with this *number* in which clients lose or duplicate data."""
    failing = (
        seed
        for seed in range((number + 1) * SEEDS_MAX)
        if (broken := signatures(run_plan(plan, seed))) and next(iter(broken)).rule in DATA_RULES
    )
    seed = next(islice(failing, number, None), None)
    assert seed is not None, f"no {', '.join(DATA_RULES)} in {SEEDS_MAX} seeds"
    return seed


def shrunk(plan: Plan, seed: int, runs_max: int = SEARCH_RUNS_MAX) -> Shrinker:
    shrinker = Shrinker(plan, seed, runs_max=runs_max)
    shrinker.run()
    assert shrinker.complete
    return shrinker


# Mutants that the swarm finds soon, with lost or duplicate data, or two records at one offset.
@pytest.mark.parametrize(
    "mutant", ["no-truncation", "silent-unclean-election", "ack-before-replication", "no-dedup"]
)
@pytest.mark.soak(size=1, rounds_in_test=1, rounds_in_soak=5)
def test_a_failure_shrinks(mutant: str, numbers: range) -> None:
    check_shrinks(mutant, numbers.start)


@pytest.mark.parametrize(
    "mutant",
    [
        "isr-counted-before-commit",
        "zombie-keeps-its-isr",
        "deposed-leader-acks-pending",
        "uncommitted-reads",
    ],
)
@pytest.mark.soak(size=1, rounds_in_test=0, rounds_in_soak=5)
def test_a_failure_of_another_mutant_shrinks(mutant: str, numbers: range) -> None:
    check_shrinks(mutant, numbers.start)


# Mutants whose failures need thousands of runs to shrink.
@pytest.mark.parametrize(
    "mutant", ["hw-truncation", "preferred-leader-outside-isr", "unconditional-isr-write"]
)
@pytest.mark.soak(size=1, rounds_in_test=0, rounds_in_soak=2)
def test_a_failure_shrinks_in_a_long_search(mutant: str, numbers: range) -> None:
    # The limit of `harrow shrink`.
    check_shrinks(mutant, numbers.start, RUNS_MAX)


def check_shrinks(mutant: str, number: int, runs_max: int = SEARCH_RUNS_MAX) -> None:
    plan = swarm_with_mutant(mutant)
    shrinker = shrunk(plan, data_failure(plan, number), runs_max)
    best = shrinker.best
    faults, records = best.size()
    assert 1 <= faults <= FAULTS_MAX
    assert 1 <= records <= RECORDS_MAX
    # The campaign has the mutant, and only those repairs of the swarm that the failure needs.
    assert MUTANTS[mutant].switch in best.plan.behaviours
    for name in best.plan.behaviours:
        others = {other: value for other, value in best.plan.behaviours.items() if other != name}
        without = run_plan(replace(best.plan, behaviours=others), best.seed)
        assert shrinker.failure.shown_by(without) is None
    # The file alone fails for the same reason, and reports it.
    text = shrunk_text(shrinker, "harrow run swarm")
    (written,) = load_text(text, "shrunk.yaml").plans
    again = run_plan(written, best.seed)
    assert shrinker.failure.shown_by(again) is not None
    assert not again.expected
    # A loss with acks=all may not shrink to a loss with acks=1.
    assert isinstance(shrinker.failure, Signature)
    if shrinker.failure.rule == "lost-write":
        assert f"despite {shrinker.failure.promise}" in text.replace("\n#", "")


def test_the_same_run_shrinks_to_the_same_campaign() -> None:
    plan, seed = swarm_with_mutant("no-dedup"), first_failing_seed("no-dedup", "duplicate")
    texts = {shrunk_text(shrunk(plan, seed), "harrow run swarm") for _ in range(2)}
    assert len(texts) == 1


@pytest.mark.parametrize("runs_max", [1, 2, 20])
def test_an_interrupted_search_still_gives_a_failure(runs_max: int) -> None:
    plan, seed = swarm_with_mutant("no-dedup"), first_failing_seed("no-dedup", "duplicate")
    shrinker = Shrinker(plan, seed, runs_max=runs_max)
    best = shrinker.run()
    assert not shrinker.complete
    assert shrinker.runs <= runs_max
    text = shrunk_text(shrinker, "harrow run swarm")
    assert "stopped before" in text
    (written,) = load_text(text, "shrunk.yaml").plans
    assert shrinker.failure.shown_by(run_plan(written, best.seed)) is not None


def test_a_run_without_findings_cannot_be_shrunk() -> None:
    with pytest.raises(NothingToShrinkError, match="held"):
        Shrinker(library_swarm(), first_held_seed())


def test_a_permitted_finding_is_shrunk_on_request() -> None:
    plan = load_campaign(resolve("acks-1-leader-crash")[0]).plans[0]
    with pytest.raises(NothingToShrinkError, match="--rule lost-write"):
        Shrinker(plan, 0)
    with pytest.raises(NothingToShrinkError, match=r"duplicate has no finding.*there is lost-write"):
        Shrinker(plan, 0, names=["duplicate"])
    shrinker = Shrinker(plan, 0, names=["lost-write"])
    assert shrinker.run().size() <= (2, 1)
    assert isinstance(shrinker.failure, Signature)
    assert shrinker.failure.permitted_by == "acks=1"
    text = shrunk_text(shrinker, "harrow run")
    comments = [line for line in text.splitlines() if line.startswith("#   ")]
    # The comments show faults outside the chain at their times, and the healing after the crash.
    assert "message strikes (action=hold" in comments[0]
    # A fault in the chain appears only once.
    assert not any("broker_crash strikes" in line for line in comments)
    assert [i for i, line in enumerate(comments) if "broker 0 crashed" in line] < [
        i for i, line in enumerate(comments) if "the cluster is healed" in line
    ]
    (written,) = load_text(text, "shrunk.yaml").plans
    again = run_plan(written, shrinker.best.seed)
    assert shrinker.failure.shown_by(again) is not None
    # The file is a test that expects the finding.
    assert again.verdict.status == PERMITTED
    assert again.expected
    assert dict(written.expect.rules) == {"lost-write": PERMITTED}
