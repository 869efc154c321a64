"""Reads the ``.properties`` files of brokers, controllers, producers and consumers."""

from typing import Final

from harrow.campaigns.language.cluster_file import has_cluster_keys
from harrow.campaigns.language.kafka_settings import releases_with
from harrow.campaigns.sources.description import ClientSettings, Description, Server, SourceLine
from harrow.campaigns.sources.java_properties import properties_of
from harrow.cluster_model.settings import BROKER, CONSUMER, PRODUCER

_SCOPES: Final = (BROKER, PRODUCER, CONSUMER)


def read_properties(file: str, text: str) -> Description | None:
    """Return the server or the client that most settings of a file belong to.

    A cluster file of harrow is none: Java would take its ``setting: value`` for properties.

    Raises:
        CampaignError: Java refuses the file.

    """
    if has_cluster_keys(text):
        return None
    entries = tuple(SourceLine(file, *prop) for prop in properties_of(text, file))
    names = {entry.name for entry in entries}
    known = {scope: sum(bool(releases_with(name, (scope,))) for name in names) for scope in _SCOPES}
    scope = max(known, key=lambda each: known[each])
    if not known[scope]:
        return None
    if scope == BROKER:
        return Description(servers=(Server(entries=entries, is_template=True),))
    return Description(clients=(ClientSettings(scope=scope, entries=entries),))
