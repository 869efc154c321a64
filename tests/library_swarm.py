"""The library's swarm with mutants, and the first seeds in which it finds them.

The seeds are searched and not written down, because every change of swarm.yaml changes what a
seed draws.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.loader import load_campaign
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.runner import run_plan
from harrow.campaigns.search.signature import signatures
from harrow.cluster_model.release.profiles import MUTANTS, swarm_of

SEEDS_MAX = 500


@cache
def library_swarm(name: str = "swarm", variant: str | None = None) -> Plan:
    plans = load_campaign(resolve(name)[0]).plans
    return plans[0] if variant is None else next(plan for plan in plans if plan.variant == variant)


def swarm_with(behaviours: Mapping[str, Any]) -> Plan:
    plan = library_swarm()
    return replace(plan, behaviours={**plan.behaviours, **behaviours})


def swarm_with_mutant(name: str) -> Plan:
    return library_swarm(swarm_of(MUTANTS[name])).flawed(MUTANTS[name])


@cache
def first_failing_seed(mutant: str, rule: str) -> int:
    """Return the first seed with which the mutant breaks *rule*, and no rule that is worse."""
    plan = swarm_with_mutant(mutant)
    for seed in range(SEEDS_MAX):
        broken = signatures(run_plan(plan, seed))
        if broken and next(iter(broken)).rule == rule:
            return seed
    raise AssertionError(f"{mutant} breaks {rule} in none of {SEEDS_MAX} seeds")


@cache
def first_held_seed() -> int:
    """Return the first seed without a finding in the sound model."""
    return next(seed for seed in range(SEEDS_MAX) if run_plan(library_swarm(), seed).verdict.status == "held")
