"""A campaign, or one of its variants, while it is being read: model, tree and problems."""

from collections.abc import Collection
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from campaigns.cluster_sections import ClusterSection
from campaigns.schema import Body, CampaignFile, WorkloadSection, action_section
from campaigns.section import WRONG, Section, nearest_section, to_data
from campaigns.spelling import printable, quoted, suggestion
from campaigns.yaml_positions import ListNode, MapNode, Mark, Mistake, Node, Path, lookup, without
from cluster_model.mutants import MUTANTS
from cluster_model.settings import PRODUCER, scopes_of

_ROUNDS = 8
_SUGGESTIONS = 200


@dataclass(slots=True)
class Report:
    """The mistakes found so far, each with the variants in which it was found (None is the base)."""

    found: dict[Mistake, list[str | None]] = field(default_factory=dict)
    _suggestions: dict[tuple[str, frozenset[str]], str] = field(default_factory=dict)

    def add(self, mark: Mark, message: str, variant: str | None) -> None:
        """Note a mistake; the same one in another variant is not another mistake."""
        variants = self.found.setdefault(Mistake(mark, message), [])
        if variant not in variants:
            variants.append(variant)

    def suggestion(self, word: str, names: Collection[str]) -> str:
        """Return how a message about an unknown name ends; nothing where there are very many of them."""
        if len(names) > _SUGGESTIONS:
            return ""
        # Remembered, so that the same mistake reads the same in each variant.
        key = (word, frozenset(names))
        if key not in self._suggestions:
            few = len(self._suggestions) < _SUGGESTIONS
            self._suggestions[key] = suggestion(word, names) if few else ""
        return self._suggestions[key]


class Draft:
    """A plan in the making.

    Where the file does not have the right shape, the mistake is reported and what is
    wrong is taken out, so that the rest can be checked all the same. `is_intact` says
    whether something was taken out, for checks that would only find its absence.
    """

    def __init__(self, tree: MapNode, variant: str | None, report: Report) -> None:
        self.variant = variant
        self.report = report
        self.tree: Node = tree
        self.body = self._validated()

    def problem(self, path: Path, message: str, *, at_key: bool = False) -> None:
        """Report what is wrong with what stands at *path*, or *at_key* with its key."""
        _, key_mark, node = lookup(self.tree, path)
        self.report.add(key_mark if at_key else node.mark, message, self.variant)

    def unknown(
        self, path: Path, what: str, word: str, names: Collection[str], *, at_key: bool = False
    ) -> None:
        """Report a name that does not exist."""
        message = f"unknown {what} {quoted(word)}{self.report.suggestion(word, names)}"
        self.problem(path, message, at_key=at_key)

    def line(self, path: Path) -> int:
        """Return the line in which something stands; 0 for an option."""
        return lookup(self.tree, path)[2].mark.line

    def is_from_option(self, path: Path) -> bool:
        """Return whether an option of the command line, not the file, says what stands at *path*."""
        return lookup(self.tree, path)[1].option is not None

    def place(self, path: Path) -> str:
        """Return where something stands, for a message about something else."""
        mark = lookup(self.tree, path)[1]
        return f"--set {printable(mark.option)}" if mark.option is not None else f"line {mark.line}"

    def is_intact(self, *path: str | int) -> bool:
        """Return whether nothing had to be taken out at *path*, below it, or on the way to it."""
        node = self.tree
        for part in path:
            if isinstance(node, MapNode):
                if _may_have_lost(node, str(part)):
                    return False
                if part not in node.entries:
                    return True
                node = node.entries[str(part)].value
            elif isinstance(node, ListNode):
                if node.lost or not isinstance(part, int) or part >= len(node.items):
                    return not node.lost
                node = node.items[part]
        return _is_whole(node)

    def has_lost(self, path: Path) -> bool:
        """Return whether the mapping or list at *path* itself has lost something."""
        node = lookup(self.tree, path)[2]
        return not _has_all(node)

    def _validated(self) -> Body:
        body, errors = _validate(self.tree)
        for error in errors:
            self._report_error(error)
        for _ in range(_ROUNDS):
            if body is not None:
                return body
            self.tree = without(self.tree, [path for path in map(self._wrong_part, errors) if path])
            body, errors = _validate(self.tree)
        # What is left is not worth looking at; the problems are reported in any case.
        self.tree = MapNode({}, self.tree.mark, frozenset(CampaignFile.keys()))
        return Body()

    def _wrong_part(self, error: dict[str, Any]) -> Path:
        """Return the path of what has to go for an error to be gone."""
        return lookup(self.tree, error["loc"])[0]

    def _report_error(self, error: dict[str, Any]) -> None:
        location: Path = error["loc"]
        found, key_mark, node = lookup(self.tree, location)
        kind = error["type"]
        owner = location[:-1] if kind == "missing" else location
        key = next((part for part in reversed(owner) if isinstance(part, str)), "")
        prefix = f"{printable(key)}: " if key else ""
        if kind == "extra_forbidden":
            # A name that stands alone, without a mapping, has no key.
            mark = key_mark if found[-1:] == location[-1:] else node.mark
            message = self._unknown_key(location)
        elif kind == "missing":
            mark, message = node.mark, f"{prefix}`{location[-1]}` is missing"
        elif kind == "list_type":
            mark, message = node.mark, f"{prefix}a list is wanted here"
        elif kind == "dict_type":
            mark, message = node.mark, f"{prefix}a mapping (`key: value`) is wanted here"
        else:
            at_key = location[-1:] == ("[key]",)
            text = error["msg"] if kind == WRONG else f"this is not valid here ({error['msg']})"
            mark, message = (key_mark, text) if at_key else (node.mark, prefix + text)
        self.report.add(mark, message, self.variant)

    def _unknown_key(self, location: Path) -> str:
        key = str(location[-1])
        section = nearest_section(Body, location[:-1]) or Body
        names = section.keys() if section is not Body else CampaignFile.keys()
        message = f"unknown {section.noun} {quoted(key)}"
        if section is Body and self.variant is not None and key in names:
            return f"`{key}` belongs to the campaign, not to a variant"
        if "do" in names and action_section().has_key(key):
            return f"{message}; `{key}` stands under `do`"
        home = _home(key, at_top=section is Body) or _mutant(key, section)
        hint = home or self.report.suggestion(key, names)
        if not hint and section.catalogue is not None:
            hint = f"; `harrow list {section.catalogue}` names all"
        return message + hint


def _home(key: str, *, at_top: bool) -> str | None:
    """Return where a key belongs that is known elsewhere."""
    scopes = scopes_of(key)
    if scopes:
        if at_top:
            return "; a setting stands under `settings`"
        owner = "client" if len(scopes) > 1 and PRODUCER in scopes else scopes[0]
        return f"; it is a {owner}'s setting"
    if at_top and ClusterSection.has_key(key):
        return "; it belongs under `cluster`"
    if at_top and WorkloadSection.has_key(key):
        return "; it belongs under `workload`"
    return None


def _mutant(key: str, section: type[Section]) -> str | None:
    """Return which behaviour a mutant is that somebody named as if it were one."""
    mutant = MUTANTS.get(key.replace("_", "-")) if section.catalogue == "behaviours" else None
    if mutant is None:
        return None
    return f"; the mutant `{mutant.name}` is `{mutant.switch}: {str(mutant.value).lower()}`"


def _validate(tree: Node) -> tuple[Body | None, list[dict[str, Any]]]:
    try:
        return Body.model_validate(to_data(tree)), []
    except ValidationError as error:
        return None, [dict(item) for item in error.errors(include_url=False, include_input=False)]


def _has_all(node: Node) -> bool:
    return not (isinstance(node, (ListNode, MapNode)) and node.lost)


def _is_whole(node: Node) -> bool:
    if not _has_all(node):
        return False
    if isinstance(node, MapNode):
        return all(_is_whole(entry.value) for entry in node.entries.values())
    return not isinstance(node, ListNode) or all(_is_whole(item) for item in node.items)


def _may_have_lost(node: MapNode, key: str) -> bool:
    """Return whether a key was taken out, or one that may be the same, spelled wrongly."""
    if len(node.lost) > _SUGGESTIONS:
        return True
    return key in node.lost or bool(get_close_matches(key, [word[:60] for word in node.lost], n=1))
