"""A campaign, or one of its variants, while it is being read: what it says, and the mistakes so far."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from harrow.campaigns.language import yaml_positions as nodes
from harrow.campaigns.language.catalogue_shapes import action_section
from harrow.campaigns.language.former_names import former_name_hint
from harrow.campaigns.language.part import Part
from harrow.campaigns.language.schema import body_section, file_section
from harrow.campaigns.language.shapes import Reading, SectionShape
from harrow.campaigns.language.spelling import printable, quoted, suggestion
from harrow.cluster_model.release.profiles import MUTANTS
from harrow.cluster_model.settings import PRODUCER, scopes_of

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

    What does not have the right shape is reported and left out of ``body``, so that the rest can be checked. A check
    that would only find the absence asks whether the part `knows` what it is about.
    """

    def __init__(self, tree: nodes.MapNode, variant: str | None, report: Report) -> None:
        self.variant = variant
        self.report = report
        reading = Reading(self._unknown_key)
        body = body_section().read(tree, "", tree.mark, reading)
        assert body is not None  # no key of a campaign is required
        self.body = body
        for mistake in reading.mistakes:
            report.add(*mistake, variant)

    def problem(self, part: Part, message: str, *, at_key: bool = False) -> None:
        """Report what is wrong with a part, or *at_key* with its key."""
        self.report.add(part.key_mark if at_key else part.mark, message, self.variant)

    def note(self, part: Part, message: str) -> None:
        """Note that a part changes nothing here."""
        self.report.notes[nodes.Mistake(part.key_mark, message)] = None

    def unknown(
        self, part: Part, what: str, word: str, names: Collection[str], *, at_key: bool = False
    ) -> None:
        """Report a name that does not exist."""
        message = f"unknown {what} {quoted(word)}{self.report.suggestion(word, names)}"
        self.problem(part, message, at_key=at_key)

    def is_duplicate(self, what: str, name: Any, part: Part, places: dict[Any, Part]) -> bool:
        """Report a name that another place has; *places* has the first of each."""
        if name not in places:
            places[name] = part
            return False
        self.problem(part, f"duplicate {what} {printable(str(name))}; the first is in {places[name].place()}")
        return True

    def _unknown_key(self, section: SectionShape, key: str) -> str:
        body = body_section()
        names = file_section().keys if section is body else section.keys
        message = f"unknown {section.noun} {quoted(key)}"
        if section is body and self.variant is not None and key in names:
            return f"`{key}` belongs to the campaign, not to a variant"
        if "do" in names and key in action_section().keys:
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
        section = body_section().keys[home].shape.resolved()
        if isinstance(section, SectionShape) and key in section.keys:
            return f"; it belongs under `{home}`"
    return None


def _mutant(key: str, section: SectionShape) -> str | None:
    """Return the behaviour of a mutant whose name stands in place of one."""
    mutant = MUTANTS.get(key.replace("_", "-")) if section.catalogue == "behaviours" else None
    if mutant is None:
        return None
    return f"; the mutant `{mutant.name}` is `{mutant.switch}: {str(mutant.value).lower()}`"
