"""Every KIP and ticket of Kafka that the model names, found in what switches, repairs, mutants, invariants and settings declare."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from harrow.campaigns.language.library_index import library_names, resolve
from harrow.cluster_model.invariants.catalogue import INVARIANTS
from harrow.cluster_model.release.profiles import MUTANTS, RELEASES, REPAIRS, SWITCHES
from harrow.cluster_model.settings import SETTINGS

_TICKET: Final = re.compile(r"\b(?:KIP|KAFKA)-\d+\b")


@dataclass(slots=True)
class Ticket:
    """A KIP or a ticket, and the names of what is about it."""

    name: str
    summary: str = ""
    repairs: list[str] = field(default_factory=list)
    switches: list[str] = field(default_factory=list)
    mutants: list[str] = field(default_factory=list)
    invariants: list[str] = field(default_factory=list)
    settings: list[str] = field(default_factory=list)
    releases: list[str] = field(default_factory=list)


def tickets() -> Mapping[str, Ticket]:
    """Return the tickets by name, KIPs first, each by number."""
    found: dict[str, Ticket] = {}
    for kind, name, texts, summary in _declared():
        for ticket in dict.fromkeys(_TICKET.findall(" ".join(texts))):
            known = found.setdefault(ticket, Ticket(ticket))
            known.summary = known.summary or _sentence(summary, ticket)
            getattr(known, kind).append(name)
    return {name: found[name] for name in sorted(found, key=_order)}


def campaigns_about(ticket: str, switches: Iterable[str]) -> list[str]:
    """Return the campaigns of the library whose files name a ticket, or one of its switches."""
    wanted = re.compile(rf"\b(?:{'|'.join(map(re.escape, (ticket, *switches)))})\b")
    texts = {name: resolve(name)[0].read_text(encoding="utf-8") for name in library_names()}
    # Random campaigns name the switches of all flaws that they are to leave alone.
    return [
        name
        for name, text in texts.items()
        if wanted.search(text) and not name.startswith(("swarm", "standard"))
    ]


def _declared() -> Iterator[tuple[str, str, tuple[str, ...], str]]:
    """Yield what declares sources: its kind and name, the texts, and what it does in a few words."""
    for repair in REPAIRS.values():
        yield "repairs", repair.name, (repair.name, repair.text), repair.text
    for name, switch in SWITCHES.items():
        yield "switches", name, (switch.source, switch.meaning), switch.meaning
    for mutant in MUTANTS.values():
        yield "mutants", mutant.name, (mutant.source,), mutant.doc
    for invariant in INVARIANTS.values():
        yield "invariants", invariant.name, (invariant.source,), invariant.definition
    for setting in SETTINGS.values():
        yield "settings", setting.name, (setting.doc,), setting.doc
    for release in RELEASES.values():
        yield "releases", release.name, (release.doc,), release.doc


def _sentence(text: str, ticket: str) -> str:
    """Return what is said about a ticket as a sentence that does not name it again."""
    said = text.replace(f" ({ticket})", "").removesuffix(".")
    first_word = said.partition(" ")[0]
    return f"{said if '.' in first_word else said[:1].upper() + said[1:]}."


def _order(ticket: str) -> tuple[bool, int]:
    kind, _, number = ticket.partition("-")
    return kind != "KIP", int(number)
