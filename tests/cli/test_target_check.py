"""What `harrow target check` looks through where no campaign is named: as much of the library as the options suit."""

import pytest

from harrow.campaigns.language.library_index import library_names
from harrow.campaigns.language.problem import CampaignError
from harrow.cli.commands.target import _library


def test_without_options_it_is_the_whole_library() -> None:
    assert len(_library(None)) >= len(library_names())


def test_campaigns_that_an_option_does_not_suit_are_left_out() -> None:
    """Kafka 2.4 has no settings of KRaft, which some have."""
    names = {selection.campaign.name for selection in _library(["kafka=2.4"])}
    assert "ack-lost" in names
    assert "metadata-snapshot" not in names


def test_an_option_that_suits_none_is_a_mistake() -> None:
    with pytest.raises(CampaignError, match="9"):
        _library(["kafka=9.9"])
