"""The plans of the campaigns that ship (each campaign, and each of its variants), and their runs.

Many tests look at the same runs. A test of each plan takes its names from `each_plan`, which puts all tests of a plan, in
whatever file, into one group: one process of a parallel run takes them one after the other, and `library_run` runs the plan once
for all of them. A run is a value: who wants another one uses `dataclasses.replace`.
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
from harrow.checks.finding import HELD
from harrow.cluster_model.release.profiles import NEWEST_RELEASE, RELEASES

RUNS_KEPT: Final = 8
"""More than the tests of one plan have; all runs of the library would fill the memory."""
TRIED_KEPT: Final = 2
"""Each has the runs of its trials."""


@cache
def library_plans(brokers: BrokerRelease | None = None) -> Mapping[str, Plan]:
    """Return the plans by ``campaign[variant]``; for *brokers* what names no release is as of theirs."""
    plans = [
        plan
        for name in library_names()
        for file in resolve(name)
        for plan in load_campaign(file, brokers=brokers).plans
    ]
    return MappingProxyType({f"{plan.campaign}[{plan.variant or 'base'}]": plan for plan in plans})


def library_run(name: str, seed: int = 0) -> RunResult:
    return _run(name, seed)


class Tried(NamedTuple):
    """A run with its remedies tried, and the runs of the trials by their digests."""

    first: RunResult
    trials: Mapping[str, RunResult]


def tried_library_run(name: str, seed: int = 0) -> Tried:
    return _tried_run(name, seed)


def proven_library_run(name: str, seed: int = 0) -> RunResult:
    """Return the run with the remedies of its findings tried."""
    return _tried_run(name, seed).first


@lru_cache(maxsize=RUNS_KEPT)
def _run(name: str, seed: int) -> RunResult:
    return run_plan(library_plans()[name], seed)


@lru_cache(maxsize=TRIED_KEPT)
def _tried_run(name: str, seed: int) -> Tried:
    trials: dict[str, RunResult] = {}

    def run(tried: Plan, seed: int) -> RunResult:
        again = run_plan(tried, seed)
        trials[again.trace_digest] = again
        return again

    return Tried(proven(_run(name, seed), run), MappingProxyType(trials))


def names_with_findings() -> list[str]:
    """Return the names of the plans that may have findings: `test_library` holds the others to having none."""
    return [name for name, plan in library_plans().items() if plan.expect.verdict != HELD]


def fixed_names() -> list[str]:
    """Return the names of the plans that leave nothing to the seed but latencies.

    A plan for clusters of any release that does not say its verdict leaves open what its faults find.
    """
    return [name for name, plan in library_plans().items() if plan.swarm is None and not _leaves_open(plan)]


def _leaves_open(plan: Plan) -> bool:
    return not plan.script and plan.expect.verdict is None and _names_no_release(plan)


def _names_no_release(plan: Plan) -> bool:
    of_newest = library_plans(BrokerRelease(NEWEST_RELEASE, RELEASES[NEWEST_RELEASE].metadata))
    return of_newest[f"{plan.campaign}[{plan.variant or 'base'}]"].kafka != plan.kafka


def each_plan(names: Iterable[str] | None = None) -> pytest.MarkDecorator:
    """Call a test with the ``name`` of each plan, in the group of that plan."""
    return pytest.mark.parametrize("name", [in_group(name) for name in names or library_plans()])


def in_group(name: str, *parameters: object) -> Any:
    """Return the parameters of a test that belongs to the tests of a plan; by default its name.

    The name of a group stands behind the last bracket of a test's identifier, so it has none itself.
    """
    group = name.removesuffix("]").replace("[", "/")
    return pytest.param(*(parameters or (name,)), marks=pytest.mark.xdist_group(group))
