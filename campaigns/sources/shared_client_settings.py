"""Decides which settings of clients a cluster file can have, where they hold for all clients."""

from collections.abc import Mapping, Sequence
from typing import Final

from harrow.campaigns.sources.description import ClientSettings
from harrow.campaigns.sources.setting_lines import SettingLines
from harrow.cluster_model.release.profiles import RELEASES
from harrow.cluster_model.settings import CONSUMER, PRODUCER, Value, conflicts, qualified_names

_SINGLE_CLIENT_SETTINGS: Final = ("transactional.id", "group.id", "group.instance.id", "client.rack")
"""Settings that tell one client from another."""


def shared_by_clients(
    lines: SettingLines, release: str, clients: Sequence[tuple[ClientSettings, Mapping[str, Value]]]
) -> dict[str, Value]:
    """Return what all clients of a kind agree on, because a cluster file has one value.

    The fates of the others are corrected in *lines*.
    """
    shared: dict[str, Value] = {}
    for scope in (PRODUCER, CONSUMER):
        own = [settings for client, settings in clients if client.scope == scope]
        entries = {entry for client, _ in clients if client.scope == scope for entry in client.entries}
        reasons = {name: _only_for_one_client(name) for settings in own for name in settings}
        for name, reason in reasons.items():
            if not reason and any(settings.get(name) != own[0].get(name) for settings in own):
                reasons[name] = f"the {scope}s differ: write it in a campaign, for each {scope}"
        if scope == PRODUCER and own:
            left = {name: own[0][name] for name, reason in reasons.items() if not reason}
            for name in _refused(release, left) - _refused(release, own[0]):
                reasons[name] = (
                    "it needs a setting that is not taken over: write both in a campaign, for the producer"
                )
        for reason in filter(None, dict.fromkeys(reasons.values())):
            lines.not_taken(
                {entry for entry in entries if reasons.get(entry.name) == reason}.__contains__, reason
            )
        shared |= {_name_in(scope, name): own[0][name] for name, reason in reasons.items() if not reason}
    return shared


def _refused(release: str, producer: Mapping[str, Value]) -> set[str]:
    """Return the settings that a producer refuses because of others, or of their defaults."""
    behaviours = RELEASES[release].behaviours
    return {conflict.setting for conflict in conflicts(release, producer, behaviours)}


def _only_for_one_client(name: str) -> str:
    """Return why a cluster file cannot have a client's setting; empty if it can."""
    if name in _SINGLE_CLIENT_SETTINGS:
        return "it would hold for every client: write it in a campaign, for one client"
    return ""


def _name_in(scope: str, name: str) -> str:
    """Return the name under which a cluster file has a setting of producers or of consumers."""
    qualified = f"{scope}.{name}"
    return qualified if qualified in qualified_names() else name
