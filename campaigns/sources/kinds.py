"""Recognises the kind of a source by its content, and reads it."""

from collections.abc import Sequence
from typing import Final

from harrow.campaigns.sources.description import Description, Kind
from harrow.campaigns.sources.docker_compose import read_compose
from harrow.campaigns.sources.printed_configs import read_printed_configs
from harrow.campaigns.sources.printed_topics import read_printed_topics
from harrow.campaigns.sources.properties_file import read_properties
from harrow.campaigns.sources.strimzi import read_strimzi

KINDS: Final = (
    Kind(name="resources of Strimzi", read=read_strimzi),
    Kind(name="docker-compose files", read=read_compose),
    Kind(name="the output of kafka-topics --describe", read=read_printed_topics),
    Kind(name="the output of kafka-configs --describe", read=read_printed_configs),
    Kind(name=".properties files of brokers, producers and consumers", read=read_properties),
)
"""Every kind of source. The first that recognises a text reads it."""


def description_of(file: str, text: str, kinds: Sequence[Kind] = KINDS) -> Description | None:
    """Return what the text of a file describes; None if it is of no known kind.

    Raises:
        CampaignError: The text has mistakes.

    """
    return next((about for kind in kinds if (about := kind.read(file, text)) is not None), None)
