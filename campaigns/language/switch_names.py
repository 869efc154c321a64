"""Reads the former names of switches as their present names."""

from typing import Final

from harrow.campaigns.language import yaml_positions as nodes
from harrow.campaigns.language.spelling import quoted
from harrow.cluster_model.release.former_names import FORMER_NAMES
from harrow.cluster_model.release.profiles import SWITCHES

BEHAVIOURS: Final = "behaviours"
"""The key of a campaign that sets single switches."""


def current_switch(name: str) -> str:
    """Return the present name of a switch; an extension may have a switch with a former name."""
    return name if name in SWITCHES else FORMER_NAMES.get(name, name)


def with_current_switches(root: nodes.MapNode) -> tuple[nodes.MapNode, list[nodes.Mistake]]:
    """Return a campaign, or a part of one, with the present names of the switches that it sets.

    Both names of a switch in one place are a mistake.
    """
    section = root.entries.get(BEHAVIOURS)
    if section is None or not isinstance(section.value, nodes.MapNode):
        return root, []
    entries: dict[str, nodes.MapEntry] = {}
    mistakes: list[nodes.Mistake] = []
    for name, entry in section.value.entries.items():
        current = current_switch(name)
        if current in entries:
            former = next(other for other in section.value.entries if current_switch(other) == current)
            message = f"{quoted(former)} and {quoted(name)} are names of the same switch"
            mistakes.append(nodes.Mistake(entry.key_mark, message))
        entries[current] = entry
    renamed = nodes.MapEntry(section.key_mark, nodes.MapNode(entries, section.value.mark))
    return nodes.MapNode({**root.entries, BEHAVIOURS: renamed}, root.mark), mistakes
