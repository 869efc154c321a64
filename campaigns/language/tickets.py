"""Finds the KIPs and Kafka tickets that declarations mention, such as switches and repairs."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Final

from harrow.campaigns.language.library_index import library_names, resolve
from harrow.cluster_model.invariants.catalogue import INVARIANTS
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.release.profiles import MUTANTS, RELEASES, REPAIRS, SWITCHES
from harrow.cluster_model.settings import SETTINGS

_TICKET: Final = re.compile(r"\b(?:KIP|KAFKA)-\d+\b")


@dataclass(slots=True)
class Ticket:
    """A KIP or a ticket, and the names of the declarations that mention it."""

    name: str
    summary: str = ""
    repairs: list[str] = field(default_factory=list)
    switches: list[str] = field(default_factory=list)
    mutants: list[str] = field(default_factory=list)
    invariants: list[str] = field(default_factory=list)
    settings: list[str] = field(default_factory=list)
    releases: list[str] = field(default_factory=list)


def tickets() -> Mapping[str, Ticket]:
    """Return KIPs and tickets by name: first KIPs, then Kafka tickets, both in order of number."""
    by_name: dict[str, Ticket] = {}
    for kind, declared_name, texts, summary in _declared():
        for name in dict.fromkeys(_TICKET.findall(" ".join(texts))):
            ticket = by_name.setdefault(name, Ticket(name))
            ticket.summary = ticket.summary or _sentence(summary, name)
            getattr(ticket, kind).append(declared_name)
    return {name: by_name[name] for name in sorted(by_name, key=_order)}


def campaigns_about(ticket: str, switches: Iterable[str]) -> list[str]:
    """Return the campaigns of the library whose files mention a ticket, or one of its switches."""
    mention = re.compile(rf"\b(?:{'|'.join(map(re.escape, (ticket, *switches)))})\b")
    texts = {name: resolve(name)[0].read_text(encoding="utf-8") for name in library_names()}
    # Random campaigns are not about these switches: they only turn the flaws off.
    return [
        name
        for name, text in texts.items()
        if mention.search(text) and not name.startswith(("swarm", "standard"))
    ]


def _declared() -> Iterator[tuple[str, str, tuple[str, ...], str]]:
    """Yield each declaration that may mention tickets, as its kind, name, texts and summary."""
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
    """Turn a summary into a sentence that does not repeat the ticket's name."""
    sentence = text.replace(f" ({ticket})", "").removesuffix(".")
    first_word = sentence.partition(" ")[0]
    return f"{sentence if '.' in first_word else sentence[:1].upper() + sentence[1:]}."


def _order(ticket: str) -> tuple[bool, int]:
    kind, _, number = ticket.partition("-")
    return kind != "KIP", int(number)
