"""Gives hints about names that changed, and about settings that other keys replace."""

from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from typing import Any

from harrow.campaigns.language.plan import Plan
from harrow.cluster_model.fields import fields_of
from harrow.cluster_model.registry import derived
from harrow.cluster_model.release.former_names import FORMER_NAMES
from harrow.cluster_model.settings import former_names


@derived
def campaign_keys() -> Mapping[str, str]:
    """Return the campaign keys that replace settings of Kafka, by the names of the settings."""
    return dict(_instead_of(Plan, {Plan}))


def _instead_of(declared: type[Any], visited: set[type[Any]]) -> Iterator[tuple[str, str]]:
    for item in fields_of(declared):
        yield from ((setting, item.key) for setting in item.options.instead_of)
        if is_dataclass(item.kind) and item.kind not in visited:
            visited.add(item.kind)
            yield from _instead_of(item.kind, visited)


def former_name_hint(name: str) -> str:
    """Return a hint to append to the message about an unknown name, or an empty string."""
    folded = name.lower()
    if folded in former_names():
        return f"; it is called `{former_names()[folded]}` now"
    if folded in FORMER_NAMES:
        return f"; it is called `{FORMER_NAMES[folded]}` now"
    if folded in campaign_keys():
        return f"; in a campaign it is `{campaign_keys()[folded]}`"
    return ""
