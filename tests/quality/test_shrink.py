"""What a swarm finds becomes small enough to read, and still fails for the same reason."""

import pytest

from campaigns.library_index import resolve
from campaigns.loader import load_campaign, load_text
from campaigns.plan import Plan
from campaigns.runner import run_plan
from campaigns.shrink import NothingToShrinkError, Shrinker
from campaigns.shrunk_campaign import shrunk_text
from campaigns.signature import same_failure, signatures
from checks.finding import PERMITTED
from cluster_model.mutants import MUTANTS
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
RUNS_MAX = 5_000
"""A bound for the search that goes wrong; the others need some hundred runs."""


def first_data_failure(plan: Plan) -> int:
    """Return the first seed with which clients lose or double data."""
    for seed in range(SEEDS_MAX):
        broken = signatures(run_plan(plan, seed))
        if broken and next(iter(broken)).rule in DATA_RULES:
            return seed
    raise AssertionError(f"no {', '.join(DATA_RULES)} in {SEEDS_MAX} seeds")


def shrunk(plan: Plan, seed: int) -> Shrinker:
    shrinker = Shrinker(plan, seed, runs_max=RUNS_MAX)
    shrinker.run()
    assert shrinker.complete
    return shrinker


# Flaws by which clients lose or double data, or see two records at one offset, and which the swarm finds soon.
@pytest.mark.parametrize(
    "mutant",
    [
        "hw-truncation",
        "no-truncation",
        "silent-unclean-election",
        "preferred-leader-outside-isr",
        "isr-counted-before-commit",
        "zombie-keeps-its-isr",
        "unconditional-isr-write",
        "ack-before-replication",
        "deposed-leader-acks-pending",
        "uncommitted-reads",
        "no-dedup",
    ],
)
def test_a_failure_becomes_small(mutant: str) -> None:
    plan = swarm_with_mutant(mutant)
    shrinker = shrunk(plan, first_data_failure(plan))
    best = shrinker.best
    faults, records = best.size()
    assert 1 <= faults <= FAULTS_MAX
    assert 1 <= records <= RECORDS_MAX
    assert list(best.plan.behaviours) == [MUTANTS[mutant].switch]
    # The file fails by itself, for the same reason, and says so.
    text = shrunk_text(shrinker, "harrow run swarm")
    (written,) = load_text(text, "shrunk.yaml").plans
    again = run_plan(written, best.seed)
    assert same_failure(again, shrinker.signature) is not None
    assert not again.expected
    # A loss despite acks=all is no smaller failure when acks=1 loses the record as well.
    if shrinker.signature.rule == "lost-write":
        assert f"despite {shrinker.signature.promise}" in text.replace("\n#", "")


def test_the_same_run_shrinks_to_the_same_campaign() -> None:
    plan, seed = swarm_with_mutant("no-dedup"), first_failing_seed("no-dedup", "duplicate")
    texts = {shrunk_text(shrunk(plan, seed), "harrow run swarm") for _ in range(2)}
    assert len(texts) == 1


@pytest.mark.parametrize("runs_max", [1, 2, 20])
def test_what_the_budget_allows_is_a_failure_too(runs_max: int) -> None:
    plan, seed = swarm_with_mutant("no-dedup"), first_failing_seed("no-dedup", "duplicate")
    shrinker = Shrinker(plan, seed, runs_max=runs_max)
    best = shrinker.run()
    assert not shrinker.complete
    assert shrinker.runs <= runs_max
    text = shrunk_text(shrinker, "harrow run swarm")
    assert "stopped before" in text
    (written,) = load_text(text, "shrunk.yaml").plans
    assert same_failure(run_plan(written, best.seed), shrinker.signature) is not None


def test_a_run_that_breaks_nothing_cannot_be_shrunk() -> None:
    with pytest.raises(NothingToShrinkError, match="held"):
        Shrinker(library_swarm(), first_held_seed())


def test_what_is_permitted_is_shrunk_when_it_is_asked_for() -> None:
    plan = load_campaign(resolve("acks-1-leader-crash")[0]).plans[0]
    with pytest.raises(NothingToShrinkError, match="--rule lost-write"):
        Shrinker(plan, 0)
    with pytest.raises(NothingToShrinkError, match=r"no duplicate is found.*there is lost-write"):
        Shrinker(plan, 0, rule="duplicate")
    shrinker = Shrinker(plan, 0, rule="lost-write")
    assert shrinker.run().size() <= (2, 1)
    assert shrinker.signature.permitted_by == "acks=1"
    text = shrunk_text(shrinker, "harrow run")
    told = [line for line in text.splitlines() if line.startswith("#   ")]
    # A fault that the finding does not tell of stands where it strikes, healing after the crash.
    assert "message strikes (action=hold" in told[0]
    # One that it tells of is not told twice.
    assert not any("broker_crash strikes" in line for line in told)
    assert [i for i, line in enumerate(told) if "broker 0 crashed" in line] < [
        i for i, line in enumerate(told) if "the cluster is healed" in line
    ]
    (written,) = load_text(text, "shrunk.yaml").plans
    again = run_plan(written, shrinker.best.seed)
    assert same_failure(again, shrinker.signature) is not None
    # It is a test of what it shows: expected while it is there.
    assert again.verdict.status == PERMITTED
    assert again.expected
    assert dict(written.expect.rules) == {"lost-write": PERMITTED}
