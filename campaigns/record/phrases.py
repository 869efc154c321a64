"""Words for what rules report: links, causes, preventions. Nothing before this makes a sentence, nothing after takes one apart."""

import shlex
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final

from harrow.campaigns.language.spelling import printable
from harrow.checks.causes.story import folded, seconds
from harrow.checks.finding import Finding
from harrow.checks.link import Actor, Link
from harrow.checks.prevention import RELEASE, Prevention, Trial
from harrow.cluster_model.topology import node_text


def actor_text(actor: Actor) -> str:
    """Return who acts, as people call it; a client by its name."""
    return node_text(actor) if isinstance(actor, int) else str(actor)


def sentence(link: Link) -> str:
    """Return what a link says, without its time."""
    if link.kind.impersonal or link.actor is None:
        return predicate(link)
    role = f", {link.kind.role}," if link.kind.role else ""
    return f"{actor_text(link.actor)}{role} {link.kind.phrase(**link.operands)}"


def predicate(link: Link) -> str:
    """Return what a link says where everybody sees who acts."""
    role = f"{link.kind.role}, " if link.kind.role else ""
    return f"{role}{link.kind.phrase(**link.operands)}"


def timed_sentence(link: Link) -> str:
    """Return what a link says, after its time."""
    return sentence(link) if link.at_us is None else f"{seconds(link.at_us)} {sentence(link)}"


def in_lane(link: Link, lane: str) -> str:
    """Return what a link says in the lane of the actor with that name, for a terminal."""
    is_own = link.actor is not None and actor_text(link.actor) == lane
    return printable(predicate(link) if is_own else sentence(link))


_LINKS_MAX: Final = 12
"""How many links of a chain are shown before some are left out."""
_FOLDED_MIN: Final = 4
"""Fewer links in a row than this are never left out."""


def shortened(chain: Sequence[Link]) -> Iterator[Link]:
    """Yield the links of a chain for a screen: of a long one without those in the middle that turned nothing.

    Faults, elections, truncations, changes of an ISR and what decides stay, and so do the first link and the last.
    """
    if len(chain) <= _LINKS_MAX:
        yield from chain
        return
    ends = (chain[0], chain[-1])
    for is_kept, group in groupby(
        chain, lambda link: link.is_pivotal or link.at_us is None or any(link is end for end in ends)
    ):
        links = list(group)
        if is_kept or len(links) < _FOLDED_MIN:
            yield from links
        else:
            yield folded.conclude(count=len(links))


def because(finding: Finding) -> str:
    """Return how a finding came about, in one sentence."""
    return "; ".join(timed_sentence(link) for link in finding.chain)


def preventions(finding: Finding) -> Iterator[str]:
    """Yield what keeps a finding from happening: what was tried and held; where nothing did, what could not be tried."""
    held = [_tried(way, way.trial) for way in finding.prevented_by if way.held and way.trial is not None]
    yield from held
    for way in () if held else finding.prevented_by:
        if way.trial is None:
            yield way.text
        elif way.held is None and way.kind != RELEASE:
            yield f"{way.text} (not tried: {way.trial.reason})"


def _tried(way: Prevention, trial: Trial) -> str:
    """Return a remedy as it is typed, where that shows the trial, and what it does."""
    name = "--then" if trial.is_drawn else "--set"
    typed = " ".join(f"{name} {shlex.quote(option)}" for option in trial.options)
    if not typed:
        return f"{way.text} (tried: held)"
    return f"{typed} (tried: held){way.meaning and f': {way.meaning}'}"


def prevention_label(finding: Finding) -> str:
    """Return what stands before the first prevention; of a history alone nothing can be tried."""
    tried = any(prevention.held for prevention in finding.prevented_by)
    return "prevented by" if tried else "may be prevented by"
