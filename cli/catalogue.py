"""What harrow knows by name: faults, rules, settings, releases, behaviours, mutants, probes, campaigns.

`harrow list` and `harrow explain` show it. Each kind is read from the room that owns it,
and only when it is asked for.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final


class Kind(StrEnum):
    """The catalogues."""

    FAULTS = "faults"
    RULES = "rules"
    CAMPAIGNS = "campaigns"
    PROBES = "probes"
    RELEASES = "releases"
    BEHAVIOURS = "behaviours"
    MUTANTS = "mutants"
    SETTINGS = "settings"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of an explanation: terms, each with what it means."""

    heading: str
    items: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A name and what it stands for. ``columns`` are what a list shows between the two."""

    kind: str
    name: str
    summary: str
    about: str = ""
    columns: tuple[tuple[str, str], ...] = ()
    parts: tuple[Part, ...] = ()

    def as_mapping(self) -> dict[str, Any]:
        """Return the entry as JSON has it."""
        line: dict[str, Any] = {
            "kind": self.kind,
            "name": self.name,
            **dict(self.columns),
            "doc": self.summary,
        }
        if self.about:
            line["about"] = self.about
        return line | {part.heading: dict(part.items) for part in self.parts}


def entries(kind: Kind) -> list[Entry]:
    """Return a whole catalogue."""
    return list(_CATALOGUES[kind]())


def explain(name: str) -> list[Entry]:
    """Return everything that is called *name*; upper and lower case do not matter."""
    from campaigns.library_index import library_names
    from checks.catalogue import RULE_OF_INVARIANT

    wanted = name.lower()
    wanted = RULE_OF_INVARIANT.get(wanted, wanted)
    found = [entry for kind in _IN_MEMORY for entry in entries(kind) if entry.name.lower() == wanted]
    if wanted in map(str.lower, library_names()):
        from cli.campaign_entries import campaign_entries

        found += campaign_entries(only=wanted)
    return found


def all_names() -> list[str]:
    """Return every name that can be explained."""
    from campaigns.library_index import library_names
    from cluster_model.invariants import INVARIANTS

    names = [entry.name for kind in _IN_MEMORY for entry in entries(kind)]
    return list(dict.fromkeys((*names, *INVARIANTS, *library_names())))


def _faults() -> Iterable[Entry]:
    from cli.fault_syntax import fault_entries

    return fault_entries()


def _rules() -> Iterable[Entry]:
    from checks.catalogue import RULES

    for rule in RULES.values():
        summary, about = split_doc(rule.doc)
        parts = (
            _in_a_campaign(("expect", f"{{rules: {{{rule.name}: violated}}}}"), ("demand", f"[{rule.name}]")),
        )
        yield Entry(kind="rule", name=rule.name, summary=summary, about=about, parts=parts)


def _probes() -> Iterable[Entry]:
    from campaigns.probes import PROBES

    for name, doc in PROBES.items():
        summary, about = split_doc(doc)
        parts = (_in_a_campaign(("expect", f"{{probes: [{name}]}}")),)
        yield Entry(kind="probe", name=name, summary=summary, about=about, parts=parts)


def _campaigns() -> Iterable[Entry]:
    from cli.campaign_entries import campaign_entries

    return campaign_entries()


def _releases() -> Iterable[Entry]:
    from dataclasses import fields

    from campaigns.units import value_text
    from cluster_model.release import DEFAULT_RELEASE, RELEASES, Behaviours

    for release in RELEASES.values():
        values = tuple(
            (item.name, value_text(getattr(release.behaviours, item.name))) for item in fields(Behaviours)
        )
        default = " The default." if release.name == DEFAULT_RELEASE else ""
        yield Entry(
            kind="release",
            name=release.name,
            summary=release.doc + default,
            parts=(
                _in_a_campaign(("kafka", f'"{release.name}"')),
                _try(f"harrow run unclean-election --set kafka={release.name}"),
                Part(heading="behaviours", items=values),
            ),
        )


def _behaviours() -> Iterable[Entry]:
    from campaigns.units import value_text
    from cluster_model.mutants import MUTANTS
    from cluster_model.release import RELEASES, switch_docs

    for name, told in switch_docs().items():
        by_release = [
            (release.name, value_text(getattr(release.behaviours, name))) for release in RELEASES.values()
        ]
        mutants = tuple(
            (mutant.name, value_text(mutant.value)) for mutant in MUTANTS.values() if mutant.switch == name
        )
        summary, about = split_doc(told["doc"])
        facts = (("choices", " | ".join(map(value_text, told["choices"]))), ("source", told["source"]))
        parts = [
            _in_a_campaign(("behaviours", f"{{{name}: {value_text(told['choices'][0])}}}")),
            _try(f"harrow run swarm --set behaviours.{name}={value_text(told['choices'][0])}"),
            Part(heading="facts", items=facts),
            Part(heading="releases", items=tuple(by_release)),
        ]
        if mutants:
            parts.append(Part(heading="mutants", items=mutants))
        yield Entry(
            kind="behaviour",
            name=name,
            summary=summary,
            about=about,
            columns=(("values", changes_text(by_release)),),
            parts=tuple(parts),
        )


def _mutants() -> Iterable[Entry]:
    from campaigns.units import value_text
    from cluster_model.mutants import MUTANTS

    for mutant in MUTANTS.values():
        switch = f"{{{mutant.switch}: {value_text(mutant.value)}}}"
        noticed = ", ".join(mutant.noticed_by) or "what a campaign expects; no rule by itself"
        yield Entry(
            kind="mutant",
            name=mutant.name,
            summary=mutant.doc,
            columns=(("behaviours", switch),),
            parts=(
                _in_a_campaign(("behaviours", switch)),
                _try(f"harrow run swarm --set behaviours.{mutant.switch}={value_text(mutant.value)}"),
                Part(heading="facts", items=(("source", mutant.source), ("noticed by", noticed))),
            ),
        )


def _settings() -> Iterable[Entry]:
    from cli.setting_entries import setting_entries

    return setting_entries()


def _in_a_campaign(*items: tuple[str, str]) -> Part:
    return Part(heading="in a campaign", items=items)


def _try(command: str) -> Part:
    return Part(heading="try", items=(("run", command),))


def split_doc(doc: str) -> tuple[str, str]:
    """Return the first paragraph of a text on one line, and the rest."""
    import inspect

    first, _, rest = inspect.cleandoc(doc).replace("``", "`").partition("\n\n")
    return " ".join(first.split()), rest.strip()


def changes_text(by_release: Iterable[tuple[str, str]]) -> str:
    """Return how a value changed from release to release, as in ``false, true since 2.4``."""
    told: list[str] = []
    last: str | None = None
    for release, value in by_release:
        if value != last:
            told.append(value if last is None else f"{value} since {release}")
        last = value
    return ", ".join(told)


_CATALOGUES: Final[Mapping[Kind, Callable[[], Iterable[Entry]]]] = {
    Kind.FAULTS: _faults,
    Kind.RULES: _rules,
    Kind.CAMPAIGNS: _campaigns,
    Kind.PROBES: _probes,
    Kind.RELEASES: _releases,
    Kind.BEHAVIOURS: _behaviours,
    Kind.MUTANTS: _mutants,
    Kind.SETTINGS: _settings,
}

_IN_MEMORY: Final = tuple(kind for kind in Kind if kind is not Kind.CAMPAIGNS)
"""The catalogues that are not read from files."""
