"""Reads YAML files of other programs, such as resources of Kubernetes."""

from collections.abc import Collection, Iterator
from typing import Final

from harrow.campaigns.language import yaml_positions as nodes
from harrow.campaigns.language.literals import LiteralError, whole_number
from harrow.campaigns.language.problem import CampaignError, Problem
from harrow.campaigns.sources.description import Fate, ImportedLine, SourceLine

_NOTHING: Final = nodes.MapNode({}, nodes.Mark(1, 1))


class YamlSource:
    """A YAML file: its documents, and the lines that have been decided already."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.lines: list[ImportedLine] = []
        try:
            roots = nodes.compose_others(text)
        except nodes.YamlError as error:
            raise CampaignError(
                Problem(file, mark.line, mark.column, message) for mark, message, *_ in error.mistakes
            ) from None
        self.documents = tuple(root for root in roots if isinstance(root, nodes.MapNode))

    def entry(self, name: str, found: nodes.MapEntry) -> SourceLine:
        """Return the line of a key."""
        return SourceLine(self.file, found.key_mark.line, name, shown(found.value))

    def decide(self, name: str, found: nodes.MapEntry, fate: Fate, note: str = "") -> None:
        """Note what becomes of the line of a key, and of everything below the key."""
        self.decide_entry(self.entry(name, found), fate, note)

    def decide_entry(self, entry: SourceLine, fate: Fate, note: str = "") -> None:
        """Note what becomes of a line."""
        self.lines.append(ImportedLine(entry=entry, fate=fate, note=note))

    def leave(self, section: nodes.MapNode, prefix: str, handled: Collection[str]) -> None:
        """Note that the other keys of a section do not affect the model."""
        for key, found in section.entries.items():
            if key not in handled:
                self.decide(f"{prefix}{key}", found, Fate.UNAFFECTED)

    def number(self, found: nodes.MapEntry, minimum: int, maximum: int) -> int:
        """Return a whole number.

        Raises:
            CampaignError: The value is another one.

        """
        try:
            return whole_number(minimum, maximum)(shown(found.value))
        except LiteralError as error:
            mark = found.value.mark
            raise CampaignError([Problem(self.file, mark.line, mark.column, str(error))]) from None


def given(parent: nodes.MapNode, key: str) -> nodes.MapEntry | None:
    """Return a key of a mapping; None if it is missing or null."""
    found = parent.entries.get(key)
    is_null = found is not None and isinstance(found.value, nodes.Scalar) and found.value.is_null()
    return None if is_null else found


def section(parent: nodes.Node, *path: str) -> nodes.MapNode:
    """Return the mapping at a path; an empty one if there is none."""
    for key in path:
        entry = parent.entries.get(key) if isinstance(parent, nodes.MapNode) else None
        if entry is None:
            return _NOTHING
        parent = entry.value
    return parent if isinstance(parent, nodes.MapNode) else _NOTHING


def maps(entry: nodes.MapEntry | None) -> list[nodes.MapNode]:
    """Return the mappings in a list; none if there is no list."""
    items = entry.value.items if entry is not None and isinstance(entry.value, nodes.ListNode) else ()
    return [item for item in items if isinstance(item, nodes.MapNode)]


def words(node: nodes.Node) -> list[str]:
    """Return the single values of a list, or the only one."""
    return [item.text for item in scalars(node)]


def scalars(node: nodes.Node) -> Iterator[nodes.Scalar]:
    """Yield the single values of a list, or the only one."""
    items = node.items if isinstance(node, nodes.ListNode) else (node,)
    yield from (item for item in items if isinstance(item, nodes.Scalar) and not item.is_null())


def shown(node: nodes.Node) -> str:
    """Return a single value, or brackets for a list or a mapping."""
    if isinstance(node, nodes.Scalar):
        return "" if node.is_null() else node.text
    return "{...}" if isinstance(node, nodes.MapNode) else "[...]"
