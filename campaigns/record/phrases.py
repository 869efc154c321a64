"""Words for what rules report: links, causes, preventions. Nothing before this makes a sentence, nothing after takes one apart."""

import shlex
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from harrow.campaigns.language.spelling import listed, printable
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


class PreventionLine(NamedTuple):
    """A line that says what prevents a finding.

    ``depth`` is how far it is indented. One that ``is_command`` is what to type after the command that reproduces the run,
    to see the trial; a screen shows it on a line of its own, so that it can be copied.
    """

    text: str
    depth: int = 0
    is_command: bool = False


def preventions(finding: Finding) -> Iterator[str]:
    """Yield one line for each remedy that a trial held; if none did, one for each that no trial could decide."""
    held = list(_held(finding))
    for way, trial in held:
        command = _command(trial)
        meaning = f": {way.meaning}" if command and way.meaning else ""
        yield f"{command or way.text} (tried: held){meaning}"
    if not held:
        yield from _untried(finding)


def prevention_lines(finding: Finding) -> Iterator[PreventionLine]:
    """Yield the lines that say what prevents a finding; none if nothing is known."""
    held = list(_held(finding))
    if held:
        which = "any of these" if len(held) > 1 else ""
        yield PreventionLine(f"prevented by {which and f'{which} '}(tried: held):")
    for way, trial in held:
        command = _command(trial)
        yield PreventionLine(command or way.text, depth=1, is_command=bool(command))
        if command and way.meaning:
            yield PreventionLine(way.meaning, depth=2)
    for reason in finding.no_remedy:
        yield PreventionLine(f"nothing that harrow can set prevents this: {reason}")
    untried = [] if held else list(_untried(finding))
    for number, text in enumerate(untried):
        yield PreventionLine(f"{'or' if number else 'may be prevented'} by {text}")
    if not (held or untried or finding.no_remedy):
        in_vain = [way.text for way in finding.prevented_by if way.trial is not None]
        if in_vain:
            yield PreventionLine(f"nothing that was tried prevents this: {listed(in_vain)}")


def _held(finding: Finding) -> Iterator[tuple[Prevention, Trial]]:
    for way in finding.prevented_by:
        if way.held and way.trial is not None:
            yield way, way.trial


def _untried(finding: Finding) -> Iterator[str]:
    for way in finding.prevented_by:
        if way.trial is None:
            yield way.text
        elif way.held is None and way.kind != RELEASE:
            yield f"{way.text} (not tried: {way.trial.reason})"


def _command(trial: Trial) -> str:
    """Return what to type to see a trial; nothing for a run whose trial was recorded without it."""
    option = "--then" if trial.is_drawn else "--set"
    return " ".join(f"{option} {shlex.quote(each)}" for each in trial.options)
