"""A campaign without a release has its expected outcome from 2.4 on, with both control planes."""

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

NEWEST_PLANS = library_plans(BrokerRelease(NEWEST_RELEASE, RELEASES[NEWEST_RELEASE].metadata))
WITHOUT_RELEASE = [
    name
    for name, plan in library_plans().items()
    if plan.kafka == DEFAULT_RELEASE and NEWEST_PLANS.get(name, plan).kafka == NEWEST_RELEASE
]


def plan_for(name: str, brokers: BrokerRelease) -> Plan:
    campaign, _, variant = name.rstrip("]").partition("[")
    plans = load_campaign(resolve(campaign)[0], brokers=brokers).plans
    return next(plan for plan in plans if (plan.variant or "base") == variant)


def check_expected_outcome(plan: Plan, seed: int) -> None:
    result = run_plan(plan, seed)
    because = [line.message for line in result.missed] + list(result.verdict.reasons)
    where = f"Kafka {plan.kafka} with {plan.metadata}, seed {seed}: {because}"
    assert result.verdict.status != INCONCLUSIVE or plan.expect.verdict == INCONCLUSIVE, where
    assert result.expected, where


def test_at_least_a_third_of_the_campaigns_name_no_release() -> None:
    assert len({name.partition("[")[0] for name in WITHOUT_RELEASE}) >= len(library_names()) // 3


def test_a_campaign_without_a_release_suits_both_control_planes() -> None:
    with_zookeeper = library_plans(BrokerRelease("2.8", "zookeeper"))
    for name, plan in library_plans().items():
        if with_zookeeper[name].kafka == "2.8" != plan.kafka:
            assert name in WITHOUT_RELEASE, f"{name} depends on ZooKeeper, so it must name a release"


@pytest.mark.parametrize("name", WITHOUT_RELEASE)
def test_a_campaign_has_its_expected_outcome_on_the_newest_release(name: str) -> None:
    check_expected_outcome(NEWEST_PLANS[name], 0)


@pytest.mark.soak(size=3, rounds_in_test=0, rounds_in_soak=3)
@pytest.mark.parametrize("name", WITHOUT_RELEASE)
def test_a_campaign_has_its_expected_outcome_on_each_release(name: str, numbers: range) -> None:
    for release in RELEASES.values():
        for metadata in release.modes:
            if release.version >= version_of(DEFAULT_RELEASE):
                plan = plan_for(name, BrokerRelease(release.name, metadata))
                for seed in numbers:
                    check_expected_outcome(plan, seed)
