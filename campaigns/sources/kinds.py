"""Recognises the kind of a source by its content, and reads it."""

from collections.abc import Sequence
from typing import Final

from harrow.campaigns.language.problem import CampaignError, Problem
from harrow.campaigns.sources.cluster_import import Imported, import_cluster
from harrow.campaigns.sources.description import Description, Kind
from harrow.campaigns.sources.properties_file import read_properties

KINDS: Final = (Kind(name=".properties file of a broker, a producer or a consumer", read=read_properties),)
"""Every kind of source. The first that recognises a text reads it."""


def describe(file: str, text: str) -> Description:
    """Return what the text of a file describes.

    Raises:
        CampaignError: No kind of source recognises the text, or it has mistakes.

    """
    for kind in KINDS:
        description = kind.read(file, text)
        if description is not None:
            return description
    known = "; ".join(kind.name for kind in KINDS)
    raise CampaignError([Problem(file, 0, 0, f"nothing about a cluster in it. harrow reads: {known}")])


def import_texts(
    files: Sequence[tuple[str, str]], *, release: str | None = None, brokers: int | None = None
) -> Imported:
    """Return the cluster of some files, each with its name and its text (`import_cluster`).

    Raises:
        CampaignError: A file is of no known kind or has mistakes, or files do not fit together.

    """
    descriptions = [describe(file, text) for file, text in files]
    return import_cluster(descriptions, files=[file for file, _ in files], release=release, brokers=brokers)
