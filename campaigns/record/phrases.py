"""Writes the sentences about links and remedies of findings, and the texts about replicas' logs.

Rules report data, and this module turns the data into words. No module parses these words.
"""

import shlex
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from harrow.campaigns.language.spelling import listed, printable
from harrow.checks.causes.story import folded, seconds
from harrow.checks.evidence import FinalLog
from harrow.checks.finding import Finding
from harrow.checks.link import Actor, Link
from harrow.checks.prevention import RELEASE, Prevention, Trial
from harrow.cluster_model.topology import node_text


def actor_text(actor: Actor) -> str:
    """Return the name of a node or a client."""
    return node_text(actor) if isinstance(actor, int) else str(actor)


def sentence(link: Link) -> str:
    """Return the sentence of a link, without its time."""
    if link.kind.impersonal or link.actor is None:
        return predicate(link)
    role = f", {link.kind.role}," if link.kind.role else ""
    return f"{actor_text(link.actor)}{role} {link.kind.phrase(**link.operands)}"


def predicate(link: Link) -> str:
    """Return the sentence of a link without its subject, for a place that shows the actor."""
    role = f"{link.kind.role}, " if link.kind.role else ""
    return f"{role}{link.kind.phrase(**link.operands)}"


def timed_sentence(link: Link) -> str:
    """Return the time and the sentence of a link."""
    return sentence(link) if link.at_us is None else f"{seconds(link.at_us)} {sentence(link)}"


def in_lane(link: Link, lane: str) -> str:
    """Return the text of a link for a lane of a story, safe to print on a terminal.

    In the lane of its own actor, the text does not name the actor.
    """
    is_own = link.actor is not None and actor_text(link.actor) == lane
    return printable(predicate(link) if is_own else sentence(link))


_LINKS_MAX: Final = 12
"""The longest chain that is shown in full."""
_FOLDED_MIN: Final = 4
"""Fewer consecutive links than this are never left out."""


def shortened(chain: Sequence[Link]) -> Iterator[Link]:
    """Yield the links to show on a screen. A long chain only counts minor links in its middle.

    Faults, elections, truncations, ISR changes, deciding links, and the first and last link are
    always shown.
    """
    if len(chain) <= _LINKS_MAX:
        yield from chain
        return
    ends = (chain[0], chain[-1])
    for is_essential, group in groupby(
        chain, lambda link: link.is_pivotal or link.at_us is None or any(link is end for end in ends)
    ):
        links = list(group)
        if is_essential or len(links) < _FOLDED_MIN:
            yield from links
        else:
            yield folded.conclude(count=len(links))


def because(finding: Finding) -> str:
    """Return the chain of a finding as one sentence."""
    return "; ".join(timed_sentence(link) for link in finding.chain)


class PreventionLine(NamedTuple):
    """A line about what prevents a finding.

    ``depth`` is its indent. If ``is_command`` is set, the text is options: added to the command
    that reproduces the run, they repeat the trial of a remedy. Screens show such a text on a line
    of its own, so that users can copy it.
    """

    text: str
    depth: int = 0
    is_command: bool = False


def preventions(finding: Finding) -> Iterator[str]:
    """Yield a line for each remedy that a trial confirmed, or else for each undecided remedy."""
    confirmed = list(_confirmed(finding))
    for prevention, trial in confirmed:
        command = _command(trial)
        meaning = f": {prevention.meaning}" if command and prevention.meaning else ""
        yield f"{command or prevention.text} (confirmed by a rerun){meaning}"
    if not confirmed:
        yield from _untried(finding)


def prevention_lines(finding: Finding) -> Iterator[PreventionLine]:
    """Yield the lines about what prevents a finding; none if harrow knows no remedy."""
    confirmed = list(_confirmed(finding))
    if confirmed:
        which = "any of these" if len(confirmed) > 1 else "this"
        yield PreventionLine(f"prevented by {which} (confirmed by a rerun):")
    for prevention, trial in confirmed:
        command = _command(trial)
        yield PreventionLine(command or prevention.text, depth=1, is_command=bool(command))
        if command and prevention.meaning:
            yield PreventionLine(prevention.meaning, depth=2)
    for reason in finding.no_remedy:
        yield PreventionLine(f"nothing that harrow can set prevents this: {reason}")
    untried = [] if confirmed else list(_untried(finding))
    for number, text in enumerate(untried):
        yield PreventionLine(f"{'or' if number else 'may be prevented'} by {text}")
    if not (confirmed or untried or finding.no_remedy):
        in_vain = [prevention.text for prevention in finding.prevented_by if prevention.trial is not None]
        if in_vain:
            yield PreventionLine(f"nothing that was tried prevents this: {listed(in_vain)}")


def _confirmed(finding: Finding) -> Iterator[tuple[Prevention, Trial]]:
    for prevention in finding.prevented_by:
        if prevention.held and prevention.trial is not None:
            yield prevention, prevention.trial


def _untried(finding: Finding) -> Iterator[str]:
    for prevention in finding.prevented_by:
        if prevention.trial is None:
            yield prevention.text
        elif prevention.held is None and prevention.kind != RELEASE:
            yield f"{prevention.text} (not tried: {prevention.trial.reason})"


def _command(trial: Trial) -> str:
    """Return the options that repeat a trial. They are empty for older runs, which lack them."""
    option = "--then" if trial.is_drawn else "--set"
    return " ".join(f"{option} {shlex.quote(value)}" for value in trial.options)


_VALUES_MAX: Final = 12


def epochs_text(log: FinalLog) -> str:
    """Return a replica's leader epochs with their start offsets: ``0@0 2@17``."""
    return " ".join(f"{epoch}@{start}" for epoch, start in log.epochs)


def values_text(log: FinalLog, shown_max: int = _VALUES_MAX) -> str:
    """Return the records of a log. If there are many, return the first two and the last one."""
    values = [
        f"(damaged {value})" if batch.base_offset in log.damaged else value
        for batch in log.batches
        for value in batch.values or (("(marker)",) if batch.is_control else ())
    ]
    del values[: log.log_start - log.first_offset]
    if log.log_start:
        values.insert(0, f"(deleted up to {log.log_start - 1})")
    if len(values) <= shown_max:
        return " ".join(values)
    return f"{values[0]} {values[1]} ... {values[-1]}"
