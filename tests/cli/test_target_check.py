"""`harrow target check` without arguments covers every library campaign that suits its options."""

import io

import pytest
from rich.console import Console

from harrow.campaigns.language.library_index import library_names, resolve
from harrow.campaigns.language.loader import load_campaign
from harrow.campaigns.language.problem import CampaignError
from harrow.campaigns.language.release_options import BrokerRelease
from harrow.cli.commands.target import _library, _show_summary
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.release.switch import version_of
from tests.campaigns.record.run_results import plan


def test_without_arguments_target_check_covers_the_whole_library() -> None:
    assert len(_library(None)) >= len(library_names())


def test_campaigns_that_an_option_does_not_suit_are_left_out() -> None:
    """Kafka 2.4 lacks the KRaft settings of some campaigns."""
    names = {selection.campaign.name for selection in _library(["kafka=2.4"])}
    assert "ack-lost" in names
    assert "metadata-snapshot" not in names


def test_an_option_that_suits_none_is_a_mistake() -> None:
    with pytest.raises(CampaignError, match="9"):
        _library(["kafka=9.9"])


def test_the_summary_has_the_runnable_campaigns_and_the_main_reasons() -> None:
    stream = io.StringIO()
    reasons = [f"reason {number}" for number in range(12)]
    plans = [
        (plan(campaign="crash", variant=None), ()),
        (plan(campaign="crash", variant="leader"), ()),
        *((plan(campaign="other"), (reason, "the same")) for reason in reasons),
    ]
    _show_summary(Console(file=stream, width=200), plans)
    lines = [line.split() for line in stream.getvalue().splitlines()]
    assert lines[1] == ["crash", "base,", "leader"]
    assert lines[4] == ["12", "the", "same"]
    assert lines[-1][:4] == ["and", "5", "more", "reasons;"]
    assert len(lines) == 13


OF_ANY_CLUSTER = [name for name in library_names() if name.startswith("any-")]


def test_at_least_twenty_plans_of_the_library_are_for_a_cluster_of_any_release() -> None:
    plans = [each for name in OF_ANY_CLUSTER for each in load_campaign(resolve(name)[0]).plans]
    assert len(plans) >= 20


@pytest.mark.parametrize("name", OF_ANY_CLUSTER)
def test_campaigns_for_any_cluster_load_for_every_release_from_2_4_on(name: str) -> None:
    (path,) = resolve(name)
    for release in RELEASES.values():
        for metadata in release.modes:
            if release.version >= version_of("2.4"):
                plans = load_campaign(path, brokers=BrokerRelease(release.name, metadata)).plans
                assert {(each.kafka, each.metadata) for each in plans} == {(release.name, metadata)}
