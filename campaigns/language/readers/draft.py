"""Holds a campaign or a variant while it is being read: its parts, and the mistakes in it."""

from collections.abc import Collection
from dataclasses import field
from typing import Any

from harrow.campaigns.language import yaml_positions as nodes
from harrow.campaigns.language.catalogue_shapes import action_section
from harrow.campaigns.language.former_names import former_name_hint
from harrow.campaigns.language.kafka_settings import prefix_hint, unmodelled_hint
from harrow.campaigns.language.literals import duration_text
from harrow.campaigns.language.part import Part
from harrow.campaigns.language.schema import body_section, file_section
from harrow.campaigns.language.shapes import Reading, SectionShape
from harrow.campaigns.language.spelling import printable, quoted, suggestion
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.release.profiles import MUTANTS
from harrow.cluster_model.settings import PRODUCER, qualified_names, scopes_of

_SUGGESTIONS = 200


@dataclass(slots=True)
class Report:
    """The mistakes in a campaign, each with the variants that have it (None is the base)."""

    mistakes: dict[nodes.Mistake, list[str | None]] = field(default_factory=dict)
    notes: dict[nodes.Mistake, None] = field(default_factory=dict)
    """Keys that have no effect, but are allowed."""
    _suggestions: dict[tuple[str, frozenset[str]], str] = field(default_factory=dict)

    def add(self, mark: nodes.Mark, message: str, variant: str | None) -> None:
        """Add a mistake. The same mistake in several variants is listed once."""
        variants = self.mistakes.setdefault(nodes.Mistake(mark, message), [])
        if variant not in variants:
            variants.append(variant)

    def new_attempt(self) -> "Report":
        """Return an empty report, with the same cache, for a plan that may be left out."""
        return Report(_suggestions=self._suggestions)

    def add_all(self, other: "Report") -> None:
        """Add the mistakes and notes of another report."""
        for mistake, variants in other.mistakes.items():
            for variant in variants:
                self.add(*mistake, variant)
        self.notes |= other.notes

    def suggestion(self, word: str, names: Collection[str]) -> str:
        """Return the hint for an unknown name; empty if there are very many names."""
        if len(names) > _SUGGESTIONS:
            return ""
        # Suggestions are cached, so that the same mistake has the same message in each variant.
        key = (word, frozenset(names))
        if key not in self._suggestions:
            few = len(self._suggestions) < _SUGGESTIONS
            self._suggestions[key] = suggestion(word, names) if few else ""
        return self._suggestions[key]


class Draft:
    """A plan while it is being read.

    Parts with the wrong shape are reported and left out of ``body``, so that the rest can be
    checked. Before a check reports that something is missing, it asks whether the part is sound
    (`Part.is_sound`).
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
        """Report a mistake at the position of a part or, with *at_key*, of its key."""
        self.report.add(part.key_mark if at_key else part.mark, message, self.variant)

    def note(self, part: Part, message: str) -> None:
        """Note that a part has no effect, or another one than a reader may expect."""
        self.report.notes[nodes.Mistake(part.key_mark, message)] = None

    def check_stop(self, noun: str, section: Part, start_us: int, stop_us: int | None) -> None:
        """Report a client that stops before it starts."""
        if stop_us is not None and stop_us <= start_us:
            times = f"at {duration_text(stop_us)}, which is not after its start at {duration_text(start_us)}"
            self.problem(section / "stop", f"the {noun} stops {times}")

    def unknown(
        self,
        part: Part,
        noun: str,
        word: str,
        names: Collection[str],
        *,
        at_key: bool = False,
        defined: str = "",
    ) -> None:
        """Report a name that does not exist. *defined* is where existing names are defined."""
        message = f"unknown {noun} {quoted(word)}{self.report.suggestion(word, names)}{defined}"
        self.problem(part, message, at_key=at_key)

    def is_duplicate(self, noun: str, name: Any, part: Part, places: dict[Any, Part]) -> bool:
        """Return whether a name is already defined, and report that.

        *places* has the first definition of each name.
        """
        if name not in places:
            places[name] = part
            return False
        self.problem(
            part, f"duplicate {noun} {printable(str(name))}; it is already defined at {places[name].place()}"
        )
        return True

    def _unknown_key(self, section: SectionShape, key: str) -> str:
        body = body_section()
        names = file_section().keys if section is body else section.keys
        message = f"unknown {section.noun} {quoted(key)}"
        if section is body and self.variant is not None and key in names:
            return f"`{key}` belongs to the campaign, not to a variant"
        if "do" in names and key in action_section().keys:
            return f"{message}; `{key}` belongs under `do`"
        hint = former_name_hint(key) or _place_hint(key, at_top=section is body) or _mutant_hint(key, section)
        if hint is None and section.catalogue == "settings":
            hint = prefix_hint(key) or unmodelled_hint(key)
        hint = hint or self.report.suggestion(key, names)
        if not hint and section.catalogue is not None:
            hint = f"; `harrow list {section.catalogue}` shows all"
        return message + hint


def _place_hint(key: str, *, at_top: bool) -> str | None:
    """Return a hint about the place where an unknown key belongs, or None."""
    scopes = scopes_of(key)
    if scopes or key in qualified_names():
        if at_top:
            return "; a setting belongs under `settings`"
        if not scopes:
            return f"; here write `{qualified_names()[key][1]}`"
        owner = "client" if len(scopes) > 1 and PRODUCER in scopes else scopes[0]
        return f"; it is a {owner}'s setting"
    for name in ("cluster", "workload") if at_top else ():
        section = body_section().keys[name].shape.resolved()
        if isinstance(section, SectionShape) and key in section.keys:
            return f"; it belongs under `{name}`"
    return None


def _mutant_hint(key: str, section: SectionShape) -> str | None:
    """Return a hint for a mutant's name that was written instead of its behaviour, or None."""
    mutant = MUTANTS.get(key.replace("_", "-")) if section.catalogue == "behaviours" else None
    if mutant is None:
        return None
    return f"; the mutant `{mutant.name}` is `{mutant.switch}: {str(mutant.value).lower()}`"
