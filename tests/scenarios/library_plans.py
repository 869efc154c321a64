"""The plans of the library's campaigns and variants, and their runs.

Many tests check the same runs. A test of each plan takes its names from `each_plan`, which puts all
tests of a plan, in any file, into one group. One process of a parallel run takes them one after the
other, and `library_run` runs the plan once for all of them. A run is immutable: use
`dataclasses.replace` for changes.
"""

from collections.abc import Iterable, Mapping
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import pytest

from harrow.campaigns.language.library_index import library_names, resolve
from harrow.campaigns.language.loader import load_campaign
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.release_options import BrokerRelease
from harrow.campaigns.run.proof import proven
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.campaigns.run.workers.workers import Workers
from harrow.checks.finding import HELD
from harrow.cluster_model.release.profiles import NEWEST_RELEASE, RELEASES

RUNS_CACHED: Final = 8
"""How many runs are kept: more than the tests of one plan need, but not enough to fill memory."""
TRIED_RUNS_CACHED: Final = 2
"""How many runs with trials are kept: fewer, because each also holds the runs of its trials."""


@cache
def library_plans(brokers: BrokerRelease | None = None) -> Mapping[str, Plan]:
    """Return the plans by ``campaign[variant]``.

    Campaigns that name no release get the release of *brokers*.
    """
    plans = [
        plan
        for name in library_names()
        for file in resolve(name)
        for plan in load_campaign(file, brokers=brokers).plans
    ]
    return MappingProxyType({f"{plan.campaign}[{plan.variant or 'base'}]": plan for plan in plans})


def library_run(name: str, seed: int = 0) -> RunResult:
    return _run(name, seed)


class TriedRun(NamedTuple):
    """A run whose remedies were tried, and the runs of those trials by digest."""

    first: RunResult
    trials: Mapping[str, RunResult]


def tried_library_run(name: str, seed: int = 0) -> TriedRun:
    return _tried_run(name, seed)


def proven_library_run(name: str, seed: int = 0) -> RunResult:
    """Return a run after its trials, so that its findings say which remedies prevent them."""
    return _tried_run(name, seed).first


@lru_cache(maxsize=RUNS_CACHED)
def _run(name: str, seed: int) -> RunResult:
    return run_plan(library_plans()[name], seed)


@lru_cache(maxsize=TRIED_RUNS_CACHED)
def _tried_run(name: str, seed: int) -> TriedRun:
    trials: dict[str, RunResult] = {}

    def run(plan: Plan, seed: int, _: Workers) -> RunResult:
        result = run_plan(plan, seed)
        trials[result.trace_digest] = result
        return result

    return TriedRun(proven(_run(name, seed), run=run), MappingProxyType(trials))


def names_with_findings() -> list[str]:
    """Return the names of plans that may have findings.

    `test_library` checks that the others have none.
    """
    return [name for name, plan in library_plans().items() if plan.expect.verdict != HELD]


def fixed_names() -> list[str]:
    """Return the names of plans in which the seed decides only latencies.

    A plan that has no release, script and expected verdict leaves its outcome to random faults.
    """
    return [
        name for name, plan in library_plans().items() if plan.swarm is None and not _has_open_outcome(plan)
    ]


def _has_open_outcome(plan: Plan) -> bool:
    return not plan.script and plan.expect.verdict is None and _names_no_release(plan)


def _names_no_release(plan: Plan) -> bool:
    of_newest = library_plans(BrokerRelease(NEWEST_RELEASE, RELEASES[NEWEST_RELEASE].metadata))
    return of_newest[f"{plan.campaign}[{plan.variant or 'base'}]"].kafka != plan.kafka


def each_plan(names: Iterable[str] | None = None) -> pytest.MarkDecorator:
    """Parametrize a test with the ``name`` of each plan, in the group of the plan."""
    return pytest.mark.parametrize("name", [in_group(name) for name in names or library_plans()])


def in_group(name: str, *parameters: object) -> Any:
    """Put a test with these parameters, or else with the plan's name, into the group of a plan.

    A group's name comes after the last bracket of a test's identifier, so it has no bracket itself.
    """
    group = name.removesuffix("]").replace("[", "/")
    return pytest.param(*(parameters or (name,)), marks=pytest.mark.xdist_group(group))
