"""A campaign that names no release turns out as it says on every release from 2.4 on, with either control plane."""

import pytest

from harrow.campaigns.language.library_index import library_names, resolve
from harrow.campaigns.language.loader import load_campaign
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.release_options import BrokerRelease
from harrow.campaigns.run.runner import run_plan
from harrow.checks.finding import INCONCLUSIVE
from harrow.cluster_model.release.profiles import NEWEST_RELEASE, RELEASES
from harrow.cluster_model.release.switch import DEFAULT_RELEASE, version_of
from tests.scenarios.library_plans import library_plans

OF_NEWEST = library_plans(BrokerRelease(NEWEST_RELEASE, RELEASES[NEWEST_RELEASE].metadata))
FREE = [
    name
    for name, plan in library_plans().items()
    if plan.kafka == DEFAULT_RELEASE and OF_NEWEST.get(name, plan).kafka == NEWEST_RELEASE
]


def as_of(name: str, brokers: BrokerRelease) -> Plan:
    campaign, _, variant = name.rstrip("]").partition("[")
    plans = load_campaign(resolve(campaign)[0], brokers=brokers).plans
    return next(plan for plan in plans if (plan.variant or "base") == variant)


def turns_out_as_it_says(plan: Plan, seed: int) -> None:
    result = run_plan(plan, seed)
    because = [line.message for line in result.missed] + list(result.verdict.reasons)
    where = f"Kafka {plan.kafka} with {plan.metadata}, seed {seed}: {because}"
    assert result.verdict.status != INCONCLUSIVE or plan.expect.verdict == INCONCLUSIVE, where
    assert result.expected, where


def test_a_third_of_the_campaigns_depend_on_no_release() -> None:
    assert len({name.partition("[")[0] for name in FREE}) >= len(library_names()) // 3


def test_what_names_no_release_suits_either_control_plane() -> None:
    with_zookeeper = library_plans(BrokerRelease("2.8", "zookeeper"))
    for name, plan in library_plans().items():
        if with_zookeeper[name].kafka == "2.8" != plan.kafka:
            assert name in FREE, f"{name} is about ZooKeeper: it has to name a release"


@pytest.mark.parametrize("name", FREE)
def test_it_turns_out_as_it_says_on_the_newest_release(name: str) -> None:
    turns_out_as_it_says(OF_NEWEST[name], 0)


@pytest.mark.soak(size=3, test=0, soak=3)
@pytest.mark.parametrize("name", FREE)
def test_it_turns_out_as_it_says_on_each_release(name: str, numbers: range) -> None:
    for release in RELEASES.values():
        for metadata in release.modes:
            if release.version >= version_of(DEFAULT_RELEASE):
                plan = as_of(name, BrokerRelease(release.name, metadata))
                for seed in numbers:
                    turns_out_as_it_says(plan, seed)
