"""A campaign, or one of its variants, while it is being read: model, tree and problems."""

from collections.abc import Collection
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from harrow.campaigns.language import yaml_positions as nodes
from harrow.campaigns.language.catalogue_sections import action_section
from harrow.campaigns.language.former_names import former_name_hint
from harrow.campaigns.language.readers.shape import mistake_of, validated
from harrow.campaigns.language.schema import body_section, file_section
from harrow.campaigns.language.section import Section, nearest_section
from harrow.campaigns.language.spelling import printable, quoted, suggestion
from harrow.cluster_model.mutants import MUTANTS
from harrow.cluster_model.settings import PRODUCER, scopes_of

_ROUNDS = 8
_SUGGESTIONS = 200


@dataclass(slots=True)
class Report:
    """The mistakes found so far, each with the variants in which it was found (None is the base)."""

    found: dict[nodes.Mistake, list[str | None]] = field(default_factory=dict)
    notes: dict[nodes.Mistake, None] = field(default_factory=dict)
    """What a campaign says in vain, and may."""
    _suggestions: dict[tuple[str, frozenset[str]], str] = field(default_factory=dict)

    def add(self, mark: nodes.Mark, message: str, variant: str | None) -> None:
        """Note a mistake; the same one in another variant is not another mistake."""
        variants = self.found.setdefault(nodes.Mistake(mark, message), [])
        if variant not in variants:
            variants.append(variant)

    def beside(self) -> "Report":
        """Return an empty one for a plan that may turn out not to be wanted; the same mistake reads the same in both."""
        return Report(_suggestions=self._suggestions)

    def take(self, other: "Report") -> None:
        """Note what another one has found."""
        for mistake, variants in other.found.items():
            for variant in variants:
                self.add(*mistake, variant)
        self.notes |= other.notes

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

    def __init__(self, tree: nodes.MapNode, variant: str | None, report: Report) -> None:
        self.variant = variant
        self.report = report
        self.tree: nodes.Node = tree
        self.body = self._validated()

    def problem(self, path: nodes.Path, message: str, *, at_key: bool = False) -> None:
        """Report what is wrong with what stands at *path*, or *at_key* with its key."""
        _, key_mark, node = nodes.lookup(self.tree, path)
        self.report.add(key_mark if at_key else node.mark, message, self.variant)

    def note(self, path: nodes.Path, message: str) -> None:
        """Note that what stands at *path* changes nothing here."""
        self.report.notes[nodes.Mistake(nodes.lookup(self.tree, path)[1], message)] = None

    def unknown(
        self, path: nodes.Path, what: str, word: str, names: Collection[str], *, at_key: bool = False
    ) -> None:
        """Report a name that does not exist."""
        message = f"unknown {what} {quoted(word)}{self.report.suggestion(word, names)}"
        self.problem(path, message, at_key=at_key)

    def line(self, path: nodes.Path) -> int:
        """Return the line in which something stands; 0 for an option."""
        return nodes.lookup(self.tree, path)[2].mark.line

    def is_from_option(self, path: nodes.Path) -> bool:
        """Return whether an option of the command line, not the file, says what stands at *path*."""
        return nodes.lookup(self.tree, path)[1].option is not None

    def place(self, path: nodes.Path) -> str:
        """Return where something stands, for a message about something else."""
        mark = nodes.lookup(self.tree, path)[1]
        return f"--set {printable(mark.option)}" if mark.option is not None else f"line {mark.line}"

    def is_duplicate(self, what: str, name: Any, path: nodes.Path, places: dict[Any, nodes.Path]) -> bool:
        """Report a name that another place has; *places* has the first of each."""
        if name not in places:
            places[name] = path
            return False
        self.problem(
            path, f"duplicate {what} {printable(str(name))}; the first is in {self.place(places[name])}"
        )
        return True

    def is_intact(self, *path: str | int) -> bool:
        """Return whether nothing had to be taken out at *path*, below it, or on the way to it."""
        node = self.tree
        for part in path:
            if isinstance(node, nodes.MapNode):
                if _may_have_lost(node, str(part)):
                    return False
                if part not in node.entries:
                    return True
                node = node.entries[str(part)].value
            elif isinstance(node, nodes.ListNode):
                if node.lost or not isinstance(part, int) or part >= len(node.items):
                    return not node.lost
                node = node.items[part]
        return _is_whole(node)

    def has_lost(self, path: nodes.Path) -> bool:
        """Return whether the mapping or list at *path* itself has lost something."""
        return not _has_all(nodes.lookup(self.tree, path)[2])

    def _validated(self) -> Any:
        body, errors = validated(body_section(), self.tree)
        for error in errors:
            self.report.add(*mistake_of(error, self.tree, self._unknown_key), self.variant)
        for _ in range(_ROUNDS):
            if body is not None:
                return body
            wrong = (nodes.lookup(self.tree, error["loc"])[0] for error in errors)
            self.tree = nodes.without(self.tree, [path for path in wrong if path], is_mistake=True)
            body, errors = validated(body_section(), self.tree)
        # What is left is not worth looking at; the problems are reported in any case.
        self.tree = nodes.MapNode({}, self.tree.mark, frozenset(file_section().keys()))
        return body_section()()

    def _unknown_key(self, location: nodes.Path) -> str:
        key = str(location[-1])
        body = body_section()
        section = nearest_section(body, location[:-1]) or body
        names = section.keys() if section is not body else file_section().keys()
        message = f"unknown {section.noun} {quoted(key)}"
        if section is body and self.variant is not None and key in names:
            return f"`{key}` belongs to the campaign, not to a variant"
        if "do" in names and action_section().has_key(key):
            return f"{message}; `{key}` stands under `do`"
        home = former_name_hint(key) or _home(key, at_top=section is body) or _mutant(key, section)
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
    for home in ("cluster", "workload") if at_top else ():
        section = body_section().section_of(home)
        if section is not None and section.has_key(key):
            return f"; it belongs under `{home}`"
    return None


def _mutant(key: str, section: type[Section]) -> str | None:
    """Return the behaviour of a mutant whose name stands in place of one."""
    mutant = MUTANTS.get(key.replace("_", "-")) if section.catalogue == "behaviours" else None
    if mutant is None:
        return None
    return f"; the mutant `{mutant.name}` is `{mutant.switch}: {str(mutant.value).lower()}`"


def _has_all(node: nodes.Node) -> bool:
    return not (isinstance(node, (nodes.ListNode, nodes.MapNode)) and node.lost)


def _is_whole(node: nodes.Node) -> bool:
    if not _has_all(node):
        return False
    if isinstance(node, nodes.MapNode):
        return all(_is_whole(entry.value) for entry in node.entries.values())
    return not isinstance(node, nodes.ListNode) or all(_is_whole(item) for item in node.items)


def _may_have_lost(node: nodes.MapNode, key: str) -> bool:
    """Return whether a key was taken out, or one that may be the same, spelled wrongly."""
    if len(node.lost) > _SUGGESTIONS:
        return True
    return key in node.lost or bool(get_close_matches(key, [word[:60] for word in node.lost], n=1))
