"""Hints for settings that a file cannot name: Kafka renamed them, or a campaign has its own key for them."""

from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from typing import Any

from harrow.campaigns.language.plan import Plan
from harrow.cluster_model.fields import fields_of
from harrow.cluster_model.registry import derived
from harrow.cluster_model.settings import former_names


@derived
def campaign_keys() -> Mapping[str, str]:
    """Return the keys of a campaign that stand for settings of Kafka, by the names of the settings."""
    return dict(_instead_of(Plan, {Plan}))


def _instead_of(declared: type[Any], seen: set[type[Any]]) -> Iterator[tuple[str, str]]:
    for item in fields_of(declared):
        yield from ((setting, item.key) for setting in item.options.instead_of)
        if is_dataclass(item.kind) and item.kind not in seen:
            seen.add(item.kind)
            yield from _instead_of(item.kind, seen)


def former_name_hint(name: str) -> str:
    """Return how the message about an unknown name ends; nothing for a name that was never a setting."""
    folded = name.lower()
    if folded in former_names():
        return f"; today it is `{former_names()[folded]}`"
    if folded in campaign_keys():
        return f"; a campaign says `{campaign_keys()[folded]}`"
    return ""
